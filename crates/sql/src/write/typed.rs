//! Typed writes, as REST and the original API build them, planned as those of SQL are.

use std::sync::Arc;

use cachesql_table::Table;
use cachesql_types::{Value, counted};

use super::WritePlan;
use super::bind::ConflictAction;
use super::changes::{Changes, fit_row};
use super::expression::Scalar;
use super::run::{Context, Insert, Returning, truncate};
use crate::answer::ColumnInfo;
use crate::direct::{Budget, column_of, matching_rows};
use crate::error::SqlError;
use crate::plan::{Filter, OnConflict, Write};

/// Plans a typed write against a snapshot.
pub(crate) fn plan_typed(write: &Write, context: &Context<'_>) -> Result<WritePlan, SqlError> {
    let (Write::Insert { table: name, .. }
    | Write::Update { table: name, .. }
    | Write::Delete { table: name, .. }
    | Write::Truncate { table: name }) = write;
    let table = context.snapshot.table(name).ok_or_else(|| SqlError::UnknownTable { table: name.clone() })?;
    match write {
        Write::Insert { columns, rows, on_conflict, returning, .. } => {
            insert(table, columns, rows, on_conflict, *returning, context)
        }
        Write::Update { set, filter, returning, .. } => update(table, set, filter.as_ref(), *returning, context),
        Write::Delete { filter: None, returning: false, .. } | Write::Truncate { .. } => Ok(truncate(table)),
        Write::Delete { filter, returning, .. } => delete(table, filter.as_ref(), *returning, context),
    }
}

/// RETURNING *
fn all_columns(table: &Table) -> Vec<(Scalar, ColumnInfo)> {
    let column = |(i, c): (usize, &cachesql_types::Column)| {
        (Scalar::Column(i), ColumnInfo { name: c.name.clone(), data_type: c.data_type })
    };
    table.schema().columns.iter().enumerate().map(column).collect()
}

fn insert(
    table: &Arc<Table>,
    columns: &[usize],
    rows: &[Vec<Value>],
    on_conflict: &OnConflict,
    returning: bool,
    context: &Context<'_>,
) -> Result<WritePlan, SqlError> {
    let schema = table.schema();
    let all: Vec<usize> = (0..schema.columns.len()).collect();
    let columns = if columns.is_empty() { all.as_slice() } else { columns };
    for column in columns {
        column_of(schema, *column)?;
    }
    let items = returning.then(|| all_columns(table));
    let mut returning = Returning::new(items.as_deref(), &[]);
    let conflict = ConflictAction::Plain(on_conflict.clone());
    let mut insert = Insert::new(table, columns, &conflict, context)?;
    for row in rows {
        if row.len() != columns.len() {
            let message = format!("a row has {} for {}", counted(row.len(), "value"), counted(columns.len(), "column"));
            return Err(SqlError::Syntax(message));
        }
        insert.row(row.clone(), &mut returning)?;
    }
    let (operations, affected) = insert.changes.into_operations();
    Ok(WritePlan { operations, affected, returning: returning.finish()? })
}

fn update(
    table: &Arc<Table>,
    set: &[(usize, Value)],
    filter: Option<&Filter>,
    returning: bool,
    context: &Context<'_>,
) -> Result<WritePlan, SqlError> {
    for (column, _) in set {
        column_of(table.schema(), *column)?;
    }
    let items = returning.then(|| all_columns(table));
    let mut returning = Returning::new(items.as_deref(), &[]);
    let mut changes = Changes::new(table, context.limits);
    for id in matching_rows(table, filter, context.parameters, &mut Budget::write(context.limits))? {
        let mut row = table.row(id).map(|row| row.values()).unwrap_or_default();
        for (column, value) in set {
            if let Some(slot) = row.get_mut(*column) {
                *slot = value.clone();
            }
        }
        let row = fit_row(table.schema(), row)?;
        returning.row(&row)?;
        changes.replace(table, id, row)?;
    }
    let (operations, affected) = changes.into_operations();
    Ok(WritePlan { operations, affected, returning: returning.finish()? })
}

fn delete(
    table: &Arc<Table>,
    filter: Option<&Filter>,
    returning: bool,
    context: &Context<'_>,
) -> Result<WritePlan, SqlError> {
    let items = returning.then(|| all_columns(table));
    let mut returning = Returning::new(items.as_deref(), &[]);
    let mut changes = Changes::new(table, context.limits);
    for id in matching_rows(table, filter, context.parameters, &mut Budget::write(context.limits))? {
        changes.delete(table, id)?;
        returning.row(&table.row(id).map(|row| row.values()).unwrap_or_default())?;
    }
    let (operations, affected) = changes.into_operations();
    Ok(WritePlan { operations, affected, returning: returning.finish()? })
}
