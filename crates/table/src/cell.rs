//! One field of one row, borrowed from wherever it is stored.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes as at;
use arrow::datatypes::DataType as ArrowType;
use cachesql_types::{DataType, Decimal, Value};

/// One field of one row. Reading it never allocates.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// SQL NULL.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// REAL.
    Real(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL.
    Decimal(Decimal),
    /// TEXT.
    Text(&'a str),
    /// BYTEA.
    Bytea(&'a [u8]),
    /// DATE, days since 1970-01-01.
    Date(i32),
    /// TIME, microseconds since midnight.
    Time(i64),
    /// TIMESTAMP, microseconds since 1970-01-01 00:00:00.
    Timestamp(i64),
    /// TIMESTAMPTZ, microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz(i64),
    /// UUID.
    Uuid([u8; 16]),
    /// JSON, as it was written.
    Json(&'a str),
}

impl<'a> Cell<'a> {
    /// Borrows a value.
    pub fn of_value(value: &'a Value) -> Cell<'a> {
        match value {
            Value::Null => Cell::Null,
            Value::Boolean(v) => Cell::Boolean(*v),
            Value::SmallInt(v) => Cell::SmallInt(*v),
            Value::Integer(v) => Cell::Integer(*v),
            Value::BigInt(v) => Cell::BigInt(*v),
            Value::Real(v) => Cell::Real(*v),
            Value::Double(v) => Cell::Double(*v),
            Value::Decimal(v) => Cell::Decimal(*v),
            Value::Text(v) => Cell::Text(v),
            Value::Bytea(v) => Cell::Bytea(v),
            Value::Date(v) => Cell::Date(*v),
            Value::Time(v) => Cell::Time(*v),
            Value::Timestamp(v) => Cell::Timestamp(*v),
            Value::TimestampTz(v) => Cell::TimestampTz(*v),
            Value::Uuid(v) => Cell::Uuid(*v),
            Value::Json(v) => Cell::Json(v),
        }
    }

    /// Reads a field of an Arrow array as a value of the type. The array may be of any layout that
    /// `cachesql_types::data_type_of` knows for the type: plain, large, view or dictionary text, times of any unit, unsigned integers. NULL
    /// for a row beyond the end, and for an array that holds no such type.
    pub fn of_array(array: &'a dyn Array, data_type: DataType, row: usize) -> Cell<'a> {
        if row >= array.len() || array.is_null(row) {
            return Cell::Null;
        }
        match array.data_type() {
            ArrowType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                let code = match number_or_time(dictionary.keys(), row) {
                    Cell::SmallInt(code) => usize::try_from(code).ok(),
                    Cell::Integer(code) => usize::try_from(code).ok(),
                    Cell::BigInt(code) => usize::try_from(code).ok(),
                    _ => None,
                };
                code.map_or(Cell::Null, |code| Cell::of_array(dictionary.values().as_ref(), data_type, code))
            }
            ArrowType::Utf8 => text(data_type, array.as_string::<i32>().value(row)),
            ArrowType::LargeUtf8 => text(data_type, array.as_string::<i64>().value(row)),
            ArrowType::Utf8View => text(data_type, array.as_string_view().value(row)),
            ArrowType::Binary => Cell::Bytea(array.as_binary::<i32>().value(row)),
            ArrowType::LargeBinary => Cell::Bytea(array.as_binary::<i64>().value(row)),
            ArrowType::BinaryView => Cell::Bytea(array.as_binary_view().value(row)),
            ArrowType::FixedSizeBinary(_) => {
                let bytes = array.as_fixed_size_binary().value(row);
                match <[u8; 16]>::try_from(bytes) {
                    Ok(uuid) if data_type == DataType::Uuid => Cell::Uuid(uuid),
                    _ => Cell::Bytea(bytes),
                }
            }
            _ => number_or_time(array, row),
        }
    }

    /// The field as a value that stands on its own; text and bytes are copied.
    pub fn to_value(self) -> Value {
        match self {
            Cell::Null => Value::Null,
            Cell::Boolean(v) => Value::Boolean(v),
            Cell::SmallInt(v) => Value::SmallInt(v),
            Cell::Integer(v) => Value::Integer(v),
            Cell::BigInt(v) => Value::BigInt(v),
            Cell::Real(v) => Value::Real(v),
            Cell::Double(v) => Value::Double(v),
            Cell::Decimal(v) => Value::Decimal(v),
            Cell::Text(v) => Value::Text(Arc::from(v)),
            Cell::Bytea(v) => Value::Bytea(Arc::from(v)),
            Cell::Date(v) => Value::Date(v),
            Cell::Time(v) => Value::Time(v),
            Cell::Timestamp(v) => Value::Timestamp(v),
            Cell::TimestampTz(v) => Value::TimestampTz(v),
            Cell::Uuid(v) => Value::Uuid(v),
            Cell::Json(v) => Value::Json(Arc::from(v)),
        }
    }

    /// True for NULL.
    pub fn is_null(self) -> bool {
        matches!(self, Cell::Null)
    }

    /// Whether both are stored alike: unlike `==` of values this tells 0.0 from -0.0.
    pub(crate) fn is_same(self, other: Cell<'_>) -> bool {
        match (self, other) {
            (Cell::Null, Cell::Null) => true,
            (Cell::Boolean(a), Cell::Boolean(b)) => a == b,
            (Cell::SmallInt(a), Cell::SmallInt(b)) => a == b,
            (Cell::Integer(a), Cell::Integer(b)) | (Cell::Date(a), Cell::Date(b)) => a == b,
            (Cell::BigInt(a), Cell::BigInt(b))
            | (Cell::Time(a), Cell::Time(b))
            | (Cell::Timestamp(a), Cell::Timestamp(b))
            | (Cell::TimestampTz(a), Cell::TimestampTz(b)) => a == b,
            (Cell::Real(a), Cell::Real(b)) => a.to_bits() == b.to_bits(),
            (Cell::Double(a), Cell::Double(b)) => a.to_bits() == b.to_bits(),
            (Cell::Decimal(a), Cell::Decimal(b)) => a.unscaled == b.unscaled && a.scale == b.scale,
            (Cell::Text(a), Cell::Text(b)) | (Cell::Json(a), Cell::Json(b)) => a == b,
            (Cell::Bytea(a), Cell::Bytea(b)) => a == b,
            (Cell::Uuid(a), Cell::Uuid(b)) => a == b,
            _ => false,
        }
    }
}

/// Whether a column of the type can hold the value as it is. NULL fits none; whether it is allowed is the column's matter.
pub(crate) fn fits(value: &Value, data_type: DataType) -> bool {
    match (value, data_type) {
        (Value::Decimal(d), DataType::Decimal { precision, scale }) => {
            d.scale == scale && d.digits() <= u32::from(precision)
        }
        (Value::Null | Value::Decimal(_), _) => false,
        _ => value.data_type() == Some(data_type),
    }
}

fn text(data_type: DataType, text: &str) -> Cell<'_> {
    if data_type == DataType::Json { Cell::Json(text) } else { Cell::Text(text) }
}

fn scale(scale: i8) -> u8 {
    u8::try_from(scale).unwrap_or(0)
}

fn number_or_time(array: &dyn Array, row: usize) -> Cell<'_> {
    match array.data_type() {
        ArrowType::Boolean => Cell::Boolean(array.as_boolean().value(row)),
        ArrowType::Int8 => Cell::SmallInt(array.as_primitive::<at::Int8Type>().value(row).into()),
        ArrowType::UInt8 => Cell::SmallInt(array.as_primitive::<at::UInt8Type>().value(row).into()),
        ArrowType::Int16 => Cell::SmallInt(array.as_primitive::<at::Int16Type>().value(row)),
        ArrowType::UInt16 => Cell::Integer(array.as_primitive::<at::UInt16Type>().value(row).into()),
        ArrowType::Int32 => Cell::Integer(array.as_primitive::<at::Int32Type>().value(row)),
        ArrowType::UInt32 => Cell::BigInt(array.as_primitive::<at::UInt32Type>().value(row).into()),
        ArrowType::Int64 => Cell::BigInt(array.as_primitive::<at::Int64Type>().value(row)),
        ArrowType::UInt64 => {
            let unscaled = array.as_primitive::<at::UInt64Type>().value(row).into();
            Cell::Decimal(Decimal { unscaled, scale: 0 })
        }
        ArrowType::Float16 => Cell::Real(array.as_primitive::<at::Float16Type>().value(row).to_f32()),
        ArrowType::Float32 => Cell::Real(array.as_primitive::<at::Float32Type>().value(row)),
        ArrowType::Float64 => Cell::Double(array.as_primitive::<at::Float64Type>().value(row)),
        ArrowType::Decimal32(_, s) => {
            let unscaled = array.as_primitive::<at::Decimal32Type>().value(row).into();
            Cell::Decimal(Decimal { unscaled, scale: scale(*s) })
        }
        ArrowType::Decimal64(_, s) => {
            let unscaled = array.as_primitive::<at::Decimal64Type>().value(row).into();
            Cell::Decimal(Decimal { unscaled, scale: scale(*s) })
        }
        ArrowType::Decimal128(_, s) => {
            let unscaled = array.as_primitive::<at::Decimal128Type>().value(row);
            Cell::Decimal(Decimal { unscaled, scale: scale(*s) })
        }
        _ => time(array, row),
    }
}

const MILLIS_PER_DAY: i64 = 86_400_000;

fn time(array: &dyn Array, row: usize) -> Cell<'_> {
    match array.data_type() {
        ArrowType::Date32 => Cell::Date(array.as_primitive::<at::Date32Type>().value(row)),
        ArrowType::Date64 => {
            let millis = array.as_primitive::<at::Date64Type>().value(row);
            i32::try_from(millis.div_euclid(MILLIS_PER_DAY)).map_or(Cell::Null, Cell::Date)
        }
        ArrowType::Time32(at::TimeUnit::Second) => {
            Cell::Time(i64::from(array.as_primitive::<at::Time32SecondType>().value(row)) * 1_000_000)
        }
        ArrowType::Time32(_) => {
            Cell::Time(i64::from(array.as_primitive::<at::Time32MillisecondType>().value(row)) * 1_000)
        }
        ArrowType::Time64(at::TimeUnit::Nanosecond) => {
            Cell::Time(array.as_primitive::<at::Time64NanosecondType>().value(row).div_euclid(1_000))
        }
        ArrowType::Time64(_) => Cell::Time(array.as_primitive::<at::Time64MicrosecondType>().value(row)),
        ArrowType::Timestamp(unit, zone) => {
            let micros = match unit {
                at::TimeUnit::Second => {
                    array.as_primitive::<at::TimestampSecondType>().value(row).saturating_mul(1_000_000)
                }
                at::TimeUnit::Millisecond => {
                    array.as_primitive::<at::TimestampMillisecondType>().value(row).saturating_mul(1_000)
                }
                at::TimeUnit::Microsecond => array.as_primitive::<at::TimestampMicrosecondType>().value(row),
                at::TimeUnit::Nanosecond => {
                    array.as_primitive::<at::TimestampNanosecondType>().value(row).div_euclid(1_000)
                }
            };
            if zone.is_some() { Cell::TimestampTz(micros) } else { Cell::Timestamp(micros) }
        }
        _ => Cell::Null,
    }
}
