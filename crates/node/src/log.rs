//! The seam behind which writes are agreed on: entries go in, in order, and come out applied.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cachesql_types::LogIndex;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::config::ClusterConfig;
use crate::entry::{Entry, Packed};
use crate::error::NodeError;
use crate::node::Node;
use crate::replica::MembersChange;
use crate::state::State;
use crate::status::GroupStatus;

/// Where writes are agreed on, and from where they are applied to this member's [`State`].
pub trait Log: Send + Sync {
    /// Makes sure that this member may propose writes, and that everything that was agreed on before is applied here.
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>>;

    /// Makes sure that everything that was acknowledged anywhere before this began is applied here.
    fn confirm(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        self.lead()
    }

    /// Makes a write what this log takes, or refuses it because it cannot be taken.
    fn pack(&self, entry: Entry) -> Result<Packed, NodeError> {
        Ok(Packed { entry, bytes: Bytes::new() })
    }

    /// Hands writes over that were planned one after the other; all of them take one place, and are agreed on together or not at
    /// all. Only the writer calls this, and waits for it: they take their places in the order of the calls. What it answers ends once the write can no longer be lost, and was applied here, or will never be.
    fn submit(&self, writes: Vec<Packed>) -> BoxFuture<'_, Result<Submitted, NodeError>>;

    /// Who may propose writes now, as far as this member knows.
    fn leader(&self) -> Lead {
        Lead::Here
    }

    /// Waits until this member leads, or until it does not.
    fn wait_leads(&self, leads: bool) -> BoxFuture<'_, ()> {
        if leads { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
    }

    /// Has the member that leads carry out a command, and waits for its answer.
    fn ask_leader<'a>(
        &'a self,
        leader: &'a str,
        _command: &'a [u8],
        _wait: Duration,
    ) -> BoxFuture<'a, Result<Bytes, NodeError>> {
        let group = String::new();
        Box::pin(std::future::ready(Err(NodeError::NotLeader { group, leader: Some(leader.to_owned()) })))
    }

    /// Waits until everything up to a position is applied here.
    fn applied(&self, _index: LogIndex) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Since when this member's rows are known to have been the newest; `None` when that was never known.
    fn fresh_since(&self) -> Option<Instant> {
        Some(Instant::now())
    }

    /// Lets other members have their commands carried out by this node.
    fn serve(&self, _node: &Arc<Node>) {}

    /// Changes who the members are.
    fn change_members(&self, _change: MembersChange) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(std::future::ready(Err(NodeError::Members("this node is in no group of several members".into()))))
    }

    /// Has the nodes of the cluster, and the members of the group, be those of a configuration that was read again.
    fn reconfigure(&self, _cluster: ClusterConfig) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// How the group is doing; `None` where there are no members.
    fn status(&self) -> Option<GroupStatus> {
        None
    }

    /// Lets another member lead, where this one does, so that nobody has to notice that it is gone.
    fn hand_over(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Takes part no more.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Who leads a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lead {
    /// This member.
    Here,
    /// Another node, by its name.
    There(String),
    /// Nobody that is known.
    Nobody,
}

/// Writes on their way.
pub type Submitted = BoxFuture<'static, Result<Settled, NodeError>>;

/// What became of writes that were agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Their position.
    pub index: LogIndex,
    /// False when they came after another write than the one that they were planned after, and did nothing.
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

    fn submit(&self, writes: Vec<Packed>) -> BoxFuture<'_, Result<Submitted, NodeError>> {
        let index = self.0.index().next();
        let settled = self
            .0
            .apply_entries(index, writes.into_iter().map(|write| write.entry))
            .map(|applied| Settled { index, applied });
        let settled = settled.map_err(|fence| NodeError::Fenced(fence.0));
        let submitted: Submitted = Box::pin(std::future::ready(settled));
        Box::pin(std::future::ready(Ok(submitted)))
    }
}
