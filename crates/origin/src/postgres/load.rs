//! Rows of a query on PostgreSQL, as batches.

use std::pin::pin;

use arrow::record_batch::RecordBatch;
use cachesql_types::{Column, Value};
use futures::TryStreamExt;
use tokio_postgres::Client;
use tokio_postgres::types::{FromSql, Type};

use crate::batch::{BatchBuilder, batch_of, schema_of, value_error};
use crate::convert::converted;
use crate::error::OriginError;
use crate::origin::OriginConfig;
use crate::postgres::PostgresUrl;
use crate::postgres::connect::{Session, query_error};
use crate::postgres::decode::{CopyReader, Fault, MalformedCopy, decode};
use crate::postgres::describe::{BEGIN, Prepared};
use crate::postgres::params::{Bound, fits_copy};
use crate::source::TableQuery;
use crate::stream::{BatchSender, BatchStream, abandoned, batch_queue};

/// Starts the query and answers with its rows to be.
pub(crate) async fn load(
    config: &OriginConfig,
    url: &PostgresUrl,
    query: &TableQuery,
    sql: &str,
    params: &[Value],
    columns: &[Column],
) -> Result<BatchStream, OriginError> {
    let session = Session::open(config, url).await?;
    let table = query.table.clone();
    let (prepared, rows) = match begin(&session.client, &table, sql, params, columns).await {
        Ok(begun) => begun,
        Err(error) => {
            session.roll_back().await;
            return Err(error);
        }
    };
    let params = params.to_vec();
    let (sender, stream) = batch_queue(&table, schema_of(columns));
    tokio::spawn(async move {
        let outcome = tokio::select! {
            outcome = fetch(&session, &table, &prepared, &params, rows, &sender) => outcome,
            () = sender.closed() => Err(abandoned(&table)),
        };
        match &outcome {
            Ok(()) => {
                sender.end(outcome).await;
                session.close().await;
            }
            // The server ended the statement itself, or is gone.
            Err(OriginError::Query { .. } | OriginError::Lost { .. }) => sender.end(outcome).await,
            // Before the error is told: whoever hears of it may rely on the statement being over.
            Err(_) => {
                session.cancel().await;
                sender.end(outcome).await;
            }
        }
    });
    Ok(stream)
}

async fn begin(
    client: &Client,
    table: &str,
    sql: &str,
    params: &[Value],
    columns: &[Column],
) -> Result<(Prepared, RowSink), OriginError> {
    client.batch_execute(BEGIN).await.map_err(|error| query_error(table, &error))?;
    let prepared = Prepared::new(client, table, sql, params).await?;
    let rows = RowSink::new(table, &prepared, columns)?;
    Ok((prepared, rows))
}

async fn fetch(
    session: &Session,
    table: &str,
    prepared: &Prepared,
    params: &[Value],
    mut rows: RowSink,
    sender: &BatchSender,
) -> Result<(), OriginError> {
    if params.is_empty() && fits_copy(&prepared.sql) {
        fetch_by_copy(session, table, prepared, &mut rows, sender).await?;
    } else {
        fetch_by_portal(session, table, prepared, params, &mut rows, sender).await?;
    }
    if let Some(batch) = rows.take()? {
        sender.send(batch).await.map_err(|_| abandoned(table))?;
    }
    session.client.batch_execute("COMMIT").await.map_err(|error| query_error(table, &error))
}

async fn fetch_by_copy(
    session: &Session,
    table: &str,
    prepared: &Prepared,
    rows: &mut RowSink,
    sender: &BatchSender,
) -> Result<(), OriginError> {
    // The line break ends a comment that the query may end with.
    let copy = format!("COPY ({}\n) TO STDOUT (FORMAT binary)", prepared.sql);
    let data = session.client.copy_out(&copy).await.map_err(|error| query_error(table, &error))?;
    let mut data = pin!(data);
    let mut reader = CopyReader::new(prepared.wire.len());
    while let Some(bytes) = data.try_next().await.map_err(|error| query_error(table, &error))? {
        reader.feed(&bytes, |fields| rows.push(fields.bytes(), fields)).map_err(|error| error.named(table))?;
        while let Some(batch) = rows.ready.pop_front() {
            sender.send(batch).await.map_err(|_| abandoned(table))?;
        }
    }
    if reader.is_complete() {
        return Ok(());
    }
    Err(OriginError::Lost { table: table.to_owned(), reason: "the rows ended early".to_owned() })
}

async fn fetch_by_portal(
    session: &Session,
    table: &str,
    prepared: &Prepared,
    params: &[Value],
    rows: &mut RowSink,
    sender: &BatchSender,
) -> Result<(), OriginError> {
    let bound: Vec<Bound<'_>> = params.iter().map(Bound).collect();
    let answer = session.client.query_raw(&prepared.statement, bound).await;
    let mut answer = pin!(answer.map_err(|error| query_error(table, &error))?);
    while let Some(row) = answer.try_next().await.map_err(|error| query_error(table, &error))? {
        let fields = (0..row.len()).map(|i| row.try_get::<_, Option<Raw<'_>>>(i).ok().flatten().map(|raw| raw.0));
        rows.push(row.raw_size_bytes(), fields).map_err(|error| error.named(table))?;
        while let Some(batch) = rows.ready.pop_front() {
            sender.send(batch).await.map_err(|_| abandoned(table))?;
        }
    }
    Ok(())
}

/// The bytes of a value, whatever its type.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Takes rows as the server sends them, and makes batches of the table's columns.
struct RowSink {
    table: String,
    // As the server sends them.
    sent: Vec<Column>,
    jsonb: Vec<bool>,
    builder: BatchBuilder,
    // As the table wants them.
    wanted: Vec<Column>,
    rows_before: u64,
    /// Batches that are full.
    ready: std::collections::VecDeque<RecordBatch>,
}

/// What can go wrong with a row.
enum RowError {
    Malformed,
    Origin(Box<OriginError>),
}

impl RowError {
    fn named(self, table: &str) -> OriginError {
        match self {
            RowError::Origin(error) => *error,
            RowError::Malformed => {
                let reason = "the server's rows are not in the format that it speaks of".to_owned();
                OriginError::Lost { table: table.to_owned(), reason }
            }
        }
    }
}

impl From<OriginError> for RowError {
    fn from(error: OriginError) -> RowError {
        RowError::Origin(Box::new(error))
    }
}

impl From<MalformedCopy> for RowError {
    fn from(_: MalformedCopy) -> RowError {
        RowError::Malformed
    }
}

impl RowSink {
    fn new(table: &str, prepared: &Prepared, wanted: &[Column]) -> Result<RowSink, OriginError> {
        let sent = prepared.columns();
        if !sent.iter().map(|c| &c.name).eq(wanted.iter().map(|c| &c.name)) {
            let reason = "its query returns other columns than when it was described".to_owned();
            return Err(OriginError::Columns { table: table.to_owned(), reason });
        }
        Ok(RowSink {
            table: table.to_owned(),
            jsonb: prepared.wire.iter().map(|wire| wire.jsonb).collect(),
            builder: BatchBuilder::new(table, &sent),
            sent,
            wanted: wanted.to_vec(),
            rows_before: 0,
            ready: std::collections::VecDeque::new(),
        })
    }

    fn push<'a>(&mut self, bytes: usize, fields: impl Iterator<Item = Option<&'a [u8]>>) -> Result<(), RowError> {
        let columns = self.builder.builders.iter_mut().zip(&self.jsonb);
        for (at, ((builder, jsonb), field)) in columns.zip(fields).enumerate() {
            match field {
                None => builder.push_null(),
                Some(bytes) => {
                    if let Err(fault) = decode(builder, *jsonb, bytes) {
                        return Err(self.refused(at, bytes.len(), fault).into());
                    }
                }
            }
        }
        self.builder.end_row(bytes);
        if self.builder.is_full() {
            let batch = self.take()?;
            self.ready.extend(batch);
        }
        Ok(())
    }

    #[cold]
    fn refused(&self, column: usize, length: usize, fault: Fault) -> OriginError {
        let place = format!("row {}", self.builder.row_number());
        let Some(column) = self.sent.get(column) else {
            return RowError::Malformed.named(&self.table);
        };
        match fault {
            Fault::NotHeld { value, reason } => value_error(&self.table, column, &value, place, reason),
            Fault::Malformed => {
                let value = format!("{length} bytes");
                value_error(&self.table, column, &value, place, "they are not a value of that type")
            }
        }
    }

    /// The rows so far, if there are any, in the types that are wanted.
    fn take(&mut self) -> Result<Option<RecordBatch>, OriginError> {
        if self.builder.is_empty() {
            return Ok(None);
        }
        let batch = self.builder.take()?;
        let rows = batch.num_rows();
        let columns = batch.columns().iter().zip(&self.sent).zip(&self.wanted);
        let arrays = columns
            .map(|((array, sent), wanted)| converted(&self.table, wanted, array, sent.data_type, self.rows_before))
            .collect::<Result<Vec<_>, _>>()?;
        let schema = schema_of(&self.wanted);
        let batch = batch_of(&self.table, &self.wanted, &schema, arrays, rows, self.rows_before)?;
        self.rows_before += rows as u64;
        Ok(Some(batch))
    }
}
