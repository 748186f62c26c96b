//! Columns under construction: values go in one by one, Arrow arrays come out in the layout that tables load.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, NullBufferBuilder, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};
use arrow::error::ArrowError;
use cachesql_types::{DataType, Value};

/// Values of a column; NULL has a place holder here and a bit in the builder.
pub(crate) enum Values {
    Boolean(Vec<bool>),
    SmallInt(Vec<i16>),
    Integer(Vec<i32>),
    BigInt(Vec<i64>),
    Real(Vec<f32>),
    Double(Vec<f64>),
    Decimal { values: Vec<i128>, precision: u8, scale: u8 },
    Text(Bytes),
    Json(Bytes),
    Bytea(Bytes),
    Date(Vec<i32>),
    Time(Vec<i64>),
    Timestamp(Vec<i64>),
    TimestampTz(Vec<i64>),
    Uuid(Vec<u8>),
}

/// Values of any length, end to end.
pub(crate) struct Bytes {
    data: Vec<u8>,
    // One more than there are values; the first is 0.
    offsets: Vec<i32>,
}

impl Bytes {
    fn new() -> Bytes {
        Bytes { data: Vec::new(), offsets: vec![0] }
    }

    pub(crate) fn push(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.end_value();
    }

    fn end_value(&mut self) {
        // A batch is closed long before this many bytes; see `BatchBuilder::is_full`.
        self.offsets.push(i32::try_from(self.data.len()).unwrap_or(i32::MAX));
    }

    fn finish(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let empty =
            Bytes { data: Vec::with_capacity(self.data.len()), offsets: Vec::with_capacity(self.offsets.len()) };
        let full = std::mem::replace(self, empty);
        self.offsets.push(0);
        (OffsetBuffer::new(ScalarBuffer::from(full.offsets)), Buffer::from_vec(full.data))
    }
}

/// One column under construction.
pub(crate) struct ColumnBuilder {
    pub(crate) values: Values,
    nulls: NullBufferBuilder,
}

impl ColumnBuilder {
    pub(crate) fn new(data_type: DataType) -> ColumnBuilder {
        let values = match data_type {
            DataType::Boolean => Values::Boolean(Vec::new()),
            DataType::SmallInt => Values::SmallInt(Vec::new()),
            DataType::Integer => Values::Integer(Vec::new()),
            DataType::BigInt => Values::BigInt(Vec::new()),
            DataType::Real => Values::Real(Vec::new()),
            DataType::Double => Values::Double(Vec::new()),
            DataType::Decimal { precision, scale } => Values::Decimal { values: Vec::new(), precision, scale },
            DataType::Text => Values::Text(Bytes::new()),
            DataType::Json => Values::Json(Bytes::new()),
            DataType::Bytea => Values::Bytea(Bytes::new()),
            DataType::Date => Values::Date(Vec::new()),
            DataType::Time => Values::Time(Vec::new()),
            DataType::Timestamp => Values::Timestamp(Vec::new()),
            DataType::TimestampTz => Values::TimestampTz(Vec::new()),
            DataType::Uuid => Values::Uuid(Vec::new()),
        };
        ColumnBuilder { values, nulls: NullBufferBuilder::new(cachesql_types::limits::LOAD_BATCH_ROWS) }
    }

    /// Marks the value just pushed into `values` as not NULL.
    pub(crate) fn mark_value(&mut self) {
        self.nulls.append_non_null();
    }

    pub(crate) fn push_null(&mut self) {
        match &mut self.values {
            Values::Boolean(v) => v.push(false),
            Values::SmallInt(v) => v.push(0),
            Values::Integer(v) | Values::Date(v) => v.push(0),
            Values::BigInt(v) | Values::Time(v) | Values::Timestamp(v) | Values::TimestampTz(v) => v.push(0),
            Values::Real(v) => v.push(0.0),
            Values::Double(v) => v.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Text(v) | Values::Json(v) | Values::Bytea(v) => v.end_value(),
            Values::Uuid(v) => v.extend_from_slice(&[0; 16]),
        }
        self.nulls.append_null();
    }

    /// Appends a value that is of the column's type, or NULL. False, and nothing is appended, when it is of another.
    #[must_use]
    pub(crate) fn push(&mut self, value: &Value) -> bool {
        match (&mut self.values, value) {
            (_, Value::Null) => {
                self.push_null();
                return true;
            }
            (Values::Boolean(v), Value::Boolean(x)) => v.push(*x),
            (Values::SmallInt(v), Value::SmallInt(x)) => v.push(*x),
            (Values::Integer(v), Value::Integer(x)) | (Values::Date(v), Value::Date(x)) => v.push(*x),
            (Values::BigInt(v), Value::BigInt(x))
            | (Values::Time(v), Value::Time(x))
            | (Values::Timestamp(v), Value::Timestamp(x))
            | (Values::TimestampTz(v), Value::TimestampTz(x)) => v.push(*x),
            (Values::Real(v), Value::Real(x)) => v.push(*x),
            (Values::Double(v), Value::Double(x)) => v.push(*x),
            (Values::Decimal { values, scale, .. }, Value::Decimal(x)) if x.scale == *scale => values.push(x.unscaled),
            (Values::Text(v), Value::Text(x)) | (Values::Json(v), Value::Json(x)) => v.push(x.as_bytes()),
            (Values::Bytea(v), Value::Bytea(x)) => v.push(x),
            (Values::Uuid(v), Value::Uuid(x)) => v.extend_from_slice(x),
            _ => return false,
        }
        self.nulls.append_non_null();
        true
    }

    /// Takes the array of what was pushed, leaving the builder empty. Fails when TEXT or JSON is not UTF-8.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, FinishError> {
        let nulls = self.nulls.finish();
        Ok(match &mut self.values {
            Values::Boolean(v) => Arc::new(BooleanArray::new(BooleanBuffer::from(taken(v)), nulls)),
            Values::SmallInt(v) => Arc::new(Int16Array::try_new(taken(v).into(), nulls)?),
            Values::Integer(v) => Arc::new(Int32Array::try_new(taken(v).into(), nulls)?),
            Values::BigInt(v) => Arc::new(Int64Array::try_new(taken(v).into(), nulls)?),
            Values::Real(v) => Arc::new(Float32Array::try_new(taken(v).into(), nulls)?),
            Values::Double(v) => Arc::new(Float64Array::try_new(taken(v).into(), nulls)?),
            Values::Decimal { values, precision, scale } => {
                let array = Decimal128Array::try_new(taken(values).into(), nulls)?;
                let scale = i8::try_from(*scale).unwrap_or(i8::MAX);
                Arc::new(array.with_precision_and_scale(*precision, scale)?)
            }
            Values::Text(v) | Values::Json(v) => {
                let (offsets, data) = v.finish();
                // The values are checked all at once here, not one by one as they come: that is far quicker.
                match StringArray::try_new(offsets.clone(), data.clone(), nulls) {
                    Ok(array) => Arc::new(array),
                    Err(error) => return Err(first_broken(&offsets, &data).unwrap_or_else(|| error.into())),
                }
            }
            Values::Bytea(v) => {
                let (offsets, data) = v.finish();
                Arc::new(BinaryArray::try_new(offsets, data, nulls)?)
            }
            Values::Date(v) => Arc::new(Date32Array::try_new(taken(v).into(), nulls)?),
            Values::Time(v) => Arc::new(Time64MicrosecondArray::try_new(taken(v).into(), nulls)?),
            Values::Timestamp(v) => Arc::new(TimestampMicrosecondArray::try_new(taken(v).into(), nulls)?),
            Values::TimestampTz(v) => {
                Arc::new(TimestampMicrosecondArray::try_new(taken(v).into(), nulls)?.with_timezone("UTC"))
            }
            Values::Uuid(v) => Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(taken(v)), nulls)?),
        })
    }
}

/// The vector's content; an empty one of the same capacity takes its place, since the next batch is of much the same size.
fn taken<T>(values: &mut Vec<T>) -> Vec<T> {
    let empty = Vec::with_capacity(values.len());
    std::mem::replace(values, empty)
}

/// Why an array could not be made.
pub(crate) enum FinishError {
    /// A text that is not UTF-8.
    NotUtf8 {
        /// Its place in the batch, from 0.
        row: usize,
        /// It, with replacement characters.
        value: String,
    },
    /// Arrow refused it: a mistake of ours.
    Arrow(ArrowError),
}

impl From<ArrowError> for FinishError {
    fn from(error: ArrowError) -> FinishError {
        FinishError::Arrow(error)
    }
}

fn first_broken(offsets: &OffsetBuffer<i32>, data: &[u8]) -> Option<FinishError> {
    offsets.windows(2).enumerate().find_map(|(row, ends)| {
        let [from, to] = ends else { return None };
        let value = data.get(usize::try_from(*from).ok()?..usize::try_from(*to).ok()?)?;
        let broken = std::str::from_utf8(value).is_err();
        broken.then(|| FinishError::NotUtf8 { row, value: String::from_utf8_lossy(value).into_owned() })
    })
}
