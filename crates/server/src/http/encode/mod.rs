//! Rows as bytes: JSON, NDJSON, CSV and Arrow streams, whole or in chunks.

mod arrow;
mod csv;
pub(crate) mod json;
mod rows;

pub(crate) use arrow::ArrowEncoder;
#[cfg(test)]
pub(crate) use csv::write_field as write_csv_field;
pub(crate) use json::JsonStyle;
pub(crate) use rows::{Layout, RowEncoder};

use std::sync::Arc;

use arrow_array::RecordBatch;
use cachesql_node::{ColumnInfo, DirectRows};
use cachesql_types::limits;

use super::failure::Failure;

/// Turns rows into the bytes of one media type.
pub(crate) enum Encoder {
    /// Text, row by row.
    Rows(RowEncoder),
    /// An Arrow IPC stream, batch by batch.
    Arrow(Box<ArrowEncoder>),
}

impl Encoder {
    /// Text in a layout.
    pub(crate) fn rows(columns: &Arc<[ColumnInfo]>, layout: Layout, style: JsonStyle) -> Encoder {
        Encoder::Rows(RowEncoder::new(columns, layout, style))
    }

    /// An Arrow stream.
    pub(crate) fn arrow(columns: &[ColumnInfo]) -> Result<Encoder, Failure> {
        Ok(Encoder::Arrow(Box::new(ArrowEncoder::new(columns)?)))
    }

    /// Marks columns that are sent as text whatever their type; an Arrow stream has its types and ignores it.
    pub(crate) fn with_text_columns(mut self, as_text: &[bool]) -> Encoder {
        if let Encoder::Rows(encoder) = &mut self {
            encoder.set_text_columns(as_text);
        }
        self
    }

    /// Bytes that so many rows are likely to take, within what one answer may take whole.
    pub(crate) fn capacity(&self, rows: usize) -> usize {
        let row = match self {
            Encoder::Rows(encoder) => encoder.row_bytes(),
            Encoder::Arrow(_) => 64,
        };
        row.saturating_mul(rows).saturating_add(64).min(limits::HTTP_WHOLE_BYTES + limits::HTTP_CHUNK_BYTES)
    }

    /// Appends what stands before the first row.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        match self {
            Encoder::Rows(encoder) => encoder.begin(out),
            Encoder::Arrow(encoder) => encoder.take(out),
        }
    }

    /// Appends rows from position `from` on until `until` bytes are there or the rows are at an end; the position after
    /// the last one.
    pub(crate) fn direct(
        &mut self,
        out: &mut Vec<u8>,
        rows: &DirectRows,
        from: usize,
        until: usize,
    ) -> Result<usize, Failure> {
        match self {
            Encoder::Rows(encoder) => Ok(encoder.direct(out, rows, from, until)),
            Encoder::Arrow(encoder) => encoder.direct(out, rows, from),
        }
    }

    /// Appends rows of a batch likewise.
    pub(crate) fn batch(
        &mut self,
        out: &mut Vec<u8>,
        batch: &RecordBatch,
        from: usize,
        until: usize,
    ) -> Result<usize, Failure> {
        match self {
            Encoder::Rows(encoder) => Ok(encoder.batch(out, batch, from, until)),
            Encoder::Arrow(encoder) => {
                encoder.batch(out, batch)?;
                Ok(batch.num_rows())
            }
        }
    }

    /// Appends what stands after the last row.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        match self {
            Encoder::Rows(encoder) => encoder.end(out),
            Encoder::Arrow(encoder) => encoder.end(out)?,
        }
        Ok(())
    }
}
