//! Every type's values, as PostgreSQL writes them itself: smallest, largest, special, before Christ, NULL, awkward texts.

use cachesql_origin::OriginError;
use testbed::Postgres;

use crate::reading::{Texts, load, origin, query, query_with, types};

/// What the server's own output functions say of each column of table `v`, in order of `n`.
fn said_by_server(server: &Postgres, database: &str, columns: &[&str]) -> Texts {
    // `format` calls a type's output function, which is what psql shows.
    let cell = |column: &&str| format!("CASE WHEN {column} IS NOT NULL THEN format('%s', {column}) END");
    let cells: Vec<String> = columns.iter().map(cell).collect();
    let sql = format!("SELECT json_agg(json_build_array({}) ORDER BY n) FROM v", cells.join(", "));
    serde_json::from_str(&server.query(database, &sql)).unwrap()
}

/// Loads a column of a type with values given as SQL literals, and compares with what the server says.
async fn agrees(server: &Postgres, database: &str, column_type: &str, ours: &str, literals: &[&str]) {
    let values: Vec<String> =
        literals.iter().enumerate().map(|(n, value)| format!("({n}, ({value})::{column_type})")).collect();
    server.execute(
        database,
        &format!(
            "DROP TABLE IF EXISTS v; CREATE TABLE v (n int, a {column_type}); INSERT INTO v VALUES {}, (1000, NULL)",
            values.join(", ")
        ),
    );
    let origin = origin(&server.url(database));
    let expected = said_by_server(server, database, &["a"]);
    assert_eq!(expected.len(), literals.len() + 1);
    let (description, by_copy) = load(&origin, &query("SELECT a FROM v ORDER BY n")).await.unwrap();
    assert_eq!(types(&description), [ours], "{column_type}");
    assert_eq!(by_copy, expected, "{column_type} by COPY");
    // A bound value takes the other path.
    let bound = query_with("SELECT a FROM v WHERE n >= $1 ORDER BY n", vec![cachesql_types::Value::text("0")]);
    assert_eq!(load(&origin, &bound).await.unwrap().1, expected, "{column_type} by portal");
}

#[tokio::test]
async fn numbers_are_exact() {
    let server = Postgres::shared();
    let db = server.new_database();
    agrees(&server, &db, "boolean", "BOOLEAN", &["true", "false"]).await;
    agrees(&server, &db, "int2", "SMALLINT", &["-32768", "32767", "0"]).await;
    agrees(&server, &db, "int4", "INTEGER", &["-2147483648", "2147483647", "0"]).await;
    agrees(&server, &db, "int8", "BIGINT", &["-9223372036854775808", "9223372036854775807", "9007199254740993"]).await;
    let reals = [
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "0.1",
        "'-0'",
        "1e-45",
        "3.4028235e38",
        "-3.4028235e38",
        "123456",
        "1234567",
        "0.0001",
        "0.00001",
        "16777216",
        "1.17549435e-38",
    ];
    agrees(&server, &db, "float4", "REAL", &reals).await;
    let doubles = [
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "0.1",
        "'-0'",
        "5e-324",
        "1.7976931348623157e308",
        "123456789012345",
        "1e15",
        "1e16",
        "0.0001",
        "0.00001",
        "9007199254740993",
        "2.2250738585072014e-308",
        "1.0",
        "-1.5e-7",
        "0.30000000000000004",
    ];
    agrees(&server, &db, "float8", "DOUBLE", &doubles).await;
    agrees(&server, &db, "numeric(10,2)", "DECIMAL(10,2)", &["0", "-99999999.99", "99999999.99", "0.01", "-0.5"]).await;
    let nines = "9".repeat(38);
    let small = format!("0.{}1", "0".repeat(37));
    agrees(&server, &db, "numeric(38,0)", "DECIMAL(38,0)", &[&nines, &format!("-{nines}"), "0", "10000", "10001"])
        .await;
    agrees(&server, &db, "numeric(38,38)", "DECIMAL(38,38)", &[&small, &format!("0.{nines}"), "0"]).await;
    agrees(&server, &db, "numeric(5,-2)", "DECIMAL(7,0)", &["12345", "-9999949", "100"]).await;
    agrees(&server, &db, "numeric(3,5)", "DECIMAL(5,5)", &["0.00999", "-0.00001"]).await;
}

#[tokio::test]
async fn a_numeric_without_precision_has_ten_places() {
    let server = Postgres::shared();
    let db = server.new_database();
    server.execute(
        &db,
        "CREATE TABLE v (n int, a numeric); INSERT INTO v VALUES (1, 1.5), (2, -12345678901234567890.0000000001)",
    );
    let origin = origin(&server.url(&db));
    let (description, rows) = load(&origin, &query("SELECT a FROM v ORDER BY n")).await.unwrap();
    assert_eq!(types(&description), ["DECIMAL(38,10)"]);
    let texts: Vec<&str> = rows.iter().flatten().flatten().map(String::as_str).collect();
    assert_eq!(texts, ["1.5000000000", "-12345678901234567890.0000000001"]);
    for (value, shown) in [
        ("'NaN'", "\"NaN\""),
        ("'Infinity'", "\"Infinity\""),
        ("0.00000000001", "\"0.00000000001\""),
        ("-1e28", "\"-10000000000000000000000000000\""),
    ] {
        server.execute(&db, &format!("TRUNCATE v; INSERT INTO v VALUES (1, 7), (2, {value})"));
        let error = load(&origin, &query("SELECT n, a FROM v ORDER BY n")).await.unwrap_err();
        match error {
            OriginError::Value { table, column, value, place, .. } => {
                assert_eq!(
                    (table.as_str(), column.as_str(), value.as_str(), place.as_ref()),
                    ("t", "a", shown, "row 2")
                );
            }
            other => panic!("{value}: {other}"),
        }
    }
}

#[tokio::test]
async fn texts_are_exact() {
    let server = Postgres::shared();
    let db = server.new_database();
    let texts = [
        "''",
        "' '",
        "'null'",
        "'NULL'",
        "'汉字'",
        "'😀 é'",
        "E'a\\nb\\r\\nc\\td'",
        "'it''s \"quoted\"'",
        "E'back\\\\slash'",
        "'007'",
        "repeat('x', 100000)",
        "E'\\u0001'",
        "',;|'",
    ];
    agrees(&server, &db, "text", "TEXT", &texts).await;
    agrees(&server, &db, "varchar(100000)", "TEXT", &texts).await;
    agrees(&server, &db, "char(5)", "TEXT", &["'ab'", "''", "'汉字'"]).await;
    agrees(&server, &db, "name", "TEXT", &["'pg_class'", "''"]).await;
    agrees(&server, &db, "bytea", "BYTEA", &["''", "'\\x00ff5c27'", "decode(repeat('ab', 5000), 'hex')"]).await;
    agrees(&server, &db, "json", "JSON", &["'{\"b\": 1,  \"a\": [1.50, null]}'", "'null'", "'\"汉\"'"]).await;
    agrees(&server, &db, "jsonb", "JSON", &["'{\"b\": 1,  \"a\": [1.50, null]}'", "'null'", "'{}'"]).await;
    let uuids = ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"];
    agrees(&server, &db, "uuid", "UUID", &uuids).await;
    server.execute(&db, "CREATE TYPE mood AS ENUM ('sad', 'very ''happy''', '喜'); CREATE DOMAIN cents AS numeric(10,2) CHECK (VALUE >= 0); CREATE DOMAIN code AS varchar(3)");
    server.execute(&db, "CREATE EXTENSION citext");
    agrees(&server, &db, "citext", "TEXT", &["'Ab'", "''"]).await;
    agrees(&server, &db, "mood", "TEXT", &["'sad'", "'very ''happy'''", "'喜'"]).await;
    agrees(&server, &db, "cents", "DECIMAL(10,2)", &["0.01", "7"]).await;
    agrees(&server, &db, "code", "TEXT", &["'abc'"]).await;
}

#[tokio::test]
async fn times_are_exact() {
    let server = Postgres::shared();
    let db = server.new_database();
    let dates = [
        "'1970-01-01'",
        "'1969-12-31'",
        "'2000-02-29'",
        "'4713-01-01 BC'",
        "'0001-12-31 BC'",
        "'0001-01-01'",
        "'5874897-12-31'",
        "'infinity'",
        "'-infinity'",
        "'9999-12-31'",
        "'10000-01-01'",
    ];
    agrees(&server, &db, "date", "DATE", &dates).await;
    let times = ["'00:00'", "'23:59:59.999999'", "'24:00:00'", "'12:34:56.5'", "'00:00:00.000001'"];
    agrees(&server, &db, "time", "TIME", &times).await;
    agrees(&server, &db, "time(3)", "TIME", &["'12:34:56.789'"]).await;
    let timestamps = [
        "'1970-01-01'",
        "'1969-12-31 23:59:59.999999'",
        "'4713-01-01 00:00:00 BC'",
        "'0044-03-15 12:00:00.25 BC'",
        "'infinity'",
        "'-infinity'",
        "'9999-12-31 23:59:59.999999'",
        "'12345-06-07 08:09:10'",
        // The last microsecond that 64 bits reach from 1970, but the one that means infinity.
        "'294247-01-10 04:00:54.775806'",
    ];
    agrees(&server, &db, "timestamp", "TIMESTAMP", &timestamps).await;
    agrees(&server, &db, "timestamp(0)", "TIMESTAMP", &["'2026-11-29 20:46:57.5'"]).await;
    let zoned = [
        "'1970-01-01 00:00:00+00'",
        "'2026-11-29 20:46:57.123456+05:30'",
        "'4713-01-01 00:00:00+00 BC'",
        "'infinity'",
        "'-infinity'",
        "'294247-01-10 04:00:54.775806+00'",
        "'1900-01-01 00:00:00+08:05:43'",
    ];
    agrees(&server, &db, "timestamptz", "TIMESTAMPTZ", &zoned).await;
}

#[tokio::test]
async fn a_timestamp_too_far_from_1970_is_named() {
    let server = Postgres::shared();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    for sql in [
        "SELECT 1 AS n, '294276-12-31 23:59:59.999999'::timestamp AS at",
        "SELECT 1 AS n, '294247-01-10 04:00:54.775807'::timestamp AS at",
    ] {
        let error = load(&origin, &query(sql)).await.unwrap_err().to_string();
        let stamp = sql.split('\'').nth(1).unwrap();
        assert!(error.contains("column at") && error.contains(stamp) && error.contains("row 1"), "{error}");
    }
}

#[tokio::test]
async fn other_types_are_refused_by_name_with_advice() {
    let server = Postgres::shared();
    let db = server.new_database();
    server.execute(&db, "CREATE TYPE pair AS (a int, b int)");
    let origin = origin(&server.url(&db));
    for (sql, type_name) in [
        ("SELECT '1 day'::interval AS odd", "interval"),
        ("SELECT '12:00+01'::timetz AS odd", "timetz"),
        ("SELECT ARRAY[1, 2] AS odd", "_int4"),
        ("SELECT 1::money AS odd", "money"),
        ("SELECT '10.0.0.1'::inet AS odd", "inet"),
        ("SELECT int4range(1, 2) AS odd", "int4range"),
        ("SELECT ROW(1, 2)::pair AS odd", "pair"),
        ("SELECT '(1,2)'::point AS odd", "point"),
        ("SELECT B'101' AS odd", "bit"),
        ("SELECT 'a'::tsvector AS odd", "tsvector"),
    ] {
        match origin.describe(&query(sql)).await.unwrap_err() {
            OriginError::Type { table, column, type_name: named, advice } => {
                assert_eq!((table.as_str(), column.as_str(), named.as_str()), ("t", "odd", type_name));
                assert!(advice.contains("cast it"), "{advice}");
            }
            other => panic!("{sql}: {other}"),
        }
    }
}

#[tokio::test]
async fn given_types_are_taken_exactly_or_refused() {
    use cachesql_types::DataType;
    let server = Postgres::shared();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    let mut wanted = query("SELECT 7::int8 AS a, 1.50::numeric AS b, '2026-11-29'::text AS c, 0.5::float8 AS d");
    wanted.types = vec![
        ("a".into(), DataType::SmallInt),
        ("B".into(), DataType::Decimal { precision: 5, scale: 2 }),
        ("c".into(), DataType::Date),
        ("d".into(), DataType::Text),
    ];
    let (description, rows) = load(&origin, &wanted).await.unwrap();
    assert_eq!(types(&description), ["SMALLINT", "DECIMAL(5,2)", "DATE", "TEXT"]);
    assert_eq!(rows, crate::reading::rows(&[&[Some("7"), Some("1.50"), Some("2026-11-29"), Some("0.5")]]));
    let mut wanted = query("SELECT 40000 AS a");
    wanted.types = vec![("a".into(), DataType::SmallInt)];
    let error = load(&origin, &wanted).await.unwrap_err().to_string();
    assert!(error.contains("column a") && error.contains("40000") && error.contains("SMALLINT"), "{error}");
    wanted.types = vec![("nonsense".into(), DataType::SmallInt)];
    assert!(matches!(load(&origin, &wanted).await.unwrap_err(), OriginError::Columns { .. }));
}
