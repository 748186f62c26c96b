//! Calls that answer rows.

use cachesql_node::{Comparison, Consistency, DirectRows, GroupSnapshot, NodeError, OriginalRead, OriginalRows, Rows};
use hyper::{Response, StatusCode};

use super::failure_of;
use super::parameters::{OriginalParameters, missing};
use crate::http::answer::{JSON, answer};
use crate::http::body::{self, AnswerBody, Part, PartRows};
use crate::http::call::{Call, ReadKind, read_headers, set_token};
use crate::http::encode::{Encoder, JsonStyle, Layout};
use crate::http::failure::Failure;
use crate::http::long_read::{is_quick, is_quick_for, off_thread};

/// Rows are flat objects in column order; what is nested is text.
const STYLE: JsonStyle = JsonStyle { numbers_as_strings: false, json_as_text: true, one_line: false };

type Found = Result<Response<AnswerBody>, Failure>;

/// The read of a call that compares a column with a value.
pub(super) fn compared<'a>(
    parameters: &'a OriginalParameters<'_>,
    op: Comparison,
) -> Result<OriginalRead<&'a str>, Failure> {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    Ok(OriginalRead { table, rows: OriginalRows::Compare { column, op, value } })
}

/// The read of a call for rows whose column is between two values.
pub(super) fn range<'a>(parameters: &'a OriginalParameters<'_>) -> Result<OriginalRead<&'a str>, Failure> {
    let table = parameters.table()?;
    match (parameters.named("column"), parameters.given("from"), parameters.given("to")) {
        (Some(column), Some(from), Some(to)) => {
            Ok(OriginalRead { table, rows: OriginalRows::Range { column, from, to } })
        }
        _ => Err(missing("column/from/to")),
    }
}

/// The read of a call for rows that are equal in all columns of an index.
pub(super) fn composite<'a>(parameters: &'a OriginalParameters<'_>) -> Result<OriginalRead<&'a str>, Failure> {
    let table = parameters.table()?;
    match (parameters.named("index"), parameters.given("values")) {
        (Some(index), Some(values)) => Ok(OriginalRead { table, rows: OriginalRows::Composite { index, values } }),
        _ => Err(missing("index/values")),
    }
}

/// Answers rows on the spot; `None` when that could take long.
pub(super) fn rows_now(call: &Call<'_>, read: &OriginalRead<&str>) -> Result<Option<Response<AnswerBody>>, Failure> {
    if call.consistency()? != Consistency::Any {
        return Ok(None);
    }
    call.node().read_now(|snapshot| {
        if !is_on_the_spot(snapshot, read) {
            return Ok(None);
        }
        rows_answer(call, snapshot, call.node().original().read(snapshot, read)).map(Some)
    })
}

/// Answers rows.
pub(super) async fn rows(call: &Call<'_>, read: &OriginalRead<&str>) -> Found {
    let snapshot = call.snapshot().await?;
    if is_on_the_spot(&snapshot, read) {
        return rows_answer(call, &snapshot, call.node().original().read(&snapshot, read));
    }
    let (node, read) = (call.node().clone(), read.map(str::to_owned));
    let (rows, snapshot) = off_thread(move || (node.original().read(&snapshot, &read), snapshot)).await?;
    rows_answer(call, &snapshot, rows)
}

/// Whether a read is served on the spot. What is unknown is refused quickly.
fn is_on_the_spot(snapshot: &GroupSnapshot, read: &OriginalRead<&str>) -> bool {
    // A column, and what it must equal.
    let fixed = match read.rows {
        OriginalRows::Compare { column, op: Comparison::Equal, value } => Some((column, value)),
        // `A+B` that was not percent-encoded arrives as `A B`.
        OriginalRows::Composite { index, values } => index.split(['+', ' ']).next().zip(values.split(',').next()),
        OriginalRows::Compare { .. } | OriginalRows::Range { .. } => None,
    };
    snapshot.table(read.table).is_none_or(|table| {
        let fixed = fixed.and_then(|(column, text)| Some((table.schema().column(column)?, text)));
        fixed.map_or_else(|| is_quick(table, &[]), |(column, text)| is_quick_for(table, column, text))
    })
}

fn rows_answer(call: &Call<'_>, snapshot: &GroupSnapshot, rows: Result<DirectRows, NodeError>) -> Found {
    let rows = rows.map_err(|e| failure_of(&e))?;
    let encoder = Encoder::rows(&rows.shared_columns(), Layout::Objects, STYLE);
    let part = Part { head: HEAD.into(), tail: TAIL.into(), ..Part::new(rows, encoder) };
    let mut response = Response::new(body::encode_ready(part)?);
    *response.headers_mut() = read_headers(call, ReadKind::Original, snapshot.index());
    Ok(response)
}

const HEAD: &[u8] = b"{\"code\":0,\"message\":\"ok\",\"data\":";
const HEAD_IF_EMPTY: &[u8] = b"{\"code\":0,\"message\":\"empty\",\"data\":";
const TAIL: &[u8] = b"}";

/// Rows of a query; the message is `empty` when there are none.
pub(super) async fn query(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let sql = parameters.named("sql").ok_or_else(|| missing("sql"))?;
    let (node, sql, options) = (call.node().clone(), sql.to_owned(), call.options()?);
    let statements = call.door.statements();
    let answered = statements.run(async move { node.original().query(&sql, &options).await }).await?;
    let answered = answered.map_err(|e| failure_of(&e))?;
    let rows = match answered.rows {
        Some(Rows::Direct(rows)) => PartRows::Direct(rows),
        Some(Rows::Stream(rows)) => PartRows::Carried(statements.carry(rows)),
        None => return Err(Failure::internal()),
    };
    let encoder = Encoder::rows(&answered.columns, Layout::Objects, STYLE);
    let head_if_empty = Some(HEAD_IF_EMPTY.into());
    let part = Part { head: HEAD.into(), rows, encoder, tail: TAIL.into(), head_if_empty };
    let mut response = answer(StatusCode::OK, JSON, body::encode(vec![part], 1024).await?);
    set_token(response.headers_mut(), &answered.token);
    Ok(response)
}
