//! One statement on a node: sends it, and prints what comes back as the reader wants it.

use std::io::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_RANGE, CONTENT_TYPE, HeaderName};
use serde_json::{Value, json};

use super::terminal;
use crate::command_line::client::{Client, refusal};
use crate::command_line::failure::Failure;
use crate::command_line::render::{Expanded, Grid, GridColumn};
use crate::config::units::show_count;

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// In a frame, for people.
    Table,
    /// JSON objects, one a line.
    Json,
    /// CSV with a header.
    Csv,
}

/// The conversation with a node.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) format: Format,
    pub(super) expanded: Expanded,
    pub(super) timing: bool,
    /// Whether the output is a terminal, which rows have to fit in.
    is_terminal: bool,
    consistency: String,
    /// What the session has seen, as the node handed it over.
    token: Option<String>,
}

const TOKEN: HeaderName = HeaderName::from_static("cachesql-token");
const CONSISTENCY: HeaderName = HeaderName::from_static("cachesql-consistency");

impl Session {
    pub(super) fn new(client: Client, format: Format, consistency: String, is_terminal: bool) -> Session {
        Session { client, format, expanded: Expanded::Auto, timing: false, is_terminal, consistency, token: None }
    }

    /// The terminal's width now: it may have changed since the last statement. `None` when the output is no terminal.
    fn width(&self) -> Option<usize> {
        self.is_terminal.then(terminal::width).flatten()
    }

    /// Prints rows in a frame, or one value a line.
    pub(super) fn print(&self, grid: &Grid) -> Result<(), Failure> {
        grid.print(&mut std::io::stdout().lock(), self.width(), self.expanded).map_err(Failure::output)
    }

    /// Runs a statement and prints what it answers.
    pub(super) async fn run(&mut self, sql: &str) -> Result<(), Failure> {
        let began = Instant::now();
        match self.format {
            Format::Table => self.run_for_people(sql).await?,
            Format::Json => self.run_streamed(sql, "application/x-ndjson").await?,
            Format::Csv => self.run_streamed(sql, "text/csv").await?,
        }
        if self.timing {
            println!("Time: {}", milliseconds(began.elapsed()));
        }
        Ok(())
    }

    async fn send(&mut self, sql: &str, accept: &str) -> Result<hyper::Response<hyper::body::Incoming>, Failure> {
        let body = Bytes::from(json!({ "sql": sql }).to_string());
        let token = self.token.clone();
        let mut headers =
            vec![(ACCEPT, accept), (CONTENT_TYPE, "application/json"), (CONSISTENCY, self.consistency.as_str())];
        if let Some(token) = &token {
            headers.push((TOKEN, token));
        }
        let response = self.client.send(Method::POST, "/v1/sql", &headers, body).await?;
        if let Some(token) = response.headers().get(TOKEN).and_then(|t| t.to_str().ok()) {
            self.token = Some(token.to_owned());
        }
        Ok(response)
    }

    async fn run_for_people(&mut self, sql: &str) -> Result<(), Failure> {
        let response = self.send(sql, "application/json").await?;
        let status = response.status();
        let body = super::whole_body(response.into_body()).await?;
        if !status.is_success() {
            return Err(refusal(status, &body));
        }
        let answer: Value = serde_json::from_slice(&body)
            .map_err(|e| Failure::Failed(format!("the node's answer is not JSON: {e}")))?;
        if let Some(grid) = grid_of(&answer) {
            return self.print(&grid);
        }
        let mut out = std::io::stdout().lock();
        match answer.get("affected").and_then(Value::as_u64) {
            Some(affected) if affected > 0 || !is_definition(sql) => {
                writeln!(out, "({} written)", show_count(affected, "row"))
            }
            _ => writeln!(out, "(done)"),
        }
        .map_err(Failure::output)
    }

    /// Hands the answer's bytes on as they come: any size, in little memory.
    async fn run_streamed(&mut self, sql: &str, accept: &str) -> Result<(), Failure> {
        let response = self.send(sql, accept).await?;
        let status = response.status();
        if !status.is_success() {
            let body = super::whole_body(response.into_body()).await?;
            return Err(refusal(status, &body));
        }
        let is_rows =
            response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).is_some_and(|t| t.starts_with(accept));
        let affected =
            response.headers().get(CONTENT_RANGE).and_then(|v| v.to_str().ok()?.strip_prefix("*/")?.parse().ok());
        let mut body = response.into_body();
        let mut last = None;
        let mut out = std::io::stdout().lock();
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|e| Failure::Unreachable(format!("the node went away in the middle of the answer: {e}")))?;
            // A write has no rows: what it answers is no row either, be it a header line without columns.
            let is_empty_header = |bytes: &[u8]| last.is_none() && matches!(bytes, b"\r\n" | b"\n");
            if let Some(bytes) = frame.data_ref().filter(|bytes| is_rows && !is_empty_header(bytes)) {
                last = bytes.last().copied().or(last);
                out.write_all(bytes).map_err(Failure::output)?;
            }
        }
        if last.is_some_and(|byte| byte != b'\n') {
            out.write_all(b"\n").map_err(Failure::output)?;
        }
        if let Some(outcome) = affected.filter(|_| last.is_none()).and_then(|rows| self.outcome(sql, rows)) {
            writeln!(out, "{outcome}").map_err(Failure::output)?;
        }
        out.flush().map_err(Failure::output)
    }

    /// What a write without rows is printed as: an object for programs that read objects, nothing for those that read CSV.
    fn outcome(&self, sql: &str, affected: u64) -> Option<Value> {
        // RETURNING that returned nothing: a reader of its rows wants none.
        let returned_nothing = affected == 0 && sql.to_ascii_lowercase().contains("returning");
        (self.format == Format::Json && !returned_nothing).then(|| json!({ "affected": affected }))
    }

    /// What the node knows of its tables.
    pub(super) async fn tables(&mut self) -> Result<Vec<Value>, Failure> {
        let answer = self.client.ask_json(Method::GET, "/v1/tables", None).await?;
        Ok(answer.as_array().cloned().unwrap_or_default())
    }
}

/// Whether a statement makes, changes or drops a table or an index: no rows are what it is about.
pub(super) fn is_definition(sql: &str) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default();
    ["create", "drop", "alter"].iter().any(|word| first.eq_ignore_ascii_case(word))
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1_000.0)
}

/// The rows of an answer of `/v1/sql`; `None` when the statement has none.
fn grid_of(answer: &Value) -> Option<Grid> {
    let columns = answer.get("columns")?.as_array()?;
    let rows = answer.get("rows")?.as_array()?;
    if columns.is_empty() && rows.is_empty() {
        return None;
    }
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let column = |value: &Value| {
        let is_number =
            cachesql_types::DataType::parse(&text(value, "type")).is_some_and(cachesql_types::DataType::is_numeric);
        GridColumn { name: text(value, "name"), is_number }
    };
    let row = |value: &Value| value.as_array().into_iter().flatten().map(cell).collect();
    Some(Grid { columns: columns.iter().map(column).collect(), rows: rows.iter().map(row).collect() })
}

fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_cells() {
        let answer: Value = serde_json::from_str(
            r#"{"columns":[{"name":"a","type":"BIGINT"},{"name":"b","type":"TEXT"},{"name":"c","type":"DECIMAL(38,2)"}],
                "rows":[[9223372036854775807,"x",0.10],[null,"",{"k":1}]],"token":"main:1"}"#,
        )
        .expect("JSON");
        let grid = grid_of(&answer).expect("rows");
        let numbers: Vec<_> = grid.columns.iter().map(|c| c.is_number).collect();
        assert_eq!(numbers, [true, false, true]);
        let text = |t: &str| Some(t.to_owned());
        assert_eq!(grid.rows[0], [text("9223372036854775807"), text("x"), text("0.10")]);
        assert_eq!(grid.rows[1], [None, text(""), text("{\"k\":1}")]);
        assert!(grid_of(&json!({ "affected": 3, "token": "main:2" })).is_none());
    }
}
