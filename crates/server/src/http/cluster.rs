//! `GET /v1/tables` and `GET /v1/cluster`.

use cachesql_node::{Node, Table};
use hyper::{Response, StatusCode};

use super::answer::json;
use super::body::AnswerBody;
use super::call::{Call, set_token};
use super::encode::json::write_string;

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

/// Nodes, groups, tables and routes, as this node knows them: itself, leading its one group.
pub(crate) fn cluster(call: &Call<'_>) -> Response<AnswerBody> {
    let node = call.node();
    let snapshot = node.snapshot();
    let token = node.token(&snapshot);
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"nodes\":[{\"name\":");
    write_string(&mut out, node.name());
    out.extend_from_slice(b",\"http\":");
    match call.door.address(call.connection) {
        Some(address) => write_string(&mut out, &address),
        None => out.extend_from_slice(b"null"),
    }
    let ready = node.ready() && !call.door.is_stopping();
    out.extend_from_slice(format!(",\"ready\":{ready}}}],\"groups\":[{{\"name\":").as_bytes());
    write_string(&mut out, node.group());
    out.extend_from_slice(b",\"leader\":");
    write_string(&mut out, node.name());
    out.extend_from_slice(b",\"members\":[");
    write_string(&mut out, node.name());
    out.extend_from_slice(format!("],\"log_index\":{},\"lag\":0}}],\"tables\":", token.index).as_bytes());
    list(&mut out, snapshot.tables(), |out, table| {
        out.extend_from_slice(b"{\"name\":");
        write_string(out, &table.schema().name);
        out.extend_from_slice(b",\"group\":");
        write_string(out, node.group());
        out.push(b'}');
    });
    out.push(b'}');
    let mut response = json(StatusCode::OK, out);
    set_token(response.headers_mut(), &token);
    response
}
