//! How each type is laid out in Arrow: the one place that says so, for tables, origins and answers.

use arrow_schema::{DataType as ArrowType, Field, Schema, TimeUnit};

use crate::data_type::DataType;
use crate::schema::{Column, TableSchema};

/// Key of the field metadata that names the SQL type where the Arrow type alone does not (JSON, UUID).
pub const TYPE_METADATA: &str = "cachesql.type";

/// The Arrow type that a column of the type is stored in.
pub fn arrow_type(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Integer => ArrowType::Int32,
        DataType::BigInt => ArrowType::Int64,
        DataType::Real => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Decimal { precision, scale } => {
            ArrowType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX))
        }
        DataType::Text | DataType::Json => ArrowType::Utf8,
        DataType::Bytea => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Uuid => ArrowType::FixedSizeBinary(16),
    }
}

/// A column as an Arrow field.
pub fn arrow_field(column: &Column) -> Field {
    let field = Field::new(&column.name, arrow_type(column.data_type), column.nullable);
    match column.data_type {
        DataType::Json | DataType::Uuid => {
            field.with_metadata([(TYPE_METADATA.to_owned(), column.data_type.to_string())].into())
        }
        _ => field,
    }
}

/// A table's columns as an Arrow schema.
pub fn arrow_schema(table: &TableSchema) -> Schema {
    Schema::new(table.columns.iter().map(arrow_field).collect::<Vec<_>>())
}

/// The SQL type of an Arrow field, of those that tables store or DataFusion answers with. `None` for what has no SQL type
/// here (lists, structs, intervals).
pub fn data_type_of(field: &Field) -> Option<DataType> {
    if let Some(name) = field.metadata().get(TYPE_METADATA)
        && let Some(data_type) = DataType::parse(name)
    {
        return Some(data_type);
    }
    of_arrow_type(field.data_type())
}

fn of_arrow_type(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 | ArrowType::UInt8 | ArrowType::Int16 => DataType::SmallInt,
        ArrowType::UInt16 | ArrowType::Int32 => DataType::Integer,
        ArrowType::UInt32 | ArrowType::Int64 => DataType::BigInt,
        ArrowType::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
        ArrowType::Float16 | ArrowType::Float32 => DataType::Real,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal32(p, s) | ArrowType::Decimal64(p, s) | ArrowType::Decimal128(p, s) => {
            DataType::Decimal { precision: *p, scale: u8::try_from(*s).ok()? }
        }
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => DataType::Text,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView => DataType::Bytea,
        ArrowType::FixedSizeBinary(16) => DataType::Uuid,
        ArrowType::FixedSizeBinary(_) => DataType::Bytea,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        ArrowType::Dictionary(_, values) => return of_arrow_type(values),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_survives_its_field() {
        let all = [
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Integer,
            DataType::BigInt,
            DataType::Real,
            DataType::Double,
            DataType::Decimal { precision: 38, scale: 38 },
            DataType::Text,
            DataType::Bytea,
            DataType::Date,
            DataType::Time,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Uuid,
            DataType::Json,
        ];
        for data_type in all {
            let column = Column { name: "c".into(), data_type, nullable: true };
            assert_eq!(data_type_of(&arrow_field(&column)), Some(data_type));
        }
    }
}
