//! SELECT → `Select` over one table, or `JoinSelect` over a few.

use std::collections::BTreeSet;

use cachesql_table::GroupSnapshot;
use cachesql_types::{DataType, limits};
use sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, JoinConstraint,
    JoinOperator, LimitClause, ObjectNamePart, OrderByKind, Query, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr,
};

use super::Unfit;
use super::parameters::ParameterTypes;
use super::predicate::{bind_predicate, column_place};
use super::scope::{ColumnPlace, Scope};
use crate::parse::parameter_position;
use crate::plan::{Amount, Filter, JoinEquality, JoinSelect, JoinTable, OrderBy, Projection, Select};

/// A query that the direct path may answer.
#[derive(Clone, Debug)]
pub(crate) enum Bound {
    /// One table.
    Select(Select),
    /// Several, joined by equality.
    Join(JoinSelect),
}

/// Binds a query whose shape fits.
pub(crate) fn bind_query(
    query: &Query,
    snapshot: &GroupSnapshot,
    parameters: &mut ParameterTypes,
) -> Result<Bound, Unfit> {
    let select = plain_select(query)?;
    let mut scope = Scope::default();
    let mut conditions = Vec::new();
    for from in &select.from {
        scope.add(snapshot, &from.relation)?;
        for join in &from.joins {
            scope.add(snapshot, &join.relation)?;
            match &join.join_operator {
                JoinOperator::Join(JoinConstraint::On(on)) | JoinOperator::Inner(JoinConstraint::On(on)) => {
                    conjuncts(on, &mut conditions);
                }
                _ => return Err(Unfit::Shape),
            }
        }
    }
    if scope.tables.is_empty() || scope.tables.len() > limits::MAX_DIRECT_JOIN_TABLES {
        return Err(Unfit::Shape);
    }
    if let Some(selection) = &select.selection {
        conjuncts(selection, &mut conditions);
    }
    let (columns, count) = projection(&select.projection, &scope)?;
    let order = order_by(query, &columns, &scope)?;
    let (limit, offset) = limits_of(query, parameters)?;
    if count && !order.is_empty() {
        return Err(Unfit::Shape);
    }
    let mut filters: Vec<Vec<Filter>> = scope.tables.iter().map(|_| Vec::new()).collect();
    let mut equalities = Vec::new();
    for condition in conditions {
        if let Some(equality) = column_equality(condition, &scope)? {
            equalities.push(equality);
            continue;
        }
        let (table, filter) = bind_predicate(condition, &scope, parameters)?;
        filters.get_mut(table.unwrap_or(0)).ok_or(Unfit::Shape)?.push(filter);
    }
    Ok(assemble(scope, columns, count, filters, equalities, order, (limit, offset)))
}

type NamedColumn = (ColumnPlace, Option<String>);

fn assemble(
    scope: Scope,
    columns: Vec<NamedColumn>,
    count: bool,
    filters: Vec<Vec<Filter>>,
    equalities: Vec<JoinEquality>,
    order: Vec<(usize, OrderBy)>,
    (limit, offset): (Option<Amount>, Option<Amount>),
) -> Bound {
    let names = scope.tables.iter().map(|t| t.table.schema().name.clone());
    let mut tables: Vec<JoinTable> =
        names.zip(filters).map(|(table, filters)| JoinTable { table, filter: all_of(filters) }).collect();
    if tables.len() == 1
        && let Some(only) = tables.pop()
    {
        return Bound::Select(Select {
            table: only.table,
            columns: columns.into_iter().map(|((_, column), name)| Projection { column, name }).collect(),
            filter: only.filter,
            order: order.into_iter().map(|(_, key)| key).collect(),
            limit,
            offset,
            count,
        });
    }
    let columns = columns.into_iter().map(|((table, column), name)| (table, Projection { column, name })).collect();
    Bound::Join(JoinSelect { tables, equalities, columns, order, limit, offset, count })
}

fn all_of(mut filters: Vec<Filter>) -> Option<Filter> {
    match filters.len() {
        0 => None,
        1 => filters.pop(),
        _ => Some(Filter::And(filters)),
    }
}

/// The SELECT inside a query that has nothing but FROM, WHERE, ORDER BY, LIMIT and OFFSET.
fn plain_select(query: &Query) -> Result<&ast::Select, Unfit> {
    let bare = query.with.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
        && query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty();
    let select = match &*query.body {
        SetExpr::Select(select) => select,
        SetExpr::Query(inner) if query.order_by.is_none() && query.limit_clause.is_none() && bare => {
            return plain_select(inner);
        }
        _ => return Err(Unfit::Shape),
    };
    let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(by, with) if by.is_empty() && with.is_empty());
    let plain = bare
        && ungrouped
        && select.distinct.is_none()
        && select.select_modifiers.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.into.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.having.is_none()
        && select.named_window.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none();
    if plain { Ok(select) } else { Err(Unfit::Shape) }
}

/// Splits a condition at its ANDs.
fn conjuncts<'a>(expr: &'a Expr, into: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Nested(inner) => conjuncts(inner, into),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, into);
            conjuncts(right, into);
        }
        other => into.push(other),
    }
}

/// `a.x = b.y` between two tables of the scope, whose types are the same.
fn column_equality(expr: &Expr, scope: &Scope) -> Result<Option<JoinEquality>, Unfit> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr else { return Ok(None) };
    let is_column = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    if !is_column(left) || !is_column(right) {
        return Ok(None);
    }
    let (left, right) = (column_place(left, scope)?, column_place(right, scope)?);
    let same = match (scope.data_type(left), scope.data_type(right)) {
        (Some(a), Some(b)) => a == b || (a.is_integer() && b.is_integer()),
        _ => false,
    };
    if left.0 == right.0 || !same {
        return Err(Unfit::Shape);
    }
    Ok(Some(JoinEquality { left, right }))
}

/// The columns of the answer, or that it is COUNT(*).
fn projection(items: &[SelectItem], scope: &Scope) -> Result<(Vec<NamedColumn>, bool), Unfit> {
    if let [SelectItem::UnnamedExpr(expr)] = items
        && is_count(expr)
    {
        return Ok((Vec::new(), true));
    }
    let mut columns = Vec::new();
    for item in items {
        match item {
            SelectItem::UnnamedExpr(expr) => columns.push((column_place(expr, scope)?, None)),
            SelectItem::ExprWithAlias { expr, alias } => {
                columns.push((column_place(expr, scope)?, Some(alias.value.clone())));
            }
            SelectItem::Wildcard(options) if is_plain_wildcard(options) => {
                for table in 0..scope.tables.len() {
                    all_columns(table, scope, &mut columns);
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if is_plain_wildcard(options) =>
            {
                let [ObjectNamePart::Identifier(label)] = name.0.as_slice() else { return Err(Unfit::Shape) };
                let table = scope.table_labelled(&label.value).ok_or(Unfit::Shape)?;
                all_columns(table, scope, &mut columns);
            }
            _ => return Err(Unfit::Shape),
        }
    }
    if columns.is_empty() { Err(Unfit::Shape) } else { Ok((columns, false)) }
}

fn all_columns(table: usize, scope: &Scope, into: &mut Vec<NamedColumn>) {
    let columns = scope.tables.get(table).map_or(0, |t| t.table.schema().columns.len());
    into.extend((0..columns).map(|column| ((table, column), None)));
}

pub(super) fn is_plain_wildcard(options: &ast::WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_alias.is_none()
}

fn is_count(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let named = matches!(function.name.0.as_slice(),
        [ObjectNamePart::Identifier(name)] if name.value.eq_ignore_ascii_case("count"));
    let plain = function.filter.is_none()
        && function.null_treatment.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
        && matches!(function.parameters, FunctionArguments::None);
    let star = matches!(&function.args, FunctionArguments::List(list)
        if list.duplicate_treatment.is_none() && list.clauses.is_empty()
            && matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]));
    named && plain && star
}

/// ORDER BY columns, aliases of the answer, or positions in it.
fn order_by(query: &Query, columns: &[NamedColumn], scope: &Scope) -> Result<Vec<(usize, OrderBy)>, Unfit> {
    let Some(order) = &query.order_by else { return Ok(Vec::new()) };
    let OrderByKind::Expressions(keys) = &order.kind else { return Err(Unfit::Shape) };
    if order.interpolate.is_some() {
        return Err(Unfit::Shape);
    }
    let mut bound = Vec::with_capacity(keys.len());
    let mut seen = BTreeSet::new();
    for key in keys {
        if key.with_fill.is_some() {
            return Err(Unfit::Shape);
        }
        let (table, column) = order_column(&key.expr, columns, scope)?;
        // A column that is ordered by already decides nothing any more.
        if seen.insert((table, column)) {
            let descending = key.options.asc == Some(false);
            bound.push((table, OrderBy { column, descending, nulls_first: key.options.nulls_first }));
        }
    }
    Ok(bound)
}

fn order_column(expr: &Expr, columns: &[NamedColumn], scope: &Scope) -> Result<ColumnPlace, Unfit> {
    if let Expr::Value(value) = expr {
        let ast::Value::Number(digits, _) = &value.value else { return Err(Unfit::Shape) };
        let position = digits.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).ok_or(Unfit::Shape)?;
        return columns.get(position).map(|(place, _)| *place).ok_or(Unfit::Shape);
    }
    if let Expr::Identifier(name) = expr {
        let mut aliased =
            columns.iter().filter(|(place, alias)| answers_to(*place, alias.as_deref(), scope, &name.value));
        if let Some((place, _)) = aliased.next() {
            return if aliased.all(|(other, _)| other == place) { Ok(*place) } else { Err(Unfit::Shape) };
        }
    }
    column_place(expr, scope)
}

/// Whether a column of the answer has that name: its alias, or else its own.
fn answers_to((table, column): ColumnPlace, alias: Option<&str>, scope: &Scope, name: &str) -> bool {
    let own = || scope.tables.get(table).and_then(|t| t.table.schema().columns.get(column)).map(|c| c.name.as_str());
    alias.or_else(own).is_some_and(|n| n.eq_ignore_ascii_case(name))
}

fn limits_of(query: &Query, parameters: &mut ParameterTypes) -> Result<(Option<Amount>, Option<Amount>), Unfit> {
    match &query.limit_clause {
        None => Ok((None, None)),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            let limit = limit.as_ref().map(|e| amount(e, parameters)).transpose()?.flatten();
            let offset = offset.as_ref().map(|o| amount(&o.value, parameters)).transpose()?.flatten();
            Ok((limit, offset))
        }
        Some(_) => Err(Unfit::Shape),
    }
}

/// A number of rows in LIMIT or OFFSET; NULL is none.
fn amount(expr: &Expr, parameters: &mut ParameterTypes) -> Result<Option<Amount>, Unfit> {
    let Expr::Value(value) = expr else { return Err(Unfit::Shape) };
    match &value.value {
        ast::Value::Number(digits, _) => {
            digits.parse::<u64>().map(|rows| Some(Amount::Rows(rows))).map_err(|_| Unfit::Shape)
        }
        ast::Value::Null => Ok(None),
        ast::Value::Placeholder(name) => {
            let position = parameter_position(name)?;
            let data_type = parameters.expect(position, DataType::BigInt)?;
            if data_type.is_integer() { Ok(Some(Amount::Parameter(position))) } else { Err(Unfit::Shape) }
        }
        _ => Err(Unfit::Shape),
    }
}

impl Bound {
    /// The tables that it reads.
    pub(crate) fn tables(&self) -> Vec<String> {
        match self {
            Bound::Select(select) => vec![select.table.clone()],
            Bound::Join(join) => join.tables.iter().map(|t| t.table.clone()).collect(),
        }
    }
}
