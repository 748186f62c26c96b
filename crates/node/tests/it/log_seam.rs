//! The log's seam: what goes through it is everything that changes rows, as bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cachesql_node::{
    Answered, Entry, GroupSnapshot, LocalLog, Log, Node, NodeConfig, NodeError, Packed, Place as EntryPlace,
    RequestKey, RequestOptions, Settled, State, Statement, Submitted, TableConfig,
};
use cachesql_types::LogIndex;
use futures::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::fixture::{PLENTY, Place, empty, patiently, query, run, table, write};

/// Keeps the bytes of every entry, as a log on disk would.
struct RecordingLog {
    local: LocalLog,
    entries: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Log for RecordingLog {
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        self.local.lead()
    }

    fn submit(&self, writes: Vec<Packed>) -> BoxFuture<'_, Result<Submitted, NodeError>> {
        self.entries.lock().expect("no panic").extend(writes.iter().map(|write| write.entry.encode()));
        self.local.submit(writes)
    }
}

/// A log that cannot keep anything.
struct FullLog;

impl Log for FullLog {
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn submit(&self, _: Vec<Packed>) -> BoxFuture<'_, Result<Submitted, NodeError>> {
        Box::pin(std::future::ready(Err(NodeError::Internal("no space left".into()))))
    }
}

/// A log whose entries are agreed on, or lost, when a test says so.
#[derive(Clone)]
struct HeldLog {
    state: Arc<State>,
    held: Arc<Mutex<VecDeque<Held>>>,
    count: watch::Sender<usize>,
    /// Agreed on behind the proposer's back, and applied here when this member is to lead again.
    late: Arc<Mutex<Option<Vec<Packed>>>>,
}

fn unpacked(writes: Vec<Packed>) -> impl Iterator<Item = Entry> {
    writes.into_iter().map(|write| write.entry)
}

type Held = (Vec<Packed>, oneshot::Sender<Result<Settled, NodeError>>);

impl HeldLog {
    /// A node on such a log, with a table `t`.
    async fn node() -> (Arc<Node>, HeldLog) {
        let mut log = None;
        let make = |state: Arc<State>| {
            let held = HeldLog { state, held: Arc::default(), count: watch::Sender::new(0), late: Arc::default() };
            log = Some(held.clone());
            Arc::new(held) as Arc<dyn Log>
        };
        let node = Node::start_on(NodeConfig::new(PLENTY), make).await.expect("it starts");
        let log = log.expect("it was asked for");
        let created = write_later(&node, "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)", None);
        log.agree(1).await;
        patiently(created).await.expect("no panic").expect("agreed");
        (node, log)
    }

    /// Waits until so many entries are held.
    async fn holds(&self, entries: usize) {
        patiently(self.count.subscribe().wait_for(|count| *count >= entries)).await.expect("the log is there");
    }

    /// Agrees on the next entries, in order, at places with gaps between them.
    async fn agree(&self, entries: usize) {
        self.holds(entries).await;
        for _ in 0..entries {
            let (writes, told) = self.take();
            let index = LogIndex(self.state.index().0 + 3);
            let applied = self.state.apply_entries(index, unpacked(writes)).expect("what was rehearsed");
            told.send(Ok(Settled { index, applied })).expect("somebody waits");
        }
    }

    /// Agrees on the next entry, and tells its proposer that it does not know.
    async fn agree_unheard(&self) {
        self.holds(1).await;
        let (writes, told) = self.take();
        *self.late.lock().expect("no panic") = Some(writes);
        told.send(Err(NodeError::Unknown)).expect("somebody waits");
    }

    /// Loses the next entry.
    async fn lose(&self, error: NodeError) {
        self.holds(1).await;
        self.take().1.send(Err(error)).expect("somebody waits");
    }

    /// Proposals that are held.
    fn count(&self) -> usize {
        self.held.lock().expect("no panic").len()
    }

    fn take(&self) -> Held {
        let mut held = self.held.lock().expect("no panic");
        let first = held.pop_front().expect("held");
        self.count.send_replace(held.len());
        first
    }
}

impl Log for HeldLog {
    fn lead(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        if let Some(writes) = self.late.lock().expect("no panic").take() {
            self.state.apply_entries(self.state.index().next(), unpacked(writes)).expect("what was rehearsed");
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn submit(&self, writes: Vec<Packed>) -> BoxFuture<'_, Result<Submitted, NodeError>> {
        let (told, outcome) = oneshot::channel();
        let mut held = self.held.lock().expect("no panic");
        held.push_back((writes, told));
        self.count.send_replace(held.len());
        let submitted: Submitted = Box::pin(async move { outcome.await.expect("told, in the end") });
        Box::pin(std::future::ready(Ok(submitted)))
    }
}

/// Begins a write. Its outcome is how many rows it wrote, and whether that is an earlier request's answer.
fn write_later(
    node: &Arc<Node>,
    sql: &str,
    request_id: Option<&str>,
) -> JoinHandle<Result<(Option<u64>, bool), NodeError>> {
    let (node, statement) = (node.clone(), Statement::new(sql));
    let options = RequestOptions { request_id: request_id.map(Into::into), ..RequestOptions::default() };
    tokio::spawn(async move { node.sql(statement, &options).await.map(|answer| (answer.affected, answer.replayed)) })
}

fn rows_of(snapshot: &GroupSnapshot) -> Vec<(String, Vec<String>)> {
    let table_rows = |table: &Arc<cachesql_node::Table>| {
        let mut rows: Vec<String> =
            table.rows().filter_map(|id| table.row(id)).map(|row| format!("{:?}", row.values())).collect();
        rows.sort();
        (format!("{:?}", table.schema()), rows)
    };
    snapshot.tables().map(table_rows).collect()
}

#[tokio::test]
async fn a_member_that_replays_the_bytes_has_the_same_rows() {
    let place = Place::new(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO people VALUES (1, '王'), (2, NULL);",
    );
    let entries = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let config = place.config(vec![table("people"), TableConfig { max_rows: Some(2), ..empty("t") }]);
    let recording =
        |state| Arc::new(RecordingLog { local: LocalLog::new(state), entries: entries.clone() }) as Arc<dyn Log>;
    let node = Node::start_on(config, recording).await.expect("it starts");
    patiently(node.wait_ready()).await;

    write(&node, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')").await;
    write(&node, "UPDATE people SET name = name || '!' WHERE id = 1").await;
    write(&node, "CREATE TABLE keyless (v DOUBLE PRECISION)").await;
    write(&node, "INSERT INTO keyless VALUES (1.5), (1.5), (NULL)").await;
    write(&node, "CREATE INDEX by_v ON keyless (v)").await;
    let options = RequestOptions { request_id: Some("once".into()), ..RequestOptions::default() };
    for _ in 0..2 {
        patiently(node.sql(Statement::new("DELETE FROM keyless WHERE v IS NULL"), &options)).await.expect("one row");
    }
    patiently(node.clean("t")).await.expect("known");
    place.execute("INSERT INTO people VALUES (3, 'late');");
    patiently(node.load("people")).await.expect("loads");
    patiently(node.compact("people")).await.expect("known");
    node.shutdown().await;

    let bytes = entries.lock().expect("no panic").clone();
    let mut member = GroupSnapshot::empty();
    let mut request_ids = 0;
    for (at, bytes) in bytes.iter().enumerate() {
        let entry = Entry::decode(bytes).expect("its own bytes");
        request_ids += usize::from(entry.answered.is_some());
        member = member.apply(LogIndex(at as u64 + 1), &entry.operations).expect("what applied once applies again").0;
    }
    assert_eq!(request_ids, 1);
    assert_eq!(member.index(), node.snapshot().index());
    assert_eq!(rows_of(&member), rows_of(&node.snapshot()));
    assert_eq!(member.memory().total(), node.memory().used_bytes);
}

#[tokio::test]
async fn bytes_that_are_not_an_entry_are_refused() {
    let key = RequestKey::of_parts("a", 7).expect("sound id");
    let answered = Answered { key, outcomes: vec![1, 2, 3].into() };
    for answered in [None, Some(answered)] {
        let entry = Entry {
            place: EntryPlace { run: 1, step: 2 },
            after: EntryPlace::default(),
            answered,
            operations: Arc::default(),
        };
        let bytes = entry.encode();
        let read = Entry::decode(&bytes).expect("its own bytes");
        assert_eq!((read.place, read.after, &read.answered), (entry.place, entry.after, &entry.answered));
        for cut in 0..bytes.len() {
            assert!(Entry::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(Entry::decode(&[&*bytes, &[0]].concat()).is_err());
    }
    assert!(Entry::decode(&[9, 1, 2]).is_err());
}

#[tokio::test]
async fn a_write_that_the_log_does_not_take_did_not_happen() {
    let full = |_| Arc::new(FullLog) as Arc<dyn Log>;
    let refused = Node::start_on(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(PLENTY) }, full);
    assert!(matches!(refused.await, Err(NodeError::Internal(_))));
    let node = Node::start_on(NodeConfig::new(PLENTY), full).await.expect("it starts");
    assert!(run(&node, "CREATE TABLE t (a BIGINT)").await.is_err());
    assert!(matches!(run(&node, "SELECT * FROM t").await, Err(NodeError::UnknownTable { .. })));
}

#[tokio::test]
async fn writes_are_planned_on_those_on_their_way_and_seen_once_agreed_on() {
    let (node, log) = HeldLog::node().await;
    let first = write_later(&node, "INSERT INTO t VALUES (1, 'a')", None);
    log.holds(1).await;
    let refused = run(&node, "INSERT INTO t VALUES (1, 'b')").await.expect_err("the key is on its way");
    assert_eq!(refused.sqlstate(), "23505");
    let second = write_later(&node, "UPDATE t SET v = v || '!'", None);
    log.holds(2).await;
    assert!(query(&node, "SELECT * FROM t").await.is_empty());
    log.agree(1).await;
    assert_eq!(patiently(first).await.expect("no panic").expect("agreed"), (Some(1), false));
    assert_eq!(query(&node, "SELECT * FROM t").await, ["1|a"]);
    log.agree(1).await;
    assert_eq!(patiently(second).await.expect("no panic").expect("agreed"), (Some(1), false));
    assert_eq!(query(&node, "SELECT * FROM t").await, ["1|a!"]);
}

#[tokio::test]
async fn writes_that_come_while_others_are_on_their_way_are_proposed_together() {
    let (node, log) = HeldLog::node().await;
    let first = write_later(&node, "INSERT INTO t VALUES (1, 'a')", None);
    log.holds(1).await;
    let second = write_later(&node, "INSERT INTO t VALUES (2, 'a')", None);
    log.holds(2).await;
    let insert = |id: u32| format!("INSERT INTO t VALUES ({id}, 'a')");
    let others: Vec<_> = (3..20).map(|id| write_later(&node, &insert(id), Some(&id.to_string()))).collect();
    // What is refused is told at once, and changes nothing for the others; it came after them.
    let refused = write_later(&node, "INSERT INTO t VALUES (3, 'b')", None);
    let refused = patiently(refused).await.expect("no panic").expect_err("the key is on its way");
    assert_eq!(refused.sqlstate(), "23505");
    assert_eq!(log.count(), 2, "they wait");
    let again = write_later(&node, &insert(4), Some("4"));
    log.agree(1).await;
    log.holds(2).await;
    log.agree(2).await;
    assert_eq!(log.count(), 0, "one proposal");
    let before = node.snapshot().index();
    for write in [first, second].into_iter().chain(others) {
        assert_eq!(patiently(write).await.expect("no panic").expect("agreed"), (Some(1), false));
    }
    assert_eq!(patiently(again).await.expect("no panic").expect("agreed"), (Some(1), true));
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["19"]);
    assert_eq!(node.snapshot().index(), before);
}

#[tokio::test]
async fn writes_that_wait_are_lost_with_those_they_were_planned_on() {
    let (node, log) = HeldLog::node().await;
    let first = write_later(&node, "INSERT INTO t VALUES (1, 'a')", None);
    log.holds(1).await;
    let second = write_later(&node, "INSERT INTO t VALUES (2, 'a')", None);
    log.holds(2).await;
    let waiting = write_later(&node, "UPDATE t SET v = 'b' WHERE id = 1", Some("once"));
    let refused = write_later(&node, "INSERT INTO t VALUES (1, 'b')", None);
    let refused = patiently(refused).await.expect("no panic").expect_err("the key is on its way");
    assert_eq!(refused.sqlstate(), "23505");
    log.lose(NodeError::Unknown).await;
    log.agree(1).await;
    assert!(matches!(patiently(first).await.expect("no panic"), Err(NodeError::Unknown)));
    assert!(matches!(patiently(second).await.expect("no panic"), Err(NodeError::Superseded)));
    assert!(matches!(patiently(waiting).await.expect("no panic"), Err(NodeError::Superseded)));
    // Nothing of it is remembered, and its id is free.
    let again = write_later(&node, "UPDATE t SET v = 'b' WHERE id = 1", Some("once"));
    log.agree(1).await;
    assert_eq!(patiently(again).await.expect("no panic").expect("agreed"), (Some(0), false));
    assert!(query(&node, "SELECT * FROM t").await.is_empty());
}

#[tokio::test]
async fn a_write_that_is_lost_takes_those_planned_on_it_along() {
    let (node, log) = HeldLog::node().await;
    let first = write_later(&node, "INSERT INTO t VALUES (1, 'a')", None);
    log.holds(1).await;
    let second = write_later(&node, "UPDATE t SET v = 'b'", None);
    log.holds(2).await;
    log.lose(NodeError::Unknown).await;
    log.agree(1).await;
    assert!(matches!(patiently(first).await.expect("no panic"), Err(NodeError::Unknown)));
    assert!(matches!(patiently(second).await.expect("no panic"), Err(NodeError::Superseded)));
    // The next begins from what was agreed on.
    let third = write_later(&node, "INSERT INTO t VALUES (1, 'c')", None);
    log.agree(1).await;
    assert_eq!(patiently(third).await.expect("no panic").expect("agreed"), (Some(1), false));
    assert_eq!(query(&node, "SELECT * FROM t").await, ["1|c"]);
}

#[tokio::test]
async fn a_request_id_that_is_on_its_way_is_waited_for() {
    let (node, log) = HeldLog::node().await;
    let first = write_later(&node, "INSERT INTO t VALUES (1, 'a') RETURNING id", Some("once"));
    log.holds(1).await;
    let again = write_later(&node, "INSERT INTO t VALUES (1, 'a') RETURNING id", Some("once"));
    let other = write_later(&node, "INSERT INTO t VALUES (2, 'a')", Some("once"));
    let reused = patiently(other).await.expect("no panic").expect_err("another request");
    assert!(matches!(reused, NodeError::RequestIdReused { .. }), "{reused}");
    log.agree(1).await;
    assert_eq!(patiently(first).await.expect("no panic").expect("agreed"), (Some(1), false));
    assert_eq!(patiently(again).await.expect("no panic").expect("agreed"), (Some(1), true));
    assert_eq!(query(&node, "SELECT id FROM t").await, ["1"]);
}

#[tokio::test]
async fn a_retry_of_what_was_agreed_on_unheard_is_not_applied_again() {
    let (node, log) = HeldLog::node().await;
    let setup = write_later(&node, "INSERT INTO t VALUES (1, '')", None);
    log.agree(1).await;
    patiently(setup).await.expect("no panic").expect("agreed");
    let append = "UPDATE t SET v = v || 'x'";
    let first = write_later(&node, append, Some("once"));
    log.agree_unheard().await;
    // The node asks again by itself, and so may its caller.
    assert_eq!(patiently(first).await.expect("no panic").expect("the answer of then"), (Some(1), true));
    let again = write_later(&node, append, Some("once"));
    assert_eq!(patiently(again).await.expect("no panic").expect("the answer of then"), (Some(1), true));
    assert_eq!(query(&node, "SELECT v FROM t").await, ["x"]);
}

#[tokio::test]
async fn a_member_that_is_fenced_stops_the_writer_and_not_the_readers() {
    let (node, log) = HeldLog::node().await;
    let first = write_later(&node, "INSERT INTO t VALUES (1, 'a')", None);
    log.lose(NodeError::Fenced("rot".into())).await;
    let fenced = patiently(first).await.expect("no panic").expect_err("fenced");
    assert_eq!(fenced.sqlstate(), "58000");
    let next = run(&node, "INSERT INTO t VALUES (1, 'a')").await.expect_err("still fenced");
    assert!(matches!(next, NodeError::Fenced(_)), "{next}");
    assert_eq!(query(&node, "SELECT 1").await, ["1"]);
}
