//! The memory limit: what would pass it is refused, and everything stays as it was.

use cachesql_node::{Node, NodeConfig, NodeError};

use crate::fixture::{Place, empty, failure_of, patiently, query, run, started, table, write};

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn writes_past_the_limit_are_refused_and_deletes_are_not() {
    let node = started(NodeConfig { tables: vec![empty("t")], ..NodeConfig::new(2 * MIB) }).await;
    let big = "x".repeat(256 << 10);
    let mut rows = 0_u64;
    let refused = loop {
        match run(&node, &format!("INSERT INTO t VALUES ({rows}, '{big}')")).await {
            Ok(_) => rows += 1,
            Err(refused) => break refused,
        }
        assert!(rows < 10, "the limit was not noticed");
    };
    assert_eq!(refused.sqlstate(), "53200");
    assert!(matches!(refused, NodeError::MemoryLimit { limit_bytes, .. } if limit_bytes == 2 * MIB));
    assert!(rows >= 4, "{rows} rows of 256 KiB fit into 2 MiB");
    assert!(node.memory().used_bytes <= 2 * MIB);
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, [rows.to_string()]);

    assert_eq!(write(&node, "DELETE FROM t").await, rows);
    patiently(node.compact("t")).await.expect("known table");
    assert_eq!(write(&node, &format!("INSERT INTO t VALUES (100, '{big}')")).await, 1);
}

fn many_rows(rows: u32) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i, printf('%0500d', i) FROM n;"
    )
}

#[tokio::test]
async fn a_first_load_past_the_limit_is_refused() {
    let place = Place::new(&format!("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); {}", many_rows(20_000)));
    let config = NodeConfig { memory_bytes: 4 * MIB, ..place.config(vec![table("t")]) };
    let node = Node::start(config).await.expect("it starts");
    let error = failure_of(&node, "t").await;
    assert!(error.starts_with("loading table \"t\" would need"), "{error}");
    assert_eq!(node.memory().used_bytes, 0);
    node.shutdown().await;
}

#[tokio::test]
async fn a_refresh_past_the_limit_is_refused_and_the_old_rows_stay() {
    let place = Place::new(&format!("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); {}", many_rows(1_000)));
    let node = started(NodeConfig { memory_bytes: 8 * MIB, ..place.config(vec![table("t")]) }).await;
    place.execute(&format!("DELETE FROM t; {}", many_rows(40_000)));
    let refused = patiently(node.load("t")).await.expect_err("too much");
    assert_eq!(refused.sqlstate(), "53200");
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["1000"]);
    assert!(node.ready());
}
