//! What one statement of a write came to, in a form that can be kept and answered again.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use cachesql_sql::{ColumnInfo, Returned, RowStream, Rows, SqlError};
use futures::StreamExt as _;

/// The outcome of one statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Rows written; `None` for a read.
    pub(crate) affected: Option<u64>,
    rows: Option<HeldRows>,
}

/// Rows that hold no snapshot, so that keeping them keeps nothing else.
#[derive(Clone, Debug)]
struct HeldRows {
    columns: Arc<[ColumnInfo]>,
    batches: Vec<RecordBatch>,
}

impl Outcome {
    /// A write, with the rows that it was asked to answer.
    pub(crate) fn written(affected: u64, returning: Option<Returned>) -> Outcome {
        let rows = returning.map(|r| HeldRows { columns: r.columns, batches: vec![r.batch] });
        Outcome { affected: Some(affected), rows }
    }

    /// A read inside a batch of writes: its rows are read to the end before the batch is proposed, since a read that
    /// fails must fail the batch. More than `most_bytes` of them is an error.
    pub(crate) async fn read(rows: Rows, most_bytes: usize) -> Result<Outcome, SqlError> {
        let columns = rows.shared_columns();
        let batches = match rows {
            Rows::Direct(direct) => vec![direct.to_batch()?],
            Rows::Stream(stream) => collect(stream, most_bytes).await?,
        };
        Ok(Outcome { affected: None, rows: Some(HeldRows { columns, batches }) })
    }

    /// The columns of the rows; empty when there are none.
    pub(crate) fn columns(&self) -> Arc<[ColumnInfo]> {
        self.rows.as_ref().map(|rows| rows.columns.clone()).unwrap_or_default()
    }

    /// The rows to answer.
    pub(crate) fn rows(&self) -> Option<Rows> {
        let rows = self.rows.as_ref()?;
        Some(Rows::Stream(RowStream::of_batches(rows.columns.clone(), rows.batches.clone())))
    }

    /// Bytes that the rows take.
    pub(crate) fn row_bytes(&self) -> usize {
        let batches = self.rows.iter().flat_map(|rows| &rows.batches);
        batches.map(RecordBatch::get_array_memory_size).sum()
    }
}

async fn collect(mut stream: RowStream, most_bytes: usize) -> Result<Vec<RecordBatch>, SqlError> {
    let mut batches = Vec::new();
    let mut bytes = 0_usize;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        bytes = bytes.saturating_add(batch.get_array_memory_size());
        if bytes > most_bytes {
            return Err(SqlError::Memory(format!("the rows of a read in a batch of writes pass {most_bytes} bytes")));
        }
        batches.push(batch);
    }
    Ok(batches)
}
