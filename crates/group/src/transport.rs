//! How the members of a group reach each other, as far as a group has to know.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

/// What waits for what on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Votes and heartbeats: nothing goes before them.
    Urgent,
    /// Entries.
    Normal,
    /// Snapshots: they may take long, and hold up nobody.
    Bulk,
}

/// Why a member could not be asked.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TransportError {
    /// It cannot be reached, and will hardly be so at once.
    #[error("{0}")]
    Unreachable(String),
    /// It was asked, and no answer came.
    #[error("{0}")]
    NoAnswer(String),
}

/// Carries bytes to members by their names, to where [`Group::answer`](crate::Group::answer) answers them.
pub trait Transport: Send + Sync + 'static {
    /// Asks a member, and waits for its answer at most so long.
    fn ask<'a>(
        &'a self,
        member: &'a str,
        urgency: Urgency,
        bytes: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Bytes, TransportError>>;
}
