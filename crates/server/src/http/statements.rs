//! Where statements run: on threads of their own. A statement can compute for long without giving its thread back, and the
//! threads that serve connections must not wait for it.

use std::future::Future;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use cachesql_node::{RowStream, SqlError};
use cachesql_types::limits;
use futures::StreamExt;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

use super::failure::Failure;

/// The threads that run statements.
pub(crate) struct Statements(Option<Runtime>);

impl Statements {
    /// Starts the threads. Where the system gives none, statements run where connections are served.
    pub(crate) fn start() -> Statements {
        let built = Builder::new_multi_thread().thread_name("cachesql-sql").enable_all().build();
        if let Err(error) = &built {
            tracing::error!(%error, "statements have no threads of their own");
        }
        Statements(built.ok())
    }

    fn handle(&self) -> Handle {
        self.0.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }

    /// Runs one statement; it ends when nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        statement: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut task = Task(self.handle().spawn(statement));
        (&mut task.0).await.map_err(|error| {
            tracing::error!(%error, "a statement ended in a panic");
            Failure::internal()
        })
    }

    /// Reads a statement's rows where statements run, as far ahead as the connection lets it.
    pub(crate) fn carry(&self, mut rows: RowStream) -> CarriedRows {
        let (sender, batches) = mpsc::channel(limits::HTTP_WAITING_BATCHES);
        let task = self.handle().spawn(async move {
            while let Some(batch) = rows.next().await {
                let failed = batch.is_err();
                if sender.send(batch.map(Some)).await.is_err() || failed {
                    return;
                }
            }
            // The reader may be gone; nobody is left to tell then.
            let _ = sender.send(Ok(None)).await;
        });
        CarriedRows { batches, ended: false, task: task.abort_handle() }
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        // Waiting for the threads is not allowed where this is dropped.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Rows of a statement that runs elsewhere.
pub(crate) struct CarriedRows {
    /// `None` is the end: a channel that closes without it has lost its statement.
    batches: mpsc::Receiver<Result<Option<RecordBatch>, SqlError>>,
    ended: bool,
    task: AbortHandle,
}

impl CarriedRows {
    /// The next batch; `None` at the end, however often it is asked for.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch, SqlError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let item = ready!(self.batches.poll_recv(cx));
        let item = item.unwrap_or_else(|| Err(SqlError::Internal("a statement ended before its rows did".into())));
        self.ended = !matches!(item, Ok(Some(_)));
        Poll::Ready(item.transpose())
    }
}

impl Drop for CarriedRows {
    fn drop(&mut self) {
        self.task.abort();
    }
}
