//! Writes → row operations, planned against a snapshot. Nothing is changed here: the operations are proposed to the log,
//! and applied by whoever holds the tables.

mod bind;
mod changes;
mod conflict;
mod definition;
mod expression;
mod run;
mod typed;

use std::sync::Arc;

use arrow::array::RecordBatch;
use cachesql_table::Operation;

pub(crate) use bind::{Binding, BoundWrite, bind_write};
pub(crate) use definition::plan_definition;
pub(crate) use run::{Context, plan_write, rows_of_write};
pub(crate) use typed::plan_typed;

use crate::answer::ColumnInfo;
use crate::datafusion::RowStream;

/// What a write does, and what it answers.
#[derive(Debug, Clone)]
pub struct WritePlan {
    /// The changes, in order; all or none are applied. They fit the snapshot that they were planned against.
    pub operations: Vec<Operation>,
    /// Rows inserted, changed or deleted.
    pub affected: u64,
    /// The rows of RETURNING.
    pub returning: Option<Returned>,
}

/// Rows that a write answers. They stand on their own.
#[derive(Debug, Clone)]
pub struct Returned {
    /// The columns of each row.
    pub columns: Arc<[ColumnInfo]>,
    /// The rows.
    pub batch: RecordBatch,
}

impl Returned {
    /// The rows as any answer's.
    pub fn into_rows(self) -> crate::Rows {
        crate::Rows::Stream(RowStream::of_batches(self.columns, vec![self.batch]))
    }
}
