//! What writes do.

use cachesql_sql::{BatchAnswer, BatchStatement, Filter, OnConflict, Rows, Write};
use cachesql_types::Value;

use crate::fixture::{Node, insurance, text_of};

async fn table() -> Node {
    let mut node = Node::new();
    node.run(&[
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, name TEXT UNIQUE, price DECIMAL(6,2))",
        "INSERT INTO t VALUES (1, 10, 'a', 1.00), (2, 20, 'b', 2.50), (3, NULL, NULL, NULL)",
    ])
    .await;
    node
}

async fn all(node: &Node) -> Vec<String> {
    node.rows("SELECT * FROM t ORDER BY id").await
}

#[tokio::test]
async fn rows_are_inserted_changed_and_deleted() {
    let mut node = table().await;
    let plan = node.write("UPDATE t SET n = n + 1, name = name || '!' WHERE id < 3", &[]).await.expect("updates");
    assert_eq!(plan.affected, 2);
    assert_eq!(all(&node).await, ["1|11|a!|1.00", "2|21|b!|2.50", "3|NULL|NULL|NULL"]);
    node.run(&["UPDATE T SET N = abs(-5), Price = 9 WHERE length(NAME) = 2 AND id = 1"]).await;
    assert_eq!(all(&node).await, ["1|5|a!|9.00", "2|21|b!|2.50", "3|NULL|NULL|NULL"]);
    node.run(&["UPDATE t SET id = id + 10 WHERE id = 3", "DELETE FROM t WHERE n = 21"]).await;
    assert_eq!(all(&node).await, ["1|5|a!|9.00", "13|NULL|NULL|NULL"]);
    assert_eq!(node.write("DELETE FROM t WHERE id = 99", &[]).await.expect("deletes").affected, 0);
    assert_eq!(node.write("DELETE FROM t", &[]).await.expect("deletes").affected, 2);
    assert_eq!(all(&node).await, Vec::<String>::new());
    node.run(&["INSERT INTO t (name, id) SELECT 'x' || id, id FROM (VALUES (7), (8)) v(id)"]).await;
    assert_eq!(all(&node).await, ["7|NULL|x7|NULL", "8|NULL|x8|NULL"]);
    node.run(&["TRUNCATE t"]).await;
    assert_eq!(all(&node).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_table_without_a_key_keeps_equal_rows_apart() {
    let mut node = Node::new();
    node.run(&["CREATE TABLE log (a TEXT, n BIGINT)", "INSERT INTO log VALUES ('x', 1), ('x', 1), ('y', 2)"]).await;
    assert_eq!(node.write("UPDATE log SET n = n * 10 WHERE a = 'x'", &[]).await.expect("updates").affected, 2);
    assert_eq!(node.rows("SELECT a, n FROM log ORDER BY n").await, ["y|2", "x|10", "x|10"]);
    assert_eq!(node.write("DELETE FROM log WHERE n + 0 = 10", &[]).await.expect("deletes").affected, 2);
    assert_eq!(node.rows("SELECT count(*) FROM log").await, ["1"]);
}

#[tokio::test]
async fn conflicts_are_refused_skipped_or_merged() {
    let mut node = table().await;
    let refused = node.write("INSERT INTO t VALUES (1, 0, 'z', 0)", &[]).await.expect_err("duplicate");
    assert_eq!(refused.sqlstate(), "23505");
    let unique = node.write("INSERT INTO t VALUES (9, 0, 'a', 0)", &[]).await.expect_err("duplicate name");
    assert_eq!(unique.sqlstate(), "23505");
    let skipped = node
        .write("INSERT INTO t VALUES (1, 0, 'z', 0), (4, 4, 'a', 4), (5, 5, 'e', 5), (5, 6, 'f', 6) ON CONFLICT DO NOTHING", &[])
        .await
        .expect("skips");
    assert_eq!(skipped.affected, 1);
    assert_eq!(node.rows("SELECT id, name FROM t WHERE id > 3").await, ["5|e"]);
    let merged = node
        .write(
            "INSERT INTO t AS x (id, n) VALUES (1, 100), (6, 6) ON CONFLICT (ID) DO UPDATE SET n = x.n + excluded.n, price = NULL",
            &[],
        )
        .await
        .expect("merges");
    assert_eq!(merged.affected, 2);
    assert_eq!(node.rows("SELECT * FROM t WHERE id IN (1, 6) ORDER BY id").await, ["1|110|a|NULL", "6|6|NULL|NULL"]);
    node.run(&["INSERT INTO t (id, n) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET n = 0 WHERE t.n < 5"]).await;
    assert_eq!(node.rows("SELECT n FROM t WHERE id = 1").await, ["110"]);
    node.run(&["UPSERT INTO t (id, n) VALUES (1, 7), (8, 8)"]).await;
    assert_eq!(node.rows("SELECT id, n, name FROM t WHERE id IN (1, 8) ORDER BY id").await, ["1|7|a", "8|8|NULL"]);
    let twice = "INSERT INTO t (id, n) VALUES (20, 1), (20, 2) ON CONFLICT (id) DO UPDATE SET n = excluded.n";
    assert_eq!(node.write(twice, &[]).await.expect_err("twice").sqlstate(), "21000");
    let no_key = "INSERT INTO t (id) VALUES (1) ON CONFLICT (n) DO NOTHING";
    assert_eq!(node.write(no_key, &[]).await.expect_err("no such key").sqlstate(), "42P10");
    let by_name =
        "INSERT INTO t (id, name, n) VALUES (77, 'a', 1) ON CONFLICT (name) DO UPDATE SET id = excluded.id, n = 1";
    node.run(&[by_name]).await;
    assert_eq!(node.rows("SELECT id, n FROM t WHERE name = 'a'").await, ["77|1"]);
}

#[tokio::test]
async fn returning_answers_the_rows() {
    let mut node = table().await;
    let cases: &[(&str, &[&str])] = &[
        ("INSERT INTO t (id, n) VALUES (4, 40) RETURNING *", &["4|40|NULL|NULL"]),
        ("UPDATE t SET n = 5 WHERE id <= 2 RETURNING id, n AS m", &["1|5", "2|5"]),
        ("DELETE FROM t WHERE id = 2 RETURNING name, price::text", &["b|2.50"]),
        ("DELETE FROM t WHERE id = 2 RETURNING id", &[]),
    ];
    for (sql, expected) in cases {
        let plan = node.write(sql, &[]).await.expect(sql);
        let rows = plan.returning.expect(sql).into_rows();
        assert_eq!(text_of(rows).await.expect(sql), *expected, "{sql}");
    }
}

#[tokio::test]
async fn values_that_do_not_fit_are_refused() {
    let mut node = table().await;
    let cases = [
        ("INSERT INTO t VALUES (NULL, 1, 'x', 1)", "23502"),
        ("INSERT INTO t (n) VALUES (1)", "23502"),
        ("INSERT INTO t VALUES ('x', 1, 'x', 1)", "22P02"),
        ("INSERT INTO t VALUES (9, 3000000000, 'x', 1)", "22003"),
        ("INSERT INTO t VALUES (9, 1, 'x', 1.005)", "22003"),
        ("INSERT INTO t VALUES (9, 1, 'x', 12345.00)", "22003"),
        ("INSERT INTO t VALUES (9, true, 'x', 1)", "42804"),
        ("INSERT INTO t (id, id) VALUES (9, 9)", "42701"),
        ("INSERT INTO t (id, n) VALUES (9)", "42601"),
        ("INSERT INTO t (id, missing) VALUES (9, 1)", "42703"),
        ("INSERT INTO missing VALUES (1)", "42P01"),
        ("UPDATE t SET n = 2147483647 + n WHERE id = 1", "22003"),
        ("UPDATE t SET n = n / 0", "22012"),
        ("UPDATE t SET id = NULL WHERE id = 1", "23502"),
        ("UPDATE t SET missing = 1", "42703"),
        ("UPDATE t SET n = 1 WHERE missing = 1", "42703"),
        ("DELETE FROM t WHERE n = 'x'", "22P02"),
        ("INSERT INTO t VALUES (9, 1, 'x', 1) RETURNING n + 1", "0A000"),
    ];
    for (sql, sqlstate) in cases {
        assert_eq!(node.write(sql, &[]).await.expect_err(sql).sqlstate(), sqlstate, "{sql}");
    }
    assert_eq!(all(&node).await, ["1|10|a|1.00", "2|20|b|2.50", "3|NULL|NULL|NULL"]);
}

#[tokio::test]
async fn parameters_reach_every_part_of_a_write() {
    let mut node = table().await;
    let values = [Value::text("7"), Value::BigInt(70), Value::text("g")];
    assert_eq!(node.write("INSERT INTO t (id, n, name) VALUES (?, ?, ?)", &values).await.expect("inserts").affected, 1);
    let values = [Value::BigInt(5), Value::text("g"), Value::BigInt(70)];
    node.write("UPDATE t SET n = n + $1 WHERE name = $2 AND n = $3", &values).await.expect("updates");
    assert_eq!(node.rows("SELECT n FROM t WHERE id = 7").await, ["75"]);
    let values = [Value::text("G"), Value::BigInt(1)];
    node.write("UPDATE t SET n = $2 WHERE upper(name) = $1", &values).await.expect("updates by DataFusion");
    assert_eq!(node.rows("SELECT n FROM t WHERE id = 7").await, ["1"]);
    let deleted = node.write("DELETE FROM t WHERE id IN ($1, $2)", &[Value::BigInt(7), Value::BigInt(1)]).await;
    assert_eq!(deleted.expect("deletes").affected, 2);
}

#[tokio::test]
async fn rows_of_other_tables_decide_an_update() {
    let mut node = insurance().await;
    node.run(&["UPDATE KCA2 k SET AGE = p.id FROM payments p WHERE p.person = k.AAC001 AND p.note = 'b'"]).await;
    assert_eq!(node.rows("SELECT AGE FROM KCA2 WHERE AAC001 = 2").await, ["12"]);
    let gone =
        node.write("DELETE FROM KCA2 WHERE NOT EXISTS (SELECT 1 FROM payments WHERE person = AAC001)", &[]).await;
    assert_eq!(gone.expect("deletes").affected, 3);
    assert_eq!(node.rows("SELECT AAC001 FROM KCA2 ORDER BY 1").await, ["1", "2"]);
}

#[tokio::test]
async fn tables_and_indexes_are_defined_and_dropped() {
    let mut node = Node::new();
    node.run(&[
        "CREATE TABLE IF NOT EXISTS a (x INT NOT NULL, y VARCHAR(10), PRIMARY KEY (x), UNIQUE (y, x))",
        "CREATE TABLE IF NOT EXISTS A (z INT)",
        "CREATE UNIQUE INDEX ux ON a (Y)",
        "CREATE INDEX IF NOT EXISTS ux ON a (x)",
        "DROP INDEX UX",
        "DROP INDEX IF EXISTS ux",
        "DROP TABLE IF EXISTS b, a",
        "CREATE TABLE public.a (z DOUBLE PRECISION, w NUMERIC(5,1), v TIMESTAMP WITH TIME ZONE)",
    ])
    .await;
    let cases = [
        ("CREATE TABLE A (x INT)", "42P07"),
        ("CREATE TABLE b (x MONEY)", "0A000"),
        ("CREATE TABLE b (x INT DEFAULT 5)", "0A000"),
        ("CREATE TABLE b (x INT CHECK (x > 0))", "0A000"),
        ("CREATE TABLE b (x INT REFERENCES a)", "0A000"),
        ("CREATE TABLE b (x INT, x INT)", "42P16"),
        ("CREATE TABLE b (x INT PRIMARY KEY, y INT PRIMARY KEY)", "42P16"),
        ("CREATE TABLE b AS SELECT 1", "0A000"),
        ("CREATE INDEX i ON a (nothing)", "42703"),
        ("CREATE INDEX i ON nowhere (x)", "42P01"),
        ("CREATE INDEX i ON a (lower(z))", "0A000"),
        ("DROP INDEX i", "42704"),
        ("DROP TABLE nowhere", "42P01"),
        ("ALTER TABLE a ADD COLUMN q INT", "0A000"),
        ("CREATE VIEW v AS SELECT 1", "0A000"),
        ("GRANT ALL ON a TO b", "0A000"),
    ];
    for (sql, sqlstate) in cases {
        assert_eq!(node.write(sql, &[]).await.expect_err(sql).sqlstate(), sqlstate, "{sql}");
    }
}

#[tokio::test]
async fn a_batch_sees_itself_and_is_all_or_nothing() {
    let node = table().await;
    let statement = |sql: &str, params: Vec<Value>| BatchStatement { sql: sql.into(), params };
    let batch = [
        statement("INSERT INTO t (id, n) VALUES ($1, 1)", vec![Value::BigInt(50)]),
        statement("UPDATE t SET n = n + 1 WHERE id = 50", vec![]),
        statement("CREATE TABLE other (a INT PRIMARY KEY)", vec![]),
        statement("INSERT INTO other SELECT id FROM t WHERE id = 50", vec![]),
        statement("SELECT n FROM t JOIN other ON a = id", vec![]),
    ];
    let mut plan = node.engine.plan_batch(&node.snapshot, &batch).await.expect("plans");
    let Some(BatchAnswer::Rows(rows)) = plan.answers.pop() else { panic!("the last statement reads") };
    assert_eq!(text_of(rows).await.expect("rows"), ["2"]);
    let (after, applied) = node.snapshot.apply(node.snapshot.index().next(), &plan.operations).expect("applies");
    assert_eq!(applied.len(), plan.operations.len());
    let prepared = node.engine.prepare(&after, "SELECT n FROM t WHERE id = 50", &[]).expect("prepares");
    assert_eq!(text_of(node.engine.query(&after, &prepared, &[]).await.expect("answers")).await.expect("rows"), ["2"]);
    let broken = [statement("DELETE FROM t", vec![]), statement("INSERT INTO t (id) VALUES (1), (1)", vec![])];
    assert_eq!(node.engine.plan_batch(&node.snapshot, &broken).await.expect_err("duplicate").sqlstate(), "23505");
    assert_eq!(all(&node).await.len(), 3);
}

#[tokio::test]
async fn typed_writes_do_as_statements_do() {
    let mut node = table().await;
    let mut apply = |write: Write| {
        let plan = node.engine.plan_typed_write(&node.snapshot, &write).expect("plans");
        node.snapshot = node.snapshot.apply(node.snapshot.index().next(), &plan.operations).expect("applies").0;
        plan
    };
    let insert = |rows, on_conflict| Write::Insert {
        table: "T".into(),
        columns: vec![0, 1],
        rows,
        on_conflict,
        returning: true,
    };
    let rows = vec![vec![Value::BigInt(1), Value::text("5")], vec![Value::BigInt(9), Value::Null]];
    let plan = apply(insert(rows, OnConflict::Replace { columns: vec![] }));
    assert_eq!((plan.affected, plan.returning.map(|r| r.batch.num_rows())), (2, Some(2)));
    let update = Write::Update {
        table: "t".into(),
        set: vec![(2, Value::text("n"))],
        filter: Some(Filter::equal(0, Value::BigInt(9))),
        returning: false,
    };
    assert_eq!(apply(update).affected, 1);
    let delete = Write::Delete { table: "t".into(), filter: Some(Filter::IsNull { column: 3 }), returning: false };
    assert_eq!(apply(delete).affected, 2);
    assert_eq!(all(&node).await, ["1|5|a|1.00", "2|20|b|2.50"]);
}

#[tokio::test]
async fn direct_rows_become_a_batch() {
    let node = insurance().await;
    for sql in [
        "SELECT AAC002 AS Name, AGE FROM KCA2 WHERE AAC001 = 1",
        "SELECT k.AAC002, AGE FROM KCA2 k, payments WHERE id = 11 AND person = AAC001",
    ] {
        let prepared = node.engine.prepare(&node.snapshot, sql, &[]).expect(sql);
        let Rows::Direct(rows) = node.engine.query(&node.snapshot, &prepared, &[]).await.expect(sql) else {
            panic!("{sql}: direct")
        };
        let batch = rows.to_batch().expect(sql);
        assert_eq!(batch.schema().field(0).name(), &rows.columns()[0].name);
        let stream = cachesql_sql::RowStream::of_batches(rows.shared_columns(), vec![batch]);
        assert_eq!(text_of(Rows::Stream(stream)).await.expect(sql), ["Li|30"], "{sql}");
    }
}
