//! What one statement of a write came to, in a form that can be kept and answered again.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use cachesql_sql::{ColumnInfo, Returned, RowStream, Rows, SqlError};
use cachesql_table::{decode_rows, encode_rows};
use cachesql_types::{Column, DataType, arrow_field, data_type_of};
use futures::StreamExt as _;

use crate::entry::{EntryError, read_array, take};

/// The outcome of one statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Rows written; `None` for a read.
    pub(crate) affected: Option<u64>,
    rows: Option<HeldRows>,
}

/// Rows that hold no snapshot, so that keeping them keeps nothing else.
#[derive(Clone, Debug)]
struct HeldRows {
    columns: Arc<[ColumnInfo]>,
    batches: Vec<RecordBatch>,
}

impl Outcome {
    /// A write, with the rows that it was asked to answer.
    pub(crate) fn written(affected: u64, returning: Option<Returned>) -> Outcome {
        let rows = returning.map(|r| HeldRows { columns: r.columns, batches: vec![r.batch] });
        Outcome { affected: Some(affected), rows }
    }

    /// A read inside a batch of writes: its rows are read to the end before the batch is proposed, since a read that
    /// fails must fail the batch. More than `most_bytes` of them is an error.
    pub(crate) async fn read(rows: Rows, most_bytes: usize) -> Result<Outcome, SqlError> {
        let columns = rows.shared_columns();
        let batches = match rows {
            Rows::Direct(direct) => vec![direct.to_batch()?],
            Rows::Stream(stream) => collect(stream, most_bytes).await?,
        };
        Ok(Outcome { affected: None, rows: Some(HeldRows { columns, batches }) })
    }

    /// The columns of the rows; empty when there are none.
    pub(crate) fn columns(&self) -> Arc<[ColumnInfo]> {
        self.rows.as_ref().map(|rows| rows.columns.clone()).unwrap_or_default()
    }

    /// The rows to answer.
    pub(crate) fn rows(&self) -> Option<Rows> {
        let rows = self.rows.as_ref()?;
        Some(Rows::Stream(RowStream::of_batches(rows.columns.clone(), rows.batches.clone())))
    }
}

// The wire form of outcomes: their number in four bytes, then each. Numbers are little-endian.

/// It wrote rows; how many, in eight bytes.
const AFFECTED: u8 = 1;
/// It answers rows; the number of batches in four bytes, then each with its length in four. The first tells the columns.
const ROWS: u8 = 2;

impl Outcome {
    /// Outcomes as bytes, the same on every member.
    pub(crate) fn encode(outcomes: &[Outcome]) -> Bytes {
        let mut out = Vec::new();
        let count = |out: &mut Vec<u8>, n: usize| {
            out.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
        };
        count(&mut out, outcomes.len());
        for Outcome { affected, rows } in outcomes {
            out.push(affected.map_or(0, |_| AFFECTED) | rows.as_ref().map_or(0, |_| ROWS));
            affected.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
            let Some(HeldRows { columns, batches }) = rows else { continue };
            let column =
                |info: &ColumnInfo| Column { name: info.name.clone(), data_type: info.data_type, nullable: true };
            let columns: Vec<Column> = columns.iter().map(column).collect();
            let none =
                RecordBatch::new_empty(Arc::new(Schema::new(columns.iter().map(arrow_field).collect::<Vec<_>>())));
            let batches: Vec<&RecordBatch> = if batches.is_empty() { vec![&none] } else { batches.iter().collect() };
            count(&mut out, batches.len());
            for batch in batches {
                let bytes = encode_rows(&columns, batch);
                count(&mut out, bytes.len());
                out.extend_from_slice(&bytes);
            }
        }
        out.into()
    }

    /// Reads what [`Outcome::encode`] wrote.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Vec<Outcome>, EntryError> {
        let rest = &mut bytes;
        let mut outcomes = Vec::new();
        for _ in 0..u32::from_le_bytes(read_array(rest)?) {
            let [flags] = read_array(rest)?;
            let affected = if flags & AFFECTED == 0 { None } else { Some(u64::from_le_bytes(read_array(rest)?)) };
            let rows = if flags & ROWS == 0 { None } else { Some(HeldRows::decode(rest)?) };
            outcomes.push(Outcome { affected, rows });
        }
        Ok(outcomes)
    }
}

impl HeldRows {
    fn decode(rest: &mut &[u8]) -> Result<HeldRows, EntryError> {
        let mut batches = Vec::new();
        for _ in 0..u32::from_le_bytes(read_array(rest)?) {
            let length = u32::from_le_bytes(read_array(rest)?);
            let bytes = take(rest, usize::try_from(length).map_err(|_| EntryError::Truncated)?)?;
            batches.push(decode_rows(bytes)?);
        }
        let column = |field: &Arc<Field>| {
            let data_type = data_type_of(field).unwrap_or(DataType::Text);
            ColumnInfo { name: field.name().clone(), data_type }
        };
        let columns = batches.first().map(|batch| batch.schema().fields().iter().map(column).collect());
        Ok(HeldRows { columns: columns.unwrap_or_default(), batches })
    }
}

async fn collect(mut stream: RowStream, most_bytes: usize) -> Result<Vec<RecordBatch>, SqlError> {
    let mut batches = Vec::new();
    let mut bytes = 0_usize;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        bytes = bytes.saturating_add(batch.get_array_memory_size());
        if bytes > most_bytes {
            return Err(SqlError::Memory(format!("the rows of a read in a batch of writes pass {most_bytes} bytes")));
        }
        batches.push(batch);
    }
    Ok(batches)
}
