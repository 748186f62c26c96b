//! A node as a member of a group of several: what it needs of the others, and what it answers them.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use cachesql_group::disk::Disk;
#[cfg(feature = "simulation")]
use cachesql_group::simulation::PlantedBug;
use cachesql_group::{Group, ProposeError};
use cachesql_peer::{Call, CallError, Directory, Lane, NodeName, Refusal, Service, Services};
use cachesql_types::limits;
use parking_lot::Mutex;
use tokio::sync::{Mutex as TurnMutex, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};

use super::log::{confirmed, of_group};
use super::members::MembersChange;
use super::presence::Presence;
use super::way::{COMMAND, CONSENSUS, MEMBERS, PRESENCE, READ_INDEX, Way, addressed};
use crate::bytes_of::take_number;
use crate::command::{Command, encode_answer};
use crate::config::ClusterConfig;
use crate::error::NodeError;
use crate::node::Node;
use crate::state::State;
use crate::tasks::stopped;

/// A node as a member of a group of several.
pub(crate) struct Member<D: Disk + Clone> {
    pub(super) group: Arc<Group<D, State>>,
    pub(super) way: Way,
    /// Which nodes there are, and where.
    pub(super) directory: Directory,
    /// Who is to be a member, and how they fail over.
    pub(super) cluster: ArcSwap<ClusterConfig>,
    /// Members are changed one at a time.
    pub(super) changing: TurnMutex<()>,
    /// When this member last knew that its rows were the newest.
    fresh: Mutex<Option<Instant>>,
    questions: mpsc::Sender<Question>,
    /// Who carries out commands, once it is there.
    pub(super) carrier: OnceLock<Weak<Node>>,
}

/// Who wants to be sure that its rows are the newest.
pub(super) type Question = oneshot::Sender<Result<(), NodeError>>;

impl<D: Disk + Clone> Member<D> {
    pub(super) fn new(
        group: Arc<Group<D, State>>,
        way: Way,
        directory: Directory,
        cluster: ClusterConfig,
    ) -> (Arc<Member<D>>, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(limits::WRITE_QUEUE);
        let (changing, fresh, carrier) = (TurnMutex::new(()), Mutex::new(None), OnceLock::new());
        let cluster = ArcSwap::from_pointee(cluster);
        (Arc::new(Member { group, way, directory, cluster, changing, fresh, questions, carrier }), asked)
    }

    /// This node's name.
    pub(super) fn node(&self) -> &str {
        self.way.own.as_str()
    }

    pub(super) fn of_group(&self, error: ProposeError) -> NodeError {
        of_group(&self.way.group, error)
    }

    pub(super) fn not_leader(&self, leader: Option<String>) -> NodeError {
        NodeError::NotLeader { group: self.way.group.to_string(), leader }
    }

    /// Since when this member's rows are known to have been the newest; `None` when that was never known.
    pub(super) fn fresh_since(&self) -> Option<Instant> {
        let led = self.group.quorum_age().and_then(|age| Instant::now().checked_sub(age));
        led.max(*self.fresh.lock())
    }

    /// Makes sure that everything that was acknowledged anywhere before this began is applied here. Those who ask at the same time
    /// are answered together.
    pub(super) async fn confirm(&self) -> Result<(), NodeError> {
        let (question, answer) = oneshot::channel();
        self.questions.try_send(question).map_err(|_| NodeError::Busy { what: "linearizable reads" })?;
        answer.await.map_err(|_| NodeError::Shutdown)?
    }

    /// Answers those who ask whether this member is up to date, one round for all who have asked before it begins; and looks by
    /// itself now and then, so that it can be said how old its rows may be.
    pub(super) async fn answer_questions(
        self: Arc<Self>,
        mut questions: mpsc::Receiver<Question>,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let mut waiting = tokio::select! {
                () = stopped(&mut stop) => return,
                question = questions.recv() => match question {
                    Some(question) => vec![question],
                    None => return,
                },
                () = sleep(limits::FRESHNESS_LOOK) => Vec::new(),
            };
            while let Ok(question) = questions.try_recv() {
                waiting.push(question);
            }
            if waiting.is_empty() && self.group.leader().0 {
                continue;
            }
            let began = Instant::now();
            let outcome = tokio::select! {
                () = stopped(&mut stop) => return,
                outcome = self.catch_up() => outcome,
            };
            if outcome.is_ok() {
                *self.fresh.lock() = Some(began);
            }
            for question in waiting {
                // Who asked may have left.
                let _ = question.send(outcome.clone());
            }
        }
    }

    /// Asks whoever leads how far it is, and waits until this member is as far.
    async fn catch_up(&self) -> Result<(), NodeError> {
        let deadline = Instant::now().checked_add(limits::LEADER_WAIT);
        let in_time = || deadline.is_some_and(|deadline| Instant::now() < deadline);
        loop {
            let index = match self.group.leader() {
                (true, _) => self.confirmed_here().await,
                (false, Some(leader)) => self.index_of(&leader).await,
                (false, None) => Err(self.not_leader(None)),
            };
            match index {
                Ok(index) => {
                    let applied = self.group.applied(index);
                    return match tokio::time::timeout(limits::LEADER_WAIT, applied).await {
                        Ok(applied) => applied.map_err(|error| self.of_group(error)),
                        Err(_) => Err(NodeError::Behind { waited: limits::LEADER_WAIT }),
                    };
                }
                Err(error @ NodeError::Fenced(_)) => return Err(error),
                Err(error) if !in_time() => return Err(error),
                Err(_) => sleep(limits::LEADER_LOOK).await,
            }
        }
    }

    /// The index that everything acknowledged is below, if this member leads.
    pub(super) async fn confirmed_here(&self) -> Result<u64, NodeError> {
        #[cfg(feature = "simulation")]
        if PlantedBug::LinearizableWithoutMajority.is_planted() && self.group.leader().0 {
            return Ok(self.group.status().applied.unwrap_or(0));
        }
        confirmed(&self.group, &self.way.group).await
    }

    async fn index_of(&self, leader: &str) -> Result<u64, NodeError> {
        let answer = self.way.call(leader, Lane::Urgent, READ_INDEX, &[], limits::MEMBER_WAIT).await;
        let bytes = answer.map_err(|error| {
            tracing::debug!(%error, "the leader does not say how far it is");
            self.not_leader(Some(leader.to_owned()))
        })?;
        take_number(&mut &*bytes).map_err(|error| NodeError::Internal(format!("an index of the leader: {error}")))
    }

    /// Sends a command to the node that leads.
    pub(super) async fn ask_leader(&self, leader: &str, command: &[u8], wait: Duration) -> Result<Bytes, NodeError> {
        let answer = self.way.call(leader, Lane::Normal, COMMAND, command, wait).await;
        answer.map_err(|error| match error {
            CallError::NotSent { .. } => self.not_leader(Some(leader.to_owned())),
            CallError::Unknown { .. } => NodeError::Unknown,
            CallError::Refused { code, .. } if code == NOT_NOW => self.not_leader(Some(leader.to_owned())),
            CallError::Refused { message, .. } => NodeError::Internal(message),
        })
    }

    /// Everything that other members may ask of this one.
    pub(super) fn services(self: &Arc<Self>) -> Services {
        [CONSENSUS, COMMAND, READ_INDEX, PRESENCE, MEMBERS]
            .into_iter()
            .fold(Services::new(), |services, number| services.with(number, Answering(self.clone())))
    }

    async fn answer(&self, from: &NodeName, service: u16, payload: Bytes) -> Result<Bytes, Refusal> {
        match service {
            CONSENSUS => self.group.answer(&payload).await.map_err(refused),
            COMMAND => self.carry_out(&payload).await,
            READ_INDEX => {
                let index = self.confirmed_here().await.map_err(|error| Refusal::new(NOT_NOW, error.to_string()))?;
                Ok(Bytes::copy_from_slice(&index.to_le_bytes()))
            }
            PRESENCE => {
                let is_in = self.group.is_founded().await.map_err(refused)?;
                let presence = Presence { number: self.group.number(), is_in, leader: self.group.leader().1 };
                Ok(presence.encode().into())
            }
            MEMBERS => {
                let change = MembersChange::decode(&payload).map_err(refused)?;
                if let MembersChange::Join { name, .. } = &change
                    && name != from.as_str()
                {
                    return Err(Refusal::new(FAILED, format!("node {from} asks for another one to be taken in")));
                }
                self.change_members(change).await.map_err(refused)?;
                Ok(Bytes::new())
            }
            other => Err(Refusal::new(NO_SERVICE, format!("there is no service {other}"))),
        }
    }

    async fn carry_out(&self, payload: &[u8]) -> Result<Bytes, Refusal> {
        let command = Command::decode(payload).map_err(refused)?;
        let carrier = self.carrier.get().and_then(Weak::upgrade);
        let carrier = carrier.ok_or_else(|| Refusal::new(NOT_NOW, "the node is starting or stopping"))?;
        // Whoever sent it does not send it again: it is carried out here, or not at all.
        let outcome = match self.group.leader() {
            (true, _) => carrier.carry_out(command).await,
            (false, leader) => Err(self.not_leader(leader)),
        };
        Ok(encode_answer(&outcome).into())
    }
}

/// A refusal's code: nothing was done, and it may be another time.
const NOT_NOW: u16 = 1;
/// A refusal's code: it cannot be done.
const FAILED: u16 = 2;
/// A refusal's code: there is no such service.
const NO_SERVICE: u16 = 3;
/// A refusal's code: this node is in no such group.
const NO_GROUP: u16 = 4;

fn refused(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(FAILED, error.to_string())
}

struct Answering<D: Disk + Clone>(Arc<Member<D>>);

#[async_trait::async_trait]
impl<D: Disk + Clone> Service for Answering<D> {
    async fn serve(&self, call: Call) -> Result<Bytes, Refusal> {
        let (group, payload) = addressed(&call.payload).map_err(refused)?;
        let own = &*self.0.way.group;
        if group != own {
            let group: String = group.chars().take(80).collect();
            return Err(Refusal::new(NO_GROUP, format!("this node is in group {own:?}, and not in {group:?}")));
        }
        self.0.answer(&call.from, call.service, payload).await
    }
}
