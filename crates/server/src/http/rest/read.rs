//! GET and HEAD of `/rest/{table}`.

use std::sync::Arc;

use cachesql_node::{Amount, Cell, Consistency, DirectRows, Filter, GroupSnapshot, Node, Select, Table};
use hyper::header::{CONTENT_RANGE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response};

use super::query::RestQuery;
use super::range::{Page, content_range, page_status};
use super::{encoder_of, not_one_row, table_of};
use crate::http::accept::{self, RowsType};
use crate::http::answer::set_header;
use crate::http::body::{self, AnswerBody, Part};
use crate::http::call::{Call, ReadKind, read_headers};
use crate::http::failure::Failure;
use crate::http::long_read::{is_quick, off_thread};
use crate::http::prefer::Preferences;

/// `preference-applied` (RFC 7240, 3).
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Answers rows on the spot; `None` when that has to wait for a write, or could take long.
pub(crate) fn read_now(call: &Call<'_>, name: &str) -> Result<Option<Response<AnswerBody>>, Failure> {
    if call.consistency()? != Consistency::Any {
        return Ok(None);
    }
    call.node().read_now(|snapshot| {
        let table = table_of(call, snapshot, name)?;
        let read = Read::parse(call, table)?;
        if !read.is_quick {
            return Ok(None);
        }
        let found = read.wanted.look_up(call.node(), table)?;
        read.answer(call, snapshot, found).map(Some)
    })
}

/// Answers rows.
pub(crate) async fn read(call: &Call<'_>, name: &str) -> Result<Response<AnswerBody>, Failure> {
    let snapshot = call.snapshot().await?;
    let table = table_of(call, &snapshot, name)?;
    let mut read = Read::parse(call, table)?;
    let found = if read.is_quick {
        read.wanted.look_up(call.node(), table)?
    } else {
        let (node, table, wanted) = (call.node().clone(), table.clone(), std::mem::take(&mut read.wanted));
        off_thread(move || wanted.look_up(&node, &table)).await??
    };
    read.answer(call, &snapshot, found)
}

/// A read as its request says it.
struct Read {
    rows_type: RowsType,
    preferences: Preferences,
    as_text: Vec<bool>,
    offset: u64,
    wanted: Wanted,
    /// Whether an index finds few rows, or there are few.
    is_quick: bool,
}

/// What is to be found.
#[derive(Default)]
struct Wanted {
    select: Select,
    /// Whether the rows on all pages are counted.
    counted: bool,
}

/// What was found: the rows, and how many there are on all pages when that was asked for.
struct Found {
    rows: DirectRows,
    total: Option<u64>,
}

impl Wanted {
    fn look_up(&self, node: &Node, table: &Arc<Table>) -> Result<Found, Failure> {
        let total = if self.counted { Some(count(node, table, self.select.filter.clone())?) } else { None };
        Ok(Found { rows: node.select_from(table, &self.select, &[])?, total })
    }
}

impl Read {
    fn parse(call: &Call<'_>, table: &Table) -> Result<Read, Failure> {
        let headers = call.headers();
        let rows_type = accept::rows_type(headers)?;
        let preferences = Preferences::read(headers)?;
        let schema = table.schema();
        let mut query = RestQuery::parse(schema, call.query())?;
        let page = Page::of(call.method(), headers, query.limit, query.offset)?;
        let is_quick = is_quick(table, &query.filters);
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
        let wanted = Wanted { select, counted: preferences.count };
        Ok(Read { rows_type, preferences, as_text: query.as_text, offset: page.offset, wanted, is_quick })
    }

    fn answer(self, call: &Call<'_>, snapshot: &GroupSnapshot, found: Found) -> Result<Response<AnswerBody>, Failure> {
        let Found { rows, total } = found;
        let count = row_count(&rows);
        if self.rows_type == RowsType::Object && count != 1 {
            return Err(not_one_row(count));
        }
        let status = page_status(self.offset, count, total)?;
        let encoder = encoder_of(self.rows_type, &rows.shared_columns(), &self.as_text, &self.preferences)?;
        let body = match *call.method() {
            Method::HEAD => AnswerBody::Empty,
            _ => body::encode_ready(Part::new(rows, encoder))?,
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = read_headers(call, ReadKind::Rest(self.rows_type), snapshot.index());
        let headers = response.headers_mut();
        headers.insert(CONTENT_RANGE, content_range_value(self.offset, count, total));
        set_applied(headers, &self.preferences);
        Ok(response)
    }
}

/// Says which preferences were kept.
pub(super) fn set_applied(headers: &mut HeaderMap, preferences: &Preferences) {
    if !preferences.applied.is_empty() {
        set_header(headers, APPLIED, preferences.applied.join(", "));
    }
}

/// The number of rows that a filter keeps.
pub(super) fn count(node: &Node, table: &Arc<Table>, filter: Option<Filter>) -> Result<u64, Failure> {
    let select = Select { table: table.schema().name.clone(), filter, count: true, ..Select::default() };
    let rows = node.select_from(table, &select, &[])?;
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
