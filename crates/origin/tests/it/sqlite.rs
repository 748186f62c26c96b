//! Loads from SQLite: declared types, values that do not keep to them, expressions, parameters, keys, leaving early.

use std::time::{Duration, Instant};

use cachesql_origin::{Origin, OriginError};
use cachesql_types::{DataType, Value};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::reading::{load, origin, query, query_with, rows, types};

struct Database {
    _directory: TempDir,
    connection: Connection,
    origin: Origin,
}

fn database(sql: &str) -> Database {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hr 汉字.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    let origin = origin(&format!("jdbc:sqlite:{}", path.display()));
    Database { _directory: directory, connection, origin }
}

#[tokio::test]
async fn declared_types_hold_their_values() {
    let db = database(
        "CREATE TABLE v (n INTEGER PRIMARY KEY, big BIGINT, small SMALLINT, r REAL, d DECIMAL(10,2), b BOOLEAN, s VARCHAR(20), x BLOB,
            day DATE, at DATETIME, t TIME, u UUID, j JSON);
         INSERT INTO v VALUES (1, 9223372036854775807, 70000, 0.1, 1.5, 1, '汉字😀''\"\\', x'00ff', '2026-11-29', '2026-11-29 20:46:57.25',
            '23:59:59', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '{\"a\": 1.50}'),
         (2, -9223372036854775808, 0, -1e308, 12345678.9, 0, '', x'', '0044-03-15 BC', '1969-12-31', '00:00', x'00000000000000000000000000000001', 'null'),
         (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    );
    let (description, loaded) = load(&db.origin, &query("SELECT * FROM v ORDER BY n")).await.unwrap();
    assert_eq!(
        types(&description),
        [
            "BIGINT",
            "BIGINT",
            "BIGINT",
            "DOUBLE",
            "DECIMAL(10,2)",
            "BOOLEAN",
            "TEXT",
            "BYTEA",
            "DATE",
            "TIMESTAMP",
            "TIME",
            "UUID",
            "JSON"
        ]
    );
    let first = [
        "1",
        "9223372036854775807",
        "70000",
        "0.1",
        "1.50",
        "t",
        "汉字😀'\"\\",
        "\\x00ff",
        "2026-11-29",
        "2026-11-29 20:46:57.25",
        "23:59:59",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "{\"a\": 1.50}",
    ];
    let second = [
        "2",
        "-9223372036854775808",
        "0",
        "-1e+308",
        "12345678.90",
        "f",
        "",
        "\\x",
        "0044-03-15 BC",
        "1969-12-31 00:00:00",
        "00:00:00",
        "00000000-0000-0000-0000-000000000001",
        "null",
    ];
    let mut third = vec![None; 13];
    third[0] = Some("3");
    assert_eq!(loaded, rows(&[&first.map(Some), &second.map(Some), &third]));
    assert_eq!(description.primary_key, Some(vec!["n".to_owned()]));
    assert_eq!(description.estimate.unwrap().rows, 3);
}

#[tokio::test]
async fn a_value_of_another_kind_is_refused_by_name() {
    for (declared, value, shown) in [
        ("INTEGER", "'abc'", "abc"),
        ("INTEGER", "1.5", "1.5"),
        ("INTEGER", "x'00'", "\\\\x00"),
        ("DOUBLE", "9007199254740993", "9007199254740992"),
        ("DECIMAL(5,2)", "1.005", "1.005"),
        ("DECIMAL(5,2)", "12345", "12345"),
        ("BOOLEAN", "2", "2"),
        ("DATE", "20000", "20000"),
        ("DATE", "'2026-02-30'", "2026-02-30"),
        ("TIMESTAMP", "1764449217", "1764449217"),
        ("TEXT", "x'ff'", "\\\\xff"),
        ("UUID", "'nonsense'", "nonsense"),
    ] {
        // Without affinity nothing is converted on its way in; a column of the declared type without it is a view's.
        let db = database(&format!(
            "CREATE TABLE v (n INTEGER, a {declared}); INSERT INTO v VALUES (1, NULL), (2, {value})"
        ));
        match load(&db.origin, &query("SELECT n, a FROM v ORDER BY n")).await {
            Err(OriginError::Value { table, column, value, place, .. }) => {
                assert_eq!((table.as_str(), column.as_str(), place.as_ref()), ("t", "a", "row 2"), "{declared}");
                assert_eq!(value, format!("\"{shown}\""), "{declared}");
            }
            other => assert!(declared == "DOUBLE" && other.is_ok(), "{declared} {value}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn expressions_take_the_type_of_their_values() {
    let db = database(
        "CREATE TABLE v (n INTEGER, m NUMERIC, odd); INSERT INTO v VALUES (1, 1, 'a'), (2, 2.5, 3), (3, NULL, NULL)",
    );
    let sql = "SELECT n + 1 AS i, n * 0.5 AS r, n || 'x' AS s, NULL AS nul, m, odd, x'01' AS b, count(*) OVER () AS c FROM v ORDER BY n";
    let (description, loaded) = load(&db.origin, &query(sql)).await.unwrap();
    assert_eq!(types(&description), ["BIGINT", "DOUBLE", "TEXT", "TEXT", "DOUBLE", "TEXT", "BYTEA", "BIGINT"]);
    let first = [Some("2"), Some("0.5"), Some("1x"), None, Some("1"), Some("a"), Some("\\x01"), Some("3")];
    let second = [Some("3"), Some("1"), Some("2x"), None, Some("2.5"), Some("3"), Some("\\x01"), Some("3")];
    let third = [Some("4"), Some("1.5"), Some("3x"), None, None, None, Some("\\x01"), Some("3")];
    assert_eq!(loaded, rows(&[&first, &second, &third]));
    // The rows that decide may come late: after any sample.
    let late = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100001) SELECT CASE WHEN n > 100000 THEN 'late' ELSE n END AS a FROM s";
    let (description, loaded) = load(&db.origin, &query(late)).await.unwrap();
    assert_eq!(types(&description), ["TEXT"]);
    assert_eq!(loaded.last().unwrap()[0].as_deref(), Some("late"));
    let commented = late.to_owned() + "; -- a comment";
    assert_eq!(load(&db.origin, &query(&commented)).await.unwrap().1.len(), 100_001);
    for mixture in ["SELECT 0.5 AS a UNION ALL SELECT 9007199254740993", "SELECT x'00' AS a UNION ALL SELECT 'b'"] {
        let error = load(&db.origin, &query(mixture)).await.unwrap_err();
        assert!(matches!(&error, OriginError::Type { column, .. } if column == "a"), "{error}");
    }
    let mut given = query("SELECT n + 1 AS i FROM v");
    given.types = vec![("i".into(), DataType::SmallInt)];
    assert_eq!(types(&load(&db.origin, &given).await.unwrap().0), ["SMALLINT"]);
}

#[tokio::test]
async fn parameters_are_bound_in_order() {
    let db = database(
        "CREATE TABLE k (month INTEGER, name TEXT, amount NUMERIC, x BLOB); INSERT INTO k VALUES (202604, 'O''Brien', 1.5, x'01'), (202605, 'x', 2, NULL)",
    );
    let one = |sql: &'static str, params: Vec<Value>| {
        let (origin, query) = (db.origin.clone(), query_with(sql, params));
        async move { load(&origin, &query).await.map(|(_, rows)| rows.len()) }
    };
    let month = Value::BigInt(202_604);
    assert_eq!(one("SELECT * FROM k WHERE month = ?", vec![month.clone()]).await, Ok(1));
    assert_eq!(one("SELECT * FROM k WHERE month = ?", vec![Value::text("202604")]).await, Ok(1));
    assert_eq!(
        one("SELECT * FROM k WHERE name = ? AND month = ?", vec![Value::text("O'Brien"), month.clone()]).await,
        Ok(1)
    );
    assert_eq!(
        one("SELECT * FROM k WHERE name = $2 AND month = $1;", vec![month.clone(), Value::text("O'Brien")]).await,
        Ok(1)
    );
    assert_eq!(
        one("SELECT * FROM k WHERE name = :name AND month = :month", vec![Value::text("O'Brien"), month.clone()]).await,
        Ok(1)
    );
    assert_eq!(one("SELECT * FROM k WHERE month = ?1 OR month = ?1", vec![month.clone()]).await, Ok(1));
    assert_eq!(one("SELECT * FROM k WHERE x = ?", vec![Value::Bytea(vec![1].into())]).await, Ok(1));
    let half = Value::Decimal(cachesql_types::Decimal { unscaled: 15, scale: 1 });
    assert_eq!(one("SELECT * FROM k WHERE amount = ?", vec![half]).await, Ok(1));
    let wrong = |expected, given| Err(OriginError::Parameters { table: "t".into(), expected, given });
    assert_eq!(one("SELECT * FROM k WHERE month = ?", vec![]).await, wrong(1, 0));
    assert_eq!(one("SELECT * FROM k WHERE month = ?", vec![month.clone(), month.clone()]).await, wrong(1, 2));
}

#[tokio::test]
async fn keys_are_found_where_rows_are_one_tables() {
    let db = database(
        "CREATE TABLE a (x INT, id INT NOT NULL, part TEXT NOT NULL, PRIMARY KEY (part, id)); CREATE TABLE b (id INTEGER PRIMARY KEY, a INT);
         CREATE TABLE w (code TEXT PRIMARY KEY, a INT) WITHOUT ROWID; CREATE TABLE loose (code TEXT PRIMARY KEY, a INT); CREATE TABLE none (a INT)",
    );
    let key = |sql: &'static str| {
        let origin = db.origin.clone();
        async move { origin.describe(&query(sql)).await.unwrap().primary_key.map(|key| key.join(",")) }
    };
    assert_eq!(key("SELECT * FROM a").await.as_deref(), Some("part,id"));
    assert_eq!(key("SELECT id AS n, part FROM a WHERE x > 5 ORDER BY x").await.as_deref(), Some("part,n"));
    assert_eq!(key("SELECT * FROM b").await.as_deref(), Some("id"));
    assert_eq!(key("SELECT * FROM w").await.as_deref(), Some("code"));
    for none in [
        "SELECT id FROM a",
        "SELECT b.* FROM b, a",
        "SELECT * FROM b UNION ALL SELECT * FROM b",
        "SELECT id + 0 AS id FROM b",
        "SELECT * FROM none",
        // Its key may hold NULL, more than once.
        "SELECT * FROM loose",
        "SELECT 1 AS id",
    ] {
        assert_eq!(key(none).await, None, "{none}");
    }
}

#[tokio::test]
async fn what_cannot_be_loaded_is_said() {
    let db = database("CREATE TABLE k (a INT); INSERT INTO k VALUES (1)");
    for sql in ["SELECT nonsense FROM k", "SELECT 1 AS a; SELECT 2 AS a", "SELEC"] {
        let error = load(&db.origin, &query(sql)).await.unwrap_err();
        assert!(matches!(error, OriginError::Query { .. }), "{sql}: {error}");
    }
    for sql in ["DELETE FROM k RETURNING a", "DELETE FROM k", "SELECT 1 AS a, 2 AS a"] {
        let error = load(&db.origin, &query(sql)).await.unwrap_err();
        assert!(matches!(error, OriginError::Columns { .. }), "{sql}: {error}");
    }
    assert_eq!(db.connection.query_row("SELECT count(*) FROM k", [], |row| row.get(0)), Ok(1));
    let error = load(&origin("sqlite:/nowhere/at.db"), &query("SELECT 1 AS a")).await.unwrap_err();
    assert!(matches!(&error, OriginError::Connect { .. }), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("not.db");
    std::fs::write(&path, "this is no database, though it is long enough to have a header".repeat(20)).unwrap();
    let error = load(&origin(&format!("sqlite:{}", path.display())), &query("SELECT 1 AS a")).await.unwrap_err();
    assert!(matches!(&error, OriginError::Connect { .. }), "{error}");
    let (_, one) = load(&origin("sqlite::memory:"), &query("SELECT 1 AS a")).await.unwrap();
    assert_eq!(one, rows(&[&[Some("1")]]));
}

#[tokio::test]
async fn a_stream_that_is_dropped_interrupts_its_statement() {
    let db = database("CREATE TABLE k (a INT)");
    let endless = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT n AS a FROM s WHERE n < 0";
    let column = cachesql_types::Column { name: "a".into(), data_type: DataType::BigInt, nullable: true };
    // At once, when the statement may not have begun, and later, when it has.
    for wait in [Duration::ZERO, Duration::from_millis(200)] {
        let stream = db.origin.load(&query(endless), std::slice::from_ref(&column)).await.unwrap();
        tokio::time::sleep(wait).await;
        drop(stream);
        // The statement holds a read transaction; a writer that wants the whole file gets it once that is over.
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = db.connection.execute_batch("BEGIN EXCLUSIVE; COMMIT") {
            assert!(Instant::now() < deadline, "the statement goes on: {error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
