//! Nodes with a data folder: what was acknowledged is there after a stop, however it came.

use std::sync::Arc;

use cachesql_node::{Consistency, LoadPhase, Node, NodeConfig, NodeError, RequestOptions, Statement, TableConfig};

use crate::fixture::{PLENTY, Place, empty, patiently, query, run, started, table, write};

const PEOPLE: &str =
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO people VALUES (1, '王'), (2, NULL);";

/// The configuration of a node that keeps its data in the place.
fn kept(place: &Place, tables: Vec<TableConfig>, seed: u64) -> NodeConfig {
    NodeConfig { data: Some(place.path("data")), seed, ..place.config(tables) }
}

fn named(id: &str) -> RequestOptions {
    RequestOptions { request_id: Some(id.into()), ..RequestOptions::default() }
}

/// Leaves a node as a kill would: nothing is waited for but that its folder is free.
async fn killed(node: Arc<Node>) {
    patiently(node.shutdown()).await;
    drop(node);
}

#[tokio::test]
async fn rows_definitions_and_answers_are_there_after_a_restart() {
    let place = Place::new(PEOPLE);
    let tables = || vec![table("people"), TableConfig { max_rows: Some(3), ..empty("t") }];
    let node = started(kept(&place, tables(), 1)).await;
    write(&node, "INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    write(&node, "UPDATE people SET name = 'x' WHERE id = 2").await;
    write(&node, "CREATE TABLE loose (v DOUBLE PRECISION)").await;
    write(&node, "INSERT INTO loose VALUES (1.5), (NULL)").await;
    write(&node, "CREATE INDEX by_v ON loose (v)").await;
    let insert = || Statement::new("INSERT INTO t VALUES (3, 'c') RETURNING id, v");
    let first = patiently(node.sql(insert(), &named("once"))).await.expect("a new row");
    let token = first.token.clone();
    killed(node).await;

    // The origin has changed meanwhile; a table that is never refreshed keeps what was written to it here.
    place.execute("INSERT INTO people VALUES (3, 'late');");
    let node = started(kept(&place, tables(), 2)).await;
    assert_eq!(query(&node, "SELECT id, name FROM people ORDER BY id").await, ["1|王", "2|x"]);
    assert_eq!(query(&node, "SELECT id, v FROM t ORDER BY id").await, ["1|a", "2|b", "3|c"]);
    assert_eq!(query(&node, "SELECT v FROM loose ORDER BY v").await, ["1.5", "~"]);
    assert_eq!(node.snapshot().table("loose").map(|t| t.schema().indexes.len()), Some(1));
    assert_eq!(node.snapshot().table("t").and_then(|t| t.retention().max_rows), Some(3));
    // A token from before is served, and a retry gets the answer of then.
    let options = RequestOptions { consistency: Consistency::Session(Some(token)), ..RequestOptions::default() };
    patiently(node.sql(Statement::new("SELECT 1"), &options)).await.expect("the token's index is there");
    let again = patiently(node.sql(insert(), &named("once"))).await.expect("the answer of then");
    assert!(again.replayed);
    assert_eq!((again.affected, again.token), (first.affected, first.token));
    assert_eq!(crate::fixture::texts(again.rows.expect("returning")).await, ["3|c"]);
    // Loads work as before, and by difference.
    let report = patiently(node.load("people")).await.expect("loads");
    assert_eq!((report.put, report.deleted), (2, 0));
    killed(node).await;
}

#[tokio::test]
async fn what_is_configured_anew_is_made_of_the_rows_that_are_there() {
    let place = Place::new(PEOPLE);
    let node = started(kept(&place, vec![table("people")], 1)).await;
    killed(node).await;
    // The origin is gone, so that nothing can be loaded again.
    place.execute("DROP TABLE people;");
    let people =
        TableConfig { indexes: vec![vec!["name".into()], vec!["id".into()]], max_rows: Some(10), ..table("people") };
    let node = started(kept(&place, vec![people, empty("new")], 2)).await;
    let snapshot = node.snapshot();
    let people = snapshot.table("people").expect("kept");
    assert_eq!(people.schema().indexes.iter().map(|i| i.name.as_str()).collect::<Vec<_>>(), ["name"]);
    assert_eq!((people.row_count(), people.retention().max_rows), (2, Some(10)));
    assert!(snapshot.table("new").is_some());
    let loads = node.loads().borrow().clone();
    assert!(loads.iter().all(|load| load.phase == LoadPhase::Loaded && load.loaded_once));
    assert_eq!(loads.first().map(|load| load.rows), Some(2));
    killed(node).await;
}

#[tokio::test]
async fn a_log_that_has_grown_is_replaced_by_its_state() {
    let place = Place::new(PEOPLE);
    let node = started(kept(&place, vec![empty("t")], 1)).await;
    // Entries of together more than what makes a snapshot due.
    let bytes = usize::try_from(cachesql_types::limits::SNAPSHOT_LOG_BYTES).expect("small") / 8;
    for _ in 0..10 {
        let params = vec![cachesql_types::Value::text("x".repeat(bytes))];
        let insert = Statement { sql: "INSERT INTO t VALUES (1, $1)".into(), params };
        patiently(node.sql(insert, &RequestOptions::default())).await.expect("a row");
        write(&node, "TRUNCATE t").await;
    }
    let folder = place.path("data").join("group-main");
    let has_snapshot = || {
        let names = std::fs::read_dir(&folder)
            .expect("the data folder")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.into_iter().any(|name| name.ends_with(".snapshot"))
    };
    let due = async {
        while !has_snapshot() {
            tokio::task::yield_now().await;
        }
    };
    patiently(due).await;
    write(&node, "INSERT INTO t VALUES (2, 'after')").await;
    killed(node).await;
    let node = started(kept(&place, vec![empty("t")], 2)).await;
    assert_eq!(query(&node, "SELECT * FROM t").await, ["2|after"]);
    killed(node).await;
}

#[tokio::test]
async fn a_write_larger_than_the_log_keeps_is_refused_and_harms_nothing() {
    let place = Place::new(PEOPLE);
    let node = started(kept(&place, vec![empty("t")], 1)).await;
    let half = cachesql_types::Value::text("x".repeat(cachesql_types::limits::LOG_RECORD_BYTES / 2));
    let insert = Statement { sql: "INSERT INTO t VALUES (1, $1), (2, $2)".into(), params: vec![half.clone(), half] };
    let refused = patiently(node.sql(insert, &RequestOptions::default())).await.expect_err("too large");
    assert_eq!(refused.sqlstate(), "54000");
    assert!(matches!(refused, NodeError::WriteTooLarge { .. }), "{refused}");
    write(&node, "INSERT INTO t VALUES (1, 'a')").await;
    assert_eq!(query(&node, "SELECT * FROM t").await, ["1|a"]);
    killed(node).await;
    let node = started(kept(&place, vec![empty("t")], 2)).await;
    assert_eq!(query(&node, "SELECT * FROM t").await, ["1|a"]);
    killed(node).await;
}

#[tokio::test]
async fn a_folder_belongs_to_one_node_and_is_used_by_one() {
    let place = Place::new(PEOPLE);
    let node = started(kept(&place, vec![], 1)).await;
    let refused = Node::start(kept(&place, vec![], 2)).await.expect_err("it is in use");
    assert!(matches!(&refused, NodeError::Config(text) if text.contains("another process uses it")), "{refused}");
    killed(node).await;
    let other = NodeConfig { name: "other".into(), ..kept(&place, vec![], 2) };
    let refused = Node::start(other).await.expect_err("another node's folder");
    assert!(matches!(&refused, NodeError::Config(text) if text.contains("belongs to node \"local\"")), "{refused}");
}

#[tokio::test]
async fn a_load_that_a_stop_broke_off_is_given_up_and_made_again() {
    let place = Place::new(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO people WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT i, 'name ' || i FROM n;",
    );
    let node = Node::start(kept(&place, vec![table("people")], 1)).await.expect("it starts");
    let mut loads = node.loads();
    patiently(loads.wait_for(|loads| loads.iter().any(|load| load.rows > 0))).await.expect("the node is there");
    killed(node).await;
    let node = started(kept(&place, vec![table("people")], 2)).await;
    assert_eq!(node.snapshot().loads().count(), 0);
    assert_eq!(query(&node, "SELECT count(*) FROM people").await, ["50000"]);
    assert!(run(&node, "INSERT INTO people VALUES (1, 'there')").await.is_err());
    killed(node).await;
}

#[tokio::test]
async fn a_node_without_a_folder_keeps_nothing() {
    let node = started(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(PLENTY) }).await;
    write(&node, "INSERT INTO t VALUES (1, 'a')").await;
    killed(node).await;
    let node = started(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(PLENTY) }).await;
    assert!(query(&node, "SELECT * FROM t").await.is_empty());
}
