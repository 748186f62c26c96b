//! What the node says when it is ready: what it loaded, and how to ask for it.

use std::net::SocketAddr;

use cachesql_node::{Node, Table};

use crate::command_line::client::encoded;
use crate::config::units::{show_count, show_size};

/// Says what was loaded, and where to look.
pub(super) fn ready(node: &Node, address: SocketAddr) {
    let snapshot = node.snapshot();
    let tables: Vec<_> = snapshot.tables().collect();
    let memory = node.memory();
    let rows: u64 = tables.iter().map(|t| t.row_count()).sum();
    let (used, limit) = (show_size(memory.used_bytes), show_size(memory.limit_bytes));
    eprintln!("{}, {}, {used} of {limit}", show_count(tables.len(), "table"), show_count(rows, "row"));
    eprintln!("ready: http://{address}/");
    for line in examples(tables.iter().find(|t| t.row_count() > 0).map(|t| t.as_ref()), address) {
        eprintln!("  {line}");
    }
}

/// Calls that work on the tables that are there.
fn examples(table: Option<&Table>, address: SocketAddr) -> Vec<String> {
    let Some(table) = table else {
        return vec![format!("cachesql sql --url http://{address}")];
    };
    let name = &table.schema().name;
    let mut lines = Vec::new();
    if let Some((column, value)) = first_key(table) {
        let (column, value) = (encoded(&column), encoded(&value));
        lines.push(format!("curl 'http://{address}/rest/{}?{column}=eq.{value}'", encoded(name)));
    } else {
        lines.push(format!("curl 'http://{address}/rest/{}?limit=1'", encoded(name)));
    }
    let sql = format!("SELECT count(*) FROM \"{name}\"");
    let body = serde_json::json!({ "sql": sql }).to_string().replace('\'', "'\\''");
    lines.push(format!("curl 'http://{address}/v1/sql' -H 'Content-Type: application/json' -d '{body}'"));
    lines.push(format!("cachesql sql --url http://{address}"));
    lines
}

/// The first column of the primary key, and its value in some row.
fn first_key(table: &Table) -> Option<(String, String)> {
    let position = *table.schema().key.first()?;
    let column = table.schema().columns.get(position)?;
    let row = table.rows().next().and_then(|id| table.row(id))?;
    Some((column.name.clone(), row.value(position).to_text()))
}
