//! Text → `Prepared`: read, bound to the direct path when its shape fits, else planned for DataFusion.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use cachesql_table::{GroupSnapshot, Table};
use cachesql_types::{DataType, TableSchema};
use sqlparser::ast::{
    BinaryOperator, Expr, LimitClause, ObjectName, ObjectType, Query, SetExpr, Statement, TableFactor, Value, VisitMut,
    VisitorMut, visit_relations,
};

use super::explain::explain_column;
use super::prepared::{Body, Direct, DirectPlan, Prepared};
use crate::answer::{ColumnInfo, StatementKind};
use crate::bind::{Bound, ParameterTypes, Unfit, bind_query, object_name};
use crate::datafusion::{PlannedQuery, Session};
use crate::direct::{CompiledJoin, CompiledSelect};
use crate::error::SqlError;
use crate::expansion::check_expansion;
use crate::parse::parse;
use crate::plan::JoinSelect;
use crate::write::{Binding, bind_write};

/// Prepares a text. Call it on a deep stack.
pub(super) fn prepare_text(
    session: &Session,
    snapshot: &GroupSnapshot,
    sql: &str,
    given: &[Option<DataType>],
) -> Result<Prepared, SqlError> {
    let mut parsed = parse(sql)?;
    if let ControlFlow::Break(what) = parsed.statement.visit(&mut Clauses) {
        return Err(SqlError::NotSupported(what.to_owned()));
    }
    check_expansion(&parsed.statement, snapshot)?;
    let types = ParameterTypes::new(parsed.parameters, given)?;
    let preparing = Preparing { session, snapshot, text: Arc::from(sql), given };
    preparing.statement(parsed.statement, parsed.upsert, types)
}

/// Plans for DataFusion what the direct path has found too large.
pub(super) fn plan_behind(
    session: &Session,
    snapshot: &GroupSnapshot,
    prepared: &Prepared,
    query: &Query,
) -> Result<PlannedQuery, SqlError> {
    let given: Vec<_> = prepared.parameters.iter().copied().map(Some).collect();
    let types = ParameterTypes::new(given.len(), &given)?;
    let mut planned = PlannedQuery::new(session, query, snapshot, &types, None)?;
    // The answer's columns were promised already.
    planned.columns = prepared.columns.clone();
    Ok(planned)
}

/// A plan of the direct path, and the columns that it answers.
type Compiled = (DirectPlan, Arc<[ColumnInfo]>);

struct Preparing<'a> {
    session: &'a Session,
    snapshot: &'a GroupSnapshot,
    text: Arc<str>,
    given: &'a [Option<DataType>],
}

impl Preparing<'_> {
    fn statement(&self, statement: Statement, upsert: bool, types: ParameterTypes) -> Result<Prepared, SqlError> {
        match statement {
            Statement::Query(query) => self.query(query, types),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Truncate(_) => {
                self.write(&statement, upsert, types)
            }
            Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::Drop { object_type: ObjectType::Table | ObjectType::Index, .. } => {
                let tables = self.tables_of(&statement);
                let body = Body::Definition(Box::new(statement));
                Ok(self.prepared(StatementKind::Definition, Arc::from([]), Vec::new(), (tables, Vec::new()), body))
            }
            Statement::Explain { analyze: false, statement, .. } => {
                let inner = self.statement(*statement, upsert, types)?;
                let (parameters, tables) = (inner.parameters.clone(), (inner.tables.clone(), inner.schemas.clone()));
                let columns = Arc::from([explain_column()]);
                Ok(self.prepared(StatementKind::Explain, columns, parameters, tables, Body::Explain(Box::new(inner))))
            }
            Statement::Explain { .. } => Err(SqlError::NotSupported("EXPLAIN ANALYZE".into())),
            other => {
                let text = other.to_string();
                let first: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(SqlError::NotSupported(first.join(" ")))
            }
        }
    }

    fn query(&self, query: Box<Query>, types: ParameterTypes) -> Result<Prepared, SqlError> {
        if writes(&query.body) {
            return Err(SqlError::NotSupported("a statement that writes inside another".into()));
        }
        let mut bound_types = types.clone();
        match bind_query(&query, self.snapshot, &mut bound_types) {
            Ok(bound) => {
                if let Some((plan, columns)) = self.compile(&bound)? {
                    let parameters = bound_types.finish();
                    let body = Body::Direct(Box::new(Direct { plan, query, behind: OnceLock::new() }));
                    let tables = self.named(bound.tables());
                    return Ok(self.prepared(StatementKind::Read, columns, parameters, tables, body));
                }
            }
            Err(Unfit::Error(error)) => return Err(error),
            Err(Unfit::Shape) => {}
        }
        let planned = PlannedQuery::new(self.session, &query, self.snapshot, &types, None)?;
        let tables = self.named(planned.tables.iter().map(|t| t.name.clone()).collect());
        let (columns, parameters) = (planned.columns.clone(), planned.parameters.clone());
        Ok(self.prepared(StatementKind::Read, columns, parameters, tables, Body::DataFusion(Box::new(planned))))
    }

    /// Makes a bound query ready; `None` when no index serves its joins.
    fn compile(&self, bound: &Bound) -> Result<Option<Compiled>, SqlError> {
        match bound {
            Bound::Select(select) => {
                let compiled = CompiledSelect::new(self.table(&select.table)?.as_ref(), select)?;
                let columns = compiled.columns.clone();
                Ok(Some((DirectPlan::Select(compiled), columns)))
            }
            Bound::Join(join) => {
                let tables = self.join_tables(join)?;
                let compiled = CompiledJoin::new(&tables, join)?;
                Ok(compiled.map(|c| {
                    let columns = c.columns.clone();
                    (DirectPlan::Join(c), columns)
                }))
            }
        }
    }

    fn table(&self, name: &str) -> Result<Arc<Table>, SqlError> {
        let unknown = || SqlError::UnknownTable { table: name.to_owned() };
        self.snapshot.table(name).cloned().ok_or_else(unknown)
    }

    fn join_tables(&self, join: &JoinSelect) -> Result<Vec<Arc<Table>>, SqlError> {
        join.tables.iter().map(|t| self.table(&t.table)).collect()
    }

    fn write(&self, statement: &Statement, upsert: bool, mut types: ParameterTypes) -> Result<Prepared, SqlError> {
        let mut binding = Binding { session: self.session, snapshot: self.snapshot, parameters: &mut types };
        let write = bind_write(statement, upsert, &mut binding)?;
        let columns = write.returning.iter().flatten().map(|(_, column)| column.clone()).collect();
        let mut names: BTreeSet<String> = self.tables_of(statement).into_iter().collect();
        names.insert(write.table.clone());
        let tables = self.named(names.into_iter().collect());
        Ok(self.prepared(StatementKind::Write, columns, types.finish(), tables, Body::Write(Box::new(write))))
    }

    /// The tables that a statement names and that are there.
    fn tables_of(&self, statement: &Statement) -> Vec<String> {
        let mut names = BTreeSet::new();
        let _ = visit_relations(statement, |name: &ObjectName| {
            if let Some(table) = object_name(name).and_then(|name| self.snapshot.table(name)) {
                names.insert(table.schema().name.clone());
            }
            ControlFlow::<()>::Continue(())
        });
        if let Statement::Drop { names: dropped, object_type: ObjectType::Table, .. } = statement {
            let tables = dropped.iter().filter_map(|n| object_name(n).and_then(|n| self.snapshot.table(n)));
            names.extend(tables.map(|t| t.schema().name.clone()));
        }
        names.into_iter().collect()
    }

    /// Names with the shapes that their tables have now.
    fn named(&self, names: Vec<String>) -> (Vec<String>, Vec<Arc<TableSchema>>) {
        let schemas = names.iter().filter_map(|n| Some(self.snapshot.table(n)?.schema().clone())).collect();
        (names, schemas)
    }

    fn prepared(
        &self,
        kind: StatementKind,
        columns: Arc<[ColumnInfo]>,
        parameters: Vec<DataType>,
        (tables, schemas): (Vec<String>, Vec<Arc<TableSchema>>),
        body: Body,
    ) -> Prepared {
        let given = self.given.to_vec();
        Prepared { text: self.text.clone(), given, kind, columns, parameters, tables, schemas, body }
    }
}

/// Whether a query has INSERT, UPDATE or DELETE where a SELECT stands.
fn writes(body: &SetExpr) -> bool {
    match body {
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => true,
        SetExpr::Query(query) => writes(&query.body),
        SetExpr::SetOperation { left, right, .. } => writes(left) || writes(right),
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Table(_) => false,
    }
}

/// FETCH FIRST n ROWS ONLY is LIMIT n in other words. Clauses that planning would pass over in silence are named.
struct Clauses;

impl VisitorMut for Clauses {
    type Break = &'static str;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<&'static str> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                ControlFlow::Break("TABLESAMPLE")
            }
            TableFactor::Table { version: Some(_), .. } => ControlFlow::Break("a table as of another time"),
            TableFactor::Table { index_hints, .. } if !index_hints.is_empty() => ControlFlow::Break("index hints"),
            TableFactor::Table { with_hints, .. } if !with_hints.is_empty() => ControlFlow::Break("table hints"),
            _ => ControlFlow::Continue(()),
        }
    }

    /// The parser takes all that follows IS DISTINCT FROM for its right side, AND and OR too: what was meant is lost then.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<&'static str> {
        match expr {
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right)
                if matches!(**right, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }) =>
            {
                ControlFlow::Break("IS DISTINCT FROM beside AND or OR without parentheses around it")
            }
            // DataFusion means something else by them.
            Expr::SimilarTo { .. } => ControlFlow::Break("SIMILAR TO"),
            Expr::AtTimeZone { .. } => ControlFlow::Break("AT TIME ZONE"),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<&'static str> {
        if !query.locks.is_empty() {
            return ControlFlow::Break("FOR UPDATE and FOR SHARE");
        }
        if let SetExpr::Select(select) = &*query.body
            && select.into.is_some()
        {
            return ControlFlow::Break("SELECT INTO");
        }
        if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
            return ControlFlow::Break("such a clause behind a query");
        }
        if query.fetch.as_ref().is_some_and(|f| f.with_ties || f.percent) {
            return ControlFlow::Break("FETCH … WITH TIES or PERCENT");
        }
        let Some(fetch) = query.fetch.take_if(|f| !f.with_ties && !f.percent) else {
            return ControlFlow::Continue(());
        };
        let one = || Expr::value(Value::Number("1".into(), false));
        let rows = Some(fetch.quantity.unwrap_or_else(one));
        match &mut query.limit_clause {
            None => {
                query.limit_clause = Some(LimitClause::LimitOffset { limit: rows, offset: None, limit_by: Vec::new() });
            }
            Some(LimitClause::LimitOffset { limit, .. }) if limit.is_none() => *limit = rows,
            Some(_) => {}
        }
        ControlFlow::Continue(())
    }
}
