//! Loads from PostgreSQL as a whole: parameters, keys, estimates, errors by kind, many rows, and leaving early.

use std::time::{Duration, Instant};

use cachesql_origin::{Origin, OriginConfig, OriginError, OriginUrl, Secret};
use cachesql_types::{Decimal, Value, limits};
use testbed::{Postgres, PostgresOptions};

use crate::reading::{load, origin, query, query_with, rows, types};

#[tokio::test]
async fn values_are_bound_whatever_their_type() {
    let server = Postgres::shared();
    let db = server.new_database();
    server.execute(&db, "CREATE TABLE k (month int, name text, amount numeric(10,2), at timestamptz, j jsonb);
        INSERT INTO k VALUES (202604, 'O''Brien; DROP TABLE k', 1.50, '2026-04-01 00:00:00+00', '{\"a\": 1}'), (202605, 'x', 2, NULL, '{}')");
    let origin = origin(&server.url(&db));
    let one = |sql: &str, params: Vec<Value>| {
        let query = query_with(sql, params);
        let origin = origin.clone();
        async move { load(&origin, &query).await.map(|(_, rows)| rows.len()) }
    };
    assert_eq!(one("SELECT * FROM k WHERE month = $1", vec![Value::BigInt(202_604)]).await, Ok(1));
    assert_eq!(one("SELECT * FROM k WHERE month = ?", vec![Value::text("202604")]).await, Ok(1));
    assert_eq!(one("SELECT * FROM k WHERE name = ?", vec![Value::text("O'Brien; DROP TABLE k")]).await, Ok(1));
    assert_eq!(
        one("SELECT * FROM k WHERE month > ? AND name <> ?;", vec![Value::Integer(0), Value::text("?")]).await,
        Ok(2)
    );
    let half = Value::Decimal(Decimal { unscaled: 150, scale: 2 });
    assert_eq!(one("SELECT * FROM k WHERE amount = $1", vec![half]).await, Ok(1));
    assert_eq!(one("SELECT * FROM k WHERE j ?? 'a' AND month = ?", vec![Value::Integer(202_604)]).await, Ok(1));
    assert_eq!(one("SELECT * FROM k WHERE j ? 'a'", vec![]).await, Ok(1));
    assert_eq!(one("SELECT * FROM k WHERE at IS NOT DISTINCT FROM $1", vec![Value::Null]).await, Ok(1));
    let error = one("SELECT * FROM k WHERE month = $1 AND name = $2", vec![Value::Integer(1)]).await.unwrap_err();
    assert_eq!(error, OriginError::Parameters { table: "t".into(), expected: 2, given: 1 });
    let error = one("SELECT * FROM k WHERE month = ?", vec![]).await.unwrap_err();
    assert!(matches!(error, OriginError::Query { sqlstate: Some(state), .. } if state == "42601"));
    let error = one("SELECT * FROM k WHERE month = $1", vec![Value::text("abc")]).await.unwrap_err();
    assert!(matches!(error, OriginError::Query { sqlstate: Some(state), .. } if state == "22P02"));
}

#[tokio::test]
async fn odd_queries_are_loaded_all_the_same() {
    let server = Postgres::shared();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    for (sql, expected) in [
        ("SELECT 1 AS a -- a comment ) at the end", "1"),
        ("SELECT ';' AS a ; ", ";"),
        ("/* hint */ SELECT 2 AS a", "2"),
        ("WITH x AS (SELECT 3 AS a) SELECT * FROM x", "3"),
        ("VALUES ('v')", "v"),
        ("SHOW server_encoding", "UTF8"),
    ] {
        let (_, loaded) = load(&origin, &query(sql)).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(loaded, rows(&[&[Some(expected)]]), "{sql}");
    }
    let (_, none) = load(&origin, &query("SELECT 1 AS a WHERE false")).await.unwrap();
    assert!(none.is_empty());
}

#[tokio::test]
async fn a_load_changes_nothing_and_runs_one_statement() {
    let server = Postgres::shared();
    let db = server.new_database();
    server.execute(&db, "CREATE TABLE k (a int); INSERT INTO k VALUES (1)");
    let origin = origin(&server.url(&db));
    for (sql, state) in [
        ("DELETE FROM k RETURNING a", "25006"),
        ("WITH d AS (DELETE FROM k RETURNING a) SELECT * FROM d", "25006"),
        ("SELECT 1; DELETE FROM k", "42601"),
        ("SELECT 1) TO PROGRAM 'true' --", "42601"),
    ] {
        let error = load(&origin, &query(sql)).await.unwrap_err();
        assert!(matches!(&error, OriginError::Query { sqlstate: Some(s), .. } if s == state), "{sql}: {error}");
    }
    assert_eq!(server.query(&db, "SELECT count(*) FROM k"), "1\n");
    let error = load(&origin, &query("DELETE FROM k")).await.unwrap_err();
    assert!(matches!(error, OriginError::Columns { .. }), "{error}");
    let error = load(&origin, &query("SELECT 1 AS a, 2 AS a")).await.unwrap_err();
    assert!(error.to_string().contains("two columns named a"), "{error}");
}

#[tokio::test]
async fn keys_are_found_where_rows_are_one_tables() {
    let server = Postgres::shared();
    let db = server.new_database();
    server.execute(&db, "CREATE TABLE a (x int, id bigint NOT NULL, part text, PRIMARY KEY (part, id)); CREATE TABLE b (id int PRIMARY KEY, a bigint);
        INSERT INTO a SELECT n, n, 'p' FROM generate_series(1, 1000) n; INSERT INTO b SELECT n, n FROM generate_series(1, 10) n; ANALYZE;
        CREATE VIEW w AS SELECT * FROM b; CREATE TABLE c (z int UNIQUE)");
    let origin = origin(&server.url(&db));
    let key = |sql: &'static str| {
        let origin = origin.clone();
        async move { origin.describe(&query(sql)).await.unwrap().primary_key.map(|key| key.join(",")) }
    };
    assert_eq!(key("SELECT * FROM a").await.as_deref(), Some("part,id"));
    assert_eq!(
        key("SELECT id AS n, part, x + 1 AS y FROM a WHERE x > 5 ORDER BY x LIMIT 7").await.as_deref(),
        Some("part,n")
    );
    assert_eq!(key("SELECT b.*, (SELECT max(x) FROM a) AS most FROM b").await.as_deref(), Some("id"));
    for none in [
        "SELECT id FROM a",
        "SELECT a.*, b.id AS other FROM a JOIN b ON true",
        "SELECT b.* FROM b, a",
        "SELECT * FROM b UNION ALL SELECT * FROM b",
        "SELECT b.*, generate_series(1, 3) AS g FROM b",
        "SELECT id + 0 AS id, a FROM b",
        "SELECT * FROM c",
        "SELECT 1 AS id",
        "SELECT * FROM w",
    ] {
        assert_eq!(key(none).await, None, "{none}");
    }
    let description = origin.describe(&query("SELECT * FROM a")).await.unwrap();
    let nullable: Vec<bool> = description.columns.iter().map(|c| c.nullable).collect();
    assert_eq!(nullable, [true, false, false]);
    assert_eq!(description.estimate.unwrap().rows, 1000);
    // Outside of a join a column that forbids NULL may have it.
    let joined = origin.describe(&query("SELECT b.id FROM c LEFT JOIN b ON b.id = c.z")).await.unwrap();
    assert!(joined.columns[0].nullable);
    let bound = query_with("SELECT * FROM a WHERE id <= $1", vec![Value::Integer(10)]);
    let described = origin.describe(&bound).await.unwrap();
    assert_eq!(described.primary_key, Some(vec!["part".to_owned(), "id".to_owned()]));
    assert!(described.estimate.unwrap().rows <= 20, "{:?}", described.estimate);
}

#[tokio::test]
async fn many_rows_come_in_batches() {
    let server = Postgres::shared();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    let many = limits::LOAD_BATCH_ROWS + 1;
    let sql = format!("SELECT n, md5(n::text) AS h FROM generate_series(1, {many}) n");
    let (_, loaded) = load(&origin, &query(&sql)).await.unwrap();
    assert_eq!(loaded.len(), many);
    let sum: i64 = loaded.iter().map(|row| row[0].as_ref().unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(sum, i64::try_from(many * (many + 1) / 2).unwrap());
    // Few rows with large values: batches are closed by their bytes too, and a row may take several messages.
    let large = "SELECT n, repeat('x', 30000000) AS large FROM generate_series(1, 4) n";
    let described = origin.describe(&query(large)).await.unwrap();
    let mut stream = origin.load(&query(large), &described.columns).await.unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = stream.next().await {
        sizes.push(batch.unwrap().num_rows());
    }
    assert_eq!(sizes, [2, 2]);
}

#[tokio::test]
async fn an_error_half_way_ends_the_stream() {
    let server = Postgres::shared();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    let sql = "SELECT n, 100 / (200000 - n) AS q FROM generate_series(1, 300000) n";
    let described = origin.describe(&query(sql)).await.unwrap();
    let mut stream = origin.load(&query(sql), &described.columns).await.unwrap();
    let mut last = None;
    while let Some(next) = stream.next().await {
        assert!(last.is_none(), "something follows an error");
        last = next.err();
    }
    assert!(matches!(last, Some(OriginError::Query { sqlstate: Some(state), .. }) if state == "22012"));
}

#[tokio::test]
async fn a_stream_that_is_dropped_cancels_its_statement() {
    let server = Postgres::shared();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    // Hands out a first batch quickly, then sleeps.
    let sql = "SELECT n, CASE WHEN n > 100000 THEN pg_sleep(60)::text END AS s FROM generate_series(1, 200000) n";
    for sql in [sql, "SELECT pg_sleep(60)::text AS s"] {
        let described = origin.describe(&query(sql)).await.unwrap();
        let mut stream = origin.load(&query(sql), &described.columns).await.unwrap();
        if sql.contains("generate_series") {
            assert!(stream.next().await.unwrap().is_ok());
        }
        drop(stream);
        let running =
            format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{db}' AND application_name = 'cachesql'");
        let deadline = Instant::now() + Duration::from_secs(10);
        while server.query("postgres", &running) != "0\n" {
            assert!(Instant::now() < deadline, "the statement goes on: {sql}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_reader_that_waits_holds_the_origin_back() {
    let server = Postgres::shared();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    let sql = "SELECT n, repeat('x', 1000) AS pad FROM generate_series(1, 2000000) n";
    let described = origin.describe(&query(sql)).await.unwrap();
    let mut stream = origin.load(&query(sql), &described.columns).await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waiting =
        format!("SELECT wait_event FROM pg_stat_activity WHERE datname = '{db}' AND application_name = 'cachesql'");
    assert_eq!(server.query("postgres", &waiting), "ClientWrite\n");
}

#[tokio::test]
async fn connections_fail_by_kind() {
    let options = PostgresOptions {
        access: Some(
            "local all all trust\nhost all secured 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust".into(),
        ),
        ..PostgresOptions::default()
    };
    let server = Postgres::start_with(&options);
    server.execute("postgres", "CREATE ROLE secured LOGIN PASSWORD 'hunter2'");
    let port = server.port();
    let with = |url: String, password: Option<&str>| {
        let config =
            OriginConfig { url: OriginUrl::parse(&url).unwrap(), user: None, password: password.map(Secret::new) };
        let shown = format!("{config:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("wrong"), "{shown}");
        Origin::new(config).unwrap()
    };
    let one = query("SELECT 1 AS a");
    let url = format!("postgres://secured@127.0.0.1:{port}/postgres");
    assert!(load(&with(url.clone(), Some("hunter2")), &one).await.is_ok());
    assert!(load(&with(format!("postgres://secured:hunter2@127.0.0.1:{port}/postgres"), None), &one).await.is_ok());
    let jdbc = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?user=secured&password=hunter2");
    assert!(load(&with(jdbc, None), &one).await.is_ok());
    let error = load(&with(url.clone(), Some("wrong")), &one).await.unwrap_err();
    assert!(matches!(&error, OriginError::Authentication { .. }) && !error.is_transient(), "{error}");
    assert!(!format!("{error} {error:?}").contains("wrong"));
    let error = load(&with(url.clone(), None), &one).await.unwrap_err();
    assert!(matches!(error, OriginError::Authentication { .. }), "{error}");
    let error = load(&with(format!("postgres://nobody@127.0.0.1:{port}/postgres"), None), &one).await.unwrap_err();
    assert!(matches!(error, OriginError::Authentication { .. }), "{error}");
    let error = load(&with(format!("postgres://postgres@127.0.0.1:{port}/nowhere"), None), &one).await.unwrap_err();
    assert!(matches!(&error, OriginError::Connect { reason, .. } if reason.contains("nowhere")), "{error}");
    let error = load(&with(format!("{url}?sslmode=require"), Some("hunter2")), &one).await.unwrap_err();
    assert!(matches!(error, OriginError::Tls { .. }), "{error}");
    // Nobody listens on the first host: the second is taken.
    let two = format!("postgres://postgres@127.0.0.1:1,127.0.0.1:{port}/postgres");
    assert!(load(&with(two, None), &one).await.is_ok());
    let socket = format!("postgres://postgres@/postgres?host={}&port={port}", server.socket_directory().display());
    assert!(load(&with(socket, None), &one).await.is_ok());
    let error = load(&with("postgres://u:hunter2@127.0.0.1:1/x".into(), None), &one).await.unwrap_err();
    assert!(matches!(&error, OriginError::Connect { .. }) && error.is_transient(), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    // Connections are closed with a goodbye, however a load ended.
    assert!(load(&with(url, Some("hunter2")), &query("SELECT nonsense")).await.is_err());
    assert!(!server.log().contains("unexpected EOF"), "{}", server.log());
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let origin = origin(&format!("postgres://u@127.0.0.1:{port}/x?connect_timeout=1"));
    let started = Instant::now();
    let error = origin.describe(&query("SELECT 1 AS a")).await.unwrap_err();
    assert!(matches!(error, OriginError::Connect { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_server_that_dies_is_noticed() {
    let server = Postgres::start();
    let db = server.new_database();
    let origin = origin(&server.url(&db));
    let sql = "SELECT n, repeat('x', 1000) AS pad FROM generate_series(1, 3000000) n";
    let described = origin.describe(&query(sql)).await.unwrap();
    let mut stream = origin.load(&query(sql), &described.columns).await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    drop(server);
    let mut last = None;
    while let Some(next) = stream.next().await {
        last = next.err();
    }
    let last = last.expect("an error, not a silent end");
    assert!(last.is_transient(), "{last}");
}

#[tokio::test]
async fn the_search_path_of_a_jdbc_url_counts() {
    let server = Postgres::shared();
    let db = server.new_database();
    server.execute(
        &db,
        "CREATE SCHEMA \"my schema\"; CREATE TABLE \"my schema\".k (a int); INSERT INTO \"my schema\".k VALUES (5)",
    );
    let port = server.port();
    let origin = origin(&format!(
        "jdbc:postgresql://127.0.0.1:{port}/{db}?user=postgres&currentSchema=%22my%20schema%22,public"
    ));
    let (description, loaded) = load(&origin, &query("SELECT * FROM k")).await.unwrap();
    assert_eq!(types(&description), ["INTEGER"]);
    assert_eq!(loaded, rows(&[&[Some("5")]]));
}

#[tokio::test]
async fn text_that_is_not_utf8_is_refused() {
    let server = Postgres::shared();
    let create = "CREATE DATABASE loose TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'";
    server.execute("postgres", create);
    let origin = origin(&server.url("loose"));
    let error = load(&origin, &query("SELECT 1 AS n, 'ok' AS s UNION ALL SELECT 2, E'a\\377b'")).await.unwrap_err();
    assert!(matches!(&error, OriginError::Query { sqlstate: Some(state), .. } if state == "22021"), "{error}");
}
