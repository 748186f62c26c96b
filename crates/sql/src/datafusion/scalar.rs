//! Values ↔ DataFusion's scalars.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use cachesql_table::Cell;
use cachesql_types::{Column, DataType, Value, arrow_field, data_type_of};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;

use crate::error::SqlError;

/// The Arrow type that a type has in plans: as tables answer it, with text as views.
pub(crate) fn plan_type(data_type: DataType) -> ArrowType {
    match cachesql_types::arrow_type(data_type) {
        ArrowType::Utf8 => ArrowType::Utf8View,
        ArrowType::Binary => ArrowType::BinaryView,
        other => other,
    }
}

/// A field of a type, nullable.
pub(crate) fn plan_field(name: &str, data_type: DataType) -> FieldRef {
    let column = Column { name: name.to_owned(), data_type, nullable: true };
    Arc::new(arrow_field(&column).with_data_type(plan_type(data_type)))
}

/// The SQL type of a field of a plan; `None` for what has none here. Metadata that an expression dragged along from a
/// column, though it made another type of it, is not believed.
pub(crate) fn sql_type(field: &Field) -> Option<DataType> {
    let named = data_type_of(field)?;
    let believed = match named {
        DataType::Json => matches!(field.data_type(), ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View),
        DataType::Uuid => *field.data_type() == ArrowType::FixedSizeBinary(16),
        _ => true,
    };
    if believed { Some(named) } else { data_type_of(&Field::new("", field.data_type().clone(), true)) }
}

/// A value as a scalar of a type.
pub(crate) fn scalar_of(value: &Value, data_type: DataType) -> Result<ScalarValue, SqlError> {
    let broken = |e: DataFusionError| SqlError::Internal(e.to_string());
    if value.is_null() {
        return ScalarValue::try_new_null(&plan_type(data_type)).map_err(broken);
    }
    let value = value.coerce(data_type).map_err(|source| SqlError::Value { column: None, source })?;
    Ok(match value {
        Value::Null => return ScalarValue::try_new_null(&plan_type(data_type)).map_err(broken),
        Value::Boolean(v) => ScalarValue::Boolean(Some(v)),
        Value::SmallInt(v) => ScalarValue::Int16(Some(v)),
        Value::Integer(v) => ScalarValue::Int32(Some(v)),
        Value::BigInt(v) => ScalarValue::Int64(Some(v)),
        Value::Real(v) => ScalarValue::Float32(Some(v)),
        Value::Double(v) => ScalarValue::Float64(Some(v)),
        Value::Decimal(d) => {
            let (precision, scale) = match data_type {
                DataType::Decimal { precision, scale } => (precision, scale),
                _ => (DataType::MAX_PRECISION, d.scale),
            };
            ScalarValue::Decimal128(Some(d.unscaled), precision, i8::try_from(scale).unwrap_or(i8::MAX))
        }
        Value::Text(text) | Value::Json(text) => ScalarValue::Utf8View(Some(text.to_string())),
        Value::Bytea(bytes) => ScalarValue::BinaryView(Some(bytes.to_vec())),
        Value::Date(v) => ScalarValue::Date32(Some(v)),
        Value::Time(v) => ScalarValue::Time64Microsecond(Some(v)),
        Value::Timestamp(v) => ScalarValue::TimestampMicrosecond(Some(v), None),
        Value::TimestampTz(v) => ScalarValue::TimestampMicrosecond(Some(v), Some("UTC".into())),
        Value::Uuid(bytes) => ScalarValue::FixedSizeBinary(16, Some(bytes.to_vec())),
    })
}

/// A scalar as a value.
pub(crate) fn value_of(scalar: &ScalarValue) -> Option<Value> {
    if scalar.is_null() {
        return Some(Value::Null);
    }
    let array = scalar.to_array().ok()?;
    let data_type = data_type_of(&Field::new("", array.data_type().clone(), true))?;
    Some(Cell::of_array(&array, data_type, 0).to_value())
}

/// Values of one column as an array of its plan type.
pub(crate) fn array_of(values: &[Value], data_type: DataType) -> Result<ArrayRef, SqlError> {
    if values.is_empty() {
        return Ok(new_empty_array(&plan_type(data_type)));
    }
    let scalars = values.iter().map(|v| scalar_of(v, data_type)).collect::<Result<Vec<_>, _>>()?;
    ScalarValue::iter_to_array(scalars).map_err(|e| SqlError::Internal(e.to_string()))
}
