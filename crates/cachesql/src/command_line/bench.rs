//! `cachesql bench`: so many connections, each with one request under way, for some time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cachesql_types::resolve_name;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use super::arguments::{BenchArguments, BenchDoor};
use super::client::{Client, Target, encoded, refusal};
use super::failure::Failure;
use super::histogram::Histogram;
use super::terminal::print_line;
use crate::config::units::{show_count, show_size};

/// Values of the column that are asked for, in turn.
const VALUES: usize = 10_000;

pub(super) async fn run(arguments: BenchArguments) -> Result<(), Failure> {
    if arguments.statement.is_some() && arguments.door != BenchDoor::Sql {
        return Err(Failure::Usage("--statement is for --door sql".into()));
    }
    let target = Target::new(&arguments.node)?;
    let mut client = Client::new(target.clone());
    let (table, column) = subject(&mut client, &arguments).await?;
    let values = values(&mut client, &table, &column).await?;
    let requests: Arc<Vec<Request>> =
        Arc::new(values.iter().map(|v| request(&arguments, &table, &column, v)).collect());
    eprintln!(
        "{} for {:?}: {} of {table} by {column}, {}",
        show_count(arguments.connections, "connection"),
        arguments.duration,
        match arguments.door {
            BenchDoor::Rest => "GET /rest",
            BenchDoor::Cache => "GET /cache/get",
            BenchDoor::Sql => "POST /v1/sql",
        },
        show_count(requests.len(), "different value")
    );
    let began = Instant::now();
    let end = began + arguments.duration;
    let mut workers = tokio::task::JoinSet::new();
    for number in 0..arguments.connections {
        let (client, requests) = (Client::new(target.clone()), requests.clone());
        // Connections begin at different places, so that they do not ask for one row at a time together.
        let start = usize::try_from(number).unwrap_or(0) * 7_919;
        workers.spawn(worker(client, requests, start, end));
    }
    let mut total = Tally::new();
    while let Some(tally) = workers.join_next().await {
        total.merge(tally.map_err(|e| Failure::Failed(format!("a connection of the bench broke: {e}")))??);
    }
    let took = began.elapsed();
    report(&arguments, &total, took)?;
    match total.first_refusal {
        Some(why) => {
            let refused = show_count(total.refused, "request");
            Err(Failure::Failed(format!("refused: {refused}, the first with: {why}")))
        }
        None => Ok(()),
    }
}

/// A request that is sent again and again.
struct Request {
    method: Method,
    path: String,
    body: Bytes,
}

struct Tally {
    latencies: Histogram,
    bytes: u64,
    refused: u64,
    first_refusal: Option<String>,
}

impl Tally {
    fn new() -> Tally {
        Tally { latencies: Histogram::new(), bytes: 0, refused: 0, first_refusal: None }
    }

    fn merge(&mut self, other: Tally) {
        self.latencies.merge(&other.latencies);
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.first_refusal = self.first_refusal.take().or(other.first_refusal);
    }
}

async fn worker(mut client: Client, requests: Arc<Vec<Request>>, start: usize, end: Instant) -> Result<Tally, Failure> {
    let mut tally = Tally::new();
    let headers = [(ACCEPT, "application/json"), (CONTENT_TYPE, "application/json")];
    for request in requests.iter().cycle().skip(start % requests.len().max(1)) {
        let began = Instant::now();
        if began >= end {
            break;
        }
        let answer = client.ask(request.method.clone(), &request.path, &headers, request.body.clone()).await?;
        tally.latencies.record(began.elapsed());
        tally.bytes += answer.body.len() as u64;
        if !answer.status.is_success() {
            tally.refused += 1;
            tally.first_refusal.get_or_insert_with(|| refusal(answer.status, &answer.body).to_string());
        }
    }
    Ok(tally)
}

/// The table and column that are asked for: those of the arguments, else the largest table that has a key, by its first column.
async fn subject(client: &mut Client, arguments: &BenchArguments) -> Result<(String, String), Failure> {
    let tables = client.ask_json(Method::GET, "/v1/tables", None).await?;
    let tables = tables.as_array().map(Vec::as_slice).unwrap_or_default();
    let table = match &arguments.table {
        Some(wanted) => match resolve_name(tables.iter().map(name_of), wanted).and_then(|at| tables.get(at)) {
            Some(table) => table,
            None => return Err(missing(client, wanted, tables).await),
        },
        None => (tables.iter().filter(|table| first_key(table).is_some()).max_by_key(|table| rows_of(table)))
            .ok_or_else(|| Failure::Usage("no table has a primary key; say --table and --column".into()))?,
    };
    let name = name_of(table);
    let column = match &arguments.column {
        Some(wanted) => {
            let columns: Vec<_> =
                table.get("columns").and_then(Value::as_array).into_iter().flatten().map(name_of).collect();
            let at = resolve_name(columns.iter().copied(), wanted).and_then(|at| columns.get(at));
            let unknown = || format!("table {name} has no column {wanted}; it has: {}", columns.join(", "));
            *at.ok_or_else(|| Failure::Usage(unknown()))?
        }
        None => {
            first_key(table).ok_or_else(|| Failure::Usage(format!("table {name} has no primary key; say --column")))?
        }
    };
    if rows_of(table) == 0 {
        return Err(Failure::Failed(format!("table {name} has no rows, so that there is nothing to ask for")));
    }
    Ok((name.to_owned(), column.to_owned()))
}

fn name_of(value: &Value) -> &str {
    value.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn first_key(table: &Value) -> Option<&str> {
    table.get("key")?.get(0)?.as_str()
}

fn rows_of(table: &Value) -> u64 {
    table.get("rows").and_then(Value::as_u64).unwrap_or(0)
}

/// Why a table is not among those that are there: it may be one that is still to be loaded.
async fn missing(client: &mut Client, wanted: &str, tables: &[Value]) -> Failure {
    let sql = format!("SELECT 1 FROM {} LIMIT 1", quoted(wanted));
    let headers = [(ACCEPT, "application/json"), (CONTENT_TYPE, "application/json")];
    let body = Bytes::from(json!({ "sql": sql }).to_string());
    match client.ask(Method::POST, "/v1/sql", &headers, body).await {
        Ok(answer) if answer.status == StatusCode::SERVICE_UNAVAILABLE => refusal(answer.status, &answer.body),
        _ if tables.is_empty() => Failure::Usage(format!("there is no table {wanted}, and no other")),
        _ => {
            let names: Vec<_> = tables.iter().map(name_of).collect();
            Failure::Usage(format!("there is no table {wanted}; there is: {}", names.join(", ")))
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

async fn values(client: &mut Client, table: &str, column: &str) -> Result<Vec<Value>, Failure> {
    let (table_name, column_name) = (quoted(table), quoted(column));
    let sql = format!("SELECT DISTINCT {column_name} FROM {table_name} WHERE {column_name} IS NOT NULL LIMIT {VALUES}");
    let answer = client.ask_json(Method::POST, "/v1/sql", Some(&json!({ "sql": sql }))).await?;
    let rows = answer.get("rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let values: Vec<_> = rows.iter().filter_map(|row| row.get(0)).cloned().collect();
    if values.is_empty() {
        let why = format!("table {table} has only NULL in column {column}, so that there is nothing to ask for");
        return Err(Failure::Failed(why));
    }
    Ok(values)
}

fn request(arguments: &BenchArguments, table: &str, column: &str, value: &Value) -> Request {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (table_part, column_part, value_part) = (encoded(table), encoded(column), encoded(&text));
    match arguments.door {
        BenchDoor::Rest => {
            let path = format!("/rest/{table_part}?{column_part}=eq.{value_part}");
            Request { method: Method::GET, path, body: Bytes::new() }
        }
        BenchDoor::Cache => {
            let path = format!("/cache/get?table={table_part}&column={column_part}&value={value_part}");
            Request { method: Method::GET, path, body: Bytes::new() }
        }
        BenchDoor::Sql => {
            let point_read = || format!("SELECT * FROM {} WHERE {} = $1", quoted(table), quoted(column));
            let sql = arguments.statement.clone().unwrap_or_else(point_read);
            let params = if sql.contains("$1") { json!([value]) } else { json!([]) };
            let body = Bytes::from(json!({ "sql": sql, "params": params }).to_string());
            Request { method: Method::POST, path: "/v1/sql".into(), body }
        }
    }
}

fn report(arguments: &BenchArguments, total: &Tally, took: Duration) -> Result<(), Failure> {
    let count = total.latencies.count();
    // A rate for people and programs: what a double cannot hold of it does not matter.
    #[allow(clippy::cast_precision_loss)]
    let rate = count as f64 / took.as_secs_f64();
    let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
    let quantile = |share| total.latencies.quantile_us(share);
    let largest = total.latencies.largest_us();
    if arguments.json {
        let latencies: serde_json::Map<_, _> =
            shares.iter().map(|(name, share)| ((*name).to_owned(), json!(quantile(*share)))).collect();
        let outcome = json!({
            "requests": count, "refused": total.refused, "seconds": took.as_secs_f64(), "per_second": rate,
            "bytes": total.bytes, "connections": arguments.connections, "latency_us": latencies, "latency_max_us": largest,
        });
        return print_line(outcome);
    }
    let (requests, received, seconds) = (show_count(count, "request"), show_size(total.bytes), took.as_secs_f64());
    print_line(format_args!("{requests} in {seconds:.1} s: {rate:.0} a second, {received} received"))?;
    let parts: Vec<_> = shares.iter().map(|(name, share)| format!("{name} {}", show_us(quantile(*share)))).collect();
    print_line(format_args!("latency: {}, longest {}", parts.join(", "), show_us(largest)))
}

fn show_us(us: u64) -> String {
    // As above: three figures are shown.
    #[allow(clippy::cast_precision_loss)]
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.2} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}
