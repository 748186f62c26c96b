//! The walk of a write: to the leader, and after a failure to whoever leads then.
//!
//! A request whose connection broke or that was not answered in time may have been applied. It is sent again only because
//! it carries an id, the same each time: the group applies one id once, and answers the repeat as it answered the first.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use tokio::time::{Instant, sleep};

use crate::core::{Core, header};
use crate::error::Error;
use crate::limits;
use crate::node::Node;
use crate::pool::Reply;
use crate::routes::Group;
use crate::wire::{Ask, Missed, REQUEST_ID};

/// A write on its way.
pub(crate) struct WriteWalk<'c> {
    core: &'c Core,
    group: Arc<Group>,
    /// The table that says which group it is for, in whichever routes there are.
    table: Option<String>,
    ask: Ask,
    id: Option<String>,
    deadline: Instant,
    /// Nodes that have had their turn since the last pause.
    asked: Vec<Arc<Node>>,
    /// Whether one of them answered at all.
    answered: bool,
    /// Whether some try may have been applied.
    doubt: bool,
    last: Option<String>,
    election: Election,
}

/// How long a write waits for a leader.
#[derive(Default)]
struct Election {
    /// Begins with the first pause: what a silent leader took before is not its time.
    until: Option<Instant>,
    pause: Option<Duration>,
}

impl Election {
    /// Waits a little, each time longer; false when it has been enough.
    async fn pause(&mut self, deadline: Instant) -> bool {
        let now = Instant::now();
        let until = *self.until.get_or_insert((now + limits::ELECTION_WAIT).min(deadline));
        let pause =
            self.pause.map_or(limits::ELECTION_PAUSE_FIRST, |before| (before * 2).min(limits::ELECTION_PAUSE_MOST));
        self.pause = Some(pause);
        if now + pause >= until {
            return false;
        }
        sleep(pause).await;
        true
    }
}

impl<'c> WriteWalk<'c> {
    pub(crate) fn new(
        core: &'c Core,
        group: Arc<Group>,
        table: Option<String>,
        body: Bytes,
        deadline: Instant,
    ) -> WriteWalk<'c> {
        let id = core.options.request_ids.then(|| core.ids.next());
        let headers = id.as_deref().and_then(header).map(|id| (REQUEST_ID, id)).into_iter().collect();
        let ask = Ask {
            method: Method::POST,
            path: "/v1/sql".to_owned(),
            headers,
            body,
            repeatable: id.is_some(),
            most_bytes: limits::ANSWER_BYTES,
        };
        WriteWalk {
            core,
            group,
            table,
            ask,
            id,
            deadline,
            asked: Vec::new(),
            answered: false,
            doubt: false,
            last: None,
            election: Election::default(),
        }
    }

    /// Sends the write until a node takes or refuses it, nobody is left, or it may not be sent again.
    pub(crate) async fn run(mut self) -> Result<Reply, Error> {
        let mut hinted: Option<Arc<Node>> = None;
        for _ in 0..limits::WRITE_HOPS {
            if Instant::now() >= self.deadline {
                break;
            }
            let by_hint = hinted.is_some();
            let Some(node) = hinted.take().or_else(|| self.next()) else {
                if self.answered && self.election.pause(self.deadline).await {
                    self.begin_again().await;
                    continue;
                }
                break;
            };
            self.asked.push(node.clone());
            match self.core.call(&node, Some(&self.group.session), &self.ask, true, self.deadline).await {
                Ok(reply) => {
                    if by_hint {
                        self.core.found_leader(&self.group.name, &node);
                    }
                    return Ok(reply);
                }
                Err(missed) => hinted = self.after(missed).await?,
            }
            if self.doubt && self.id.is_none() {
                break;
            }
        }
        Err(self.failed())
    }

    /// The leader, else a member, which forwards or says who leads; those that are left out when there is nobody else.
    fn next(&self) -> Option<Arc<Node>> {
        let leader = self.group.leader.iter();
        let open: Vec<&Arc<Node>> = leader.chain(&self.group.members).filter(|node| !self.was_asked(node)).collect();
        let admitted = open.iter().find(|node| node.admits(&self.core.options.chance));
        admitted.or_else(|| open.first()).map(|node| Arc::clone(node))
    }

    fn was_asked(&self, node: &Arc<Node>) -> bool {
        self.asked.iter().any(|asked| Arc::ptr_eq(asked, node))
    }

    /// All were asked and some answered: the group may have a leader by now.
    async fn begin_again(&mut self) {
        self.asked.clear();
        self.answered = false;
        self.look_again().await;
    }

    /// Asks for the routes, and takes the group as it is in them.
    async fn look_again(&mut self) {
        // What failed, if nobody tells them, is not what the write failed of.
        let _ = self.core.reload(self.deadline).await;
        let routes = self.core.routes();
        let by_table = self.table.as_deref().and_then(|table| routes.group_of(table));
        if let Some(group) = by_table.or_else(|| routes.group(&self.group.name)) {
            self.group = group.clone();
        }
    }

    /// Takes in how a node failed, and gives the node that it names. A name is followed only to a node that has not had its
    /// turn, so that nodes which name each other end the walk and do not prolong it.
    async fn after(&mut self, missed: Missed) -> Result<Option<Arc<Node>>, Error> {
        self.last = Some(missed.said());
        match missed {
            Missed::Refused(refusal) if refusal.code == "42P01" && !self.doubt && self.moved().await => Ok(None),
            Missed::Refused(mut refusal) => {
                refusal.outcome_known = !self.doubt;
                Err(Error::Refused(Box::new(refusal)))
            }
            Missed::NotLeader { leader, .. } => {
                self.answered = true;
                let named = |core: &Core| leader.as_deref().and_then(|name| core.routes().node_named(name).cloned());
                let before = named(self.core);
                self.look_again().await;
                Ok(before.or_else(|| named(self.core)).filter(|node| !self.was_asked(node)))
            }
            Missed::NotApplied { answered, .. } => {
                self.answered |= answered;
                self.look_again().await;
                Ok(None)
            }
            Missed::Unknown { answered, .. } => {
                self.answered |= answered;
                self.doubt = true;
                if self.id.is_some() {
                    self.look_again().await;
                }
                Ok(None)
            }
        }
    }

    /// Whether the table is in another group now; then its nodes are asked.
    async fn moved(&mut self) -> bool {
        let before = self.group.name.clone();
        if !self.core.follows() {
            return false;
        }
        self.look_again().await;
        let moved = self.group.name != before;
        if moved {
            self.asked.clear();
        }
        moved
    }

    fn failed(self) -> Error {
        let last = match self.last {
            Some(last) => last,
            None if self.group.members.is_empty() => {
                format!("group {} has no member that can be asked", self.group.name)
            }
            None => self.core.deadline_text(),
        };
        match self.doubt {
            true => Error::OutcomeUnknown { last, request_id: self.id },
            false => Error::WriteFailed { last },
        }
    }
}
