//! What reads answer, and by which way.

use cachesql_sql::{Path, Rows, StatementKind};
use cachesql_types::{DataType, Value};

use crate::fixture::{Node, insurance, text_of};

#[tokio::test]
async fn the_direct_path_answers_what_sql_says() {
    let node = insurance().await;
    let cases: &[(&str, &[&str])] = &[
        ("SELECT AAC002 FROM KCA2 WHERE AAC001 = 1", &["Li"]),
        ("SELECT aac002 FROM kca2 WHERE aac001 = 1", &["Li"]),
        ("SELECT \"aac002\" FROM \"Kca2\" k WHERE k.AAC001 = 3", &["O'Neil"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAB004 = '北京' ORDER BY AAC001 DESC", &["3", "1"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAB004 = '北京' AND AGE >= 30", &["1"]),
        ("SELECT AAC001 FROM KCA2 WHERE AGE BETWEEN 17 AND 30 ORDER BY AGE, AAC001", &["5", "1", "4"]),
        ("SELECT AAC001 FROM KCA2 WHERE AGE IN (41, 17, 99) ORDER BY 1", &["2", "5"]),
        ("SELECT AAC001 FROM KCA2 WHERE AGE = 41 OR AAC002 = 'Li' ORDER BY AAC001", &["1", "2"]),
        ("SELECT AAC001 FROM KCA2 WHERE AGE <> 30 ORDER BY AAC001", &["2", "5"]),
        ("SELECT AAC001 FROM KCA2 WHERE NOT (AGE = 30) ORDER BY AAC001", &["2", "5"]),
        ("SELECT AAC001 FROM KCA2 WHERE AGE NOT IN (30, NULL) ORDER BY AAC001", &[]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC002 LIKE 'O%'", &["3"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAB004 LIKE '北%' ORDER BY AAC001", &["1", "3"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC002 IS NULL", &["5"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC002 = ''", &["4"]),
        ("SELECT AAC001, AGE FROM KCA2 ORDER BY AGE, AAC001", &["5|17", "1|30", "4|30", "2|41", "3|NULL"]),
        ("SELECT AAC001 FROM KCA2 ORDER BY AGE DESC, AAC001 LIMIT 2", &["3", "2"]),
        ("SELECT AAC001 FROM KCA2 ORDER BY AGE NULLS FIRST LIMIT 1", &["3"]),
        ("SELECT AAC001 FROM KCA2 ORDER BY AAC001 LIMIT 2 OFFSET 3", &["4", "5"]),
        ("SELECT AAC001 FROM KCA2 ORDER BY AAC001 FETCH FIRST 1 ROW ONLY", &["1"]),
        ("SELECT count(*) FROM KCA2 WHERE AGE > 20", &["3"]),
        ("SELECT COUNT(*) FROM KCA2", &["5"]),
        ("SELECT count(*) FROM KCA2 LIMIT 0", &[]),
        ("SELECT AAC001 FROM KCA2 WHERE PAID = 10.5", &["1"]),
        ("SELECT AAC001 FROM KCA2 WHERE PAID < 0", &["5"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 = 1.5", &[]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 > 3.5 ORDER BY AAC001", &["4", "5"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 = '2'", &["2"]),
        ("SELECT AAC001 FROM KCA2 WHERE SINCE < '1970-01-01'", &["3"]),
        ("SELECT AAC001 FROM KCA2 WHERE 30 < AGE", &["2"]),
        ("SELECT AAC001 FROM KCA2 WHERE AGE > 30 AND AGE < 10", &[]),
        ("SELECT AAC001 FROM KCA2 WHERE AGE = NULL", &[]),
        (
            "SELECT k.AAC002, p.amount FROM KCA2 k JOIN payments p ON p.person = k.AAC001 WHERE k.AAC001 = 1 ORDER BY p.id DESC",
            &["Li|7.25", "Li|5.00"],
        ),
        (
            "SELECT p.id, AAC002 FROM payments p, KCA2 WHERE person = AAC001 AND amount < 6 ORDER BY p.id",
            &["10|Li", "12|Wang"],
        ),
        ("SELECT count(*) FROM payments JOIN KCA2 ON AAC001 = person", &["3"]),
    ];
    for (sql, expected) in cases {
        let prepared = node.engine.prepare(&node.snapshot, sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let rows = node.engine.query(&node.snapshot, &prepared, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(matches!(rows, Rows::Direct(_)), "{sql}: not on the direct path");
        assert_eq!(text_of(rows).await.expect(sql), *expected, "{sql}");
    }
}

#[tokio::test]
async fn datafusion_answers_the_rest_as_postgresql_does() {
    let node = insurance().await;
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT AAB004, count(*) FROM KCA2 GROUP BY AAB004 ORDER BY 2 DESC, 1",
            &["北京|2", "上海|1", "深圳|1", "NULL|1"],
        ),
        ("SELECT AAC001 FROM KCA2 WHERE lower(aac002) = 'li'", &["1"]),
        ("SELECT 1/2, 7 % 4, -7/2", &["0|3|-3"]),
        ("SELECT 1.0/4 = 0.25", &["t"]),
        ("SELECT sum(paid) FROM kca2", &["100000009.24"]),
        ("SELECT max(AGE) - min(AGE) FROM KCA2", &["24"]),
        ("SELECT AAC001 FROM KCA2 ORDER BY AGE + 1 DESC, AAC001 LIMIT 1", &["3"]),
        (
            "SELECT k.AAC001, sum(p.amount) s FROM KCA2 k LEFT JOIN payments p ON p.person = k.AAC001 GROUP BY k.AAC001 ORDER BY k.AAC001",
            &["1|12.25", "2|1.00", "3|NULL", "4|NULL", "5|NULL"],
        ),
        ("WITH Old AS (SELECT AAC001 Id FROM KCA2 WHERE AGE > 25) SELECT count(*) FROM old WHERE ID > 1", &["2"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 IN (SELECT person FROM payments) ORDER BY 1", &["1", "2"]),
        ("SELECT AAC001, AAC001 FROM KCA2 WHERE AGE = 17 OR AGE + 0 = 17", &["5|5"]),
        (
            "SELECT *, AGE FROM payments, KCA2 WHERE id + 0 = 10 AND AAC001 = person",
            &["10|1|5.00|a|1|Li|北京|30|10.50|2020-01-01 00:00:00|30"],
        ),
        ("SELECT '007'", &["007"]),
        ("SELECT AAC001 FROM KCA2 WHERE since = '2020-01-01' AND age + 0 = 30", &["1"]),
        ("SELECT CAST('2020-02-30' AS TEXT)", &["2020-02-30"]),
        ("SELECT date '2020-02-29'", &["2020-02-29"]),
        ("SELECT row_number() OVER (ORDER BY AAC001 DESC), AAC001 FROM KCA2 ORDER BY 2 LIMIT 1", &["5|1"]),
        ("SELECT AAC001 FROM KCA2 UNION SELECT id FROM payments ORDER BY 1 LIMIT 3", &["1", "2", "3"]),
        ("VALUES (1, 'a'), (2, NULL)", &["1|a", "2|NULL"]),
        ("SELECT now() = now()", &["t"]),
        ("SELECT coalesce(AGE, 0) FROM KCA2 WHERE AAC001 = 3", &["0"]),
        ("SELECT round(2.5)", &["3"]),
        ("SELECT AAC001 FROM KCA2 UNION SELECT person FROM payments ORDER BY 1 DESC LIMIT 2", &["NULL", "9"]),
        ("SELECT sum(n) FROM (VALUES (9223372036854775807), (1)) v(n)", &["9223372036854775808"]),
        ("SELECT sum(n) OVER () FROM (VALUES (9223372036854775807), (1)) v(n) LIMIT 1", &["9223372036854775808"]),
        ("SELECT repeat('ab', 2) || lpad('x', 3, '-') || replace('aba', 'a', 'c')", &["abab--xcbc"]),
        (
            "SELECT AAC001 FROM KCA2 WHERE (AGE IS NOT DISTINCT FROM NULL) OR (AGE IS NOT DISTINCT FROM '17') ORDER BY 1",
            &["3", "5"],
        ),
        (
            "SELECT count(*) FROM KCA2 WHERE PAID::double precision IN (0.1, 5e-324) OR PAID::double precision < -1e308",
            &["0"],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(node.rows(sql).await, *expected, "{sql}");
    }
}

#[tokio::test]
async fn the_index_is_the_narrowest() {
    let node = insurance().await;
    let cases = [
        ("SELECT * FROM KCA2 WHERE AAC001 = 1 AND AAB004 = '北京'", Path::Direct, Some("AAC001")),
        ("SELECT * FROM KCA2 WHERE AAB004 = '北京'", Path::Direct, Some("AAB004")),
        ("SELECT * FROM KCA2 WHERE AAB004 = '北京' AND AGE = 30", Path::Direct, Some("AAB004+AGE")),
        ("SELECT * FROM KCA2 WHERE AAB004 = '北京' AND AGE > 20", Path::Direct, Some("AAB004+AGE")),
        ("SELECT * FROM KCA2 WHERE AGE > 20", Path::Direct, Some("AGE")),
        ("SELECT * FROM KCA2 WHERE AGE IN (1, 2)", Path::Direct, Some("AGE")),
        ("SELECT * FROM KCA2 WHERE AAB004 LIKE '北%'", Path::Direct, Some("AAB004")),
        ("SELECT * FROM KCA2 ORDER BY AAC001 LIMIT 3", Path::Direct, Some("AAC001")),
        ("SELECT * FROM KCA2 ORDER BY AGE DESC LIMIT 3", Path::Direct, Some("AGE")),
        ("SELECT * FROM KCA2 WHERE AAC002 = 'Li'", Path::Direct, None),
        ("SELECT count(*) FROM KCA2 GROUP BY AGE", Path::DataFusion, None),
        ("DELETE FROM KCA2 WHERE AAC001 = 7", Path::Direct, Some("AAC001")),
    ];
    for (sql, path, index) in cases {
        let explanation = node.engine.explain(&node.snapshot, sql).await.expect(sql);
        assert_eq!((explanation.path, explanation.index.as_deref()), (path, index), "{sql}: {}", explanation.text);
    }
    let lines = node.rows("EXPLAIN SELECT * FROM KCA2 WHERE AAC001 = 1").await;
    assert!(lines.iter().any(|l| l.contains("AAC001")), "{lines:?}");
}

#[tokio::test]
async fn parameters_are_typed_by_what_they_stand_beside() {
    let node = insurance().await;
    let prepared = node
        .engine
        .prepare(&node.snapshot, "SELECT AAC001 FROM KCA2 WHERE AGE = $2 AND AAB004 = $1 LIMIT $3", &[])
        .expect("prepares");
    assert_eq!(prepared.parameters(), [DataType::Text, DataType::Integer, DataType::BigInt]);
    assert_eq!(prepared.kind(), StatementKind::Read);
    assert_eq!(prepared.tables(), ["KCA2"]);
    let ask = |sql: &'static str, values: Vec<Value>| {
        let node = &node;
        async move { node.ask(sql, &values).await }
    };
    let text = Value::text;
    let ok = [
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 = ?", vec![Value::BigInt(2)], vec!["2"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 = ?", vec![text("2")], vec!["2"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 = ? AND AGE = ?", vec![text("2"), Value::Double(41.0)], vec!["2"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC002 = $1", vec![Value::BigInt(7)], vec![]),
        ("SELECT AAC001 FROM KCA2 WHERE SINCE = $1", vec![text("2020-01-01T00:00:00Z")], vec!["1"]),
        ("SELECT AAC001 FROM KCA2 WHERE AAC001 = $1", vec![Value::Null], vec![]),
        (
            "SELECT AAC001 FROM KCA2 ORDER BY AAC001 LIMIT ? OFFSET ?",
            vec![Value::BigInt(1), Value::BigInt(1)],
            vec!["2"],
        ),
        ("SELECT AAC001 FROM KCA2 WHERE AGE + $1 = 42", vec![Value::BigInt(1)], vec!["2"]),
        ("SELECT AAC001 FROM KCA2 WHERE upper(AAC002) = $1", vec![text("LI")], vec!["1"]),
        ("SELECT count(*) + $1 FROM KCA2", vec![Value::BigInt(1)], vec!["6"]),
        ("SELECT $1::bigint + 1", vec![text("41")], vec!["42"]),
        ("SELECT $1", vec![Value::BigInt(5)], vec!["5"]),
        ("SELECT sum(AGE) FROM KCA2 WHERE AAC001 IN ($1, $2)", vec![text("1"), Value::BigInt(2)], vec!["71"]),
        (
            "SELECT max(AAC001) FROM KCA2 WHERE SINCE BETWEEN $1 AND $2",
            vec![text("2020-01-01"), text("2030-01-01")],
            vec!["5"],
        ),
    ];
    for (sql, values, expected) in ok {
        assert_eq!(ask(sql, values).await.unwrap_or_else(|e| panic!("{sql}: {e}")), expected, "{sql}");
    }
    let bad = [
        ("SELECT * FROM KCA2 WHERE AAC001 = $1", vec![], "07001"),
        ("SELECT * FROM KCA2 WHERE AAC001 = $1", vec![text("x")], "22P02"),
        ("SELECT * FROM KCA2 WHERE AAC001 = $1", vec![Value::Boolean(true)], "42804"),
        ("SELECT * FROM KCA2 WHERE AAC001 = $1 AND AGE = ?", vec![], "42P02"),
        ("SELECT * FROM KCA2 WHERE AAC001 = $0", vec![], "42P02"),
        ("SELECT * FROM KCA2 LIMIT $1", vec![Value::BigInt(-1)], "2201W"),
        ("SELECT sum(AGE) FROM KCA2 WHERE AAC001 = $1", vec![text("x")], "22P02"),
    ];
    for (sql, values, sqlstate) in bad {
        assert_eq!(ask(sql, values).await.expect_err(sql).sqlstate(), sqlstate, "{sql}");
    }
}

#[tokio::test]
async fn columns_are_named_as_they_were_written() {
    let node = insurance().await;
    let cases: &[(&str, &[&str])] = &[
        ("SELECT * FROM payments", &["id", "person", "amount", "note"]),
        ("SELECT aac001, AAC002 AS Name FROM kca2 WHERE AGE = 1", &["AAC001", "Name"]),
        ("SELECT aac001, AAC002 AS Name FROM kca2 WHERE AGE + 1 = 1", &["AAC001", "Name"]),
        (
            "SELECT count(*), sum(age) total, max(AGE), AGE + 1 FROM KCA2 GROUP BY AGE",
            &["count", "total", "max", "?column?"],
        ),
        ("SELECT * FROM (SELECT AAC001 AS MyId, AAC002 FROM KCA2 WHERE AGE + 1 > 0) s", &["MyId", "AAC002"]),
        ("SELECT s.* , 1 AS One FROM (SELECT age FROM KCA2 ORDER BY age LIMIT 1) s", &["AGE", "One"]),
        (
            "SELECT k.*, p.id FROM KCA2 k JOIN payments p ON p.person = k.AAC001 AND p.id + 0 = 10",
            &["AAC001", "AAC002", "AAB004", "AGE", "PAID", "SINCE", "id"],
        ),
    ];
    for (sql, expected) in cases {
        let prepared = node.engine.prepare(&node.snapshot, sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let names: Vec<&str> = prepared.columns().iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, *expected, "{sql}");
        node.rows(sql).await;
    }
}

#[tokio::test]
async fn uuids_and_json_compare_with_texts() {
    let mut node = Node::new();
    node.run(&[
        "CREATE TABLE u (id UUID PRIMARY KEY, doc JSON, ok BOOLEAN, at TIMESTAMPTZ, day DATE, raw BYTEA)",
        "INSERT INTO u VALUES ('00000000-0000-0000-0000-00000000000a', '{\"a\":1}', true, '2020-01-01T01:00:00+01:00', '1969-01-01', '\\x00ff')",
    ])
    .await;
    let one = ["1"];
    for condition in [
        "id = '00000000-0000-0000-0000-00000000000A'",
        "id IN ('00000000-0000-0000-0000-00000000000a')",
        "doc = '{\"a\":1}'",
        "at = '2020-01-01 00:00:00Z'",
        "day < '1970-01-01'",
        "ok",
        "ok IS TRUE",
        "raw = '\\x00ff'",
    ] {
        assert_eq!(node.rows(&format!("SELECT count(*) FROM u WHERE {condition}")).await, one, "{condition}");
        let datafusion = format!("SELECT count(*) FROM u WHERE {condition} HAVING count(*) >= 0");
        assert_eq!(node.rows(&datafusion).await, one, "{condition} by DataFusion");
    }
    assert_eq!(node.rows("SELECT id::text || 'x' FROM u").await, ["00000000-0000-0000-0000-00000000000ax"]);
    assert_eq!(node.rows("SELECT max(id::text)::uuid FROM u").await, ["00000000-0000-0000-0000-00000000000a"]);
    assert_eq!(
        node.rows("SELECT id, doc FROM u GROUP BY id, doc").await,
        ["00000000-0000-0000-0000-00000000000a|{\"a\":1}"]
    );
    assert_eq!(node.failure("SELECT * FROM u WHERE id = 'nonsense'").await, "22P02");
    assert_eq!(node.failure("SELECT count(*) FROM u WHERE id = 'nonsense' HAVING count(*) > 0").await, "22P02");
}

#[tokio::test]
async fn a_prepared_statement_outlives_changes_of_its_table() {
    let mut node = insurance().await;
    let sql = "SELECT AAC001 FROM KCA2 WHERE AAC002 = 'Li'";
    let prepared = node.engine.prepare(&node.snapshot, sql, &[]).expect("prepares");
    node.run(&["CREATE INDEX by_name ON KCA2 (AAC002)"]).await;
    let rows = node.engine.query(&node.snapshot, &prepared, &[]).await.expect("is planned anew");
    assert_eq!(text_of(rows).await.expect("rows"), ["1"]);
    let explanation = node.engine.explain(&node.snapshot, sql).await.expect("explains");
    assert_eq!(explanation.index.as_deref(), Some("by_name"));
    node.run(&["DROP TABLE KCA2", "CREATE TABLE KCA2 (AAC001 TEXT PRIMARY KEY, AAC002 TEXT)"]).await;
    let error = node.engine.query(&node.snapshot, &prepared, &[]).await.expect_err("another type");
    assert_eq!(error.sqlstate(), "0A000");
}

/// Each answer is PostgreSQL's: with a DOUBLE and a numeric in one place, the numeric becomes a DOUBLE.
#[tokio::test]
async fn a_double_beside_a_decimal_stays_a_double() {
    let mut node = Node::new();
    node.run(&[
        "CREATE TABLE d (id BIGINT PRIMARY KEY, c DOUBLE, n DECIMAL(10,2))",
        "INSERT INTO d VALUES (1, 1e-20, 0.25), (2, -123456.75, 7), (3, 1e300, NULL)",
    ])
    .await;
    let cases: &[(&str, &[&str])] = &[
        ("SELECT CASE WHEN c > 0.5 THEN 1.5 ELSE c END FROM d ORDER BY id", &["1e-20", "-123456.75", "1.5"]),
        ("SELECT coalesce(c, 0.5) FROM d ORDER BY id", &["1e-20", "-123456.75", "1e+300"]),
        ("SELECT coalesce(n, c) FROM d ORDER BY id", &["0.25", "7", "1e+300"]),
        ("SELECT nullif(c, 0.5) FROM d ORDER BY id", &["1e-20", "-123456.75", "1e+300"]),
        ("SELECT greatest(c, -0.5) FROM d ORDER BY id", &["1e-20", "-0.5", "1e+300"]),
        ("SELECT c FROM d UNION ALL SELECT 0.5 ORDER BY 1", &["-123456.75", "1e-20", "0.5", "1e+300"]),
        (
            "SELECT n FROM d UNION SELECT c FROM d UNION SELECT 0.25 ORDER BY 1",
            &["-123456.75", "1e-20", "0.25", "7", "1e+300", "NULL"],
        ),
        ("SELECT min(x) FROM (SELECT CASE WHEN id = 1 THEN c ELSE 0.5 END AS x FROM d) t", &["1e-20"]),
        ("SELECT count(*) FROM d WHERE c IS DISTINCT FROM -123456.75", &["2"]),
        ("SELECT CASE WHEN id = 1 THEN n ELSE 1.5 END FROM d WHERE id < 3 ORDER BY id", &["0.25", "1.5"]),
    ];
    for (sql, expected) in cases {
        let rows = node.rows(sql).await;
        let numbers = |rows: &[String]| rows.iter().map(|r| r.parse::<f64>().ok()).collect::<Vec<_>>();
        let wanted: Vec<String> = expected.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(numbers(&rows), numbers(&wanted), "{sql}: {rows:?}");
    }
}

#[tokio::test]
async fn items_that_differ_in_a_cast_alone_are_columns_of_their_own() {
    let node = Node::new();
    let values = "(VALUES (7, '8')) v(a, b)";
    assert_eq!(node.rows(&format!("SELECT a, a::text || '', a::text FROM {values}")).await, ["7|7|7"]);
    assert_eq!(node.rows(&format!("SELECT a + 1, (a::bigint) + 1, (a) + 1 FROM {values}")).await, ["8|8|8"]);
    assert_eq!(
        node.rows(&format!("SELECT sum(a), sum(a::double precision), sum(b::int) FROM {values}")).await,
        ["7|7|8"]
    );
    let aggregates = "max(a), max(a::text), count(a), count(a::text), avg(a), avg(a::double precision)";
    assert_eq!(node.rows(&format!("SELECT {aggregates} FROM (VALUES (10), (9)) v(a)")).await, ["10|9|2|2|9.5|9.5"]);
    let windows = "SELECT max(a) OVER (), max(a::text) OVER () FROM (VALUES (10), (9)) v(a)";
    assert_eq!(node.rows(windows).await, ["10|9", "10|9"]);
    let ordered = "SELECT a, a::text FROM (VALUES (10), (9)) v(a) ORDER BY a::text";
    assert_eq!(node.rows(ordered).await, ["10|10", "9|9"]);
}

#[tokio::test]
async fn whether_rows_exist_is_a_value() {
    let mut node = Node::new();
    node.run(&[
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER)",
        "CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER)",
        "INSERT INTO a VALUES (1, 10), (2, 20), (3, NULL)",
        "INSERT INTO b VALUES (10, 1), (20, NULL)",
    ])
    .await;
    // The answers are those of PostgreSQL.
    for (sql, expected) in [
        ("SELECT EXISTS (SELECT 1 FROM a WHERE id = 2)", &["t"][..]),
        ("SELECT NOT EXISTS (SELECT 1 FROM a WHERE id = 2)", &["f"]),
        ("SELECT EXISTS (SELECT * FROM a WHERE id = 9) AS found", &["f"]),
        ("SELECT CASE WHEN EXISTS (SELECT FROM a WHERE b IS NULL) THEN 'y' ELSE 'n' END", &["y"]),
        ("SELECT id, EXISTS (SELECT 1 FROM b WHERE b.id = a.b) FROM a ORDER BY id", &["1|t", "2|t", "3|f"]),
        (
            "SELECT id, NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.b AND n = 1) FROM a ORDER BY id",
            &["1|f", "2|t", "3|t"],
        ),
        // An aggregate has a row whatever it counts; a group has one only when there are rows.
        ("SELECT EXISTS (SELECT max(id) FROM a WHERE id > 9)", &["t"]),
        ("SELECT EXISTS (SELECT max(id) FROM a WHERE id > 9 GROUP BY b)", &["f"]),
        ("SELECT EXISTS (SELECT id FROM a LIMIT 0)", &["f"]),
        ("SELECT EXISTS (SELECT id FROM a OFFSET 3)", &["f"]),
        ("SELECT EXISTS (SELECT id FROM a UNION SELECT id FROM b)", &["t"]),
        ("SELECT EXISTS (WITH few AS (SELECT id FROM a WHERE id < 2) SELECT 1 FROM few)", &["t"]),
        ("SELECT EXISTS (SELECT 1 FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.b))", &["t"]),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.b) ORDER BY id", &["1", "2"]),
        ("SELECT count(*) FROM a HAVING EXISTS (SELECT 1 FROM b WHERE n = 1)", &["3"]),
    ] {
        assert_eq!(node.rows(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_sign_behind_an_operator_belongs_to_what_follows() {
    let mut node = Node::new();
    node.run(&["CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (-6), (-5), (0), (5)"]).await;
    for (condition, expected) in [
        ("id>-5", &["0", "5"][..]),
        ("id>=-5", &["-5", "0", "5"]),
        ("id<>-5", &["-6", "0", "5"]),
        ("id!=-5", &["-6", "0", "5"]),
        ("id<-5", &["-6"]),
        ("id<=-5", &["-6", "-5"]),
        ("id=-5", &["-5"]),
        ("id>+4", &["5"]),
        ("id>- 1", &["0", "5"]),
        ("id*-1=5", &["-5"]),
        ("id/-5=1", &["-6", "-5"]),
        ("id+-1=-1", &["0"]),
    ] {
        assert_eq!(
            node.rows(&format!("SELECT id FROM t WHERE {condition} ORDER BY id")).await,
            expected,
            "{condition}"
        );
    }
}
