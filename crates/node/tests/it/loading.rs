//! Loads: the first one, refreshes by difference under readers, and loads that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cachesql_node::{LoadPhase, Node, NodeError, OriginError, Refresh, Select, TableConfig};
use cachesql_types::{Value, limits};

use crate::fixture::{Place, direct_texts, failure_of, patiently, queried, query, run, started, table, write};

const PEOPLE: &str = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
    INSERT INTO people VALUES (1, '王小明', 'Shanghai'), (2, 'it''s', NULL), (3, '', 'Köln');";

#[tokio::test]
async fn tables_come_with_their_rows_keys_and_indexes() {
    let place = Place::new(PEOPLE);
    let people =
        TableConfig { indexes: vec![vec!["city".into()], vec!["city".into(), "name".into()]], ..table("people") };
    let node = started(place.config(vec![people, place.csv("codes", "code,meaning\n007,agent\n7,\n")])).await;

    assert_eq!(query(&node, "SELECT * FROM people ORDER BY id").await, ["1|王小明|Shanghai", "2|it's|~", "3||Köln"]);
    assert_eq!(query(&node, "SELECT * FROM codes ORDER BY code").await, ["007|agent", "7|~"]);
    let stats = node.original().stats("people").expect("known table");
    assert_eq!(stats.indexes, ["id", "city", "city+name"]);
    let loads = node.loads().borrow().clone();
    let memory = node.memory();
    let bytes = |table: &str| memory.tables.iter().find(|t| t.name == table).map(|t| t.rows_bytes + t.index_bytes);
    assert!(loads.iter().all(|load| Some(load.bytes) == bytes(&load.table) && load.attempts == 1));
    assert_eq!(
        loads.iter().map(|l| (l.table.as_str(), l.phase, l.rows)).collect::<Vec<_>>(),
        [("people", LoadPhase::Loaded, 3), ("codes", LoadPhase::Loaded, 2)]
    );
    node.shutdown().await;
}

#[tokio::test]
async fn a_refresh_writes_the_difference_only() {
    let place = Place::new(PEOPLE);
    let node = started(place.config(vec![table("people")])).await;
    place.execute("UPDATE people SET city = 'Bonn' WHERE id = 3; DELETE FROM people WHERE id = 2; INSERT INTO people VALUES (4, 'new', 'x');");

    let report = patiently(node.load("PEOPLE")).await.expect("a load that works");
    assert_eq!((report.rows, report.put, report.deleted), (3, 2, 1));
    assert_eq!(query(&node, "SELECT * FROM people ORDER BY id").await, ["1|王小明|Shanghai", "3||Bonn", "4|new|x"]);

    // Nothing changed at the origin: nothing is written, and no position of the log is taken.
    let before = node.snapshot().index();
    let report = patiently(node.load("people")).await.expect("a load that works");
    assert_eq!((report.rows, report.put, report.deleted), (3, 0, 0));
    assert_eq!(node.snapshot().index(), before);
}

#[tokio::test]
async fn the_origin_wins_over_what_was_written_here() {
    let place = Place::new(PEOPLE);
    let node = started(place.config(vec![table("people")])).await;
    write(&node, "UPDATE people SET name = 'local' WHERE id = 1").await;
    write(&node, "INSERT INTO people VALUES (9, 'local', NULL)").await;
    let report = patiently(node.load("people")).await.expect("a load that works");
    assert_eq!((report.put, report.deleted), (1, 1));
    assert_eq!(query(&node, "SELECT id, name FROM people ORDER BY id").await, ["1|王小明", "2|it's", "3|"]);
}

#[tokio::test]
async fn keyless_tables_refresh_by_difference_too() {
    let place =
        Place::new("CREATE TABLE log (a TEXT, n INTEGER); INSERT INTO log VALUES ('x', 1), ('x', 1), ('y', 2);");
    let node = started(place.config(vec![table("log")])).await;
    place.execute("DELETE FROM log WHERE rowid = 1; INSERT INTO log VALUES ('z', NULL);");
    let report = patiently(node.load("log")).await.expect("a load that works");
    assert_eq!((report.rows, report.put, report.deleted), (3, 1, 1));
    assert_eq!(query(&node, "SELECT a, n FROM log ORDER BY a").await, ["x|1", "y|2", "z|~"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_one_generation_of_a_table_at_a_time() {
    const ROWS: usize = 20_000;
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) INSERT INTO t SELECT i, 0 FROM n;"
    );
    let place = Place::new(&format!("CREATE TABLE t (id INTEGER PRIMARY KEY, generation INTEGER); {fill}"));
    let node = started(place.config(vec![table("t")])).await;

    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (node, done) = (node.clone(), done.clone());
            tokio::task::spawn_blocking(move || {
                let mut seen = std::collections::BTreeSet::new();
                while !done.load(Ordering::SeqCst) {
                    let generation = whole_generation(&node, ROWS);
                    // Time goes forward: no generation comes back.
                    assert!(seen.last().is_none_or(|last| *last <= generation), "{generation} after {seen:?}");
                    seen.insert(generation);
                }
                seen
            })
        })
        .collect();
    for generation in 1..=5 {
        place.execute(&format!("UPDATE t SET generation = {generation};"));
        let report = patiently(node.load("t")).await.expect("a load that works");
        assert_eq!(report.put, ROWS as u64);
    }
    done.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.await.expect("no reader saw a half state");
    }
    assert_eq!(whole_generation(&node, ROWS), 5);
}

/// Reads the whole table from one snapshot; its rows must all be there, and of one generation.
fn whole_generation(node: &Node, rows: usize) -> i64 {
    let snapshot = node.snapshot();
    let all = node.select(&snapshot, &Select { table: "t".into(), ..Select::default() }, &[]).expect("rows");
    assert_eq!(all.len(), rows);
    let generation = |row: usize| all.row(row).cell(1).to_value().as_i64().expect("an integer");
    let first = generation(0);
    assert!((0..rows).all(|row| generation(row) == first), "two generations in one snapshot");
    first
}

#[tokio::test]
async fn a_refresh_that_changes_nearly_everything_is_a_whole_load() {
    let many = limits::DIFFERENCE_ROWS + 1;
    let place = Place::new(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many}) INSERT INTO t SELECT i, i FROM n;"
    ));
    let node = started(place.config(vec![table("t")])).await;
    place.execute("UPDATE t SET n = n + 1; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (0, 0);");
    let before = node.snapshot();
    let report = patiently(node.load("t")).await.expect("a load that works");
    assert_eq!((report.rows, report.put), (many as u64, many as u64));
    assert_eq!(query(&node, "SELECT count(*), min(n), max(n) FROM t").await, [format!("{many}|0|{}", many + 1)]);
    // What somebody holds stays as it was.
    assert_eq!(before.table("t").expect("the old rows").row_count(), many as u64);
    assert!(before.table("t").expect("the old rows").get(&[Value::BigInt(0)]).is_none());
}

#[tokio::test]
async fn a_load_that_fails_half_way_leaves_the_rows() {
    // The bad value comes after the first batch was handed on.
    let many = limits::LOAD_BATCH_ROWS + 10;
    let place = Place::new(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many}) INSERT INTO t SELECT i, i FROM n;"
    ));
    let node = started(place.config(vec![table("t")])).await;
    let before = node.snapshot().index();
    place.execute(&format!("UPDATE t SET n = 'not a number' WHERE id = {many}; UPDATE t SET n = 0 WHERE id = 1;"));

    let failed = patiently(node.load("t")).await.expect_err("the value is of another type");
    assert!(
        matches!(&failed, NodeError::Origin { table, source } if table == "t"
            && matches!(&**source, OriginError::Value { column, .. } if column == "n")),
        "{failed:?}"
    );
    assert_eq!(node.snapshot().index(), before);
    assert_eq!(query(&node, "SELECT count(*), min(n) FROM t").await, [format!("{many}|1")]);

    // The same on a first load: nothing of it is to be seen.
    let node = Node::start(place.config(vec![table("t")])).await.expect("it starts");
    let error = failure_of(&node, "t").await;
    assert!(error.starts_with("table t: column n: ") && error.contains("not a number"), "{error}");
    let not_loaded = run(&node, "SELECT * FROM T").await.expect_err("no rows");
    assert!(matches!(&not_loaded, NodeError::NotLoaded { table, failure: Some(why) } if table == "t" && *why == error));
    assert_eq!(not_loaded.sqlstate(), "57P03");
    assert_eq!(node.memory().used_bytes, 0);
    node.shutdown().await;
}

#[tokio::test]
async fn a_table_that_cannot_be_loaded_holds_readiness_back_and_nothing_else() {
    let place = Place::new(PEOPLE);
    let node = Node::start(place.config(vec![table("people"), table("later")])).await.expect("it starts");
    let error = failure_of(&node, "later").await;
    assert!(error.contains("later"), "{error}");
    assert!(!node.ready());
    let mut loads = node.loads();
    patiently(loads.wait_for(|loads| loads[0].phase == LoadPhase::Loaded)).await.expect("the node lives");
    assert_eq!(query(&node, "SELECT count(*) FROM people").await, ["3"]);

    // It is tried again by itself.
    place.execute("CREATE TABLE later (id INTEGER PRIMARY KEY); INSERT INTO later VALUES (1);");
    patiently(node.wait_ready()).await;
    assert!(node.ready());
    assert_eq!(query(&node, "SELECT * FROM later").await, ["1"]);
    node.shutdown().await;
}

#[tokio::test]
async fn duplicate_keys_at_the_origin_are_refused_and_the_rows_stay() {
    let place = Place::new("CREATE TABLE t (id INTEGER, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b');");
    let node = started(place.config(vec![TableConfig { key: vec!["id".into()], ..table("t") }])).await;
    place.execute("INSERT INTO t VALUES (1, 'again');");
    let refused = patiently(node.load("t")).await.expect_err("a key twice");
    assert_eq!(refused.sqlstate(), "23505");
    assert_eq!(query(&node, "SELECT * FROM t ORDER BY id").await, ["1|a", "2|b"]);
}

#[tokio::test]
async fn a_changed_origin_is_named_and_the_rows_stay() {
    let place = Place::new(PEOPLE);
    let node = started(place.config(vec![table("people")])).await;
    place.execute("ALTER TABLE people ADD COLUMN age INTEGER; ALTER TABLE people RENAME COLUMN city TO town;");
    let changed = patiently(node.load("people")).await.expect_err("other columns");
    assert_eq!(
        changed.to_string(),
        "table \"people\": the origin's columns have changed: column city is gone, column town is new, column age is new; \
         the rows loaded before are kept"
    );
    assert_eq!(query(&node, "SELECT count(city) FROM people").await, ["2"]);
    assert_eq!(node.loads().borrow()[0].phase, LoadPhase::Failed);
    assert!(node.ready());
}

#[tokio::test]
async fn an_interval_refreshes_by_itself() {
    let place = Place::new(PEOPLE);
    let every = TableConfig { refresh: Refresh::Every(Duration::from_millis(20)), ..table("people") };
    let node = started(place.config(vec![every])).await;
    place.execute("DELETE FROM people WHERE id > 1;");
    let mut loads = node.loads();
    patiently(loads.wait_for(|loads| loads[0].phase == LoadPhase::Loaded && loads[0].rows == 1))
        .await
        .expect("the node lives");
    assert_eq!(query(&node, "SELECT id FROM people").await, ["1"]);

    // An origin that is away takes no reads down, and is used again when it is back.
    place.execute("ALTER TABLE people RENAME TO away;");
    failure_of(&node, "people").await;
    assert_eq!(query(&node, "SELECT id FROM people").await, ["1"]);
    place.execute("ALTER TABLE away RENAME TO people; INSERT INTO people VALUES (2, 'b', 'c');");
    patiently(loads.wait_for(|loads| loads[0].rows == 2 && loads[0].phase == LoadPhase::Loaded))
        .await
        .expect("the node lives");
    assert!(loads.borrow()[0].error.is_none());
    node.shutdown().await;
}

#[tokio::test]
async fn a_table_that_was_dropped_comes_back_on_demand_only() {
    let place = Place::new(PEOPLE);
    let node = started(place.config(vec![table("people")])).await;
    write(&node, "DROP TABLE people").await;
    assert!(matches!(run(&node, "SELECT * FROM people").await, Err(NodeError::UnknownTable { .. })));
    assert_eq!(patiently(node.refresh_all()).await.expect("all loads work"), 1);
    assert_eq!(query(&node, "SELECT count(*) FROM people").await, ["3"]);
}

#[tokio::test]
async fn indexes_added_here_outlive_a_load() {
    let place = Place::new(PEOPLE);
    let node = started(place.config(vec![table("people")])).await;
    write(&node, "CREATE INDEX by_city ON people (city)").await;
    place.execute("DELETE FROM people;");
    patiently(node.load("people")).await.expect("a load that works");
    place.execute("INSERT INTO people VALUES (5, 'e', 'Bonn');");
    patiently(node.load("people")).await.expect("a load that works");
    assert_eq!(node.original().stats("people").expect("known").indexes, ["id", "by_city"]);
    assert_eq!(direct_texts(&node.original().get("people", "city", "Bonn").expect("rows")), ["5|e|Bonn"]);
}

#[tokio::test]
async fn calls_that_come_together_share_loads() {
    let place = Place::new(PEOPLE);
    let node = started(place.config(vec![table("people")])).await;
    let outcomes = futures::future::join_all((0..50).map(|_| node.load("people"))).await;
    assert!(outcomes.iter().all(|o| o.as_ref().is_ok_and(|report| report.rows == 3)));
    // Beside the load at the start: the first may begin before the others have asked, and those share the next.
    let mut metrics = String::new();
    node.metrics_into(&mut metrics).expect("a string takes anything");
    let loads = |count: u32| format!("cachesql_loads_total{{table=\"people\",outcome=\"done\"}} {count}");
    assert!(metrics.lines().any(|line| line == loads(2) || line == loads(3)), "{metrics}");
}

#[tokio::test]
async fn configurations_that_cannot_work_do_not_start() {
    let place = Place::new(PEOPLE);
    let refused = |tables| async { Node::start(place.config(tables)).await.expect_err("must not start").to_string() };
    assert!(refused(vec![table("people"), table("People")]).await.contains("two tables"));
    let mut elsewhere = place.config(vec![table("people")]);
    elsewhere.origins.clear();
    let error = Node::start(elsewhere).await.expect_err("no such origin").to_string();
    assert!(error.contains("\"db\"") && error.contains("people"), "{error}");
    // A key that does not exist shows when the columns are known: by table and column.
    let node =
        Node::start(place.config(vec![TableConfig { key: vec!["nr".into()], ..queried("p", "SELECT * FROM people") }]))
            .await
            .expect("it starts");
    assert_eq!(failure_of(&node, "p").await, "column \"nr\" does not exist in table \"p\"");
    assert!(matches!(node.load("nowhere").await, Err(NodeError::UnknownTable { .. })));
}
