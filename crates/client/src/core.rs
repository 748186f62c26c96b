//! What all clones of a client share: options, nodes, routes, sessions; and one call to one node.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::address::Address;
use crate::chance::{Chance, RequestIds};
use crate::config::{Configured, Consistency};
use crate::error::Error;
use crate::limits;
use crate::node::{Node, Nodes};
use crate::policy::Policy;
use crate::pool::Reply;
use crate::routes::{Group, Routes};
use crate::session::{Session, Sessions};
use crate::topology::Topology;
use crate::wire::{Ask, Missed, TOKEN, Wire, ask_for_routes, judge};

/// Checked options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) policy: Policy,
    pub(crate) consistency: Consistency,
    pub(crate) deadline: Duration,
    pub(crate) wire: Wire,
    pub(crate) request_ids: bool,
    pub(crate) chance: Chance,
}

/// Where the routes come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// They stay as the file says, but for who leads.
    File,
    /// Nodes tell them; these were given to begin with.
    Cluster(Vec<Address>),
}

/// The shared part of a client.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) source: Source,
    pub(crate) nodes: Nodes,
    pub(crate) sessions: Sessions,
    pub(crate) ids: RequestIds,
    routes: RwLock<Arc<Routes>>,
    /// When calls last asked for the routes, and what came of it. Held while one asks, so that the others wait for the same answer.
    reloaded: Mutex<Option<(Instant, Result<(), String>)>>,
}

impl Core {
    pub(crate) fn new(options: Options, source: Source) -> Arc<Core> {
        Arc::new(Core {
            options,
            source,
            nodes: Nodes::default(),
            sessions: Sessions::default(),
            ids: RequestIds::new(),
            routes: RwLock::default(),
            reloaded: Mutex::default(),
        })
    }

    /// Takes the routes of a file.
    pub(crate) fn take_file(&self, configured: &Configured) {
        let routes = Routes::of_file(&configured.groups, &configured.names, &self.nodes, &self.sessions);
        *self.routes.write() = Arc::new(routes);
    }

    /// The routes as they are now.
    pub(crate) fn routes(&self) -> Arc<Routes> {
        self.routes.read().clone()
    }

    /// Whether nodes tell the routes.
    pub(crate) fn follows(&self) -> bool {
        matches!(self.source, Source::Cluster(_))
    }

    /// When a call that begins now ends.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.options.deadline
    }

    /// What to say when it has passed.
    pub(crate) fn deadline_text(&self) -> String {
        format!("the deadline of {} ms passed", self.options.deadline.as_millis())
    }

    /// The group of a table; where nodes tell the routes they are asked about one that is not known.
    pub(crate) async fn group_of(&self, table: &str, deadline: Instant) -> Result<Arc<Group>, Error> {
        if let Some(group) = self.routes().group_of(table) {
            return Ok(group.clone());
        }
        if self.follows()
            && self.reload(deadline).await.is_ok()
            && let Some(group) = self.routes().group_of(table)
        {
            return Ok(group.clone());
        }
        match self.routes().is_empty() {
            true => Err(Error::NoGroups),
            false => Err(Error::NoGroup { table: table.to_owned() }),
        }
    }

    /// Asks nodes for the routes until one tells them; what failed last when none does. Calls that ask at the same time, or
    /// shortly after one another, share what came of it.
    pub(crate) async fn reload(&self, deadline: Instant) -> Result<(), String> {
        let locked = timeout_at(deadline, self.reloaded.lock()).await;
        let mut reloaded = locked.map_err(|_| self.deadline_text())?;
        if let Some((at, outcome)) = &*reloaded
            && at.elapsed() < limits::ROUTES_PAUSE
        {
            return outcome.clone();
        }
        let outcome = self.ask_for_routes(deadline).await;
        *reloaded = Some((Instant::now(), outcome.clone()));
        outcome
    }

    async fn ask_for_routes(&self, deadline: Instant) -> Result<(), String> {
        let mut last = self.deadline_text();
        for node in self.who_knows() {
            if Instant::now() >= deadline {
                break;
            }
            match self.ask_topology(&node, None, None, deadline).await {
                Ok(Some((topology, _))) => {
                    self.adopt(&topology);
                    return Ok(());
                }
                Ok(None) => {}
                Err(said) => last = said,
            }
        }
        Err(last)
    }

    /// Nodes that may tell the routes, those that are left out at the end.
    pub(crate) fn who_knows(&self) -> Vec<Arc<Node>> {
        let mut known = self.routes().members();
        self.options.chance.shuffle(&mut known);
        if let Source::Cluster(seeds) = &self.source {
            for node in seeds.iter().map(|address| self.nodes.at(address)) {
                if !known.iter().any(|other| Arc::ptr_eq(other, &node)) {
                    known.push(node);
                }
            }
        }
        let (mut admitted, left_out): (Vec<_>, Vec<_>) = known.into_iter().partition(|node| node.is_well());
        admitted.extend(left_out);
        admitted
    }

    /// Asks one node for the routes, and gives them with their mark; `None` when they are still those of the mark.
    pub(crate) async fn ask_topology(
        &self,
        node: &Node,
        mark: Option<&str>,
        wait: Option<Duration>,
        deadline: Instant,
    ) -> Result<Option<(Topology, Option<String>)>, String> {
        let time = wait.map_or(limits::ROUTES_TIMEOUT, |wait| wait + limits::FOLLOW_GRACE);
        let usual = &self.options.wire;
        let connect = usual.connect_timeout.map_or(limits::ROUTES_TIMEOUT, |most| most.min(limits::ROUTES_TIMEOUT));
        let wire = Wire { connect_timeout: Some(connect), read_timeout: Some(time), ..usual.clone() };
        let reply = match wire.exchange(node, &ask_for_routes(mark, wait), deadline).await {
            Ok(reply) => reply,
            Err(silence) => {
                if silence.fault {
                    node.failed(&self.options.chance);
                }
                return Err(silence.said);
            }
        };
        if reply.status() == hyper::StatusCode::NOT_MODIFIED {
            node.succeeded();
            return Ok(None);
        }
        let mark = reply.header(hyper::header::ETAG.as_str()).map(str::to_owned);
        let (judged, well) = judge(node, reply, false);
        self.note(node, well);
        let reply = judged.map_err(|missed| missed.said())?;
        let topology =
            Topology::read(&node.address, &reply.body).map_err(|error| format!("{}: {error}", node.address))?;
        Ok(Some((topology, mark)))
    }

    fn note(&self, node: &Node, well: bool) {
        if well {
            node.succeeded();
        } else {
            node.failed(&self.options.chance);
        }
    }

    /// Takes over what a node tells: who leads, and where the routes come from nodes, all of them.
    pub(crate) fn adopt(&self, topology: &Topology) {
        let mut routes = self.routes.write();
        let told = match self.source {
            Source::File => routes.with_leaders(topology, &self.nodes),
            Source::Cluster(_) => routes.told_by(topology, &self.nodes, &self.sessions),
        };
        *routes = Arc::new(told);
    }

    /// Takes over that a node has turned out to lead a group.
    pub(crate) fn found_leader(&self, group: &str, leader: &Arc<Node>) {
        let mut routes = self.routes.write();
        if routes.group(group).is_some_and(|group| !group.is_led_by(leader)) {
            *routes = Arc::new(routes.with_leader(group, leader));
        }
    }

    /// Sends a request to one node, and takes over what its answer tells of the node, and of
    /// the group's log when it speaks of one group.
    pub(crate) async fn call(
        &self,
        node: &Node,
        session: Option<&Session>,
        ask: &Ask,
        is_write: bool,
        deadline: Instant,
    ) -> Result<Reply, Missed> {
        let began = Instant::now();
        let reply = match self.options.wire.exchange(node, ask, deadline).await {
            Ok(reply) => reply,
            Err(silence) => {
                if silence.fault {
                    node.failed(&self.options.chance);
                }
                return Err(silence.into());
            }
        };
        let (judged, well) = judge(node, reply, is_write);
        self.note(node, well);
        let reply = judged?;
        node.took(began.elapsed());
        if let (Some(session), Some(token)) = (session, reply.header(TOKEN.as_str())) {
            session.saw(token);
        }
        Ok(reply)
    }
}

/// A header of text that was made here, or `None` when no header can carry it.
pub(crate) fn header(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}
