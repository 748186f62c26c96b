//! Rows that a request brings for one table.

use std::fmt;

use cachesql_types::{DataType, TableSchema, Value, limits};
use hyper::HeaderMap;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;

use super::csv::{Field, Records};
use super::json::{check_depth, is_json, typed_value};
use super::walk::Walker;
use crate::http::failure::Failure;
use crate::http::status;

/// What a body of rows is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// One object, or an array of them.
    Json,
    /// One object a line.
    Lines,
    /// A line of names, and one for each row.
    Csv,
}

impl RowFormat {
    /// The format that `Content-Type` names; JSON when it is missing.
    pub(crate) fn of(headers: &HeaderMap) -> Result<RowFormat, Failure> {
        let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(RowFormat::Json) };
        let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
        match text.split(';').next().map(str::trim).unwrap_or_default() {
            "application/json" | "application/vnd.pgrst.object+json" | "application/vnd.pgrst.array+json" => {
                Ok(RowFormat::Json)
            }
            "application/x-ndjson" | "application/jsonl" | "application/ndjson" => Ok(RowFormat::Lines),
            "text/csv" => Ok(RowFormat::Csv),
            _ => Err(Failure::media_type("rows are read from application/json, application/x-ndjson and text/csv")),
        }
    }
}

/// What is done with a column that some rows of a body give and others do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingColumns {
    /// The body is refused.
    Refuse,
    /// They are NULL, which is the default of every column.
    Null,
}

/// The rows, each as long as `columns`, values of the columns' types.
#[derive(Debug, PartialEq)]
pub(crate) struct BodyRows {
    /// Positions in the table.
    pub(crate) columns: Vec<usize>,
    /// The values.
    pub(crate) rows: Vec<Vec<Value>>,
    /// Whether the body was one object, not a list.
    pub(crate) single: bool,
}

/// Reads a body. `only`, from `columns=`, says which members are read; others are passed over, and missing ones are NULL.
pub(crate) fn read_rows(
    schema: &TableSchema,
    format: RowFormat,
    text: &str,
    only: Option<Vec<usize>>,
    missing: MissingColumns,
) -> Result<BodyRows, Failure> {
    let mut collector = Collector::new(schema, only, missing);
    let single = match format {
        RowFormat::Json => read_json(&mut collector, text)?,
        RowFormat::Lines => {
            for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                check_depth(line)?;
                let mut walker = Walker::new(line);
                let read = collector.object(&mut walker).and_then(|()| walker.end());
                read.map_err(|failure| at_line(failure, at + 1))?;
            }
            false
        }
        RowFormat::Csv => {
            read_csv(&mut collector, text)?;
            false
        }
    };
    Ok(collector.finish(single))
}

fn at_line(failure: Failure, line: impl fmt::Display) -> Failure {
    let details = match &failure.details {
        Some(details) => format!("line {line}, {details}"),
        None => format!("line {line}"),
    };
    failure.with_details(details)
}

/// Takes an array of objects row by row, so that the body is never held as a tree; whether it was one object instead.
fn read_json(collector: &mut Collector<'_>, text: &str) -> Result<bool, Failure> {
    check_depth(text)?;
    let mut walker = Walker::new(text);
    let single = match walker.peek() {
        Some(b'{') => true,
        Some(b'[') => false,
        _ => return Err(walker.broken("an object or an array of objects is expected")),
    };
    if single {
        collector.object(&mut walker)?;
    } else {
        walker.array(|walker| collector.object(walker))?;
    }
    walker.end()?;
    Ok(single)
}

fn read_csv(collector: &mut Collector<'_>, text: &str) -> Result<(), Failure> {
    let refused = |error: super::csv::CsvError| {
        Failure::new(StatusCode::BAD_REQUEST, "22P04", format!("the body is not CSV: {error}"))
    };
    let mut records = Records::new(text);
    let mut fields = Vec::new();
    if !records.read(&mut fields).map_err(refused)? {
        return Ok(());
    }
    let mut positions = Vec::with_capacity(fields.len());
    for field in &fields {
        let position = collector.position(&field.text)?;
        if position.is_some() && positions.contains(&position) {
            return Err(Failure::syntax(format!("the column {} is named twice", field.text)));
        }
        positions.push(position);
    }
    loop {
        let line = records.line();
        if !records.read(&mut fields).map_err(refused)? {
            return Ok(());
        }
        // A line without anything is a row only where rows have one column, which is NULL then.
        let blank = matches!(fields.as_slice(), [field] if field.text.is_empty() && !field.quoted);
        if blank && positions.len() != 1 {
            continue;
        }
        if fields.len() != positions.len() {
            let message = format!("a row has {} fields, the first line {}", fields.len(), positions.len());
            return Err(Failure::new(StatusCode::BAD_REQUEST, "22P04", message).with_details(format!("line {line}")));
        }
        collector.record(&positions, &fields).map_err(|f| at_line(f, line))?;
    }
}

/// Gathers rows.
struct Collector<'s> {
    schema: &'s TableSchema,
    /// Columns that rows have so far.
    columns: Vec<usize>,
    /// Whether `columns` was given beforehand.
    fixed: bool,
    missing: MissingColumns,
    rows: Vec<Vec<Value>>,
    /// For each member of the latest object, in order, its name and its place in a row: objects of a body mostly look alike.
    shape: Vec<(String, Option<usize>)>,
}

impl<'s> Collector<'s> {
    fn new(schema: &'s TableSchema, only: Option<Vec<usize>>, missing: MissingColumns) -> Collector<'s> {
        let fixed = only.is_some();
        let columns = only.unwrap_or_default();
        Collector { schema, columns, fixed, missing, rows: Vec::new(), shape: Vec::new() }
    }

    /// Place in a row of a column, by name; `None` for one that is passed over.
    fn position(&mut self, name: &str) -> Result<Option<usize>, Failure> {
        let Some(column) = self.schema.column(name) else {
            if self.fixed {
                return Ok(None);
            }
            return Err(Failure::unknown_column(&self.schema.name, name));
        };
        if let Some(position) = self.columns.iter().position(|c| *c == column) {
            return Ok(Some(position));
        }
        if self.fixed {
            return Ok(None);
        }
        if !self.rows.is_empty() && self.missing == MissingColumns::Refuse {
            return Err(keys_differ());
        }
        self.columns.push(column);
        Ok(Some(self.columns.len() - 1))
    }

    fn object(&mut self, walker: &mut Walker<'_>) -> Result<(), Failure> {
        self.room()?;
        let mut row = vec![None; self.columns.len()];
        let mut at = 0;
        walker.object(|name, raw| {
            let position = match self.shape.get(at) {
                Some((known, position)) if *known == *name => *position,
                _ => {
                    let position = self.position(&name)?;
                    self.remember(at, &name, position);
                    position
                }
            };
            at += 1;
            let Some(position) = position else { return Ok(()) };
            if row.get(position).is_some_and(Option::is_some) {
                let shown: String = name.chars().take(100).collect();
                return Err(Failure::syntax(format!("the member {shown:?} is given twice"))
                    .with_details(format!("row {}", self.rows.len() + 1)));
            }
            let (column, data_type) = self.column_at(position)?;
            let value = typed_value(raw, data_type).map_err(|e| status::of_value(column, &e))?;
            if row.len() <= position {
                row.resize(position + 1, None);
            }
            if let Some(cell) = row.get_mut(position) {
                *cell = Some(value);
            }
            Ok(())
        })?;
        let whole = row.len() == self.columns.len() && row.iter().all(Option::is_some);
        if !whole && !self.fixed && self.missing == MissingColumns::Refuse {
            return Err(keys_differ());
        }
        self.rows.push(row.into_iter().map(|v| v.unwrap_or(Value::Null)).collect());
        Ok(())
    }

    fn record(&mut self, positions: &[Option<usize>], fields: &[Field<'_>]) -> Result<(), Failure> {
        self.room()?;
        let mut row = vec![Value::Null; self.columns.len()];
        for (position, field) in positions.iter().zip(fields) {
            let Some(position) = *position else { continue };
            if field.text.is_empty() && !field.quoted {
                continue;
            }
            let (column, data_type) = self.column_at(position)?;
            if data_type == DataType::Json && !is_json(&field.text) {
                return Err(
                    Failure::value("invalid input syntax for type JSON").with_details(format!("column {column}"))
                );
            }
            let value = Value::parse(&field.text, data_type).map_err(|e| status::of_value(column, &e))?;
            if let Some(cell) = row.get_mut(position) {
                *cell = value;
            }
        }
        self.rows.push(row);
        Ok(())
    }

    fn room(&self) -> Result<(), Failure> {
        if self.rows.len() < limits::STATEMENT_WRITE_ROWS {
            return Ok(());
        }
        let message = format!("the body has more than {} rows", limits::STATEMENT_WRITE_ROWS);
        Err(Failure::new(StatusCode::BAD_REQUEST, "54000", message))
    }

    fn remember(&mut self, at: usize, name: &str, position: Option<usize>) {
        let entry = (name.to_owned(), position);
        if let Some(known) = self.shape.get_mut(at) {
            *known = entry;
        } else if at == self.shape.len() {
            self.shape.push(entry);
        }
    }

    fn column_at(&self, position: usize) -> Result<(&'s str, DataType), Failure> {
        let column = self.columns.get(position).and_then(|c| self.schema.columns.get(*c));
        column.map(|c| (c.name.as_str(), c.data_type)).ok_or_else(Failure::internal)
    }

    fn finish(mut self, single: bool) -> BodyRows {
        for row in &mut self.rows {
            row.resize(self.columns.len(), Value::Null);
        }
        BodyRows { columns: self.columns, rows: self.rows, single }
    }
}

fn keys_differ() -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, "22023", "All object keys must match")
        .with_hint("Prefer: missing=default, or columns=, lets some be left out")
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
