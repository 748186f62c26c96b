//! `cachesql cluster`: how the nodes of a cluster are doing, and who leads and belongs.

use std::io::Write as _;
use std::time::Duration;

use futures::future::join_all;
use hyper::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::arguments::{ClusterArguments, ClusterCommand};
use super::client::{Client, Target};
use super::failure::Failure;
use super::render::{Expanded, Grid, GridColumn};

/// Time that a node is given to say how it is doing.
const NODE_WAIT: Duration = Duration::from_secs(3);
/// Time that a node is given to read its file, and to make of the group what it says.
const RELOAD_WAIT: Duration = Duration::from_secs(30);

pub(super) async fn run(arguments: ClusterArguments) -> Result<(), Failure> {
    let target = Target::new(&arguments.node)?;
    let mut client = Client::new(target.clone());
    let cluster = match arguments.command.unwrap_or(ClusterCommand::Status) {
        ClusterCommand::Status => client.ask_json(Method::GET, "/v1/cluster", None).await?,
        ClusterCommand::Transfer { node } => {
            let body = json!({ "node": node });
            client.ask_json(Method::POST, "/v1/cluster/transfer", Some(&body)).await?
        }
        ClusterCommand::Leave { node } => {
            let body = json!({ "node": node });
            client.ask_json(Method::POST, "/v1/cluster/leave", Some(&body)).await?
        }
        ClusterCommand::Reload => return reload(&target, &mut client, arguments.json).await,
    };
    let nodes = list(&cluster, "nodes");
    let reports = join_all(nodes.iter().map(|node| report_of(&target, node))).await;
    let standings = standings(&cluster, &reports);
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let members: Vec<Value> = standings.iter().map(Standing::to_json).collect();
        let groups: Vec<Value> = list(&cluster, "groups").iter().map(|group| newest_view(group, &reports)).collect();
        return writeln!(out, "{}", json!({ "groups": groups, "members": members })).map_err(Failure::output);
    }
    for group in list(&cluster, "groups") {
        let group = newest_view(group, &reports);
        let name = text(&group, "name").unwrap_or_default();
        let tables: Vec<&str> = list(&group, "tables").iter().filter_map(Value::as_str).collect();
        let leader = text(&group, "leader").unwrap_or("nobody");
        let failover = text(&group, "failover").unwrap_or("?");
        let line = format!("group {name}: led by {leader}, failover {failover}, tables {}", tables.join(", "));
        writeln!(out, "{line}").map_err(Failure::output)?;
        let rows = standings.iter().filter(|standing| standing.group == name).map(Standing::cells).collect();
        let column = |name: &str, is_number| GridColumn { name: name.to_owned(), is_number };
        let columns = vec![
            column("node", false),
            column("role", false),
            column("index", true),
            column("lag", true),
            column("state", false),
            column("http", false),
        ];
        let grid = Grid { columns, rows };
        grid.print(&mut out, None, Expanded::Off).map_err(Failure::output)?;
    }
    Ok(())
}

/// Has every node that the one that is asked knows read its file again, one after the other: those that lead first, since they make
/// of tables and members what the others then find.
async fn reload(target: &Target, client: &mut Client, as_json: bool) -> Result<(), Failure> {
    let cluster = client.ask_json(Method::GET, "/v1/cluster", None).await?;
    let leaders: Vec<&str> = list(&cluster, "groups").iter().filter_map(|group| text(group, "leader")).collect();
    let mut nodes: Vec<&Value> = list(&cluster, "nodes").iter().collect();
    nodes.sort_by_key(|node| text(node, "name").is_none_or(|name| !leaders.contains(&name)));
    let mut answers = serde_json::Map::new();
    let mut failed = 0_usize;
    for node in nodes {
        let name = text(node, "name").unwrap_or_default();
        let answer = reload_one(target, text(node, "http")).await;
        if !as_json {
            print_reloaded(name, &answer).map_err(Failure::output)?;
        }
        failed = failed.saturating_add(usize::from(answer.is_err()));
        answers.insert(name.to_owned(), answer.unwrap_or_else(|error| json!({ "error": error })));
    }
    if as_json {
        writeln!(std::io::stdout().lock(), "{}", Value::Object(answers)).map_err(Failure::output)?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::Failed(format!("{failed} of the nodes did not take their configuration"))),
    }
}

async fn reload_one(target: &Target, http: Option<&str>) -> Result<Value, String> {
    let http = http.ok_or("it answers no HTTP")?;
    let mut client = Client::new(target.other(http).map_err(|error| error.to_string())?);
    let answer = timeout(RELOAD_WAIT, client.ask_json(Method::POST, "/v1/cluster/reload", None)).await;
    answer.map_err(|_| "it does not answer".to_owned())?.map_err(|error| error.to_string())
}

fn print_reloaded(node: &str, answer: &Result<Value, String>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return writeln!(out, "{node}: not reloaded: {error}"),
    };
    let lines = |name: &str| list(answer, name).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let (changed, restart) = (lines("changed"), lines("restart"));
    if changed.is_empty() {
        writeln!(out, "{node}: as before")?;
    }
    for change in changed {
        writeln!(out, "{node}: {change}")?;
    }
    for what in restart {
        writeln!(out, "{node}: needs a restart: {what}")?;
    }
    Ok(())
}

/// What a node says of the cluster itself; `None` when it does not answer.
struct Report {
    node: String,
    http: Option<String>,
    cluster: Option<Value>,
}

async fn report_of(target: &Target, node: &Value) -> Report {
    let (name, http) = (text(node, "name").unwrap_or_default().to_owned(), text(node, "http").map(str::to_owned));
    let ask = async {
        let mut client = Client::new(target.other(http.as_deref()?).ok()?);
        client.ask_json(Method::GET, "/v1/cluster", None).await.ok()
    };
    let cluster = timeout(NODE_WAIT, ask).await.ok().flatten();
    Report { node: name, http, cluster }
}

/// One member, as it says itself and its leader says.
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    group: String,
    node: String,
    role: Option<String>,
    index: Option<u64>,
    lag: Option<u64>,
    state: &'static str,
    http: Option<String>,
}

impl Standing {
    fn cells(&self) -> Vec<Option<String>> {
        let number = |number: Option<u64>| number.map(|n| n.to_string());
        let dash = |text: Option<String>| Some(text.unwrap_or_else(|| "-".to_owned()));
        vec![
            Some(self.node.clone()),
            dash(self.role.clone()),
            dash(number(self.index)),
            dash(number(self.lag)),
            Some(self.state.to_owned()),
            dash(self.http.clone()),
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "group": self.group, "node": self.node, "role": self.role, "index": self.index, "lag": self.lag,
            "state": self.state, "http": self.http,
        })
    }
}

/// A group as the node says that leads it; else as one of its members says; else as it was told.
fn newest_view(group: &Value, reports: &[Report]) -> Value {
    let name = text(group, "name").unwrap_or_default();
    let views = reports.iter().filter_map(|report| Some((report, view_of(report.cluster.as_ref()?, name)?)));
    let member = |view: &Value, node: &str| list(view, "members").iter().any(|m| text(m, "node") == Some(node));
    let mut best: Option<(u8, &Value)> = None;
    for (report, view) in views {
        let leads = text(view, "leader") == Some(&report.node);
        let rank = match (leads, member(view, &report.node)) {
            (true, true) => 2,
            (false, true) => 1,
            _ => 0,
        };
        if best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, view));
        }
    }
    best.map_or(group, |(_, view)| view).clone()
}

fn standings(cluster: &Value, reports: &[Report]) -> Vec<Standing> {
    let mut standings = Vec::new();
    for group in list(cluster, "groups") {
        let view = newest_view(group, reports);
        let name = text(&view, "name").unwrap_or_default().to_owned();
        let members = list(&view, "members");
        // The leader's last entry is what the others are measured by.
        let last = members.iter().filter_map(|m| number(m, "index")).max();
        for member in members {
            let node = text(member, "node").unwrap_or_default().to_owned();
            let report = reports.iter().find(|report| report.node == node);
            let answers = report.and_then(|report| report.cluster.as_ref());
            // What a node says of itself is newer than what its leader knows.
            let own = answers.and_then(|cluster| view_of(cluster, &name)).and_then(|view| {
                list(view, "members").iter().find(|m| text(m, "node") == Some(&node)).and_then(|m| number(m, "index"))
            });
            let index = own.or_else(|| number(member, "index"));
            let lag = index.zip(last).map(|(index, last)| last.saturating_sub(index));
            let ready = answers.and_then(|cluster| {
                list(cluster, "nodes").iter().find(|n| text(n, "name") == Some(&node))?.get("ready")?.as_bool()
            });
            let state = match (answers, ready) {
                (None, _) => "does not answer",
                (Some(_), Some(false)) => "not ready",
                (Some(_), _) => "ready",
            };
            let (role, http) = (text(member, "role").map(str::to_owned), report.and_then(|r| r.http.clone()));
            standings.push(Standing { group: name.clone(), node, role, index, lag, state, http });
        }
    }
    standings
}

fn view_of<'v>(cluster: &'v Value, group: &str) -> Option<&'v Value> {
    list(cluster, "groups").iter().find(|view| text(view, "name") == Some(group))
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(leader: &str, indexes: [Option<u64>; 2], own: &str) -> Value {
        let member = |node: &str, index: Option<u64>| {
            let role = if node == leader { "leader" } else { "follower" };
            match index {
                Some(index) => json!({ "node": node, "role": role, "index": index }),
                None => json!({ "node": node, "role": role }),
            }
        };
        let members = [member("a", indexes[0]), member("b", indexes[1])];
        let nodes = ["a", "b"].map(|name| match name == own {
            true => json!({ "name": name, "http": null, "ready": true }),
            false => json!({ "name": name, "http": null }),
        });
        json!({ "nodes": nodes, "groups": [{ "name": "g", "leader": leader, "members": members, "tables": [] }] })
    }

    fn report(node: &str, cluster: Option<Value>) -> Report {
        Report { node: node.into(), http: None, cluster }
    }

    #[test]
    fn a_member_is_shown_as_it_is_now() {
        // `b` was asked first, and still takes `b` for the leader; `a` leads, and knows less of `b` than `b` does.
        let asked = told("b", [None, Some(7)], "b");
        let reports = [report("a", Some(told("a", [Some(9), Some(5)], "a"))), report("b", Some(asked.clone()))];
        let shown = standings(&asked, &reports);
        let facts: Vec<_> =
            shown.iter().map(|s| (s.node.as_str(), s.role.as_deref(), s.index, s.lag, s.state)).collect();
        assert_eq!(
            facts,
            [("a", Some("leader"), Some(9), Some(0), "ready"), ("b", Some("follower"), Some(7), Some(2), "ready")]
        );
    }

    #[test]
    fn a_member_that_does_not_answer_is_shown_so() {
        let asked = told("a", [Some(9), Some(5)], "a");
        let shown = standings(&asked, &[report("a", Some(asked.clone())), report("b", None)]);
        let facts: Vec<_> = shown.iter().map(|s| (s.node.as_str(), s.index, s.lag, s.state)).collect();
        assert_eq!(facts, [("a", Some(9), Some(0), "ready"), ("b", Some(5), Some(4), "does not answer")]);
    }
}
