//! Ways into a table by one of its indexes, and the key ranges that they become once parameters are known.

use std::ops::Bound;

use cachesql_table::IndexRange;
use cachesql_types::{DataType, Decimal, TableSchema, Value};
use smallvec::SmallVec;

use super::like::{LikePattern, successor};
use super::test::{column_of, operand_value, resolve};
use crate::error::SqlError;
use crate::plan::{Filter, Operand};

/// How narrow an access is, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Every column of a unique index is given: one row at most.
    UniqueEquality,
    /// Leading columns are given.
    Equality,
    /// Leading columns are given, the last of them as a list.
    In,
    /// Leading columns are given, or none, and a range of the next.
    Range,
    /// The same with the beginning of a text.
    Prefix,
    /// Nothing is given, but the index has the order that is wanted.
    Order,
}

/// What is known of the column behind those that are given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    Nothing,
    In(Vec<Operand>),
    Range { lower: Option<(Operand, bool)>, upper: Option<(Operand, bool)> },
    Prefix(Operand, Option<char>),
}

/// Which way an index is walked to give the order that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// No way.
    Unserved,
    Ascending,
    Descending,
}

/// One way into a table.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) class: Class,
    /// Position among the table's indexes.
    pub(crate) index: usize,
    /// Columns of the index.
    pub(crate) columns: Vec<usize>,
    /// What its leading columns must be.
    pub(crate) prefix: Vec<Operand>,
    pub(crate) next: Next,
    pub(crate) order: Order,
    /// What is left to try on each row.
    pub(crate) residual: Vec<Filter>,
}

/// The key ranges of an access.
pub(crate) enum Ranges {
    /// No row can match.
    Empty,
    One(IndexRange),
    /// In key order, without overlap.
    Several(Vec<IndexRange>),
    /// The values have no exact counterpart among the keys; rows must be tried instead.
    Unusable,
}

/// The values of the leading columns.
pub(crate) enum FoundKey {
    Is(SmallVec<[Value; 2]>),
    Never,
    Unusable,
}

/// A value among the keys of a column.
pub(crate) enum Key {
    Is(Value),
    /// Equal to none of the values that the column can hold.
    Never,
    Unusable,
}

impl Access {
    /// The key ranges, now that parameters are known.
    pub(crate) fn ranges(&self, schema: &TableSchema, parameters: &[Value]) -> Result<Ranges, SqlError> {
        let prefix = match self.key(schema, parameters)? {
            FoundKey::Is(key) => key.into_vec(),
            FoundKey::Never => return Ok(Ranges::Empty),
            FoundKey::Unusable => return Ok(Ranges::Unusable),
        };
        let all = |prefix| IndexRange { prefix, lower: Bound::Unbounded, upper: Bound::Unbounded, nulls: true };
        match &self.next {
            Next::Nothing => Ok(Ranges::One(all(prefix))),
            Next::In(operands) => self.in_ranges(prefix, operands, schema, parameters),
            Next::Range { lower, upper } => {
                let lower = self.bound(lower.as_ref(), schema, parameters)?;
                let upper = self.bound(upper.as_ref(), schema, parameters)?;
                Ok(match (lower, upper) {
                    (Some(lower), Some(upper)) if crosses(&lower, &upper) => Ranges::Empty,
                    (Some(lower), Some(upper)) => Ranges::One(IndexRange { prefix, lower, upper, nulls: false }),
                    _ => Ranges::Unusable,
                })
            }
            Next::Prefix(operand, escape) => {
                let value = operand_value(operand, parameters)?;
                let Some(text) = value.as_str() else {
                    return Ok(if value.is_null() { Ranges::Empty } else { Ranges::Unusable });
                };
                let pattern = LikePattern::new(text, *escape, false);
                let Some((beginning, _)) = pattern.prefix() else { return Ok(Ranges::Unusable) };
                let json = self.next_type(schema)? == DataType::Json;
                let key = |text: String| if json { Value::Json(text.into()) } else { Value::text(text) };
                let lower = Bound::Included(key(beginning.to_owned()));
                let upper = successor(beginning).map_or(Bound::Unbounded, |above| Bound::Excluded(key(above)));
                Ok(Ranges::One(IndexRange { prefix, lower, upper, nulls: false }))
            }
        }
    }

    /// The values of the columns that are given.
    pub(crate) fn key(&self, schema: &TableSchema, parameters: &[Value]) -> Result<FoundKey, SqlError> {
        let mut key = SmallVec::new();
        for (operand, column) in self.prefix.iter().zip(&self.columns) {
            let column = column_of(schema, *column)?;
            let value = resolve(operand, column, "=", parameters)?;
            if value.is_null() {
                return Ok(FoundKey::Never);
            }
            match key_of(value, column.data_type) {
                Key::Is(value) => key.push(value),
                Key::Never => return Ok(FoundKey::Never),
                Key::Unusable => return Ok(FoundKey::Unusable),
            }
        }
        Ok(FoundKey::Is(key))
    }

    fn in_ranges(
        &self,
        prefix: Vec<Value>,
        operands: &[Operand],
        schema: &TableSchema,
        parameters: &[Value],
    ) -> Result<Ranges, SqlError> {
        let Some(column) = self.columns.get(self.prefix.len()) else { return Ok(Ranges::Unusable) };
        let column = column_of(schema, *column)?;
        let mut keys = Vec::with_capacity(operands.len());
        for operand in operands {
            let value = resolve(operand, column, "=", parameters)?;
            if value.is_null() {
                continue;
            }
            match key_of(value, column.data_type) {
                Key::Is(value) => keys.push(value),
                Key::Never => {}
                Key::Unusable => return Ok(Ranges::Unusable),
            }
        }
        keys.sort_by(Value::total_cmp);
        keys.dedup();
        let range = |key: Value| {
            let mut prefix = prefix.clone();
            prefix.push(key);
            IndexRange { prefix, lower: Bound::Unbounded, upper: Bound::Unbounded, nulls: true }
        };
        Ok(if keys.is_empty() { Ranges::Empty } else { Ranges::Several(keys.into_iter().map(range).collect()) })
    }

    fn next_type(&self, schema: &TableSchema) -> Result<DataType, SqlError> {
        let column = self.columns.get(self.prefix.len()).copied().unwrap_or(usize::MAX);
        Ok(column_of(schema, column)?.data_type)
    }

    /// One end of a range; `None` when keys cannot express it. A bound that is NULL leaves nothing.
    fn bound(
        &self,
        end: Option<&(Operand, bool)>,
        schema: &TableSchema,
        parameters: &[Value],
    ) -> Result<Option<Bound<Value>>, SqlError> {
        let Some((operand, included)) = end else { return Ok(Some(Bound::Unbounded)) };
        let column = column_of(schema, self.columns.get(self.prefix.len()).copied().unwrap_or(usize::MAX))?;
        let value = resolve(operand, column, "<", parameters)?;
        if value.is_null() {
            return Ok(Some(Bound::Excluded(Value::Null)));
        }
        Ok(match key_of(value, column.data_type) {
            Key::Is(value) if *included => Some(Bound::Included(value)),
            Key::Is(value) => Some(Bound::Excluded(value)),
            Key::Never | Key::Unusable => None,
        })
    }
}

/// Whether nothing lies between two bounds. NULL as a bound, which only a NULL operand makes, leaves nothing either.
fn crosses(lower: &Bound<Value>, upper: &Bound<Value>) -> bool {
    let null = |bound: &Bound<Value>| matches!(bound, Bound::Excluded(Value::Null));
    if null(lower) || null(upper) {
        return true;
    }
    match (lower, upper) {
        (Bound::Included(a), Bound::Included(b)) => a.total_cmp(b).is_gt(),
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a.total_cmp(b).is_ge(),
        _ => false,
    }
}

/// The value as a key of a column of that type: the one that compares equal to it as SQL compares.
pub(crate) fn key_of(value: Value, data_type: DataType) -> Key {
    let same = match (&value, data_type) {
        (Value::Decimal(d), DataType::Decimal { scale, .. }) => d.scale == scale,
        _ => value.data_type() == Some(data_type),
    };
    if same {
        return Key::Is(value);
    }
    match (&value, data_type) {
        (Value::Text(text), DataType::Json) => Key::Is(Value::Json(text.clone())),
        (Value::Json(text), DataType::Text) => Key::Is(Value::Text(text.clone())),
        (Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_), _) => key_of_integer(&value, data_type),
        (Value::Decimal(decimal), _) => key_of_decimal(*decimal, &value, data_type),
        (Value::Real(real), _) => key_of_double(f64::from(*real), data_type),
        (Value::Double(double), _) => key_of_double(*double, data_type),
        _ => Key::Unusable,
    }
}

/// Doubles hold every integer up to this.
const EXACT_IN_DOUBLE: i64 = 1 << 53;

fn key_of_integer(value: &Value, data_type: DataType) -> Key {
    match data_type {
        DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Decimal { .. } => {
            value.coerce(data_type).map_or(Key::Never, Key::Is)
        }
        DataType::Real | DataType::Double => match value.as_i64() {
            #[allow(clippy::cast_precision_loss)]
            Some(integer) if integer.unsigned_abs() <= EXACT_IN_DOUBLE.unsigned_abs() => {
                key_of_double(integer as f64, data_type)
            }
            _ => Key::Unusable,
        },
        _ => Key::Unusable,
    }
}

fn key_of_decimal(decimal: Decimal, value: &Value, data_type: DataType) -> Key {
    match data_type {
        DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Decimal { .. } => {
            value.coerce(data_type).map_or(Key::Never, Key::Is)
        }
        // Beside a float a decimal is compared as a double.
        DataType::Real | DataType::Double => key_of_double(decimal.to_f64(), data_type),
        _ => Key::Unusable,
    }
}

fn key_of_double(double: f64, data_type: DataType) -> Key {
    match data_type {
        DataType::Double => Key::Is(Value::Double(double)),
        DataType::Real => {
            #[allow(clippy::cast_possible_truncation)]
            let real = double as f32;
            if f64::from(real) == double || double.is_nan() { Key::Is(Value::Real(real)) } else { Key::Never }
        }
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            #[allow(clippy::cast_precision_loss)]
            let exact = EXACT_IN_DOUBLE as f64;
            if !double.is_finite() || double.abs() >= exact {
                // Integers beyond are compared as doubles, where several are equal to one.
                return if data_type == DataType::BigInt || !double.is_finite() { Key::Unusable } else { Key::Never };
            }
            Value::Double(double).coerce(data_type).map_or(Key::Never, Key::Is)
        }
        _ => Key::Unusable,
    }
}
