//! A typed plan made ready for a table: ways in, columns of the answer. Done once per statement, and kept.

use std::sync::Arc;

use cachesql_table::Table;
use cachesql_types::{DataType, TableSchema};

use super::access::Access;
use super::choose_index::accesses;
use super::test::column_of;
use crate::answer::ColumnInfo;
use crate::error::SqlError;
use crate::plan::{Amount, Filter, OrderBy, Projection, Select};

/// A `Select` made ready.
#[derive(Clone, Debug)]
pub(crate) struct CompiledSelect {
    /// Name of the table, as its schema has it.
    pub(crate) table: String,
    /// The schema that it was made ready for.
    pub(crate) schema: Arc<TableSchema>,
    /// The conditions, all of which must hold.
    pub(crate) conjuncts: Vec<Filter>,
    /// Ways in, narrowest first. Without any the rows are tried one by one.
    pub(crate) accesses: Vec<Access>,
    pub(crate) order: Vec<OrderBy>,
    pub(crate) limit: Option<Amount>,
    pub(crate) offset: Option<Amount>,
    pub(crate) count: bool,
    pub(crate) columns: Arc<[ColumnInfo]>,
    /// Positions in the table, as long as `columns`.
    pub(crate) projection: Arc<[usize]>,
}

/// What COUNT(*) answers.
pub(crate) fn count_column() -> ColumnInfo {
    ColumnInfo { name: "count".into(), data_type: DataType::BigInt }
}

impl CompiledSelect {
    /// Makes a plan ready. Errors are columns that the table does not have.
    pub(crate) fn new(table: &Table, select: &Select) -> Result<CompiledSelect, SqlError> {
        let schema = table.schema();
        let mut conjuncts = Vec::new();
        if let Some(filter) = &select.filter {
            check_columns(filter, schema)?;
            split(filter, &mut conjuncts);
        }
        for key in &select.order {
            column_of(schema, key.column)?;
        }
        let order = if select.count { Vec::new() } else { select.order.clone() };
        let (columns, projection) = answer(select, schema)?;
        Ok(CompiledSelect {
            table: schema.name.clone(),
            schema: schema.clone(),
            accesses: accesses(table, &conjuncts, &order),
            conjuncts,
            order,
            limit: select.limit,
            offset: select.offset,
            count: select.count,
            columns,
            projection,
        })
    }
}

/// Names and types of the answer's columns, and where in the table they are.
pub(crate) type Answer = (Arc<[ColumnInfo]>, Arc<[usize]>);

pub(crate) fn answer(select: &Select, schema: &TableSchema) -> Result<Answer, SqlError> {
    if select.count {
        return Ok((Arc::from([count_column()]), Arc::from([])));
    }
    if select.columns.is_empty() {
        let column = |c: &cachesql_types::Column| ColumnInfo { name: c.name.clone(), data_type: c.data_type };
        return Ok((schema.columns.iter().map(column).collect(), (0..schema.columns.len()).collect()));
    }
    let columns = select.columns.iter().map(|p| named(p, schema)).collect::<Result<Arc<[_]>, _>>()?;
    Ok((columns, select.columns.iter().map(|p| p.column).collect()))
}

/// A column of the answer.
pub(crate) fn named(projection: &Projection, schema: &TableSchema) -> Result<ColumnInfo, SqlError> {
    let column = column_of(schema, projection.column)?;
    let name = projection.name.clone().unwrap_or_else(|| column.name.clone());
    Ok(ColumnInfo { name, data_type: column.data_type })
}

/// Splits a filter at its ANDs.
pub(crate) fn split(filter: &Filter, into: &mut Vec<Filter>) {
    match filter {
        Filter::And(parts) => parts.iter().for_each(|part| split(part, into)),
        other => into.push(other.clone()),
    }
}

pub(crate) fn check_columns(filter: &Filter, schema: &TableSchema) -> Result<(), SqlError> {
    match filter {
        Filter::And(parts) | Filter::Or(parts) => parts.iter().try_for_each(|part| check_columns(part, schema)),
        Filter::Not(inner) => check_columns(inner, schema),
        Filter::Compare { column, .. }
        | Filter::In { column, .. }
        | Filter::Like { column, .. }
        | Filter::IsNull { column }
        | Filter::IsBoolean { column, .. } => column_of(schema, *column).map(|_| ()),
    }
}
