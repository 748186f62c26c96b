//! Rows from SQLite: on a thread that may block, in one read transaction on a read-only connection.
//!
//! SQLite's values carry their own types, whatever their column declares. A column here has one type, from its declaration
//! or, where there is none, from the values; a value of another kind goes in exactly, or fails the load by name.

mod describe;
mod load;
mod types;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cachesql_types::{Value, limits};
use rusqlite::types::Value as Stored;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement};

pub(crate) use describe::describe;
pub(crate) use load::load;

use crate::error::OriginError;
use crate::origin::OriginConfig;
use crate::url::SqliteLocation;

/// Steps of SQLite's machine between two looks at whether anybody still waits.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// Tells a thread that nobody waits for it any more. (SQLite's own interrupt is lost when no statement runs yet.)
#[derive(Clone, Default)]
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Stops the thread when this is dropped.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs work on a thread that may block.
async fn on_thread<T: Send + 'static>(
    table: &str,
    work: impl FnOnce() -> Result<T, OriginError> + Send + 'static,
) -> Result<T, OriginError> {
    let broken = |reason: String| OriginError::Broken { table: table.to_owned(), reason };
    tokio::task::spawn_blocking(work).await.map_err(|died| broken(died.to_string()))?
}

/// Opens the database for reading and begins a transaction; blocks. `stop` ends whatever runs on the connection.
fn open(config: &OriginConfig, location: &SqliteLocation, stop: &Stop) -> Result<Connection, OriginError> {
    let failed =
        |error: rusqlite::Error| OriginError::Connect { origin: config.url.to_string(), reason: error.to_string() };
    let mut connection = match location {
        SqliteLocation::Memory => Connection::open_in_memory(),
        SqliteLocation::Path(path) => {
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        }
    }
    .map_err(failed)?;
    connection.busy_timeout(limits::ORIGIN_BUSY_TIMEOUT).map_err(failed)?;
    let stop = stop.clone();
    connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || stop.is_stopped())).map_err(failed)?;
    // The first read is what takes the transaction's snapshot, and shows whether this is a database at all.
    connection.execute_batch("BEGIN").map_err(failed)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(failed)?;
    Ok(connection)
}

fn query_error(table: &str, error: &rusqlite::Error) -> OriginError {
    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
        return crate::stream::abandoned(table);
    }
    OriginError::Query { table: table.to_owned(), sqlstate: None, message: error.to_string() }
}

/// Prepares a query, which must read only and return columns, and binds its values.
fn prepare<'c>(
    connection: &'c Connection,
    table: &str,
    sql: &str,
    params: &[Value],
) -> Result<Statement<'c>, OriginError> {
    let mut statement = connection.prepare(sql).map_err(|error| query_error(table, &error))?;
    let columns = |reason: &str| OriginError::Columns { table: table.to_owned(), reason: reason.to_owned() };
    if statement.column_count() == 0 {
        return Err(columns("its query returns no columns"));
    }
    if !statement.readonly() {
        return Err(columns("its query writes; a load only reads"));
    }
    bind(&mut statement, table, params)?;
    Ok(statement)
}

/// Binds values in order: `?` and names by their first appearance, `?2` and `$2` by their number.
fn bind(statement: &mut Statement<'_>, table: &str, params: &[Value]) -> Result<(), OriginError> {
    let places = (1..=statement.parameter_count()).map(|at| place_of(statement, at)).collect::<Vec<_>>();
    let expected = places.iter().max().map_or(0, |most| *most);
    let wrong = OriginError::Parameters { table: table.to_owned(), expected, given: params.len() };
    if expected != params.len() {
        return Err(wrong);
    }
    for (at, place) in places.into_iter().enumerate() {
        let value = place.checked_sub(1).and_then(|p| params.get(p)).ok_or_else(|| wrong.clone())?;
        statement.raw_bind_parameter(at + 1, stored(value)).map_err(|error| query_error(table, &error))?;
    }
    Ok(())
}

/// Which of the values, from 1, SQLite's parameter `at` takes.
fn place_of(statement: &Statement<'_>, at: usize) -> usize {
    let number = statement.parameter_name(at).and_then(|name| name.get(1..)?.parse().ok());
    number.unwrap_or(at)
}

/// A value as SQLite stores such values. A decimal that neither of its number types holds is bound as text, which a column
/// of numeric affinity compares as a number.
fn stored(value: &Value) -> Stored {
    match value {
        Value::Null => Stored::Null,
        Value::Boolean(v) => Stored::Integer(i64::from(*v)),
        Value::Real(v) => Stored::Real(f64::from(*v)),
        Value::Double(v) => Stored::Real(*v),
        Value::Bytea(bytes) => Stored::Blob(bytes.to_vec()),
        Value::Decimal(decimal) => match decimal.to_i64() {
            Some(integer) => Stored::Integer(integer),
            None => {
                let double = decimal.to_f64();
                let exact = cachesql_types::Decimal::parse(&double.to_string()) == Some(*decimal);
                if exact { Stored::Real(double) } else { Stored::Text(decimal.to_string()) }
            }
        },
        _ => match value.as_i64() {
            Some(integer) => Stored::Integer(integer),
            None => Stored::Text(value.to_text()),
        },
    }
}
