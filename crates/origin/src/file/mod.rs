//! Rows from files: CSV, NDJSON and Arrow. Read on a thread that may block.

mod arrow;
mod arrow_lengths;
mod csv;
mod csv_reader;
mod infer;
mod ndjson;

use std::fs::File;
use std::io::BufReader;

use cachesql_types::{Column, limits};

use crate::batch::schema_of;
use crate::error::OriginError;
use crate::source::{Estimate, FileFormat, FileSource, SourceDescription, TableQuery};
use crate::stream::{BatchStream, batch_queue, run_blocking};

/// One table's file.
#[derive(Clone)]
struct TableFile {
    table: String,
    path: std::path::PathBuf,
}

impl TableFile {
    fn open(&self) -> Result<BufReader<File>, OriginError> {
        let file = File::open(&self.path).map_err(|error| self.fault(None, error.to_string()))?;
        Ok(BufReader::with_capacity(limits::FILE_READ_BYTES, file))
    }

    /// An error about the file, or one of its lines.
    fn fault(&self, line: Option<u64>, reason: impl Into<String>) -> OriginError {
        OriginError::File {
            table: self.table.clone(),
            path: self.path.display().to_string(),
            line,
            reason: reason.into(),
        }
    }

    /// What the whole file holds, when the first part of it holds `sampled` in lines of so many fields.
    fn extrapolated(&self, sampled: Estimate, fields: usize) -> Result<Estimate, OriginError> {
        let size = std::fs::metadata(&self.path).map_err(|error| self.fault(None, error.to_string()))?.len();
        // Each field has a delimiter or a line's end behind it.
        let lines = sampled.bytes + sampled.rows * fields as u64;
        let share = |of: u64| u64::try_from(u128::from(of) * u128::from(size) / u128::from(lines.max(1)));
        let whole = |of: u64| share(of).unwrap_or(u64::MAX);
        Ok(Estimate { rows: whole(sampled.rows), bytes: whole(sampled.bytes) })
    }

    /// Where a value stands, for errors.
    fn place(&self, line: u64) -> String {
        format!("{} line {line}", self.path.display())
    }
}

/// Says what a file will bring; reads it whole, unless all its columns' types are given.
pub(crate) async fn describe(query: &TableQuery, source: &FileSource) -> Result<SourceDescription, OriginError> {
    let (query, source) = (query.clone(), source.clone());
    let table = query.table.clone();
    let work = move || {
        let file = TableFile { table: query.table.clone(), path: source.path.clone() };
        match &source.format {
            FileFormat::Csv(options) => csv::describe(&file, options, &query.types),
            FileFormat::Ndjson => ndjson::describe(&file, &query.types),
            FileFormat::Arrow => arrow::describe(&file, &query.types),
        }
    };
    let died = |error: tokio::task::JoinError| OriginError::Broken { table, reason: error.to_string() };
    tokio::task::spawn_blocking(work).await.map_err(died)?
}

/// Starts reading a file.
pub(crate) async fn load(
    query: &TableQuery,
    source: &FileSource,
    columns: &[Column],
) -> Result<BatchStream, OriginError> {
    let (source, columns) = (source.clone(), columns.to_vec());
    let file = TableFile { table: query.table.clone(), path: source.path.clone() };
    let (sender, stream) = batch_queue(&query.table, schema_of(&columns));
    run_blocking(query.table.clone(), sender, (), move |sender| match &source.format {
        FileFormat::Csv(options) => csv::load(&file, options, &columns, sender),
        FileFormat::Ndjson => ndjson::load(&file, &columns, sender),
        FileFormat::Arrow => arrow::load(&file, &columns, sender),
    });
    Ok(stream)
}
