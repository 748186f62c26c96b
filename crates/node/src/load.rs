//! One load of one table, from the origin's first word to the last row.
//!
//! 1. The origin describes the rows; columns that are no longer the table's are noticed here, and the load ends.
//! 2. What will come is held against the memory limit.
//! 3. A table without rows is *filled*: batches are staged in the snapshot, invisible, and appear at once when all are there.
//! 4. A table with rows is *refreshed*: the new rows are gathered beside it, compared with the old ones, and the difference
//!    is written at once. Unchanged rows cost nothing.
//!
//! The origin wins: what was written to the table and not to its origin is undone by a load, also when it was written
//! while the load ran. A load that fails leaves the rows as they were.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use cachesql_origin::{Estimate, OriginError};
use cachesql_table::{GroupSnapshot, Operation, StagedRows, Table};
use cachesql_types::{TableSchema, limits};
use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::TableConfig;
use crate::core::{Core, find_table};
use crate::error::NodeError;
use crate::memory::{Expectation, bytes_of};
use crate::origins::TableOrigin;
use crate::progress::Progress;
use crate::request::LoadReport;
use crate::source::{change_between, retention_of, schema_of};
use crate::writer::{Plan, Planned, Writer, Written, unblocked};

/// What one table's loads need.
pub(crate) struct Loader {
    pub(crate) core: Arc<Core>,
    pub(crate) writer: Writer,
    pub(crate) config: TableConfig,
    pub(crate) origin: TableOrigin,
    pub(crate) progress: Progress,
}

/// Rows that a load brought, and what it changed.
struct Loaded {
    rows: u64,
    put: u64,
    deleted: u64,
    written: Written,
}

/// Rows on their way into a table.
trait Batches: Stream<Item = Result<RecordBatch, NodeError>> + Send + Unpin {}

impl<S: Stream<Item = Result<RecordBatch, NodeError>> + Send + Unpin> Batches for S {}

impl Loader {
    /// Loads the table.
    pub(crate) async fn load(&self) -> Result<LoadReport, NodeError> {
        let started = Instant::now();
        let description = self.origin.describe().await.map_err(|e| self.origin_error(e))?;
        let described = schema_of(&self.config, &description)?;
        let current = self.core.snapshot().table(&self.config.name).cloned();
        if let Some(table) = &current
            && let Some(change) = change_between(table.schema(), &described)
        {
            return Err(NodeError::SchemaChanged { table: self.config.name.clone(), change });
        }
        self.progress.estimated(description.estimate);
        let expectation = self.expect(description.estimate)?;
        let columns = current.as_ref().map_or(&described.columns, |table| &table.schema().columns);
        let rows = self.origin.load(columns).await.map_err(|e| self.origin_error(e))?;
        let rows = rows.map(|batch| {
            let batch = batch.map_err(|e| self.origin_error(e))?;
            self.progress.arrived(&batch);
            expectation.arrived(bytes_of(batch.get_array_memory_size()));
            Ok(batch)
        });
        let loaded = match current {
            Some(table) if table.row_count() > 0 => self.refresh(table, rows).await?,
            // Indexes that were added meanwhile stay.
            Some(table) => self.fill(TableSchema::clone(table.schema()), rows, Vec::new()).await?,
            None => {
                let retention = retention_of(&self.config).into_iter().collect();
                self.fill(described, rows, retention).await?
            }
        };
        Ok(LoadReport {
            table: self.config.name.clone(),
            rows: loaded.rows,
            put: loaded.put,
            deleted: loaded.deleted,
            took: started.elapsed(),
            token: self.core.token(loaded.written.index),
        })
    }

    fn origin_error(&self, source: OriginError) -> NodeError {
        NodeError::Origin { table: self.config.name.clone(), source: Box::new(source) }
    }

    /// Refuses a load that would not fit beside what is there and what other loads will bring: the old rows of a table stay
    /// until the new ones are complete.
    fn expect(&self, estimate: Option<Estimate>) -> Result<Expectation<'_>, NodeError> {
        let bytes = estimate.map_or(0, |e| e.bytes);
        let used_bytes = self.core.snapshot().memory().total();
        let limit_bytes = self.core.memory_bytes;
        let free_bytes = limit_bytes.saturating_sub(used_bytes);
        self.core.expected.expect(bytes, free_bytes).map_err(|expected| {
            let used_bytes = used_bytes.saturating_add(expected);
            let needed_bytes = used_bytes.saturating_add(bytes).saturating_sub(limit_bytes);
            NodeError::MemoryLimit { what: self.memory_subject(), needed_bytes, used_bytes, limit_bytes }
        })
    }

    /// Refuses rows that were gathered beside a table and no longer fit.
    fn admit_bytes(&self, bytes: u64) -> Result<(), NodeError> {
        let used_bytes = self.core.snapshot().memory().total();
        let limit_bytes = self.core.memory_bytes;
        let wanted = used_bytes.saturating_add(bytes);
        if wanted <= limit_bytes {
            return Ok(());
        }
        let what = self.memory_subject();
        Err(NodeError::MemoryLimit { what, needed_bytes: wanted.saturating_sub(limit_bytes), used_bytes, limit_bytes })
    }

    fn memory_subject(&self) -> String {
        format!("loading table {:?}", self.config.name)
    }

    /// Stages all rows in the snapshot and lets them appear at once, with `also` in the same step.
    async fn fill(&self, schema: TableSchema, rows: impl Batches, also: Vec<Operation>) -> Result<Loaded, NodeError> {
        let load = self.core.next_load();
        self.writer.apply(vec![Operation::BeginLoad { load, schema }]).await?;
        let outcome = self.fill_staged(load, rows, also).await;
        if outcome.is_err() {
            // What was staged is given up. When that fails too the writer is gone or fenced, and all of it with it.
            let _ = self.writer.apply(vec![Operation::AbandonLoad { load }]).await;
        }
        outcome.map_err(|error| self.named(error))
    }

    async fn fill_staged(&self, load: u64, mut rows: impl Batches, also: Vec<Operation>) -> Result<Loaded, NodeError> {
        let mut count = 0_u64;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            count = count.saturating_add(batch.num_rows() as u64);
            for batch in pieces(&batch) {
                self.writer.apply(vec![Operation::LoadRows { load, batch }]).await?;
            }
        }
        let mut finish = vec![Operation::FinishLoad { load }];
        finish.extend(also);
        let written = self.writer.apply(finish).await?;
        Ok(Loaded { rows: count, put: count, deleted: 0, written })
    }

    /// Gathers the new rows beside the old ones and writes the difference.
    async fn refresh(&self, table: Arc<Table>, mut rows: impl Batches) -> Result<Loaded, NodeError> {
        let mut staged = StagedRows::new(table.schema().clone());
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            staged = unblocked(move || staged.push(&batch).map(|()| staged)).await??;
            self.admit_bytes(bytes_of(staged.bytes()))?;
        }
        let count = staged.rows();
        let staged = Arc::new(staged);
        let difference = {
            let (table, staged) = (table.clone(), staged.clone());
            unblocked(move || table.difference(&staged)).await??
        };
        if changes_in(&difference).total() > limits::DIFFERENCE_ROWS as u64 {
            // Most of the table is new.
            return self.replace(&table, &staged).await;
        }
        let changes = Arc::new(Mutex::new(Changes::default()));
        let plan = {
            let (changes, compared, new) = (changes.clone(), table.clone(), staged.clone());
            Plan::long(move |_, newest| {
                let operations = difference_now(newest, &compared, difference, &new)?;
                *changes.lock() = changes_in(&operations);
                Ok(Planned::counted(operations))
            })
        };
        let written = match self.writer.write(plan, None).await {
            Err(NodeError::WriteTooLarge { .. }) => return self.replace(&table, &staged).await,
            written => written.map_err(|error| self.named(error))?,
        };
        let Changes { put, deleted } = *changes.lock();
        Ok(Loaded { rows: count, put, deleted, written })
    }

    /// Writes new rows in place of the old ones: as a load they go through the log in bounded pieces, and still appear at once.
    async fn replace(&self, table: &Table, staged: &StagedRows) -> Result<Loaded, NodeError> {
        let schema = TableSchema::clone(table.schema());
        let batches = futures::stream::iter(staged.batches().collect::<Vec<_>>()).map(Ok);
        self.fill(schema, batches, Vec::new()).await
    }

    /// Says of a limit that the writer met that it was this load that met it.
    fn named(&self, error: NodeError) -> NodeError {
        match error {
            NodeError::MemoryLimit { needed_bytes, used_bytes, limit_bytes, .. } => {
                NodeError::MemoryLimit { what: self.memory_subject(), needed_bytes, used_bytes, limit_bytes }
            }
            other => other,
        }
    }
}

/// A batch in pieces of about as many bytes as one write of a load may have.
fn pieces(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let (rows, bytes) = (batch.num_rows(), batch.get_array_memory_size());
    let pieces = bytes.div_ceil(limits::LOAD_BATCH_BYTES).max(1);
    let piece_rows = rows.div_ceil(pieces).max(1);
    (0..rows).step_by(piece_rows).map(move |first| batch.slice(first, piece_rows.min(rows - first)))
}

/// The difference, in the writer's turn. It was computed outside of it; when the table was written since, it is computed
/// again, so that what was written meanwhile cannot survive by half.
fn difference_now(
    newest: &GroupSnapshot,
    compared: &Arc<Table>,
    difference: Vec<Operation>,
    staged: &StagedRows,
) -> Result<Vec<Operation>, NodeError> {
    let name = &compared.schema().name;
    let table = find_table(newest, name)?;
    if Arc::ptr_eq(table, compared) {
        return Ok(difference);
    }
    if table.schema().columns != compared.schema().columns || table.schema().key != compared.schema().key {
        return Err(NodeError::Redefined { table: name.clone() });
    }
    Ok(table.difference(staged)?)
}

/// Rows that a difference puts and deletes.
#[derive(Clone, Copy, Default)]
struct Changes {
    put: u64,
    deleted: u64,
}

impl Changes {
    fn total(self) -> u64 {
        self.put.saturating_add(self.deleted)
    }
}

fn changes_in(difference: &[Operation]) -> Changes {
    let mut changes = Changes::default();
    for operation in difference {
        match operation {
            Operation::Put { rows, .. } => changes.put = changes.put.saturating_add(rows.len() as u64),
            Operation::Delete { keys, .. } => changes.deleted = changes.deleted.saturating_add(keys.len() as u64),
            _ => {}
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use cachesql_types::{Column, DataType, LogIndex, Value};

    fn numbers(of: &[i64]) -> Vec<Vec<Value>> {
        of.iter().map(|n| vec![Value::BigInt(*n)]).collect()
    }

    fn put(table: &str, rows: &[i64]) -> Operation {
        Operation::Put { table: table.into(), rows: numbers(rows), mode: cachesql_table::PutMode::Upsert }
    }

    #[test]
    fn a_large_batch_goes_through_the_log_in_pieces() {
        let rows = limits::LOAD_BATCH_BYTES / size_of::<i64>() * 2 + 1_000;
        let ids: Vec<i64> = (0..rows as i64).collect();
        let batch = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as _)]).expect("one column");
        let cut: Vec<RecordBatch> = pieces(&batch).collect();
        assert_eq!(cut.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
        assert!(cut.iter().all(|piece| piece.num_rows() * size_of::<i64>() <= limits::LOAD_BATCH_BYTES));
        assert_eq!(arrow::compute::concat_batches(&batch.schema(), &cut).expect("one schema"), batch);
        assert_eq!(pieces(&batch.slice(0, 0)).count(), 0);
    }

    #[test]
    fn what_was_written_after_the_comparison_does_not_survive_it() {
        let column = Column { name: "id".into(), data_type: DataType::BigInt, nullable: false };
        let schema = TableSchema { name: "t".into(), columns: vec![column], key: vec![0], indexes: Vec::new() };
        let create = Operation::CreateTable { schema: schema.clone() };
        let apply = |to: &GroupSnapshot, operations: &[Operation]| {
            to.apply(LogIndex(to.index().0 + 1), operations).expect("operations that fit").0
        };
        let compared = apply(&GroupSnapshot::empty(), &[create, put("t", &[1, 2])]);
        let table = compared.table("t").expect("just made").clone();
        let mut staged = StagedRows::new(table.schema().clone());
        let ids = Arc::new(Int64Array::from(vec![2, 3]));
        let batch = RecordBatch::try_new(Arc::new(cachesql_types::arrow_schema(&schema)), vec![ids]);
        staged.push(&batch.expect("one column")).expect("the table's column");
        let difference = table.difference(&staged).expect("distinct keys");

        let written = apply(&compared, &[put("t", &[4])]);
        let operations = difference_now(&written, &table, difference.clone(), &staged).expect("the same columns");
        let refreshed = apply(&written, &operations);
        let table_now = refreshed.table("t").expect("still there");
        let mut ids: Vec<_> = table_now.rows().filter_map(|id| table_now.row(id)?.value(0).as_i64()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [2, 3]);

        let dropped = apply(&written, &[Operation::DropTable { table: "t".into() }]);
        let gone = difference_now(&dropped, &table, difference, &staged);
        assert!(matches!(gone, Err(NodeError::UnknownTable { .. })));
    }
}
