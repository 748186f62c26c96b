//! Rows put and taken away by one write, gathered until they become operations.

use std::cmp::Ordering;

use cachesql_table::{Operation, PutMode, RowId, RowKey, Table};
use cachesql_types::{DataType, TableSchema, Value, ValueError};

use crate::error::SqlError;
use crate::limits::EngineLimits;

/// Values that are ordered as an index orders them.
#[derive(Clone, Debug)]
pub(crate) struct KeyValues(pub(crate) Vec<Value>);

impl Ord for KeyValues {
    fn cmp(&self, other: &KeyValues) -> Ordering {
        let by = self.0.iter().zip(&other.0).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne());
        by.unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}

impl PartialOrd for KeyValues {
    fn partial_cmp(&self, other: &KeyValues) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyValues {
    fn eq(&self, other: &KeyValues) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for KeyValues {}

/// What one write does to the rows of one table.
#[derive(Debug)]
pub(crate) struct Changes {
    schema: std::sync::Arc<TableSchema>,
    limits: EngineLimits,
    deleted: Vec<RowKey>,
    replaced: Vec<Vec<Value>>,
    inserted: Vec<Vec<Value>>,
    affected: usize,
}

impl Changes {
    pub(crate) fn new(table: &Table, limits: &EngineLimits) -> Changes {
        Changes {
            schema: table.schema().clone(),
            limits: *limits,
            deleted: Vec::new(),
            replaced: Vec::new(),
            inserted: Vec::new(),
            affected: 0,
        }
    }

    fn one_more(&mut self) -> Result<(), SqlError> {
        self.affected += 1;
        if self.affected > self.limits.write_rows {
            return Err(self.limits.too_many_to_write());
        }
        Ok(())
    }

    /// A new row.
    pub(crate) fn insert(&mut self, row: Vec<Value>) -> Result<(), SqlError> {
        self.inserted.push(row);
        self.one_more()
    }

    /// A row that takes the place of one that is there.
    pub(crate) fn replace(&mut self, table: &Table, id: RowId, row: Vec<Value>) -> Result<(), SqlError> {
        let key = key_of(table, id)?;
        let same_key = match &key {
            RowKey::Columns(old) => old.iter().zip(&self.schema.key).all(|(v, c)| row.get(*c) == Some(v)),
            RowKey::Number(_) => false,
        };
        if same_key {
            self.replaced.push(row);
        } else {
            self.deleted.push(key);
            self.inserted.push(row);
        }
        self.one_more()
    }

    /// A row that goes.
    pub(crate) fn delete(&mut self, table: &Table, id: RowId) -> Result<(), SqlError> {
        self.deleted.push(key_of(table, id)?);
        self.one_more()
    }

    /// The operations, and how many rows they are about. Rows go before others come, so that a key can change hands.
    pub(crate) fn into_operations(self) -> (Vec<Operation>, u64) {
        let table = || self.schema.name.clone();
        let mut operations = Vec::new();
        if !self.deleted.is_empty() {
            operations.push(Operation::Delete { table: table(), keys: self.deleted });
        }
        if !self.replaced.is_empty() {
            operations.push(Operation::Put { table: table(), rows: self.replaced, mode: PutMode::Upsert });
        }
        if !self.inserted.is_empty() {
            operations.push(Operation::Put { table: table(), rows: self.inserted, mode: PutMode::Insert });
        }
        (operations, u64::try_from(self.affected).unwrap_or(u64::MAX))
    }
}

fn key_of(table: &Table, id: RowId) -> Result<RowKey, SqlError> {
    table.row_key(id).ok_or_else(|| SqlError::Internal(format!("a row of table {} is gone", table.schema().name)))
}

/// A row's values brought to the types of its columns, none of them NULL where that may not be.
pub(crate) fn fit_row(schema: &TableSchema, row: Vec<Value>) -> Result<Vec<Value>, SqlError> {
    let fit = |(column, value): (&cachesql_types::Column, Value)| {
        if value.is_null() {
            return if column.nullable {
                Ok(value)
            } else {
                Err(SqlError::NotNull { table: schema.name.clone(), column: column.name.clone() })
            };
        }
        assigned(value, column.data_type).map_err(|source| SqlError::value(&column.name, source))
    };
    schema.columns.iter().zip(row).map(fit).collect()
}

/// A value as a column of a type takes it: anything becomes text, a double the nearest real; else nothing may be lost.
fn assigned(value: Value, data_type: DataType) -> Result<Value, ValueError> {
    match (&value, data_type) {
        (Value::Text(_), DataType::Text) => Ok(value),
        (_, DataType::Text) => Ok(Value::text(value.to_text())),
        (Value::Double(double), DataType::Real) => {
            #[allow(clippy::cast_possible_truncation)]
            let real = *double as f32;
            if real.is_infinite() && double.is_finite() { value.coerce(data_type) } else { Ok(Value::Real(real)) }
        }
        _ => value.coerce(data_type),
    }
}
