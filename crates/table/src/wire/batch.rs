//! Batches of rows, column by column.
//!
//! Not Arrow IPC: its readers are made for files that one trusts, and allocate or panic as the lengths in them say. The layout of
//! columns is fixed here (`cachesql_types::arrow_type`), so that a batch is its columns' definitions and their buffers:
//! a bitmap of what is not NULL, if anything is; then values of fixed width, or ends of texts and the bytes of all of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, BooleanBufferBuilder, FixedSizeBinaryArray,
    GenericByteArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes as at;
use arrow::datatypes::{BinaryType, ByteArrayType, DataType as ArrowType, Schema, Utf8Type};
use cachesql_types::{Column, DataType, arrow_field, arrow_type, data_type_of};

use super::read::{DecodeError, Reader, malformed};
use super::{flag, write};
use crate::cell::Cell;
use crate::rows::build::{Layout, array_of};

type Result<T> = std::result::Result<T, DecodeError>;

/// Columns of a type that tables do not hold are written as text columns of NULLs: applying refuses the batch by its schema.
pub(super) fn write(out: &mut Vec<u8>, batch: &RecordBatch) {
    write::count(out, batch.num_rows());
    write::count(out, batch.num_columns());
    let schema = batch.schema();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        let data_type = data_type_of(field).unwrap_or(DataType::Text);
        write::bytes(out, field.name().as_bytes());
        write::data_type(out, data_type);
        out.push(if field.is_nullable() { flag::NULLABLE } else { 0 });
        if *array.data_type() == arrow_type(data_type) {
            write_array(out, data_type, array);
        } else {
            let cells = (0..array.len()).map(|row| Cell::of_array(array.as_ref(), data_type, row));
            write_array(out, data_type, &array_of(data_type, Layout::Plain, cells));
        }
    }
}

fn write_array(out: &mut Vec<u8>, data_type: DataType, array: &ArrayRef) {
    match array.nulls().filter(|n| n.null_count() > 0) {
        Some(nulls) => {
            out.push(flag::NULLS);
            write_bits(out, nulls.inner());
        }
        None => out.push(0),
    }
    match data_type {
        DataType::Boolean => write_bits(out, array.as_boolean().values()),
        DataType::SmallInt => write_values::<at::Int16Type>(out, array),
        DataType::Integer => write_values::<at::Int32Type>(out, array),
        DataType::BigInt => write_values::<at::Int64Type>(out, array),
        DataType::Real => write_values::<at::Float32Type>(out, array),
        DataType::Double => write_values::<at::Float64Type>(out, array),
        DataType::Decimal { .. } => write_values::<at::Decimal128Type>(out, array),
        DataType::Date => write_values::<at::Date32Type>(out, array),
        DataType::Time => write_values::<at::Time64MicrosecondType>(out, array),
        DataType::Timestamp | DataType::TimestampTz => write_values::<at::TimestampMicrosecondType>(out, array),
        DataType::Uuid => {
            let uuids = array.as_fixed_size_binary();
            (0..uuids.len()).for_each(|row| out.extend_from_slice(uuids.value(row)));
        }
        DataType::Text | DataType::Json => write_bytes::<Utf8Type>(out, array),
        DataType::Bytea => write_bytes::<BinaryType>(out, array),
    }
}

/// Whole bytes, the lowest bit first, whatever the buffer's offset.
fn write_bits(out: &mut Vec<u8>, bits: &BooleanBuffer) {
    let mut aligned = BooleanBufferBuilder::new(bits.len());
    aligned.append_buffer(bits);
    let length = bits.len().div_ceil(8);
    out.extend(aligned.as_slice().iter().take(length));
}

#[cfg(target_endian = "little")]
fn write_values<T: ArrowPrimitiveType>(out: &mut Vec<u8>, array: &ArrayRef) {
    out.extend_from_slice(array.as_primitive::<T>().values().inner().as_slice());
}

fn write_bytes<T: ByteArrayType<Offset = i32>>(out: &mut Vec<u8>, array: &ArrayRef) {
    let array = array.as_bytes::<T>();
    let first = array.value_offsets().first().copied().unwrap_or(0);
    for end in array.value_offsets().iter().skip(1) {
        out.extend_from_slice(&(end - first).to_le_bytes());
    }
    let last = array.value_offsets().last().copied().unwrap_or(0);
    let range = usize::try_from(first).unwrap_or(0)..usize::try_from(last).unwrap_or(0);
    write::bytes(out, array.value_data().get(range).unwrap_or_default());
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<RecordBatch> {
    let rows = reader.count()?;
    let columns = reader.list(|reader| {
        let column = reader.column()?;
        let array = read_array(reader, column.data_type, rows)?;
        if !column.nullable && array.null_count() > 0 {
            return Err(malformed("NULL in a column without NULLs"));
        }
        Ok((column, array))
    })?;
    let (columns, arrays): (Vec<Column>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(columns.iter().map(arrow_field).collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .map_err(|_| malformed("a batch that does not fit its schema"))
}

fn read_array(reader: &mut Reader<'_>, data_type: DataType, rows: usize) -> Result<ArrayRef> {
    let has_nulls = reader.flags(flag::NULLS)? == flag::NULLS;
    let nulls = if has_nulls { Some(NullBuffer::new(read_bits(reader, rows)?)) } else { None };
    Ok(match data_type {
        DataType::Boolean => {
            let values = read_bits(reader, rows)?;
            Arc::new(BooleanArray::new(values, nulls))
        }
        DataType::SmallInt => read_values::<at::Int16Type>(reader, data_type, rows, nulls)?,
        DataType::Integer => read_values::<at::Int32Type>(reader, data_type, rows, nulls)?,
        DataType::BigInt => read_values::<at::Int64Type>(reader, data_type, rows, nulls)?,
        DataType::Real => read_values::<at::Float32Type>(reader, data_type, rows, nulls)?,
        DataType::Double => read_values::<at::Float64Type>(reader, data_type, rows, nulls)?,
        DataType::Decimal { .. } => read_values::<at::Decimal128Type>(reader, data_type, rows, nulls)?,
        DataType::Date => read_values::<at::Date32Type>(reader, data_type, rows, nulls)?,
        DataType::Time => read_values::<at::Time64MicrosecondType>(reader, data_type, rows, nulls)?,
        DataType::Timestamp | DataType::TimestampTz => {
            read_values::<at::TimestampMicrosecondType>(reader, data_type, rows, nulls)?
        }
        DataType::Uuid => {
            let bytes = fixed(reader, rows, 16)?;
            let array = FixedSizeBinaryArray::try_new(16, Buffer::from(bytes), nulls);
            Arc::new(array.map_err(|_| malformed("a column of UUIDs"))?)
        }
        DataType::Text | DataType::Json => read_bytes::<Utf8Type>(reader, rows, nulls)?,
        DataType::Bytea => read_bytes::<BinaryType>(reader, rows, nulls)?,
    })
}

/// The bytes of `rows` values of a width, all of which must be there.
fn fixed<'a>(reader: &mut Reader<'a>, rows: usize, width: usize) -> Result<&'a [u8]> {
    reader.take(rows.checked_mul(width).ok_or(DecodeError::Truncated)?)
}

fn read_bits(reader: &mut Reader<'_>, rows: usize) -> Result<BooleanBuffer> {
    let bytes = reader.take(rows.div_ceil(8))?;
    Ok(BooleanBuffer::new(Buffer::from(bytes), 0, rows))
}

#[cfg(target_endian = "little")]
fn read_values<T: ArrowPrimitiveType>(
    reader: &mut Reader<'_>,
    data_type: DataType,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    // Copied into a buffer that is aligned for any type.
    let buffer = Buffer::from(fixed(reader, rows, size_of::<T::Native>())?);
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::new(buffer, 0, rows), nulls);
    let array = array.map_err(|_| malformed("a column of fixed width"))?;
    let wanted: ArrowType = arrow_type(data_type);
    Ok(Arc::new(array.with_data_type(wanted)))
}

fn read_bytes<T: ByteArrayType<Offset = i32>>(
    reader: &mut Reader<'_>,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let ends = fixed(reader, rows, 4)?;
    let mut offsets: Vec<i32> = Vec::with_capacity(rows + 1);
    offsets.push(0);
    let mut previous = 0;
    for end in ends.as_chunks::<4>().0 {
        let end = i32::from_le_bytes(*end);
        if end < previous {
            return Err(malformed("texts that end before they begin"));
        }
        previous = end;
        offsets.push(end);
    }
    let bytes = reader.bytes()?;
    if usize::try_from(previous) != Ok(bytes.len()) {
        return Err(malformed("texts that do not end with their bytes"));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let array = GenericByteArray::<T>::try_new(offsets, Buffer::from(bytes), nulls);
    Ok(Arc::new(array.map_err(|_| malformed("text that is not UTF-8"))?))
}
