//! Reads: consistency, parameters, metrics.

use cachesql_node::{Consistency, Node, NodeConfig, NodeError, RequestOptions, Statement};
use cachesql_types::{LogIndex, Token, Value};

use crate::fixture::{PLENTY, empty, patiently, query, run, started, texts, write};

async fn node() -> std::sync::Arc<Node> {
    started(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(PLENTY) }).await
}

fn session(group: &str, index: u64) -> RequestOptions {
    let token = Token { group: group.into(), index: LogIndex(index) };
    RequestOptions { consistency: Consistency::Session(Some(token)), request_id: None }
}

#[tokio::test]
async fn a_read_with_a_token_sees_the_write_that_gave_it() {
    let node = node().await;
    let token = run(&node, "INSERT INTO t VALUES (1, 'a')").await.expect("new row").token;
    let options = RequestOptions { consistency: Consistency::Session(Some(token.clone())), request_id: None };
    let answer = patiently(node.sql(Statement::new("SELECT v FROM t"), &options)).await.expect("rows");
    assert_eq!(answer.token, token);
    assert_eq!(&*answer.served_by, "local");
    assert_eq!(texts(answer.rows.expect("rows")).await, ["a"]);
}

#[tokio::test]
async fn a_read_waits_for_a_token_that_is_about_to_come() {
    let node = node().await;
    let next = node.snapshot().index().next();
    let reader = {
        let node = node.clone();
        tokio::spawn(async move { node.sql(Statement::new("SELECT v FROM t"), &session("main", next.0)).await })
    };
    // Lets the reader find that it has to wait.
    tokio::task::yield_now().await;
    assert!(!reader.is_finished());
    write(&node, "INSERT INTO t VALUES (1, 'late')").await;
    let answer = patiently(reader).await.expect("no panic").expect("rows");
    assert_eq!(texts(answer.rows.expect("rows")).await, ["late"]);
}

#[tokio::test]
async fn a_token_from_the_future_is_refused_after_a_while() {
    let node = node().await;
    let have = node.snapshot().index();
    let refused = node.sql(Statement::new("SELECT 1"), &session("main", 4711)).await.expect_err("never seen");
    assert!(
        matches!(refused, NodeError::TokenAhead { wanted: LogIndex(4711), have: h, .. } if h == have),
        "{refused:?}"
    );
    let other = node.sql(Statement::new("SELECT 1"), &session("finance", 1)).await.expect_err("not of this group");
    assert!(matches!(other, NodeError::OtherGroup { .. }));
    for consistency in
        [Consistency::Linearizable, Consistency::Bounded(std::time::Duration::ZERO), Consistency::Session(None)]
    {
        assert_eq!(node.snapshot_for(&consistency).await.expect("the newest").index(), have);
    }
}

#[tokio::test]
async fn parameters_become_what_the_statement_wants() {
    let node = node().await;
    let ask = async |sql: &str, params: Vec<Value>| {
        let answer = node.sql(Statement { sql: sql.into(), params }, &RequestOptions::default()).await?;
        Ok::<_, NodeError>(match answer.rows {
            Some(rows) => texts(rows).await,
            None => Vec::new(),
        })
    };
    ask("INSERT INTO t VALUES (?, ?)", vec![Value::text("7"), Value::text("seven")]).await.expect("text as a number");
    ask("INSERT INTO t VALUES ($1, $2)", vec![Value::Integer(8), Value::BigInt(12345)])
        .await
        .expect("a number as text");
    assert_eq!(ask("SELECT id FROM t WHERE v = $1", vec![Value::BigInt(12345)]).await.expect("rows"), ["8"]);
    assert_eq!(ask("SELECT v FROM t WHERE id = $1", vec![Value::text("7")]).await.expect("rows"), ["seven"]);
    let refused = ask("SELECT v FROM t WHERE id = $1", vec![Value::text("x")]).await.expect_err("no number");
    assert_eq!(refused.sqlstate(), "22P02");
    let refused = ask("SELECT v FROM t WHERE id = $1", Vec::new()).await.expect_err("no parameter");
    assert_eq!(refused.sqlstate(), "07001");
}

#[tokio::test]
async fn what_happens_is_counted() {
    let node = node().await;
    write(&node, "INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    query(&node, "SELECT v FROM t WHERE id = 1").await;
    query(&node, "SELECT count(*), sum(id) FROM t GROUP BY v HAVING count(*) > 0").await;
    run(&node, "SELECT * FROM nowhere").await.expect_err("no such table");
    let mut text = String::new();
    node.metrics_into(&mut text).expect("a string takes anything");
    for line in [
        "cachesql_reads_total{path=\"direct\"} 1",
        "cachesql_reads_total{path=\"datafusion\"} 1",
        "cachesql_rows_written_total 2",
        "cachesql_errors_total{class=\"42\"} 1",
        "cachesql_table_rows{table=\"t\"} 2",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    write(&node, "DROP TABLE t").await;
    text.clear();
    node.metrics_into(&mut text).expect("a string takes anything");
    assert!(!text.contains("table=\"t\""), "{text}");
}
