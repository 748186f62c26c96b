//! Reads by key, by range and by composite index.

use cachesql_sql::{Comparison, Filter};
use cachesql_types::TableSchema;

use super::text::{column_value, equal_on_index, equality};
use crate::error::NodeError;

/// A read of one table: names and values as texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginalRead<T> {
    /// The table's name.
    pub table: T,
    /// Which of its rows.
    pub rows: OriginalRows<T>,
}

/// Which rows a read finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginalRows<T> {
    /// Those whose column equals the value, is less, or more.
    Compare {
        /// The column's name.
        column: T,
        /// How it compares.
        op: Comparison,
        /// With what.
        value: T,
    },
    /// Those whose column is between two values, both included.
    Range {
        /// The column's name.
        column: T,
        /// The least value.
        from: T,
        /// The greatest value.
        to: T,
    },
    /// Those that are equal in all columns of an index.
    Composite {
        /// An index's name, or columns joined by `+`.
        index: T,
        /// As many values, separated by commas.
        values: T,
    },
}

impl<T> OriginalRead<T> {
    /// The same with other texts.
    pub fn map<U>(self, mut text: impl FnMut(T) -> U) -> OriginalRead<U> {
        let rows = match self.rows {
            OriginalRows::Compare { column, op, value } => {
                OriginalRows::Compare { column: text(column), op, value: text(value) }
            }
            OriginalRows::Range { column, from, to } => {
                OriginalRows::Range { column: text(column), from: text(from), to: text(to) }
            }
            OriginalRows::Composite { index, values } => {
                OriginalRows::Composite { index: text(index), values: text(values) }
            }
        };
        OriginalRead { table: text(self.table), rows }
    }
}

/// The condition that a read stands for. The columns' types decide what its texts mean.
pub(super) fn filter_of<T: AsRef<str>>(schema: &TableSchema, rows: &OriginalRows<T>) -> Result<Filter, NodeError> {
    let compare = |column: &T, op, text: &T| {
        let (position, value) = column_value(schema, column.as_ref(), text.as_ref())?;
        Ok(Filter::compare(position, op, value))
    };
    match rows {
        OriginalRows::Compare { column, op: Comparison::Equal, value } => {
            equality(schema, column.as_ref(), value.as_ref())
        }
        OriginalRows::Compare { column, op, value } => compare(column, *op, value),
        OriginalRows::Range { column, from, to } => Ok(Filter::And(vec![
            compare(column, Comparison::GreaterOrEqual, from)?,
            compare(column, Comparison::LessOrEqual, to)?,
        ])),
        OriginalRows::Composite { index, values } => equal_on_index(schema, index.as_ref(), values.as_ref()),
    }
}
