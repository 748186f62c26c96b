//! Operations as bytes, for logs and peers. Every tag is in this file; none ever changes its meaning.
//!
//! A list of operations is a version byte, a count, and the operations. Counts, lengths and unsigned numbers are LEB128;
//! fixed-width numbers are little-endian. Decoding trusts nothing: lengths are checked against what is left before anything is
//! allocated, so that memory is bounded by the input's size, and hostile bytes are an error.

mod batch;
mod piece;
mod read;
mod write;

pub(crate) use self::piece::Piece;
pub use self::read::{DecodeError, decode_values};
pub use self::write::encode_values;

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use cachesql_types::{Column, DataType, arrow_field};

use crate::cell::Cell;
use crate::operation::Operation;
use crate::row::Row;
use crate::rows::build::{Layout, array_of};

/// Version of the whole format.
const VERSION: u8 = 1;

/// Tags of operations.
mod operation_tag {
    pub(super) const CREATE_TABLE: u8 = 1;
    pub(super) const DROP_TABLE: u8 = 2;
    pub(super) const CREATE_INDEX: u8 = 3;
    pub(super) const DROP_INDEX: u8 = 4;
    pub(super) const PUT_INSERT: u8 = 5;
    pub(super) const PUT_UPSERT: u8 = 6;
    pub(super) const DELETE: u8 = 7;
    pub(super) const TRUNCATE: u8 = 8;
    pub(super) const COMPACT: u8 = 9;
    pub(super) const SET_RETENTION: u8 = 10;
    pub(super) const BEGIN_LOAD: u8 = 11;
    pub(super) const LOAD_ROWS: u8 = 12;
    pub(super) const FINISH_LOAD: u8 = 13;
    pub(super) const ABANDON_LOAD: u8 = 14;
}

/// Tags of the pieces of a snapshot's image.
mod piece_tag {
    pub(super) const TABLE: u8 = 1;
    pub(super) const ROWS: u8 = 2;
    pub(super) const NUMBERED_ROWS: u8 = 3;
    pub(super) const LOAD: u8 = 4;
    pub(super) const END: u8 = 5;
}

/// Tags of values, and of the types of columns. A boolean value's tag says which it is.
mod value_tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const SMALLINT: u8 = 3;
    pub(super) const INTEGER: u8 = 4;
    pub(super) const BIGINT: u8 = 5;
    pub(super) const REAL: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const DECIMAL: u8 = 8;
    pub(super) const TEXT: u8 = 9;
    pub(super) const BYTEA: u8 = 10;
    pub(super) const DATE: u8 = 11;
    pub(super) const TIME: u8 = 12;
    pub(super) const TIMESTAMP: u8 = 13;
    pub(super) const TIMESTAMPTZ: u8 = 14;
    pub(super) const UUID: u8 = 15;
    pub(super) const JSON: u8 = 16;
    /// As the type of a column only.
    pub(super) const BOOLEAN: u8 = 17;
}

/// Tags of row keys.
mod key_tag {
    pub(super) const COLUMNS: u8 = 1;
    pub(super) const NUMBER: u8 = 2;
}

/// Bits that are set where something optional is present or true.
mod flag {
    pub(super) const NULLABLE: u8 = 1;
    pub(super) const UNIQUE: u8 = 1;
    pub(super) const TTL: u8 = 1;
    pub(super) const MAX_ROWS: u8 = 2;
    pub(super) const NULLS: u8 = 1;
}

fn type_tag(data_type: DataType) -> u8 {
    match data_type {
        DataType::Boolean => value_tag::BOOLEAN,
        DataType::SmallInt => value_tag::SMALLINT,
        DataType::Integer => value_tag::INTEGER,
        DataType::BigInt => value_tag::BIGINT,
        DataType::Real => value_tag::REAL,
        DataType::Double => value_tag::DOUBLE,
        DataType::Decimal { .. } => value_tag::DECIMAL,
        DataType::Text => value_tag::TEXT,
        DataType::Bytea => value_tag::BYTEA,
        DataType::Date => value_tag::DATE,
        DataType::Time => value_tag::TIME,
        DataType::Timestamp => value_tag::TIMESTAMP,
        DataType::TimestampTz => value_tag::TIMESTAMPTZ,
        DataType::Uuid => value_tag::UUID,
        DataType::Json => value_tag::JSON,
    }
}

impl Operation {
    /// Operations as bytes.
    pub fn encode(operations: &[Operation]) -> Vec<u8> {
        let mut out = vec![VERSION];
        write::count(&mut out, operations.len());
        for operation in operations {
            write::operation(&mut out, operation);
        }
        out
    }

    /// Reads what `encode` wrote. Bytes of any other origin are an error, at worst an odd list of operations: never a panic,
    /// never more memory than some multiple of the input.
    pub fn decode(bytes: &[u8]) -> Result<Vec<Operation>, DecodeError> {
        let mut reader = read::Reader::new(bytes)?;
        let operations = reader.list(read::Reader::operation)?;
        reader.end()?;
        Ok(operations)
    }
}

/// Rows of these columns as bytes, whatever layout the batch has them in. A column that holds no such type is all NULL.
pub fn encode_rows(columns: &[Column], batch: &RecordBatch) -> Vec<u8> {
    let plain = columns.iter().zip(batch.columns()).map(|(column, array)| {
        let cells = (0..array.len()).map(|row| Cell::of_array(array.as_ref(), column.data_type, row));
        array_of(column.data_type, Layout::Plain, cells)
    });
    let schema = Arc::new(Schema::new(columns.iter().map(arrow_field).collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let plain = RecordBatch::try_new_with_options(schema, plain.collect(), &options);
    let mut out = vec![VERSION];
    // Columns and arrays were made of each other.
    batch::write(&mut out, &plain.unwrap_or_else(|_| RecordBatch::new_empty(Arc::new(Schema::empty()))));
    out
}

/// Reads what [`encode_rows`] wrote, in the layout of `cachesql_types::arrow_type`.
pub fn decode_rows(bytes: &[u8]) -> Result<RecordBatch, DecodeError> {
    let mut reader = read::Reader::new(bytes)?;
    let batch = batch::read(&mut reader)?;
    reader.end()?;
    Ok(batch)
}

/// A row as bytes that tell it from every other row of its table.
pub(crate) fn row_bytes(row: &Row<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for column in 0..row.columns() {
        let cell: Cell<'_> = row.cell(column);
        write::cell(&mut out, cell);
    }
    out
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
