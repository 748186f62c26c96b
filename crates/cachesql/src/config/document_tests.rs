//! Every kind of mistake in a `cachesql.toml`, with the place and the words of its message.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cachesql_origin::{CsvOptions, FileFormat, FileSource};
use cachesql_types::{DataType, Decimal, Value};

use crate::config::{ConfigError, Configuration, Refresh, Secret, TableSource, read_bytes};

fn read(text: &str) -> Result<Configuration, ConfigError> {
    read_bytes(Path::new("conf/c.toml"), text.as_bytes())
}

fn problems(text: &str) -> Vec<String> {
    match read(text) {
        Err(ConfigError::Invalid(problems)) => problems.iter().map(ToString::to_string).collect(),
        other => panic!("expected problems in {text:?}, got {other:?}"),
    }
}

#[test]
fn ten_lines_are_enough() {
    let configuration = read(
        "[origins.hr]\nurl = \"postgres://reader@db/hr\"\npassword = { env = \"HR_PASSWORD\" }\n\
         [tables.KCA2]\norigin = \"hr\"\nquery = \"SELECT * FROM KCA2 WHERE MONTH = $1 AND X > $2\"\nparams = [202604, 0.10]\n\
         key = [\"AAC001\"]\nindexes = [\"AAB004\", \"A+B\", [\"C\", \"D\"]]\nrefresh = \"10m\"\nttl = \"1h\"\nmax_rows = 1_000_000\n\
         [tables.people]\nfile = \"data/people.tsv\"\nnull = \"NA\"\ncolumns = { z = \"DATE\", a = \"numeric(10,2)\" }\n",
    )
    .expect("sound");
    let node = configuration.node(None).expect("one node");
    assert_eq!((node.name.as_str(), node.http.as_deref()), ("local", Some("127.0.0.1:8080")));
    assert_eq!(configuration.group_of("local").expect("a group").name, "main");
    let origin = configuration.origins.first().expect("an origin");
    let password = origin.password.as_ref().expect("a password");
    assert_eq!((&password.secret, password.place.line), (&Secret::Environment("HR_PASSWORD".into()), 3));
    let [table, people] = configuration.tables.as_slice() else { panic!("two tables") };
    let columns = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        table.source,
        TableSource::Query {
            origin: "hr".into(),
            sql: "SELECT * FROM KCA2 WHERE MONTH = $1 AND X > $2".into(),
            params: vec![Value::BigInt(202_604), Value::Decimal(Decimal { unscaled: 10, scale: 2 })],
        }
    );
    assert_eq!(table.key, columns(&["AAC001"]));
    assert_eq!(table.indexes, [columns(&["AAB004"]), columns(&["A", "B"]), columns(&["C", "D"])]);
    assert_eq!(table.refresh, Refresh::Every(Duration::from_secs(600)));
    assert_eq!((table.ttl, table.max_rows), (Some(Duration::from_secs(3600)), Some(1_000_000)));
    let csv = CsvOptions { delimiter: b'\t', null_text: Some("NA".into()) };
    let path = PathBuf::from("conf/data/people.tsv");
    assert_eq!(people.source, TableSource::File(FileSource { path, format: FileFormat::Csv(csv) }));
    let types = [("z".to_owned(), DataType::Date), ("a".to_owned(), DataType::Decimal { precision: 10, scale: 2 })];
    assert_eq!(people.columns, types);
}

#[test]
fn an_empty_file_is_one_node_without_tables() {
    let configuration = read("").expect("sound");
    assert_eq!(configuration.nodes.len(), 1);
    assert!(configuration.tables.is_empty());
}

/// Texts, and what is wrong with each, without the name of the file.
const MISTAKES: &[(&str, &[&str])] = &[
    ("[tabels.x]\n", &["1:2: unknown section \"tabels\"; did you mean \"tables\"?"]),
    (
        "colour = 1\n",
        &[
            "1:1: unknown section \"colour\"; expected one of nodes, access, limits, cluster, groups, origins, tables, caches",
        ],
    ),
    ("tables = 3\n", &["1:1: expected sections [tables.NAME], found the number 3"]),
    ("[tables]\nx = 3\n", &["2:1: expected sections [tables.NAME], found `x` with the number 3"]),
    ("limits = \"x\"\n", &["1:1: [limits]: expected a section, found \"x\""]),
    (
        "[limits]\nstatement_timeout = 30\n",
        &[
            "2:21: `statement_timeout`: expected a duration such as \"10m\", \"1h30m\" or \"250ms\" (units ms, s, m, h, d), found the \
             number 30",
        ],
    ),
    (
        "[limits]\nhttp_body = \"64 Megs\"\n",
        &[
            "2:13: `http_body`: expected a size such as \"64MiB\" or \"8GiB\" (units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), found \
             \"64 Megs\"",
        ],
    ),
    ("[limits]\nstatement_rows = 0\n", &["2:18: `statement_rows`: expected a whole number from 1, found the number 0"]),
    ("[limits]\nhttp_bdy = \"1MiB\"\n", &["2:1: unknown key \"http_bdy\" in [limits]; did you mean \"http_body\"?"]),
    ("[nodes.a]\nhttp = \"8080\"\n", &["2:8: `http`: expected an address such as \"127.0.0.1:8080\", found \"8080\""]),
    ("[nodes.a]\ninsecure = \"yes\"\n", &["2:12: `insecure`: expected true or false, found \"yes\""]),
    ("[nodes.a]\npg = \"127.0.0.1:5433\"\n", &["2:1: `pg`: this version does not serve the PostgreSQL door"]),
    (
        "[nodes.a]\npeer = \"127.0.0.1:1\"\n[nodes.b]\n",
        &[
            "3:8: group \"main\" has several members, and nothing says where the others reach node \"b\": `peer` is missing",
        ],
    ),
    (
        "[nodes.a]\n[nodes.b]\npeer = \"127.0.0.1:1\"\n[groups.g]\nmembers = [\"a\", \"b\"]\n",
        &[
            "1:8: group \"g\" has several members, and nothing says where the others reach node \"a\": `peer` is missing",
        ],
    ),
    (
        "[nodes.a]\npeer = \"127.0.0.1:1\"\n[nodes.b]\npeer = \"127.0.0.1:2\"\n[groups.g]\nmembers = [\"a\", \"b\"]\nfailover = \"automatic\"\n",
        &["7:12: `failover`: with two members neither can go on without the other: \"automatic\" takes three"],
    ),
    (
        "[nodes.a]\npeer = \"10.0.0.1:1\"\n",
        &[
            "1:8: `peer`: 10.0.0.1:1 is reached from other machines: set `secret` in [cluster], which nodes show each other",
        ],
    ),
    (
        "[nodes.a]\n[nodes.b]\n[groups.g]\nmembers = [\"a\"]\n[groups.h]\nmembers = [\"b\", \"a\"]\n",
        &[
            "1:8: group \"h\" has several members, and nothing says where the others reach node \"a\": `peer` is missing",
            "2:8: group \"h\" has several members, and nothing says where the others reach node \"b\": `peer` is missing",
            "5:9: node \"a\" is in groups \"g\" and \"h\": this version serves one group a node",
        ],
    ),
    (
        "[nodes.alpha]\n[groups.g]\nmembers = [\"alpa\"]\nleader = \"z\"\n",
        &[
            "3:11: `members`: there is no node \"alpa\"; did you mean \"alpha\"?",
            "4:10: `leader`: \"z\" is not a member of the group",
        ],
    ),
    (
        "[groups.g]\nfailover = \"never\"\n",
        &[
            "1:9: [groups.g] needs `members`: a list of names such as [\"A\", \"B\"]",
            "2:12: `failover`: expected one of \"automatic\", \"manual\", found \"never\"",
        ],
    ),
    (
        "[nodes.a]\n[groups.\"保险\"]\nmembers = [\"a\"]\n",
        &[
            "2:9: the name of a group goes through HTTP headers: expected ASCII letters, digits and signs without spaces, found \
             \"保险\"",
        ],
    ),
    (
        "[nodes.a]\n[groups.\" a\"]\nmembers = [\"a\"]\n",
        &[
            "2:9: the name of a group goes through HTTP headers: expected ASCII letters, digits and signs without spaces, found \
             \" a\"",
        ],
    ),
    (
        "[caches.scores]\nbudget = 5\n",
        &[
            "1:9: [caches.scores]: this version does not serve keyed caches",
            "2:10: `budget`: expected a size such as \"64MiB\" or \"8GiB\" (units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), found the \
             number 5",
        ],
    ),
    (
        "[access]\ntoken = \"hunter2\"\n",
        &["2:9: `token`: expected { env = \"NAME\" } or { file = \"PATH\" }, found \"hunter2\""],
    ),
    ("[origins.hr]\n", &["1:10: [origins.hr] needs `url`: text in quotes"]),
    (
        "[origins.hr]\nurl = \"mysql://db/hr\"\n",
        &["2:7: `url`: this version does not serve mysql as an origin; PostgreSQL, SQLite and files are served"],
    ),
    (
        "[tables.t]\n",
        &[
            "1:9: [tables.t] has nothing to load: expected `origin` and `query`, or `file`, or `columns` for a table that begins \
             empty",
        ],
    ),
    ("[tables.t]\nquery = \"SELECT 1\"\n", &["2:1: [tables.t] has `query` without `origin`"]),
    (
        "[tables.t]\nfile = \"x.parquet\"\n",
        &["2:1: `file`: its ending does not tell what it is: add `format`, one of \"csv\", \"ndjson\", \"arrow\""],
    ),
    (
        "[tables.t]\nfile = \"http://h/x.csv\"\n",
        &["2:8: `file`: expected a path; files are not fetched from URLs by this version"],
    ),
    (
        "[tables.t]\nfile = \"x.csv\"\ndelimiter = \"||\"\n",
        &["3:13: `delimiter`: expected one ASCII character that is no quote and no line end, found \"||\""],
    ),
    ("[tables.t]\nfile = \"x.ndjson\"\nnull = \"NA\"\n", &["3:1: `null`: it is for CSV files"]),
    (
        "[tables.t]\ncolumns = { a = \"MONEY\" }\n",
        &[
            "2:17: `columns`: column a: expected a type such as \"BIGINT\", \"TEXT\" or \"DECIMAL(10,2)\", found \"MONEY\"",
        ],
    ),
    (
        "[tables.t]\ncolumns = { abc = \"TEXT\" }\nkey = [\"abd\"]\nindexes = [\"zzz\"]\nrefresh = \"1s\"\n",
        &[
            "3:1: `key`: there is no column \"abd\" in `columns`; did you mean \"abc\"?",
            "4:1: `indexes`: there is no column \"zzz\" in `columns`",
            "5:1: `refresh`: a table without `query` or `file` has nothing to be refreshed from",
        ],
    ),
    (
        "[tables.t]\nfile = \"x.csv\"\n[tables.T]\nfile = \"y.csv\"\n",
        &["3:9: table \"T\" differs from table \"t\" in case only: names are matched without case"],
    ),
    (
        "[tables.t]\nfile = \"x.csv\"\n[tables.t]\nfile = \"y.csv\"\n",
        &["3:9: duplicate key `t`", "4:1: duplicate key `file`"],
    ),
    ("[tables.t]\nfile = \"x.csv\"\nfile = \"y.csv\"\n", &["3:1: duplicate key `file`"]),
    ("[tables.t]\nfile = x.csv\n", &["2:8: string values must be quoted, expected literal string"]),
];

/// The same for texts that follow an origin of two lines.
const MISTAKES_ON_ORIGIN: &[(&str, &[&str])] = &[
    (
        "[tables.t]\norigin = \"p\"\nquery = \"SELECT 1\"\n",
        &["4:10: `origin`: there is no [origins.p]; did you mean \"o\"?"],
    ),
    (
        "[tables.t]\norigin = \"o\"\n",
        &["4:1: [tables.t] has `origin` without `query`: for instance \"SELECT * FROM t\""],
    ),
    (
        "[tables.t]\norigin = \"o\"\nquery = \"Q\"\nfile = \"x.csv\"\n",
        &[
            "4:1: `origin`: a table has either `file` or `origin` and `query`",
            "5:1: `query`: a table has either `file` or `origin` and `query`",
        ],
    ),
    (
        "[tables.t]\norigin = \"o\"\nquery = \"Q\"\nparams = [[1]]\n",
        &["6:10: `params`: expected a list of texts, numbers and booleans such as [202604, \"x\"], found a list"],
    ),
    (
        "[tables.t]\norigin = \"o\"\nquery = \"Q\"\nkey = \"id\"\n",
        &["6:7: `key`: expected a list of names such as [\"A\", \"B\"], found \"id\""],
    ),
    (
        "[tables.t]\norigin = \"o\"\nquery = \"Q\"\nindexes = [\"a\", \"b+a\", \"a\"]\nkey = [\"k\", \"k\"]\n",
        &["6:11: `indexes`: \"a\" is there twice", "7:7: `key`: \"k\" is there twice"],
    ),
    (
        "[tables.t]\norigin = \"o\"\nquery = \"Q\"\nrefresh = \"follow\"\n",
        &["6:11: `refresh`: this version does not serve \"follow\"; an interval such as \"10m\" is"],
    ),
    (
        "[tables.t]\norigin = \"o\"\nquery = \"Q\"\nrefresh = \"soon\"\n",
        &["6:11: `refresh`: expected \"never\", \"follow\", or an interval such as \"10m\", found \"soon\""],
    ),
    (
        "[tables.t]\norigin = \"o\"\nquery = \"Q\"\ngroup = \"mian\"\n",
        &["6:9: `group`: there is no group \"mian\"; did you mean \"main\"?"],
    ),
];

#[test]
fn each_mistake_is_named_with_its_place() {
    let check = |text: &str, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|message| format!("conf/c.toml:{message}")).collect();
        assert_eq!(problems(text), expected, "{text}");
    };
    for (text, expected) in MISTAKES {
        check(text, expected);
    }
    for (text, expected) in MISTAKES_ON_ORIGIN {
        check(&format!("[origins.o]\nurl = \"sqlite:x.db\"\n{text}"), expected);
    }
}

#[test]
fn all_mistakes_are_reported_at_once_in_the_order_of_the_file() {
    let found = problems(
        "[limits]\nx = 1\n[tables.t]\nttl = 5\n[nodes.a]\nhttp = \"a b:1\"\n[origins.o]\nurl = \"oracle:x\"\n",
    );
    let lines: Vec<_> = found.iter().map(|p| p.split(':').nth(1).expect("a line").to_owned()).collect();
    assert_eq!(lines, ["2", "3", "4", "6", "8"]);
}

#[test]
fn hostile_text_is_refused_not_crashed_on() {
    let deep = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(read(&deep), Err(ConfigError::Invalid(_))));
    assert!(matches!(read_bytes(Path::new("c.toml"), b"a = \"\xff\""), Err(ConfigError::Invalid(_))));
    assert!(matches!(read("a = \"unfinished"), Err(ConfigError::Invalid(_))));
}

#[test]
fn an_address_beyond_this_machine_wants_a_token_or_the_word() {
    let refused = |text: &str| {
        let configuration = read(text).expect("sound");
        let node = configuration.nodes.first().expect("a node");
        configuration.check_protection(node).err().map(|e| e.to_string())
    };
    for address in ["127.0.0.1:1", "[::1]:1", "127.9.9.9:1", "localhost:1"] {
        assert_eq!(refused(&format!("[nodes.a]\nhttp = \"{address}\"\n")), None, "{address}");
    }
    for address in ["0.0.0.0:1", "192.168.1.10:8080", "[::]:1", "[::ffff:10.0.0.1]:1"] {
        let text = format!("[nodes.a]\nhttp = \"{address}\"\n");
        let message = refused(&text).expect("refused");
        let start = format!("conf/c.toml:2:8: `http`: {address} can be reached from other machines");
        assert!(message.starts_with(&start), "{message}");
        assert_eq!(refused(&format!("{text}insecure = true\n")), None, "{address}");
        assert_eq!(refused(&format!("{text}[access]\ntoken = {{ env = \"T\" }}\n")), None, "{address}");
    }
}

#[test]
fn two_nodes_hold_the_tables_of_their_groups() {
    let text = "[nodes.a]\nhttp = \"127.0.0.1:1\"\n[nodes.b]\n[groups.x]\nmembers = [\"a\"]\n[groups.y]\nmembers = [\"b\"]\n\
                [tables.t]\nfile = \"t.csv\"\ngroup = \"x\"\n[tables.u]\nfile = \"u.csv\"\ngroup = \"y\"\n";
    let configuration = read(text).expect("sound");
    let tables = |node| configuration.tables_of(node).map(|t| t.name.as_str()).collect::<Vec<_>>();
    assert_eq!((tables("a"), tables("b")), (vec!["t"], vec!["u"]));
    assert_eq!(configuration.node(None), Err("there are several nodes (a, b): say which one with --node".into()));
    assert_eq!(configuration.node(Some("c")), Err("there is no node \"c\"; there is: a, b".into()));
    let one_group = text.replace("members = [\"b\"]", "members = [\"a\"]");
    assert_eq!(
        problems(&one_group),
        ["conf/c.toml:6:9: node \"a\" is in groups \"x\" and \"y\": this version serves one group a node"]
    );
}

#[test]
fn secrets_come_from_the_environment_or_a_file_and_never_show() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("pw"), "hunter2\n").expect("written");
    let text = "[origins.o]\nurl = \"postgres://db/x\"\npassword = { file = \"pw\" }\n";
    let configuration = read_bytes(&folder.path().join("c.toml"), text.as_bytes()).expect("sound");
    let password = configuration.origins.first().and_then(|o| o.password.clone()).expect("a password");
    assert_eq!(password.secret.reveal(), Ok("hunter2".into()));
    let missing = Secret::Environment("CACHESQL_NO_SUCH_VARIABLE".into());
    assert_eq!(missing.reveal(), Err("environment variable CACHESQL_NO_SUCH_VARIABLE is not set".into()));
    assert!(!format!("{:?}", Secret::Plain("hunter2".into())).contains("hunter2"));
}

/// The annotated sample with bytes taken out, doubled and changed, by a small fixed generator: the same every run.
#[test]
fn damaged_files_are_answered_with_places_in_them() {
    let sample = crate::config::reference::sample();
    let mut state = 7_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % bound
    };
    let pieces = ["\"", "[", "]", "=", "{", "}", "\n", ".", "'''", "\\u", "汉", "1", "nodes", "\u{0}", "#"];
    let mut refused = 0;
    for _ in 0..1_500 {
        let mut characters: Vec<char> = sample.chars().collect();
        for _ in 0..1 + next(4) {
            let at = next(characters.len());
            match next(3) {
                0 => drop(characters.drain(at..(at + 1 + next(30)).min(characters.len()))),
                1 => drop(characters.splice(at..at, pieces[next(pieces.len())].chars())),
                _ => characters[at] = pieces[next(pieces.len())].chars().next().expect("one"),
            }
        }
        let text: String = characters.into_iter().collect();
        match read(&text) {
            Ok(_) => {}
            Err(ConfigError::Invalid(problems)) => {
                refused += 1;
                assert!(!problems.is_empty());
                let lines = text.split('\n').count();
                assert!(problems.iter().all(|p| p.line >= 1 && p.line <= lines && p.column >= 1), "{problems:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 500, "{refused} were refused");
}
