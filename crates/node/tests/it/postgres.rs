//! Tables of a PostgreSQL origin: loaded, refreshed while the server comes and goes, held against its own answers.

use cachesql_node::{NamedOrigin, Node, NodeConfig, NodeError, OriginConfig, OriginUrl, TableConfig, TableSource};
use cachesql_types::Value;
use testbed::Postgres;

use crate::fixture::{PLENTY, patiently, query, started, write};

fn config(url: &str, tables: Vec<TableConfig>) -> NodeConfig {
    let url = OriginUrl::parse(url).expect("sound URL");
    let origin = NamedOrigin { name: "hr".into(), config: OriginConfig { url, user: None, password: None } };
    NodeConfig { origins: vec![origin], tables, ..NodeConfig::new(PLENTY) }
}

fn queried(name: &str, sql: &str, params: Vec<Value>) -> TableConfig {
    TableConfig::new(name, TableSource::Query { origin: "hr".into(), sql: sql.into(), params })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_follows_its_origin_at_every_refresh() {
    let server = Postgres::shared();
    let database = server.new_database();
    server.execute(
        &database,
        "CREATE TABLE kca2 (aac001 bigint PRIMARY KEY, month int, name text, amount numeric(10,2), at timestamptz);
         INSERT INTO kca2 SELECT i, 202604 + i % 2, 'name ' || i, i / 4.0, timestamptz '2026-04-01 00:00:00+00' + i * interval '1 h'
         FROM generate_series(1, 5000) i;",
    );
    let table = TableConfig {
        indexes: vec![vec!["name".into()]],
        ..queried("KCA2", "SELECT * FROM kca2 WHERE month = ?", vec![Value::text("202604")])
    };
    let node = started(config(&server.url(&database), vec![table])).await;

    // PostgreSQL says what is right.
    let same = async |node: &Node, columns: &str| {
        let expected =
            server.query(&database, &format!("SELECT {columns} FROM kca2 WHERE month = 202604 ORDER BY aac001"));
        let found = query(node, &format!("SELECT {columns} FROM KCA2 ORDER BY aac001")).await.join("\n");
        assert_eq!(found, expected.trim_end());
    };
    same(&node, "aac001, month, name, amount").await;
    assert_eq!(node.original().stats("kca2").expect("known").indexes, ["aac001", "name"]);

    write(&node, "UPDATE KCA2 SET name = 'only here' WHERE aac001 = 2").await;
    server.execute(
        &database,
        "UPDATE kca2 SET amount = amount + 1 WHERE aac001 % 100 = 0; DELETE FROM kca2 WHERE aac001 = 4;
         INSERT INTO kca2 VALUES (6000, 202604, 'new', 0.01, NULL);",
    );
    let report = patiently(node.load("KCA2")).await.expect("the origin is there");
    // Fifty changed, one is new, and one was written here alone.
    assert_eq!((report.rows, report.put, report.deleted), (2_500, 52, 1));
    same(&node, "aac001, month, name, amount").await;
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_origin_that_is_down_takes_no_reads_down() {
    let server = Postgres::start();
    let database = server.new_database();
    server.execute(&database, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2);");
    let node = started(config(&server.url(&database), vec![queried("t", "SELECT * FROM t", Vec::new())])).await;
    drop(server);
    let failed = patiently(node.load("t")).await.expect_err("nobody is there");
    assert!(matches!(&failed, NodeError::Origin { source, .. } if source.is_transient()), "{failed:?}");
    assert_eq!(failed.sqlstate(), "08006");
    assert!(failed.to_string().starts_with("table t: "), "{failed}");
    assert_eq!(query(&node, "SELECT count(*) FROM t").await, ["2"]);
    assert!(node.ready());
    node.shutdown().await;
}
