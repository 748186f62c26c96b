//! A `Filter` with its parameters filled in, ready to be tried on rows.

use std::cmp::Ordering;

use cachesql_table::{Cell, Row};
use cachesql_types::{Column, DataType, TableSchema, Value};

use super::like::LikePattern;
use crate::bind::comparable;
use crate::error::SqlError;
use crate::plan::{Comparison, Filter, Operand};

/// More values than this are searched by halving.
const LINEAR_VALUES: usize = 12;

/// A condition whose values are known, of the column's type or one that compares with it.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
    Compare { column: usize, op: Comparison, value: Value },
    In { column: usize, values: Vec<Value>, has_null: bool },
    Like { column: usize, pattern: LikePattern },
    IsNull { column: usize },
    IsBoolean { column: usize, value: bool },
    Unknown,
}

impl Test {
    /// Fills in a filter. Errors are those of a value that does not become the column's type.
    pub(crate) fn new(filter: &Filter, schema: &TableSchema, parameters: &[Value]) -> Result<Test, SqlError> {
        let all = |filters: &[Filter]| {
            filters.iter().map(|f| Test::new(f, schema, parameters)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match filter {
            Filter::And(parts) => Test::And(all(parts)?),
            Filter::Or(parts) => Test::Or(all(parts)?),
            Filter::Not(inner) => Test::Not(Box::new(Test::new(inner, schema, parameters)?)),
            Filter::Compare { column, op, operand } => {
                match resolve(operand, column_of(schema, *column)?, op.symbol(), parameters)? {
                    Value::Null => Test::Unknown,
                    value => Test::Compare { column: *column, op: *op, value },
                }
            }
            Filter::In { column, operands } => {
                let definition = column_of(schema, *column)?;
                let mut values = Vec::with_capacity(operands.len());
                for operand in operands {
                    values.push(resolve(operand, definition, "=", parameters)?);
                }
                let given = values.len();
                values.retain(|v| !v.is_null());
                let has_null = values.len() < given;
                values.sort_by(Value::total_cmp);
                values.dedup();
                Test::In { column: *column, values, has_null }
            }
            Filter::Like { column, pattern, case_insensitive, escape } => {
                let definition = column_of(schema, *column)?;
                if !matches!(definition.data_type, DataType::Text | DataType::Json) {
                    return Err(SqlError::no_operator(definition.data_type, "LIKE", DataType::Text));
                }
                match operand_value(pattern, parameters)? {
                    Value::Null => Test::Unknown,
                    value => {
                        let text = value.as_str().map_or_else(|| value.to_text(), str::to_owned);
                        Test::Like { column: *column, pattern: LikePattern::new(&text, *escape, *case_insensitive) }
                    }
                }
            }
            Filter::IsNull { column } => Test::IsNull { column: *column },
            Filter::IsBoolean { column, value } => Test::IsBoolean { column: *column, value: *value },
        })
    }

    /// Whether it is true of a row; `None` is SQL's unknown.
    pub(crate) fn of(&self, row: &Row<'_>) -> Option<bool> {
        match self {
            Test::And(parts) => all_true(parts, row, true),
            Test::Or(parts) => all_true(parts, row, false),
            Test::Not(inner) => inner.of(row).map(|held| !held),
            Test::Compare { column, op, value } => compare_cell(row.cell(*column), value).map(|o| op.holds(o)),
            Test::In { column, values, has_null } => is_in(row.cell(*column), values, *has_null),
            Test::Like { column, pattern } => match row.cell(*column) {
                Cell::Text(text) | Cell::Json(text) => Some(pattern.matches(text)),
                _ => None,
            },
            Test::IsNull { column } => Some(matches!(row.cell(*column), Cell::Null)),
            Test::IsBoolean { column, value } => Some(matches!(row.cell(*column), Cell::Boolean(b) if b == *value)),
            Test::Unknown => None,
        }
    }
}

/// AND over the parts (`and`), or OR.
fn all_true(parts: &[Test], row: &Row<'_>, and: bool) -> Option<bool> {
    let mut unknown = false;
    for part in parts {
        match part.of(row) {
            Some(held) if held != and => return Some(!and),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(and) }
}

fn is_in(cell: Cell<'_>, values: &[Value], has_null: bool) -> Option<bool> {
    if matches!(cell, Cell::Null) {
        // Nothing is in an empty list, not even an unknown value.
        return if values.is_empty() && !has_null { Some(false) } else { None };
    }
    let found = if values.len() <= LINEAR_VALUES {
        values.iter().any(|v| compare_cell(cell, v) == Some(Ordering::Equal))
    } else {
        values.binary_search_by(|v| compare_cell(cell, v).map_or(Ordering::Less, Ordering::reverse)).is_ok()
    };
    if found {
        Some(true)
    } else if has_null {
        None
    } else {
        Some(false)
    }
}

/// Compares a field with a value as SQL does.
pub(crate) fn compare_cell(cell: Cell<'_>, value: &Value) -> Option<Ordering> {
    Some(match (cell, value) {
        (Cell::Null, _) | (_, Value::Null) => return None,
        (Cell::Text(a) | Cell::Json(a), Value::Text(b) | Value::Json(b)) => a.cmp(b),
        (Cell::BigInt(a), Value::BigInt(b)) => a.cmp(b),
        (Cell::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Cell::Bytea(a), Value::Bytea(b)) => a.cmp(b),
        _ => return cell.to_value().compare(value),
    })
}

/// The value that an operand stands for.
pub(crate) fn operand_value(operand: &Operand, parameters: &[Value]) -> Result<Value, SqlError> {
    match operand {
        Operand::Value(value) => Ok(value.clone()),
        Operand::Parameter(position) => parameters
            .get(*position)
            .cloned()
            .ok_or(SqlError::ParameterCount { expected: position + 1, given: parameters.len() }),
    }
}

/// The value that an operand stands for beside a column: of a type that compares with the column's, or NULL.
pub(crate) fn resolve(operand: &Operand, column: &Column, op: &str, parameters: &[Value]) -> Result<Value, SqlError> {
    let value = operand_value(operand, parameters)?;
    let Some(from) = value.data_type() else { return Ok(value) };
    let to = column.data_type;
    match (&value, to) {
        (Value::Text(_), DataType::Text) => Ok(value),
        (Value::Text(text), _) => Value::parse(text, to).map_err(|e| SqlError::value(&column.name, e)),
        (Value::Date(_), DataType::Timestamp | DataType::TimestampTz)
        | (Value::Timestamp(_), DataType::TimestampTz)
        | (Value::TimestampTz(_), DataType::Timestamp) => {
            value.coerce(to).map_err(|e| SqlError::value(&column.name, e))
        }
        _ if comparable(to, from) => Ok(value),
        _ => Err(SqlError::no_operator(to, op, from)),
    }
}

pub(crate) fn column_of(schema: &TableSchema, column: usize) -> Result<&Column, SqlError> {
    schema.columns.get(column).ok_or_else(|| SqlError::UnknownColumn {
        table: Some(schema.name.clone()),
        column: format!("number {}", column.saturating_add(1)),
    })
}
