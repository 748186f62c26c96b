//! Calls that tell of tables and of the node.

use hyper::{Response, StatusCode};

use super::parameters::OriginalParameters;
use super::{envelope, failure_of};
use crate::http::body::AnswerBody;
use crate::http::call::Call;
use crate::http::encode::json::write_string;
use crate::http::failure::Failure;

/// Rows, retention and indexes of one table.
pub(super) fn stats(call: &Call<'_>, parameters: &OriginalParameters<'_>) -> Result<Response<AnswerBody>, Failure> {
    let stats = call.node().original().stats(parameters.table()?).map_err(|e| failure_of(&e))?;
    let mut data = b"{\"table\":".to_vec();
    write_string(&mut data, &stats.table);
    let numbers = format!(
        ",\"totalRows\":{},\"activeRows\":{},\"ttl\":{},\"maxSize\":{},\"indexes\":",
        stats.total_rows, stats.active_rows, stats.ttl_ms, stats.max_size
    );
    data.extend_from_slice(numbers.as_bytes());
    write_names(&mut data, &stats.indexes);
    data.push(b'}');
    Ok(envelope(StatusCode::OK, "ok", &data))
}

fn write_names(data: &mut Vec<u8>, names: &[String]) {
    data.push(b'[');
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            data.push(b',');
        }
        write_string(data, name);
    }
    data.push(b']');
}

/// Tables and the queries that they are loaded by.
pub(super) fn list(call: &Call<'_>) -> Response<AnswerBody> {
    let mut data = vec![b'['];
    for (at, table) in call.node().original().list().iter().enumerate() {
        data.extend_from_slice(if at == 0 { b"{\"name\":" } else { b",{\"name\":" });
        write_string(&mut data, &table.name);
        data.extend_from_slice(b",\"sql\":");
        write_string(&mut data, &table.sql);
        data.push(b'}');
    }
    data.push(b']');
    envelope(StatusCode::OK, "ok", &data)
}

/// Memory in bytes, and every table.
pub(super) fn metrics(call: &Call<'_>) -> Response<AnswerBody> {
    let metrics = call.node().original().metrics();
    let mut data = format!(
        "{{\"tables\":{},\"memory\":{{\"used\":{},\"total\":{},\"max\":{},\"free\":{}}},\"threads\":{},\"tables_detail\":[",
        metrics.tables,
        metrics.memory_used,
        metrics.memory_total,
        metrics.memory_max,
        metrics.memory_free,
        metrics.threads
    )
    .into_bytes();
    for (at, table) in metrics.tables_detail.iter().enumerate() {
        data.extend_from_slice(if at == 0 { b"{\"name\":" } else { b",{\"name\":" });
        write_string(&mut data, &table.name);
        data.extend_from_slice(
            format!(",\"rows\":{},\"capacity\":{},\"indexes\":", table.rows, table.capacity).as_bytes(),
        );
        write_names(&mut data, &table.indexes);
        data.push(b'}');
    }
    data.extend_from_slice(b"]}");
    envelope(StatusCode::OK, "ok", &data)
}

/// `UP`, or 503 and `WARN` from nine tenths of the memory limit on; memory in MiB.
pub(super) fn health(call: &Call<'_>) -> Response<AnswerBody> {
    let health = call.node().original().health();
    let (status, word) = if health.up { (StatusCode::OK, "UP") } else { (StatusCode::SERVICE_UNAVAILABLE, "WARN") };
    let data = format!(
        "{{\"status\":\"{word}\",\"tables\":{},\"memory\":{{\"used\":{},\"max\":{}}},\"pool\":{{\"active\":{},\"idle\":{}}}}}",
        health.tables, health.memory_used_mib, health.memory_max_mib, health.pool_active, health.pool_idle
    );
    envelope(status, "ok", data.as_bytes())
}
