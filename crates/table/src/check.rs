//! Whether rows fit a table, and how a refusal names what does not.

use arrow::array::{Array, AsArray};
use arrow::datatypes::Decimal128Type;
use cachesql_types::{Column, DataType, IndexDefinition, TableSchema, Value};

use crate::cell::fits;
use crate::refusal::Refusal;

/// Checks rows against one schema.
pub(crate) struct Checker<'a> {
    schema: &'a TableSchema,
}

/// Cut to a length that an error can show.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    if text.chars().nth(SHOWN).is_none() {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(SHOWN).collect();
    cut.push('…');
    cut
}

impl<'a> Checker<'a> {
    pub(crate) fn new(schema: &'a TableSchema) -> Checker<'a> {
        Checker { schema }
    }

    /// A row must have a value for every column, each of the column's type, NULL only where it is allowed.
    pub(crate) fn row(&self, row: &[Value]) -> Result<(), Refusal> {
        let columns = &self.schema.columns;
        if row.len() != columns.len() {
            let table = self.schema.name.clone();
            return Err(Refusal::Width { table, columns: columns.len(), values: row.len() });
        }
        for (column, value) in columns.iter().zip(row) {
            if value.is_null() {
                if !column.nullable {
                    return Err(self.not_null(column));
                }
            } else if !fits(value, column.data_type) {
                return Err(self.type_refusal(column, &value.to_text()));
            }
        }
        Ok(())
    }

    /// The same for a column of a batch, which is of the column's Arrow type.
    pub(crate) fn array(&self, column: &Column, array: &dyn Array) -> Result<(), Refusal> {
        if !column.nullable && array.null_count() > 0 {
            return Err(self.not_null(column));
        }
        if let DataType::Decimal { precision, scale } = column.data_type {
            let most = 10_u128.checked_pow(u32::from(precision)).unwrap_or(u128::MAX);
            let decimals = array.as_primitive::<Decimal128Type>();
            if let Some(unscaled) = decimals.iter().flatten().find(|d| d.unsigned_abs() >= most) {
                let value = cachesql_types::Decimal { unscaled, scale };
                return Err(self.type_refusal(column, &value.to_string()));
            }
        }
        Ok(())
    }

    fn not_null(&self, column: &Column) -> Refusal {
        Refusal::NotNull { table: self.schema.name.clone(), column: column.name.clone() }
    }

    fn type_refusal(&self, column: &Column, value: &str) -> Refusal {
        Refusal::Type {
            table: self.schema.name.clone(),
            column: column.name.clone(),
            data_type: column.data_type,
            value: shortened(value),
        }
    }

    /// A second row of one key; `value` gives its fields.
    pub(crate) fn duplicate(&self, index: &IndexDefinition, value: impl Fn(usize) -> Value) -> Refusal {
        let names: Vec<&str> =
            index.columns.iter().filter_map(|c| self.schema.columns.get(*c)).map(|c| c.name.as_str()).collect();
        let key: Vec<String> = index.columns.iter().map(|c| shortened(&value(*c).to_text())).collect();
        Refusal::DuplicateKey {
            table: self.schema.name.clone(),
            index: index.name.clone(),
            columns: names.join(", "),
            key: key.join(", "),
        }
    }
}
