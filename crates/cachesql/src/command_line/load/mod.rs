//! `cachesql load`: sends a file's rows to a table of a running node, batch after batch.

mod batch;
mod create;
mod source;

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName};
use hyper::{Method, StatusCode};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::arguments::{LoadArguments, LoadFormat};
use super::client::{Client, Target, encoded};
use super::failure::Failure;
use super::terminal::print_line;
use crate::config::units::{show_count, show_size};
use batch::{Batch, Batcher};
use source::Source;

pub(super) async fn run(arguments: LoadArguments) -> Result<(), Failure> {
    let format = format_of(&arguments)?;
    let mut client = Client::new(Target::new(&arguments.node)?);
    if arguments.create {
        create::table(&mut client, &arguments, format).await?;
    }
    let mut source = Source::open(&arguments.source).await?;
    let mut upload = Upload { client, arguments: &arguments, format, rows: 0, bytes: 0 };
    let mut progress = Progress::new(source.total_bytes);
    let began = Instant::now();
    let mut batcher = Batcher::new(format, u64::from(arguments.batch));
    while let Some(bytes) = source.next().await? {
        upload.bytes += bytes.len() as u64;
        for batch in batcher.push(&bytes) {
            upload.send(batch).await?;
            progress.show(upload.rows, upload.bytes);
        }
    }
    if let Some(batch) = batcher.finish().map_err(|why| upload.failure(&why))? {
        upload.send(batch).await?;
    }
    progress.finish();
    let took = began.elapsed();
    if arguments.json {
        let (rows, bytes, seconds) = (upload.rows, upload.bytes, took.as_secs_f64());
        print_line(json!({ "table": arguments.table, "rows": rows, "bytes": bytes, "seconds": seconds }))
    } else {
        let (rows, size, seconds) = (show_count(upload.rows, "row"), show_size(upload.bytes), took.as_secs_f64());
        print_line(format_args!("{}: {rows} ({size}) in {seconds:.1} s", arguments.table))
    }
}

fn format_of(arguments: &LoadArguments) -> Result<LoadFormat, Failure> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let path = arguments.source.split(['?', '#']).next().unwrap_or_default();
    let ending = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "csv" => Ok(LoadFormat::Csv),
        "ndjson" | "jsonl" => Ok(LoadFormat::Ndjson),
        _ => {
            let why = "its name does not tell whether it is CSV or NDJSON: say --format csv or --format ndjson";
            Err(Failure::Usage(format!("{}: {why}", arguments.source)))
        }
    }
}

struct Upload<'a> {
    client: Client,
    arguments: &'a LoadArguments,
    format: LoadFormat,
    rows: u64,
    bytes: u64,
}

impl Upload<'_> {
    async fn send(&mut self, batch: Batch) -> Result<(), Failure> {
        let path = format!("/rest/{}", encoded(&self.arguments.table));
        let content_type = match self.format {
            LoadFormat::Csv => "text/csv",
            LoadFormat::Ndjson => "application/x-ndjson",
        };
        let headers = [(CONTENT_TYPE, content_type), (HeaderName::from_static("prefer"), self.preferences())];
        let answer = self.client.ask(Method::POST, &path, &headers, Bytes::from(batch.body)).await;
        let hint = match &answer {
            Ok(answer) if answer.status == StatusCode::NOT_FOUND => "\nhint: --create makes the table",
            _ => "",
        };
        let outcome = answer.and_then(super::client::Answer::success);
        let last = batch.first_line + batch.rows;
        match outcome {
            Ok(_) => {
                self.rows += batch.rows;
                Ok(())
            }
            // Nothing of a refused batch was written.
            Err(Failure::Failed(why)) => {
                let rows = show_count(batch.rows, "row");
                let line = batch.first_line;
                Err(self.failure(&format!("the batch of {rows} from line {line} on was refused: {why}{hint}")))
            }
            Err(Failure::Unreachable(why)) => Err(Failure::Unreachable(format!(
                "{why}\nIt is not known whether the rows of lines {} to about {last} were written. Written before them: {}.",
                batch.first_line,
                show_count(self.rows, "row")
            ))),
            Err(other) => Err(other),
        }
    }

    /// What the `Prefer` header says. Lines of NDJSON need not all have the same members.
    fn preferences(&self) -> &'static str {
        match (self.format, self.arguments.upsert) {
            (LoadFormat::Csv, false) => "return=minimal",
            (LoadFormat::Csv, true) => "return=minimal, resolution=merge-duplicates",
            (LoadFormat::Ndjson, false) => "return=minimal, missing=default",
            (LoadFormat::Ndjson, true) => "return=minimal, missing=default, resolution=merge-duplicates",
        }
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::Failed(format!(
            "{}: {why}\nWritten before that: {}.",
            self.arguments.source,
            show_count(self.rows, "row")
        ))
    }
}

/// A bar on a terminal, else a line a second.
struct Progress {
    bar: ProgressBar,
    total_bytes: Option<u64>,
    last_line: Instant,
    is_terminal: bool,
}

impl Progress {
    fn new(total_bytes: Option<u64>) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total_bytes, target);
        let template = match total_bytes {
            Some(_) => "{bar:30} {percent:>3} %  {msg}  {binary_bytes_per_sec}  {eta} left",
            None => "{spinner} {binary_bytes}  {msg}  {binary_bytes_per_sec}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar, total_bytes, last_line: Instant::now(), is_terminal }
    }

    fn show(&mut self, rows: u64, bytes: u64) {
        self.bar.set_position(bytes);
        let rows = show_count(rows, "row");
        self.bar.set_message(rows.clone());
        if !self.is_terminal && self.last_line.elapsed() >= Duration::from_secs(1) {
            self.last_line = Instant::now();
            let share = self.total_bytes.map(|total| format!(" ({} %)", bytes.saturating_mul(100) / total.max(1)));
            eprintln!("{rows}, {}{}", show_size(bytes), share.unwrap_or_default());
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
