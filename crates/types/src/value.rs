//! One value of a row, a parameter or a result, and how values compare.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::data_type::DataType;
use crate::decimal::Decimal;

/// One value. NULL has no type; every other value has exactly one.
///
/// Text and bytes are shared, so that a clone never copies them.
#[derive(Clone, Debug)]
pub enum Value {
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
    /// DECIMAL; in a column it has the column's scale.
    Decimal(Decimal),
    /// TEXT.
    Text(Arc<str>),
    /// BYTEA.
    Bytea(Arc<[u8]>),
    /// DATE, days since 1970-01-01; `i32::MAX` and `i32::MIN` are infinity and -infinity.
    Date(i32),
    /// TIME, microseconds since midnight.
    Time(i64),
    /// TIMESTAMP, microseconds since 1970-01-01 00:00:00; `i64::MAX` and `i64::MIN` are infinity and -infinity.
    Timestamp(i64),
    /// TIMESTAMPTZ, microseconds since 1970-01-01 00:00:00 UTC; `i64::MAX` and `i64::MIN` are infinity and -infinity.
    TimestampTz(i64),
    /// UUID.
    Uuid([u8; 16]),
    /// JSON, as it was written.
    Json(Arc<str>),
}

impl Value {
    /// A TEXT value.
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Text(text.into())
    }

    /// True for NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The type of the value; `None` for NULL. A decimal is given the smallest type that holds it.
    pub fn data_type(&self) -> Option<DataType> {
        Some(match self {
            Value::Null => return None,
            Value::Boolean(_) => DataType::Boolean,
            Value::SmallInt(_) => DataType::SmallInt,
            Value::Integer(_) => DataType::Integer,
            Value::BigInt(_) => DataType::BigInt,
            Value::Real(_) => DataType::Real,
            Value::Double(_) => DataType::Double,
            Value::Decimal(d) => DataType::Decimal {
                precision: u8::try_from(d.digits()).unwrap_or(DataType::MAX_PRECISION).max(d.scale).max(1),
                scale: d.scale,
            },
            Value::Text(_) => DataType::Text,
            Value::Bytea(_) => DataType::Bytea,
            Value::Date(_) => DataType::Date,
            Value::Time(_) => DataType::Time,
            Value::Timestamp(_) => DataType::Timestamp,
            Value::TimestampTz(_) => DataType::TimestampTz,
            Value::Uuid(_) => DataType::Uuid,
            Value::Json(_) => DataType::Json,
        })
    }

    /// Orders two values as an index does: NULL last; numbers by their value, whatever their type; text by its bytes (the
    /// "C" collation); NaN equal to itself and above every number; -0 equal to 0. Values of types that do not compare are
    /// ordered by type, so that the order is total.
    pub fn total_cmp(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Greater,
            (_, Value::Null) => Ordering::Less,
            _ => self.compare(other).unwrap_or_else(|| self.rank().cmp(&other.rank())),
        }
    }

    /// Compares as SQL's `<`, `=` and `>` do. `None` when either is NULL, or when their types do not compare.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        Some(match (self, other) {
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) | (Value::Json(a), Value::Json(b)) => a.cmp(b),
            (Value::Bytea(a), Value::Bytea(b)) => a.cmp(b),
            (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::Time(a), Value::Time(b))
            | (Value::Timestamp(a), Value::Timestamp(b))
            | (Value::TimestampTz(a), Value::TimestampTz(b)) => a.cmp(b),
            (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
            _ => return compare_numbers(self, other),
        })
    }

    /// The value as a 64-bit integer when it is of an integer type.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::SmallInt(v) => Some(i64::from(*v)),
            Value::Integer(v) => Some(i64::from(*v)),
            Value::BigInt(v) => Some(*v),
            _ => None,
        }
    }

    /// The text of a TEXT or JSON value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Json(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes that the value takes beyond its own size.
    pub fn heap_bytes(&self) -> usize {
        // A shared slice carries two reference counts.
        match self {
            Value::Text(text) | Value::Json(text) => text.len() + 16,
            Value::Bytea(bytes) => bytes.len() + 16,
            _ => 0,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Boolean(_) => 0,
            Value::SmallInt(_)
            | Value::Integer(_)
            | Value::BigInt(_)
            | Value::Real(_)
            | Value::Double(_)
            | Value::Decimal(_) => 1,
            Value::Text(_) => 2,
            Value::Bytea(_) => 3,
            Value::Date(_) => 4,
            Value::Time(_) => 5,
            Value::Timestamp(_) => 6,
            Value::TimestampTz(_) => 7,
            Value::Uuid(_) => 8,
            Value::Json(_) => 9,
            Value::Null => 10,
        }
    }

    fn as_decimal(&self) -> Option<Decimal> {
        match self {
            Value::Decimal(d) => Some(*d),
            _ => self.as_i64().map(Decimal::from),
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Real(v) => Some(f64::from(*v)),
            Value::Double(v) => Some(*v),
            Value::Decimal(d) => Some(d.to_f64()),
            // As PostgreSQL compares an integer with a double: as doubles.
            #[allow(clippy::cast_precision_loss)]
            _ => self.as_i64().map(|v| v as f64),
        }
    }
}

/// Integers and decimals compare exactly; where either side is a float, both are compared as doubles.
fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return Some(a.cmp(&b));
    }
    if let (Some(a), Some(b)) = (a.as_decimal(), b.as_decimal()) {
        return Some(a.cmp(&b));
    }
    Some(compare_doubles(a.as_f64()?, b.as_f64()?))
}

fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Two values are equal when an index cannot tell them apart: NULL equals NULL, NaN equals NaN, 1 equals 1.0.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.total_cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        let half = Value::Decimal(Decimal { unscaled: 5, scale: 1 });
        assert_eq!(Value::Integer(0).compare(&half), Some(Ordering::Less));
        assert_eq!(Value::BigInt(i64::MAX).compare(&Value::SmallInt(1)), Some(Ordering::Greater));
        assert_eq!(Value::Double(0.5), half);
        assert_eq!(Value::Double(-0.0), Value::Double(0.0));
        assert_eq!(Value::Double(f64::NAN).compare(&Value::Double(f64::INFINITY)), Some(Ordering::Greater));
        assert_eq!(Value::Real(f32::NAN), Value::Double(f64::NAN));
    }

    #[test]
    fn null_is_last_and_compares_with_nothing() {
        assert_eq!(Value::Null.compare(&Value::Null), None);
        assert_eq!(Value::Null.total_cmp(&Value::text("z")), Ordering::Greater);
        assert_eq!(Value::text("1").compare(&Value::Integer(1)), None);
    }
}
