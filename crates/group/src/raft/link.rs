//! From one member to another: what consensus asks, over whatever carries it.

use std::future::Future;
use std::io::Read;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cachesql_types::limits;
use futures::future::{Either, select};
use openraft::EntryPayload;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::v2::RaftNetworkV2;
use openraft::network::{RPCOption, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};

use super::applier::StoredSnapshot;
use super::rpc::{Ask, Reply, SnapshotPiece};
use super::{Member, Proposal, Snapshot, Types, Vote};
use crate::disk::Disk;
use crate::snapshot::SnapshotReader;
use crate::transport::{Transport, TransportError, Urgency};

/// Makes links to members.
pub(crate) struct Links<D, T> {
    transport: Arc<T>,
    disk: PhantomData<fn() -> D>,
}

impl<D, T> Links<D, T> {
    pub(crate) fn over(transport: Arc<T>) -> Links<D, T> {
        Links { transport, disk: PhantomData }
    }

    fn link(&self, number: u64, member: &Member, urgency: Urgency) -> Link<D, T> {
        Link { transport: self.transport.clone(), number, member: member.name.clone(), urgency, disk: PhantomData }
    }
}

impl<D: Disk + Clone, T: Transport> RaftNetworkFactory<Types> for Links<D, T> {
    type Network = Link<D, T>;

    async fn new_client(&mut self, number: u64, member: &Member) -> Link<D, T> {
        self.link(number, member, Urgency::Normal)
    }

    async fn new_heartbeat_client(&mut self, number: u64, member: &Member) -> Link<D, T> {
        self.link(number, member, Urgency::Urgent)
    }

    async fn new_snapshot_client(&mut self, number: u64, member: &Member) -> Link<D, T> {
        self.link(number, member, Urgency::Bulk)
    }
}

/// How long entries may take to a member, onto its disk, and back: a sign of life as long as consensus says; entries as long as
/// they are on a slow network.
fn append_deadline(request: &AppendEntriesRequest<Types>, life: Duration) -> Duration {
    if request.entries.is_empty() {
        return life;
    }
    let bytes = request.entries.iter().map(|entry| match &entry.payload {
        EntryPayload::Normal(Proposal(bytes)) => bytes.len(),
        _ => 0,
    });
    limits::with_time_for(bytes.sum(), limits::APPEND_WAIT).max(life)
}

/// A way to one member.
pub(crate) struct Link<D, T> {
    transport: Arc<T>,
    /// The member's number: whoever is found under its name must have it.
    number: u64,
    member: String,
    urgency: Urgency,
    disk: PhantomData<fn() -> D>,
}

type Failed = RPCError<Types>;

fn unexpected(reply: &Reply) -> Failed {
    RPCError::Network(NetworkError::from_string(format!("an answer that does not fit what was asked: {reply:?}")))
}

impl<D: Disk + Clone, T: Transport> Link<D, T> {
    async fn ask(&self, urgency: Urgency, ask: &Ask, deadline: Duration) -> Result<Reply, Failed> {
        let answer = self.transport.ask(&self.member, urgency, ask.encode(self.number), deadline).await;
        let bytes = answer.map_err(|error| match error {
            TransportError::Unreachable(why) => RPCError::Unreachable(Unreachable::from_string(why)),
            TransportError::NoAnswer(why) => RPCError::Network(NetworkError::from_string(why)),
        })?;
        Reply::decode(&bytes).map_err(|error| RPCError::Network(NetworkError::new(&error)))
    }

    async fn ask_vote(&self, ask: Ask, option: &RPCOption) -> Result<VoteResponse<Types>, Failed> {
        match self.ask(Urgency::Urgent, &ask, option.hard_ttl()).await? {
            Reply::Vote(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends a snapshot piece by piece; the vote of who took it.
    async fn send(&self, vote: Vote, snapshot: &StoredSnapshot<D>) -> Result<Vote, StreamingError<Types>> {
        let failed = |error: &dyn std::fmt::Display| StreamingError::Network(NetworkError::from_string(error));
        let index = snapshot.index;
        let mut reader = SnapshotReader::open(&snapshot.disk, index).map_err(|error| failed(&error))?;
        let (mut note, mut offset) = (Bytes::copy_from_slice(reader.note()), 0_u64);
        loop {
            let mut bytes = Vec::new();
            let most = limits::SNAPSHOT_BLOCK_BYTES as u64;
            reader.by_ref().take(most).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
            let last = (bytes.len() as u64) < most;
            let sent = offset + bytes.len() as u64;
            let (note, bytes) = (std::mem::take(&mut note), Bytes::from(bytes));
            let piece = Ask::Snapshot(SnapshotPiece { vote, index, offset, last, note, bytes });
            match self.ask(Urgency::Bulk, &piece, limits::SNAPSHOT_PIECE_WAIT).await? {
                Reply::SnapshotTaken(vote) => return Ok(vote),
                Reply::SnapshotGoesOn(there) if there == sent && !last => offset = sent,
                Reply::SnapshotGoesOn(there) => return Err(failed(&format!("{there} of {sent} bytes arrived"))),
                other => return Err(failed(&format!("an answer that does not fit: {other:?}"))),
            }
        }
    }
}

impl<D: Disk + Clone, T: Transport> RaftNetworkV2<Types> for Link<D, T> {
    type SnapshotData = StoredSnapshot<D>;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, Failed> {
        let deadline = append_deadline(&request, option.hard_ttl());
        match self.ask(self.urgency, &Ask::Append(request), deadline).await? {
            Reply::Append(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    }

    async fn vote(&mut self, request: VoteRequest<Types>, option: RPCOption) -> Result<VoteResponse<Types>, Failed> {
        self.ask_vote(Ask::Vote(request), &option).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, Failed> {
        self.ask_vote(Ask::PreVote(request), &option).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<D>,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let sending = std::pin::pin!(self.send(vote, &snapshot.snapshot));
        match select(sending, std::pin::pin!(cancel)).await {
            Either::Left((sent, _)) => Ok(SnapshotResponse::new(sent?)),
            Either::Right((closed, _)) => Err(StreamingError::Closed(closed)),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, Failed> {
        match self.ask(Urgency::Urgent, &Ask::Lead(request), option.hard_ttl()).await? {
            Reply::Lead(Ok(())) => Ok(Ok(())),
            Reply::Lead(Err(why)) => Err(RPCError::Network(NetworkError::from_string(why))),
            other => Err(unexpected(&other)),
        }
    }
}
