//! The original CacheSQL's operations, as its interface describes them.

use std::sync::Arc;

use cachesql_node::{Node, NodeConfig, NodeError, RequestOptions, TableConfig};

use crate::fixture::{PLENTY, Place, direct_texts, empty, patiently, queried, query, started, texts, write};

const CARDS: &str = "CREATE TABLE KCA2 (AAC001 INTEGER, AAB004 TEXT, AAC002 TEXT, AMOUNT NUMERIC(10,2));
    INSERT INTO KCA2 VALUES (12345, '12345', '007', 10), (12346, 'Köln', '7', 20), (12347, 'Köln', NULL, NULL), (12348, '', 'null', -5);";

async fn cards() -> (Place, Arc<Node>) {
    let place = Place::new(CARDS);
    let cards = TableConfig {
        indexes: vec![vec!["AAC001".into()], vec!["AAB004".into()], vec!["AAB004".into(), "AAC002".into()]],
        ..queried("KCA2", "SELECT * FROM KCA2 ORDER BY AAC001")
    };
    let node = started(place.config(vec![cards])).await;
    (place, node)
}

fn pairs(others: &[(&str, &str)]) -> Vec<(String, String)> {
    others.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn rows_are_found_by_column_and_text() {
    let (_place, node) = cards().await;
    let original = node.original();
    let ids = |rows: Result<cachesql_node::DirectRows, NodeError>| {
        let mut ids: Vec<String> =
            direct_texts(&rows.expect("rows")).iter().filter_map(|r| r.split('|').next().map(str::to_owned)).collect();
        ids.sort();
        ids
    };
    // A number column takes numbers, a text column takes the same text as it is; names match without regard to case.
    assert_eq!(ids(original.get("KCA2", "AAC001", "12345")), ["12345"]);
    assert_eq!(ids(original.get("kca2", "aac001", "12345")), ["12345"]);
    assert_eq!(ids(original.get("KCA2", "AAB004", "12345")), ["12345"]);
    assert_eq!(ids(original.get("KCA2", "AAC002", "007")), ["12345"]);
    assert_eq!(ids(original.get("KCA2", "AAC002", "7")), ["12346"]);
    assert_eq!(ids(original.get("KCA2", "AAC002", "null")), ["12348"]);
    assert_eq!(ids(original.get("KCA2", "AAB004", "")), ["12348"]);
    assert_eq!(ids(original.get("KCA2", "AAB004", "nowhere")), Vec::<String>::new());
    // A text that only looks like a number equals no number.
    assert_eq!(ids(original.get("KCA2", "AAC001", "012345")), Vec::<String>::new());
    // Strictly less and more, both ends of a range included; NULL is in none of them.
    assert_eq!(ids(original.less("KCA2", "AAC001", "12347")), ["12345", "12346"]);
    assert_eq!(ids(original.more("KCA2", "AAC001", "12347")), ["12348"]);
    assert_eq!(ids(original.range("KCA2", "AAC001", "12346", "12347")), ["12346", "12347"]);
    assert_eq!(ids(original.range("KCA2", "AAC001", "12347", "12346")), Vec::<String>::new());
    assert_eq!(ids(original.less("KCA2", "AAB004", "L")), ["12345", "12346", "12347", "12348"]);
    assert_eq!(ids(original.more("KCA2", "AMOUNT", "-6")), ["12345", "12346", "12348"]);
    // Composite, by the index or by columns that have none.
    assert_eq!(ids(original.composite("KCA2", "AAB004+AAC002", "Köln,7")), ["12346"]);
    assert_eq!(ids(original.composite("KCA2", "aac002+aac001", "007,12345")), ["12345"]);
    assert_eq!(ids(original.composite("KCA2", "AAB004+AAC002", "Köln,8")), Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_asked_is_told() {
    let (_place, node) = cards().await;
    let original = node.original();
    assert!(matches!(original.get("nowhere", "A", "1"), Err(NodeError::UnknownTable { table }) if table == "nowhere"));
    assert!(matches!(original.get("KCA2", "A", "1"), Err(NodeError::UnknownColumn { column, .. }) if column == "A"));
    assert_eq!(original.get("KCA2", "AAC001", "abc").expect("nothing equals it").len(), 0);
    assert_eq!(original.less("KCA2", "AAC001", "abc").expect_err("no number").sqlstate(), "22P02");
    assert_eq!(original.less("KCA2", "AAC001", "007").expect_err("no number").sqlstate(), "22P02");
    let count = original.composite("KCA2", "AAB004+AAC002", "Köln").expect_err("one value of two");
    assert!(matches!(count, NodeError::ValueCount { expected: 2, given: 1, .. }));
    let refused = original.query("DELETE FROM KCA2", &RequestOptions::default()).await.expect_err("it only reads");
    assert_eq!(refused.sqlstate(), "0A000");
    assert_eq!(query(&node, "SELECT count(*) FROM KCA2").await, ["4"]);
}

#[tokio::test]
async fn an_insert_replaces_the_rows_of_its_value() {
    let (_place, node) = cards().await;
    let insert = async |column: &str, value: &str, others: &[(&str, &str)]| {
        let options = RequestOptions::default();
        patiently(node.original().insert("kca2", column, value, &pairs(others), &options)).await.map(|w| w.affected)
    };
    // A new row of a table without a key; what is not given is NULL.
    assert_eq!(insert("AAC001", "1", &[("AAB004", "new"), ("AMOUNT", "1.50")]).await.expect("new row"), 1);
    assert_eq!(query(&node, "SELECT * FROM KCA2 WHERE AAC001 = 1").await, ["1|new|~|1.50"]);
    // The same value again: the row is replaced whole.
    assert_eq!(insert("AAC001", "1", &[("AAC002", "010")]).await.expect("the row again"), 1);
    assert_eq!(query(&node, "SELECT * FROM KCA2 WHERE AAC001 = 1").await, ["1|~|010|~"]);
    assert_eq!(query(&node, "SELECT count(*) FROM KCA2").await, ["5"]);
    // The column itself among the others says the same, or is a mistake.
    assert_eq!(insert("AAC001", "1", &[("aac001", "1")]).await.expect("the same"), 1);
    assert!(matches!(insert("AAC001", "1", &[("AAC001", "2")]).await, Err(NodeError::RepeatedColumn { .. })));
    assert!(matches!(insert("AAC001", "1", &[("NOPE", "2")]).await, Err(NodeError::UnknownColumn { .. })));
    assert_eq!(insert("AAC001", "007", &[]).await.expect_err("no number").sqlstate(), "22P02");
}

#[tokio::test]
async fn an_insert_respects_the_primary_key() {
    let node = started(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(PLENTY) }).await;
    write(&node, "INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    let options = RequestOptions::default();
    let insert = |column: &'static str, value: &'static str, others: &[(&str, &str)]| {
        let (node, others, options) = (node.clone(), pairs(others), options.clone());
        async move { patiently(node.original().insert("t", column, value, &others, &options)).await }
    };
    insert("id", "1", &[("v", "c")]).await.expect("the row of the key");
    assert_eq!(query(&node, "SELECT * FROM t ORDER BY id").await, ["1|c", "2|b"]);
    // By another column: that row goes, and its key is free for the new one.
    insert("v", "b", &[("id", "3")]).await.expect("the row of the value");
    assert_eq!(query(&node, "SELECT * FROM t ORDER BY id").await, ["1|c", "3|b"]);
    // A key that another row has.
    let refused = insert("v", "b", &[("id", "1")]).await.expect_err("a key twice");
    assert_eq!(refused.sqlstate(), "23505");
    let refused = insert("v", "z", &[]).await.expect_err("no key");
    assert_eq!(refused.sqlstate(), "23502");
    assert_eq!(query(&node, "SELECT * FROM t ORDER BY id").await, ["1|c", "3|b"]);
}

#[tokio::test]
async fn updates_and_deletes_reach_every_row_of_the_value() {
    let (_place, node) = cards().await;
    let options = RequestOptions::default();
    let original = node.original();
    // AAC002 has no index of its own.
    let update = |column: &'static str, value: &'static str, others: &[(&str, &str)]| {
        let (node, others, options) = (node.clone(), pairs(others), options.clone());
        async move { patiently(node.original().update("KCA2", column, value, &others, &options)).await.map(|w| w.affected) }
    };
    assert_eq!(update("AAB004", "Köln", &[("AMOUNT", "3")]).await.expect("two rows"), 2);
    assert_eq!(query(&node, "SELECT AAC001 FROM KCA2 WHERE AMOUNT = 3 ORDER BY 1").await, ["12346", "12347"]);
    assert_eq!(update("AAC002", "007", &[("AAC001", "1")]).await.expect("one row"), 1);
    assert_eq!(update("AAC001", "999", &[("AMOUNT", "3")]).await.expect("no row"), 0);
    assert_eq!(update("AAC001", "0999", &[("AMOUNT", "3")]).await.expect("no row"), 0);
    assert_eq!(update("AAC001", "1", &[]).await.expect("nothing to set"), 0);
    assert!(matches!(
        update("AAC001", "1", &[("AMOUNT", "1"), ("amount", "2")]).await,
        Err(NodeError::RepeatedColumn { .. })
    ));

    let delete = patiently(original.delete("kca2", "aab004", "Köln", &options)).await.expect("two rows");
    assert_eq!(delete.affected, 2);
    let again = patiently(original.delete("kca2", "aab004", "Köln", &options)).await.expect("no row");
    assert_eq!(again.affected, 0);
    assert_eq!(query(&node, "SELECT AAC001 FROM KCA2 ORDER BY 1").await, ["1", "12348"]);
}

#[tokio::test]
async fn a_retried_insert_is_applied_once() {
    let (_place, node) = cards().await;
    let options = RequestOptions { request_id: Some("x-1".into()), ..RequestOptions::default() };
    let original = node.original();
    let others = pairs(&[("AAB004", "once")]);
    let first = patiently(original.insert("KCA2", "AAC001", "5", &others, &options)).await.expect("new row");
    let again = patiently(original.insert("KCA2", "AAC001", "5", &others, &options)).await.expect("the answer again");
    assert!(!first.replayed && again.replayed);
    assert_eq!((first.token, first.affected), (again.token, again.affected));
    let other =
        patiently(original.update("KCA2", "AAC001", "5", &others, &options)).await.expect_err("the id is taken");
    assert!(matches!(other, NodeError::RequestIdReused { .. }));
}

#[tokio::test]
async fn it_tells_what_it_has() {
    let (_place, node) = cards().await;
    write(&node, "CREATE TABLE made (a BIGINT PRIMARY KEY)").await;
    let original = node.original();
    let stats = original.stats("kca2").expect("known");
    assert_eq!((stats.table.as_str(), stats.total_rows, stats.active_rows), ("KCA2", 4, 4));
    assert_eq!((stats.ttl_ms, stats.max_size), (0, 0));
    assert_eq!(stats.indexes, ["AAC001", "AAB004", "AAB004+AAC002"]);
    let listing: Vec<_> = original.list().into_iter().map(|l| (l.name, l.sql)).collect();
    assert_eq!(
        listing,
        [("KCA2".into(), "SELECT * FROM KCA2 ORDER BY AAC001".into()), ("made".into(), "made".to_owned())]
    );
    let metrics = original.metrics();
    assert_eq!(metrics.tables, 2);
    assert_eq!(metrics.memory_used + metrics.memory_free, metrics.memory_max);
    assert_eq!(metrics.memory_max, PLENTY);
    assert_eq!(metrics.memory_used, node.memory().used_bytes);
    assert_eq!(
        metrics.tables_detail.iter().map(|t| (t.name.as_str(), t.rows)).collect::<Vec<_>>(),
        [("KCA2", 4), ("made", 0)]
    );
    let health = original.health();
    assert!(health.up);
    assert_eq!((health.tables, health.memory_max_mib), (2, 4096));
    let answer =
        patiently(original.query("SELECT count(*) AS n FROM kca2", &RequestOptions::default())).await.expect("a query");
    assert_eq!(answer.columns[0].name, "n");
    assert_eq!(texts(answer.rows.expect("rows")).await, ["4"]);
}

#[tokio::test]
async fn health_warns_when_memory_runs_out() {
    let limit = 1 << 20;
    let node = started(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(limit) }).await;
    let big = "x".repeat(32 << 10);
    for id in 0.. {
        let above = node.memory().used_bytes * 10 >= limit * 9;
        assert_eq!(node.original().health().up, !above, "{} of {limit} bytes", node.memory().used_bytes);
        if above {
            break;
        }
        write(&node, &format!("INSERT INTO t VALUES ({id}, '{big}')")).await;
    }
}

#[tokio::test]
async fn limits_and_cleaning_by_the_original_names() {
    let (_place, node) = cards().await;
    let original = node.original();
    original.ttl("kca2", 60_000).await.expect("known");
    original.max_size("kca2", 3).await.expect("known");
    let stats = original.stats("KCA2").expect("known");
    assert_eq!((stats.ttl_ms, stats.max_size), (60_000, 3));
    assert_eq!(patiently(node.clean("kca2")).await.expect("known"), 1);
    assert_eq!(patiently(node.compact("kca2")).await.expect("known"), 3);
    assert_eq!(patiently(node.truncate("kca2")).await.expect("known"), 3);
    assert_eq!(original.stats("KCA2").expect("known").active_rows, 0);
    original.ttl("kca2", 0).await.expect("known");
    original.max_size("kca2", 0).await.expect("known");
    assert_eq!(patiently(node.load("kca2")).await.expect("loads").rows, 4);
    let stats = original.stats("KCA2").expect("known");
    assert_eq!((stats.ttl_ms, stats.max_size, stats.active_rows), (0, 0, 4));
}
