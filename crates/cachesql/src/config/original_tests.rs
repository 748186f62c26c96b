//! The original's files as its users have them, and the mistakes in them.

use std::path::Path;
use std::time::Duration;

use cachesql_node::Failover;
use cachesql_types::{DataType, Value};

use crate::config::{ConfigError, Configuration, Refresh, Secret, TableSource, read_bytes};

fn read(text: &str) -> Result<Configuration, ConfigError> {
    read_bytes(Path::new("config.properties"), text.as_bytes())
}

fn problems(text: &str) -> Vec<String> {
    match read(text) {
        Err(ConfigError::Invalid(problems)) => problems.iter().map(ToString::to_string).collect(),
        other => panic!("expected problems in {text:?}, got {other:?}"),
    }
}

const FULL: &str = "# CacheSQL\nserver.mode=all\nserver.port=9090\nserver.role=standalone\nserver.threads=4\nserver.sync.port=19091\n\
    server.http.engine=undertow\nserver.http.maxEntitySize=1048576\nserver.oplog.capacity=10000\nserver.pending.flush.interval=2000\n\
    db.driver=org.postgresql.Driver\ndb.url=jdbc:postgresql://localhost:5432/hr\ndb.username=postgres\ndb.password= secret\n\
    db.pool.maxActive=5\ncache.refreshInterval=60000\n\
    cache.table.KCA2.sql=SELECT * FROM KCA2 WHERE MONTH = ? AND X = ?\ncache.table.KCA2.indexes=AAC001, AAB004,AAB004+AAC002\n\
    cache.table.KCA2.params=202604,\\u5F20\\u4E09\n\
    cache.table.empty.sql=empty\ncache.table.empty.columns=id BIGINT, name, price DECIMAL(10,2)\n";

#[test]
fn a_file_of_the_original_is_understood_unchanged() {
    let configuration = read(FULL).expect("sound");
    let node = configuration.node(None).expect("one node");
    assert_eq!(node.http.as_deref(), Some("127.0.0.1:9090"));
    assert_eq!(configuration.limits.http_body_bytes, Some(1_048_576));
    let origin = configuration.origins.first().expect("an origin");
    assert_eq!(origin.user.as_deref(), Some("postgres"));
    // Java keeps white space only behind a value, not before it.
    assert_eq!(origin.password.as_ref().expect("a password").secret.reveal(), Ok("secret".into()));
    let [table, empty] = configuration.tables.as_slice() else { panic!("two tables") };
    let columns = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(table.name, "KCA2");
    assert_eq!(
        table.source,
        TableSource::Query {
            origin: "db".into(),
            sql: "SELECT * FROM KCA2 WHERE MONTH = ? AND X = ?".into(),
            params: vec![Value::text("202604"), Value::text("张三")],
        }
    );
    assert_eq!(table.indexes, [columns(&["AAC001"]), columns(&["AAB004"]), columns(&["AAB004", "AAC002"])]);
    assert_eq!(table.refresh, Refresh::Every(Duration::from_secs(60)));
    assert_eq!((&empty.source, empty.refresh), (&TableSource::Empty, Refresh::Never));
    let types: Vec<_> = empty.columns.iter().map(|(name, data_type)| (name.as_str(), *data_type)).collect();
    let price = DataType::Decimal { precision: 10, scale: 2 };
    assert_eq!(types, [("id", DataType::BigInt), ("name", DataType::Text), ("price", price)]);
    let notices = configuration.notices.join("\n");
    for key in
        ["server.threads", "server.sync.port", "server.http.engine", "server.oplog.capacity", "db.pool.maxActive"]
    {
        assert!(notices.contains(&format!("{key} (line ")), "{key} in {notices}");
    }
    assert!(!notices.contains("secret"));
}

#[test]
fn each_mistake_is_named_with_its_place() {
    let cases: &[(&str, &[&str])] = &[
        ("server.prt=1\n", &["1:1: unknown key \"server.prt\"; did you mean \"server.port\"?"]),
        (
            "cache.table.T.index=a\n",
            &["1:1: unknown key \"cache.table.T.index\"; did you mean \"cache.table.<T>.indexes\"?"],
        ),
        ("server.port=http\n", &["1:1: server.port: expected a port from 0 to 65535, found \"http\""]),
        ("server.port=70000\n", &["1:1: server.port: expected a port from 0 to 65535, found \"70000\""]),
        ("server.mode=some\n", &["1:1: server.mode: expected \"all\" or \"embed\", found \"some\""]),
        (
            "\nserver.role=slave\n",
            &[
                "2:1: server.role: \"slave\" is said another way here: name the nodes of the group with cachesql.group.<G>.master and \
                 .slaves, in one file for all of them",
            ],
        ),
        ("server.role=boss\n", &["1:1: server.role: expected \"standalone\", \"master\" or \"slave\", found \"boss\""]),
        (
            "cache.refreshInterval=10m\n",
            &["1:1: cache.refreshInterval: expected a number of milliseconds, found \"10m\""],
        ),
        ("a=\\u00g0\n", &["1:1: \\u00g0 is not \\u and four hexadecimal digits"]),
        (
            "cache.table.T.sql=SELECT 1\n",
            &["1:1: db.url is missing: tables have queries, and nothing says which database they are for"],
        ),
        (
            "db.url=jdbc:mysql://h/d\ncache.table.T.sql=SELECT 1\n",
            &["1:1: db.url: this version does not serve mysql as an origin; PostgreSQL, SQLite and files are served"],
        ),
        ("cache.table.T.indexes=a\n", &["1:1: nothing says what table T holds: cache.table.T.sql is missing"]),
        (
            "cache.table.T.sql=T\n",
            &["1:1: table T begins empty (its sql is its name): cache.table.T.columns must name its columns"],
        ),
        (
            "cache.table.T.sql=T\ncache.table.T.columns=a MONEY\n",
            &[
                "1:1: table T begins empty (its sql is its name): cache.table.T.columns must name its columns",
                "2:1: cache.table.T.columns: column a: \"MONEY\" is not a type",
            ],
        ),
        (
            "cache.table.T.sql=T\ncache.table.T.columns=a\ncache.table.T.indexes=a+\n",
            &["3:1: cache.table.T.indexes: expected columns such as A or A+B, found \"a+\""],
        ),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|message| format!("config.properties:{message}")).collect();
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn oracle_is_refused_by_name_only_where_it_is_needed() {
    let unused = "db.driver=oracle.jdbc.driver.OracleDriver\ndb.url=jdbc:oracle:thin:scott/tiger@h:1521:orcl\n\
                  cache.table.t.sql=t\ncache.table.t.columns=id,name,age\n";
    assert!(read(unused).is_ok());
    let used = format!("{unused}cache.table.u.sql=SELECT * FROM u\n");
    let found = problems(&used);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("config.properties:2:1: db.url: oracle is not served as an origin"), "{found:?}");
    assert!(!found[0].contains("tiger"));
}

#[test]
fn words_of_jdbc_urls_without_meaning_are_reported() {
    let text = "db.url=jdbc:postgresql://h/d?currentSchema=hr&loggerLevel=OFF&user=u\ncache.table.T.sql=SELECT 1\n";
    let configuration = read(text).expect("sound");
    assert_eq!(configuration.notices, ["origin db: loggerLevel of its URL has no meaning here"]);
}

#[test]
fn the_last_of_two_entries_wins_as_in_java() {
    let configuration = read("server.port=1\nserver.port=2\n").expect("sound");
    assert_eq!(configuration.node(None).expect("one").http.as_deref(), Some("127.0.0.1:2"));
    assert_eq!(configuration.notices, ["server.port of line 1 is replaced by line 2"]);
}

/// The topology of the routing client's own description: a master and two slaves, a master and one.
#[test]
fn a_master_and_its_slaves_are_a_group() {
    let text = "cachesql.group.insurance.master=http://127.0.0.1:8081\n\
                cachesql.group.insurance.slaves=http://127.0.0.1:8082,http://127.0.0.1:8083\n\
                cachesql.group.insurance.tables=KCA2,KCA3\n\
                cachesql.group.finance.master=http://127.0.0.1:60000\n\
                cachesql.group.finance.slaves=http://127.0.0.1:8085\ncachesql.group.finance.tables=KCA4\n\
                db.url=jdbc:sqlite:hr.db\ncache.table.KCA2.sql=SELECT 1\ncache.table.KCA3.sql=SELECT 1\n\
                cache.table.KCA4.sql=SELECT 1\n";
    let configuration = read(text).expect("sound");
    let groups: Vec<_> = configuration.groups.iter().map(|g| (g.name.as_str(), g.members.len(), g.failover)).collect();
    // Three members elect; of two, neither could go on without the other.
    assert_eq!(groups, [("insurance", 3, Failover::Automatic), ("finance", 2, Failover::Manual)]);
    let node = |name| configuration.node(Some(name)).expect("there");
    assert_eq!(node("127.0.0.1:8082").peer.as_deref(), Some("127.0.0.1:18082"));
    // There is no port 70000.
    assert_eq!(node("127.0.0.1:60000").peer.as_deref(), Some("127.0.0.1:50000"));
    assert_eq!(node("127.0.0.1:8085").data.as_deref(), Some(Path::new("cachesql-data/127.0.0.1-8085")));
    assert_eq!(configuration.cluster.secret, None, "all of them are on one machine");
    let elsewhere = read(&text.replace("127.0.0.1", "192.168.1.10")).expect("sound");
    let secret = elsewhere.cluster.secret.expect("wanted");
    assert_eq!(secret.secret, Secret::Environment("CACHESQL_SECRET".into()));
    let told = read(&text.replace("db.url", "cachesql.secret=a long enough secret\ndb.url")).expect("sound");
    assert_eq!(told.cluster.secret.map(|s| s.secret), Some(Secret::Plain("a long enough secret".into())));
    let kept = read(&text.replace("db.url", "cachesql.data=/var/lib/c\ndb.url")).expect("sound");
    let kept = kept.node(Some("127.0.0.1:8085")).expect("there").data.clone();
    assert_eq!(kept.as_deref(), Some(Path::new("/var/lib/c/127.0.0.1-8085")));
    assert_eq!(
        problems(&text.replace("http://127.0.0.1:8083", "8083")),
        [
            "config.properties:2:1: cachesql.group.insurance.slaves: expected URLs such as http://192.168.1.11:8080, found \
             \"8083\""
        ]
    );
}

#[test]
fn the_routing_clients_file_names_nodes_by_host_and_port() {
    let text = "cachesql.group.insurance.master=http://127.0.0.1:8081\ncachesql.group.insurance.tables=KCA2\n\
                cachesql.group.finance.master=http://127.0.0.1:8082/\ncachesql.group.finance.tables=KCA4\n\
                cachesql.readTimeout=10000\ndb.url=jdbc:sqlite:hr.db\n\
                cache.table.KCA2.sql=SELECT * FROM KCA2\ncache.table.KCA4.sql=SELECT * FROM KCA4\n";
    let configuration = read(text).expect("sound");
    let node = configuration.node(Some("127.0.0.1:8082")).expect("the second");
    assert_eq!(node.http.as_deref(), Some("127.0.0.1:8082"));
    let tables: Vec<_> = configuration.tables_of(&node.name).map(|t| t.name.as_str()).collect();
    assert_eq!(tables, ["KCA4"]);
    assert_eq!(
        problems(&text.replace("finance", "财务")),
        [
            "config.properties:3:1: cachesql.group.财务.master: the name of a group goes through HTTP headers: expected ASCII \
             letters, digits and signs without spaces, found \"财务\""
        ]
    );
    let twice = text.replace("cachesql.readTimeout=10000", "cachesql.group.finance.slaves=http://127.0.0.1:8081");
    assert_eq!(
        problems(&twice),
        [
            "config.properties:5:1: cachesql.group.finance.slaves: 127.0.0.1:8081 is already in group \"insurance\": this version \
             serves one group a node"
        ]
    );
    let routes_only = "cachesql.group.a.master=http://h:1\ncachesql.group.a.tables=T\n";
    assert_eq!(
        problems(routes_only),
        [
            "config.properties:2:1: cachesql.group.a.tables: nothing says what table T holds: cache.table.T.sql is missing"
        ]
    );
}
