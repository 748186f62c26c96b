//! Writes: in turn, all or nothing, once per request id.

use cachesql_node::{Node, NodeConfig, NodeError, OnConflict, RequestOptions, Statement, Write};
use cachesql_types::Value;
use futures::future::join_all;

use crate::fixture::{PLENTY, empty, patiently, query, run, started, texts, write};

async fn node_with(tables: &[&str]) -> std::sync::Arc<Node> {
    started(NodeConfig { tables: tables.iter().map(|t| empty(t)).collect(), ..NodeConfig::new(PLENTY) }).await
}

fn named(request_id: &str) -> RequestOptions {
    RequestOptions { request_id: Some(request_id.into()), ..RequestOptions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_updates_lose_nothing() {
    let node = node_with(&[]).await;
    write(&node, "CREATE TABLE counters (id BIGINT PRIMARY KEY, n BIGINT)").await;
    write(&node, "INSERT INTO counters VALUES (1, 0)").await;
    let increments = (0..8).map(|_| {
        let node = node.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                assert_eq!(write(&node, "UPDATE counters SET n = n + 1 WHERE id = 1").await, 1);
            }
        })
    });
    for task in increments.collect::<Vec<_>>() {
        task.await.expect("all increments are answered");
    }
    assert_eq!(query(&node, "SELECT n FROM counters").await, ["400"]);
}

#[tokio::test]
async fn every_write_has_its_own_place_in_the_log() {
    let node = node_with(&["t"]).await;
    let first = run(&node, "INSERT INTO t VALUES (1, 'a')").await.expect("new row").token;
    let second = run(&node, "UPDATE t SET v = 'b'").await.expect("one row").token;
    assert_eq!(second.group, "main");
    assert_eq!(second.index, first.index.next());
    assert_eq!(node.snapshot().index(), second.index);
    // So has what changes nothing: that there was nothing to change has to be agreed on as well.
    let nothing = run(&node, "DELETE FROM t WHERE id = 7").await.expect("no row");
    assert_eq!((nothing.affected, nothing.token.index), (Some(0), second.index.next()));
}

#[tokio::test]
async fn a_refused_write_leaves_nothing() {
    let node = node_with(&["t"]).await;
    write(&node, "INSERT INTO t VALUES (1, 'a')").await;
    let before = node.snapshot().index();
    let refused = run(&node, "INSERT INTO t VALUES (2, 'b'), (1, 'c')").await.expect_err("a key twice");
    assert_eq!(refused.sqlstate(), "23505");
    assert_eq!(node.snapshot().index(), before);
    assert_eq!(query(&node, "SELECT * FROM t").await, ["1|a"]);
}

#[tokio::test]
async fn a_batch_is_all_or_nothing_and_sees_itself() {
    let node = node_with(&["t"]).await;
    let batch = |statements: &[&str]| {
        let statements = statements.iter().map(|sql| Statement::new(*sql)).collect();
        let node = node.clone();
        async move { patiently(node.batch(statements, &RequestOptions::default())).await }
    };
    let done = batch(&[
        "CREATE TABLE u (a BIGINT PRIMARY KEY)",
        "INSERT INTO u VALUES (1), (2)",
        "INSERT INTO t SELECT a, 'from u' FROM u",
        "SELECT count(*) FROM t",
    ])
    .await
    .expect("a batch that works");
    let affected: Vec<_> = done.answers.iter().map(|a| a.affected).collect();
    assert_eq!(affected, [Some(0), Some(2), Some(2), None]);
    let count = done.answers.into_iter().last().and_then(|a| a.rows).expect("the rows of the last");
    assert_eq!(texts(count).await, ["2"]);
    assert_eq!(done.token.index, node.snapshot().index());

    let before = node.snapshot().index();
    let failed = batch(&["DELETE FROM t", "INSERT INTO u VALUES (1)"]).await.expect_err("a key twice");
    assert_eq!(failed.sqlstate(), "23505");
    let failed = batch(&["DELETE FROM t", "SELECT 1/0"]).await.expect_err("a read that fails");
    assert_eq!(failed.sqlstate(), "22012");
    assert_eq!(node.snapshot().index(), before);
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["2"]);
}

#[tokio::test]
async fn a_batch_of_reads_is_of_one_moment() {
    let node = node_with(&["t"]).await;
    write(&node, "INSERT INTO t VALUES (1, 'a')").await;
    let reads = vec![Statement::new("SELECT v FROM t"), Statement::new("SELECT count(*) FROM t")];
    let before = node.snapshot().index();
    let answers = patiently(node.batch(reads, &RequestOptions::default())).await.expect("reads").answers;
    assert_eq!(node.snapshot().index(), before);
    let mut rows = Vec::new();
    for answer in answers {
        rows.extend(texts(answer.rows.expect("rows")).await);
    }
    assert_eq!(rows, ["a", "1"]);
}

#[tokio::test]
async fn a_request_id_is_applied_once_and_answered_alike() {
    let node = node_with(&["t"]).await;
    let insert = Statement {
        sql: "INSERT INTO t VALUES ($1, $2) RETURNING v".into(),
        params: vec![Value::BigInt(1), Value::text("x")],
    };
    let first = patiently(node.sql(insert.clone(), &named("r1"))).await.expect("new row");
    let again = patiently(node.sql(insert.clone(), &named("r1"))).await.expect("the answer again");
    assert!(!first.replayed && again.replayed);
    assert_eq!((first.affected, &first.token), (again.affected, &again.token));
    assert_eq!(texts(first.rows.expect("returning")).await, ["x"]);
    assert_eq!(texts(again.rows.expect("returning")).await, ["x"]);

    // Other content under the same name is a mistake of the caller's, and is told.
    let other = Statement { params: vec![Value::BigInt(2), Value::text("x")], ..insert };
    let reused = patiently(node.sql(other, &named("r1"))).await.expect_err("the id is taken");
    assert!(matches!(reused, NodeError::RequestIdReused { .. }));
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_at_the_same_moment_are_applied_once() {
    let node = node_with(&["t"]).await;
    write(&node, "CREATE TABLE counters (id BIGINT PRIMARY KEY, n BIGINT)").await;
    write(&node, "INSERT INTO counters VALUES (1, 0)").await;
    let retries = join_all((0..20).map(|_| {
        let node = node.clone();
        tokio::spawn(async move {
            node.sql(Statement::new("UPDATE counters SET n = n + 1"), &named("once")).await.expect("an answer").replayed
        })
    }));
    let replayed = patiently(retries).await.into_iter().filter(|r| *r.as_ref().expect("no panic")).count();
    assert_eq!(replayed, 19);
    assert_eq!(query(&node, "SELECT n FROM counters").await, ["1"]);
}

#[tokio::test]
async fn a_refused_request_id_may_be_tried_again() {
    let node = node_with(&["t"]).await;
    write(&node, "INSERT INTO t VALUES (1, 'in the way')").await;
    let insert = || node.sql(Statement::new("INSERT INTO t VALUES (1, 'x')"), &RETRY);
    static RETRY: std::sync::LazyLock<RequestOptions> = std::sync::LazyLock::new(|| named("r"));
    assert_eq!(patiently(insert()).await.expect_err("a key twice").sqlstate(), "23505");
    write(&node, "DELETE FROM t").await;
    let done = patiently(insert()).await.expect("nothing is in the way");
    assert!(!done.replayed);
    assert!(patiently(insert()).await.expect("the answer again").replayed);
    let too_long = named(&"x".repeat(129));
    let refused = node.sql(Statement::new("DELETE FROM t"), &too_long).await.expect_err("too long");
    assert!(matches!(refused, NodeError::RequestId { bytes: 129, .. }));
}

#[tokio::test]
async fn typed_writes_know_the_table_that_they_were_made_for() {
    let node = node_with(&["t"]).await;
    let upsert = |v: &str| Write::Insert {
        table: "T".into(),
        columns: vec![0, 1],
        rows: vec![vec![Value::BigInt(1), Value::text(v)]],
        on_conflict: OnConflict::Replace { columns: Vec::new() },
        returning: true,
    };
    let options = RequestOptions::default();
    let seen = node.snapshot();
    let written = patiently(node.write(&seen, upsert("a"), &options)).await.expect("new row");
    assert_eq!(written.affected, 1);
    let written = patiently(node.write(&seen, upsert("b"), &options)).await.expect("the row again");
    assert_eq!(texts(written.returning.expect("returning")).await, ["1|b"]);
    assert_eq!(query(&node, "SELECT * FROM t").await, ["1|b"]);

    // Its columns are no longer those that the positions were taken from.
    write(&node, "DROP TABLE t").await;
    write(&node, "CREATE TABLE t (v TEXT, id BIGINT PRIMARY KEY)").await;
    let refused = patiently(node.write(&seen, upsert("c"), &options)).await.expect_err("another shape");
    assert!(matches!(refused, NodeError::Redefined { table } if table == "t"));
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn a_node_that_stopped_answers_reads_and_refuses_writes() {
    let node = node_with(&["t"]).await;
    write(&node, "INSERT INTO t VALUES (1, 'a')").await;
    // Writes that wait when it stops are served.
    let waiting = join_all((2..50).map(|id| {
        let node = node.clone();
        tokio::spawn(async move {
            node.sql(Statement::new(format!("INSERT INTO t VALUES ({id}, 'w')")), &RequestOptions::default()).await
        })
    }));
    let (outcomes, ()) = patiently(futures::future::join(waiting, node.shutdown())).await;
    let served = outcomes.into_iter().filter(|o| o.as_ref().expect("no panic").is_ok()).count();
    assert!(matches!(run(&node, "DELETE FROM t").await, Err(NodeError::Shutdown)));
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, [(served + 1).to_string()]);
    assert!(matches!(node.load("t").await, Err(NodeError::NoSource { .. })));
}
