//! Which path serves a statement, and by which index.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use cachesql_table::{GroupSnapshot, Table};
use cachesql_types::{DataType, Value};

use super::Engine;
use super::prepared::{Body, Direct, DirectPlan, Prepared};
use crate::Rows;
use crate::answer::{ColumnInfo, result_schema};
use crate::datafusion::{PlannedQuery, RowStream};
use crate::direct::{CompiledJoin, CompiledSelect, describe_join, describe_select};
use crate::error::SqlError;
use crate::write::rows_of_write;

/// The path that serves a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Indexes, row by row.
    Direct,
    /// DataFusion.
    DataFusion,
}

/// How a statement would be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Its path.
    pub path: Path,
    /// The index that leads to its rows, when one does; of a join, that of the table which is read first.
    pub index: Option<String>,
    /// The plan, line by line.
    pub text: String,
}

/// The one column of EXPLAIN.
pub(super) fn explain_column() -> ColumnInfo {
    ColumnInfo { name: "QUERY PLAN".into(), data_type: DataType::Text }
}

/// An explanation as EXPLAIN answers it.
pub(super) fn rows(explanation: &Explanation) -> Result<Rows, SqlError> {
    let columns: Arc<[ColumnInfo]> = Arc::from([explain_column()]);
    let lines: ArrayRef = Arc::new(StringViewArray::from_iter_values(explanation.text.lines()));
    let schema = result_schema(&columns, std::iter::once(lines.data_type().clone()));
    let batch = RecordBatch::try_new(schema, vec![lines]).map_err(|e| SqlError::Internal(e.to_string()))?;
    Ok(Rows::Stream(RowStream::of_batches(columns, vec![batch])))
}

impl Engine {
    /// Says how a statement would be served. Its parameters are taken as NULL where their values matter.
    pub async fn explain(&self, snapshot: &GroupSnapshot, sql: &str) -> Result<Explanation, SqlError> {
        let prepared = self.prepare(snapshot, sql, &[])?;
        let parameters = vec![Value::Null; prepared.parameters.len()];
        match &prepared.body {
            Body::Explain(inner) => self.explain_prepared(snapshot, inner, &parameters).await,
            _ => self.explain_prepared(snapshot, &prepared, &parameters).await,
        }
    }

    pub(super) async fn explain_prepared(
        &self,
        snapshot: &GroupSnapshot,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Result<Explanation, SqlError> {
        match &prepared.body {
            Body::Direct(direct) => self.explain_direct(snapshot, prepared, direct, parameters).await,
            Body::DataFusion(planned) => self.explain_datafusion(snapshot, planned, parameters).await,
            Body::Write(write) => {
                let found = match rows_of_write(write) {
                    Some(Ok(filter)) => {
                        let table = self.explained_table(snapshot, &write.table)?;
                        let select = crate::plan::Select { filter: filter.cloned(), ..Default::default() };
                        explain_select(&CompiledSelect::new(table, &select)?, table, parameters, 1)?
                    }
                    Some(Err(query)) => self.explain_datafusion(snapshot, query, parameters).await?,
                    None => Explanation { path: Path::Direct, index: None, text: String::new() },
                };
                Ok(Explanation { text: format!("Write: {}\n{}", write.table, found.text), ..found })
            }
            Body::Definition(statement) => {
                Ok(Explanation { path: Path::Direct, index: None, text: format!("Definition: {statement}\n") })
            }
            Body::Explain(_) => Err(SqlError::NotSupported("EXPLAIN of EXPLAIN".into())),
        }
    }

    fn explained_table<'a>(&self, snapshot: &'a GroupSnapshot, name: &str) -> Result<&'a Arc<Table>, SqlError> {
        snapshot.table(name).ok_or_else(|| SqlError::UnknownTable { table: name.to_owned() })
    }

    async fn explain_direct(
        &self,
        snapshot: &GroupSnapshot,
        prepared: &Prepared,
        direct: &Direct,
        parameters: &[Value],
    ) -> Result<Explanation, SqlError> {
        let handed_over = match &direct.plan {
            DirectPlan::Select(select) => {
                let table = self.explained_table(snapshot, &select.table)?;
                let explanation = explain_select(select, table, parameters, 0)?;
                if !crate::direct::hands_over(select, table, parameters)? {
                    return Ok(explanation);
                }
                explanation
            }
            DirectPlan::Join(join) => {
                let tables = join.schemas.iter().map(|s| self.explained_table(snapshot, &s.name).cloned());
                let tables = tables.collect::<Result<Vec<_>, _>>()?;
                return explain_join(join, &tables, parameters);
            }
        };
        let planned = self.behind(snapshot, prepared, direct)?;
        let mut explanation = self.explain_datafusion(snapshot, planned, parameters).await?;
        let _ = write!(explanation.text, "  too many rows for: {}", handed_over.text.trim_start());
        Ok(explanation)
    }

    async fn explain_datafusion(
        &self,
        snapshot: &GroupSnapshot,
        planned: &PlannedQuery,
        parameters: &[Value],
    ) -> Result<Explanation, SqlError> {
        let plan = planned.describe(&self.session, snapshot, parameters, &self.limits).await?;
        Ok(Explanation { path: Path::DataFusion, index: None, text: format!("DataFusion\n{plan}") })
    }
}

fn explain_select(
    plan: &CompiledSelect,
    table: &Table,
    parameters: &[Value],
    depth: usize,
) -> Result<Explanation, SqlError> {
    let (index, line) = describe_select(plan, table, parameters)?;
    let text = format!("{:width$}Direct: {line}\n", "", width = depth * 2);
    Ok(Explanation { path: Path::Direct, index, text })
}

fn explain_join(plan: &CompiledJoin, tables: &[Arc<Table>], parameters: &[Value]) -> Result<Explanation, SqlError> {
    let (index, lines) = describe_join(plan, tables, parameters)?;
    Ok(Explanation { path: Path::Direct, index, text: format!("Direct: join\n{lines}") })
}
