//! Statements that are broken, deep, stacked or endless: each a clear error, in bounded time.

use std::time::{Duration, Instant};

use cachesql_sql::{EngineLimits, SqlError};
use proptest::prelude::*;

use crate::fixture::{Node, insurance};

#[tokio::test]
async fn what_is_broken_has_its_own_code() {
    let node = insurance().await;
    let cases = [
        ("", "42601"),
        (";", "42601"),
        ("SELEC 1", "42601"),
        ("SELECT 'unfinished", "42601"),
        ("SELECT 1; DROP TABLE KCA2", "42601"),
        ("SELECT * FROM missing", "42P01"),
        ("SELECT * FROM missing.KCA2", "42P01"),
        ("SELECT missing FROM KCA2", "42703"),
        ("SELECT count(missing) FROM KCA2", "42703"),
        ("SELECT k.missing FROM KCA2 k", "42703"),
        ("SELECT AAC001 FROM KCA2 a JOIN KCA2 b ON a.AAC001 = b.AAC001", "42702"),
        ("SELECT AAC001 FROM KCA2 a, KCA2 b WHERE a.AAC001 + 0 = b.AAC001", "42702"),
        ("SELECT * FROM KCA2 WHERE AAC002 = 5", "42883"),
        ("SELECT count(*) FROM KCA2 WHERE AAC002 = 5 HAVING true", "42883"),
        ("SELECT * FROM KCA2 WHERE AGE = 'x'", "22P02"),
        ("SELECT count(*) FROM KCA2 WHERE AGE IN (1, 'x') HAVING true", "22P02"),
        ("SELECT * FROM KCA2 WHERE AGE LIKE '1%'", "42883"),
        ("SELECT 1 / 0", "22012"),
        ("SELECT AGE / (AGE - AGE) FROM KCA2", "22012"),
        ("SELECT 1.5::double precision / 0", "22012"),
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT AAC001 * 9223372036854775807 FROM KCA2", "22003"),
        ("SELECT no_such_function(1)", "42883"),
        ("SELECT AAC002 FROM KCA2 GROUP BY AGE", "42803"),
        ("SELECT (SELECT AAC001 FROM KCA2)", "21000"),
        ("SELECT AAC001 FROM KCA2 WHERE (AGE IS NOT DISTINCT FROM 'NULL') OR AAC001 = 4", "22P02"),
        ("SELECT AAC001 FROM KCA2 WHERE AGE IS NOT DISTINCT FROM 4 OR AAC001 = 4", "0A000"),
        ("SELECT count(*) FROM unnest(range(1, 1000000000))", "42883"),
        ("SELECT length(repeat('x', 1000000000))", "53200"),
        ("SELECT length(lpad(AAC002, 1000000000)) FROM KCA2", "53200"),
        ("SELECT length(replace(repeat('x', 100000), 'x', repeat('y', 100000)))", "53200"),
        ("SELECT length(regexp_replace(repeat('x', 100000), 'x', repeat('y', 100000), 'g'))", "53200"),
        ("SELECT length(repeat('x', 60000000) || repeat('y', 60000000))", "53200"),
        ("SELECT length(concat(repeat('x', 60000000), repeat('y', 60000000)))", "53200"),
        ("SELECT length(upper(repeat('x', 60000000)))", "53200"),
        ("SELECT * FROM KCA2 TABLESAMPLE SYSTEM (10)", "0A000"),
        ("SELECT * FROM KCA2 FOR UPDATE", "0A000"),
        ("SELECT AAC001 FROM KCA2 LIMIT -1", "2201W"),
        ("SELECT AAC001 FROM KCA2 OFFSET -1", "2201X"),
        ("SELECT version()", "42883"),
        // Where DataFusion means something else than PostgreSQL.
        ("SELECT to_char(now(), 'YYYY')", "42883"),
        ("SELECT to_timestamp(0)", "42883"),
        ("SELECT AAC001 FROM KCA2 WHERE AAC002 SIMILAR TO 'M%'", "0A000"),
        ("SELECT now() AT TIME ZONE 'Asia/Shanghai'", "0A000"),
        ("SELECT '2020-13-01'::date", "22003"),
        ("SELECT 'x'::integer", "22P02"),
        ("WITH x AS (DELETE FROM KCA2 RETURNING *) SELECT * FROM x", "0A000"),
        ("COPY KCA2 FROM '/etc/passwd'", "0A000"),
        ("SET x = 1", "0A000"),
        ("EXPLAIN ANALYZE SELECT 1", "0A000"),
    ];
    for (sql, sqlstate) in cases {
        let found = match node.engine.prepare(&node.snapshot, sql, &[]) {
            Err(error) => error.sqlstate(),
            Ok(_) => node.failure(sql).await,
        };
        assert_eq!(found, sqlstate, "{sql}");
    }
}

#[tokio::test]
async fn depth_is_limited_and_length_is_not_depth() {
    let node = insurance().await;
    let repeat = |part: &str, n: usize| part.repeat(n);
    let deep = [
        format!("SELECT {}1{}", repeat("(", 10_000), repeat(")", 10_000)),
        format!("SELECT * FROM KCA2 WHERE AGE = 1{}", repeat(" AND AGE = 1", 10_000)),
        format!("SELECT * FROM KCA2 WHERE {} AGE = 1", repeat("NOT ", 10_000)),
        format!("SELECT {}1", repeat("- ", 10_000)),
        format!("SELECT 1{}", repeat("+1", 10_000)),
        format!("SELECT 1{}", repeat("::int", 10_000)),
        format!("SELECT 1{}", repeat(" IS NULL", 10_000)),
        format!("SELECT 1{}", repeat(" UNION ALL SELECT 1", 10_000)),
        format!("SELECT {}1{}", repeat("CASE WHEN true THEN ", 10_000), repeat(" END", 10_000)),
        format!("SELECT * FROM KCA2 a0{}", (1..5_000).map(|i| format!(" JOIN KCA2 a{i} ON true")).collect::<String>()),
        format!("SELECT {}1{}", repeat("abs(", 10_000), repeat(")", 10_000)),
        format!("{}SELECT 1", repeat("EXPLAIN ", 10_000)),
        format!("SELECT a{}", repeat("[1]", 10_000)),
        repeat("SELECT 1 FROM (", 10_000),
        repeat("[", 100_000),
    ];
    for sql in &deep {
        let start = Instant::now();
        let error = node.engine.prepare(&node.snapshot, sql, &[]).expect_err("too deep");
        assert_eq!(error.sqlstate(), "54001", "{}…", &sql[..60]);
        assert!(start.elapsed() < Duration::from_secs(5), "{}…", &sql[..60]);
    }
    let long = format!("SELECT {}1 --{}", repeat(" ", 10), repeat("x", 2_000_000));
    assert_eq!(node.engine.prepare(&node.snapshot, &long, &[]).expect_err("too long").sqlstate(), "54001");
    let list = (0..20_000).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(node.rows(&format!("SELECT count(*) FROM KCA2 WHERE AGE IN ({list})")).await, ["4"]);
    let nested = format!("SELECT {}1{}", repeat("(", 200), repeat(")", 200));
    assert_eq!(node.rows(&nested).await, ["1"]);
    let chain = format!("SELECT count(*) FROM KCA2 WHERE AGE + 0 > 0{}", repeat(" AND AGE > 0", 120));
    assert_eq!(node.rows(&chain).await, ["4"]);
}

async fn many_rows(node: &mut Node) {
    node.run(&["CREATE TABLE big (id INTEGER PRIMARY KEY, g INTEGER, t TEXT)"]).await;
    for part in 0..4 {
        let rows = part * 5_000..(part + 1) * 5_000;
        let values = rows.map(|i| format!("({i}, {}, 'text {i}')", i % 7)).collect::<Vec<_>>().join(", ");
        node.run(&[&format!("INSERT INTO big VALUES {values}")]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_statement_is_stopped() {
    let limit = Duration::from_millis(300);
    let mut node = Node::hurried(Duration::from_secs(20));
    many_rows(&mut node).await;
    let hurried = Node::hurried(limit);
    let node = Node { engine: hurried.engine, snapshot: node.snapshot };
    for sql in [
        "SELECT count(*) FROM big a, big b, big c, big d WHERE a.g + b.g + c.g + d.g = 3",
        "SELECT * FROM big a, big b, big c WHERE a.g + b.g + c.g < 0",
        "SELECT a.t FROM big a JOIN big b ON a.g = b.g JOIN big c ON b.g = c.g ORDER BY a.t || b.t || c.t",
    ] {
        let start = Instant::now();
        let error = node.ask(sql, &[]).await.expect_err(sql);
        assert!(matches!(error, SqlError::Timeout { .. } | SqlError::Memory(_)), "{sql}: {error}");
        assert!(start.elapsed() < Duration::from_secs(8), "{sql}: took {:?}", start.elapsed());
    }
    assert_eq!(node.rows("SELECT t FROM big WHERE id = 5").await, ["text 5"]);
}

/// The clock is looked at after so many comparisons, not so many rows: few rows take long where each is compared with much.
#[tokio::test]
async fn few_rows_that_are_compared_with_much_are_stopped_too() {
    let mut node = Node::new();
    let values = (0..100).map(|i| format!("({i}, {i})")).collect::<Vec<_>>().join(", ");
    node.run(&["CREATE TABLE few (id INTEGER PRIMARY KEY, n INTEGER)", &format!("INSERT INTO few VALUES {values}")])
        .await;
    let mut node = Node { engine: Node::hurried(Duration::ZERO).engine, snapshot: node.snapshot };
    let list = (1_000..2_000).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    for sql in [format!("DELETE FROM few WHERE n IN ({list})"), format!("UPDATE few SET n = 0 WHERE n IN ({list})")] {
        assert_eq!(node.write(&sql, &[]).await.expect_err("no time").sqlstate(), "57014", "{}…", &sql[..40]);
    }
    for sql in [
        format!("SELECT id FROM few WHERE n IN ({list})"),
        format!("SELECT a.id FROM few a JOIN few b ON a.id = b.id WHERE b.n IN ({list})"),
    ] {
        assert_eq!(node.failure(&sql).await, "57014", "{}…", &sql[..40]);
    }
    // A hundred comparisons are done before anybody looks.
    assert_eq!(node.write("DELETE FROM few WHERE n = 7", &[]).await.expect("done").affected, 1);
    assert_eq!(node.rows("SELECT a.id FROM few a JOIN few b ON a.id = b.id WHERE b.n = 8").await, ["8"]);
}

#[tokio::test]
async fn memory_and_rows_are_limited() {
    let mut node = Node::new();
    many_rows(&mut node).await;
    let limited = Node::with(EngineLimits { memory_bytes: 100_000, rows: 1_000, ..EngineLimits::default() });
    let node = Node { engine: limited.engine, snapshot: node.snapshot };
    assert_eq!(node.failure("SELECT t, count(*) FROM big GROUP BY t").await, "53200");
    assert_eq!(node.failure("SELECT * FROM big").await, "54000");
    assert_eq!(node.failure("SELECT t FROM big WHERE id < 1001").await, "54000");
    assert_eq!(node.rows("SELECT t FROM big WHERE id < 1000").await.len(), 1_000);
    assert_eq!(node.rows("SELECT count(*) FROM big WHERE id >= 0").await, ["20000"]);
    let limits = EngineLimits { write_rows: 10, ..EngineLimits::default() };
    let mut node = Node { engine: Node::with(limits).engine, snapshot: node.snapshot };
    assert_eq!(node.write("UPDATE big SET g = 0", &[]).await.expect_err("too many").sqlstate(), "54000");
}

#[tokio::test]
async fn planning_never_panics_whatever_the_text() {
    let node = insurance().await;
    let words = prop::sample::select(vec![
        "SELECT",
        "FROM",
        "WHERE",
        "KCA2",
        "AAC001",
        "payments",
        "(",
        ")",
        ",",
        "*",
        "=",
        "<",
        "1",
        "'x'",
        "NULL",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "ORDER BY",
        "LIMIT",
        "GROUP BY",
        "count(*)",
        "INSERT INTO",
        "VALUES",
        "UPDATE",
        "SET",
        "DELETE",
        "JOIN",
        "ON",
        "AS",
        "a",
        "b",
        ".",
        "$1",
        "?",
        "UNION",
        "WITH",
        "CASE",
        "WHEN",
        "THEN",
        "END",
        "::",
        "int",
        "-",
        "+",
        "/",
        "||",
        "DISTINCT",
        "HAVING",
        "EXISTS",
        "OVER",
        "RETURNING",
        "CREATE TABLE",
        "DROP",
        "UPSERT",
        ";",
        "--",
        "/*",
        "1e400",
        "99999999999999999999",
        "''",
        "\"",
        "E'\\",
        "interval",
        "date",
        "IS",
        "[",
        "]",
        "{",
        "汉字",
        "\u{0}",
    ]);
    let statement = prop::collection::vec(words, 1..25).prop_map(|w| w.join(" "));
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 3_000, ..ProptestConfig::default() });
    let outcome = runner.run(&statement, |sql| {
        let _ = node.engine.prepare(&node.snapshot, &sql, &[]);
        Ok(())
    });
    outcome.expect("no text panics");
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 1_000, ..ProptestConfig::default() });
    let outcome = runner.run(&any::<String>(), |sql| {
        let _ = node.engine.prepare(&node.snapshot, &sql, &[]);
        let _ = node.engine.prepare(&node.snapshot, &format!("SELECT * FROM KCA2 WHERE {sql}"), &[]);
        Ok(())
    });
    outcome.expect("no text panics");
}

#[tokio::test]
async fn what_a_statement_becomes_is_limited_too() {
    let node = insurance().await;
    let items = |n: usize| vec!["1"; n].join(", ");
    // Each WITH query is twice the one before it.
    let doubled = |n: usize| {
        let double = |i: usize| format!(", c{i} AS (SELECT * FROM c{0} UNION ALL SELECT * FROM C{0})", i - 1);
        format!("WITH c0 AS (SELECT 1){} SELECT count(*) FROM c{n}", (1..=n).map(double).collect::<String>())
    };
    // The same, each inside the next, under one name.
    let nested = |n: usize| {
        let wrap = |inner: String, _| format!("WITH x AS ({inner}) SELECT a.AAC001 FROM x a JOIN x b ON true");
        (0..n).fold("SELECT AAC001 FROM KCA2".to_owned(), wrap)
    };
    let cube = |n: usize| {
        let columns = (0..n).map(|i| format!("AAC001 + {i}")).collect::<Vec<_>>().join(", ");
        format!("SELECT count(*) FROM KCA2 GROUP BY CUBE ({columns})")
    };
    let rollups = "SELECT count(*) FROM KCA2 GROUP BY ".to_owned() + &["ROLLUP (AAC001, AGE, AAC002)"; 7].join(", ");
    let refused = [
        (format!("SELECT {}", items(1_665)), "54011"),
        (format!("SELECT * FROM (SELECT {}) x", items(20_000)), "54011"),
        (doubled(40), "54001"),
        (nested(40), "54001"),
        (cube(25), "54001"),
        (rollups, "54001"),
    ];
    for (sql, sqlstate) in refused {
        let error = node.engine.prepare(&node.snapshot, &sql, &[]).expect_err("too large");
        assert_eq!(error.sqlstate(), sqlstate, "{error}");
    }
    let columns: Vec<String> = (0..1_664).map(|i| format!("{i} AS c{i}")).collect();
    assert_eq!(node.rows(&format!("SELECT {}", columns.join(", "))).await.len(), 1);
    assert_eq!(node.rows(&doubled(6)).await, ["64"]);
    // No group for each of no columns, one column, the other, and both.
    let grouped = node.rows("SELECT count(*) FROM (SELECT 1 AS a, 2 AS b) x GROUP BY CUBE (a, b)").await;
    assert_eq!(grouped, ["1", "1", "1", "1"]);
    let numbers = (0..50_000).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let all = node.rows("SELECT count(*) FROM KCA2").await;
    assert_eq!(node.rows(&format!("SELECT count(*) FROM KCA2 WHERE AAC001 NOT IN ({numbers}) OR true")).await, all);
}

#[tokio::test]
async fn what_functions_make_is_counted_together() {
    let node = insurance().await;
    let sum = |n: usize| {
        let texts: Vec<String> = (0..n).map(|i| format!("length(repeat(AAC002 || '{i}', 1000000 / 2))")).collect();
        format!("SELECT {} FROM (SELECT * FROM KCA2 ORDER BY AAC001 LIMIT 1) one", texts.join(", "))
    };
    assert_eq!(node.rows(&sum(1)).await.len(), 1);
    assert_eq!(node.failure(&sum(900)).await, "53200");
}

#[tokio::test]
async fn a_long_constant_is_not_repeated_for_all_rows_at_once() {
    let mut node = Node::new();
    node.run(&["CREATE TABLE t (a INTEGER PRIMARY KEY)"]).await;
    let rows: Vec<String> = (0..3_000).map(|i| format!("({i})")).collect();
    node.run(&[&format!("INSERT INTO t VALUES {}", rows.join(", "))]).await;
    // 3,000 times 1 MB, were they all there together: more than one array can hold.
    let lengths =
        "SELECT count(*), sum(octet_length(x)) FROM (SELECT CASE WHEN a >= 0 THEN $1 ELSE 'no' END AS x FROM t) y";
    let text = cachesql_types::Value::text("x".repeat(1_000_000));
    assert_eq!(node.ask(lengths, &[text]).await.expect("in time and memory"), ["3000|3000000000"]);
}
