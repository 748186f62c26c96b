//! Consensus over a group's log, as openraft does it. Nothing outside this folder names it.
//!
//! The walk of an entry: [`store::LogStore`] makes it readable at once and hands it to the scribe, who writes what has come
//! together since the last time with one sync, and says so to each that waits.

pub mod applier;
mod codec;
mod group;
mod link;
mod rpc;
mod scribe;
pub mod store;
#[cfg(test)]
mod testing;

use std::fmt;

use bytes::Bytes;

pub use codec::CodecError;
pub use group::{AnswerError, Group, GroupConfig, ProposeError, Standing, StartError, Status, Submitted};
pub use scribe::Drive;

/// What members agree on: bytes whose meaning only the node knows.
#[derive(Clone, PartialEq, Eq)]
pub struct Proposal(pub Bytes);

impl fmt::Debug for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A member, as the group's log names it. Its number is given once: a member that lost its disk comes back under another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The node's name.
    pub name: String,
}

openraft::declare_raft_types!(
    /// The types that consensus works with.
    pub Types:
        D = Proposal,
        R = Bytes,
        NodeId = u64,
        Node = Member,
);

/// Who led when an entry was agreed on, by term and number.
pub type LeaderId = openraft::alias::LeaderIdOf<Types>;
/// An entry's place in the log: who led, and the index.
pub type LogId = openraft::alias::LogIdOf<Types>;
/// Whom a member voted for.
pub type Vote = openraft::alias::VoteOf<Types>;
/// An entry.
pub type Entry = openraft::alias::EntryOf<Types>;
/// The members as of an entry.
pub type Membership = openraft::alias::StoredMembershipOf<Types>;
/// What a snapshot is of.
pub type SnapshotMeta = openraft::alias::SnapshotMetaOf<Types>;
/// A snapshot and what it is of.
pub type Snapshot<D> = openraft::alias::SnapshotOf<Types, applier::StoredSnapshot<D>>;
