//! Calls that answer rows.

use std::borrow::Cow;
use std::sync::Arc;

use cachesql_node::{ColumnInfo, DirectRows, NodeError, Original, Rows};
use hyper::{Response, StatusCode};

use super::failure_of;
use super::parameters::{OriginalParameters, missing};
use crate::http::answer::{JSON, answer};
use crate::http::body::{self, AnswerBody, Part, PartRows};
use crate::http::call::{Call, set_position, set_token};
use crate::http::encode::{Encoder, JsonStyle, Layout};
use crate::http::failure::Failure;
use crate::http::long_read::{is_quick, is_quick_for, off_thread};

/// Rows are flat objects in column order; what is nested is text.
const STYLE: JsonStyle = JsonStyle { numbers_as_strings: false, json_as_text: true, one_line: false };

type Found = Result<Response<AnswerBody>, Failure>;

/// Rows where the column equals the value.
pub(super) async fn get(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    if is_on_the_spot(call, table, Some((column, value))) {
        return direct(call, call.node().original().get(table, column, value)).await;
    }
    let [table, column, value] = owned([table, column, value]);
    long(call, move |original| original.get(&table, &column, &value)).await
}

/// Rows where the column is less than the value.
pub(super) async fn less(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    if is_on_the_spot(call, table, None) {
        return direct(call, call.node().original().less(table, column, value)).await;
    }
    let [table, column, value] = owned([table, column, value]);
    long(call, move |original| original.less(&table, &column, &value)).await
}

/// Rows where the column is more than the value.
pub(super) async fn more(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    if is_on_the_spot(call, table, None) {
        return direct(call, call.node().original().more(table, column, value)).await;
    }
    let [table, column, value] = owned([table, column, value]);
    long(call, move |original| original.more(&table, &column, &value)).await
}

/// Rows where the column is between two values, both included.
pub(super) async fn range(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (Some(column), Some(from), Some(to)) =
        (parameters.named("column"), parameters.given("from"), parameters.given("to"))
    else {
        return Err(missing("column/from/to"));
    };
    if is_on_the_spot(call, table, None) {
        return direct(call, call.node().original().range(table, column, from, to)).await;
    }
    let [table, column, from, to] = owned([table, column, from, to]);
    long(call, move |original| original.range(&table, &column, &from, &to)).await
}

/// Rows that are equal in all columns of an index.
pub(super) async fn composite(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let table = parameters.table()?;
    let (Some(index), Some(values)) = (parameters.named("index"), parameters.given("values")) else {
        return Err(missing("index/values"));
    };
    // `A+B` that was not percent-encoded arrives as `A B`.
    let first = index.split(['+', ' ']).next().zip(values.split(',').next());
    if is_on_the_spot(call, table, first) {
        return direct(call, call.node().original().composite(table, index, values)).await;
    }
    let [table, index, values] = owned([table, index, values]);
    long(call, move |original| original.composite(&table, &index, &values)).await
}

/// Whether a read of a table is served on the spot; `fixed` is a column and what it must equal. What is unknown is refused
/// quickly.
fn is_on_the_spot(call: &Call<'_>, table: &str, fixed: Option<(&str, &str)>) -> bool {
    let snapshot = call.node().snapshot();
    snapshot.table(table).is_none_or(|table| {
        let fixed = fixed.and_then(|(column, text)| Some((table.schema().column(column)?, text)));
        fixed.map_or_else(|| is_quick(table, &[]), |(column, text)| is_quick_for(table, column, text))
    })
}

fn owned<const N: usize>(texts: [&str; N]) -> [String; N] {
    texts.map(str::to_owned)
}

async fn long(
    call: &Call<'_>,
    read: impl FnOnce(Original<'_>) -> Result<DirectRows, NodeError> + Send + 'static,
) -> Found {
    let node = call.node().clone();
    direct(call, off_thread(move || read(node.original())).await?).await
}

/// Rows of a query; the message is `empty` when there are none.
pub(super) async fn query(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Found {
    let sql = parameters.named("sql").ok_or_else(|| missing("sql"))?;
    let (node, sql) = (call.node().clone(), sql.to_owned());
    let statements = call.door.statements();
    let answered = statements.run(async move { node.original().query(&sql).await }).await?;
    let answered = answered.map_err(|e| failure_of(&e))?;
    let rows = match answered.rows {
        Some(Rows::Direct(rows)) => PartRows::Direct(rows),
        Some(Rows::Stream(rows)) => PartRows::Carried(statements.carry(rows)),
        None => return Err(Failure::internal()),
    };
    let mut response = rows_answer(&answered.columns, rows, Some(HEAD_IF_EMPTY.into())).await?;
    set_token(response.headers_mut(), &answered.token);
    Ok(response)
}

async fn direct(call: &Call<'_>, rows: Result<DirectRows, NodeError>) -> Found {
    let rows = rows.map_err(|e| failure_of(&e))?;
    let columns = rows.shared_columns();
    let mut response = rows_answer(&columns, PartRows::Direct(rows), None).await?;
    set_position(response.headers_mut(), call.node(), call.node().snapshot().index());
    Ok(response)
}

const HEAD: &[u8] = b"{\"code\":0,\"message\":\"ok\",\"data\":";
const HEAD_IF_EMPTY: &[u8] = b"{\"code\":0,\"message\":\"empty\",\"data\":";

async fn rows_answer(columns: &Arc<[ColumnInfo]>, rows: PartRows, head_if_empty: Option<Cow<'static, [u8]>>) -> Found {
    let encoder = Encoder::rows(columns, Layout::Objects, STYLE);
    let capacity = match &rows {
        PartRows::Direct(rows) => encoder.capacity(rows.len()),
        _ => 1024,
    };
    let part = Part { head: HEAD.into(), rows, encoder, tail: b"}".into(), head_if_empty };
    Ok(answer(StatusCode::OK, JSON, body::encode_one(part, capacity).await?))
}
