//! One member of a group: proposes, reads what is certain, answers the other members, changes who they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardToLeader, LinearizableReadError, RaftError};
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use openraft::type_config::alias::OneshotReceiverOf;
use openraft::{ChangeMembers, Config, Instant as _, Raft, ReadPolicy, SnapshotPolicy};
use tokio::sync::Mutex;

use super::applier::{Applier, StoredSnapshot};
use super::codec::{CodecError, decode_meta};
use super::link::Links;
use super::rpc::{Ask, Reply, SnapshotPiece};
use super::scribe::Drive;
use super::store::{LogStore, OpenError};
use super::{Member, Proposal, Snapshot, SnapshotMeta, Types, Vote};
use crate::disk::Disk;
use crate::log::Cut;
use crate::machine::Machine;
use crate::snapshot::SnapshotWriter;
use crate::transport::Transport;

/// How a member takes part.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// The group's name.
    pub name: String,
    /// This member's number: given once, and never again after its disk was lost.
    pub number: u64,
    /// How often the leader says that it is there.
    pub heartbeat: Duration,
    /// How long a follower that hears nothing waits, at least and at most, before it would lead.
    pub election: (Duration, Duration),
    /// Entries after which a snapshot is made.
    pub snapshot_after: u64,
    /// Entries that are kept beside a snapshot, for members that are not far behind.
    pub kept_entries: u64,
    /// Who waits for the disk.
    pub drive: Drive,
}

/// Why a member cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its log.
    #[error(transparent)]
    Log(#[from] OpenError),
    /// Its snapshot.
    #[error("{0}")]
    Snapshot(#[from] io::Error),
    /// How it is to take part.
    #[error("{0}")]
    Config(String),
    /// Consensus itself.
    #[error("{0}")]
    Consensus(String),
}

/// Why a proposal was not answered for.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProposeError {
    /// Somebody else leads, or nobody that is known; the proposal was not taken.
    #[error("this member does not lead")]
    NotLeader {
        /// Who does.
        leader: Option<String>,
    },
    /// It was taken, and somebody else leads since: whether it was agreed on is not known.
    #[error("the leader changed; whether the write was applied is not known")]
    Unknown,
    /// This member takes part no more.
    #[error("this member has stopped: {0}")]
    Stopped(String),
    /// The members cannot be changed like that.
    #[error("{0}")]
    Members(String),
}

/// Why another member is not answered.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Another member was asked: one that was here before its disk was lost, and is not here any more. What it promised is not
    /// this one's to keep or to break.
    #[error("member {asked} was asked, and member {found} is here")]
    OtherMember {
        /// The number that was asked for.
        asked: u64,
        /// This member's.
        found: u64,
    },
    /// It asked what is no question.
    #[error("a question that cannot be read: {0}")]
    Question(#[from] CodecError),
    /// This member takes part no more.
    #[error("this member has stopped: {0}")]
    Stopped(String),
    /// The disk failed.
    #[error("{0}")]
    Disk(#[from] io::Error),
}

/// How a member is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The term, as far as it knows.
    pub term: u64,
    /// The leader's name.
    pub leader: Option<String>,
    /// Whether it leads.
    pub leads: bool,
    /// The index of its last entry.
    pub last: Option<u64>,
    /// The index of the last entry that it applied.
    pub applied: Option<u64>,
    /// The index of its snapshot.
    pub snapshot: Option<u64>,
    /// All members, by number.
    pub members: Vec<Standing>,
    /// Those who vote.
    pub voters: BTreeSet<String>,
    /// Those who do not.
    pub learners: BTreeSet<String>,
    /// Why it has stopped, if it has.
    pub stopped: Option<String>,
}

/// A member, as the group's log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its number.
    pub number: u64,
    /// The name of its node.
    pub name: String,
    /// Whether it votes. While members change, those before and those after it do.
    pub votes: bool,
    /// Whether it votes before the change of members that is under way and after it. One that is only about to vote is not missed
    /// yet where it is, and others are missed still.
    pub votes_for_good: bool,
    /// The index up to which it is known to have the log; only on the leader.
    pub matched: Option<u64>,
}

/// One member of a group.
pub struct Group<D: Disk + Clone, M: Machine> {
    raft: Raft<Types, Applier<D, M>>,
    machine: Arc<M>,
    disk: D,
    number: u64,
    incoming: Mutex<Option<Incoming<D>>>,
    writers: Arc<AtomicU64>,
}

/// An entry that was proposed.
pub struct Submitted {
    settled: OneshotReceiverOf<Types, ClientWriteResult<Types>>,
}

impl Submitted {
    /// Waits until a majority will not lose it, and it is applied here: its index, and what the machine made of it.
    pub async fn settled(self) -> Result<(u64, Bytes), ProposeError> {
        match self.settled.await {
            Ok(Ok(written)) => Ok((written.log_id.index, written.data)),
            Ok(Err(ClientWriteError::ForwardToLeader(forward))) => Err(not_leader(forward)),
            Ok(Err(ClientWriteError::LogEntryDiscarded(_))) => Err(ProposeError::Unknown),
            Ok(Err(other)) => Err(ProposeError::Members(other.to_string())),
            // It was dropped with everything else when this member stopped.
            Err(_) => Err(ProposeError::Unknown),
        }
    }
}

/// A snapshot on its way in.
struct Incoming<D: Disk + Clone> {
    vote: Vote,
    meta: SnapshotMeta,
    index: u64,
    /// Bytes of the content that are there.
    offset: u64,
    writer: SnapshotWriter<D>,
}

impl<D: Disk + Clone, M: Machine> Group<D, M> {
    /// Starts the member whose log and snapshots are in a folder. It does nothing until it is founded or asked.
    pub async fn start(
        config: GroupConfig,
        disk: D,
        machine: Arc<M>,
        transport: Arc<impl Transport>,
    ) -> Result<Group<D, M>, StartError> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let consensus = Config {
            cluster_name: config.name,
            heartbeat_interval: millis(config.heartbeat),
            election_timeout_min: millis(config.election.0),
            election_timeout_max: millis(config.election.1),
            snapshot_policy: SnapshotPolicy::LogsSinceLast(config.snapshot_after),
            max_in_snapshot_log_to_keep: config.kept_entries,
            enable_pre_vote: Some(true),
            // A leader that comes back is not taken for one: it does not know any more how much was agreed on, and what it answers as of
            // now would lack all of that since its last snapshot. Elected anew, it knows once its own first entry is agreed on.
            enable_leader_restore: Some(false),
            // A leader whom no majority answers falls silent, so that those who hear it still can look for another.
            quorum_loss_probe_interval: Some(millis(config.election.1).saturating_mul(2)),
            ..Config::default()
        };
        let consensus = consensus.validate().map_err(|error| StartError::Config(error.to_string()))?;
        let (log, cut) = LogStore::open(disk.clone(), config.drive)?;
        if let Some(Cut { file, position, bytes }) = cut {
            tracing::warn!(
                file,
                position,
                bytes,
                "the log ended within a record, as a crash leaves it; that end is cut off"
            );
        }
        let applier = Applier::open(disk.clone(), config.drive, machine.clone())?;
        let writers = applier.writers().clone();
        let links = Links::<D, _>::over(transport);
        let number = config.number;
        let raft = Raft::new(number, Arc::new(consensus), links, log, applier).await;
        let raft = raft.map_err(|error| StartError::Consensus(error.to_string()))?;
        Ok(Group { raft, machine, disk, number, incoming: Mutex::new(None), writers })
    }

    /// What the members agree on, as far as this one has applied it.
    pub fn machine(&self) -> &Arc<M> {
        &self.machine
    }

    /// Whether it has a log, of a group that it founded or was taken into.
    pub async fn is_founded(&self) -> Result<bool, ProposeError> {
        self.raft.is_initialized().await.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))
    }

    /// Founds the group, once, on one of its first voters. On a member that has a log already it is an error.
    pub async fn found(&self, voters: BTreeMap<u64, String>) -> Result<(), ProposeError> {
        let voters: BTreeMap<u64, Member> = voters.into_iter().map(|(n, name)| (n, Member { name })).collect();
        match self.raft.initialize(voters).await {
            Ok(()) => Ok(()),
            Err(RaftError::APIError(error)) => Err(ProposeError::Members(error.to_string())),
            Err(RaftError::Fatal(fatal)) => Err(ProposeError::Stopped(fatal.to_string())),
        }
    }

    /// Proposes an entry. When this returns a majority will not lose it, and it is applied here: its index, and what the machine
    /// made of it.
    pub async fn propose(&self, proposal: Bytes) -> Result<(u64, Bytes), ProposeError> {
        self.submit(proposal).await?.settled().await
    }

    /// The same in two steps: entries take their places in the order in which this returns, and what becomes of each is told later.
    pub async fn submit(&self, proposal: Bytes) -> Result<Submitted, ProposeError> {
        let (responder, settled) = ProgressResponder::complete_only();
        let taken = self.raft.client_write_ff(Proposal(proposal), Some(responder)).await;
        taken.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))?;
        Ok(Submitted { settled })
    }

    /// Makes sure that this member leads now, asking a majority once for all who wait; and that it has applied everything that was
    /// acknowledged before: the index of that.
    pub async fn confirm(&self) -> Result<u64, ProposeError> {
        let read = self.raft.ensure_linearizable(ReadPolicy::ReadIndex).await;
        match read {
            Ok(read) => Ok(read.log_id().index),
            Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward))) => Err(not_leader(forward)),
            Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => Err(ProposeError::Unknown),
            Err(RaftError::Fatal(fatal)) => Err(ProposeError::Stopped(fatal.to_string())),
        }
    }

    /// Waits until this member has applied the log up to an index.
    pub async fn applied(&self, index: u64) -> Result<(), ProposeError> {
        let mut progress = self.raft.watch_apply_progress();
        let stopped = || ProposeError::Stopped("it has stopped".into());
        while progress.get().is_none_or(|applied| applied.index < index) {
            progress.changed().await.map_err(|_| stopped())?;
        }
        Ok(())
    }

    /// Takes a member in that does not vote, and begins to bring it up to date.
    pub async fn add_learner(&self, number: u64, name: &str) -> Result<(), ProposeError> {
        let added = self.raft.add_learner(number, Member { name: name.to_owned() }, false).await;
        added.map(|_| ()).map_err(of_write)
    }

    /// Has a member vote that is in already, and takes out others: those whose place it takes.
    pub async fn promote(&self, number: u64, gone: BTreeSet<u64>) -> Result<(), ProposeError> {
        self.change(vec![ChangeMembers::AddVoterIds([number].into()), ChangeMembers::RemoveVoters(gone.clone())])
            .await?;
        self.remove(gone).await
    }

    /// Takes members out.
    pub async fn remove(&self, gone: BTreeSet<u64>) -> Result<(), ProposeError> {
        if gone.is_empty() {
            return Ok(());
        }
        // Who votes cannot go: first they vote no more.
        if self.status().members.iter().any(|member| member.votes && gone.contains(&member.number)) {
            self.change(vec![ChangeMembers::RemoveVoters(gone.clone())]).await?;
        }
        self.change(vec![ChangeMembers::RemoveNodes(gone)]).await
    }

    async fn change(&self, changes: Vec<ChangeMembers<u64, Member>>) -> Result<(), ProposeError> {
        self.raft.change_membership(ChangeMembers::Batch(changes), true).await.map(drop).map_err(of_write)
    }

    /// Makes these members, all of whom are in already, those who vote. Those who voted before stay as learners, or go.
    pub async fn set_voters(&self, voters: BTreeSet<u64>, others_stay: bool) -> Result<(), ProposeError> {
        self.raft.change_membership(voters, others_stay).await.map(|_| ()).map_err(of_write)
    }

    /// Stands for election now, without waiting until the leader is missed.
    pub async fn stand(&self) -> Result<(), ProposeError> {
        self.raft.trigger().elect(true).await.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))
    }

    /// Asks a voter to lead in this one's place. It does as soon as it has all entries; the status tells.
    pub async fn hand_over(&self, to: u64) -> Result<(), ProposeError> {
        let asked = self.raft.trigger().transfer_leader(to).await;
        asked.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))
    }

    /// Makes a snapshot now; it is there some time later.
    pub async fn make_snapshot(&self) -> Result<(), ProposeError> {
        self.raft.trigger().snapshot().await.map_err(|fatal| ProposeError::Stopped(fatal.to_string()))
    }

    /// Answers what another member asks, which was authenticated by whoever carries it.
    pub async fn answer(&self, question: &Bytes) -> Result<Bytes, AnswerError> {
        let stopped = |error: &dyn std::fmt::Display| AnswerError::Stopped(error.to_string());
        let (asked, ask) = Ask::decode(question)?;
        if asked != self.number {
            return Err(AnswerError::OtherMember { asked, found: self.number });
        }
        let reply = match ask {
            Ask::Append(request) => {
                Reply::Append(self.raft.append_entries(request).await.map_err(|error| stopped(&error))?)
            }
            Ask::Vote(request) => Reply::Vote(self.raft.vote(request).await.map_err(|error| stopped(&error))?),
            Ask::PreVote(request) => Reply::Vote(self.raft.pre_vote(request).await.map_err(|error| stopped(&error))?),
            Ask::Snapshot(piece) => self.take_piece(piece).await?,
            Ask::Lead(request) => {
                let leads = self.raft.handle_transfer_leader(request).await.map_err(|error| stopped(&error))?;
                Reply::Lead(leads.map_err(|error| error.to_string()))
            }
        };
        Ok(reply.encode())
    }

    async fn take_piece(&self, piece: SnapshotPiece) -> Result<Reply, AnswerError> {
        let mut incoming = self.incoming.lock().await;
        if piece.offset == 0 {
            let meta = decode_meta(&piece.note)?;
            let number = self.writers.fetch_add(1, Ordering::Relaxed);
            let writer = SnapshotWriter::begin(self.disk.clone(), piece.index, number, &piece.note)?;
            *incoming = Some(Incoming { vote: piece.vote, meta, index: piece.index, offset: 0, writer });
        }
        let known = incoming.as_mut().filter(|known| (known.vote, known.index) == (piece.vote, piece.index));
        let Some(known) = known else { return Ok(Reply::SnapshotGoesOn(0)) };
        if known.offset != piece.offset {
            return Ok(Reply::SnapshotGoesOn(known.offset));
        }
        known.writer.write_all(&piece.bytes)?;
        known.offset = known.offset.saturating_add(piece.bytes.len() as u64);
        if !piece.last {
            return Ok(Reply::SnapshotGoesOn(known.offset));
        }
        let Some(Incoming { vote, meta, index, writer, .. }) = incoming.take() else {
            return Ok(Reply::SnapshotGoesOn(0));
        };
        writer.finish()?;
        let snapshot = Snapshot { meta, snapshot: StoredSnapshot { disk: self.disk.clone(), index } };
        let installed = self.raft.install_full_snapshot(vote, snapshot).await;
        let response = installed.map_err(|fatal| AnswerError::Stopped(fatal.to_string()))?;
        Ok(Reply::SnapshotTaken(response.vote))
    }

    /// How it is doing.
    pub fn status(&self) -> Status {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let name = |number: &u64| membership.get_node(number).map(|member| member.name.clone());
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let matched = |number: &u64| Some(metrics.replication.as_ref()?.get(number)?.as_ref()?.index);
        let standing = |(number, member): (&u64, &Member)| Standing {
            number: *number,
            name: member.name.clone(),
            votes: voters.contains(number),
            votes_for_good: membership.get_joint_config().iter().all(|voters| voters.contains(number)),
            matched: matched(number),
        };
        Status {
            members: membership.nodes().map(standing).collect(),
            term: metrics.current_term,
            leader: metrics.current_leader.as_ref().and_then(name),
            leads: metrics.current_leader == Some(metrics.id),
            last: metrics.last_log_index,
            applied: metrics.last_applied.map(|id| id.index),
            snapshot: metrics.snapshot.map(|id| id.index),
            voters: membership.voter_ids().filter_map(|number| name(&number)).collect(),
            learners: membership.learner_ids().filter_map(|number| name(&number)).collect(),
            stopped: metrics.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    /// Whether this member leads, and the name of whoever does, as far as it knows.
    pub fn leader(&self) -> (bool, Option<String>) {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let leader = metrics.current_leader.as_ref();
        let member = leader.and_then(|number| metrics.membership_config.membership().get_node(number));
        (leader == Some(&metrics.id), member.map(|member| member.name.clone()))
    }

    /// How long ago a majority last answered this member; `None` when it does not lead.
    pub fn quorum_age(&self) -> Option<Duration> {
        let server = self.raft.server_metrics();
        let server = server.borrow_watched();
        let is_own_majority = server.membership_config.membership().voter_ids().all(|voter| voter == server.id);
        if is_own_majority && server.current_leader == Some(server.id) {
            return Some(Duration::ZERO);
        }
        let metrics = self.raft.data_metrics();
        let metrics = metrics.borrow_watched();
        metrics.last_quorum_acked.as_ref().map(|at| at.elapsed())
    }

    /// Waits until this member leads, or until it does not. Never ends once it has stopped.
    pub async fn wait_leads(&self, leads: bool) {
        let mut metrics = self.raft.server_metrics();
        loop {
            {
                let now = metrics.borrow_watched();
                if (now.current_leader == Some(now.id)) == leads {
                    return;
                }
            }
            if metrics.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// This member's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Waits until its status is as wanted.
    pub async fn wait_until(&self, wanted: impl Fn(&Status) -> bool) {
        let mut metrics = self.raft.metrics();
        while !wanted(&self.status()) {
            // It ends with the member, whose last status does not change any more.
            if metrics.changed().await.is_err() {
                return;
            }
        }
    }

    /// Takes part no more.
    pub async fn stop(&self) {
        // That its task panicked is said in its status.
        let _ = self.raft.shutdown().await;
    }
}

fn not_leader(forward: ForwardToLeader<Types>) -> ProposeError {
    ProposeError::NotLeader { leader: forward.leader_node.map(|member| member.name) }
}

fn of_write(error: RaftError<Types, ClientWriteError<Types>>) -> ProposeError {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => not_leader(forward),
        RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)) => ProposeError::Unknown,
        RaftError::APIError(other) => ProposeError::Members(other.to_string()),
        RaftError::Fatal(fatal) => ProposeError::Stopped(fatal.to_string()),
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
