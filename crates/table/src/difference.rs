//! What turns the rows of a table into other rows.

use std::collections::HashMap;

use cachesql_types::Value;

use crate::check::Checker;
use crate::index::RowIndexKey;
use crate::operation::{Operation, PutMode};
use crate::refusal::Refusal;
use crate::row::{Row, RowId, RowKey};
use crate::staged::StagedRows;
use crate::table::Table;
use crate::wire;

impl Table {
    /// The fewest deletes and puts that turn this table's rows into the staged ones; none when they are the same. Rows of a
    /// table without primary key are compared whole, as often as they occur. Refused: two staged rows of one primary key.
    pub fn difference(&self, new: &StagedRows) -> Result<Vec<Operation>, Refusal> {
        let chunks = new.clone().finish();
        let rows = chunks.iter().flat_map(|chunk| (0..chunk.rows()).map(move |offset| Row::in_chunk(chunk, offset)));
        let (keys, rows) = if self.schema.key.is_empty() { self.differ_whole(rows) } else { self.differ_by_key(rows)? };
        let table = self.schema.name.clone();
        let mut operations = Vec::new();
        if !keys.is_empty() {
            operations.push(Operation::Delete { table: table.clone(), keys });
        }
        if !rows.is_empty() {
            operations.push(Operation::Put { table, rows, mode: PutMode::Upsert });
        }
        Ok(operations)
    }

    fn differ_by_key<'a>(&self, new: impl Iterator<Item = Row<'a>>) -> Result<(Vec<RowKey>, Vec<Vec<Value>>), Refusal> {
        let Some(primary) = self.indexes.first() else { return Ok((Vec::new(), Vec::new())) };
        let mut kept: HashMap<RowId, ()> = HashMap::new();
        let mut fresh: HashMap<Vec<u8>, ()> = HashMap::new();
        let mut put = Vec::new();
        for row in new {
            let key = primary.key_of(|column| row.cell(column));
            let present = primary.holder(&key);
            let seen = match present {
                Some(id) => kept.insert(id, ()).is_some(),
                None => fresh.insert(key_bytes(&key), ()).is_some(),
            };
            if seen {
                return Err(Checker::new(&self.schema).duplicate(primary.definition(), |column| row.value(column)));
            }
            let same = present
                .and_then(|id| self.row(id))
                .is_some_and(|old| (0..self.types.len()).all(|column| old.cell(column).is_same(row.cell(column))));
            if !same {
                put.push(row.values());
            }
        }
        let gone = self.rows.iter().filter(|id| !kept.contains_key(id));
        Ok((gone.filter_map(|id| self.row_key(id)).collect(), put))
    }

    fn differ_whole<'a>(&self, new: impl Iterator<Item = Row<'a>>) -> (Vec<RowKey>, Vec<Vec<Value>>) {
        let mut wanted: HashMap<Vec<u8>, usize> = HashMap::new();
        let new: Vec<Row<'a>> = new.collect();
        for row in &new {
            *wanted.entry(wire::row_bytes(row)).or_default() += 1;
        }
        let mut gone = Vec::new();
        for id in self.rows.iter() {
            let Some(row) = self.row(id) else { continue };
            match wanted.get_mut(&wire::row_bytes(&row)) {
                Some(count) if *count > 0 => *count -= 1,
                _ => gone.extend(self.row_key(id)),
            }
        }
        let mut put = Vec::new();
        for row in &new {
            if let Some(count) = wanted.get_mut(&wire::row_bytes(row))
                && *count > 0
            {
                *count -= 1;
                put.push(row.values());
            }
        }
        (gone, put)
    }
}

fn key_bytes(key: &RowIndexKey) -> Vec<u8> {
    match key {
        RowIndexKey::Null => Vec::new(),
        RowIndexKey::Fixed(key) => key.to_be_bytes().to_vec(),
        RowIndexKey::Bytes { key, .. } => key.to_vec(),
    }
}
