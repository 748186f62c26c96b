//! The topology that the routing client was described with, from its own file: two groups, five nodes, each a process.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use cachesql_client::Client;
use serde_json::json;
use testbed::Loopback;

use crate::processes::Nodes;
use crate::running::cachesql;

/// The seed's file, with only the addresses changed, and the tables' queries.
fn properties(network: &Loopback) -> String {
    let url = |at: usize| format!("http://{}", network.http(at));
    format!(
        "# 组 insurance: KCA2, KCA3\ncachesql.group.insurance.master={}\ncachesql.group.insurance.slaves={},{}\n\
         cachesql.group.insurance.tables=KCA2,KCA3\n\ncachesql.group.finance.master={}\ncachesql.group.finance.slaves={}\n\
         cachesql.group.finance.tables=KCA4\n\ndb.url=jdbc:sqlite:sample.db\ncache.table.KCA2.sql=SELECT * FROM KCA2\n\
         cache.table.KCA3.sql=SELECT * FROM KCA3\ncache.table.KCA4.sql=SELECT * FROM KCA4\n",
        url(0),
        url(1),
        url(2),
        url(3),
        url(4)
    )
}

fn five_nodes() -> Nodes {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("sample.db"), include_bytes!("../../../../sample/sample.db")).expect("written");
    let network = Loopback::new();
    let file = folder.path().join("cachesql.properties");
    std::fs::write(&file, properties(&network)).expect("written");
    let names = (0..5).map(|at| network.http(at).to_string()).collect();
    Nodes::of_file(folder, file, names, network)
}

#[test]
fn a_master_and_two_slaves_and_a_master_and_one() {
    let nodes = five_nodes();
    // Every member of a group answers for its tables, by the original's calls; the other group's are not there.
    for at in 0..5 {
        let (here, there) = if at < 3 { ("KCA2", "KCA4") } else { ("KCA4", "KCA2") };
        let (column, value) = if at < 3 { ("AAC001", "12345") } else { ("AKC515", "X00010") };
        let path = format!("/cache/get?table={here}&column={column}&value={value}");
        let reply = nodes.request(at, "GET", &path, "", "").expect("it answers");
        let rows = reply.json()["data"].as_array().map(Vec::len);
        assert_eq!((reply.status, rows), (200, Some(1)), "{}", reply.body);
        let reply = nodes.request(at, "GET", &format!("/cache/get?table={there}&column=x&value=1"), "", "");
        assert_eq!(reply.expect("it answers").status, 404);
    }
    // A write through a slave is there at once, and then on all.
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    for (through, all, body, read) in [
        (
            2,
            0..3,
            "table=KCA2&column=AAC001&value=99999&AAC002=1&AAC003=x&AAE019=1.5&AAE036=2026-01-01T00:00:00",
            "/cache/get?table=KCA2&column=AAC001&value=99999",
        ),
        (
            4,
            3..5,
            "table=KCA4&column=AKC515&value=NEW&AKC516=y&AKA065=1&AKC225=1",
            "/cache/get?table=KCA4&column=AKC515&value=NEW",
        ),
    ] {
        let reply = nodes.request(through, "POST", "/cache/insert", form, body).expect("it answers");
        assert_eq!(reply.status, 200, "{}", reply.body);
        let token =
            reply.header("cachesql-token").map(|token| format!("Cachesql-Token: {token}\r\n")).unwrap_or_default();
        for at in all {
            let headers = if at == through { "" } else { &token };
            let found = nodes.request(at, "GET", read, headers, "").expect("it answers");
            assert_eq!(found.json()["data"].as_array().map(Vec::len), Some(1), "{at}: {}", found.body);
        }
    }
    // Any node tells all routes.
    let cluster = nodes.cluster(4).expect("it answers");
    let groups = cluster["groups"].as_array().expect("groups");
    assert_eq!((cluster["nodes"].as_array().map(Vec::len), groups.len()), (Some(5), 2));
    assert_eq!(groups[0]["tables"], serde_json::json!(["KCA2", "KCA3"]));
}

/// An application names tables, whatever happens to nodes, and never sees the past of what it wrote.
#[tokio::test(flavor = "multi_thread")]
async fn the_routing_client_knows_tables_only() {
    let mut nodes = five_nodes();
    let client = Client::open(nodes.folder.path().join("cachesql.properties")).expect("a sound file");
    let name = |rows: &cachesql_client::Rows, column: &str| {
        rows.row(0).and_then(|row| row.get(column)).and_then(|value| value.as_str().map(str::to_owned))
    };
    for n in 0..50 {
        let text = n.to_string();
        client.update("KCA2", "AAC001", 12345, &json!({ "AAC003": text })).await.expect("a write");
        let rows = client.get("KCA2", "AAC001", 12345).await.expect("a read");
        assert_eq!(name(&rows, "AAC003"), Some(text.clone()), "the past of its own write");
        client.update("KCA4", "AKC515", "X00010", &json!({ "AKC516": text })).await.expect("a write");
        let rows = client.get("KCA4", "AKC515", "X00010").await.expect("a read");
        assert_eq!(name(&rows, "AKC516"), Some(text), "the past of its own write");
    }
    let unknown = client.get("KCA9", "x", 1).await.expect_err("no such table");
    assert_eq!(unknown.to_string(), "No group configured for table: KCA9");
    let both = client.query("SELECT * FROM KCA2 a JOIN KCA4 b ON a.AAC003 = b.AKC516").await.expect_err("two groups");
    assert!(both.to_string().contains("insurance") && both.to_string().contains("finance"), "{both}");
    // The master is gone: one of the slaves leads, and the client finds out.
    nodes.kill(0);
    client.update("KCA2", "AAC001", 12345, &json!({ "AAC003": "after" })).await.expect("a write");
    let rows = client.get("KCA2", "AAC001", 12345).await.expect("a read");
    assert_eq!(name(&rows, "AAC003").as_deref(), Some("after"));
    // A follower of the route is told by any node.
    let follower = Client::connect(&format!("http://{}", nodes.http[4])).await.expect("it answers");
    assert_eq!(follower.get("KCA2", "AAC001", 12345).await.expect("a read").len(), 1);
    (1..5).for_each(|at| nodes.kill(at));
    let down = client.get("KCA2", "AAC001", 12345).await.expect_err("nobody is there");
    assert!(down.to_string().starts_with("All nodes failed, last error: "), "{down}");
    let down = client.delete("KCA2", "AAC001", 12345).await.expect_err("nobody is there");
    assert!(down.to_string().starts_with("All nodes failed for write, last error: "), "{down}");
}

/// A master of two may be killed: what it acknowledged is there when it is back.
#[test]
fn a_master_with_one_slave_keeps_what_it_acknowledged() {
    let mut nodes = five_nodes();
    nodes.done(4, "INSERT INTO KCA4 (AKC515, AKC516, AKA065, AKC225) VALUES ('NEW', 'y', '1', 1)");
    nodes.kill(3);
    let reply = nodes.sql(4, "SELECT AKC516 FROM KCA4 WHERE AKC515 = 'NEW'", "").expect("it answers");
    assert_eq!(reply.json()["rows"], serde_json::json!([["y"]]));
    let refused = nodes.sql(4, "DELETE FROM KCA4", "").expect("it answers");
    assert!(matches!(refused.status, 421 | 504), "{} {}", refused.status, refused.body);
    nodes.start(3);
    nodes.wait_ready(3);
    nodes.wait("the master is back", || {
        nodes.sql(4, "UPDATE KCA4 SET AKC516 = 'z' WHERE AKC515 = 'NEW'", "").is_some_and(|reply| reply.status == 200)
    });
    assert_eq!(nodes.done(3, "SELECT AKC516 FROM KCA4 WHERE AKC515 = 'NEW'")["rows"], serde_json::json!([["z"]]));
}

/// `cachesql cluster` shows every node, and who does not answer; and has another one lead.
#[test]
fn the_command_line_shows_and_changes_a_cluster() {
    let mut nodes = five_nodes();
    let command = |nodes: &Nodes, at: usize, arguments: &[&str]| {
        let mut command = cachesql(nodes.folder.path());
        command.arg("cluster").args(arguments).env("CACHESQL_URL", format!("http://{}", nodes.http[at]));
        let output = command.output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (done, shown) = command(&nodes, 4, &[]);
    assert!(done, "{shown}");
    assert_eq!(shown.matches("│ ready │").count(), 5, "{shown}");
    let next = nodes.names[1].clone();
    let (done, said) = command(&nodes, 2, &["transfer", &next]);
    assert!(done, "{said}");
    nodes.wait("another one leads", || {
        nodes.cluster(2).is_some_and(|cluster| cluster["groups"][0]["leader"] == next.as_str())
    });
    let (done, said) = command(&nodes, 2, &["transfer", "nobody"]);
    assert!(!done && said.contains("\"nobody\" is not a member"), "{said}");
    nodes.kill(4);
    let (done, shown) = command(&nodes, 0, &["--json"]);
    assert!(done, "{shown}");
    let told: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let states: Vec<&str> =
        told["members"].as_array().expect("members").iter().filter_map(|member| member["state"].as_str()).collect();
    assert_eq!(states.iter().filter(|state| **state == "ready").count(), 4, "{shown}");
    assert!(states.contains(&"does not answer"), "{shown}");
}

/// `cachesql demo` runs it all, and leaves nothing running.
#[test]
fn the_demo_comes_up_and_goes_down() {
    use std::io::{BufRead as _, BufReader};
    let folder = tempfile::tempdir().expect("a folder");
    // Five ports in a row, below those that the system gives out.
    let free = |first: u16| {
        (first..first + 5).all(|port| {
            TcpListener::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok()
        })
    };
    let first = (12_000..20_000).step_by(7).find(|port| free(*port)).expect("five free ports");
    let mut command = cachesql(folder.path());
    command.args(["demo", "--port", &first.to_string()]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut demo = command.spawn().expect("the binary starts");
    let mut said = BufReader::new(demo.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut heard = Vec::new();
    for line in said.by_ref() {
        heard.push(line);
        if heard.last().is_some_and(|line| line.contains("Ctrl-C stops")) {
            break;
        }
    }
    let text = heard.join("\n");
    let processes: Vec<String> =
        text.split("(process ").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect();
    assert_eq!(processes.len(), 5, "{text}");
    let status = Command::new("kill").args(["-TERM", &demo.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
    said.for_each(drop);
    assert!(demo.wait().expect("waited").success());
    for process in processes {
        assert!(!std::path::Path::new("/proc").join(&process).exists(), "process {process} is still there");
    }
}
