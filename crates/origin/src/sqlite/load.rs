//! Rows of a query on SQLite, as batches.

use cachesql_types::{Column, Value};
use rusqlite::Connection;

use crate::batch::{BatchBuilder, schema_of, value_error};
use crate::error::OriginError;
use crate::origin::OriginConfig;
use crate::source::TableQuery;
use crate::sqlite::types::{shown_value, stored_bytes, value_of};
use crate::sqlite::{Stop, StopOnDrop, on_thread, open, prepare, query_error};
use crate::stream::{BatchSender, BatchStream, abandoned, batch_queue, run_blocking};
use crate::url::SqliteLocation;

/// Starts the query and answers with its rows to be.
pub(crate) async fn load(
    config: &OriginConfig,
    location: &SqliteLocation,
    query: &TableQuery,
    sql: &str,
    params: &[Value],
    columns: &[Column],
) -> Result<BatchStream, OriginError> {
    let table = query.table.clone();
    let stop = Stop::default();
    let connection = {
        let stop = stop.clone();
        let (config, location, table, wanted) = (config.clone(), location.clone(), table.clone(), columns.to_vec());
        let (sql, params) = (sql.to_owned(), params.to_vec());
        on_thread(&query.table, move || {
            let connection = open(&config, &location, &stop)?;
            check(&connection, &table, &sql, &params, &wanted)?;
            Ok(connection)
        })
        .await?
    };
    let (sender, stream) = batch_queue(&table, schema_of(columns));
    let (sql, params, columns) = (sql.to_owned(), params.to_vec(), columns.to_vec());
    run_blocking(table.clone(), sender, StopOnDrop(stop), move |sender| {
        fetch(&connection, &table, &sql, &params, &columns, sender)
    });
    Ok(stream)
}

fn check(
    connection: &Connection,
    table: &str,
    sql: &str,
    params: &[Value],
    wanted: &[Column],
) -> Result<(), OriginError> {
    let statement = prepare(connection, table, sql, params)?;
    if statement.column_names().eq(wanted.iter().map(|c| c.name.as_str())) {
        return Ok(());
    }
    let reason = "its query returns other columns than when it was described".to_owned();
    Err(OriginError::Columns { table: table.to_owned(), reason })
}

fn fetch(
    connection: &Connection,
    table: &str,
    sql: &str,
    params: &[Value],
    columns: &[Column],
    sender: &BatchSender,
) -> Result<(), OriginError> {
    let failed = |error: rusqlite::Error| query_error(table, &error);
    let mut statement = prepare(connection, table, sql, params)?;
    let mut rows = statement.raw_query();
    let mut batch = BatchBuilder::new(table, columns);
    while let Some(row) = rows.next().map_err(failed)? {
        let mut bytes = 0;
        let place = batch.row_number();
        for (at, (builder, column)) in batch.builders.iter_mut().zip(columns).enumerate() {
            let stored = row.get_ref(at).map_err(failed)?;
            bytes += stored_bytes(stored);
            let refused = |reason| value_error(table, column, &shown_value(stored), format!("row {place}"), reason);
            let value = value_of(stored, column.data_type).map_err(refused)?;
            if !builder.push(&value) {
                return Err(refused("values of its type are not converted"));
            }
        }
        batch.end_row(bytes);
        if batch.is_full() {
            sender.blocking_send(batch.take()?).map_err(|_| abandoned(table))?;
        }
    }
    if !batch.is_empty() {
        sender.blocking_send(batch.take()?).map_err(|_| abandoned(table))?;
    }
    Ok(())
}
