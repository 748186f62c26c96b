//! How operations change one table. A table that a refusal leaves half changed is thrown away by the caller.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use cachesql_types::{IndexDefinition, TableSchema, Value, limits};

use crate::check::Checker;
use crate::index::key::KeyBuffer;
use crate::index::tree::Tree;
use crate::index::{Index, RowIndexKey};
use crate::operation::PutMode;
use crate::refusal::Refusal;
use crate::row::{RowId, RowKey};
use crate::rows::chunk::Numbers;
use crate::staged::StagedRows;
use crate::table::{Retention, Table};

impl Table {
    pub(crate) fn put(&mut self, rows: &[Vec<Value>], mode: PutMode) -> Result<u64, Refusal> {
        let schema = self.schema.clone();
        let checker = Checker::new(&schema);
        rows.iter().try_for_each(|row| checker.row(row))?;
        let mut touched = BTreeSet::new();
        let replaces = mode == PutMode::Upsert && !schema.key.is_empty();
        let last = if replaces && rows.len() > 1 { self.last_of_each_key(rows) } else { None };
        let kept = || rows.iter().enumerate().filter(|(i, _)| last.as_ref().is_none_or(|l| l.contains(i)));
        if replaces {
            for (_, row) in kept() {
                if let Some(present) = self.indexes.first().and_then(|primary| holder(primary, row)) {
                    self.remove(present, &mut touched);
                }
            }
        }
        let mut count = 0;
        for (_, row) in kept() {
            self.append(row, &checker)?;
            count += 1;
        }
        self.compact_touched(touched)?;
        Ok(count)
    }

    /// Positions of the rows that no later row of the batch replaces; `None` when that is all of them.
    fn last_of_each_key(&self, rows: &[Vec<Value>]) -> Option<HashSet<usize>> {
        let primary = self.indexes.first()?;
        let mut seen: HashSet<KeyBuffer> = HashSet::with_capacity(rows.len());
        let mut last = HashSet::with_capacity(rows.len());
        for (position, row) in rows.iter().enumerate().rev() {
            let bytes = match primary.key_of(|c| row.get(c).map_or(crate::Cell::Null, crate::Cell::of_value)) {
                RowIndexKey::Fixed(key) => KeyBuffer::from_slice(&key.to_be_bytes()),
                RowIndexKey::Bytes { key, .. } => key,
                RowIndexKey::Null => KeyBuffer::new(),
            };
            if seen.insert(bytes) {
                last.insert(position);
            }
        }
        (last.len() < rows.len()).then_some(last)
    }

    /// Appends a row that was checked, when its unique keys are free.
    fn append(&mut self, row: &[Value], checker: &Checker<'_>) -> Result<(), Refusal> {
        let field = |column: usize| row.get(column).map_or(crate::Cell::Null, crate::Cell::of_value);
        let keys: smallvec::SmallVec<[RowIndexKey; 4]> = self.indexes.iter().map(|i| i.key_of(field)).collect();
        for (index, key) in self.indexes.iter().zip(&keys) {
            if index.holder(key).is_some() {
                return Err(checker.duplicate(index.definition(), |c| field(c).to_value()));
            }
        }
        let number = self.next_number;
        let id = self.rows.append(row.into(), number).ok_or_else(|| self.too_many_rows())?;
        for (index, key) in self.indexes.iter_mut().zip(&keys) {
            index.insert(key, id);
        }
        if let Some(numbers) = &mut self.numbers {
            self.next_number += 1;
            numbers.insert(number, |_| Some(id.0));
        }
        Ok(())
    }

    /// Deletes a live row, and notes the slot that it was in.
    fn remove(&mut self, id: RowId, touched: &mut BTreeSet<u32>) {
        let Some(row) = self.rows.row(id) else { return };
        for index in &mut self.indexes {
            let key = index.key_of(|column| row.cell(column));
            index.remove(&key, id);
        }
        if let (Some(numbers), Some(number)) = (&mut self.numbers, self.rows.number(id)) {
            numbers.remove(&number, |_| true);
        }
        self.rows.delete(id);
        touched.insert(id.slot());
    }

    pub(crate) fn delete(&mut self, keys: &[RowKey]) -> Result<u64, Refusal> {
        let mut touched = BTreeSet::new();
        let mut count = 0;
        for key in keys {
            let fits = match key {
                RowKey::Columns(values) => !self.schema.key.is_empty() && values.len() == self.schema.key.len(),
                RowKey::Number(_) => self.numbers.is_some(),
            };
            if !fits {
                return Err(self.key_shape());
            }
            if let Some(id) = self.find(key) {
                self.remove(id, &mut touched);
                count += 1;
            }
        }
        self.compact_touched(touched)?;
        Ok(count)
    }

    pub(crate) fn truncate(&mut self) -> u64 {
        let rows = self.row_count();
        *self = Table::new(self.schema.clone(), self.retention, self.next_number);
        rows
    }

    /// Moves the live rows of chunks that have become mostly dead: a quarter of what was deleted there at most, so deleting stays
    /// of constant cost a row.
    fn compact_touched(&mut self, touched: BTreeSet<u32>) -> Result<(), Refusal> {
        for slot in touched {
            if self.rows.is_mostly_dead(slot) {
                self.move_rows(slot)?;
            }
        }
        Ok(())
    }

    fn move_rows(&mut self, slot: u32) -> Result<(), Refusal> {
        let rows = self.rows.live_rows(slot);
        self.rows.close_tail(slot).ok_or_else(|| self.too_many_rows())?;
        for from in rows {
            let to = self.rows.move_to_end(from).ok_or_else(|| self.too_many_rows())?;
            let Some(row) = self.rows.row(to) else { continue };
            for index in &mut self.indexes {
                let key = index.key_of(|column| row.cell(column));
                index.relocate(&key, from, to);
            }
            if let (Some(numbers), Some(number)) = (&mut self.numbers, self.rows.number(to)) {
                numbers.insert(number, |_| Some(to.0));
            }
        }
        Ok(())
    }

    /// Moves the rows of every chunk that has deleted ones, and seals the tail. Answers the rows of the table.
    pub(crate) fn compact(&mut self) -> Result<u64, Refusal> {
        for slot in self.rows.slots_with_deleted() {
            self.move_rows(slot)?;
        }
        self.rows.seal_tail().ok_or_else(|| self.too_many_rows())?;
        Ok(self.row_count())
    }

    pub(crate) fn create_index(&mut self, index: &IndexDefinition) -> Result<(), Refusal> {
        let exists = self.schema.indexes.iter().any(|i| i.name == index.name);
        if exists {
            return Err(Refusal::IndexExists { table: self.schema.name.clone(), index: index.name.clone() });
        }
        let mut schema = TableSchema::clone(&self.schema);
        schema.indexes.push(index.clone());
        schema.check()?;
        let mut built = Index::new(index.clone(), false, &self.types);
        self.fill(&mut built)?;
        self.indexes.push(built);
        self.schema = Arc::new(schema);
        Ok(())
    }

    pub(crate) fn drop_index(&mut self, name: &str) -> Result<(), Refusal> {
        let unknown = || Refusal::UnknownIndex { table: self.schema.name.clone(), index: name.to_owned() };
        let names = self.schema.indexes.iter().map(|i| i.name.as_str());
        let at = cachesql_types::resolve_name(names, name).ok_or_else(unknown)?;
        let mut schema = TableSchema::clone(&self.schema);
        schema.indexes.remove(at);
        self.indexes.remove(at + usize::from(!schema.key.is_empty()));
        self.schema = Arc::new(schema);
        Ok(())
    }

    fn fill(&self, index: &mut Index) -> Result<(), Refusal> {
        let count = usize::try_from(self.row_count()).unwrap_or(0);
        let rows = self.rows.iter().filter_map(|id| Some((id, self.rows.row(id)?)));
        index.build(count, rows).map_err(|(_, second)| {
            let value = |column| self.rows.row(second).map_or(Value::Null, |row| row.value(column));
            Checker::new(&self.schema).duplicate(index.definition(), value)
        })
    }

    pub(crate) fn set_retention(&mut self, retention: Retention) {
        self.retention = retention;
        self.rows.keep_access(retention.needs_access());
    }

    /// The table with other rows: indexes are built from sorted runs.
    pub(crate) fn replaced_by(&self, staged: StagedRows) -> Result<Table, Refusal> {
        let mut table = Table::new(self.schema.clone(), self.retention, self.next_number);
        let mut next = table.next_number;
        let keyless = table.numbers.is_some();
        table.take_chunks(staged, |rows| {
            let first = next;
            next += rows as u64;
            if keyless { Numbers::From(first) } else { Numbers::None }
        })?;
        if keyless {
            table.next_number = next;
        }
        Ok(table)
    }

    /// A table of rows that were another member's, each with the number that it has there when the table is one without primary
    /// key.
    pub(crate) fn of_rows(
        staged: StagedRows,
        numbers: Vec<u64>,
        retention: Retention,
        next_number: u64,
    ) -> Result<Table, Refusal> {
        let schema = staged.schema().clone();
        if numbers.iter().any(|number| *number >= next_number) {
            return Err(misnumbered(&schema));
        }
        let mut table = Table::new(schema, retention, next_number);
        let mut numbers = numbers.into_iter();
        table.take_chunks(staged, |rows| Numbers::of(numbers.by_ref().take(rows).collect()))?;
        Ok(table)
    }

    /// Fills an empty table with rows and builds its indexes.
    fn take_chunks(&mut self, staged: StagedRows, mut number: impl FnMut(usize) -> Numbers) -> Result<(), Refusal> {
        for chunk in staged.finish() {
            let numbers = number(chunk.rows());
            self.rows.adopt(chunk, numbers).ok_or_else(|| self.too_many_rows())?;
        }
        if self.numbers.is_some() {
            let numbered = self.rows.iter().filter_map(|id| Some((self.rows.number(id)?, id.0)));
            let mut numbered: Vec<(u64, u32)> = numbered.collect();
            numbered.sort_unstable();
            if numbered.array_windows().any(|[(a, _), (b, _)]| a == b) {
                return Err(misnumbered(&self.schema));
            }
            self.numbers = Some(Tree::from_sorted(numbered.into_iter()));
        }
        let mut indexes = std::mem::take(&mut self.indexes);
        self.fill_all(&mut indexes)?;
        self.indexes = indexes;
        Ok(())
    }

    /// Fills empty indexes; those of many rows side by side, for each is a sort.
    fn fill_all(&self, indexes: &mut [Index]) -> Result<(), Refusal> {
        if self.row_count() < limits::SIDE_BY_SIDE_ROWS {
            return indexes.iter_mut().try_for_each(|index| self.fill(index));
        }
        for some in indexes.chunks_mut(limits::SIDE_BY_SIDE_INDEXES) {
            let outcomes: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = some.iter_mut().map(|index| scope.spawn(|| self.fill(index))).collect();
                threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
            });
            for outcome in outcomes {
                // The first one in the table's order is told, whichever ended first.
                outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
        }
        Ok(())
    }

    fn too_many_rows(&self) -> Refusal {
        Refusal::TooManyRows { table: self.schema.name.clone() }
    }

    fn key_shape(&self) -> Refusal {
        let names: Vec<&str> =
            self.schema.key.iter().filter_map(|c| self.schema.columns.get(*c)).map(|c| c.name.as_str()).collect();
        let wanted = match names.as_slice() {
            [] => "its number".to_owned(),
            names => format!("its key ({})", names.join(", ")),
        };
        Refusal::KeyShape { table: self.schema.name.clone(), wanted }
    }
}

fn misnumbered(schema: &TableSchema) -> Refusal {
    Refusal::Batch {
        table: schema.name.clone(),
        detail: "two rows have one number, or one that is not given yet".to_owned(),
    }
}

fn holder(primary: &Index, row: &[Value]) -> Option<RowId> {
    primary.holder(&primary.key_of(|c| row.get(c).map_or(crate::Cell::Null, crate::Cell::of_value)))
}
