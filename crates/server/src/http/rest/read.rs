//! GET and HEAD of `/rest/{table}`.

use cachesql_node::{Amount, Cell, DirectRows, Filter, GroupSnapshot, Node, Rows, Select};
use hyper::header::{CONTENT_RANGE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response};

use super::query::RestQuery;
use super::range::{Page, content_range, page_status};
use super::{encoder_of, not_one_row, table_of};
use crate::http::accept::{self, RowsType};
use crate::http::answer::{answer, set_header};
use crate::http::body::{self, AnswerBody, Part};
use crate::http::call::{Call, set_position};
use crate::http::failure::Failure;
use crate::http::long_read::{is_quick, off_thread};
use crate::http::prefer::Preferences;

/// `preference-applied` (RFC 7240, 3).
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Answers rows.
pub(crate) async fn read(call: &Call<'_>, name: &str) -> Result<Response<AnswerBody>, Failure> {
    let headers = call.headers();
    let rows_type = accept::rows_type(headers)?;
    let preferences = Preferences::read(headers)?;
    let snapshot = call.snapshot().await?;
    let table = table_of(call, &snapshot, name)?;
    let schema = table.schema();
    let mut query = RestQuery::parse(schema, call.query())?;
    let page = Page::of(call.method(), headers, query.limit, query.offset)?;
    let quick = is_quick(table, &query.filters);
    let filter = query.filter();
    let select = Select {
        table: schema.name.clone(),
        columns: query.columns,
        filter,
        order: query.order,
        limit: page.limit.map(Amount::Rows),
        offset: (page.offset > 0).then_some(Amount::Rows(page.offset)),
        count: false,
    };
    let (total, rows) = if quick {
        look_up(call.node(), &snapshot, &select, preferences.count)?
    } else {
        let (node, snapshot, counted) = (call.node().clone(), snapshot.clone(), preferences.count);
        off_thread(move || look_up(&node, &snapshot, &select, counted)).await??
    };
    let count = row_count(&rows);
    if rows_type == RowsType::Object && count != 1 {
        return Err(not_one_row(count));
    }
    let status = page_status(page.offset, count, total)?;
    let encoder = encoder_of(rows_type, &rows.shared_columns(), &query.as_text, &preferences)?;
    let body = match *call.method() {
        Method::HEAD => AnswerBody::Empty,
        _ => {
            let capacity = encoder.capacity(rows.len());
            body::encode_one(Part::new(Rows::Direct(rows), encoder), capacity).await?
        }
    };
    let mut response = answer(status, rows_type.header(), body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_RANGE, content_range_value(page.offset, count, total));
    set_applied(headers, &preferences);
    set_read_headers(headers, call, &snapshot);
    Ok(response)
}

/// The rows, and how many there are on all pages when that is asked for.
fn look_up(
    node: &Node,
    snapshot: &GroupSnapshot,
    select: &Select,
    counted: bool,
) -> Result<(Option<u64>, DirectRows), Failure> {
    let total = if counted { Some(count(node, snapshot, &select.table, select.filter.clone())?) } else { None };
    Ok((total, node.select(snapshot, select, &[])?))
}

/// The token of what was read, and how old it can be: nothing, because this node is where writes are applied.
fn set_read_headers(headers: &mut HeaderMap, call: &Call<'_>, snapshot: &GroupSnapshot) {
    set_position(headers, call.node(), snapshot.index());
    headers.insert(hyper::header::AGE, HeaderValue::from_static("0"));
}

/// Says which preferences were kept.
pub(super) fn set_applied(headers: &mut HeaderMap, preferences: &Preferences) {
    if !preferences.applied.is_empty() {
        set_header(headers, APPLIED, preferences.applied.join(", "));
    }
}

/// The number of rows that a filter keeps.
pub(super) fn count(
    node: &Node,
    snapshot: &GroupSnapshot,
    table: &str,
    filter: Option<Filter>,
) -> Result<u64, Failure> {
    let select = Select { table: table.to_owned(), filter, count: true, ..Select::default() };
    let rows = node.select(snapshot, &select, &[])?;
    match (rows.len(), (rows.len() == 1).then(|| rows.row(0).cell(0))) {
        (1, Some(Cell::BigInt(count))) => Ok(u64::try_from(count).unwrap_or(0)),
        _ => Err(Failure::internal()),
    }
}

/// How many rows there are.
pub(super) fn row_count(rows: &DirectRows) -> u64 {
    u64::try_from(rows.len()).unwrap_or(u64::MAX)
}

fn content_range_value(offset: u64, rows: u64, total: Option<u64>) -> HeaderValue {
    match (offset, rows, total) {
        (0, 1, None) => HeaderValue::from_static("0-0/*"),
        (_, 0, None) => HeaderValue::from_static("*/*"),
        _ => HeaderValue::from_str(&content_range(offset, rows, total)).unwrap_or(HeaderValue::from_static("*/*")),
    }
}
