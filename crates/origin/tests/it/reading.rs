//! What the tests read rows with: whole loads as texts.

use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use cachesql_origin::{
    FileFormat, FileSource, Origin, OriginConfig, OriginError, OriginUrl, SourceDescription, TableQuery, TableSource,
};
use cachesql_types::{DataType, Decimal, Value, data_type_of, limits};

pub(crate) type Texts = Vec<Vec<Option<String>>>;

pub(crate) fn origin(url: &str) -> Origin {
    let url = OriginUrl::parse(url).unwrap();
    Origin::new(OriginConfig { url, user: None, password: None }).unwrap()
}

pub(crate) fn query(sql: &str) -> TableQuery {
    query_with(sql, Vec::new())
}

pub(crate) fn query_with(sql: &str, params: Vec<Value>) -> TableQuery {
    TableQuery { table: "t".into(), source: TableSource::Query { sql: sql.into(), params }, types: Vec::new() }
}

pub(crate) fn file(path: &Path) -> TableQuery {
    file_of(path, FileFormat::of_path(path).unwrap())
}

pub(crate) fn file_of(path: &Path, format: FileFormat) -> TableQuery {
    let source = TableSource::File(FileSource { path: path.to_owned(), format });
    TableQuery { table: "t".into(), source, types: Vec::new() }
}

/// Describes, loads, and checks that every batch is laid out as promised.
pub(crate) async fn load(origin: &Origin, query: &TableQuery) -> Result<(SourceDescription, Texts), OriginError> {
    let description = origin.describe(query).await?;
    let mut stream = origin.load(query, &description.columns).await?;
    let schema = stream.schema().clone();
    for (field, column) in schema.fields().iter().zip(&description.columns) {
        assert_eq!(**field, cachesql_types::arrow_field(column));
    }
    let mut rows = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        assert_eq!(batch.schema(), schema);
        assert!((1..=limits::LOAD_BATCH_ROWS).contains(&batch.num_rows()));
        rows.extend(texts(&batch));
    }
    assert!(stream.next().await.is_none());
    Ok((description, rows))
}

/// The types of a description, as SQL names them.
pub(crate) fn types(description: &SourceDescription) -> Vec<String> {
    description.columns.iter().map(|c| c.data_type.to_string()).collect()
}

pub(crate) fn texts(batch: &RecordBatch) -> Texts {
    let cell = |row: usize, column: usize| {
        let data_type = data_type_of(batch.schema().field(column)).unwrap();
        let value = value(batch.column(column), data_type, row);
        (!value.is_null()).then(|| value.to_text())
    };
    (0..batch.num_rows()).map(|row| (0..batch.num_columns()).map(|column| cell(row, column)).collect()).collect()
}

fn value(array: &dyn Array, data_type: DataType, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match data_type {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::SmallInt => Value::SmallInt(array.as_primitive::<Int16Type>().value(row)),
        DataType::Integer => Value::Integer(array.as_primitive::<Int32Type>().value(row)),
        DataType::BigInt => Value::BigInt(array.as_primitive::<Int64Type>().value(row)),
        DataType::Real => Value::Real(array.as_primitive::<Float32Type>().value(row)),
        DataType::Double => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal { scale, .. } => {
            Value::Decimal(Decimal { unscaled: array.as_primitive::<Decimal128Type>().value(row), scale })
        }
        DataType::Text => Value::text(array.as_string::<i32>().value(row)),
        DataType::Json => Value::Json(array.as_string::<i32>().value(row).into()),
        DataType::Bytea => Value::Bytea(array.as_binary::<i32>().value(row).into()),
        DataType::Date => Value::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Time => Value::Time(array.as_primitive::<Time64MicrosecondType>().value(row)),
        DataType::Timestamp => Value::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::TimestampTz => Value::TimestampTz(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::Uuid => Value::Uuid(array.as_fixed_size_binary().value(row).try_into().unwrap()),
    }
}

/// Rows of a test's expectation.
pub(crate) fn rows(expected: &[&[Option<&str>]]) -> Texts {
    expected.iter().map(|row| row.iter().map(|cell| cell.map(str::to_owned)).collect()).collect()
}
