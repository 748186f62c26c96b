//! The way from one member of a group to the others: calls of numbered services, each for a group by name.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use cachesql_group::transport::{Transport, TransportError, Urgency};
use cachesql_peer::{CallError, Lane, NodeName, NotSent, Peers};
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::bytes_of::ReadError;
use crate::entry::{read_array, take};

// The services that members call. These numbers never change.

/// What consensus asks.
pub(super) const CONSENSUS: u16 = 1;
/// A [`crate::command::Command`].
pub(super) const COMMAND: u16 = 2;
/// How far the leader is, once a majority has said that it leads: a log index.
pub(super) const READ_INDEX: u16 = 3;
/// What a member knows of the group: [`super::presence::Presence`].
pub(super) const PRESENCE: u16 = 4;
/// A [`super::members::MembersChange`].
pub(super) const MEMBERS: u16 = 5;

/// How to reach the other members of one group.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) peers: Peers,
    pub(super) group: Arc<str>,
    /// This node.
    pub(super) own: NodeName,
}

impl Way {
    /// Calls a service of a member.
    pub(super) async fn call(
        &self,
        member: &str,
        lane: Lane,
        service: u16,
        payload: &[u8],
        wait: Duration,
    ) -> Result<Bytes, CallError> {
        let to = match NodeName::new(member) {
            Ok(name) => name,
            // No node has such a name; the group's log is where it can only be from.
            Err(_) => return Err(CallError::NotSent { to: self.own.clone(), why: NotSent::UnknownNode }),
        };
        let mut bytes = BytesMut::with_capacity(self.group.len() + 1 + payload.len());
        // So is the group's.
        bytes.put_u8(u8::try_from(self.group.len()).unwrap_or(u8::MAX));
        bytes.put_slice(self.group.as_bytes());
        bytes.put_slice(payload);
        let deadline = Instant::now().checked_add(wait).unwrap_or_else(Instant::now);
        self.peers.call(&to, lane, service, bytes.freeze(), deadline).await
    }
}

/// The group that a call is for, and what is asked.
pub(super) fn addressed(payload: &Bytes) -> Result<(&str, Bytes), ReadError> {
    let mut rest = &**payload;
    let [length] = read_array(&mut rest)?;
    let group = std::str::from_utf8(take(&mut rest, usize::from(length))?).map_err(|_| ReadError::Text)?;
    Ok((group, payload.slice_ref(rest)))
}

impl Transport for Way {
    fn ask<'a>(
        &'a self,
        member: &'a str,
        urgency: Urgency,
        bytes: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Bytes, TransportError>> {
        let lane = match urgency {
            Urgency::Urgent => Lane::Urgent,
            Urgency::Normal => Lane::Normal,
            Urgency::Bulk => Lane::Bulk,
        };
        Box::pin(async move {
            let answer = self.call(member, lane, CONSENSUS, &bytes, deadline).await;
            answer.map_err(|error| match error {
                CallError::Unknown { .. } => TransportError::NoAnswer(error.to_string()),
                CallError::NotSent { .. } | CallError::Refused { .. } => TransportError::Unreachable(error.to_string()),
            })
        })
    }
}
