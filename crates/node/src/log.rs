//! The seam behind which writes are agreed on: entries go in, in order, and come out applied.

use std::sync::Arc;

use cachesql_types::LogIndex;
use futures::future::BoxFuture;

use crate::entry::Entry;
use crate::error::NodeError;
use crate::state::State;

/// Where writes are agreed on, and from where they are applied to this member's [`State`].
pub trait Log: Send + Sync {
    /// Makes sure that this member may propose writes, and that everything that was agreed on before is applied here.
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>>;

    /// Makes sure that everything that was acknowledged anywhere before this began is applied here.
    fn confirm(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        self.lead()
    }

    /// Hands a write over. Only the writer calls this, one entry at a time: entries take their places in the order of the
    /// calls. What it answers ends once the write can no longer be lost, and was applied here, or will never be.
    fn submit(&self, entry: Entry) -> BoxFuture<'_, Result<Submitted, NodeError>>;

    /// Takes part no more.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A write on its way.
pub type Submitted = BoxFuture<'static, Result<Settled, NodeError>>;

/// What became of a write that was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its position.
    pub index: LogIndex,
    /// False when it came after another write than the one that it was planned after, and did nothing.
    pub applied: bool,
}

/// The log of a node that is alone and keeps nothing over a restart: what comes is applied.
pub struct LocalLog(Arc<State>);

impl LocalLog {
    /// A log that applies to this state.
    pub fn new(state: Arc<State>) -> LocalLog {
        LocalLog(state)
    }
}

impl Log for LocalLog {
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn submit(&self, entry: Entry) -> BoxFuture<'_, Result<Submitted, NodeError>> {
        let index = self.0.index().next();
        let settled = self.0.apply_entry(index, entry).map(|applied| Settled { index, applied });
        let settled = settled.map_err(|fence| NodeError::Fenced(fence.0));
        let submitted: Submitted = Box::pin(std::future::ready(settled));
        Box::pin(std::future::ready(Ok(submitted)))
    }
}
