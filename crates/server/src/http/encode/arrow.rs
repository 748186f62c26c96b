//! Rows as an Arrow IPC stream (`application/vnd.apache.arrow.stream`).
//!
//! Columns are laid out as `types::arrow_schema` says (plain Utf8 and Binary), whatever the engine computes in: not every
//! reader knows view and dictionary arrays.

use std::sync::Arc;

use arrow::compute::cast;
use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, RecordBatchOptions, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use cachesql_node::{Cell, ColumnInfo, DirectRows};
use cachesql_types::{Column, DataType, arrow_field, limits};

use crate::http::failure::Failure;

/// Writes record batches.
pub(crate) struct ArrowEncoder {
    schema: SchemaRef,
    types: Vec<DataType>,
    writer: StreamWriter<Vec<u8>>,
}

impl ArrowEncoder {
    /// An encoder for rows of these columns.
    pub(crate) fn new(columns: &[ColumnInfo]) -> Result<ArrowEncoder, Failure> {
        let fields = columns
            .iter()
            .map(|c| arrow_field(&Column { name: c.name.clone(), data_type: c.data_type, nullable: true }));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(refused)?;
        Ok(ArrowEncoder { schema, types: columns.iter().map(|c| c.data_type).collect(), writer })
    }

    /// Moves what is written so far to `out`.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        out.append(self.writer.get_mut());
    }

    /// Appends one batch of the rows from a position on; the position after the last.
    pub(crate) fn direct(&mut self, out: &mut Vec<u8>, rows: &DirectRows, from: usize) -> Result<usize, Failure> {
        let until = rows.len().min(from.saturating_add(limits::CHUNK_ROWS));
        if until <= from {
            return Ok(until);
        }
        let columns = self.types.iter().enumerate().map(|(column, data_type)| {
            let cells = (from..until).map(|row| rows.row(row).cell(column));
            array_of(*data_type, cells)
        });
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        self.write(out, columns, until.saturating_sub(from))?;
        Ok(until)
    }

    /// Appends a batch.
    pub(crate) fn batch(&mut self, out: &mut Vec<u8>, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = batch.columns().iter().zip(self.schema.fields()).map(|(array, field)| {
            if array.data_type() == field.data_type() { Ok(array.clone()) } else { cast(array, field.data_type()) }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        self.write(out, columns, batch.num_rows())
    }

    /// Appends the end of the stream.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.writer.finish().map_err(refused)?;
        self.take(out);
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>, columns: Vec<ArrayRef>, rows: usize) -> Result<(), Failure> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(refused)?;
        self.writer.write(&batch).map_err(refused)?;
        self.take(out);
        Ok(())
    }
}

fn refused(error: ArrowError) -> Failure {
    tracing::error!(%error, "an answer could not be written as Arrow");
    Failure::internal()
}

/// Builds an array of a type from cells of that type; other cells become NULL, which the callers' types rule out.
fn array_of<'a>(data_type: DataType, cells: impl Iterator<Item = Cell<'a>>) -> Result<ArrayRef, ArrowError> {
    macro_rules! primitive {
        ($array:ty, $cell:ident) => {
            cells.map(|cell| if let Cell::$cell(v) = cell { Some(v) } else { None }).collect::<$array>()
        };
    }
    Ok(match data_type {
        DataType::Boolean => Arc::new(primitive!(BooleanArray, Boolean)),
        DataType::SmallInt => Arc::new(primitive!(Int16Array, SmallInt)),
        DataType::Integer => Arc::new(primitive!(Int32Array, Integer)),
        DataType::BigInt => Arc::new(primitive!(Int64Array, BigInt)),
        DataType::Real => Arc::new(primitive!(Float32Array, Real)),
        DataType::Double => Arc::new(primitive!(Float64Array, Double)),
        DataType::Decimal { precision, scale } => {
            let values = cells.map(|cell| match cell {
                Cell::Decimal(v) => v.rescale(scale).map(|d| d.unscaled),
                _ => None,
            });
            let array: Decimal128Array = values.collect();
            Arc::new(array.with_precision_and_scale(precision, i8::try_from(scale).unwrap_or(i8::MAX))?)
        }
        DataType::Text | DataType::Json => {
            let mut builder = StringBuilder::new();
            for cell in cells {
                match cell {
                    Cell::Text(text) | Cell::Json(text) => builder.append_value(text),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Bytea => {
            let mut builder = BinaryBuilder::new();
            for cell in cells {
                match cell {
                    Cell::Bytea(bytes) => builder.append_value(bytes),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Date => Arc::new(primitive!(Date32Array, Date)),
        DataType::Time => Arc::new(primitive!(Time64MicrosecondArray, Time)),
        DataType::Timestamp => Arc::new(primitive!(TimestampMicrosecondArray, Timestamp)),
        DataType::TimestampTz => Arc::new(primitive!(TimestampMicrosecondArray, TimestampTz).with_timezone("UTC")),
        DataType::Uuid => {
            let mut builder = FixedSizeBinaryBuilder::new(16);
            for cell in cells {
                match cell {
                    Cell::Uuid(bytes) => builder.append_value(bytes)?,
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
    })
}
