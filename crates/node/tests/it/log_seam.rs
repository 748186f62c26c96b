//! The log's seam: what goes through it is everything that changes rows, as bytes.

use std::sync::{Arc, Mutex};

use cachesql_node::{Entry, GroupSnapshot, Log, Node, NodeConfig, NodeError, RequestOptions, Statement, TableConfig};
use cachesql_types::LogIndex;
use futures::future::BoxFuture;

use crate::fixture::{PLENTY, Place, empty, patiently, query, run, started, table, write};

/// Keeps the bytes of every entry, as a log on disk would.
#[derive(Default)]
struct RecordingLog(Mutex<Vec<Vec<u8>>>);

impl Log for RecordingLog {
    fn append<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<LogIndex, NodeError>> {
        let mut entries = self.0.lock().expect("no panic");
        entries.push(entry.encode());
        let index = LogIndex(entries.len() as u64);
        Box::pin(std::future::ready(Ok(index)))
    }
}

/// A log that skips a position.
struct SkippingLog;

impl Log for SkippingLog {
    fn append<'a>(&'a self, _entry: &'a Entry) -> BoxFuture<'a, Result<LogIndex, NodeError>> {
        Box::pin(std::future::ready(Ok(LogIndex(7))))
    }
}

/// A log that cannot keep anything.
struct FullLog;

impl Log for FullLog {
    fn append<'a>(&'a self, _entry: &'a Entry) -> BoxFuture<'a, Result<LogIndex, NodeError>> {
        Box::pin(std::future::ready(Err(NodeError::Internal("no space left".into()))))
    }
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
    let log = Arc::new(RecordingLog::default());
    let config = place.config(vec![table("people"), TableConfig { max_rows: Some(2), ..empty("t") }]);
    let node = Node::start_on(config, log.clone()).await.expect("it starts");
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

    let bytes = log.0.lock().expect("no panic").clone();
    let mut member = GroupSnapshot::empty();
    let mut request_ids = 0;
    for (at, bytes) in bytes.iter().enumerate() {
        let entry = Entry::decode(bytes).expect("its own bytes");
        request_ids += usize::from(entry.request.is_some());
        member = member.apply(LogIndex(at as u64 + 1), &entry.operations).expect("what applied once applies again").0;
    }
    assert_eq!(request_ids, 1);
    assert_eq!(member.index(), node.snapshot().index());
    assert_eq!(rows_of(&member), rows_of(&node.snapshot()));
    assert_eq!(member.memory().total(), node.memory().used_bytes);
}

#[tokio::test]
async fn bytes_that_are_not_an_entry_are_refused() {
    let entry = Entry { request: None, operations: Arc::default() }.encode();
    assert!(Entry::decode(&entry).is_ok());
    for broken in [&[][..], &[0], &[9, 1, 2], &[2], &[2, 5, b'a'], &[2, 1, b'a', 0, 0], &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    {
        assert!(Entry::decode(broken).is_err(), "{broken:?}");
    }
}

#[tokio::test]
async fn a_write_that_the_log_does_not_take_did_not_happen() {
    let refused = Node::start_on(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(PLENTY) }, Arc::new(FullLog));
    assert!(matches!(refused.await, Err(NodeError::Internal(_))));
    let node = Node::start_on(NodeConfig::new(PLENTY), Arc::new(FullLog)).await.expect("it starts");
    assert!(run(&node, "CREATE TABLE t (a BIGINT)").await.is_err());
    assert!(matches!(run(&node, "SELECT * FROM t").await, Err(NodeError::UnknownTable { .. })));
}

#[tokio::test]
async fn a_log_that_disagrees_stops_the_writer_and_not_the_readers() {
    let node = Node::start_on(NodeConfig::new(PLENTY), Arc::new(SkippingLog)).await.expect("it starts");
    for _ in 0..2 {
        let fenced = run(&node, "CREATE TABLE t (a BIGINT)").await.expect_err("not where it was rehearsed");
        assert!(matches!(fenced, NodeError::Fenced(_)), "{fenced:?}");
        assert_eq!(fenced.sqlstate(), "58000");
    }
    assert_eq!(query(&node, "SELECT 1").await, ["1"]);
    let other = started(NodeConfig::new(PLENTY)).await;
    assert!(other.ready());
}
