//! Arrays whose type is not the one that the table's column has: value by value, exactly or not at all.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use cachesql_types::{Column, DataType, Decimal, Value};

use crate::batch::{reason_of, row_place, value_error};
use crate::columns::{ColumnBuilder, FinishError};
use crate::error::OriginError;

/// Makes a column's array of one of another type. `rows_before` is for the place that an error names.
pub(crate) fn converted(
    table: &str,
    column: &Column,
    array: &ArrayRef,
    from: DataType,
    rows_before: u64,
) -> Result<ArrayRef, OriginError> {
    if from == column.data_type {
        return Ok(array.clone());
    }
    let mut builder = ColumnBuilder::new(column.data_type);
    for row in 0..array.len() {
        let value = value_at(array, from, row);
        let refused = |reason| value_error(table, column, &value.to_text(), row_place(rows_before, row), reason);
        let coerced = coerce(&value, column.data_type).map_err(|error| refused(reason_of(&error)))?;
        if !builder.push(&coerced) {
            return Err(refused("values of its type are not converted"));
        }
    }
    builder.finish().map_err(|error| {
        let reason = match error {
            FinishError::Arrow(error) => error.to_string(),
            FinishError::NotUtf8 { .. } => "a text that is not UTF-8".to_owned(),
        };
        OriginError::Broken { table: table.to_owned(), reason }
    })
}

/// As `Value::coerce`; and anything becomes TEXT that is asked for as TEXT, since that loses nothing.
pub(crate) fn coerce(value: &Value, to: DataType) -> Result<Value, cachesql_types::ValueError> {
    match (value, to) {
        (Value::Null | Value::Text(_), _) => value.coerce(to),
        (_, DataType::Text) => Ok(Value::text(value.to_text())),
        _ => value.coerce(to),
    }
}

/// A value of an array in the layout of `cachesql_types::arrow_type`. NULL when the array is of another layout, which
/// `BatchBuilder` never makes.
fn value_at(array: &ArrayRef, data_type: DataType, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let value = match data_type {
        DataType::Boolean => array.as_boolean_opt().map(|a| Value::Boolean(a.value(row))),
        DataType::SmallInt => array.as_primitive_opt::<Int16Type>().map(|a| Value::SmallInt(a.value(row))),
        DataType::Integer => array.as_primitive_opt::<Int32Type>().map(|a| Value::Integer(a.value(row))),
        DataType::BigInt => array.as_primitive_opt::<Int64Type>().map(|a| Value::BigInt(a.value(row))),
        DataType::Real => array.as_primitive_opt::<Float32Type>().map(|a| Value::Real(a.value(row))),
        DataType::Double => array.as_primitive_opt::<Float64Type>().map(|a| Value::Double(a.value(row))),
        DataType::Decimal { scale, .. } => array
            .as_primitive_opt::<Decimal128Type>()
            .map(|a| Value::Decimal(Decimal { unscaled: a.value(row), scale })),
        DataType::Text => array.as_string_opt::<i32>().map(|a| Value::text(a.value(row))),
        DataType::Json => array.as_string_opt::<i32>().map(|a| Value::Json(a.value(row).into())),
        DataType::Bytea => array.as_binary_opt::<i32>().map(|a| Value::Bytea(a.value(row).into())),
        DataType::Date => array.as_primitive_opt::<Date32Type>().map(|a| Value::Date(a.value(row))),
        DataType::Time => array.as_primitive_opt::<Time64MicrosecondType>().map(|a| Value::Time(a.value(row))),
        DataType::Timestamp => {
            array.as_primitive_opt::<TimestampMicrosecondType>().map(|a| Value::Timestamp(a.value(row)))
        }
        DataType::TimestampTz => {
            array.as_primitive_opt::<TimestampMicrosecondType>().map(|a| Value::TimestampTz(a.value(row)))
        }
        DataType::Uuid => array.as_fixed_size_binary_opt().and_then(|a| a.value(row).try_into().ok()).map(Value::Uuid),
    };
    value.unwrap_or(Value::Null)
}
