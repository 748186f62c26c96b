//! The tables that a statement reads, and how names are found in them.
//!
//! A name matches its exact spelling first, then any spelling that differs in ASCII case alone; quotes make no
//! difference. An unqualified column that several tables of the statement have, in any spelling, is ambiguous. Tables with
//! two columns that differ in case alone are left to DataFusion's path, which tells them apart by exact spelling.

use std::sync::Arc;

use cachesql_table::{GroupSnapshot, Table};
use cachesql_types::DataType;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, TableFactor, TableWithJoins};

use super::Unfit;
use crate::error::SqlError;

/// One table in FROM.
pub(crate) struct ScopeTable {
    /// Its alias, or its name as it was written.
    pub(crate) label: String,
    /// The table.
    pub(crate) table: Arc<Table>,
}

/// All tables in FROM, in the order written.
#[derive(Default)]
pub(crate) struct Scope {
    /// The tables.
    pub(crate) tables: Vec<ScopeTable>,
}

/// A column: the position of its table in the scope, and its position in the table.
pub(crate) type ColumnPlace = (usize, usize);

impl Scope {
    /// A scope of one table.
    pub(crate) fn of(table: &Arc<Table>) -> Scope {
        Scope { tables: vec![ScopeTable { label: table.schema().name.clone(), table: table.clone() }] }
    }

    /// Adds a table of FROM; only plain tables fit.
    pub(crate) fn add(&mut self, snapshot: &GroupSnapshot, factor: &TableFactor) -> Result<(), Unfit> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } = factor
        else {
            return Err(Unfit::Shape);
        };
        if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
            return Err(Unfit::Shape);
        }
        let name = object_name(name).ok_or(Unfit::Shape)?;
        let table = snapshot.table(name).ok_or_else(|| SqlError::UnknownTable { table: name.to_owned() })?;
        if has_names_of_equal_folding(table) {
            return Err(Unfit::Shape);
        }
        let label = match alias {
            Some(alias) if alias.columns.is_empty() && alias.at.is_none() => alias.name.value.clone(),
            Some(_) => return Err(Unfit::Shape),
            None => name.to_owned(),
        };
        if self.tables.iter().any(|t| t.label.eq_ignore_ascii_case(&label)) {
            return Err(Unfit::Shape);
        }
        self.tables.push(ScopeTable { label, table: table.clone() });
        Ok(())
    }

    /// The table of that alias or name.
    pub(crate) fn table_labelled(&self, label: &str) -> Option<usize> {
        self.tables.iter().position(|t| t.label.eq_ignore_ascii_case(label))
    }

    /// Finds `column` or `table.column`.
    pub(crate) fn column(&self, path: &[Ident]) -> Result<ColumnPlace, Unfit> {
        match path {
            [column] => self.unqualified(&column.value),
            [table, column] => {
                let at = self.table_labelled(&table.value).ok_or(Unfit::Shape)?;
                let schema = self.tables.get(at).map(|t| t.table.schema()).ok_or(Unfit::Shape)?;
                schema.column(&column.value).map(|position| (at, position)).ok_or_else(|| {
                    let table = Some(schema.name.clone());
                    Unfit::Error(SqlError::UnknownColumn { table, column: column.value.clone() })
                })
            }
            _ => Err(Unfit::Shape),
        }
    }

    fn unqualified(&self, name: &str) -> Result<ColumnPlace, Unfit> {
        let mut found = None;
        for (at, table) in self.tables.iter().enumerate() {
            if let Some(column) = table.table.schema().column(name) {
                if found.is_some() {
                    return Err(Unfit::Error(SqlError::AmbiguousColumn { column: name.to_owned() }));
                }
                found = Some((at, column));
            }
        }
        found.ok_or_else(|| {
            let table = match self.tables.as_slice() {
                [only] => Some(only.table.schema().name.clone()),
                _ => None,
            };
            Unfit::Error(SqlError::UnknownColumn { table, column: name.to_owned() })
        })
    }

    /// The type of a column of the scope.
    pub(crate) fn data_type(&self, (table, column): ColumnPlace) -> Option<DataType> {
        Some(self.tables.get(table)?.table.schema().columns.get(column)?.data_type)
    }
}

fn has_names_of_equal_folding(table: &Table) -> bool {
    let columns = &table.schema().columns;
    // Quadratic, but only over names of one length; tables have tens of columns.
    columns.iter().enumerate().any(|(i, a)| {
        columns.iter().take(i).any(|b| a.name.len() == b.name.len() && a.name.eq_ignore_ascii_case(&b.name))
    })
}

/// The last part of `table`, `public.table` or `database.public.table`. There is one schema only.
pub(crate) fn object_name(name: &ObjectName) -> Option<&str> {
    let part = |part: &'_ ObjectNamePart| matches!(part, ObjectNamePart::Identifier(_));
    if !name.0.iter().all(part) || name.0.len() > 3 {
        return None;
    }
    if let Some(ObjectNamePart::Identifier(schema)) = name.0.len().checked_sub(2).and_then(|at| name.0.get(at))
        && !schema.value.eq_ignore_ascii_case("public")
    {
        return None;
    }
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => Some(&ident.value),
        _ => None,
    }
}

/// The one plain table, with its alias, that UPDATE and DELETE name.
pub(crate) fn single_table(from: &[TableWithJoins]) -> Option<(&ObjectName, Option<&str>)> {
    match from {
        [TableWithJoins { relation: TableFactor::Table { name, alias, args: None, .. }, joins }]
            if joins.is_empty() =>
        {
            Some((name, alias.as_ref().map(|a| a.name.value.as_str())))
        }
        _ => None,
    }
}
