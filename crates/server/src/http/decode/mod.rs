//! What requests bring: rows as JSON, NDJSON or CSV, statements as JSON.

mod csv;
mod json;
mod rows;
mod statement;
mod walk;

pub(crate) use rows::{BodyRows, MissingColumns, RowFormat, read_rows};
pub(crate) use statement::{StatementBody, StatementsBody, read_statements};
