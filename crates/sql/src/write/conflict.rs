//! Rows that are there already, for INSERT … ON CONFLICT.

use std::collections::BTreeSet;
use std::ops::Bound;

use cachesql_table::{IndexRange, RowId, Table};
use cachesql_types::{TableSchema, Value};

use super::changes::KeyValues;
use crate::error::SqlError;

/// Where a new row meets one that is there.
pub(crate) enum Conflict {
    None,
    /// With a row of the snapshot.
    Row(RowId),
    /// With a row that the same statement put.
    Own,
}

/// Unique keys that are watched during one INSERT.
pub(crate) struct ConflictKeys {
    keys: Vec<WatchedKey>,
}

struct WatchedKey {
    columns: Vec<usize>,
    /// Position among the table's indexes.
    index: usize,
    put: BTreeSet<KeyValues>,
}

impl ConflictKeys {
    /// Watches the key over exactly those columns, or every unique key when there are none.
    pub(crate) fn new(table: &Table, columns: &[usize]) -> Result<ConflictKeys, SqlError> {
        let unique =
            table.indexes().iter().enumerate().filter(|(_, index)| index.definition().unique || index.is_primary());
        let wanted: BTreeSet<usize> = columns.iter().copied().collect();
        let keys: Vec<WatchedKey> = unique
            .map(|(at, index)| (at, index.definition().columns.clone()))
            .filter(|(_, own)| columns.is_empty() || own.iter().copied().collect::<BTreeSet<_>>() == wanted)
            .map(|(index, columns)| WatchedKey { columns, index, put: BTreeSet::new() })
            .collect();
        if keys.is_empty() && !columns.is_empty() {
            return Err(no_such_key(table.schema(), columns));
        }
        Ok(ConflictKeys { keys })
    }

    /// Whether a row with these values is there.
    pub(crate) fn find(&self, table: &Table, row: &[Value]) -> Conflict {
        for watched in &self.keys {
            let Some(key) = watched.key(row) else { continue };
            if watched.put.contains(&key) {
                return Conflict::Own;
            }
            let Some(index) = table.indexes().get(watched.index) else { continue };
            let range = IndexRange { prefix: key.0, lower: Bound::Unbounded, upper: Bound::Unbounded, nulls: true };
            if let Some(id) = index.select(&range).next() {
                return Conflict::Row(id);
            }
        }
        Conflict::None
    }

    /// The statement put that row.
    pub(crate) fn put(&mut self, row: &[Value]) {
        for watched in &mut self.keys {
            if let Some(key) = watched.key(row) {
                watched.put.insert(key);
            }
        }
    }
}

impl WatchedKey {
    /// The row's key; `None` when part of it is NULL, as such keys are never the same.
    fn key(&self, row: &[Value]) -> Option<KeyValues> {
        let part = |column: &usize| row.get(*column).filter(|v| !v.is_null()).cloned();
        self.columns.iter().map(part).collect::<Option<_>>().map(KeyValues)
    }
}

fn no_such_key(schema: &TableSchema, columns: &[usize]) -> SqlError {
    let names: Vec<&str> = columns.iter().filter_map(|c| schema.columns.get(*c)).map(|c| c.name.as_str()).collect();
    SqlError::Refused {
        sqlstate: "42P10",
        message: format!("table {:?} has no primary key or unique index over ({})", schema.name, names.join(", ")),
    }
}
