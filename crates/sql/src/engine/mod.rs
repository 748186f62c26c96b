//! The engine: statements in, rows or row operations out.

mod batch;
mod cache;
mod explain;
mod prepare;
mod prepared;

use std::sync::Arc;

use cachesql_table::{GroupSnapshot, Table};
use cachesql_types::{DataType, Value};

pub use batch::{BatchAnswer, BatchPlan, BatchStatement};
pub use explain::{Explanation, Path};
pub use prepared::Prepared;

use cache::StatementCache;
use prepared::{Body, DirectPlan};

use crate::Rows;
use crate::bind::coerce_parameters;
use crate::datafusion::{PlannedQuery, Session};
use crate::direct::{Budget, CompiledSelect, DirectRows, Outcome, find_point, point_answer, run_join, run_select};
use crate::error::SqlError;
use crate::limits::EngineLimits;
use crate::parse::on_deep_stack;
use crate::plan::{Select, Write};
use crate::write::{Context, WritePlan, plan_definition, plan_typed, plan_write};

/// Answers statements over snapshots. Shared by all of a node's doors; it holds no rows.
pub struct Engine {
    limits: EngineLimits,
    session: Session,
    cache: StatementCache,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine whose statements keep within these limits.
    pub fn new(limits: EngineLimits) -> Engine {
        Engine { limits, session: Session::new(), cache: StatementCache::default() }
    }

    /// What a statement may take.
    pub fn limits(&self) -> &EngineLimits {
        &self.limits
    }

    /// Statements that were found prepared.
    pub fn cache_hits(&self) -> u64 {
        self.cache.hits()
    }

    /// Statements that had to be prepared.
    pub fn cache_misses(&self) -> u64 {
        self.cache.misses()
    }

    /// Reads and plans one statement; kept, and planned again only when a table that it names has changed its shape.
    ///
    /// `parameter_types` may give the types of parameters, from the first on; TEXT and `None` leave it to the statement.
    pub fn prepare(
        &self,
        snapshot: &GroupSnapshot,
        sql: &str,
        parameter_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>, SqlError> {
        if let Some(prepared) = self.cache.get(sql, parameter_types, snapshot) {
            return Ok(prepared);
        }
        let prepared =
            Arc::new(on_deep_stack(|| prepare::prepare_text(&self.session, snapshot, sql, parameter_types))?);
        self.cache.put(prepared.clone());
        Ok(prepared)
    }

    /// Answers a statement that reads, or EXPLAIN. Parameters are coerced to the statement's types.
    ///
    /// Dropping the answer, or the future, stops the statement.
    pub async fn query(
        &self,
        snapshot: &GroupSnapshot,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Result<Rows, SqlError> {
        let renewed = self.renewed(snapshot, prepared)?;
        let prepared = renewed.as_deref().unwrap_or(prepared);
        let coerced = coerce_parameters(&prepared.parameters, parameters)?;
        let parameters = coerced.as_deref().unwrap_or(parameters);
        match &prepared.body {
            Body::Direct(direct) => {
                let mut budget = Budget::read(&self.limits, true);
                if let Outcome::Rows(rows) = self.run_direct(snapshot, &direct.plan, parameters, &mut budget)? {
                    return Ok(Rows::Direct(rows));
                }
                let planned = self.behind(snapshot, prepared, direct)?;
                let rows = planned.run(&self.session, snapshot, parameters, &self.limits).await?;
                Ok(Rows::Stream(rows))
            }
            Body::DataFusion(planned) => {
                planned.run(&self.session, snapshot, parameters, &self.limits).await.map(Rows::Stream)
            }
            Body::Explain(inner) => {
                let explanation = self.explain_prepared(snapshot, inner, parameters).await?;
                explain::rows(&explanation)
            }
            Body::Write(_) | Body::Definition(_) => {
                Err(SqlError::NotSupported("a statement that writes, where one that reads is expected".into()))
            }
        }
    }

    fn run_direct(
        &self,
        snapshot: &GroupSnapshot,
        plan: &DirectPlan,
        parameters: &[Value],
        budget: &mut Budget,
    ) -> Result<Outcome, SqlError> {
        match plan {
            DirectPlan::Select(select) => {
                let table = snapshot.table(&select.table);
                let unknown = || SqlError::UnknownTable { table: select.table.clone() };
                run_select(select, table.ok_or_else(unknown)?, parameters, budget)
            }
            DirectPlan::Join(join) => {
                let table = |name: &str| {
                    let unknown = || SqlError::UnknownTable { table: name.to_owned() };
                    snapshot.table(name).cloned().ok_or_else(unknown)
                };
                let tables = join.schemas.iter().map(|s| table(&s.name)).collect::<Result<Arc<[Arc<Table>]>, _>>()?;
                run_join(join, &tables, parameters, budget)
            }
        }
    }

    /// DataFusion's plan of a statement that the direct path answers as long as its rows are few.
    fn behind<'a>(
        &self,
        snapshot: &GroupSnapshot,
        prepared: &Prepared,
        direct: &'a prepared::Direct,
    ) -> Result<&'a PlannedQuery, SqlError> {
        let plan =
            || on_deep_stack(|| prepare::plan_behind(&self.session, snapshot, prepared, &direct.query)).map(Box::new);
        match direct.behind.get_or_init(plan) {
            Ok(planned) => Ok(planned),
            Err(error) => Err(error.clone()),
        }
    }

    /// The same for a typed plan: no text, no planning to speak of. Never suspends.
    pub fn select(
        &self,
        snapshot: &GroupSnapshot,
        select: &Select,
        parameters: &[Value],
    ) -> Result<DirectRows, SqlError> {
        let unknown = || SqlError::UnknownTable { table: select.table.clone() };
        self.select_from(snapshot.table(&select.table).ok_or_else(unknown)?, select, parameters)
    }

    /// The same where the table is found already.
    pub fn select_from(
        &self,
        table: &Arc<Table>,
        select: &Select,
        parameters: &[Value],
    ) -> Result<DirectRows, SqlError> {
        if let Some(ids) = find_point(table, select, parameters)? {
            let (columns, projection) = point_answer(select, table.schema())?;
            return Ok(DirectRows::of_table(table.clone(), ids, columns, projection));
        }
        let plan = CompiledSelect::new(table, select)?;
        let mut budget = Budget::read(&self.limits, false);
        match run_select(&plan, table, parameters, &mut budget)? {
            Outcome::Rows(rows) => Ok(rows),
            Outcome::HandOver => Err(SqlError::Internal("a typed plan was handed over".into())),
        }
    }

    /// Turns a statement that writes into row operations against a snapshot. The operations must be applied to that
    /// snapshot, or planned anew.
    pub async fn plan_write(
        &self,
        snapshot: &GroupSnapshot,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Result<WritePlan, SqlError> {
        let renewed = self.renewed(snapshot, prepared)?;
        let prepared = renewed.as_deref().unwrap_or(prepared);
        let coerced = coerce_parameters(&prepared.parameters, parameters)?;
        let parameters = coerced.as_deref().unwrap_or(parameters);
        match &prepared.body {
            Body::Write(write) => plan_write(write, &self.context(snapshot, parameters)).await,
            Body::Definition(statement) => plan_definition(statement, snapshot),
            Body::Direct(_) | Body::DataFusion(_) | Body::Explain(_) => {
                Err(SqlError::NotSupported("a statement that reads, where one that writes is expected".into()))
            }
        }
    }

    /// The same for a typed write. Never suspends.
    pub fn plan_typed_write(&self, snapshot: &GroupSnapshot, write: &Write) -> Result<WritePlan, SqlError> {
        plan_typed(write, &self.context(snapshot, &[]))
    }

    fn context<'a>(&'a self, snapshot: &'a GroupSnapshot, parameters: &'a [Value]) -> Context<'a> {
        Context { session: &self.session, snapshot, parameters, limits: &self.limits }
    }

    /// The statement planned anew, when a table that it names has changed its shape since.
    fn renewed(&self, snapshot: &GroupSnapshot, prepared: &Prepared) -> Result<Option<Arc<Prepared>>, SqlError> {
        if prepared.is_current(snapshot) {
            return Ok(None);
        }
        let renewed = self.prepare(snapshot, &prepared.text, &prepared.given)?;
        if renewed.columns != prepared.columns || renewed.parameters != prepared.parameters {
            return Err(SqlError::PlanChanged);
        }
        Ok(Some(renewed))
    }
}
