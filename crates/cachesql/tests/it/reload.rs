//! A cluster whose file is edited while it serves: nodes and tables come and go, and nobody who writes or reads notices.

use std::path::PathBuf;

use serde_json::{Value, json};
use testbed::Loopback;

use crate::processes::{Nodes, Writers};
use crate::running::cachesql;

/// A file with these nodes of a network, all of them members of one group, and these tables.
struct Written {
    path: PathBuf,
    addresses: Vec<(String, String)>,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const WRITTEN: &str = "[tables.written]\ncolumns = { id = \"BIGINT\", v = \"TEXT\" }\nkey = [\"id\"]\n";

impl Written {
    fn say(&self, members: &[&str], tables: &str) {
        let mut text = String::new();
        for (name, (http, peer)) in NAMES.iter().zip(&self.addresses).filter(|(name, _)| members.contains(name)) {
            text.push_str(&format!("[nodes.{name}]\nhttp = \"{http}\"\npeer = \"{peer}\"\ndata = \"data/{name}\"\n"));
        }
        text.push_str(&format!("[groups.main]\nmembers = {members:?}\n{WRITTEN}{tables}"));
        std::fs::write(&self.path, text).expect("written");
    }
}

/// The first nodes of [`NAMES`], started with a file that says so.
fn cluster(members: &[&str], tables: &str) -> (Nodes, Written) {
    let folder = tempfile::tempdir().expect("a folder");
    let network = Loopback::new();
    let addresses = (0..NAMES.len()).map(|at| (network.http(at).to_string(), network.peer(at).to_string())).collect();
    let written = Written { path: folder.path().join("cachesql.toml"), addresses };
    written.say(members, tables);
    let names = members.iter().map(|name| (*name).to_owned()).collect();
    (Nodes::of_file(folder, written.path.clone(), names, network), written)
}

/// `cachesql cluster reload`: whether it succeeded, and what it printed.
fn reload(nodes: &Nodes) -> (bool, String) {
    let mut command = cachesql(nodes.folder.path());
    command.args(["cluster", "reload"]).env("CACHESQL_URL", format!("http://{}", nodes.http[0]));
    let output = command.output().expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// The members as a node sees them, with their roles.
fn members(nodes: &Nodes, at: usize) -> Vec<(String, String)> {
    let cluster = nodes.cluster(at).unwrap_or_default();
    let members = cluster["groups"][0]["members"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    members.iter().map(|member| (text(&member["node"]), text(&member["role"]))).collect()
}

/// Waits until all nodes know that so many vote: what only the leader knows may be gone with it.
fn wait_until_all_vote(nodes: &Nodes, count: usize) {
    for at in 0..nodes.names.len() {
        nodes.wait(&format!("{} sees {count} who vote", nodes.names[at]), || {
            let members = members(nodes, at);
            members.len() == count && members.iter().all(|(_, role)| role != "learner")
        });
    }
}

#[test]
fn a_node_comes_and_another_goes_while_rows_are_written() {
    let (mut nodes, file) = cluster(&["a", "b", "c"], "");
    let writers = Writers::start(&nodes, 4, &[0, 2]);
    writers.go_on(20);
    // One comes.
    file.say(&NAMES, "");
    let (done, said) = reload(&nodes);
    assert!(done && said.contains("a: node d: new") && said.contains("c: node d: new"), "{said}");
    let new = nodes.add("d");
    nodes.wait_ready(new);
    wait_until_all_vote(&nodes, 4);
    writers.go_on(20);
    assert_eq!(nodes.cluster(1).expect("it answers")["nodes"].as_array().map(Vec::len), Some(4), "clients are told");
    // Another goes.
    file.say(&["a", "c", "d"], "");
    let (done, said) = reload(&nodes);
    // It is not in its own file any more, which is for whoever stops it to know.
    assert!(!done && said.contains("a: node b: gone") && said.contains("b: not reloaded"), "{said}");
    nodes.wait("it is out", || members(&nodes, 0).iter().all(|(node, _)| node != "b"));
    nodes.stop(1);
    writers.go_on(20);
    let seen = writers.end();
    assert!(seen.refused.is_empty() && seen.unknown.is_empty(), "{:?} {:?}", seen.refused, seen.unknown);
    seen.check(&nodes);
    // The three that are left are a majority of three: another one may go.
    let leader = nodes.leader(&[0, 2, new]);
    let gone = [0, 2, new].into_iter().find(|at| *at != leader).expect("two others");
    nodes.kill(gone);
    nodes.wait("the two that are left go on", || {
        nodes
            .sql(leader, "INSERT INTO written VALUES (-1, 'x') ON CONFLICT (id) DO NOTHING", "")
            .is_some_and(|reply| reply.status == 200)
    });
}

#[test]
fn two_become_three_and_elect_from_then_on() {
    let (mut nodes, file) = cluster(&["a", "b"], "");
    nodes.done(1, "INSERT INTO written VALUES (1, 'x')");
    file.say(&["a", "b", "c"], "");
    assert!(reload(&nodes).0);
    let new = nodes.add("c");
    wait_until_all_vote(&nodes, 3);
    nodes.kill(0);
    nodes.wait("another one leads", || {
        nodes.sql(new, "UPDATE written SET v = 'y' WHERE id = 1", "").is_some_and(|reply| reply.status == 200)
    });
    nodes.start(0);
    nodes.wait_ready(0);
    // And back: an operator says who leads, and only that one votes.
    let leader = nodes.leader(&[0, 1, 2]);
    nodes.wait("the first one has caught up", || members(&nodes, leader).len() == 3);
    let other = (0..3).find(|at| *at != leader).expect("two others");
    let left: Vec<&str> = (0..3).filter(|at| [leader, other].contains(at)).map(|at| NAMES[at]).collect();
    file.say(&left, "");
    reload(&nodes);
    nodes.wait("only the leader votes", || {
        let roles: Vec<String> = members(&nodes, leader).into_iter().map(|(_, role)| role).collect();
        roles.len() == 2 && roles.contains(&"learner".to_owned()) && roles.contains(&"leader".to_owned())
    });
    nodes.done(leader, "UPDATE written SET v = 'z' WHERE id = 1");
}

#[test]
fn tables_come_and_change_and_rows_stay() {
    let csv = |nodes: &Nodes, rows: &str| {
        std::fs::write(nodes.folder.path().join("towns.csv"), format!("id,name\n{rows}")).expect("written");
    };
    let (nodes, file) = cluster(&["a", "b", "c"], "");
    nodes.done(0, "INSERT INTO written VALUES (1, 'x')");
    csv(&nodes, "1,Ulm\n2,Bonn\n");
    let towns = "[tables.towns]\nfile = \"towns.csv\"\nkey = [\"id\"]\n";
    file.say(&["a", "b", "c"], &format!("{towns}[tables.made]\ncolumns = {{ id = \"BIGINT\" }}\nkey = [\"id\"]\n"));
    let (done, said) = reload(&nodes);
    assert!(done && said.contains("b: table towns: new") && said.contains("b: table made: new"), "{said}");
    for at in 0..3 {
        assert_eq!(nodes.request(at, "GET", "/readyz", "", "").map(|reply| reply.status), Some(200), "it serves on");
        nodes.wait("the new tables are there", || {
            let read = nodes.sql(at, "SELECT name FROM towns ORDER BY id", "");
            read.is_some_and(|read| read.status == 200 && read.json()["rows"] == json!([["Ulm"], ["Bonn"]]))
        });
        assert_eq!(nodes.done(at, "SELECT count(*) FROM made")["rows"], json!([[0]]));
    }
    // Loaded anew at an interval from now on, with an index; the other one is not in the file any more.
    let changed = format!("{towns}indexes = [[\"name\"]]\nrefresh = \"1s\"\n");
    file.say(&["a", "b", "c"], &changed);
    csv(&nodes, "1,Ulm\n3,Trier\n");
    let (done, said) = reload(&nodes);
    assert!(
        done && said.contains("c: table towns: configured otherwise") && said.contains("a: table made: not loaded"),
        "{said}"
    );
    nodes.wait("it is refreshed", || {
        nodes.done(2, "SELECT name FROM towns ORDER BY id")["rows"] == json!([["Ulm"], ["Trier"]])
    });
    let index = nodes.request(1, "GET", "/v1/tables", "", "").expect("it answers").json();
    let towns = index.as_array().expect("tables").iter().find(|table| table["name"] == "towns").expect("there").clone();
    assert_eq!(towns["indexes"][0]["columns"], json!(["name"]), "{towns}");
    assert_eq!(nodes.done(0, "SELECT count(*) FROM made")["rows"], json!([[0]]));
    assert_eq!(nodes.done(0, "SELECT v FROM written")["rows"], json!([["x"]]));
}

#[test]
fn a_file_that_is_wrong_changes_nothing_and_is_told_with_its_line() {
    let (nodes, file) = cluster(&["a", "b", "c"], "");
    let tag =
        |at: usize| nodes.request(at, "GET", "/v1/cluster", "", "").and_then(|r| r.header("etag").map(str::to_owned));
    let before = tag(0);
    std::fs::write(&file.path, std::fs::read_to_string(&file.path).expect("read") + "[tables.written]\n")
        .expect("written");
    let (done, said) = reload(&nodes);
    let at_line = format!("{}:", file.path.display());
    assert!(!done && said.contains(&at_line) && said.contains("3 of the nodes"), "{said}");
    let refused = nodes.request(0, "POST", "/v1/cluster/reload", "", "").expect("it answers");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (500, Some("F0000")), "{}", refused.body);
    // Another group, or none of several members, is not for a running node; what is in the file beside it is not taken either.
    file.say(&["a"], "[tables.made]\ncolumns = { id = \"BIGINT\" }\n");
    let (done, said) = reload(&nodes);
    assert!(!done && said.contains("that needs a restart, and nothing was changed"), "{said}");
    assert_eq!(tag(0), before);
    assert_eq!(nodes.sql(0, "SELECT * FROM made", "").expect("it answers").status, 404);
    // Of what can only be taken at a start, it is told so.
    file.say(&["a", "b", "c"], "[limits]\nstatement_timeout = \"7s\"\n");
    let (done, said) = reload(&nodes);
    assert!(
        done && said.contains("a: needs a restart: limits of statements") && said.contains("a: as before"),
        "{said}"
    );
}

/// SIGHUP does the same for one node.
#[test]
fn a_hangup_has_the_file_read() {
    let (nodes, file) = cluster(&["a", "b", "c"], "");
    file.say(&["a", "b", "c"], "[tables.made]\ncolumns = { id = \"BIGINT\" }\n");
    (0..3).for_each(|at| nodes.signal(at, "HUP"));
    nodes.wait("the table is there", || nodes.sql(1, "SELECT * FROM made", "").is_some_and(|read| read.status == 200));
}
