//! All tables of a group at one position of its log.

use std::collections::BTreeMap;
use std::sync::Arc;

use cachesql_types::{LogIndex, TableSchema, resolve_name};

use crate::memory::MemoryUse;
use crate::operation::{Applied, Operation};
use crate::refusal::{ApplyError, Refusal};
use crate::staged::StagedRows;
use crate::table::{Retention, Table};

/// Everything that a group holds, as of one log index. Immutable; a clone is one reference count.
#[derive(Clone)]
pub struct GroupSnapshot(Arc<State>);

#[derive(Clone, Default)]
struct State {
    index: LogIndex,
    definitions: LogIndex,
    /// In the order of their names.
    tables: Vec<Arc<Table>>,
    loads: BTreeMap<u64, Arc<Load>>,
}

/// Rows on their way into a table.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) staged: StagedRows,
}

impl GroupSnapshot {
    /// No tables, before the first write.
    pub fn empty() -> GroupSnapshot {
        GroupSnapshot(Arc::default())
    }

    /// The position in the log of the last write in it.
    pub fn index(&self) -> LogIndex {
        self.0.index
    }

    /// The position of the last write that changed a definition: tables and indexes are the same in all snapshots that agree
    /// in it.
    pub fn definitions(&self) -> LogIndex {
        self.0.definitions
    }

    /// A table, by its exact name or else without regard to ASCII case.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.0.tables.get(self.0.find(name)?)
    }

    /// All tables, in the order of their names.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = &Arc<Table>> {
        self.0.tables.iter()
    }

    /// Bytes of everything in it; kept as it changes, not walked.
    pub fn memory(&self) -> MemoryUse {
        let mut sum = MemoryUse::default();
        self.0.tables.iter().for_each(|table| sum.add(&table.memory()));
        sum.staged_bytes = self.0.loads.values().map(|load| load.staged.bytes()).sum();
        sum
    }

    /// Loads that are under way: number, table, rows so far.
    pub fn loads(&self) -> impl Iterator<Item = (u64, &str, u64)> {
        self.0.loads.iter().map(|(number, load)| (*number, load.schema.name.as_str(), load.staged.rows()))
    }

    /// The same with their rows.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (u64, &Load)> {
        self.0.loads.iter().map(|(number, load)| (*number, &**load))
    }

    /// A snapshot of tables in the order of their names.
    pub(crate) fn of_parts(
        index: LogIndex,
        definitions: LogIndex,
        tables: Vec<Arc<Table>>,
        loads: BTreeMap<u64, Arc<Load>>,
    ) -> GroupSnapshot {
        GroupSnapshot(Arc::new(State { index, definitions, tables, loads }))
    }

    /// The same at a later position: writes are applied before their position is known, and others may come between. A
    /// position that is not later leaves it where it is.
    pub fn at(self, index: LogIndex) -> GroupSnapshot {
        if index <= self.0.index {
            return self;
        }
        let mut state = Arc::unwrap_or_clone(self.0);
        if state.definitions == state.index {
            state.definitions = index;
        }
        state.index = index;
        GroupSnapshot(Arc::new(state))
    }

    /// Applies operations, all or none, in order: each sees what those before it did. The outcome depends on this
    /// snapshot and the operations alone.
    pub fn apply(
        &self,
        index: LogIndex,
        operations: &[Operation],
    ) -> Result<(GroupSnapshot, Vec<Applied>), ApplyError> {
        if index <= self.0.index {
            let text = format!("log index {index} does not come after {}", self.0.index);
            return Err(ApplyError::Fenced(text));
        }
        let mut state = State::clone(&self.0);
        state.index = index;
        state.finish(operations)
    }

    /// Applies further operations at the position that it has: those of a write that is agreed on together with the one before it.
    /// Only changes of rows: of two snapshots at one position nobody could tell whose definitions are newer.
    pub fn apply_more(&self, operations: &[Operation]) -> Result<(GroupSnapshot, Vec<Applied>), ApplyError> {
        if !operations.iter().all(Operation::changes_rows_only) {
            return Err(ApplyError::Fenced("definitions change at a position that is taken".to_owned()));
        }
        State::clone(&self.0).finish(operations)
    }
}

impl State {
    fn finish(mut self, operations: &[Operation]) -> Result<(GroupSnapshot, Vec<Applied>), ApplyError> {
        let applied = operations.iter().map(|o| self.apply(o)).collect::<Result<Vec<Applied>, Refusal>>()?;
        Ok((GroupSnapshot(Arc::new(self)), applied))
    }

    fn find(&self, name: &str) -> Option<usize> {
        // The exact name is found by its place in the order, for it is what callers nearly always give.
        match self.tables.binary_search_by(|t| t.schema().name.as_str().cmp(name)) {
            Ok(at) => Some(at),
            Err(_) => resolve_name(self.tables.iter().map(|t| t.schema().name.as_str()), name),
        }
    }

    fn position(&self, name: &str) -> Result<usize, Refusal> {
        self.find(name).ok_or_else(|| Refusal::UnknownTable { table: name.chars().take(80).collect() })
    }

    /// A table to change; copied, shallowly, when an earlier snapshot holds it too.
    fn table_mut(&mut self, name: &str) -> Result<&mut Table, Refusal> {
        let at = self.position(name)?;
        Ok(Arc::make_mut(&mut self.tables[at]))
    }

    fn load_mut(&mut self, load: u64) -> Result<&mut Load, Refusal> {
        self.loads.get_mut(&load).map(Arc::make_mut).ok_or(Refusal::UnknownLoad { load })
    }

    fn apply(&mut self, operation: &Operation) -> Result<Applied, Refusal> {
        let rows = match operation {
            Operation::CreateTable { schema } => self.create_table(schema)?,
            Operation::DropTable { table } => self.drop_table(table)?,
            Operation::CreateIndex { table, index } => {
                self.table_mut(table)?.create_index(index)?;
                self.definitions = self.index;
                0
            }
            Operation::DropIndex { table, index } => {
                self.table_mut(table)?.drop_index(index)?;
                self.definitions = self.index;
                0
            }
            Operation::Put { table, rows, mode } => self.table_mut(table)?.put(rows, *mode)?,
            Operation::Delete { table, keys } => self.table_mut(table)?.delete(keys)?,
            Operation::Truncate { table } => self.table_mut(table)?.truncate(),
            Operation::Compact { table } => self.table_mut(table)?.compact()?,
            Operation::SetRetention { table, ttl_ms, max_rows } => {
                let retention = Retention { ttl_ms: *ttl_ms, max_rows: *max_rows };
                self.table_mut(table)?.set_retention(retention);
                0
            }
            Operation::BeginLoad { schema, load } => self.begin_load(schema, *load)?,
            Operation::LoadRows { load, batch } => {
                self.load_mut(*load)?.staged.push(batch)?;
                batch.num_rows() as u64
            }
            Operation::FinishLoad { load } => self.finish_load(*load)?,
            Operation::AbandonLoad { load } => self.loads.remove(load).map_or(0, |load| load.staged.rows()),
        };
        Ok(Applied { rows })
    }

    fn create_table(&mut self, schema: &TableSchema) -> Result<u64, Refusal> {
        schema.check()?;
        let place = self.tables.binary_search_by(|t| t.schema().name.cmp(&schema.name));
        let Err(at) = place else { return Err(Refusal::TableExists { table: schema.name.clone() }) };
        let table = Table::new(Arc::new(schema.clone()), Retention::default(), 0);
        self.tables.insert(at, Arc::new(table));
        self.definitions = self.index;
        Ok(0)
    }

    fn drop_table(&mut self, name: &str) -> Result<u64, Refusal> {
        let at = self.position(name)?;
        let table = self.tables.remove(at);
        self.loads.retain(|_, load| load.schema.name != table.schema().name);
        self.definitions = self.index;
        Ok(table.row_count())
    }

    fn begin_load(&mut self, schema: &TableSchema, load: u64) -> Result<u64, Refusal> {
        schema.check()?;
        let mut schema = schema.clone();
        if let Some(at) = self.find(&schema.name) {
            let present = self.tables[at].schema();
            schema.name.clone_from(&present.name);
            same_shape(present, &schema)?;
        }
        if self.loads.contains_key(&load) {
            return Err(Refusal::LoadExists { load });
        }
        let schema = Arc::new(schema);
        let begun = Load { staged: StagedRows::new(schema.clone()), schema };
        self.loads.insert(load, Arc::new(begun));
        Ok(0)
    }

    fn finish_load(&mut self, number: u64) -> Result<u64, Refusal> {
        let load = self.loads.remove(&number).ok_or(Refusal::UnknownLoad { load: number })?;
        let Load { schema, staged } = Arc::unwrap_or_clone(load);
        let at = match self.find(&schema.name) {
            Some(at) => at,
            None => {
                self.create_table(&schema)?;
                self.position(&schema.name)?
            }
        };
        same_shape(self.tables[at].schema(), &schema)?;
        let loaded = self.tables[at].replaced_by(staged)?;
        let rows = loaded.row_count();
        self.tables[at] = Arc::new(loaded);
        Ok(rows)
    }
}

/// A load's rows fit a table of the same columns and key; indexes may differ.
fn same_shape(table: &TableSchema, load: &TableSchema) -> Result<(), Refusal> {
    if table.columns == load.columns && table.key == load.key {
        return Ok(());
    }
    let detail = "the load has other columns or another key than the table".to_owned();
    Err(Refusal::Batch { table: table.name.clone(), detail })
}
