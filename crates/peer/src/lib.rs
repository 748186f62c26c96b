//! Node to node: calls between the members of a cluster, over connections that are framed, multiplexed, versioned, and
//! authenticated by the cluster's secret. What is called (votes, log entries, forwarded writes, keyed gets, gossip) is not
//! known here: it is bytes for a numbered service.
//!
//! # The walk of a call
//!
//! On the calling node:
//!
//! 1. [`Peers::call`] names a node, a [`Lane`], a service and a deadline. Nodes are known by name; where one is, the
//!    [`Directory`] says, and it may say something else later.
//! 2. A `link::Link` is the way to that node in that lane. The first call opens it: its task connects, over whatever
//!    [`Network`] there is, through [`Wrap`] (TLS, one day), and keeps connecting, with back-off. While the last try is a
//!    failed one, calls fail at once.
//! 3. The handshake, `handshake::dial` and `handshake::answer`: both sides prove the secret, and agree on a version. Nothing
//!    that a stranger sends is looked at beyond its length.
//! 4. `connection::Connection::call` waits for a slot (calls under way are bounded) and for room (bytes that wait are
//!    bounded), gives the call an id, notes who waits, and queues it in the connection's `outbox::Outbox`.
//! 5. `pipe::run` is the connection's one task. Its writing half takes frames from the outbox: short ones without a message
//!    first, then a frame of each message in turn, so that a long message never holds up those behind it.
//!
//! On the called node:
//!
//! 6. [`PeerDoor::serve`] accepted the connection, and had it answer the handshake, within bounds of time, bytes and strangers.
//!    The same `pipe::run` reads frames, `frame::decode`: length and check sum hold, or the connection ends.
//! 7. `serving::Serving` puts requests together, within what the connection and its lane may hold; for what is too much it
//!    sends a rejection, which says that nothing was executed.
//! 8. Each call is served by a task of its own, [`Service::serve`], so that answers leave as they are there, in any order. A
//!    panic is that call's refusal. While answers wait to be written, no further requests are read.
//! 9. The answer goes through the door's outbox, in frames, as the request came.
//!
//! And back on the calling node:
//!
//! 10. `connection::Answers` finds by id who waits, and puts the answer together for it. The call ends as `Ok`, or as a
//!     [`CallError`] that says what may have happened: not sent (surely not executed: it may be tried elsewhere), unknown
//!     (sent, and no answer), or refused (by the service, with its code).
//!
//! A caller that leaves before that has its call cancelled: what is not sent is taken back, else a frame tells the door,
//! which drops the service's future. The id stays known until the door has said its last word on it, so that an answer
//! that crosses the cancellation is no answer to nothing.
//!
//! # What holds
//!
//! - Each lane of each node is a connection of its own, with its own queues and budgets: a heartbeat never waits behind a
//!   snapshot, neither for the wire nor for memory.
//! - Both sides ping every half second, whatever else they send. A bulk transfer fills one direction, and the pings of
//!   the other side still come through the other; so a slow link is not taken for a dead one, and a dead one is noticed
//!   in under five seconds.
//! - What one connection does wrong ends that connection, with an error that says what it was, and no other.
//! - Time is tokio's, which tests can pause; randomness, the network and the directory are passed in.

mod backoff;
mod connection;
mod directory;
mod door;
mod error;
mod frame;
mod handshake;
mod identity;
mod link;
mod message;
mod network;
mod outbox;
mod peers;
mod pipe;
mod service;
mod serving;
mod tcp;
mod wire;

pub use directory::Directory;
pub use door::{DoorStatus, EndedGuest, PeerDoor, RefusedGuest};
pub use error::{CallError, DoorError, Ended, HandshakeError, NotSent, Unknown};
pub use frame::FrameError;
pub use identity::{Endpoint, Identity, IdentityError, NodeName, Randomness, Secret, Versions};
pub use link::{LaneState, LaneStatus};
pub use network::{BoxedStream, ByteStream, Network, Side, Wrap, plain};
pub use peers::{PeerStatus, Peers};
pub use service::{Call, Refusal, Service, Services};
pub use tcp::TcpNetwork;
pub use wire::{CODE_ANSWER_TOO_LONG, CODE_PANICKED, FIRST_RESERVED_CODE, Lane, Rejection};
