//! Rows of DataFusion's path as they come: under the answer's names, within the statement's time and number of rows.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use futures::{Stream, StreamExt};
use tokio::time::{Instant, Sleep};

use super::errors::of_datafusion;
use super::watch::Deadline;
use crate::answer::{ColumnInfo, result_schema};
use crate::error::SqlError;
use crate::limits::EngineLimits;

/// Rows of one answer, in batches. The statement is stopped when this is dropped.
pub struct RowStream {
    columns: Arc<[ColumnInfo]>,
    schema: Option<SchemaRef>,
    source: Source,
}

enum Source {
    Running {
        batches: SendableRecordBatchStream,
        alarm: Pin<Box<Sleep>>,
        deadline: Arc<Deadline>,
        limits: EngineLimits,
        rows: u64,
    },
    Ready(std::vec::IntoIter<RecordBatch>),
    Ended,
}

impl std::fmt::Debug for RowStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowStream").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl RowStream {
    /// Rows that are there already.
    pub fn of_batches(columns: Arc<[ColumnInfo]>, batches: Vec<RecordBatch>) -> RowStream {
        RowStream { columns, schema: None, source: Source::Ready(batches.into_iter()) }
    }

    /// Rows that are being made, until `deadline`.
    pub(crate) fn running(
        columns: Arc<[ColumnInfo]>,
        batches: SendableRecordBatchStream,
        deadline: Arc<Deadline>,
        limits: &EngineLimits,
    ) -> RowStream {
        let alarm = tokio::time::sleep_until(Instant::from_std(deadline.at()));
        let source = Source::Running { batches, alarm: Box::pin(alarm), deadline, limits: *limits, rows: 0 };
        RowStream { columns, schema: None, source }
    }

    /// The columns of each row.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// The columns, shared.
    pub fn shared_columns(&self) -> Arc<[ColumnInfo]> {
        self.columns.clone()
    }

    /// All batches, in memory.
    pub async fn collect(mut self) -> Result<Vec<RecordBatch>, SqlError> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    }

    fn named(&mut self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let schema = self
            .schema
            .get_or_insert_with(|| result_schema(&self.columns, batch.columns().iter().map(|a| a.data_type().clone())));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
            .map_err(|e| SqlError::Internal(e.to_string()))
    }

    fn end_with(&mut self, error: SqlError) -> Poll<Option<Result<RecordBatch, SqlError>>> {
        self.source = Source::Ended;
        Poll::Ready(Some(Err(error)))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Source::Running { deadline, .. } = self {
            deadline.abandon();
        }
    }
}

impl Stream for RowStream {
    type Item = Result<RecordBatch, SqlError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let next = match &mut this.source {
            Source::Ended => return Poll::Ready(None),
            Source::Ready(batches) => return Poll::Ready(batches.next().map(Ok)),
            Source::Running { batches, alarm, limits, rows, .. } => {
                // The clock itself too: a task that is never idle might not be told that its time is up.
                if Instant::now() >= alarm.deadline() || alarm.as_mut().poll(context).is_ready() {
                    let limit = limits.timeout;
                    return this.end_with(SqlError::Timeout { limit });
                }
                let next = std::task::ready!(batches.poll_next_unpin(context));
                if let Some(Ok(batch)) = &next {
                    *rows += batch.num_rows() as u64;
                    if *rows > limits.rows {
                        let error = limits.too_many_to_answer();
                        return this.end_with(error);
                    }
                }
                next
            }
        };
        match next {
            None => {
                this.source = Source::Ended;
                Poll::Ready(None)
            }
            Some(Ok(batch)) => match this.named(&batch) {
                Ok(batch) => Poll::Ready(Some(Ok(batch))),
                Err(error) => this.end_with(error),
            },
            Some(Err(error)) => this.end_with(of_datafusion(error)),
        }
    }
}
