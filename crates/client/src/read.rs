//! The walk of a read: the members of its group, one after the other, until one answers.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use tokio::time::Instant;

use crate::config::Consistency;
use crate::core::{Core, header};
use crate::error::Error;
use crate::limits;
use crate::node::Node;
use crate::pool::Reply;
use crate::routes::Group;
use crate::wire::{Ask, CONSISTENCY, Missed, TOKEN};

/// A read on its way.
pub(crate) struct ReadWalk<'c> {
    core: &'c Core,
    /// The table that says which group it is for, in whichever routes there are.
    table: Option<String>,
    body: Bytes,
    deadline: Instant,
    /// Nodes that have had their turn.
    asked: Vec<Arc<Node>>,
    last: Option<String>,
}

/// How one pass over the members ended without an answer.
enum Ended {
    /// All have been asked, or the time is over.
    Exhausted,
    /// The table is in another group now.
    Moved(Arc<Group>),
}

/// Which nodes answer, and what they must have seen.
pub(crate) struct Readers {
    /// The group whose session counts.
    pub(crate) group: Arc<Group>,
    /// Nodes that can answer; of a statement over several groups, those that are in all of them.
    pub(crate) members: Vec<Arc<Node>>,
    /// More than one group: a token speaks of one, so that a session asks for everything instead.
    pub(crate) several: bool,
}

impl Readers {
    /// Those of one group.
    pub(crate) fn of(group: Arc<Group>) -> Readers {
        Readers { members: group.members.clone(), group, several: false }
    }
}

impl<'c> ReadWalk<'c> {
    pub(crate) fn new(core: &'c Core, table: Option<String>, body: Bytes, deadline: Instant) -> ReadWalk<'c> {
        ReadWalk { core, table, body, deadline, asked: Vec::new(), last: None }
    }

    /// Asks until one answers, a node refuses, or nobody is left.
    pub(crate) async fn run(mut self, mut readers: Readers) -> Result<Reply, Error> {
        for round in 0..limits::READ_ROUNDS {
            match self.pass(&readers).await? {
                Ok(reply) => return Ok(reply),
                Err(Ended::Moved(group)) => {
                    self.asked.clear();
                    readers = Readers::of(group);
                    continue;
                }
                Err(Ended::Exhausted) => {}
            }
            let over = round + 1 == limits::READ_ROUNDS || Instant::now() >= self.deadline || readers.several;
            // Where nodes tell the routes, the group may have other members by now.
            if over || !self.core.follows() || self.core.reload(self.deadline).await.is_err() {
                break;
            }
            if let Some(group) = self.group_now() {
                readers = Readers::of(group);
            }
        }
        let last = self.last.unwrap_or_else(|| self.core.deadline_text());
        Err(Error::AllFailed { last })
    }

    fn group_now(&self) -> Option<Arc<Group>> {
        self.core.routes().group_of(self.table.as_deref()?).cloned()
    }

    fn was_asked(&self, node: &Arc<Node>) -> bool {
        self.asked.iter().any(|asked| Arc::ptr_eq(asked, node))
    }

    /// Asks each member that was not asked yet. Those that are left out come last: trying is better than failing.
    async fn pass(&mut self, readers: &Readers) -> Result<Result<Reply, Ended>, Error> {
        let options = &self.core.options;
        let order = options.policy.order(readers.group.leader.as_ref(), &readers.members, &options.chance);
        let mut turn: VecDeque<(Arc<Node>, bool)> =
            order.into_iter().filter(|node| !self.was_asked(node)).map(|node| (node, false)).collect();
        while let Some((node, left_out)) = turn.pop_front() {
            if Instant::now() >= self.deadline {
                break;
            }
            if !left_out && !node.admits(&options.chance) {
                turn.push_back((node, true));
                continue;
            }
            self.asked.push(node.clone());
            let session = (!readers.several).then_some(&*readers.group.session);
            let missed = match self.core.call(&node, session, &self.ask(readers), false, self.deadline).await {
                Ok(reply) => return Ok(Ok(reply)),
                Err(missed) => missed,
            };
            self.last = Some(missed.said());
            match missed {
                Missed::Refused(refusal) => {
                    let moved = if refusal.code == "42P01" { self.moved(readers).await } else { None };
                    return match moved {
                        Some(group) => Ok(Err(Ended::Moved(group))),
                        None => Err(Error::Refused(Box::new(refusal))),
                    };
                }
                Missed::NotLeader { leader, .. } => {
                    let named = leader.and_then(|name| self.core.routes().node_named(&name).cloned());
                    self.put(&mut turn, named, true);
                }
                // The leader has seen whatever there is to see: it comes last, so that followers take their share, but surely.
                Missed::NotApplied { behind: true, .. } => self.put(&mut turn, readers.group.leader.clone(), false),
                Missed::NotApplied { .. } | Missed::Unknown { .. } => {}
            }
        }
        Ok(Err(Ended::Exhausted))
    }

    /// Gives a node the next turn, or the last one, unless it was asked.
    fn put(&self, turn: &mut VecDeque<(Arc<Node>, bool)>, node: Option<Arc<Node>>, next: bool) {
        let Some(node) = node.filter(|node| !self.was_asked(node)) else { return };
        turn.retain(|(other, _)| !Arc::ptr_eq(other, &node));
        if next { turn.push_front((node, true)) } else { turn.push_back((node, true)) }
    }

    /// The group that has the table now, when a node does not know it any more and nodes tell the routes.
    async fn moved(&self, readers: &Readers) -> Option<Arc<Group>> {
        if !self.core.follows() || readers.several || self.core.reload(self.deadline).await.is_err() {
            return None;
        }
        self.group_now().filter(|group| group.name != readers.group.name)
    }

    fn ask(&self, readers: &Readers) -> Ask {
        let level = match self.core.options.consistency {
            Consistency::Session if readers.several => Consistency::Linearizable,
            level => level,
        };
        let token = match level {
            Consistency::Session => readers.group.session.token().and_then(|token| header(&token.to_string())),
            _ => None,
        };
        let mut headers: Vec<_> = header(&level.to_string()).map(|level| (CONSISTENCY, level)).into_iter().collect();
        headers.extend(token.map(|token| (TOKEN, token)));
        Ask {
            method: Method::POST,
            path: "/v1/sql".to_owned(),
            headers,
            body: self.body.clone(),
            repeatable: true,
            most_bytes: limits::ANSWER_BYTES,
        }
    }
}
