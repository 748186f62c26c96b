//! The shape of a table: columns, key, indexes; and how names are found in it.

use crate::counted::counted;
use crate::data_type::DataType;
use crate::limits;

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as the origin or CREATE TABLE spelt it.
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
    /// Whether it may hold NULL.
    pub nullable: bool,
}

/// One index over one or more columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Unique within the table. Indexes from configuration are named as the original names them: `A` or `A+B`.
    pub name: String,
    /// Positions of its columns in the table, in index order; at least one, no repeats.
    pub columns: Vec<usize>,
    /// Whether two rows may not have the same key. Keys with a NULL in them are never the same.
    pub unique: bool,
}

/// The shape of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// Its name.
    pub name: String,
    /// Its columns, in order; at least one.
    pub columns: Vec<Column>,
    /// Positions of the columns of the primary key; empty for a table without one, whose rows are told apart by a
    /// number that the table gives them.
    pub key: Vec<usize>,
    /// Its indexes beside the primary key.
    pub indexes: Vec<IndexDefinition>,
}

/// Why a schema is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// No columns, or more than a table may have.
    #[error("table {table}: it has {}; 1 to {most} are allowed", counted(*.columns, "column"))]
    ColumnCount {
        /// The table.
        table: String,
        /// How many it has.
        columns: usize,
        /// The limit.
        most: usize,
    },
    /// A name that is empty or too long.
    #[error("table {table}: the name {name:?} is empty or longer than {most} bytes")]
    Name {
        /// The table.
        table: String,
        /// The name, cut to a readable length.
        name: String,
        /// The limit.
        most: usize,
    },
    /// Two columns or two indexes of one name.
    #[error("table {table}: there are two {what} named {name}")]
    Duplicate {
        /// The table.
        table: String,
        /// "columns" or "indexes".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A key or index that is empty, repeats a column, or names one that does not exist.
    #[error("table {table}: {what} must name one or more different columns of the table")]
    KeyColumns {
        /// The table.
        table: String,
        /// "the primary key", or the index by name.
        what: String,
    },
    /// A key column that may hold NULL.
    #[error("table {table}: column {column} is part of the primary key and must not be nullable")]
    NullableKey {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
}

impl TableSchema {
    /// Position of a column, by its exact name or else without regard to case.
    pub fn column(&self, name: &str) -> Option<usize> {
        resolve_name(self.columns.iter().map(|c| c.name.as_str()), name)
    }

    /// Checks the rules that every schema keeps; tables refuse a schema that breaks one.
    pub fn check(&self) -> Result<(), SchemaError> {
        let table = || self.name.chars().take(80).collect::<String>();
        if self.columns.is_empty() || self.columns.len() > limits::MAX_COLUMNS {
            return Err(SchemaError::ColumnCount {
                table: table(),
                columns: self.columns.len(),
                most: limits::MAX_COLUMNS,
            });
        }
        let column_names = self.columns.iter().map(|c| &c.name);
        let index_names = self.indexes.iter().map(|i| &i.name);
        for name in column_names.clone().chain(index_names.clone()).chain([&self.name]) {
            if name.is_empty() || name.len() > limits::MAX_NAME_BYTES {
                let name = name.chars().take(80).collect();
                return Err(SchemaError::Name { table: table(), name, most: limits::MAX_NAME_BYTES });
            }
        }
        if let Some(name) = first_repeated(column_names) {
            return Err(SchemaError::Duplicate { table: table(), what: "columns", name: name.clone() });
        }
        if let Some(name) = first_repeated(index_names) {
            return Err(SchemaError::Duplicate { table: table(), what: "indexes", name: name.clone() });
        }
        self.check_keys()
    }

    fn check_keys(&self) -> Result<(), SchemaError> {
        let sound = |columns: &[usize]| {
            columns.len() <= limits::MAX_KEY_COLUMNS
                && columns.iter().all(|c| *c < self.columns.len())
                && first_repeated(columns.iter()).is_none()
        };
        if !sound(&self.key) {
            return Err(SchemaError::KeyColumns { table: self.name.clone(), what: "the primary key".into() });
        }
        for index in &self.indexes {
            if index.columns.is_empty() || !sound(&index.columns) {
                return Err(SchemaError::KeyColumns {
                    table: self.name.clone(),
                    what: format!("index {}", index.name),
                });
            }
        }
        let nullable = self.key.iter().filter_map(|c| self.columns.get(*c)).find(|c| c.nullable);
        match nullable {
            Some(column) => Err(SchemaError::NullableKey { table: self.name.clone(), column: column.name.clone() }),
            None => Ok(()),
        }
    }
}

fn first_repeated<T: PartialEq>(items: impl Iterator<Item = T> + Clone) -> Option<T> {
    items.clone().enumerate().find(|(i, item)| items.clone().take(*i).any(|other| other == *item)).map(|(_, item)| item)
}

/// Finds a name among others: the same spelling first, then the first that differs in ASCII case alone. Databases fold
/// names, so callers rarely know how a name was spelt.
pub fn resolve_name<'a>(names: impl Iterator<Item = &'a str> + Clone, wanted: &str) -> Option<usize> {
    names.clone().position(|n| n == wanted).or_else(|| names.clone().position(|n| n.eq_ignore_ascii_case(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> TableSchema {
        let column = |name: &str, nullable| Column { name: name.into(), data_type: DataType::BigInt, nullable };
        TableSchema {
            name: "t".into(),
            columns: vec![column("id", false), column("ID", true), column("b", true)],
            key: vec![0],
            indexes: vec![IndexDefinition { name: "b".into(), columns: vec![2, 1], unique: false }],
        }
    }

    #[test]
    fn names_match_exactly_before_they_match_without_case() {
        assert_eq!(schema().column("ID"), Some(1));
        assert_eq!(schema().column("Id"), Some(0));
        assert_eq!(schema().column("B"), Some(2));
        assert_eq!(schema().column("x"), None);
    }

    #[test]
    fn broken_schemas_are_refused() {
        assert_eq!(schema().check(), Ok(()));
        let break_it = |f: fn(&mut TableSchema)| {
            let mut broken = schema();
            f(&mut broken);
            broken.check().expect_err("must be refused")
        };
        assert!(matches!(break_it(|s| s.columns.clear()), SchemaError::ColumnCount { .. }));
        assert!(matches!(break_it(|s| s.columns[1].name = "id".into()), SchemaError::Duplicate { .. }));
        assert!(matches!(break_it(|s| s.name = "x".repeat(200)), SchemaError::Name { .. }));
        assert!(matches!(break_it(|s| s.key = vec![1]), SchemaError::NullableKey { .. }));
        assert!(matches!(break_it(|s| s.key = vec![9]), SchemaError::KeyColumns { .. }));
        assert!(matches!(break_it(|s| s.indexes[0].columns.clear()), SchemaError::KeyColumns { .. }));
        assert!(matches!(break_it(|s| s.indexes[0].columns = vec![1, 1]), SchemaError::KeyColumns { .. }));
    }
}
