//! Calls that answer rows.

use cachesql_node::{DirectRows, NodeError, Rows};
use hyper::{Response, StatusCode};

use super::failure_of;
use super::parameters::{OriginalParameters, missing};
use crate::http::answer::{JSON, answer};
use crate::http::body::{self, AnswerBody, Part};
use crate::http::call::{Call, set_token};
use crate::http::encode::{Encoder, JsonStyle, Layout};
use crate::http::failure::Failure;

/// Rows are flat objects in column order; what is nested is text.
const STYLE: JsonStyle = JsonStyle { numbers_as_strings: false, json_as_text: true, one_line: false };

type Found = Result<Response<AnswerBody>, Failure>;

/// Rows where the column equals the value.
pub(super) async fn get(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    direct(call, call.node().original().get(table, column, value)).await
}

/// Rows where the column is less than the value.
pub(super) async fn less(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    direct(call, call.node().original().less(table, column, value)).await
}

/// Rows where the column is more than the value.
pub(super) async fn more(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    direct(call, call.node().original().more(table, column, value)).await
}

/// Rows where the column is between two values, both included.
pub(super) async fn range(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (Some(column), Some(from), Some(to)) =
        (parameters.named("column"), parameters.given("from"), parameters.given("to"))
    else {
        return Err(missing("column/from/to"));
    };
    direct(call, call.node().original().range(table, column, from, to)).await
}

/// Rows that are equal in all columns of an index.
pub(super) async fn composite(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (Some(index), Some(values)) = (parameters.named("index"), parameters.given("values")) else {
        return Err(missing("index/values"));
    };
    direct(call, call.node().original().composite(table, index, values)).await
}

/// Rows of a query; the message is `empty` when there are none.
pub(super) async fn query(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let sql = parameters.named("sql").ok_or_else(|| missing("sql"))?;
    let mut answered = call.node().original().query(sql).await.map_err(|e| failure_of(&e))?;
    let Some(rows) = answered.rows.take() else { return Err(Failure::internal()) };
    let mut response = rows_answer(rows, Some(head("empty"))).await?;
    set_token(response.headers_mut(), &answered.token);
    Ok(response)
}

async fn direct(call: &Call<'_>, rows: Result<DirectRows, NodeError>) -> Found {
    let rows = rows.map_err(|e| failure_of(&e))?;
    let mut response = rows_answer(Rows::Direct(rows), None).await?;
    let node = call.node();
    set_token(response.headers_mut(), &node.token(&node.snapshot()));
    Ok(response)
}

fn head(message: &str) -> Vec<u8> {
    format!("{{\"code\":0,\"message\":\"{message}\",\"data\":").into_bytes()
}

async fn rows_answer(rows: Rows, head_if_empty: Option<Vec<u8>>) -> Found {
    let encoder = Encoder::rows(rows.columns(), Layout::Objects, STYLE);
    let capacity = match &rows {
        Rows::Direct(rows) => encoder.capacity(rows.len()),
        Rows::Stream(_) => 1024,
    };
    let part = Part { head: head("ok"), rows, encoder, tail: b"}".to_vec(), head_if_empty };
    Ok(answer(StatusCode::OK, JSON, body::encode(vec![part], capacity).await?))
}
