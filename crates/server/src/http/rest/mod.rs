//! `/rest/{table}`: rows in PostgREST's grammar.

mod filter;
mod query;
mod range;
mod read;
mod returned;
mod scanner;
mod write;

pub(crate) use read::{read, read_now};
pub(crate) use write::{delete, insert, put, update};

use std::sync::Arc;

use cachesql_node::{ColumnInfo, GroupSnapshot, Table};
use cachesql_types::DataType;
use hyper::StatusCode;

use crate::http::accept::RowsType;
use crate::http::call::Call;
use crate::http::encode::{Encoder, JsonStyle, Layout};
use crate::http::failure::Failure;
use crate::http::prefer::Preferences;

/// A table by name.
fn table_of<'s>(call: &Call<'_>, snapshot: &'s GroupSnapshot, name: &str) -> Result<&'s Arc<Table>, Failure> {
    snapshot.table(name).ok_or_else(|| call.unknown_table(name))
}

/// What encodes rows in the type that the request accepts. `as_text` says which columns were cast to text.
fn encoder_of(
    rows_type: RowsType,
    columns: &Arc<[ColumnInfo]>,
    as_text: &[bool],
    preferences: &Preferences,
) -> Result<Encoder, Failure> {
    let style = JsonStyle { numbers_as_strings: preferences.numbers_as_strings, ..JsonStyle::default() };
    let layout = match rows_type {
        RowsType::Json => Layout::Objects,
        RowsType::Object => Layout::SingleObject,
        RowsType::Csv => Layout::Csv,
        RowsType::Lines => Layout::Lines,
        RowsType::Arrow => {
            let cast = as_text.iter().zip(columns.iter()).any(|(cast, c)| *cast && c.data_type != DataType::Text);
            if cast {
                return Err(Failure::unsupported("::text is not supported in Arrow streams, which carry the types"));
            }
            return Encoder::arrow(columns);
        }
    };
    Ok(Encoder::rows(columns, layout, style).with_text_columns(as_text))
}

/// The failure of a request for exactly one object that has another number of rows.
fn not_one_row(rows: u64) -> Failure {
    Failure::new(StatusCode::NOT_ACCEPTABLE, "PGRST116", "JSON object requested, multiple (or no) rows returned")
        .with_details(format!("The result contains {rows} rows"))
}
