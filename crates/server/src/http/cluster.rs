//! `GET /v1/tables`, `GET /v1/cluster`, and changes of who the members of a group are.

use std::time::Duration;

use cachesql_node::{Failover, GroupStatus, Node, RouteGroup, RouteNode, Table};
use cachesql_types::{LogIndex, limits};
use hyper::header::{ETAG, IF_NONE_MATCH};
use hyper::{Response, StatusCode};
use tokio::time::{Instant, sleep};
use twox_hash::XxHash3_64;

use super::answer::{empty, json, set_header};
use super::body::AnswerBody;
use super::call::{Call, set_token};
use super::encode::json::write_string;
use super::failure::Failure;

/// Every table with its columns, key, indexes, rows and bytes.
pub(crate) fn tables_json(node: &Node) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    list(&mut out, node.snapshot().tables(), |out, table| write_table(out, table));
    out
}

fn write_table(out: &mut Vec<u8>, table: &Table) {
    let schema = table.schema();
    let name_of = |column: usize| schema.columns.get(column).map_or("", |c| c.name.as_str());
    out.extend_from_slice(b"{\"name\":");
    write_string(out, &schema.name);
    let numbers = format!(",\"rows\":{},\"bytes\":{},\"columns\":", table.row_count(), table.memory().total());
    out.extend_from_slice(numbers.as_bytes());
    list(out, &schema.columns, |out, column| {
        out.extend_from_slice(b"{\"name\":");
        write_string(out, &column.name);
        out.extend_from_slice(
            format!(",\"type\":\"{}\",\"nullable\":{}}}", column.data_type, column.nullable).as_bytes(),
        );
    });
    out.extend_from_slice(b",\"key\":");
    list(out, &schema.key, |out, column| write_string(out, name_of(*column)));
    out.extend_from_slice(b",\"indexes\":");
    list(out, &schema.indexes, |out, index| {
        out.extend_from_slice(b"{\"name\":");
        write_string(out, &index.name);
        out.extend_from_slice(b",\"columns\":");
        list(out, &index.columns, |out, column| write_string(out, name_of(*column)));
        out.extend_from_slice(format!(",\"unique\":{}}}", index.unique).as_bytes());
    });
    out.push(b'}');
}

fn list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, write: impl Fn(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Nodes, groups, tables and routes, as this node knows them. Clients that know an answer's tag wait here for another.
pub(crate) async fn cluster(call: &Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    let known = call.header(&IF_NONE_MATCH)?.map(str::to_owned);
    let wait = wait_of(call.query())?;
    let deadline = Instant::now().checked_add(wait);
    loop {
        let tag = tag_of(call);
        if known.as_deref() != Some(&tag) {
            let mut response = json(StatusCode::OK, describe(call, true));
            set_header(response.headers_mut(), ETAG, tag);
            set_token(response.headers_mut(), &call.node().token(&call.node().snapshot()));
            return Ok(response);
        }
        if deadline.is_none_or(|deadline| Instant::now() >= deadline) || call.door.is_stopping() {
            let mut response = empty(StatusCode::NOT_MODIFIED);
            set_header(response.headers_mut(), ETAG, tag);
            return Ok(response);
        }
        sleep(limits::CLUSTER_LOOK).await;
    }
}

/// How long `wait=30s` says to wait; not at all without it.
fn wait_of(query: &str) -> Result<Duration, Failure> {
    let Some(text) = query.split('&').find_map(|pair| pair.strip_prefix("wait=")) else {
        return Ok(Duration::ZERO);
    };
    let digits = text.strip_suffix('s').unwrap_or(text);
    let seconds: u64 = digits
        .parse()
        .map_err(|_| Failure::value(format!("wait: expected seconds such as 30s, found {:?}", shown(text))))?;
    Ok(Duration::from_secs(seconds).min(limits::CLUSTER_WAIT))
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// What stands for all that routes depend on.
fn tag_of(call: &Call<'_>) -> String {
    format!("\"{:016x}\"", XxHash3_64::oneshot(&describe(call, false)))
}

/// The whole cluster as JSON; without `moving`, only what routes depend on.
fn describe(call: &Call<'_>, moving: bool) -> Vec<u8> {
    let node = call.node();
    let snapshot = node.snapshot();
    let status = node.group_status();
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(b"{\"node\":");
    write_string(&mut out, node.name());
    out.extend_from_slice(b",\"nodes\":");
    list(&mut out, &node.routes().nodes, |out, known| write_node(out, call, known, moving));
    out.extend_from_slice(b",\"groups\":");
    // Tables that were made here belong to this node's group.
    let tables: Vec<&str> = snapshot.tables().map(|table| table.schema().name.as_str()).collect();
    list(&mut out, &node.routes().groups, |out, group| {
        let is_own = group.name == node.group();
        let status = status.as_ref().filter(|_| is_own);
        write_group(out, node, group, status, is_own.then_some(&*tables), moving.then(|| snapshot.index()));
    });
    out.extend_from_slice(b",\"tables\":");
    list(&mut out, snapshot.tables(), |out, table| {
        out.extend_from_slice(b"{\"name\":");
        write_string(out, &table.schema().name);
        out.extend_from_slice(b",\"group\":");
        write_string(out, node.group());
        out.push(b'}');
    });
    out.push(b'}');
    out
}

fn write_node(out: &mut Vec<u8>, call: &Call<'_>, node: &RouteNode, moving: bool) {
    out.extend_from_slice(b"{\"name\":");
    write_string(out, &node.name);
    out.extend_from_slice(b",\"http\":");
    let is_own = node.name == call.node().name();
    // This node's own address may be one of several, or a port that the system chose: the caller has reached it.
    let own = is_own.then(|| call.door.address(call.connection)).flatten();
    match own.or_else(|| node.http.clone()) {
        Some(address) => write_string(out, &format!("http://{address}")),
        None => out.extend_from_slice(b"null"),
    }
    if is_own && moving {
        let ready = call.node().ready() && !call.door.is_stopping();
        out.extend_from_slice(format!(",\"ready\":{ready}").as_bytes());
    }
    out.push(b'}');
}

/// `index` is how far this node is, when that is to be told.
fn write_group(
    out: &mut Vec<u8>,
    node: &Node,
    group: &RouteGroup,
    status: Option<&GroupStatus>,
    tables: Option<&[&str]>,
    index: Option<LogIndex>,
) {
    out.extend_from_slice(b"{\"name\":");
    write_string(out, &group.name);
    let is_own = tables.is_some();
    let leader = match status {
        Some(status) => status.leader.as_deref(),
        None if is_own => Some(node.name()),
        None => group.leader.as_deref(),
    };
    out.extend_from_slice(b",\"leader\":");
    write_optional(out, leader);
    let failover = match group.failover {
        Failover::Automatic => "automatic",
        Failover::Manual => "manual",
    };
    out.extend_from_slice(format!(",\"failover\":\"{failover}\"").as_bytes());
    if let Some(status) = status {
        out.extend_from_slice(format!(",\"term\":{}", status.term).as_bytes());
    }
    out.extend_from_slice(b",\"members\":");
    match status {
        Some(status) => list(out, &status.members, |out, member| {
            let is_leader = Some(&member.node) == status.leader.as_ref();
            let role = if is_leader {
                "leader"
            } else if member.votes {
                "follower"
            } else {
                "learner"
            };
            let is_this = member.node == node.name();
            let known = if is_this { Some(status.applied) } else { member.index };
            write_member(out, &member.node, Some(role), known.filter(|_| index.is_some()), status.last);
        }),
        None => list(out, &group.members, |out, member| {
            let role = if !is_own { None } else { Some("leader") };
            let index = index.filter(|_| is_own).map(|index| index.0);
            write_member(out, member, role, index, index.unwrap_or(0));
        }),
    }
    out.extend_from_slice(b",\"tables\":");
    let mut names: Vec<&str> = group.tables.iter().map(String::as_str).collect();
    for table in tables.unwrap_or_default() {
        if !names.iter().any(|name| name.eq_ignore_ascii_case(table)) {
            names.push(table);
        }
    }
    list(out, names, write_string);
    if let Some(stopped) = status.and_then(|status| status.stopped.as_deref()) {
        out.extend_from_slice(b",\"stopped\":");
        write_string(out, stopped);
    }
    out.push(b'}');
}

/// A member; how far it is and how much it lacks of `last` are told where they are known.
fn write_member(out: &mut Vec<u8>, name: &str, role: Option<&str>, index: Option<u64>, last: u64) {
    out.extend_from_slice(b"{\"node\":");
    write_string(out, name);
    out.extend_from_slice(b",\"role\":");
    write_optional(out, role);
    if let Some(index) = index {
        out.extend_from_slice(format!(",\"index\":{index},\"lag\":{}", last.saturating_sub(index)).as_bytes());
    }
    out.push(b'}');
}

fn write_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => write_string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

/// `POST /v1/cluster/transfer` and `/v1/cluster/leave`, with `{"node":"b"}`.
pub(crate) async fn change(call: &mut Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    let body = call.read_body().await?;
    let named: serde_json::Value = serde_json::from_str(body.text()?)
        .map_err(|error| Failure::bad_request(format!("the body is not JSON: {error}")))?;
    let name = named.get("node").and_then(serde_json::Value::as_str);
    let name = name.ok_or_else(|| Failure::bad_request("the body names no node: {\"node\":\"b\"}"))?;
    match call.head.uri.path() {
        "/v1/cluster/transfer" => call.node().hand_over(name).await?,
        _ => call.node().take_out(name).await?,
    }
    Ok(json(StatusCode::OK, describe(call, true)))
}

/// `POST /v1/cluster/reload`: this node reads its configuration again.
pub(crate) async fn reload(call: &mut Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    call.read_body().await?;
    let reloaded = call.node().reload().await?;
    let mut out = Vec::from(b"{\"changed\":");
    list(&mut out, &reloaded.changed, |out, change| write_string(out, change));
    out.extend_from_slice(b",\"restart\":");
    list(&mut out, &reloaded.restart, |out, what| write_string(out, what));
    out.push(b'}');
    Ok(json(StatusCode::OK, out))
}
