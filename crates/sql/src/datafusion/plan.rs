//! A query planned for DataFusion: its columns and parameters are known before it runs.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, FieldRef};
use cachesql_table::GroupSnapshot;
use cachesql_types::{DataType, TableSchema, Value};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{ParamValues, Result, TableReference};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use sqlparser::ast::{self, Expr, LimitClause, Query, Statement, Visit, Visitor};

use super::bounded::{batch_rows, begin_batch};
use super::errors::of_datafusion;
use super::functions::is_operation;
use super::names::{Folding, ItemName, REPEATED, SPELLING_METADATA, item_names};
use super::provider::SnapshotTable;
use super::respell::respelt;
use super::scalar::{plan_field, scalar_of, sql_type};
use super::semantics::put_right;
use super::session::Session;
use super::stream::RowStream;
use super::watch::{Deadline, watched};
use super::words::sql_words;
use crate::answer::ColumnInfo;
use crate::bind::ParameterTypes;
use crate::error::SqlError;
use crate::limits::EngineLimits;
use crate::parse::on_deep_stack;

/// A query, planned but for what depends on the values of its parameters and on the rows.
#[derive(Debug)]
pub(crate) struct PlannedQuery {
    plan: LogicalPlan,
    /// What it answers.
    pub(crate) columns: Arc<[ColumnInfo]>,
    /// The types of its parameters.
    pub(crate) parameters: Vec<DataType>,
    /// Those of its parameters that planning found a type for.
    pub(crate) found: Vec<(usize, DataType)>,
    /// The tables that it reads.
    pub(crate) tables: Vec<Arc<TableSchema>>,
}

impl PlannedQuery {
    /// Plans a query over the tables of a snapshot. `with_row_id` names the table whose rows a write wants to know.
    /// Call it on a deep stack.
    pub(crate) fn new(
        session: &Session,
        query: &Query,
        snapshot: &GroupSnapshot,
        types: &ParameterTypes,
        with_row_id: Option<&str>,
    ) -> Result<PlannedQuery, SqlError> {
        let mut statement = Statement::Query(Box::new(query.clone()));
        let mut folding = Folding::new(&statement, snapshot);
        folding.apply(&mut statement);
        let catalog = Catalog::new(session.planning(), snapshot, &folding, with_row_id);
        let mut types = types.clone();
        type_limits(&statement, &mut types)?;
        let respelt = |error| respelt(error, query, &folding, snapshot);
        let mut plan = catalog.plan(&statement, types.known()).map_err(respelt)?;
        // Types that the first planning found are given to a second, so that it coerces to them.
        let before = types.known().to_vec();
        let found = found_parameters(&plan)?;
        for (position, data_type) in &found {
            types.expect(*position, *data_type)?;
        }
        let parameters = types.finish();
        if before.iter().any(Option::is_none) {
            let known: Vec<_> = parameters.iter().copied().map(Some).collect();
            plan = catalog.plan(&statement, &known).map_err(respelt)?;
        }
        let plan = put_right(plan).map_err(|error| respelt(of_datafusion(error)))?;
        // Its columns have the types that running it will give them: types are brought together there.
        let config = session.planning().config_options();
        let analyzed = session.planning().analyzer().execute_and_check(plan.clone(), config, |_, _| {});
        let analyzed = analyzed.map_err(|error| respelt(of_datafusion(error)))?;
        let columns = answer_columns(&analyzed, query, &folding)?;
        let tables = folding.tables.iter().filter_map(|t| Some(snapshot.table(t)?.schema().clone())).collect();
        Ok(PlannedQuery { plan, columns, parameters, found, tables })
    }

    /// Starts it over a snapshot. `parameters` have the statement's types.
    pub(crate) async fn run(
        &self,
        session: &Session,
        snapshot: &GroupSnapshot,
        parameters: &[Value],
        limits: &EngineLimits,
    ) -> Result<RowStream, SqlError> {
        let deadline = Deadline::new(limits.timeout);
        let mut state = session.execution(snapshot, limits.memory_bytes)?;
        let plan = self.physical(&mut state, parameters).await?;
        let plan = watched(plan, &deadline).map_err(of_datafusion)?;
        let batches = datafusion::physical_plan::execute_stream(plan, state.task_ctx()).map_err(of_datafusion)?;
        Ok(RowStream::running(self.columns.clone(), batches, deadline, limits))
    }

    /// How DataFusion would run it, line by line.
    pub(crate) async fn describe(
        &self,
        session: &Session,
        snapshot: &GroupSnapshot,
        parameters: &[Value],
        limits: &EngineLimits,
    ) -> Result<String, SqlError> {
        let mut state = session.execution(snapshot, limits.memory_bytes)?;
        let plan = self.physical(&mut state, parameters).await?;
        Ok(displayable(plan.as_ref()).indent(false).to_string())
    }

    /// The plan that is run; `state` learns how many rows its batches may have.
    async fn physical(
        &self,
        state: &mut SessionState,
        parameters: &[Value],
    ) -> Result<Arc<dyn ExecutionPlan>, SqlError> {
        // Parameters of other parts of the statement are in the list too, in types of their own.
        let typed = |(position, value): (usize, &Value)| {
            let found = self.found.iter().find(|(p, _)| *p == position).map(|(_, data_type)| *data_type);
            scalar_of(value, found.or(value.data_type()).unwrap_or(DataType::Text))
        };
        let scalars = parameters.iter().enumerate().map(typed).collect::<Result<Vec<_>, _>>()?;
        let optimized = on_deep_stack(|| {
            begin_batch();
            let plan = self.plan.clone();
            let plan = if scalars.is_empty() {
                Ok(plan)
            } else {
                // Values can need what literals of the text had done to them.
                plan.with_param_values(ParamValues::from(scalars)).and_then(put_right)
            };
            plan.and_then(|plan| state.optimize(&plan))
        });
        let optimized = optimized.map_err(of_datafusion)?;
        let usual = state.config().batch_size();
        let rows = batch_rows(&optimized, usual).map_err(of_datafusion)?;
        *state.config_mut() = state.config().clone().with_batch_size(rows);
        let state = &*state;
        state.query_planner().create_physical_plan(&optimized, state).await.map_err(of_datafusion)
    }
}

/// Parameters of LIMIT and OFFSET are numbers of rows, which planning does not infer.
fn type_limits(statement: &Statement, types: &mut ParameterTypes) -> Result<(), SqlError> {
    struct Limits<'a>(&'a mut ParameterTypes);
    impl Visitor for Limits<'_> {
        type Break = SqlError;

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
            let (limit, offset) = match &query.limit_clause {
                Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                    (limit.as_ref(), offset.as_ref().map(|o| &o.value))
                }
                Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
                None => (None, None),
            };
            for expr in limit.into_iter().chain(offset) {
                if let Expr::Value(value) = expr
                    && let ast::Value::Placeholder(name) = &value.value
                {
                    let position = crate::parse::parameter_position(name);
                    match position.and_then(|p| self.0.expect(p, DataType::BigInt)) {
                        Ok(_) => {}
                        Err(error) => return ControlFlow::Break(error),
                    }
                }
            }
            ControlFlow::Continue(())
        }
    }
    match statement.visit(&mut Limits(types)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The parameters' types that planning inferred.
fn found_parameters(plan: &LogicalPlan) -> Result<Vec<(usize, DataType)>, SqlError> {
    let fields = plan.get_parameter_fields().map_err(of_datafusion)?;
    let mut found = Vec::new();
    for (name, field) in fields {
        let position = crate::parse::parameter_position(&name)?;
        if let Some(data_type) = field.as_deref().filter(|f| *f.data_type() != ArrowType::Null).and_then(sql_type) {
            found.push((position, data_type));
        }
    }
    found.sort_by_key(|(position, _)| *position);
    Ok(found)
}

fn answer_columns(plan: &LogicalPlan, query: &Query, folding: &Folding) -> Result<Arc<[ColumnInfo]>, SqlError> {
    let fields = plan.schema().fields();
    let items = item_names(query, fields.len());
    let column = |(field, item): (&FieldRef, ItemName)| {
        let spelt = |folded: &str| {
            let own = field.metadata().get(SPELLING_METADATA).filter(|s| folding.fold(s) == folded);
            own.map(String::as_str).or_else(|| folding.spelling(folded)).map(str::to_owned)
        };
        let name = match item {
            ItemName::Given(name) => name,
            ItemName::Column(name) => spelt(&folding.fold(&name)).unwrap_or(name),
            ItemName::Unnamed => spelt(field.name()).unwrap_or_else(|| made_name(field.name())),
        };
        let data_type = sql_type(field).ok_or_else(|| {
            let data_type = sql_words(&field.data_type().to_string());
            let hint = if data_type == "INTERVAL" { "; a cast to TEXT helps" } else { "" };
            SqlError::NotSupported(format!("a result of type {data_type} (column {name:?}){hint}"))
        })?;
        Ok(ColumnInfo { name, data_type })
    };
    fields.iter().zip(items).map(column).collect()
}

/// The name of a column that an inner SELECT made and gave no alias: PostgreSQL's, where DataFusion calls it by how it is
/// made.
fn made_name(name: &str) -> String {
    let function = name.split_once('(').map(|(function, _)| function);
    let is_word = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    match function {
        Some(function) if is_word(function) && !function.is_empty() && !is_operation(function) => function.to_owned(),
        None if is_word(name) && !name.starts_with(REPEATED) => name.to_owned(),
        _ => "?column?".to_owned(),
    }
}

/// The tables of a statement, and DataFusion's functions.
struct Catalog<'a> {
    state: &'a SessionState,
    tables: HashMap<String, Arc<dyn TableSource>>,
    types: Arc<dyn TypePlanner>,
}

impl<'a> Catalog<'a> {
    fn new(
        state: &'a SessionState,
        snapshot: &GroupSnapshot,
        folding: &Folding,
        with_row_id: Option<&str>,
    ) -> Catalog<'a> {
        let table = |name: &String| {
            let table = snapshot.table(name)?;
            let provider = SnapshotTable::new(table.schema(), folding, with_row_id == Some(name.as_str()));
            Some((folding.fold(name), provider_as_source(Arc::new(provider))))
        };
        let tables = folding.tables.iter().filter_map(table).collect();
        Catalog { state, tables, types: Arc::new(super::semantics::TableTypes) }
    }

    fn plan(&self, statement: &Statement, types: &[Option<DataType>]) -> Result<LogicalPlan, SqlError> {
        let fields = types.iter().map(|t| t.map(|data_type| plan_field("", data_type))).collect();
        let mut context = PlannerContext::new().with_prepare_param_data_types(fields);
        let planner = SqlToRel::new(self);
        planner.sql_statement_to_plan_with_context(statement.clone(), &mut context).map_err(of_datafusion)
    }
}

impl ContextProvider for Catalog<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let known = match &name {
            TableReference::Bare { table } => self.tables.get(table.as_ref()),
            _ => None,
        };
        known
            .cloned()
            .ok_or_else(|| DataFusionError::External(Box::new(SqlError::UnknownTable { table: name.to_string() })))
    }

    fn create_cte_work_table(&self, name: &str, schema: arrow::datatypes::SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(self.types.clone())
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<ArrowType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}
