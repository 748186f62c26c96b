//! Calls that change rows or how tables are kept.

use cachesql_node::{NodeError, WriteAnswer};
use hyper::{Response, StatusCode};

use super::parameters::{OriginalParameters, missing, refused};
use super::{envelope, failure_of};
use crate::http::body::AnswerBody;
use crate::http::call::{Call, set_token};
use crate::http::encode::json::write_string;
use crate::http::failure::Failure;

type Changed = Result<Response<AnswerBody>, Failure>;

/// Parameters that are not columns.
const NOT_COLUMNS: [&str; 3] = ["table", "column", "value"];

/// One row, put in place of those where the column equals the value.
pub(super) async fn insert(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    let others = parameters.others(&NOT_COLUMNS);
    let written = call.node().original().insert(table, column, value, &others, &call.options()?).await;
    changed(table, "insert", written)
}

/// New values for the rows where the column equals the value.
pub(super) async fn update(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    let others = parameters.others(&NOT_COLUMNS);
    let written = call.node().original().update(table, column, value, &others, &call.options()?).await;
    changed(table, "update", written)
}

/// The rows where the column equals the value go.
pub(super) async fn delete(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    let (column, value) = parameters.column_and_value()?;
    let written = call.node().original().delete(table, column, value, &call.options()?).await;
    changed(table, "delete", written)
}

fn changed(table: &str, operation: &str, written: Result<WriteAnswer, NodeError>) -> Changed {
    let written = written.map_err(|e| failure_of(&e))?;
    let mut data = with_table(table);
    data.extend_from_slice(format!(",\"op\":\"{operation}\"}}").as_bytes());
    let mut response = envelope(StatusCode::OK, "ok", &data);
    set_token(response.headers_mut(), &written.token);
    Ok(response)
}

/// `{"table":…`, open.
fn with_table(table: &str) -> Vec<u8> {
    let mut data = b"{\"table\":".to_vec();
    write_string(&mut data, table);
    data
}

/// Rows from the table's configured source.
pub(super) async fn load(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.named("table").ok_or_else(|| missing("table"))?;
    if !table.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(refused("Invalid table name"));
    }
    let table = parameters.table()?;
    let report = call.node().load(table).await.map_err(|e| failure_of(&e))?;
    let mut data = with_table(table);
    data.extend_from_slice(format!(",\"rows\":{}}}", report.rows).as_bytes());
    Ok(envelope(StatusCode::OK, "loaded", &data))
}

/// Every table from its source.
pub(super) async fn refresh(call: &Call<'_>) -> Changed {
    let tables = call.node().refresh_all().await.map_err(|e| failure_of(&e))?;
    Ok(envelope(StatusCode::OK, "refreshed", format!("{{\"tables\":{tables}}}").as_bytes()))
}

/// How long rows may be left alone, in milliseconds; 0 for as long as they like.
pub(super) async fn ttl(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    let ms = number(parameters, "ms")?;
    call.node().original().ttl(table, ms).await.map_err(|e| failure_of(&e))?;
    told(table, "ttl", ms)
}

/// How many rows the table keeps; 0 for as many as come.
pub(super) async fn max_size(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    let size = number(parameters, "size")?;
    call.node().original().max_size(table, size).await.map_err(|e| failure_of(&e))?;
    told(table, "maxSize", size)
}

/// Rows that are too old or too many go.
pub(super) async fn clean(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    let cleaned = call.node().clean(table).await.map_err(|e| failure_of(&e))?;
    told(table, "cleaned", cleaned)
}

/// All rows go.
pub(super) async fn truncate(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    call.node().truncate(table).await.map_err(|e| failure_of(&e))?;
    told(table, "truncated", true)
}

/// Space of rows that are gone is given back.
pub(super) async fn compact(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Changed {
    let table = parameters.table()?;
    let rows = call.node().compact(table).await.map_err(|e| failure_of(&e))?;
    told(table, "rows", rows)
}

fn told(table: &str, name: &str, value: impl std::fmt::Display) -> Changed {
    let mut data = with_table(table);
    data.extend_from_slice(format!(",\"{name}\":{value}}}").as_bytes());
    Ok(envelope(StatusCode::OK, "ok", &data))
}

fn number(parameters: &OriginalParameters<'_>, name: &str) -> Result<u64, Failure> {
    let text = parameters.named(name).ok_or_else(|| missing(name))?;
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    // Java's longs end at 2^63 - 1.
    let value = text.parse::<i64>().ok().filter(|_| digits).and_then(|v| u64::try_from(v).ok());
    value.ok_or_else(|| refused(format!("Invalid {name}")))
}
