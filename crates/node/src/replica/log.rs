//! A group's log as consensus keeps it, on disk.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cachesql_group::disk::Disk;
use cachesql_group::{Group, ProposeError};
use cachesql_types::{LogIndex, limits};
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::member::Member;
use super::members::MembersChange;
use crate::config::ClusterConfig;
use crate::entry::{Entry, Packed, join};
use crate::error::NodeError;
use crate::log::{Lead, Log, Settled, Submitted};
use crate::node::Node;
use crate::state::{State, was_applied};
use crate::status::GroupStatus;
use crate::tasks::{Tasks, stopped};

/// The log of a member whose disk is `D`.
pub(crate) struct ReplicatedLog<D: Disk + Clone> {
    group: Arc<Group<D, State>>,
    name: String,
    /// What it is to the other members, where there may be others.
    member: Option<Arc<Member<D>>>,
    /// What others are answered by, and what keeps this node a member.
    presence: Tasks,
    /// Bytes that one write may have.
    most_bytes: usize,
}

impl<D: Disk + Clone> ReplicatedLog<D> {
    /// The log of a group whose only member this is.
    pub(super) fn alone(group: Arc<Group<D, State>>, name: &str) -> ReplicatedLog<D> {
        let most_bytes = limits::LOG_RECORD_BYTES - limits::LOG_RECORD_HEAD_BYTES;
        ReplicatedLog { group, name: name.to_owned(), member: None, presence: Tasks::new(), most_bytes }
    }

    /// The log of one of several members.
    pub(super) fn of_member(member: Arc<Member<D>>, presence: Tasks) -> ReplicatedLog<D> {
        let (group, name) = (member.group.clone(), member.way.group.to_string());
        // A write goes to the others in one message.
        let most_bytes = limits::PEER_MESSAGE_BYTES - limits::LOG_RECORD_HEAD_BYTES;
        ReplicatedLog { group, name, member: Some(member), presence, most_bytes }
    }

    fn refused(&self, error: ProposeError) -> NodeError {
        of_group(&self.name, error)
    }

    /// Has the state written out when the log has grown long beside it, so that the log can be forgotten, until told to stop.
    pub(crate) fn compact(&self, mut stop: watch::Receiver<bool>) -> impl Future<Output = ()> + Send + 'static {
        let group = self.group.clone();
        async move {
            loop {
                tokio::select! {
                    () = stopped(&mut stop) => return,
                    () = group.machine().grown() => {}
                }
                if let Err(error) = group.make_snapshot().await {
                    tracing::warn!(%error, "no snapshot can be made");
                    return;
                }
            }
        }
    }
}

/// The index that everything acknowledged is below, once a majority has said that this member leads, and all of it is applied here.
pub(super) async fn confirmed<D: Disk + Clone>(group: &Group<D, State>, name: &str) -> Result<u64, NodeError> {
    match tokio::time::timeout(limits::LEADER_WAIT, group.confirm()).await {
        Ok(Ok(index)) => Ok(index),
        // Nothing was proposed: only that this member leads could not be made sure.
        Ok(Err(ProposeError::Unknown)) | Err(_) => Err(NodeError::NotLeader { group: name.to_owned(), leader: None }),
        Ok(Err(error)) => Err(of_group(name, error)),
    }
}

pub(super) fn of_group(name: &str, error: ProposeError) -> NodeError {
    match error {
        ProposeError::NotLeader { leader } => NodeError::NotLeader { group: name.to_owned(), leader },
        ProposeError::Unknown => NodeError::Unknown,
        ProposeError::Stopped(reason) => NodeError::Fenced(reason),
        ProposeError::Members(reason) => NodeError::Members(reason),
    }
}

impl<D: Disk + Clone> Log for ReplicatedLog<D> {
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(async { confirmed(&self.group, &self.name).await.map(drop) })
    }

    fn confirm(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        match &self.member {
            Some(member) => Box::pin(member.confirm()),
            None => self.lead(),
        }
    }

    fn pack(&self, entry: Entry) -> Result<Packed, NodeError> {
        let bytes = Bytes::from(entry.encode());
        // A log that is given more than it can keep stops, and the member with it.
        if bytes.len() > self.most_bytes {
            return Err(NodeError::WriteTooLarge { bytes: bytes.len(), most: self.most_bytes });
        }
        Ok(Packed { entry, bytes })
    }

    fn submit(&self, writes: Vec<Packed>) -> BoxFuture<'_, Result<Submitted, NodeError>> {
        Box::pin(async move {
            let submitted = self.group.submit(join(&writes)).await.map_err(|error| self.refused(error))?;
            let name = self.name.clone();
            let settled: Submitted = Box::pin(async move {
                let (index, outcome) = submitted.settled().await.map_err(|error| of_group(&name, error))?;
                Ok(Settled { index: LogIndex(index), applied: was_applied(&outcome) })
            });
            Ok(settled)
        })
    }

    fn leader(&self) -> Lead {
        if self.member.is_none() {
            return Lead::Here;
        }
        match self.group.leader() {
            (true, _) => Lead::Here,
            (false, Some(node)) => Lead::There(node),
            (false, None) => Lead::Nobody,
        }
    }

    fn wait_leads(&self, leads: bool) -> BoxFuture<'_, ()> {
        match &self.member {
            Some(_) => Box::pin(self.group.wait_leads(leads)),
            None if leads => Box::pin(std::future::ready(())),
            None => Box::pin(std::future::pending()),
        }
    }

    fn ask_leader<'a>(
        &'a self,
        leader: &'a str,
        command: &'a [u8],
        wait: Duration,
    ) -> BoxFuture<'a, Result<Bytes, NodeError>> {
        match &self.member {
            Some(member) => Box::pin(member.ask_leader(leader, command, wait)),
            None => Box::pin(std::future::ready(Err(NodeError::NotLeader { group: self.name.clone(), leader: None }))),
        }
    }

    fn applied(&self, index: LogIndex) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(async move { self.group.applied(index.0).await.map_err(|error| self.refused(error)) })
    }

    fn fresh_since(&self) -> Option<Instant> {
        match &self.member {
            Some(member) => member.fresh_since(),
            None => Some(Instant::now()),
        }
    }

    fn serve(&self, node: &Arc<Node>) {
        if let Some(member) = &self.member {
            // It is set once, by the node's start.
            let _ = member.carrier.set(Arc::downgrade(node));
        }
    }

    fn change_members(&self, change: MembersChange) -> BoxFuture<'_, Result<(), NodeError>> {
        let Some(member) = &self.member else {
            return Box::pin(std::future::ready(Err(NodeError::Members("this group has one member".into()))));
        };
        Box::pin(async move {
            match self.leader() {
                Lead::Here => member.change_members(change).await.map_err(|error| self.refused(error)),
                Lead::There(leader) => member.ask_for(&leader, &change).await.map_err(NodeError::Members),
                Lead::Nobody => Err(member.not_leader(None)),
            }
        })
    }

    fn reconfigure(&self, cluster: ClusterConfig) -> BoxFuture<'_, Result<(), NodeError>> {
        let Some(member) = &self.member else { return Box::pin(std::future::ready(Ok(()))) };
        Box::pin(async { member.reconfigure(cluster).await.map_err(|error| self.refused(error)) })
    }

    fn status(&self) -> Option<GroupStatus> {
        let failover = self.member.as_ref()?.cluster.load().failover;
        Some(GroupStatus::of(&self.group.status(), failover))
    }

    fn hand_over(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let status = self.group.status();
            let next = status.members.iter().filter(|m| m.votes && m.number != self.group.number());
            let Some(next) = next.max_by_key(|member| member.matched).filter(|_| status.leads) else { return };
            if self.group.hand_over(next.number).await.is_ok() {
                // If it does not take over, this one is missed soon.
                let _ = tokio::time::timeout(limits::ELECTION.1, self.group.wait_leads(false)).await;
            }
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.group.stop().await;
            self.presence.stop();
            self.presence.ended().await;
        })
    }
}
