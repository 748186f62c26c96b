//! Batches of rows on their way from an origin's task to whoever loads them.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use cachesql_types::limits;
use futures::Stream;
use tokio::sync::mpsc;

use crate::error::OriginError;

/// The rows of a load: record batches in the layout of `cachesql_types::arrow_schema`, each of 1 to
/// `limits::LOAD_BATCH_ROWS` rows. After an error nothing follows. Dropping the stream cancels the statement at the origin.
pub struct BatchStream {
    table: String,
    schema: SchemaRef,
    messages: mpsc::Receiver<Message>,
    ended: bool,
}

enum Message {
    Batch(RecordBatch),
    Failed(OriginError),
    // Said in so many words, so that a task that died is not taken for the end of the rows.
    End,
}

/// The origin's end of the queue.
#[derive(Clone)]
pub(crate) struct BatchSender(mpsc::Sender<Message>);

/// The reader is gone; there is nobody to load for.
pub(crate) struct ReaderGone;

/// Makes a queue of `limits::LOAD_QUEUE_BATCHES` batches.
pub(crate) fn batch_queue(table: &str, schema: SchemaRef) -> (BatchSender, BatchStream) {
    let (sender, messages) = mpsc::channel(limits::LOAD_QUEUE_BATCHES);
    (BatchSender(sender), BatchStream { table: table.to_owned(), schema, messages, ended: false })
}

impl BatchStream {
    /// The layout of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; `None` when all rows have come.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, OriginError>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch, OriginError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Poll::Ready(message) = self.messages.poll_recv(context) else { return Poll::Pending };
        self.ended = !matches!(message, Some(Message::Batch(_)));
        Poll::Ready(match message {
            Some(Message::Batch(batch)) => Some(Ok(batch)),
            Some(Message::Failed(error)) => Some(Err(error)),
            Some(Message::End) => None,
            None => {
                let reason = "its task ended without a word".to_owned();
                Some(Err(OriginError::Broken { table: self.table.clone(), reason }))
            }
        })
    }
}

impl Stream for BatchStream {
    type Item = Result<RecordBatch, OriginError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }
}

impl BatchSender {
    /// Hands a batch on, waiting while the queue is full.
    pub(crate) async fn send(&self, batch: RecordBatch) -> Result<(), ReaderGone> {
        self.0.send(Message::Batch(batch)).await.map_err(|_| ReaderGone)
    }

    /// The same, from a thread that may block.
    pub(crate) fn blocking_send(&self, batch: RecordBatch) -> Result<(), ReaderGone> {
        self.0.blocking_send(Message::Batch(batch)).map_err(|_| ReaderGone)
    }

    /// Says how the load ended.
    pub(crate) async fn end(self, outcome: Result<(), OriginError>) {
        // When the reader is gone there is nobody to tell.
        let last = match outcome {
            Ok(()) => Message::End,
            Err(error) => Message::Failed(error),
        };
        let _ = self.0.send(last).await;
    }

    /// Waits until the reader is gone.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Runs `work` on a thread that may block, and closes the queue with its outcome. `stop` is dropped when the reader leaves or
/// the runtime ends, which should end the work; it also sees that the reader left at its next `blocking_send`.
pub(crate) fn run_blocking(
    table: String,
    sender: BatchSender,
    stop: impl Send + 'static,
    work: impl FnOnce(&BatchSender) -> Result<(), OriginError> + Send + 'static,
) {
    tokio::spawn(async move {
        let _stop = stop;
        let hand = sender.clone();
        let mut worker = tokio::task::spawn_blocking(move || work(&hand));
        let outcome = tokio::select! {
            outcome = &mut worker => outcome,
            () = sender.closed() => return,
        };
        sender.end(outcome.unwrap_or_else(|died| Err(OriginError::Broken { table, reason: died.to_string() }))).await;
    });
}

/// The reader of a load left: what is returned then, nobody sees.
pub(crate) fn abandoned(table: &str) -> OriginError {
    OriginError::Broken { table: table.to_owned(), reason: "nobody waits for it any more".to_owned() }
}
