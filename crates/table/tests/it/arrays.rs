//! Batches from rows, as an origin would build them: with Arrow's own builders.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use cachesql_types::{DataType, TableSchema, Value, arrow_schema, arrow_type};

pub(crate) fn batch_of(schema: &TableSchema, rows: &[Vec<Value>]) -> RecordBatch {
    let columns = schema
        .columns
        .iter()
        .enumerate()
        .map(|(c, shape)| array_of(shape.data_type, &rows.iter().map(|row| row[c].clone()).collect::<Vec<_>>()));
    RecordBatch::try_new(Arc::new(arrow_schema(schema)), columns.collect()).expect("columns of the schema")
}

fn array_of(data_type: DataType, values: &[Value]) -> ArrayRef {
    macro_rules! collect {
        ($array:ty, $variant:ident) => {
            values.iter().map(|v| if let Value::$variant(v) = v { Some(*v) } else { None }).collect::<$array>()
        };
    }
    match data_type {
        DataType::Boolean => Arc::new(collect!(BooleanArray, Boolean)),
        DataType::SmallInt => Arc::new(collect!(Int16Array, SmallInt)),
        DataType::Integer => Arc::new(collect!(Int32Array, Integer)),
        DataType::BigInt => Arc::new(collect!(Int64Array, BigInt)),
        DataType::Real => Arc::new(collect!(Float32Array, Real)),
        DataType::Double => Arc::new(collect!(Float64Array, Double)),
        DataType::Date => Arc::new(collect!(Date32Array, Date)),
        DataType::Time => Arc::new(collect!(Time64MicrosecondArray, Time)),
        DataType::Timestamp => Arc::new(collect!(TimestampMicrosecondArray, Timestamp)),
        DataType::TimestampTz => {
            Arc::new(collect!(TimestampMicrosecondArray, TimestampTz).with_data_type(arrow_type(data_type)))
        }
        DataType::Decimal { .. } => {
            let numbers = values.iter().map(|v| if let Value::Decimal(d) = v { Some(d.unscaled) } else { None });
            Arc::new(numbers.collect::<Decimal128Array>().with_data_type(arrow_type(data_type)))
        }
        DataType::Uuid => {
            let uuids = values.iter().map(|v| if let Value::Uuid(uuid) = v { Some(*uuid) } else { None });
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids, 16).expect("sixteen bytes"))
        }
        DataType::Text | DataType::Json => Arc::new(values.iter().map(Value::as_str).collect::<StringArray>()),
        DataType::Bytea => {
            let bytes = values.iter().map(|v| if let Value::Bytea(bytes) = v { Some(&**bytes) } else { None });
            Arc::new(bytes.collect::<BinaryArray>())
        }
    }
}
