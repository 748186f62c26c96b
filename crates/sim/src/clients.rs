//! Clients: each asks one thing after the other, of whichever node, and writes down what it was answered.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::{sleep, timeout};

use crate::check::MemberRows;
use crate::cluster::{Answer, Asked, Cluster, Failure};
use crate::history::{Action, History, Level, Operation, Outcome};

/// Registers that clients write and read.
const REGISTERS: i64 = 6;
/// Longer than a node takes to say anything.
const PATIENCE: Duration = Duration::from_secs(12);
/// Time between two looks at how far the run is.
const LOOK: Duration = Duration::from_millis(20);

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The nodes become a group.
    Founding,
    /// Clients work, and faults happen.
    Working,
    /// Clients end what they are at, and what was broken is mended.
    Mending,
    /// All nodes say that they have the same.
    Quiet,
}

/// What clients share with each other and with whoever drives the run.
pub(crate) struct Desk {
    pub(crate) cluster: Cluster,
    pub(crate) seed: u64,
    pub(crate) phase: Cell<Phase>,
    pub(crate) history: RefCell<History>,
    /// What every member has at the end.
    pub(crate) members: RefCell<Vec<MemberRows>>,
    /// Calls and answers are counted here, all together.
    count: Cell<u64>,
    values: Cell<i64>,
}

impl Desk {
    pub(crate) fn new(cluster: Cluster, seed: u64) -> Rc<Desk> {
        Rc::new(Desk {
            cluster,
            seed,
            phase: Cell::new(Phase::Founding),
            history: RefCell::default(),
            members: RefCell::default(),
            count: Cell::new(0),
            values: Cell::new(0),
        })
    }

    fn next_count(&self) -> u64 {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }

    /// A number that nobody else gets.
    fn next_value(&self) -> i64 {
        self.values.set(self.values.get() + 1);
        self.values.get()
    }

    async fn reached(&self, phase: Phase) {
        while self.phase.get() < phase {
            sleep(LOOK).await;
        }
    }
}

fn now_ms() -> u64 {
    turmoil::sim_elapsed().map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// What the host of the clients runs. It ends when every member has said at the end what it has.
pub(crate) async fn work(desk: Rc<Desk>) -> turmoil::Result {
    desk.reached(Phase::Working).await;
    let mut random = SmallRng::seed_from_u64(desk.seed ^ 0x00C1_1E47);
    let first = Asked::Sql {
        statement: "INSERT INTO counters VALUES (1, 0)".into(),
        level: Level::Any,
        token: None,
        request_id: Some("first".into()),
    };
    let name = desk.cluster.names().first().cloned().unwrap_or_default();
    let (_, answer) = desk.cluster.ask(&name, first);
    answer.await?.map_err(|failure| format!("nothing can be written to a group that has just settled: {failure:?}"))?;
    let clients: Vec<_> = (0..random.random_range(3..=6))
        .map(|number| {
            let random = SmallRng::seed_from_u64(random.random());
            tokio::task::spawn_local(Client::new(desk.clone(), number, random).run())
        })
        .collect();
    for client in clients {
        client.await?;
    }
    desk.reached(Phase::Quiet).await;
    look_at_all(&desk).await
}

/// Writes down what every member has, and what its registers are.
async fn look_at_all(desk: &Rc<Desk>) -> turmoil::Result {
    for name in desk.cluster.names() {
        let (mut rows, mut index) = (Vec::new(), 0);
        for table in ["registers", "counters", "ledger"] {
            let called = desk.next_count();
            let statement = format!("SELECT * FROM {table} ORDER BY k");
            let asked = Asked::Sql { statement, level: Level::Linearizable, token: None, request_id: None };
            let (life, answer) = desk.cluster.ask(name, asked);
            let answer =
                answer.await?.map_err(|failure| format!("{name} does not answer when all is quiet: {failure:?}"))?;
            index = answer.index;
            if table == "registers" {
                note_registers(desk, name, (life, called), &answer);
            }
            rows.push(answer.rows.iter().map(|row| row.join("|")).collect());
        }
        desk.members.borrow_mut().push(MemberRows { node: name.clone(), index, rows });
    }
    Ok(())
}

/// One look at all registers counts as a read of each.
fn note_registers(desk: &Desk, node: &str, (life, called): (u64, u64), answer: &Answer) {
    let answered = desk.next_count();
    for key in 0..REGISTERS {
        let row = answer.rows.iter().find(|row| row.first() == Some(&key.to_string()));
        let value = row.and_then(|row| row.get(1)?.parse().ok());
        let outcome = Outcome::Done { value, index: answer.index };
        let action = Action::Get { key, level: Level::Linearizable };
        let (node, at_ms) = (node.to_owned(), (now_ms(), now_ms()));
        let client = usize::MAX;
        desk.history.borrow_mut().operations.push(Operation {
            client,
            node,
            life,
            action,
            called,
            answered,
            at_ms,
            outcome,
        });
    }
}

struct Client {
    desk: Rc<Desk>,
    number: usize,
    random: SmallRng,
    /// The log index of the newest that it saw or wrote.
    seen: u64,
    /// The node that it asked last.
    node: String,
    /// Time that it takes between two questions, at the most.
    pause_ms: u64,
    /// The ids of its requests so far: now and then it asks for an old one again.
    requests: Vec<String>,
}

impl Client {
    fn new(desk: Rc<Desk>, number: usize, mut random: SmallRng) -> Client {
        let pause_ms = if random.random_ratio(1, 3) { 30 } else { 400 };
        let node = desk.cluster.names().first().cloned().unwrap_or_default();
        Client { desk, number, random, seen: 0, node, pause_ms, requests: Vec::new() }
    }

    async fn run(mut self) {
        while self.desk.phase.get() < Phase::Mending {
            let pause = self.random.random_range(1..=self.pause_ms);
            sleep(Duration::from_millis(pause)).await;
            if self.random.random_ratio(1, 2) {
                let names = self.desk.cluster.names();
                let at = self.random.random_range(0..names.len());
                self.node = names.get(at).cloned().unwrap_or_default();
            }
            let key = self.random.random_range(0..REGISTERS);
            match self.random.random_range(0..10) {
                0..=2 => drop(self.act(Action::Put { key, value: self.desk.next_value() }).await),
                3..=4 => drop(self.act(Action::Get { key, level: Level::Linearizable }).await),
                5 => drop(self.act(Action::Get { key, level: Level::Session }).await),
                6 => drop(self.act(Action::Get { key, level: Level::Any }).await),
                7 => drop(self.act(Action::Insert { id: self.desk.next_value() }).await),
                _ => self.add().await,
            }
        }
    }

    /// Adds to the counter until it knows that it has, or has tried often; each try at another node.
    async fn add(&mut self) {
        let old = self.random.random_range(0..4 * self.requests.len().max(8));
        let request = self.requests.get(old).cloned().unwrap_or_else(|| format!("r{}", self.desk.next_value()));
        self.requests.push(request.clone());
        for _ in 0..4 {
            if !matches!(self.act(Action::Add { request: request.clone() }).await, Outcome::Unknown(_)) {
                // Now and then a client did not hear the answer, and asks again.
                if !self.random.random_ratio(1, 4) {
                    return;
                }
            }
            let names = self.desk.cluster.names();
            let at = self.random.random_range(0..names.len());
            self.node = names.get(at).cloned().unwrap_or_default();
            let pause = self.random.random_range(1..=1_500);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    async fn act(&mut self, action: Action) -> Outcome {
        let (called, from_ms) = (self.desk.next_count(), now_ms());
        let (life, answer) = self.desk.cluster.ask(&self.node, asked(&action, self.seen));
        let outcome = match timeout(PATIENCE, answer).await {
            Ok(Ok(Ok(answer))) => {
                self.seen = self.seen.max(answer.index);
                let value = answer.rows.first().and_then(|row| row.first()?.parse().ok());
                Outcome::Done { value, index: answer.index }
            }
            Ok(Ok(Err(Failure::Refused(why)))) => Outcome::NotDone(why),
            Ok(Ok(Err(Failure::Unknown(why)))) => Outcome::Unknown(why),
            Ok(Err(_)) => Outcome::Unknown("the node crashed".into()),
            Err(_) => Outcome::Unknown("no answer".into()),
        };
        let (client, node) = (self.number, self.node.clone());
        let (answered, at_ms) = (self.desk.next_count(), (from_ms, now_ms()));
        let operation = Operation { client, node, life, action, called, answered, at_ms, outcome: outcome.clone() };
        self.desk.history.borrow_mut().operations.push(operation);
        outcome
    }
}

fn asked(action: &Action, seen: u64) -> Asked {
    let write = |statement: String, request_id| Asked::Sql { statement, level: Level::Any, token: None, request_id };
    match action {
        Action::Put { key, value } => {
            let statement =
                format!("INSERT INTO registers VALUES ({key}, {value}) ON CONFLICT (k) DO UPDATE SET v = excluded.v");
            write(statement, None)
        }
        Action::Get { key, level } => Asked::Sql {
            statement: format!("SELECT v FROM registers WHERE k = {key}"),
            level: *level,
            token: (*level == Level::Session).then_some(seen),
            request_id: None,
        },
        Action::Add { request } => write("UPDATE counters SET v = v + 1 WHERE k = 1".into(), Some(request.clone())),
        Action::Insert { id } => write(format!("INSERT INTO ledger VALUES ({id})"), None),
    }
}
