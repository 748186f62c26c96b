//! The nodes of a run: each is a simulated host, whose disk outlives it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cachesql_group::Drive;
use cachesql_group::disk::MemoryDisk;
use cachesql_node::{
    Cell, ClusterConfig, ClusterSecret, Consistency, Failover, GroupStatus, ManualClock, Node, NodeConfig,
    RequestOptions, Rows, Statement, TableConfig, TableSource,
};
use cachesql_types::{Column, DataType, LogIndex, Token};
use futures::StreamExt as _;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::sync::{mpsc, oneshot};
use twox_hash::XxHash3_64;

use crate::history::Level;
use crate::network::SimulatedNetwork;

/// The names that nodes have, in order.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const PORT: u16 = 7_000;
const GROUP: &str = "g";
/// The time that every clock shows: rows are not what expires here.
const NOW_MS: u64 = 1_900_000_000_000;
/// Memory that is no limit.
const MEMORY_BYTES: u64 = 1 << 30;
/// The state is written out after so many entries, and so many of them are kept: few, so that it happens often.
const SNAPSHOT_ENTRIES: (u64, u64) = (40, 10);

/// What a node is asked.
pub(crate) enum Asked {
    /// A statement. A token that it has to see comes with the level of a session.
    Sql { statement: String, level: Level, token: Option<u64>, request_id: Option<String> },
    /// To have another lead.
    HandOver(String),
    /// To take another out.
    TakeOut(String),
}

/// What it answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) index: u64,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Why it does not.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Nothing was done, and nothing will be.
    Refused(String),
    /// It may have been done.
    Unknown(String),
}

type Reply = oneshot::Sender<Result<Answer, Failure>>;
type Door = mpsc::UnboundedSender<(Asked, Reply)>;

/// A node, or what is left of it while it is down.
#[derive(Default)]
struct Place {
    disk: MemoryDisk,
    node: Option<Arc<Node>>,
    door: Option<Door>,
    life: u64,
    /// Why it did not start.
    broken: Option<String>,
}

/// All nodes. It is the same for everyone who has a clone.
#[derive(Clone)]
pub(crate) struct Cluster {
    names: Vec<String>,
    seed: u64,
    places: Arc<Mutex<BTreeMap<String, Place>>>,
}

impl Cluster {
    pub(crate) fn new(members: usize, seed: u64) -> Cluster {
        let names: Vec<String> = NAMES.into_iter().take(members).map(str::to_owned).collect();
        let places = names.iter().map(|name| (name.clone(), Place::default())).collect();
        Cluster { names, seed, places: Arc::new(Mutex::new(places)) }
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// What the host of a node runs: the node, from its disk, until the host crashes.
    pub(crate) async fn live(self, name: String) -> turmoil::Result {
        let (door, mut asked) = mpsc::unbounded_channel();
        let (life, disk) = {
            let mut places = self.places.lock();
            let place = places.entry(name.clone()).or_default();
            place.life += 1;
            (place.life, place.disk.clone())
        };
        let config = self.config(&name, life);
        let node = match Node::start_in(config, SimulatedNetwork, disk, Drive::Inline, "disk").await {
            Ok(node) => node,
            Err(error) => {
                self.places.lock().entry(name).or_default().broken = Some(error.to_string());
                return Ok(());
            }
        };
        {
            let mut places = self.places.lock();
            let place = places.entry(name).or_default();
            (place.node, place.door) = (Some(node.clone()), Some(door));
        }
        while let Some((what, reply)) = asked.recv().await {
            let node = node.clone();
            tokio::spawn(async move {
                // Who asked may have given up.
                let _ = reply.send(serve(&node, what).await);
            });
        }
        Ok(())
    }

    fn config(&self, name: &str, life: u64) -> NodeConfig {
        let address = |name: &String| format!("{name}:{PORT}");
        // Every life of every node has one of its own, far from all others: a node counts up from it.
        let seed = XxHash3_64::oneshot(format!("{} {name} {life}", self.seed).as_bytes()).max(1);
        let random = Mutex::new(SmallRng::seed_from_u64(seed));
        let cluster = ClusterConfig {
            name: "simulated".into(),
            secret: ClusterSecret::new("sixteen bytes or more"),
            listen: format!("{name}:{PORT}"),
            nodes: self.names.iter().map(|name| (name.clone(), address(name))).collect(),
            members: self.names.clone(),
            leader: None,
            failover: Failover::Automatic,
            randomness: Arc::new(move |bytes: &mut [u8]| random.lock().fill_bytes(bytes)),
        };
        NodeConfig {
            name: name.to_owned(),
            group: GROUP.into(),
            seed,
            cluster: Some(cluster),
            clock: Arc::new(ManualClock::at(NOW_MS)),
            tables: vec![
                table("registers", "k", Some("v")),
                table("counters", "k", Some("v")),
                table("ledger", "k", None),
            ],
            snapshot_entries: SNAPSHOT_ENTRIES,
            ..NodeConfig::new(MEMORY_BYTES)
        }
    }

    /// Asks a node, and says in which of its lives. It is refused at once by one that is down.
    pub(crate) fn ask(&self, name: &str, what: Asked) -> (u64, oneshot::Receiver<Result<Answer, Failure>>) {
        let (reply, answer) = oneshot::channel();
        let places = self.places.lock();
        let place = places.get(name);
        let life = place.map_or(0, |place| place.life);
        match place.and_then(|place| place.door.clone()) {
            Some(door) => {
                if let Err(mpsc::error::SendError((_, reply))) = door.send((what, reply)) {
                    let _ = reply.send(Err(Failure::Refused("the node is down".into())));
                }
            }
            None => drop(reply.send(Err(Failure::Refused("the node is down".into())))),
        }
        (life, answer)
    }

    pub(crate) fn is_up(&self, name: &str) -> bool {
        self.places.lock().get(name).is_some_and(|place| place.node.is_some())
    }

    /// Forgets a node that has crashed, and puts its disk in the place of the one that it had.
    pub(crate) fn crashed(&self, name: &str, found: impl FnOnce(&MemoryDisk) -> MemoryDisk) {
        let mut places = self.places.lock();
        if let Some(place) = places.get_mut(name) {
            (place.node, place.door) = (None, None);
            place.disk = found(&place.disk);
        }
    }

    /// The first node that could not start, and why.
    pub(crate) fn broken(&self) -> Option<String> {
        let places = self.places.lock();
        places.iter().find_map(|(name, place)| Some(format!("node {name} does not start: {}", place.broken.as_ref()?)))
    }

    fn statuses(&self) -> Vec<Option<(GroupStatus, bool)>> {
        let places = self.places.lock();
        let status = |place: &Place| Some((place.node.as_ref()?.group_status()?, place.node.as_ref()?.ready()));
        places.values().map(status).collect()
    }

    /// What every node says of the group, for people.
    pub(crate) fn told(&self) -> String {
        self.names
            .iter()
            .zip(self.statuses())
            .fold(String::new(), |told, (name, status)| format!("{told}\n  {name}: {status:?}"))
    }

    /// Whether all nodes run, vote, know the same leader, and have applied the same.
    pub(crate) fn is_settled(&self) -> bool {
        let statuses = self.statuses();
        let first = statuses.first().cloned().flatten();
        let Some((first, _)) = first.filter(|(status, _)| status.leader.is_some()) else { return false };
        statuses.iter().all(|status| {
            status.as_ref().is_some_and(|(status, ready)| {
                let votes = status.members.iter().filter(|member| member.votes).count();
                *ready
                    && status.stopped.is_none()
                    && (status.members.len(), votes) == (self.names.len(), self.names.len())
                    && (&status.leader, status.last, status.applied) == (&first.leader, first.last, first.last)
            })
        })
    }

    /// The nodes that take part no more, though they run, and why.
    pub(crate) fn stopped(&self) -> Option<String> {
        let mut nodes = self.names.iter().zip(self.statuses());
        nodes.find_map(|(name, status)| Some(format!("node {name} has stopped: {}", status?.0.stopped?)))
    }
}

fn table(name: &str, key: &str, value: Option<&str>) -> TableConfig {
    let column = |name: &str, nullable| Column { name: name.into(), data_type: DataType::BigInt, nullable };
    let columns = std::iter::once(column(key, false)).chain(value.map(|name| column(name, true))).collect();
    TableConfig { key: vec![key.into()], ..TableConfig::new(name, TableSource::Empty { columns }) }
}

async fn serve(node: &Node, what: Asked) -> Result<Answer, Failure> {
    match what {
        Asked::HandOver(to) => {
            node.hand_over(&to).await.map(|()| Answer { index: 0, rows: Vec::new() }).map_err(failure)
        }
        Asked::TakeOut(name) => {
            node.take_out(&name).await.map(|()| Answer { index: 0, rows: Vec::new() }).map_err(failure)
        }
        Asked::Sql { statement, level, token, request_id } => {
            let token = token.map(|index| Token { group: GROUP.into(), index: LogIndex(index) });
            let consistency = match level {
                Level::Any => Consistency::Any,
                Level::Session => Consistency::Session(token),
                Level::Linearizable => Consistency::Linearizable,
            };
            let options = RequestOptions { consistency, request_id };
            let answer = node.sql(Statement::new(statement), &options).await.map_err(failure)?;
            let index = answer.token.index.0;
            let rows = match answer.rows {
                Some(rows) => texts(rows).await.map_err(Failure::Unknown)?,
                None => Vec::new(),
            };
            Ok(Answer { index, rows })
        }
    }
}

fn failure(error: cachesql_node::NodeError) -> Failure {
    let text = error.to_string();
    match error.sqlstate() {
        // Nobody led, another write came before it, the queue was full, or the rows were not new enough; or the statement was refused.
        "25006" | "40001" | "53000" | "57P03" | "42P01" | "23505" => Failure::Refused(text),
        _ => Failure::Unknown(text),
    }
}

async fn texts(rows: Rows) -> Result<Vec<Vec<String>>, String> {
    let text = |cell: Cell<'_>| if cell.is_null() { "~".to_owned() } else { cell.to_value().to_text() };
    let columns = rows.columns().to_vec();
    let mut stream = match rows {
        Rows::Direct(direct) => {
            let row = |at| (0..columns.len()).map(|column| text(direct.row(at).cell(column))).collect();
            return Ok((0..direct.len()).map(row).collect());
        }
        Rows::Stream(stream) => stream,
    };
    let mut texts = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| error.to_string())?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().enumerate();
            texts.push(cells.map(|(at, c)| text(Cell::of_array(batch.column(at), c.data_type, row))).collect());
        }
    }
    Ok(texts)
}
