//! Rows that are too old or too many.

use std::sync::Arc;
use std::time::Duration;

use cachesql_node::{ManualClock, Node, NodeConfig, TableConfig};

use crate::fixture::{PLENTY, empty, patiently, query, started, write};

/// A node whose sweeper gets no turn while a test runs.
async fn node(table: TableConfig) -> (Arc<Node>, Arc<ManualClock>) {
    node_sweeping(table, Duration::from_secs(3_600)).await
}

async fn node_sweeping(table: TableConfig, sweep_interval: Duration) -> (Arc<Node>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(1_000_000));
    let config = NodeConfig { tables: vec![table], clock: clock.clone(), sweep_interval, ..NodeConfig::new(PLENTY) };
    (started(config).await, clock)
}

#[tokio::test]
async fn rows_that_nobody_reads_or_writes_expire() {
    let (node, clock) = node(TableConfig { ttl: Some(Duration::from_millis(1_000)), ..empty("t") }).await;
    write(&node, "INSERT INTO t VALUES (1, 'read'), (2, 'left alone'), (3, 'written')").await;
    assert_eq!(node.clean("t").await.expect("known"), 0);
    clock.advance_ms(700);
    assert_eq!(query(&node, "SELECT v FROM t WHERE id = 1").await, ["read"]);
    write(&node, "UPDATE t SET v = 'written again' WHERE id = 3").await;
    assert_eq!(node.clean("t").await.expect("known"), 0);
    clock.advance_ms(700);
    assert_eq!(node.clean("T").await.expect("known"), 1);
    assert_eq!(query(&node, "SELECT v FROM t ORDER BY id").await, ["read", "written again"]);
}

#[tokio::test]
async fn the_least_recently_used_rows_go_when_there_are_too_many() {
    let (node, clock) = node(empty("t")).await;
    write(&node, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')").await;
    node.set_max_rows("t", Some(4)).await.expect("known");
    assert_eq!(node.clean("t").await.expect("known"), 0);
    for id in [3, 1, 4, 2] {
        clock.advance_ms(10);
        query(&node, &format!("SELECT v FROM t WHERE id = {id}")).await;
    }
    node.set_max_rows("t", Some(2)).await.expect("known");
    assert_eq!(node.clean("t").await.expect("known"), 2);
    assert_eq!(query(&node, "SELECT id FROM t ORDER BY id").await, ["2", "4"]);
    // Both stay set, beside each other.
    node.set_ttl("t", Some(Duration::from_secs(5))).await.expect("known");
    let stats = node.original().stats("t").expect("known");
    assert_eq!((stats.ttl_ms, stats.max_size), (5_000, 2));
}

#[tokio::test]
async fn it_happens_by_itself() {
    let table = TableConfig { ttl: Some(Duration::from_millis(50)), ..empty("t") };
    let (node, clock) = node_sweeping(table, Duration::from_millis(2)).await;
    write(&node, "INSERT INTO t VALUES (1, 'a')").await;
    let written = node.snapshot().index();
    let gone = async {
        // A sweep dates the row, a later one finds it old: time has to pass between the two, whenever they are.
        while node.snapshot().index() == written {
            clock.advance_ms(100);
            tokio::task::yield_now().await;
        }
    };
    patiently(gone).await;
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["0"]);
    node.shutdown().await;
}

#[tokio::test]
async fn tables_without_limits_keep_everything() {
    let (node, clock) = node(empty("t")).await;
    write(&node, "INSERT INTO t VALUES (1, 'a')").await;
    clock.advance_ms(u64::from(u32::MAX));
    assert_eq!(node.clean("t").await.expect("known"), 0);
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["1"]);
    assert!(node.clean("nowhere").await.is_err());
}
