//! The commands against a running node: what they print, and what they end with.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::running::{Running, cachesql};

fn output(mut command: Command) -> (i32, String, String) {
    read(command.output().expect("it runs"))
}

fn read(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

fn piped(mut command: Command, input: &str) -> (i32, String, String) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    read(child.wait_with_output().expect("it ends"))
}

#[test]
fn sql_prints_frames_json_and_csv() {
    let node = Running::sample();
    let sql = "SELECT id, title FROM books WHERE author = '曹雪芹'";
    let (code, out, err) = output(node.command(&["sql", sql]));
    assert_eq!((code, err.as_str()), (0, ""));
    let rule = "─".repeat(35);
    let title = "Dream of the Red Chamber (红楼梦)";
    let heading = format!("title{}", " ".repeat(28));
    let expected =
        format!("┌────┬{rule}┐\n│ id │ {heading} │\n├────┼{rule}┤\n│  1 │ {title} │\n└────┴{rule}┘\n(1 row)\n");
    assert_eq!(out, expected);
    let (_, out, _) = output(node.command(&["sql", "--json", sql]));
    assert_eq!(out, "{\"id\":1,\"title\":\"Dream of the Red Chamber (红楼梦)\"}\n");
    let (_, out, _) =
        output(node.command(&["sql", "--csv", "SELECT id, year FROM books WHERE id IN (1, 15) ORDER BY id"]));
    assert_eq!(out.replace("\r\n", "\n"), "id,year\n1,1791\n15,\n");
}

#[test]
fn json_says_what_a_write_did() {
    let node = Running::sample();
    let json = |sql: &str| {
        let (code, out, err) = output(node.command(&["sql", "--json", sql]));
        assert_eq!(code, 0, "{sql}: {err}");
        out
    };
    assert_eq!(json("UPDATE books SET price = 1 WHERE id IN (1, 2)"), "{\"affected\":2}\n");
    assert_eq!(json("DELETE FROM books WHERE id = -1"), "{\"affected\":0}\n");
    assert_eq!(json("CREATE TABLE made (a INTEGER)"), "{\"affected\":0}\n");
    // Rows are asked for: rows are what is printed, be there none.
    assert_eq!(json("DELETE FROM books WHERE id = 1 RETURNING id"), "{\"id\":1}\n");
    assert_eq!(json("DELETE FROM books WHERE id = -1 RETURNING id"), "");
    assert_eq!(json("SELECT id FROM books WHERE id = -1"), "");
}

#[test]
fn sql_reads_pipes_and_files_and_stops_at_the_first_mistake() {
    let node = Running::sample();
    // A byte order mark, as some editors write it, is no part of the first statement.
    let statements = "\u{feff}UPDATE books SET price = 1 -- a; b\nWHERE id = 1;\nSELECT 'x;y' AS t;\nSELECT nothing FROM nowhere;\n\
                      DELETE FROM books;";
    let (code, out, err) = piped(node.command(&["sql", "--csv"]), statements);
    assert_eq!(code, 1, "{err}");
    assert_eq!(out.replace("\r\n", "\n"), "t\nx;y\n");
    assert!(err.contains("nowhere"), "{err}");
    assert_eq!(node.sql("SELECT count(*) FROM books")["rows"], json!([[24]]));

    let file = node.folder.path().join("s.sql");
    std::fs::write(&file, "\u{feff}DELETE FROM books WHERE id = 2;\nDELETE FROM books WHERE id > 20").expect("written");
    let (code, out, _) = output(node.command(&["sql", "--file", file.to_str().expect("text")]));
    assert_eq!((code, out.as_str()), (0, "(1 row written)\n(4 rows written)\n"));
    // What makes or drops a table writes no rows.
    let (code, out, _) = piped(node.command(&["sql", "-f", "-"]), "CREATE TABLE made (a INTEGER);\ndrop table made");
    assert_eq!((code, out.as_str()), (0, "(done)\n(done)\n"));
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let mut command = cachesql(folder.path());
        command.args(arguments);
        output(command)
    };
    assert_eq!(run(&["sql", "--no-such-option"]).0, 2);
    assert_eq!(run(&["sql", "SELECT 1", "--url", "https://127.0.0.1:1"]).0, 2);
    // Nothing listens on port 1.
    let (code, _, err) = run(&["sql", "SELECT 1", "--url", "http://127.0.0.1:1"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.starts_with("error: http://127.0.0.1:1: cannot connect"), "{err}");
    std::fs::write(folder.path().join("bad.toml"), "[tables.t]\nfil = \"x.csv\"\n").expect("written");
    for command in ["serve", "check"] {
        let (code, _, err) = run(&[command, "bad.toml"]);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("bad.toml:2:1: unknown key \"fil\" in [tables.t]; did you mean \"file\"?"), "{err}");
    }
    assert_eq!(run(&["check", "absent.toml"]).0, 3);
    let (code, out, _) = run(&["check", "--json", "bad.toml"]);
    let outcome: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &outcome["sound"], &outcome["problems"][0]["line"]), (3, &json!(false), &json!(1)));
    let (code, out, _) = run(&["completions", "bash"]);
    assert!(code == 0 && out.contains("cachesql"));
    // A reader that leaves early is no fault.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut unread = cachesql(folder.path());
    let unread = unread.args(["completions", "bash"]).stdout(writer).output().expect("it runs");
    assert_eq!((unread.status.code(), String::from_utf8_lossy(&unread.stderr).as_ref()), (Some(0), ""));
    assert_eq!(run(&["bench", "--statement", "SELECT 1"]).0, 2);
    assert_eq!(run(&["--version"]).1, format!("cachesql {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn check_finds_the_sample_sound() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample/cachesql.toml");
    let mut command = cachesql(std::path::Path::new("/"));
    command.args(["check", sample]);
    let (code, out, _) = output(command);
    assert_eq!((code, out), (0, format!("{sample}: sound (1 node, 1 origin, 5 tables)\n")));
}

#[test]
fn check_says_what_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let check = |arguments: &[&str]| {
        let mut command = cachesql(folder.path());
        command.arg("check").args(arguments).env("CACHESQL_SET", "x");
        output(command)
    };
    let sound = "[origins.hr]\nurl = \"postgres://127.0.0.1:1/hr?sslmode=verify-full&sslrootcert=root.pem\"\n\
                 password = { env = \"CACHESQL_NOT_SET\" }\n[origins.lite]\nurl = \"sqlite:lite.db\"\n\
                 password = { env = \"CACHESQL_SET\" }\n[origins.unused]\nurl = \"postgres://127.0.0.1:1/hr\"\n\
                 password = { env = \"CACHESQL_NOT_SET\" }\n\
                 [tables.a]\norigin = \"hr\"\nquery = \"SELECT 1\"\n[tables.b]\norigin = \"lite\"\nquery = \"SELECT 1\"\n\
                 [tables.there]\nfile = \"there.csv\"\n[tables.gone]\nfile = \"gone.csv\"\n[tables.folder]\nfile = \".\"\n\
                 format = \"csv\"\n";
    write("there.csv", "a\n1\n");
    write("c.toml", sound);
    let no_file = std::io::Error::from_raw_os_error(2);
    let warnings = [
        (2, 1, format!("[origins.hr] url: root.pem: {no_file}")),
        (3, 12, "[origins.hr] password: environment variable CACHESQL_NOT_SET is not set".to_owned()),
        (5, 1, format!("[origins.lite] url: lite.db: {no_file}")),
        (19, 1, format!("[tables.gone] file: gone.csv: {no_file}")),
        (21, 1, "[tables.folder] file: .: it is a folder".to_owned()),
    ];
    let mut expected: String =
        warnings.iter().map(|(line, column, why)| format!("warning: c.toml:{line}:{column}: {why}\n")).collect();
    expected.push_str("c.toml: sound (1 node, 3 origins, 5 tables)\n");
    assert_eq!(check(&["c.toml"]), (0, expected, String::new()));
    let (code, out, _) = check(&["--json", "c.toml"]);
    let outcome: Value = serde_json::from_str(&out).expect("JSON");
    let listed =
        warnings.map(|(line, column, why)| json!({"file": "c.toml", "line": line, "column": column, "message": why}));
    assert_eq!((code, &outcome["sound"], &outcome["warnings"]), (0, &json!(true), &json!(listed)));

    // Without the file of a secret no node starts: `serve` and `check` say the same of it.
    write("d.toml", "[access]\ntoken = { file = \"token\" }\n[tables.t]\nfile = \"gone.csv\"\n");
    let refusal = format!("error: d.toml:2:9: [access] token: secret file token: {no_file}\n");
    let warning = format!("warning: d.toml:4:1: [tables.t] file: gone.csv: {no_file}\n");
    assert_eq!(check(&["d.toml"]), (3, warning, refusal.clone()));
    let mut serve = cachesql(folder.path());
    serve.args(["serve", "d.toml"]);
    assert_eq!(output(serve), (3, String::new(), refusal));
}

#[test]
fn load_writes_files_into_tables() {
    let node = Running::sample();
    let path = |name: &str| node.folder.path().join(name).to_str().expect("text").to_owned();
    let rows: String = (1..=2_500).map(|i| format!("{i},\"n\"\"{i}\n汉\",{i}.50\n")).collect();
    std::fs::write(path("people.csv"), format!("id,name,price\n{rows}")).expect("written");
    let arguments = ["load", "people", &path("people.csv"), "--create", "--key", "id", "--batch", "1000", "--json"];
    let (code, out, err) = output(node.command(&arguments));
    assert_eq!(code, 0, "{err}");
    let outcome: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&outcome["table"], &outcome["rows"]), (&json!("people"), &json!(2_500)));
    let answer = node.sql("SELECT count(*), sum(id), max(name) FROM people WHERE id <> 2500");
    assert_eq!(answer["rows"], json!([[2_499, 2_499 * 2_500 / 2, "n\"999\n汉"]]));

    // The same rows again are refused as they are, and replace themselves where that is asked for.
    let (code, _, err) = output(node.command(&["load", "people", &path("people.csv")]));
    assert_eq!(code, 1);
    assert!(
        err.contains("the batch of 2500 rows from line 2 on was refused")
            && err.contains("Written before that: 0 rows."),
        "{err}"
    );
    std::fs::write(path("new.ndjson"), "{\"id\":1,\"name\":\"x\"}\n{\"id\":2501,\"name\":null}\n").expect("written");
    let (code, out, err) = output(node.command(&["load", "people", &path("new.ndjson"), "--upsert"]));
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("people: 2 rows ("), "{out}");
    let answer = node.sql("SELECT id, name FROM people WHERE id IN (1, 2501) ORDER BY id");
    assert_eq!(answer["rows"], json!([[1, "x"], [2501, null]]));

    // Lines need not have the same members.
    std::fs::write(path("uneven.ndjson"), "{\"id\":3001}\n{\"price\":2.5,\"id\":3002}\n").expect("written");
    let (code, _, err) = output(node.command(&["load", "people", &path("uneven.ndjson")]));
    assert_eq!(code, 0, "{err}");
    let answer = node.sql("SELECT id, name, price FROM people WHERE id > 3000 ORDER BY id");
    assert_eq!(answer["rows"].to_string(), "[[3001,null,null],[3002,null,2.50]]");

    let (code, _, err) = output(node.command(&["load", "nowhere", &path("new.ndjson")]));
    assert_eq!(code, 1);
    assert!(err.contains("nowhere") && err.contains("hint: --create makes the table"), "{err}");
    assert_eq!(output(node.command(&["load", "people", &path("x.parquet")])).0, 2);
    assert_eq!(output(node.command(&["load", "people", &path("absent.csv")])).0, 1);
}

#[test]
fn what_is_exported_comes_back_with_its_types() {
    let node = Running::sample();
    node.sql("CREATE TABLE kept (id BIGINT PRIMARY KEY, ok BOOLEAN, born DATE, note TEXT)");
    node.sql("INSERT INTO kept VALUES (1, true, DATE '1969-12-31', ''), (2, false, NULL, NULL), (3, NULL, NULL, 't')");
    let everything = |table: &str| node.sql(&format!("SELECT * FROM {table} ORDER BY id"));
    let (code, csv, err) = output(node.command(&["sql", "--csv", "SELECT * FROM kept"]));
    assert_eq!(code, 0, "{err}");
    let path = node.folder.path().join("kept.csv");
    std::fs::write(&path, csv).expect("written");
    let (code, _, err) = output(node.command(&["load", "again", "kept.csv", "--create", "--key", "id"]));
    assert_eq!(code, 0, "{err}");
    let (kept, again) = (everything("kept"), everything("again"));
    assert_eq!((&again["columns"], &again["rows"]), (&kept["columns"], &kept["rows"]));
}

#[test]
fn load_reads_pipes_and_urls() {
    let node = Running::sample();
    let csv = "name,english,country,latitude,longitude\nOslo,Oslo,NO,59.9139,10.7522\n";
    let (code, _, err) = piped(node.command(&["load", "cities", "-", "--format", "csv"]), csv);
    assert_eq!(code, 0, "{err}");
    assert_eq!(node.sql("SELECT latitude FROM cities WHERE name = 'Oslo'")["rows"].to_string(), "[[59.9139]]");
    // The node's own answer is a file like any other.
    node.sql("CREATE TABLE copy (name TEXT PRIMARY KEY, country TEXT)");
    let url = format!("{}/rest/cities?select=name,country", node.url);
    let (code, out, err) = output(node.command(&["load", "copy", &format!("{url}&x.ndjson"), "--format", "ndjson"]));
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("400"), "{err}");
}

#[test]
fn bench_reports_rate_and_latency() {
    let node = Running::sample();
    for door in ["rest", "cache", "sql"] {
        let (code, out, err) = output(node.command(&["bench", "--door", door, "-c", "4", "-d", "200ms", "--json"]));
        assert_eq!(code, 0, "{err}");
        let outcome: Value = serde_json::from_str(&out).expect("JSON");
        assert!(outcome["requests"].as_u64().expect("a number") > 10, "{door}: {out}");
        assert_eq!(outcome["refused"], json!(0));
        let latency = |name: &str| outcome["latency_us"][name].as_u64().expect("a number");
        assert!(
            latency("p50") <= latency("p99") && latency("p99") <= outcome["latency_max_us"].as_u64().expect("a number")
        );
    }
}

#[test]
fn bench_says_what_it_cannot_ask_for() {
    let node = Running::with_configuration(
        "[tables.hollow]\ncolumns = { id = \"INTEGER\", name = \"TEXT\" }\nkey = [\"id\"]\n\
         [tables.loose]\ncolumns = { a = \"INTEGER\" }\n",
    );
    let bench = |arguments: &[&str]| {
        let (code, _, err) = output(node.command(&[&["bench", "-d", "10ms"], arguments].concat()));
        (code, err)
    };
    let (nowhere, empty) = (
        "error: there is no table nowhere; there is: hollow, loose\n".to_owned(),
        "error: table hollow has no rows, so that there is nothing to ask for\n".to_owned(),
    );
    assert_eq!(bench(&["--table", "nowhere"]), (2, nowhere.clone()));
    assert_eq!(bench(&["--table", "nowhere", "--column", "id"]), (2, nowhere));
    assert_eq!(bench(&[]), (1, empty.clone()));
    assert_eq!(bench(&["--table", "HOLLOW"]), (1, empty.clone()));
    assert_eq!(bench(&["--table", "hollow", "--column", "name"]), (1, empty));
    let unknown = "error: table hollow has no column nam; it has: id, name\n".to_owned();
    assert_eq!(bench(&["--table", "hollow", "--column", "nam"]), (2, unknown));
    assert_eq!(bench(&["--table", "loose"]), (2, "error: table loose has no primary key; say --column\n".to_owned()));
    node.sql("INSERT INTO hollow (id) VALUES (1)");
    let nulls = "error: table hollow has only NULL in column name, so that there is nothing to ask for\n".to_owned();
    assert_eq!(bench(&["--table", "hollow", "--column", "name"]), (1, nulls));
}
