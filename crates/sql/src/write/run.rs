//! Bound writes → operations: the rows are found, the new values worked out.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;
use cachesql_table::{Cell, GroupSnapshot, Operation, RowId, Table};
use cachesql_types::Value;

use super::bind::{Action, BoundWrite, ConflictAction, RowSource, SetValue, Source};
use super::changes::{Changes, fit_row};
use super::conflict::{Conflict, ConflictKeys};
use super::expression::{Rows, Scalar};
use super::{Returned, WritePlan};
use crate::answer::{ColumnInfo, result_schema};
use crate::datafusion::{PlannedQuery, Session, array_of};
use crate::direct::{Budget, holds, matching_rows, tests};
use crate::error::SqlError;
use crate::limits::EngineLimits;
use crate::plan::{Filter, OnConflict};

/// What planning a write needs.
pub(crate) struct Context<'a> {
    pub(crate) session: &'a Session,
    pub(crate) snapshot: &'a GroupSnapshot,
    pub(crate) parameters: &'a [Value],
    pub(crate) limits: &'a EngineLimits,
}

/// Rows of RETURNING, as they gather.
pub(crate) struct Returning<'a> {
    items: Option<&'a [(Scalar, ColumnInfo)]>,
    rows: Vec<Vec<Value>>,
    parameters: &'a [Value],
}

impl<'a> Returning<'a> {
    pub(crate) fn new(items: Option<&'a [(Scalar, ColumnInfo)]>, parameters: &'a [Value]) -> Returning<'a> {
        Returning { items, rows: Vec::new(), parameters }
    }

    pub(crate) fn row(&mut self, row: &[Value]) -> Result<(), SqlError> {
        let Some(items) = self.items else { return Ok(()) };
        let rows = Rows { row, excluded: &[], parameters: self.parameters };
        let values = items.iter().map(|(scalar, _)| scalar.of(rows)).collect::<Result<_, _>>()?;
        self.rows.push(values);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Option<Returned>, SqlError> {
        let Some(items) = self.items else { return Ok(None) };
        let columns: Arc<[ColumnInfo]> = items.iter().map(|(_, column)| column.clone()).collect();
        let array = |(position, column): (usize, &ColumnInfo)| {
            let values: Vec<Value> =
                self.rows.iter().map(|row| row.get(position).cloned().unwrap_or(Value::Null)).collect();
            array_of(&values, column.data_type)
        };
        let arrays = columns.iter().enumerate().map(array).collect::<Result<Vec<_>, _>>()?;
        let schema = result_schema(&columns, arrays.iter().map(|a| a.data_type().clone()));
        let batch = RecordBatch::try_new(schema, arrays).map_err(|e| SqlError::Internal(e.to_string()))?;
        Ok(Some(Returned { columns, batch }))
    }
}

/// Plans a write against a snapshot. The parameters have the statement's types.
pub(crate) async fn plan_write(write: &BoundWrite, context: &Context<'_>) -> Result<WritePlan, SqlError> {
    let unknown = || SqlError::UnknownTable { table: write.table.clone() };
    let table = context.snapshot.table(&write.table).ok_or_else(unknown)?;
    let mut returning = Returning::new(write.returning.as_deref(), context.parameters);
    match &write.action {
        Action::Insert { columns, source, conflict } => {
            let mut insert = Insert::new(table, columns, conflict, context)?;
            insert.source(source, &mut returning, context).await?;
            let (operations, affected) = insert.changes.into_operations();
            Ok(WritePlan { operations, affected, returning: returning.finish()? })
        }
        Action::Update { set, rows } => update(table, set, rows, returning, context).await,
        Action::Delete { rows: RowSource::Filter(None) } if write.returning.is_none() => Ok(truncate(table)),
        Action::Delete { rows } => {
            let mut changes = Changes::new(table, context.limits);
            for (id, _) in found_rows(table, rows, context).await? {
                changes.delete(table, id)?;
                returning.row(&row_values(table, id))?;
            }
            let (operations, affected) = changes.into_operations();
            Ok(WritePlan { operations, affected, returning: returning.finish()? })
        }
        Action::Truncate => Ok(truncate(table)),
    }
}

pub(crate) fn truncate(table: &Table) -> WritePlan {
    let operations = vec![Operation::Truncate { table: table.schema().name.clone() }];
    WritePlan { operations, affected: table.row_count(), returning: None }
}

fn row_values(table: &Table, id: RowId) -> Vec<Value> {
    table.row(id).map(|row| row.values()).unwrap_or_default()
}

async fn update(
    table: &Arc<Table>,
    set: &[(usize, SetValue)],
    rows: &RowSource,
    mut returning: Returning<'_>,
    context: &Context<'_>,
) -> Result<WritePlan, SqlError> {
    let mut changes = Changes::new(table, context.limits);
    for (id, computed) in found_rows(table, rows, context).await? {
        let old = row_values(table, id);
        let mut new = old.clone();
        for (column, value) in set {
            let value = match value {
                SetValue::Scalar(scalar) => {
                    scalar.of(Rows { row: &old, excluded: &[], parameters: context.parameters })?
                }
                SetValue::Computed(position) => computed.get(*position).cloned().unwrap_or(Value::Null),
            };
            if let Some(slot) = new.get_mut(*column) {
                *slot = value;
            }
        }
        let new = fit_row(table.schema(), new)?;
        returning.row(&new)?;
        changes.replace(table, id, new)?;
    }
    let (operations, affected) = changes.into_operations();
    Ok(WritePlan { operations, affected, returning: returning.finish()? })
}

/// The rows that are meant, each once, with what DataFusion worked out for it.
async fn found_rows(
    table: &Arc<Table>,
    rows: &RowSource,
    context: &Context<'_>,
) -> Result<Vec<(RowId, Vec<Value>)>, SqlError> {
    let query = match rows {
        RowSource::Filter(filter) => {
            let mut budget = Budget::write(context.limits);
            let ids = matching_rows(table, filter.as_ref(), context.parameters, &mut budget)?;
            return Ok(ids.into_iter().map(|id| (id, Vec::new())).collect());
        }
        RowSource::Query(query) => query,
    };
    let mut found = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for batch in batches(query, context).await? {
        let ids = batch.columns().first().and_then(|array| array.as_primitive_opt::<UInt32Type>().cloned());
        let ids = ids.ok_or_else(|| SqlError::Internal("a write's query does not answer rows".into()))?;
        for (at, id) in ids.values().iter().enumerate() {
            // A row that a join meets several times is changed once, as PostgreSQL does.
            if seen.insert(*id) {
                let values = row_of(&batch, at, &query.columns);
                found.push((RowId(*id), values.into_iter().skip(1).collect()));
            }
        }
    }
    Ok(found)
}

async fn batches(query: &PlannedQuery, context: &Context<'_>) -> Result<Vec<RecordBatch>, SqlError> {
    let most = u64::try_from(context.limits.write_rows).unwrap_or(u64::MAX);
    let limits = EngineLimits { rows: most, ..*context.limits };
    query.run(context.session, context.snapshot, context.parameters, &limits).await?.collect().await
}

fn row_of(batch: &RecordBatch, at: usize, columns: &[ColumnInfo]) -> Vec<Value> {
    let cell = |(array, column): (&arrow::array::ArrayRef, &ColumnInfo)| {
        Cell::of_array(array, column.data_type, at).to_value()
    };
    batch.columns().iter().zip(columns).map(cell).collect()
}

/// One INSERT under way.
pub(crate) struct Insert<'a> {
    table: &'a Arc<Table>,
    columns: &'a [usize],
    conflict: &'a ConflictAction,
    keys: ConflictKeys,
    parameters: &'a [Value],
    pub(crate) changes: Changes,
}

impl<'a> Insert<'a> {
    pub(crate) fn new(
        table: &'a Arc<Table>,
        columns: &'a [usize],
        conflict: &'a ConflictAction,
        context: &Context<'a>,
    ) -> Result<Insert<'a>, SqlError> {
        let watched = match conflict {
            ConflictAction::Plain(OnConflict::DoNothing { columns }) => columns.clone(),
            ConflictAction::Plain(OnConflict::Replace { columns }) if columns.is_empty() => {
                let key = table.schema().key.clone();
                if key.is_empty() {
                    let message = format!("table {:?} has no primary key to find rows by", table.schema().name);
                    return Err(SqlError::Refused { sqlstate: "42P10", message });
                }
                key
            }
            ConflictAction::Plain(OnConflict::Replace { columns }) | ConflictAction::Update { columns, .. } => {
                columns.clone()
            }
            ConflictAction::Plain(OnConflict::Refuse) => Vec::new(),
        };
        let keys = ConflictKeys::new(table, &watched)?;
        let changes = Changes::new(table, context.limits);
        Ok(Insert { table, columns, conflict, keys, parameters: context.parameters, changes })
    }

    async fn source(
        &mut self,
        source: &Source,
        returning: &mut Returning<'_>,
        context: &Context<'_>,
    ) -> Result<(), SqlError> {
        match source {
            Source::Rows { rows, computed } => {
                let computed = match computed {
                    Some(query) => {
                        let batches = batches(query, context).await?;
                        batches.first().map(|b| row_of(b, 0, &query.columns)).unwrap_or_default()
                    }
                    None => Vec::new(),
                };
                for row in rows {
                    let value = |value: &SetValue| match value {
                        SetValue::Scalar(scalar) => {
                            scalar.of(Rows { row: &[], excluded: &[], parameters: self.parameters })
                        }
                        SetValue::Computed(position) => Ok(computed.get(*position).cloned().unwrap_or(Value::Null)),
                    };
                    let values = row.iter().map(value).collect::<Result<Vec<_>, _>>()?;
                    self.row(values, returning)?;
                }
            }
            Source::Query(query) => {
                for batch in batches(query, context).await? {
                    for at in 0..batch.num_rows() {
                        self.row(row_of(&batch, at, &query.columns), returning)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// One new row; `values` are those of the columns that are given.
    pub(crate) fn row(&mut self, values: Vec<Value>, returning: &mut Returning<'_>) -> Result<(), SqlError> {
        let schema = self.table.schema();
        let mut row = vec![Value::Null; schema.columns.len()];
        for (column, value) in self.columns.iter().zip(values) {
            if let Some(slot) = row.get_mut(*column) {
                *slot = value;
            }
        }
        let row = fit_row(schema, row)?;
        if matches!(self.conflict, ConflictAction::Plain(OnConflict::Refuse)) {
            returning.row(&row)?;
            return self.changes.insert(row);
        }
        let table = self.table;
        match self.keys.find(table, &row) {
            Conflict::None => {
                self.keys.put(&row);
                returning.row(&row)?;
                self.changes.insert(row)
            }
            _ if matches!(self.conflict, ConflictAction::Plain(OnConflict::DoNothing { .. })) => Ok(()),
            Conflict::Own => Err(SqlError::ChangedTwice { table: schema.name.clone() }),
            Conflict::Row(id) => {
                let Some(new) = self.merged(id, &row)? else { return Ok(()) };
                self.keys.put(&row);
                returning.row(&new)?;
                self.changes.replace(table, id, new)
            }
        }
    }

    /// What a row that is there becomes; `None` when it stays as it is.
    fn merged(&self, id: RowId, new: &[Value]) -> Result<Option<Vec<Value>>, SqlError> {
        let old = row_values(self.table, id);
        let mut merged = old.clone();
        match self.conflict {
            ConflictAction::Plain(_) => {
                for column in self.columns {
                    if let (Some(slot), Some(value)) = (merged.get_mut(*column), new.get(*column)) {
                        *slot = value.clone();
                    }
                }
            }
            ConflictAction::Update { set, filter, .. } => {
                if !self.passes(id, filter.as_ref())? {
                    return Ok(None);
                }
                for (column, scalar) in set {
                    let value = scalar.of(Rows { row: &old, excluded: new, parameters: self.parameters })?;
                    if let Some(slot) = merged.get_mut(*column) {
                        *slot = value;
                    }
                }
            }
        }
        fit_row(self.table.schema(), merged).map(Some)
    }

    fn passes(&self, id: RowId, filter: Option<&Filter>) -> Result<bool, SqlError> {
        let Some(filter) = filter else { return Ok(true) };
        let tests = tests(std::slice::from_ref(filter), self.table.schema(), self.parameters)?;
        Ok(holds(self.table, id, &tests))
    }
}

/// How a write finds its rows: by a filter, or a query; `None` when it looks for none.
pub(crate) fn rows_of_write(write: &BoundWrite) -> Option<Result<Option<&Filter>, &PlannedQuery>> {
    match &write.action {
        Action::Update { rows, .. } | Action::Delete { rows } => Some(match rows {
            RowSource::Filter(filter) => Ok(filter.as_ref()),
            RowSource::Query(query) => Err(query),
        }),
        Action::Insert { source: Source::Query(query), .. } => Some(Err(query)),
        Action::Insert { .. } | Action::Truncate => None,
    }
}
