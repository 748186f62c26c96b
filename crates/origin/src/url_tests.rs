//! URLs as libpq and JDBC write them, others, and broken ones.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::postgres::{Host, HostPort, TlsMode};
use proptest::prelude::*;

fn postgres(url: &str) -> PostgresUrl {
    match OriginUrl::parse(url).unwrap().kind {
        UrlKind::Postgres(parsed) => *parsed,
        _ => panic!("{url} is PostgreSQL's"),
    }
}

fn named(host: &str, port: u16) -> HostPort {
    HostPort { host: Host::Name(host.into()), port }
}

#[test]
fn libpq_urls_are_understood() {
    let url =
        postgres("postgres://reader:p%40ss%3Aword@db.example:6432/hr%20x?sslmode=verify-full&sslrootcert=/ca.pem");
    assert_eq!(url.hosts, vec![named("db.example", 6432)]);
    assert_eq!(url.user.as_deref(), Some("reader"));
    assert_eq!(url.password.as_ref().map(|p| p.expose()), Some("p@ss:word"));
    assert_eq!(url.database.as_deref(), Some("hr x"));
    assert_eq!(url.tls.mode, TlsMode::VerifyFull);

    let url = postgres("postgresql://a,b:6000,[::1]:7000/x");
    assert_eq!(url.hosts, vec![named("a", 5432), named("b", 6000), named("::1", 7000)]);

    let url = postgres("postgres://u@%2Fvar%2Frun%2Fpg:5433/x");
    assert_eq!(url.hosts, vec![HostPort { host: Host::Socket("/var/run/pg".into()), port: 5433 }]);
    let url = postgres("postgresql:///x?host=/tmp/s&port=5433");
    assert_eq!(url.hosts, vec![HostPort { host: Host::Socket("/tmp/s".into()), port: 5433 }]);
    assert_eq!(postgres("postgresql:///x").hosts, vec![HostPort { host: Host::Local, port: 5432 }]);
}

#[test]
fn jdbc_urls_are_understood() {
    let text = "jdbc:postgresql://db:5433/hr?user=u&password=se%26cret&currentSchema=a,b&ssl=true&prepareThreshold=5";
    let url = postgres(text);
    assert_eq!(url.hosts, vec![named("db", 5433)]);
    assert_eq!(url.user.as_deref(), Some("u"));
    assert_eq!(url.password.as_ref().map(|p| p.expose()), Some("se&cret"));
    assert_eq!(url.options.as_deref(), Some("-c search_path=a,b"));
    assert_eq!(url.tls.mode, TlsMode::VerifyFull);
    assert_eq!(OriginUrl::parse(text).unwrap().ignored_parameters(), ["prepareThreshold"]);
    assert_eq!(postgres("jdbc:postgresql:hr").hosts, vec![named("localhost", 5432)]);
    assert_eq!(postgres("jdbc:postgresql://db/hr?ssl=true&sslmode=require").tls.mode, TlsMode::Require);
    assert_eq!(postgres("jdbc:postgresql://db/hr?sslmode=require&ssl=true").tls.mode, TlsMode::Require);
}

#[test]
fn other_urls_are_understood() {
    let kind = |url: &str| OriginUrl::parse(url).unwrap().kind;
    let sqlite = |path: &str| UrlKind::Sqlite(SqliteLocation::Path(path.into()));
    assert!(kind("sqlite:a b.db") == sqlite("a b.db"));
    assert!(kind("sqlite:///a/b%20c.db") == sqlite("/a/b c.db"));
    assert!(kind("jdbc:sqlite:/data/x%20y.db") == sqlite("/data/x%20y.db"));
    assert!(kind("jdbc:sqlite:file:x.db?mode=ro") == sqlite("x.db"));
    assert!(kind("data/hr.sqlite3") == sqlite("data/hr.sqlite3"));
    assert!(kind("sqlite::memory:") == UrlKind::Sqlite(SqliteLocation::Memory));
    assert!(kind("jdbc:sqlite::memory:") == UrlKind::Sqlite(SqliteLocation::Memory));
    assert!(kind("file:///a/b.csv") == UrlKind::File("/a/b.csv".into()));
    assert!(kind("file:a.csv") == UrlKind::File("a.csv".into()));
    assert!(kind("a/b.NDJSON") == UrlKind::File("a/b.NDJSON".into()));
    assert!(kind("jdbc:mysql://u:p@db/hr") == UrlKind::MySql);
    let moved = OriginUrl::parse("a.csv").unwrap().relative_to(Path::new("/etc/cachesql"));
    assert_eq!(moved.as_file(), Some(Path::new("/etc/cachesql/a.csv")));
}

#[test]
fn what_is_not_served_is_named() {
    for (url, name) in [
        ("jdbc:oracle:thin:scott/hunter2@db:1521:x", "oracle"),
        ("jdbc:sqlserver://db;password=hunter2", "sqlserver"),
        ("http://db/x.csv", "http"),
        ("mongodb://u:hunter2@db", "mongodb"),
    ] {
        let error = OriginUrl::parse(url).unwrap_err();
        assert!(matches!(&error, OriginError::Unsupported { kind, .. } if kind == name), "{url}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn broken_urls_are_refused_without_their_secrets() {
    for url in [
        "",
        "nonsense",
        "a.xlsx",
        "sqlite:",
        "file:",
        "file://host/a.csv",
        "postgres://u:hunter2@db:0/x",
        "postgres://u:hunter2@db:70000/x",
        "postgres://u:hunter2@db/x?nonsense=1",
        "postgres://u:hunter2@db/x?sslmode=maybe",
        "postgres://u:hunter2@db/%zz",
        "postgres://u:hunter2@db/x?sslcert=a",
        "postgres://u:hunter2@[::1/x",
        "postgres://u:hunter2@db/x?port=1,2",
        "jdbc:postgresql://u:hunter2@db/x",
    ] {
        let error = OriginUrl::parse(url).unwrap_err();
        assert!(matches!(error, OriginError::Url { .. }), "{url}: {error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
    let url = OriginUrl::parse("postgres://u:hunter2@db/x?password=hunter2").unwrap();
    assert!(!format!("{url} {url:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_its_secret(
        head in "(postgres://|jdbc:postgresql:|jdbc:postgresql://|sqlite:|file:|mysql://|x:|)",
        user in "[a:%/@]{0,6}",
        tail in "[a:%/@?=&,\\[\\]汉]{0,30}",
    ) {
        let url = format!("{head}{user}:hunter2@{tail}");
        let shown = match OriginUrl::parse(&url) {
            Ok(parsed) => format!("{parsed} {parsed:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!shown.contains("hunter2"), "{} shows {}", url, shown);
    }
}
