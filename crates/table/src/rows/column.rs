//! One column of a sealed chunk.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, BooleanBufferBuilder,
    FixedSizeBinaryArray, GenericByteArray, GenericByteBuilder, PrimitiveArray, StringArray, StringViewArray,
    UInt8Array, UInt16Array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes as at;
use arrow::datatypes::{BinaryType, ByteArrayType, Utf8Type};
use cachesql_types::{DataType, Decimal, arrow_type};

use crate::cell::Cell;

/// The values of one column, in buffers that nothing else shares.
///
/// Numbers and times are as scans present them, and cost a scan nothing. Text is kept compactly (a view takes 16 bytes, most
/// texts here less than that) and presented as views over the same bytes; where few texts repeat it is a dictionary.
#[derive(Debug)]
pub(crate) enum Column {
    Boolean(BooleanArray),
    SmallInt(PrimitiveArray<at::Int16Type>),
    Integer(PrimitiveArray<at::Int32Type>),
    BigInt(PrimitiveArray<at::Int64Type>),
    Real(PrimitiveArray<at::Float32Type>),
    Double(PrimitiveArray<at::Float64Type>),
    Decimal(PrimitiveArray<at::Decimal128Type>, u8),
    Date(PrimitiveArray<at::Date32Type>),
    Time(PrimitiveArray<at::Time64MicrosecondType>),
    Timestamp(PrimitiveArray<at::TimestampMicrosecondType>),
    TimestampTz(PrimitiveArray<at::TimestampMicrosecondType>),
    Uuid(FixedSizeBinaryArray),
    Text(StringArray),
    Json(StringArray),
    Bytea(BinaryArray),
    /// At most 256 different texts.
    Dictionary8(UInt8Array, StringArray),
    Dictionary16(UInt16Array, StringArray),
}

impl Column {
    /// Copies one column out of arrays of the `types::arrow_type` layout; they are joined in order.
    pub(crate) fn seal(data_type: DataType, parts: &[ArrayRef]) -> Column {
        match data_type {
            DataType::Boolean => Column::Boolean(join_booleans(parts)),
            DataType::SmallInt => Column::SmallInt(join(parts)),
            DataType::Integer => Column::Integer(join(parts)),
            DataType::BigInt => Column::BigInt(join(parts)),
            DataType::Real => Column::Real(join(parts)),
            DataType::Double => Column::Double(join(parts)),
            DataType::Decimal { scale, .. } => {
                Column::Decimal(join::<at::Decimal128Type>(parts).with_data_type(arrow_type(data_type)), scale)
            }
            DataType::Date => Column::Date(join(parts)),
            DataType::Time => Column::Time(join(parts)),
            DataType::Timestamp => Column::Timestamp(join(parts)),
            DataType::TimestampTz => {
                Column::TimestampTz(join::<at::TimestampMicrosecondType>(parts).with_data_type(arrow_type(data_type)))
            }
            DataType::Uuid => Column::Uuid(join_uuids(parts)),
            DataType::Text => dictionary(parts).unwrap_or_else(|| Column::Text(join_bytes::<Utf8Type>(parts))),
            DataType::Json => Column::Json(join_bytes::<Utf8Type>(parts)),
            DataType::Bytea => Column::Bytea(join_bytes::<BinaryType>(parts)),
        }
    }

    /// One field; the row must be within the chunk.
    #[inline]
    pub(crate) fn cell(&self, row: usize) -> Cell<'_> {
        macro_rules! primitive {
            ($array:expr, $variant:ident) => {
                if $array.is_null(row) { Cell::Null } else { Cell::$variant($array.value(row)) }
            };
        }
        match self {
            Column::Boolean(a) => primitive!(a, Boolean),
            Column::SmallInt(a) => primitive!(a, SmallInt),
            Column::Integer(a) => primitive!(a, Integer),
            Column::BigInt(a) => primitive!(a, BigInt),
            Column::Real(a) => primitive!(a, Real),
            Column::Double(a) => primitive!(a, Double),
            Column::Date(a) => primitive!(a, Date),
            Column::Time(a) => primitive!(a, Time),
            Column::Timestamp(a) => primitive!(a, Timestamp),
            Column::TimestampTz(a) => primitive!(a, TimestampTz),
            Column::Text(a) => primitive!(a, Text),
            Column::Json(a) => primitive!(a, Json),
            Column::Bytea(a) => primitive!(a, Bytea),
            Column::Decimal(a, _) if a.is_null(row) => Cell::Null,
            Column::Decimal(a, scale) => Cell::Decimal(Decimal { unscaled: a.value(row), scale: *scale }),
            Column::Uuid(a) if a.is_null(row) => Cell::Null,
            Column::Uuid(a) => <[u8; 16]>::try_from(a.value(row)).map_or(Cell::Null, Cell::Uuid),
            Column::Dictionary8(codes, _) if codes.is_null(row) => Cell::Null,
            Column::Dictionary8(codes, texts) => Cell::Text(texts.value(usize::from(codes.value(row)))),
            Column::Dictionary16(codes, _) if codes.is_null(row) => Cell::Null,
            Column::Dictionary16(codes, texts) => Cell::Text(texts.value(usize::from(codes.value(row)))),
        }
    }

    /// The buffer that a look at a row begins with, and the bits that each row takes in it: values, codes, or the ends of texts.
    pub(crate) fn first_buffer(&self) -> (&Buffer, usize) {
        match self {
            Column::Boolean(a) => (a.values().inner(), 1),
            Column::SmallInt(a) => (a.values().inner(), 16),
            Column::Integer(a) => (a.values().inner(), 32),
            Column::BigInt(a) => (a.values().inner(), 64),
            Column::Real(a) => (a.values().inner(), 32),
            Column::Double(a) => (a.values().inner(), 64),
            Column::Decimal(a, _) => (a.values().inner(), 128),
            Column::Date(a) => (a.values().inner(), 32),
            Column::Time(a) => (a.values().inner(), 64),
            Column::Timestamp(a) | Column::TimestampTz(a) => (a.values().inner(), 64),
            Column::Uuid(a) => (a.values(), 128),
            Column::Text(a) | Column::Json(a) => (a.offsets().inner().inner(), 32),
            Column::Bytea(a) => (a.offsets().inner().inner(), 32),
            Column::Dictionary8(codes, _) => (codes.values().inner(), 8),
            Column::Dictionary16(codes, _) => (codes.values().inner(), 16),
        }
    }

    /// The column as scans present it. Only views and dictionary look-ups are made anew; no text is copied.
    pub(crate) fn present(&self) -> ArrayRef {
        match self {
            Column::Boolean(a) => Arc::new(a.clone()),
            Column::SmallInt(a) => Arc::new(a.clone()),
            Column::Integer(a) => Arc::new(a.clone()),
            Column::BigInt(a) => Arc::new(a.clone()),
            Column::Real(a) => Arc::new(a.clone()),
            Column::Double(a) => Arc::new(a.clone()),
            Column::Decimal(a, _) => Arc::new(a.clone()),
            Column::Date(a) => Arc::new(a.clone()),
            Column::Time(a) => Arc::new(a.clone()),
            Column::Timestamp(a) | Column::TimestampTz(a) => Arc::new(a.clone()),
            Column::Uuid(a) => Arc::new(a.clone()),
            Column::Text(a) | Column::Json(a) => Arc::new(StringViewArray::from(a)),
            Column::Bytea(a) => Arc::new(arrow::array::BinaryViewArray::from(a)),
            Column::Dictionary8(codes, texts) => spread(codes, texts),
            Column::Dictionary16(codes, texts) => spread(codes, texts),
        }
    }

    /// The column in the layout of `types::arrow_type`, as loads carry it.
    pub(crate) fn plain(&self) -> ArrayRef {
        match self {
            Column::Text(a) | Column::Json(a) => Arc::new(a.clone()),
            Column::Bytea(a) => Arc::new(a.clone()),
            Column::Dictionary8(codes, texts) => look_up(texts, codes),
            Column::Dictionary16(codes, texts) => look_up(texts, codes),
            _ => self.present(),
        }
    }

    /// Bytes of the column's buffers and of itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Column::Boolean(a) => a.get_array_memory_size(),
            Column::SmallInt(a) => a.get_array_memory_size(),
            Column::Integer(a) => a.get_array_memory_size(),
            Column::BigInt(a) => a.get_array_memory_size(),
            Column::Real(a) => a.get_array_memory_size(),
            Column::Double(a) => a.get_array_memory_size(),
            Column::Decimal(a, _) => a.get_array_memory_size(),
            Column::Date(a) => a.get_array_memory_size(),
            Column::Time(a) => a.get_array_memory_size(),
            Column::Timestamp(a) | Column::TimestampTz(a) => a.get_array_memory_size(),
            Column::Uuid(a) => a.get_array_memory_size(),
            Column::Text(a) | Column::Json(a) => a.get_array_memory_size(),
            Column::Bytea(a) => a.get_array_memory_size(),
            Column::Dictionary8(codes, texts) => codes.get_array_memory_size() + texts.get_array_memory_size(),
            Column::Dictionary16(codes, texts) => codes.get_array_memory_size() + texts.get_array_memory_size(),
        }
    }
}

/// Looks each code's text up, as a view.
fn spread(codes: &dyn Array, texts: &StringArray) -> ArrayRef {
    look_up(&StringViewArray::from(texts), codes)
}

fn look_up(texts: &dyn Array, codes: &dyn Array) -> ArrayRef {
    // Codes are within the dictionary, and a chunk's texts within 2 GiB, so the kernel has no reason to fail.
    take(texts, codes, None).unwrap_or_else(|_| arrow::array::new_null_array(texts.data_type(), codes.len()))
}

fn rows_of(parts: &[ArrayRef]) -> usize {
    parts.iter().map(|p| p.len()).sum()
}

/// The validity of all parts; `None` when nothing is NULL.
fn join_nulls(parts: &[ArrayRef]) -> Option<NullBuffer> {
    if parts.iter().all(|p| p.null_count() == 0) {
        return None;
    }
    let mut builder = BooleanBufferBuilder::new(rows_of(parts));
    for part in parts {
        match part.nulls() {
            Some(nulls) => builder.append_buffer(nulls.inner()),
            None => builder.append_n(part.len(), true),
        }
    }
    Some(NullBuffer::new(builder.finish()))
}

fn join<T: ArrowPrimitiveType>(parts: &[ArrayRef]) -> PrimitiveArray<T> {
    let mut values: Vec<T::Native> = Vec::with_capacity(rows_of(parts));
    for part in parts {
        values.extend_from_slice(part.as_primitive::<T>().values());
    }
    PrimitiveArray::new(ScalarBuffer::from(values), join_nulls(parts))
}

fn join_booleans(parts: &[ArrayRef]) -> BooleanArray {
    let mut builder = BooleanBufferBuilder::new(rows_of(parts));
    for part in parts {
        builder.append_buffer(part.as_boolean().values());
    }
    let values: BooleanBuffer = builder.finish();
    BooleanArray::new(values, join_nulls(parts))
}

fn join_uuids(parts: &[ArrayRef]) -> FixedSizeBinaryArray {
    let mut bytes: Vec<u8> = Vec::with_capacity(rows_of(parts) * 16);
    for part in parts {
        let part = part.as_fixed_size_binary();
        (0..part.len()).for_each(|row| bytes.extend_from_slice(part.value(row)));
    }
    FixedSizeBinaryArray::new(16, Buffer::from_vec(bytes), join_nulls(parts))
}

fn join_bytes<T: ByteArrayType<Offset = i32>>(parts: &[ArrayRef]) -> GenericByteArray<T> {
    let length = |array: &GenericByteArray<T>| {
        let offsets = array.value_offsets();
        usize::try_from(offsets.last().unwrap_or(&0) - offsets.first().unwrap_or(&0)).unwrap_or(0)
    };
    let bytes = parts.iter().map(|p| length(p.as_bytes::<T>())).sum();
    let mut builder = GenericByteBuilder::<T>::with_capacity(rows_of(parts), bytes);
    for part in parts {
        part.as_bytes::<T>().iter().for_each(|v| builder.append_option(v));
    }
    builder.finish()
}

/// Rows after which it is plain whether texts repeat.
const SAMPLE_ROWS: usize = 1_024;

/// The texts as a dictionary, when that is smaller.
fn dictionary(parts: &[ArrayRef]) -> Option<Column> {
    let rows = rows_of(parts);
    let mut codes: Vec<u16> = Vec::with_capacity(rows);
    let mut known: HashMap<&str, u16> = HashMap::new();
    let (mut plain, mut distinct) = (0, 0);
    let mut texts: Vec<&str> = Vec::new();
    for text in parts.iter().flat_map(|p| p.as_string::<i32>().iter()) {
        let text = text.unwrap_or("");
        plain += text.len() + 4;
        let next = u16::try_from(texts.len()).ok()?;
        let code = *known.entry(text).or_insert(next);
        if code == next {
            texts.push(text);
            distinct += text.len() + 4;
        }
        codes.push(code);
        if codes.len() == SAMPLE_ROWS && texts.len() > SAMPLE_ROWS * 9 / 10 {
            return None;
        }
    }
    let code_bytes = if texts.len() <= 256 { 1 } else { 2 };
    if rows == 0 || distinct + rows * code_bytes >= plain {
        return None;
    }
    let bytes = texts.iter().map(|t| t.len()).sum();
    let mut builder = GenericByteBuilder::<Utf8Type>::with_capacity(texts.len(), bytes);
    texts.iter().for_each(|t| builder.append_value(t));
    let (texts, nulls) = (builder.finish(), join_nulls(parts));
    if code_bytes == 1 {
        let codes: Vec<u8> = codes.iter().map(|c| u8::try_from(*c).unwrap_or(0)).collect();
        return Some(Column::Dictionary8(UInt8Array::new(ScalarBuffer::from(codes), nulls), texts));
    }
    Some(Column::Dictionary16(UInt16Array::new(ScalarBuffer::from(codes), nulls), texts))
}
