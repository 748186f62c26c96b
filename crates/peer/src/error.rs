//! What can go wrong, one type per thing that is done: a handshake, a connection, a call.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cachesql_types::limits;

use crate::frame::FrameError;
use crate::identity::{NodeName, Versions};
use crate::wire::Rejection;

/// Why two nodes did not come to know each other. What is expected is this side's, what is found the other's.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(Arc<io::Error>),
    /// No connection came about in time.
    #[error("no connection in {} ms", limits::PEER_CONNECT_TIMEOUT.as_millis())]
    ConnectTimeout,
    /// The other side was too slow.
    #[error("the handshake took longer than {} ms", limits::PEER_HANDSHAKE_TIMEOUT.as_millis())]
    TimedOut,
    /// Something else than a node is there.
    #[error("the other side is not a CacheSQL node: it began with {found:02x?}")]
    NotANode {
        /// Its first bytes.
        found: [u8; 8],
    },
    /// A message is longer than it may be.
    #[error("a handshake message of {bytes} bytes, more than {most}", most = limits::PEER_HANDSHAKE_BYTES)]
    TooLong {
        /// Bytes that it says to have.
        bytes: usize,
    },
    /// A message of one who knows the secret that cannot be read.
    #[error("a handshake message that cannot be read: {0}")]
    Malformed(&'static str),
    /// The other side's proof is not one of this cluster's secret.
    #[error("the other side does not know the secret of cluster {cluster}")]
    WrongSecret {
        /// This node's cluster.
        cluster: NodeName,
    },
    /// The other side refused this node without a word: to it, this node is a stranger.
    #[error("refused as a stranger: the node there does not have the secret that this node has for cluster {cluster}")]
    Stranger {
        /// This node's cluster.
        cluster: NodeName,
    },
    /// The other side knows the secret, but belongs to another cluster.
    #[error("this node belongs to cluster {expected}, the other to {found}")]
    OtherCluster {
        /// This side's cluster.
        expected: NodeName,
        /// The other's.
        found: NodeName,
    },
    /// Another node is at that address than was asked for.
    #[error("node {expected} was asked for, and node {found} is there")]
    OtherNode {
        /// The node that was asked for; at the door, the door's own.
        expected: NodeName,
        /// The node that is there; at the door, the node that was asked for.
        found: NodeName,
    },
    /// The dialer is not in the door's directory.
    #[error("node {name} is not a member that node {by} knows of")]
    UnknownNode {
        /// The dialer.
        name: NodeName,
        /// The door's node.
        by: NodeName,
    },
    /// The dialer has the name of the node that it connects to.
    #[error("both nodes are named {name}")]
    OwnName {
        /// The name.
        name: NodeName,
    },
    /// There is no version that both speak.
    #[error("this node speaks versions {expected}, the other {found}")]
    Versions {
        /// This side's.
        expected: Versions,
        /// The other's.
        found: Versions,
    },
    /// The door has no such lane.
    #[error("there is no lane {0} at the door")]
    UnknownLane(u8),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> HandshakeError {
        HandshakeError::Io(Arc::new(error))
    }
}

/// Why a connection that was in use ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Ended {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(Arc<io::Error>),
    /// The other side closed it.
    #[error("the other side closed the connection")]
    Closed,
    /// The other side sent what it must not.
    #[error("the other side broke the protocol: {0}")]
    Protocol(#[from] FrameError),
    /// Nothing was heard for too long.
    #[error("nothing was heard for {} ms", limits::PEER_SILENCE.as_millis())]
    Silent,
    /// The other side takes nothing any more.
    #[error("the other side took nothing for {} s", limits::PEER_STALL.as_secs())]
    Stalled,
    /// The other side said that it would stop.
    #[error("the other side stopped")]
    Goodbye,
    /// The directory has the node no more, or elsewhere.
    #[error("the node was taken out of the directory, or has moved")]
    Moved,
    /// The same node connected anew.
    #[error("the other side connected anew")]
    Replaced,
    /// This side stopped.
    #[error("this side stopped")]
    Stopped,
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Io(Arc::new(error))
    }
}

/// Why a call was surely not executed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotSent {
    /// The directory has no such node.
    #[error("no such node is known")]
    UnknownNode,
    /// A node does not call itself.
    #[error("it is this node")]
    OwnName,
    /// The message is longer than its lane carries.
    #[error("{bytes} bytes are more than the {most} of a message in that lane")]
    TooLong {
        /// Bytes of the payload.
        bytes: usize,
        /// Bytes that it may have.
        most: usize,
    },
    /// There is no connection, and it is not yet time to try again.
    #[error("there is no connection: {0}")]
    Unreachable(HandshakeError),
    /// The connection ended before the call was sent whole.
    #[error("the connection ended: {0}")]
    Ended(Ended),
    /// The deadline passed before the call was sent whole.
    #[error("the deadline passed before it was sent")]
    Deadline,
    /// The other side did not let it reach a service.
    #[error("the other side rejected it: {0:?}")]
    Rejected(Rejection),
}

/// Why there is no answer to a call that was sent.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unknown {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Ended(Ended),
    /// The deadline passed.
    #[error("the deadline passed")]
    Deadline,
    /// There was an answer, and no room for it here.
    #[error("the answer has {bytes} bytes, for which there is no room now")]
    NoRoom {
        /// Bytes of the answer.
        bytes: usize,
    },
}

/// Why a call has no answer, and what may have happened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// It was surely not executed: it may be tried elsewhere, or again.
    #[error("node {to} was not asked: {why}")]
    NotSent {
        /// The node that was called.
        to: NodeName,
        /// Why.
        why: NotSent,
    },
    /// It was sent, and there is no answer: it may have been executed, or be under way.
    #[error("node {to} was asked, and its answer is not known: {why}")]
    Unknown {
        /// The node that was called.
        to: NodeName,
        /// Why.
        why: Unknown,
    },
    /// The service refused it, or executed it and says that it failed.
    #[error("node {to} refused ({code}): {message}")]
    Refused {
        /// The node that was called.
        to: NodeName,
        /// The service's own code; those from [`crate::FIRST_RESERVED_CODE`] on are the door's.
        code: u16,
        /// What a person reads.
        message: String,
    },
}

impl CallError {
    /// Whether it was surely not executed.
    pub fn is_not_sent(&self) -> bool {
        matches!(self, CallError::NotSent { .. })
    }
}

/// Why a door cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("peers: cannot listen on {address}: {source}")]
pub struct DoorError {
    /// The address as it was given.
    pub address: String,
    /// Why.
    pub source: io::Error,
}

/// Time in milliseconds as it crosses the wire, rounded up so that a deadline never becomes none.
pub(crate) fn whole_milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u32::MAX)
}
