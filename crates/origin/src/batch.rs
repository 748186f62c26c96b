//! Rows under construction: a builder a column, closed into a record batch when it holds enough.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use cachesql_types::{Column, DataType, ValueError, arrow_field, limits, resolve_name};

use crate::columns::{ColumnBuilder, FinishError};
use crate::error::{OriginError, shown};

/// The Arrow schema of a load.
pub(crate) fn schema_of(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(arrow_field).collect::<Vec<_>>()))
}

/// Builds batches of one table's columns.
pub(crate) struct BatchBuilder {
    table: String,
    columns: Vec<Column>,
    schema: SchemaRef,
    pub(crate) builders: Vec<ColumnBuilder>,
    rows: usize,
    bytes: usize,
    // Rows in the batches that were taken, for the places that errors name.
    rows_before: u64,
}

impl BatchBuilder {
    pub(crate) fn new(table: &str, columns: &[Column]) -> BatchBuilder {
        BatchBuilder {
            table: table.to_owned(),
            columns: columns.to_vec(),
            schema: schema_of(columns),
            builders: columns.iter().map(|c| ColumnBuilder::new(c.data_type)).collect(),
            rows: 0,
            bytes: 0,
            rows_before: 0,
        }
    }

    /// Says that each builder got one more value, of so many bytes together.
    pub(crate) fn end_row(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    /// Number of the row under construction, counted from 1.
    pub(crate) fn row_number(&self) -> u64 {
        self.rows_before + self.rows as u64 + 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether the batch should be taken before more rows come.
    pub(crate) fn is_full(&self) -> bool {
        self.rows >= limits::LOAD_BATCH_ROWS || self.bytes >= limits::LOAD_BATCH_BYTES
    }

    /// Takes the rows so far.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, OriginError> {
        let mut arrays = Vec::with_capacity(self.builders.len());
        for (builder, column) in self.builders.iter_mut().zip(&self.columns) {
            arrays.push(builder.finish().map_err(|error| match error {
                FinishError::NotUtf8 { row, value } => {
                    value_error(&self.table, column, &value, row_place(self.rows_before, row), "it is not UTF-8")
                }
                FinishError::Arrow(error) => broken(&self.table, &error),
            })?);
        }
        let batch = batch_of(&self.table, &self.columns, &self.schema, arrays, self.rows, self.rows_before)?;
        self.rows_before += self.rows as u64;
        self.rows = 0;
        self.bytes = 0;
        Ok(batch)
    }
}

/// Puts arrays together, refusing a NULL where there must be none. `rows_before` is for the place that the error names.
pub(crate) fn batch_of(
    table: &str,
    columns: &[Column],
    schema: &SchemaRef,
    arrays: Vec<ArrayRef>,
    rows: usize,
    rows_before: u64,
) -> Result<RecordBatch, OriginError> {
    for (array, column) in arrays.iter().zip(columns) {
        if !column.nullable && array.null_count() > 0 {
            let row = (0..array.len()).find(|row| array.is_null(*row)).unwrap_or(0);
            return Err(OriginError::Value {
                table: table.to_owned(),
                column: column.name.clone(),
                value: "NULL".to_owned(),
                data_type: column.data_type,
                place: row_place(rows_before, row).into(),
                reason: "the column may not hold NULL".to_owned(),
            });
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(|error| broken(table, &error))
}

/// The place of a row for an error, counted from 1.
pub(crate) fn row_place(rows_before: u64, row: usize) -> String {
    format!("row {}", rows_before + row as u64 + 1)
}

/// A value that its column cannot hold.
pub(crate) fn value_error(table: &str, column: &Column, value: &str, place: String, reason: &str) -> OriginError {
    OriginError::Value {
        table: table.to_owned(),
        column: column.name.clone(),
        value: shown(value),
        data_type: column.data_type,
        place: place.into(),
        reason: reason.to_owned(),
    }
}

fn broken(table: &str, error: &ArrowError) -> OriginError {
    OriginError::Broken { table: table.to_owned(), reason: error.to_string() }
}

/// Why a value did not become a value of its column's type, without repeating the value and the type.
pub(crate) fn reason_of(error: &ValueError) -> &'static str {
    match error {
        ValueError::Syntax { .. } => "it is not written as values of that type are",
        ValueError::Range { .. } => "the type has no such value, or could hold it only rounded",
        ValueError::Type { .. } => "values of its type are not converted",
    }
}

/// Applies the types that are given for columns by name. A name that is not among the columns is an error, since it is
/// most likely mistyped.
pub(crate) fn with_given_types(
    table: &str,
    mut columns: Vec<Column>,
    types: &[(String, DataType)],
) -> Result<Vec<Column>, OriginError> {
    for (name, data_type) in types {
        let found = resolve_name(columns.iter().map(|c| c.name.as_str()), name);
        match found.and_then(|at| columns.get_mut(at)) {
            Some(column) => column.data_type = *data_type,
            None => {
                let reason = format!("a type is given for column {name}, which its source does not have");
                return Err(OriginError::Columns { table: table.to_owned(), reason });
            }
        }
    }
    Ok(columns)
}

/// Refuses columns without a name, or two of one name: a table could not tell them apart.
pub(crate) fn check_names<'a>(table: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<(), OriginError> {
    let columns = |reason| Err(OriginError::Columns { table: table.to_owned(), reason });
    let mut seen = std::collections::HashSet::new();
    for (at, name) in names.enumerate() {
        if name.is_empty() {
            return columns(format!("column {} of its source has no name; give it one", at + 1));
        }
        if !seen.insert(name) {
            return columns(format!("its source has two columns named {name}; name them apart"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Values;

    #[test]
    fn a_text_that_is_not_utf8_is_named_with_its_row() {
        let column = |name: &str| Column { name: name.into(), data_type: DataType::Text, nullable: true };
        let mut batch = BatchBuilder::new("t", &[column("a"), column("b")]);
        for text in ["汉".as_bytes(), b"a\xffb"] {
            for builder in &mut batch.builders {
                if let Values::Text(values) = &mut builder.values {
                    values.push(text);
                    builder.mark_value();
                }
            }
            batch.end_row(2);
        }
        let error = batch.take().expect_err("must be refused").to_string();
        assert!(error.contains("column a") && error.contains("row 2") && error.contains("UTF-8"), "{error}");
    }

    #[test]
    fn a_character_split_over_two_values_is_refused() {
        let column = Column { name: "a".into(), data_type: DataType::Text, nullable: true };
        let mut batch = BatchBuilder::new("t", &[column]);
        for half in [b"\xe6".as_slice(), b"\xb1\x89"] {
            for builder in &mut batch.builders {
                if let Values::Text(values) = &mut builder.values {
                    values.push(half);
                    builder.mark_value();
                }
            }
            batch.end_row(2);
        }
        let error = batch.take().expect_err("must be refused").to_string();
        assert!(error.contains("row 1"), "{error}");
    }
}
