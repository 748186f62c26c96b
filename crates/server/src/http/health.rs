//! `/healthz`, `/readyz` and `/metrics`.

use cachesql_node::{LoadPhase, TableLoad};
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

use super::answer::{answer, json, text};
use super::body::AnswerBody;
use super::call::Call;
use super::encode::json::write_string;

/// The process answers.
pub(crate) fn alive() -> Response<AnswerBody> {
    text(StatusCode::OK, "ok\n")
}

/// Whether every configured table is loaded; 503 names those that are not.
pub(crate) fn ready(call: &Call<'_>) -> Response<AnswerBody> {
    let loads = call.node().loads();
    let loads = loads.borrow();
    let snapshot = call.node().snapshot();
    let ready = call.node().ready() && !call.door.is_stopping();
    let mut out = Vec::with_capacity(64 + loads.len() * 96);
    out.extend_from_slice(
        format!("{{\"ready\":{ready},\"stopping\":{},\"tables\":[", call.door.is_stopping()).as_bytes(),
    );
    for (at, load) in loads.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let table = snapshot.table(&load.table);
        let served = table.map_or((0, 0), |table| (table.row_count(), table.memory().total()));
        write_load(&mut out, load, served);
    }
    out.extend_from_slice(b"]}");
    json(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, out)
}

/// Writes where a table's load stands, and how many rows the table serves and their bytes: old ones too, while new ones arrive.
fn write_load(out: &mut Vec<u8>, load: &TableLoad, (rows, bytes): (u64, u64)) {
    out.extend_from_slice(b"{\"table\":");
    write_string(out, &load.table);
    let phase = match load.phase {
        LoadPhase::Waiting => "waiting",
        LoadPhase::Loading => "loading",
        LoadPhase::Loaded => "loaded",
        LoadPhase::Failed => "failed",
    };
    let estimate = load.estimate.as_ref().map_or("null".to_owned(), |e| e.rows.to_string());
    let arrived = if load.phase == LoadPhase::Loading { load.rows.to_string() } else { "null".to_owned() };
    let numbers = format!(
        ",\"phase\":\"{phase}\",\"rows\":{rows},\"bytes\":{bytes},\"arrived_rows\":{arrived},\"estimated_rows\":{estimate},\
         \"took_ms\":{},\"attempts\":{},\"error\":",
        load.elapsed().as_millis(),
        load.attempts
    );
    out.extend_from_slice(numbers.as_bytes());
    match &load.error {
        Some(error) => write_string(out, error),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

/// The node's and the door's counters in the OpenMetrics text format.
pub(crate) fn metrics(call: &Call<'_>) -> Response<AnswerBody> {
    let mut out = String::with_capacity(4096);
    // Writing to a String does not fail.
    let _ = call.node().metrics_into(&mut out);
    // The door's counters come last, because their text ends with the marker of the end.
    call.door.counters().write(&mut out);
    let media_type = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    answer(StatusCode::OK, media_type, AnswerBody::Whole(out.into()))
}
