//! How a node starts, what it says, and how it stops.

use serde_json::json;

use crate::running::{Running, cachesql};

#[test]
fn the_sample_is_loaded_and_answers_until_it_is_told_to_stop() {
    for signal in ["TERM", "INT"] {
        let mut node = Running::sample();
        assert_eq!(node.sql("SELECT AAC003 FROM KCA2 WHERE AAC001 = 12345")["rows"], json!([["张三"]]));
        let (status, body) = node.request("GET", "/readyz", "", "");
        assert_eq!(status, 200, "{body}");
        // The price of a book is exact, and NULL is not the text "null".
        let answer = node.sql("SELECT id, year FROM books WHERE id = 15");
        assert_eq!(answer["rows"], json!([[15, null]]));
        node.signal(signal);
        assert_eq!(node.ended().code(), Some(0), "{signal}");
    }
}

#[test]
fn the_rows_of_the_sample_are_those_of_its_text() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample");
    let made = rusqlite::Connection::open_in_memory().expect("opened");
    let text = std::fs::read_to_string(format!("{sample}/sample.sql")).expect("there");
    made.execute_batch(&text).expect("the text is SQL");
    made.execute("ATTACH ? AS kept", [format!("{sample}/sample.db")]).expect("attached");
    for table in ["KCA2", "KCA3", "KCA4", "books"] {
        let different = format!(
            "SELECT count(*) FROM (SELECT * FROM (SELECT * FROM main.{table} EXCEPT SELECT * FROM kept.{table}) UNION ALL \
             SELECT * FROM (SELECT * FROM kept.{table} EXCEPT SELECT * FROM main.{table}))"
        );
        let count: i64 = made.query_row(&different, [], |row| row.get(0)).expect("counted");
        assert_eq!(count, 0, "{table}: sample.db was not made from sample.sql");
    }
}

#[test]
fn the_originals_file_starts_a_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample/sample.db");
    let properties = format!(
        "server.mode=all\nserver.role=standalone\nserver.threads=4\ndb.driver=org.sqlite.JDBC\ndb.url=jdbc:sqlite:{database}\n\
         db.pool.maxActive=5\ncache.refreshInterval=0\ncache.table.KCA2.sql=SELECT * FROM KCA2 WHERE AAC001 < ?\n\
         cache.table.KCA2.params=12346\ncache.table.KCA2.indexes=AAC001,AAB004,AAB004+AAC003\n\
         cache.table.notes.sql=notes\ncache.table.notes.columns=id,text\ncache.table.notes.indexes=id\n"
    );
    std::fs::write(folder.path().join("config.properties"), properties).expect("written");
    let node = Running::start(folder, &["serve", "config.properties"]);
    assert_eq!(node.sql("SELECT count(*) FROM KCA2")["rows"], json!([[345]]));
    let (status, body) = node.request("GET", "/cache/get?table=KCA2&column=AAC001&value=12345", "", "");
    assert_eq!(status, 200);
    let answer: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&answer["code"], &answer["data"][0]["AAC003"]), (&json!(0), &json!("张三")));
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let (status, body) = node.request("POST", "/cache/insert", form, "table=notes&column=id&value=7&text=%E5%A5%BD");
    assert_eq!((status, body.as_str()), (200, r#"{"code":0,"message":"ok","data":{"table":"notes","op":"insert"}}"#));
    assert_eq!(node.sql("SELECT * FROM notes")["rows"], json!([["7", "好"]]));
}

#[test]
fn a_door_beyond_this_machine_needs_a_token_or_the_word() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("open.toml"), "[nodes.a]\nhttp = \"0.0.0.0:0\"\n").expect("written");
    let run = |arguments: &[&str]| {
        let output = cachesql(folder.path()).args(arguments).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    for command in ["serve", "check"] {
        let (code, said) = run(&[command, "open.toml"]);
        assert_eq!(code, Some(3));
        assert!(said.contains("open.toml:2:8: `http`: 0.0.0.0:0 can be reached from other machines"), "{said}");
    }
    let (code, said) = run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--http 0.0.0.0:0 can be reached") && said.contains("--insecure"), "{said}");
}

#[test]
fn a_secret_that_is_not_there_is_named_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let toml = "[origins.hr]\nurl = \"postgres://127.0.0.1:1/hr\"\npassword = { env = \"CACHESQL_NOT_SET\" }\n\
                [tables.t]\norigin = \"hr\"\nquery = \"SELECT 1\"\n";
    std::fs::write(folder.path().join("c.toml"), toml).expect("written");
    let output = cachesql(folder.path()).args(["serve", "c.toml"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).expect("text");
    let expected = "error: c.toml:3:12: [origins.hr] password: environment variable CACHESQL_NOT_SET is not set\n";
    assert_eq!(said, expected);
}

#[test]
fn a_token_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("token"), "hunter2\n").expect("written");
    let toml = "[access]\ntoken = { file = \"token\" }\n[tables.t]\ncolumns = { a = \"INTEGER\" }\n";
    std::fs::write(folder.path().join("cachesql.toml"), toml).expect("written");
    // No file is named: the folder's cachesql.toml is taken.
    let node = Running::start(folder, &["serve"]);
    let (status, _) = node.request("GET", "/rest/t", "", "");
    assert_eq!(status, 401);
    std::fs::write(node.folder.path().join("t.csv"), "a\n1\n").expect("written");
    let commands: [&[&str]; 3] = [&["sql", "SELECT a FROM t"], &["load", "t", "t.csv"], &["bench", "-d", "10ms"]];
    for arguments in commands {
        let output = node.command(arguments).output().expect("it runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {complaint}");
        assert!(complaint.contains("--token-file FILE") && complaint.contains("CACHESQL_TOKEN"), "{complaint}");
    }
    let run = |command: &mut std::process::Command| command.output().expect("it runs").status.code();
    assert_eq!(run(&mut node.command(&["sql", "SELECT a FROM t", "--token-file", "token"])), Some(0));
    assert_eq!(run(node.command(&["sql", "SELECT a FROM t"]).env("CACHESQL_TOKEN", "hunter2")), Some(0));
}

#[test]
fn a_table_that_cannot_be_loaded_is_named_and_the_node_is_not_ready() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.csv"), "a,b\n1,2\nx,3\n").expect("written");
    let toml = "[tables.t]\nfile = \"t.csv\"\ncolumns = { a = \"INTEGER\" }\n";
    std::fs::write(folder.path().join("cachesql.toml"), toml).expect("written");
    let mut node = Running::start_without_waiting(folder, &["serve", "--log", "error"]);
    let line = node.wait_for("not loaded");
    let parts = ["t: not loaded (attempt 1)", "column a", "value \"x\"", "line 3", "INTEGER"];
    assert!(parts.iter().all(|part| line.contains(part)), "{line}");
}

#[test]
fn what_the_configuration_says_holds_while_it_serves() {
    let node = Running::with_configuration(
        "[limits]\nstatement_rows = 3\nhttp_body = \"1KiB\"\n[tables.t]\ncolumns = { b = \"TEXT\", a = \"INTEGER\" }\nkey = [\"a\"]\n\
         indexes = [\"b\"]\n",
    );
    // Columns are in the order of the file.
    let json = "Content-Type: application/json\r\n";
    let (status, body) = node.request("POST", "/rest/t", json, r#"[{"a":1,"b":"x"},{"a":2,"b":null},{"a":3,"b":"z"}]"#);
    assert_eq!(status, 201, "{body}");
    let answer = node.sql("SELECT * FROM t WHERE b = 'x'");
    assert_eq!((&answer["columns"][0]["name"], &answer["rows"]), (&json!("b"), &json!([["x", 1]])));
    let (status, body) = node.request("POST", "/rest/t", json, r#"{"a":1,"b":"y"}"#);
    assert!(status == 409 && body.contains("23505"), "{status} {body}");
    let (status, _) = node.request("POST", "/rest/t", json, &format!(r#"{{"a":9,"b":"{}"}}"#, "y".repeat(2_000)));
    assert_eq!(status, 413);
    node.sql("INSERT INTO t VALUES ('w', 4)");
    let (status, body) = node.request("POST", "/v1/sql", json, r#"{"sql":"SELECT a FROM t"}"#);
    assert!(status == 400 && body.contains('3'), "{status} {body}");
    assert_eq!(node.sql("SELECT count(*) FROM t")["rows"], json!([[4]]));
}

#[test]
fn a_port_that_is_taken_is_said_before_anything_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("an address").to_string();
    let output = cachesql(folder.path()).args(["serve", "--http", &address]).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains(&format!("cannot listen on {address}")) && said.contains("any free port"), "{said}");
    assert!(!said.contains("loaded"), "{said}");
}
