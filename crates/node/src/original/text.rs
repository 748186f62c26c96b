//! Texts as values of a column: the column's type decides what they mean.

use cachesql_sql::Filter;
use cachesql_types::{Column, TableSchema, Value, ValueError, resolve_name};

use crate::error::NodeError;

/// A column by name, and a text as a value of its type.
pub(super) fn column_value(schema: &TableSchema, name: &str, text: &str) -> Result<(usize, Value), NodeError> {
    let position = column_position(schema, name)?;
    let column = schema.columns.get(position).ok_or_else(|| unknown_column(schema, name))?;
    let value = value_of(column, text).map_err(|source| NodeError::Value {
        table: schema.name.clone(),
        column: column.name.clone(),
        source,
    })?;
    Ok((position, value))
}

fn column_position(schema: &TableSchema, name: &str) -> Result<usize, NodeError> {
    schema.column(name).ok_or_else(|| unknown_column(schema, name))
}

fn unknown_column(schema: &TableSchema, name: &str) -> NodeError {
    NodeError::UnknownColumn { table: schema.name.clone(), column: name.chars().take(80).collect() }
}

/// The condition that a column equals a text. A text that is no value of the column's type equals none of its values, as
/// it did in the original: there are no rows, and that is no error.
pub(super) fn equality(schema: &TableSchema, name: &str, text: &str) -> Result<Filter, NodeError> {
    match column_value(schema, name, text) {
        Ok((position, value)) => Ok(Filter::equal(position, value)),
        Err(NodeError::Value { .. }) => Ok(Filter::Or(Vec::new())),
        Err(error) => Err(error),
    }
}

/// True for `007`, and for nothing that is a number as numbers are written.
fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    matches!(digits, [b'0', next, ..] if next.is_ascii_digit())
}

fn value_of(column: &Column, text: &str) -> Result<Value, ValueError> {
    if column.data_type.is_numeric() && has_leading_zero(text) {
        return Err(ValueError::Syntax { data_type: column.data_type, text: text.chars().take(100).collect() });
    }
    Value::parse(text, column.data_type)
}

/// The condition that the columns of an index equal as many values, separated by commas.
pub(super) fn equal_on_index(schema: &TableSchema, index: &str, values: &str) -> Result<Filter, NodeError> {
    let columns = columns_of_index(schema, index).or_else(|error| match index.contains(' ') {
        // A `+` that the caller did not encode arrives as a space.
        true => columns_of_index(schema, &index.replace(' ', "+")),
        false => Err(error),
    })?;
    let texts: Vec<&str> = values.split(',').collect();
    if texts.len() != columns.len() {
        let index = index.chars().take(80).collect();
        return Err(NodeError::ValueCount { index, expected: columns.len(), given: texts.len() });
    }
    let mut terms = Vec::with_capacity(columns.len());
    for (position, text) in columns.into_iter().zip(texts) {
        let Some(column) = schema.columns.get(position) else { continue };
        terms.push(equality(schema, &column.name, text)?);
    }
    Ok(Filter::And(terms))
}

/// The columns of an index that is there, or else those that are named, joined by `+`.
fn columns_of_index(schema: &TableSchema, index: &str) -> Result<Vec<usize>, NodeError> {
    let names = schema.indexes.iter().map(|i| i.name.as_str());
    match resolve_name(names, index).and_then(|at| schema.indexes.get(at)) {
        Some(index) => Ok(index.columns.clone()),
        None => index.split('+').map(|name| column_position(schema, name)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachesql_types::DataType;

    #[test]
    fn columns_are_joined_by_a_plus_encoded_or_not() {
        let column = |name: &str| Column { name: name.into(), data_type: DataType::Text, nullable: true };
        let columns = ["A", "B", "first name", "first"].map(column).to_vec();
        let schema = TableSchema { name: "t".into(), columns, key: vec![], indexes: vec![] };
        for (index, expected) in [("A+B", vec![0, 1]), ("b A", vec![1, 0]), ("first name", vec![2])] {
            let equal = |at: &usize| Filter::equal(*at, Value::text("x"));
            let values = vec!["x"; expected.len()].join(",");
            let found = equal_on_index(&schema, index, &values).expect(index);
            assert_eq!(found, Filter::And(expected.iter().map(equal).collect()), "{index}");
        }
        assert!(equal_on_index(&schema, "A C", "x,y").is_err());
    }

    #[test]
    fn the_column_decides_what_a_text_means() {
        let value = |text: &str, data_type: DataType| {
            value_of(&Column { name: "c".into(), data_type, nullable: true }, text).ok()
        };
        assert_eq!(value("12345", DataType::BigInt), Some(Value::BigInt(12345)));
        assert_eq!(value("12345", DataType::Text), Some(Value::text("12345")));
        assert_eq!(value("007", DataType::Text), Some(Value::text("007")));
        assert_eq!(value("007", DataType::BigInt), None);
        assert_eq!(value("-007", DataType::Integer), None);
        assert_eq!(value("0", DataType::BigInt), Some(Value::BigInt(0)));
        assert_eq!(value("0.5", DataType::Double), Some(Value::Double(0.5)));
        assert_eq!(value("null", DataType::Text), Some(Value::text("null")));
        assert_eq!(value("null", DataType::BigInt), None);
    }
}
