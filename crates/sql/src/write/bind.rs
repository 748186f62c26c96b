//! INSERT, UPDATE, DELETE and TRUNCATE → what they do, bound to the columns of their table.

use std::sync::Arc;

use cachesql_table::{GroupSnapshot, Table};
use cachesql_types::{DataType, TableSchema, counted};
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, Expr, FromTable, Ident, ObjectName, ObjectNamePart, OnConflictAction, OnInsert,
    Query, SelectItem, SetExpr, Statement, TableObject, TableWithJoins, UpdateTableFromKind,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::expression::{Scalar, bind_scalar};
use crate::answer::ColumnInfo;
use crate::bind::{ParameterTypes, Scope, Unfit, bind_predicate, object_name, single_table};
use crate::datafusion::{PlannedQuery, ROW_ID_COLUMN, Session};
use crate::error::SqlError;
use crate::plan::{Filter, OnConflict};

/// A write, bound.
#[derive(Debug)]
pub(crate) struct BoundWrite {
    /// The table, as its schema names it.
    pub(crate) table: String,
    pub(crate) action: Action,
    pub(crate) returning: Option<Vec<(Scalar, ColumnInfo)>>,
}

/// What is done.
#[derive(Debug)]
pub(crate) enum Action {
    Insert { columns: Vec<usize>, source: Source, conflict: Box<ConflictAction> },
    Update { set: Vec<(usize, SetValue)>, rows: RowSource },
    Delete { rows: RowSource },
    Truncate,
}

/// Where the rows of an INSERT come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// VALUES; an expression that is DataFusion's is a column of `computed`'s one row.
    Rows {
        rows: Vec<Vec<SetValue>>,
        computed: Option<Box<PlannedQuery>>,
    },
    Query(Box<PlannedQuery>),
}

/// What an INSERT does where a row is there.
#[derive(Debug)]
pub(crate) enum ConflictAction {
    Plain(OnConflict),
    Update { columns: Vec<usize>, set: Vec<(usize, Scalar)>, filter: Option<Filter> },
}

/// A value that is worked out per row here, or comes out of DataFusion's rows.
#[derive(Clone, Debug)]
pub(crate) enum SetValue {
    Scalar(Scalar),
    /// Position among the expressions that DataFusion works out.
    Computed(usize),
}

/// Which rows an UPDATE or DELETE is about.
#[derive(Debug)]
pub(crate) enum RowSource {
    /// Those for which a filter is true.
    Filter(Option<Filter>),
    /// Those whose ids DataFusion answers in its first column, the computed values behind it.
    Query(Box<PlannedQuery>),
}

/// What binding needs.
pub(crate) struct Binding<'a> {
    pub(crate) session: &'a Session,
    pub(crate) snapshot: &'a GroupSnapshot,
    pub(crate) parameters: &'a mut ParameterTypes,
}

/// Binds a write. `upsert` is UPSERT INTO.
pub(crate) fn bind_write(
    statement: &Statement,
    upsert: bool,
    binding: &mut Binding<'_>,
) -> Result<BoundWrite, SqlError> {
    match statement {
        Statement::Insert(insert) => binding.insert(insert, upsert),
        Statement::Update(update) => binding.update(update),
        Statement::Delete(delete) => binding.delete(delete),
        Statement::Truncate(truncate) => match truncate.table_names.as_slice() {
            [target] if truncate.partitions.is_none() && truncate.on_cluster.is_none() => {
                let table = binding.table(&target.name)?;
                let table = table.schema().name.clone();
                Ok(BoundWrite { table, action: Action::Truncate, returning: None })
            }
            _ => Err(unsupported("TRUNCATE of several tables")),
        },
        _ => Err(SqlError::Internal("not a write".into())),
    }
}

fn unsupported(what: &str) -> SqlError {
    SqlError::NotSupported(what.to_owned())
}

/// A tree that does not fit means a shape that is not supported.
fn refuse(unfit: Unfit, what: &str) -> SqlError {
    match unfit {
        Unfit::Error(error) => error,
        Unfit::Shape => unsupported(what),
    }
}

impl Binding<'_> {
    fn table(&self, name: &ObjectName) -> Result<Arc<Table>, SqlError> {
        let found = object_name(name).and_then(|name| self.snapshot.table(name));
        found.cloned().ok_or_else(|| SqlError::UnknownTable { table: name.to_string() })
    }

    fn insert(&mut self, insert: &ast::Insert, upsert: bool) -> Result<BoundWrite, SqlError> {
        let TableObject::TableName(name) = &insert.table else { return Err(unsupported("INSERT into that")) };
        let odd = insert.or.is_some()
            || insert.ignore
            || insert.overwrite
            || insert.partitioned.is_some()
            || !insert.after_columns.is_empty()
            || !insert.assignments.is_empty()
            || insert.replace_into
            || insert.output.is_some()
            || insert.insert_alias.is_some();
        if odd {
            return Err(unsupported("this form of INSERT"));
        }
        let table = self.table(name)?;
        let mut scope = Scope::of(&table);
        if let (Some(alias), Some(only)) = (&insert.table_alias, scope.tables.first_mut()) {
            only.label = alias.alias.value.clone();
        }
        let schema = table.schema();
        let columns = match insert.columns.as_slice() {
            [] => (0..schema.columns.len()).collect(),
            names => names.iter().map(|n| column_named(schema, n)).collect::<Result<Vec<_>, _>>()?,
        };
        if let Some(column) = columns.iter().enumerate().find(|(i, c)| columns.iter().take(*i).any(|d| d == *c)) {
            let name = schema.columns.get(*column.1).map(|c| c.name.clone()).unwrap_or_default();
            return Err(SqlError::Refused { sqlstate: "42701", message: format!("column {name:?} is given twice") });
        }
        let source = self.source(insert.source.as_deref(), schema, &columns)?;
        let columns = self.given_columns(columns, &source, insert.columns.is_empty())?;
        let conflict = match (&insert.on, upsert) {
            (None, false) => ConflictAction::Plain(OnConflict::Refuse),
            (None, true) => ConflictAction::Plain(OnConflict::Replace { columns: Vec::new() }),
            (Some(OnInsert::OnConflict(on)), false) => self.conflict(on, &table, &scope)?,
            _ => return Err(unsupported("this form of ON CONFLICT")),
        };
        let returning = self.returning(insert.returning.as_deref(), &scope)?;
        Ok(BoundWrite {
            table: schema.name.clone(),
            action: Action::Insert { columns, source, conflict: Box::new(conflict) },
            returning,
        })
    }

    /// Without a list of columns, rows may give fewer than the table has.
    fn given_columns(&self, mut columns: Vec<usize>, source: &Source, all: bool) -> Result<Vec<usize>, SqlError> {
        let width = match source {
            Source::Rows { rows, .. } => rows.first().map_or(0, Vec::len),
            Source::Query(query) => query.columns.len(),
        };
        if all && width < columns.len() {
            columns.truncate(width);
        }
        if columns.len() != width {
            let message =
                format!("INSERT names {} and gives {}", counted(columns.len(), "column"), counted(width, "value"));
            return Err(SqlError::Syntax(message));
        }
        Ok(columns)
    }

    fn source(&mut self, source: Option<&Query>, schema: &TableSchema, columns: &[usize]) -> Result<Source, SqlError> {
        let Some(query) = source else {
            return Ok(Source::Rows { rows: vec![Vec::new()], computed: None });
        };
        let bare = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none();
        let SetExpr::Values(values) = &*query.body else {
            return self.query(query).map(|q| Source::Query(Box::new(q)));
        };
        if !bare {
            return self.query(query).map(|q| Source::Query(Box::new(q)));
        }
        let mut computed = Vec::new();
        let mut rows = Vec::with_capacity(values.rows.len());
        let nothing = Scope::default();
        let width = values.rows.first().map_or(0, |r| r.content.len());
        for row in &values.rows {
            if row.content.len() != width {
                return Err(SqlError::Syntax("VALUES lists must all be of one length".into()));
            }
            if width > columns.len() {
                return Err(SqlError::Syntax("INSERT has more values than columns".into()));
            }
            let mut bound = Vec::with_capacity(width);
            for (expr, column) in row.content.iter().zip(columns) {
                let data_type = schema.columns.get(*column).map_or(DataType::Text, |c| c.data_type);
                bound.push(self.value(expr, &nothing, data_type, &mut computed)?);
            }
            rows.push(bound);
        }
        let computed = if computed.is_empty() {
            None
        } else {
            Some(Box::new(self.query(&select_of(computed, Vec::new(), None)?)?))
        };
        Ok(Source::Rows { rows, computed })
    }

    fn query(&mut self, query: &Query) -> Result<PlannedQuery, SqlError> {
        self.planned(query, None)
    }

    fn planned(&mut self, query: &Query, with_row_id: Option<&str>) -> Result<PlannedQuery, SqlError> {
        let planned = PlannedQuery::new(self.session, query, self.snapshot, self.parameters, with_row_id)?;
        for (position, data_type) in &planned.found {
            self.parameters.expect(*position, *data_type)?;
        }
        Ok(planned)
    }

    /// An expression worked out here, or put among those that DataFusion works out.
    fn value(
        &mut self,
        expr: &Expr,
        scope: &Scope,
        wanted: DataType,
        computed: &mut Vec<Expr>,
    ) -> Result<SetValue, SqlError> {
        if matches!(expr, Expr::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
        {
            return Ok(SetValue::Scalar(Scalar::Value(cachesql_types::Value::Null)));
        }
        match bind_scalar(expr, scope, false, wanted, self.parameters) {
            Ok(scalar) => Ok(SetValue::Scalar(scalar)),
            Err(Unfit::Error(error)) => Err(error),
            Err(Unfit::Shape) => {
                computed.push(expr.clone());
                Ok(SetValue::Computed(computed.len() - 1))
            }
        }
    }

    fn conflict(&mut self, on: &ast::OnConflict, table: &Table, scope: &Scope) -> Result<ConflictAction, SqlError> {
        let schema = table.schema();
        let columns = match &on.conflict_target {
            None => Vec::new(),
            Some(ast::ConflictTarget::Columns(names)) => {
                names.iter().map(|n| column_of(schema, &n.value)).collect::<Result<Vec<_>, _>>()?
            }
            Some(ast::ConflictTarget::OnConstraint(name)) => {
                let wanted = object_name(name).unwrap_or_default();
                let index = table.indexes().iter().find(|i| i.definition().name.eq_ignore_ascii_case(wanted));
                let index = index.ok_or_else(|| SqlError::UnknownIndex { index: wanted.to_owned() })?;
                index.definition().columns.clone()
            }
        };
        let update = match &on.action {
            OnConflictAction::DoNothing => return Ok(ConflictAction::Plain(OnConflict::DoNothing { columns })),
            OnConflictAction::DoUpdate(update) => update,
        };
        if columns.is_empty() {
            return Err(SqlError::Syntax("ON CONFLICT DO UPDATE must name the columns of a unique key".into()));
        }
        let mut set = Vec::new();
        for (column, expr) in assignments(&update.assignments, schema)? {
            let wanted = schema.columns.get(column).map_or(DataType::Text, |c| c.data_type);
            let bound = bind_scalar(expr, scope, true, wanted, self.parameters);
            set.push((column, bound.map_err(|u| refuse(u, "such an expression in ON CONFLICT DO UPDATE"))?));
        }
        let filter = update.selection.as_ref().map(|expr| bind_predicate(expr, scope, self.parameters)).transpose();
        let filter = filter.map_err(|u| refuse(u, "such a condition in ON CONFLICT DO UPDATE … WHERE"))?;
        Ok(ConflictAction::Update { columns, set, filter: filter.map(|(_, filter)| filter) })
    }

    fn update(&mut self, update: &ast::Update) -> Result<BoundWrite, SqlError> {
        if update.or.is_some() || update.output.is_some() || !update.order_by.is_empty() || update.limit.is_some() {
            return Err(unsupported("this form of UPDATE"));
        }
        let (name, alias) =
            single_table(std::slice::from_ref(&update.table)).ok_or_else(|| unsupported("UPDATE of a join"))?;
        let table = self.table(name)?;
        let scope = scope_of(&table, name, alias);
        let mut computed = Vec::new();
        let mut set = Vec::new();
        let more = match &update.from {
            None => Vec::new(),
            Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => from.clone(),
        };
        for (column, expr) in assignments(&update.assignments, table.schema())? {
            let wanted = table.schema().columns.get(column).map_or(DataType::Text, |c| c.data_type);
            let value = if more.is_empty() || matches!(expr, Expr::Value(_)) {
                self.value(expr, &scope, wanted, &mut computed)?
            } else {
                computed.push(expr.clone());
                SetValue::Computed(computed.len() - 1)
            };
            set.push((column, value));
        }
        let rows = self.rows(&table, &scope, &update.table, more, update.selection.as_ref(), computed)?;
        let returning = self.returning(update.returning.as_deref(), &scope)?;
        Ok(BoundWrite { table: table.schema().name.clone(), action: Action::Update { set, rows }, returning })
    }

    fn delete(&mut self, delete: &ast::Delete) -> Result<BoundWrite, SqlError> {
        if !delete.tables.is_empty() || delete.output.is_some() || !delete.order_by.is_empty() || delete.limit.is_some()
        {
            return Err(unsupported("this form of DELETE"));
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let (name, alias) = single_table(from).ok_or_else(|| unsupported("DELETE from a join"))?;
        let table = self.table(name)?;
        let scope = scope_of(&table, name, alias);
        let target = from.first().ok_or_else(|| unsupported("DELETE without a table"))?;
        let more = delete.using.clone().unwrap_or_default();
        let rows = self.rows(&table, &scope, target, more, delete.selection.as_ref(), Vec::new())?;
        let returning = self.returning(delete.returning.as_deref(), &scope)?;
        Ok(BoundWrite { table: table.schema().name.clone(), action: Action::Delete { rows }, returning })
    }

    /// The rows that a condition picks: by the direct path when it can, else by a query for their ids.
    fn rows(
        &mut self,
        table: &Table,
        scope: &Scope,
        target: &TableWithJoins,
        more: Vec<TableWithJoins>,
        selection: Option<&Expr>,
        computed: Vec<Expr>,
    ) -> Result<RowSource, SqlError> {
        if more.is_empty() && computed.is_empty() {
            let Some(selection) = selection else { return Ok(RowSource::Filter(None)) };
            let before = self.parameters.clone();
            match bind_predicate(selection, scope, self.parameters) {
                Ok((_, filter)) => return Ok(RowSource::Filter(Some(filter))),
                Err(Unfit::Error(error)) => return Err(error),
                // What half a binding found out about types is forgotten; DataFusion finds its own.
                Err(Unfit::Shape) => *self.parameters = before,
            }
        }
        let label = scope.tables.first().map(|t| t.label.clone()).unwrap_or_default();
        let id = Expr::CompoundIdentifier(vec![Ident::with_quote('"', label), Ident::new(ROW_ID_COLUMN)]);
        let items = std::iter::once(id).chain(computed).collect();
        let from = std::iter::once(target.clone()).chain(more).collect();
        let query = select_of(items, from, selection.cloned())?;
        self.planned(&query, Some(&table.schema().name)).map(|query| RowSource::Query(Box::new(query)))
    }

    fn returning(
        &mut self,
        items: Option<&[SelectItem]>,
        scope: &Scope,
    ) -> Result<Option<Vec<(Scalar, ColumnInfo)>>, SqlError> {
        let (Some(items), Some(table)) = (items, scope.tables.first()) else { return Ok(None) };
        let schema = table.table.schema();
        let mut bound = Vec::new();
        for item in items {
            let (expr, alias) = match item {
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    bound.extend(schema.columns.iter().enumerate().map(|(i, c)| {
                        (Scalar::Column(i), ColumnInfo { name: c.name.clone(), data_type: c.data_type })
                    }));
                    continue;
                }
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
                SelectItem::ExprWithAliases { .. } => return Err(unsupported("such a column in RETURNING")),
            };
            let scalar = bind_scalar(expr, scope, false, DataType::Text, self.parameters);
            let scalar = scalar.map_err(|u| refuse(u, "such an expression in RETURNING; columns and casts are"))?;
            let data_type = scalar
                .fixed_type(&schema.columns)
                .ok_or_else(|| unsupported("such an expression in RETURNING without a cast"))?;
            let own = match &scalar {
                Scalar::Column(column) => schema.columns.get(*column).map(|c| c.name.clone()),
                _ => None,
            };
            let name = alias.or(own).unwrap_or_else(|| "?column?".into());
            bound.push((scalar, ColumnInfo { name, data_type }));
        }
        Ok(Some(bound))
    }
}

fn scope_of(table: &Arc<Table>, name: &ObjectName, alias: Option<&str>) -> Scope {
    let mut scope = Scope::of(table);
    if let Some(only) = scope.tables.first_mut() {
        only.label = alias.or(object_name(name)).unwrap_or_default().to_owned();
    }
    scope
}

fn column_of(schema: &TableSchema, name: &str) -> Result<usize, SqlError> {
    let unknown = || SqlError::UnknownColumn { table: Some(schema.name.clone()), column: name.to_owned() };
    schema.column(name).ok_or_else(unknown)
}

fn column_named(schema: &TableSchema, name: &ObjectName) -> Result<usize, SqlError> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => column_of(schema, &ident.value),
        _ => Err(unsupported("such a column name")),
    }
}

/// SET column = expression, …
fn assignments<'a>(list: &'a [Assignment], schema: &TableSchema) -> Result<Vec<(usize, &'a Expr)>, SqlError> {
    let mut set: Vec<(usize, &Expr)> = Vec::with_capacity(list.len());
    for assignment in list {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => set.push((column_named(schema, name)?, value)),
            (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                for (name, value) in names.iter().zip(values) {
                    set.push((column_named(schema, name)?, value));
                }
            }
            _ => return Err(unsupported("such an assignment")),
        }
    }
    for (i, (column, _)) in set.iter().enumerate() {
        if set.iter().take(i).any(|(other, _)| other == column) {
            let name = schema.columns.get(*column).map(|c| c.name.clone()).unwrap_or_default();
            return Err(SqlError::Refused { sqlstate: "42601", message: format!("column {name:?} is set twice") });
        }
    }
    Ok(set)
}

/// SELECT items FROM from WHERE selection, as a tree.
fn select_of(items: Vec<Expr>, from: Vec<TableWithJoins>, selection: Option<Expr>) -> Result<Query, SqlError> {
    let broken = || SqlError::Internal("a query for a write could not be made".into());
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, "SELECT 1").map_err(|_| broken())?;
    let Some(Statement::Query(mut query)) = parsed.into_iter().next() else { return Err(broken()) };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(broken()) };
    let named = |(i, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::new(format!("__value_{i}")) };
    select.projection = items.into_iter().enumerate().map(named).collect();
    select.from = from;
    select.selection = selection;
    Ok(*query)
}
