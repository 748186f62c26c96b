//! EXISTS as a value, `SELECT EXISTS (…)`: DataFusion knows it as a condition only. There it becomes a count that is above zero.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, VisitMut, VisitorMut,
    visit_expressions,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// Rewrites each EXISTS in what a SELECT answers, and in HAVING.
pub(super) fn count_in_select(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            count_in(expr);
        }
    }
    if let Some(having) = &mut select.having {
        count_in(having);
    }
}

/// Rewrites each EXISTS in what a query is ordered by.
pub(super) fn count_in_order(query: &mut Query) {
    if let Some(order) = &mut query.order_by
        && let OrderByKind::Expressions(items) = &mut order.kind
    {
        items.iter_mut().for_each(|item| count_in(&mut item.expr));
    }
}

fn count_in(expr: &mut Expr) {
    let _ = expr.visit(&mut Counter { depth: 0 });
}

/// Conditions of subqueries stay as they are: DataFusion answers those by joins.
struct Counter {
    depth: usize,
}

impl VisitorMut for Counter {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Exists { subquery, negated } = expr
            && let Some(counted) = counted(subquery, *negated)
        {
            *expr = counted;
        }
        ControlFlow::Continue(())
    }
}

/// `(SELECT count(*) …) > 0`, or `= 0`.
fn counted(subquery: &Query, negated: bool) -> Option<Expr> {
    let mut count = parse(if negated { "((SELECT count(*)) = 0)" } else { "((SELECT count(*)) > 0)" })?;
    let counting = first_query(&mut count)?;
    let SetExpr::Select(template) = counting.body.as_mut() else { return None };
    if let Some(select) = plain(subquery) {
        // The rows are counted where they are: what they have in common with the query around them can be seen there.
        let mut select = select.clone();
        select.projection.clone_from(&template.projection);
        **template = select;
        counting.with.clone_from(&subquery.with);
        return Some(count);
    }
    let mut of = parse("(SELECT count(*) FROM (SELECT 1) AS __exists)")?;
    let outer = first_query(&mut of)?;
    let SetExpr::Select(select) = outer.body.as_mut() else { return None };
    let from = select.from.first_mut()?;
    if let TableFactor::Derived { subquery: inner, .. } = &mut from.relation {
        **inner = subquery.clone();
    }
    **template = select.as_ref().clone();
    Some(count)
}

/// The SELECT of a query whose rows can be counted by it: one that neither groups nor cuts them.
fn plain(query: &Query) -> Option<&Select> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let ungrouped =
        matches!(&select.group_by, GroupByExpr::Expressions(by, modifiers) if by.is_empty() && modifiers.is_empty());
    // A function may be an aggregate, which always has a row.
    let calls = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            visit_expressions(expr, |expr| match expr {
                Expr::Function(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
            .is_break()
        }
        _ => false,
    });
    let whole = query.limit_clause.is_none() && query.fetch.is_none() && select.distinct.is_none();
    (whole && ungrouped && select.having.is_none() && select.top.is_none() && !calls).then_some(select)
}

fn parse(text: &str) -> Option<Expr> {
    let dialect = PostgreSqlDialect {};
    Parser::new(&dialect).try_with_sql(text).ok()?.parse_expr().ok()
}

/// The outermost query in an expression.
fn first_query(expr: &mut Expr) -> Option<&mut Query> {
    match expr {
        Expr::Nested(inner) => first_query(inner),
        Expr::BinaryOp { left, .. } => first_query(left),
        Expr::Subquery(query) => Some(query),
        _ => None,
    }
}
