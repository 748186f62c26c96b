//! How large a statement becomes once the names of its WITH queries stand for what they name, told from its tree before
//! anything plans it. Planning cannot be stopped half-way, so what would take it long is refused here.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cachesql_table::GroupSnapshot;
use cachesql_types::limits;
use sqlparser::ast::{Expr, GroupByExpr, ObjectName, Query, Select, Statement, Visit, Visitor};

use crate::bind::object_name;
use crate::error::SqlError;

/// What a table, a subquery or a SELECT weighs beside one expression, or one column: planners walk over it that much longer.
const NODE_PARTS: usize = 32;

/// Refuses a statement of more than `limits::MAX_SQL_PARTS` parts, a SELECT list of more than `limits::MAX_SELECT_ITEMS`,
/// and GROUP BY with more than `limits::MAX_GROUPING_SETS` sets. Call it on a deep stack.
pub(crate) fn check_expansion(statement: &Statement, snapshot: &GroupSnapshot) -> Result<(), SqlError> {
    let mut expansion = Expansion { snapshot, scopes: vec![Scope::default()] };
    match statement.visit(&mut expansion) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// One query that is being walked, with everything inside it.
#[derive(Default)]
struct Scope {
    parts: usize,
    /// WITH queries that are still to be walked: where each lies in the tree, and its name.
    announced: HashMap<*const Query, String>,
    /// Those that are walked, by name, and what each weighs.
    named: HashMap<String, usize>,
}

struct Expansion<'a> {
    snapshot: &'a GroupSnapshot,
    /// The innermost query last; the first stands for the statement.
    scopes: Vec<Scope>,
}

impl Expansion<'_> {
    fn add(&mut self, parts: usize) -> ControlFlow<SqlError> {
        let Some(scope) = self.scopes.last_mut() else { return ControlFlow::Continue(()) };
        scope.parts = scope.parts.saturating_add(parts);
        if scope.parts <= limits::MAX_SQL_PARTS {
            return ControlFlow::Continue(());
        }
        let what = "the number of its parts, with WITH queries counted where they are used,";
        ControlFlow::Break(SqlError::TooComplex { what, most: limits::MAX_SQL_PARTS })
    }

    /// What stands behind a name: a WITH query, or the columns of a table.
    fn parts_of(&self, name: &ObjectName) -> usize {
        let Some(name) = object_name(name) else { return 0 };
        let folded = name.to_ascii_lowercase();
        let with = self.scopes.iter().rev().find_map(|scope| scope.named.get(&folded));
        let columns = || self.snapshot.table(name).map_or(0, |table| table.schema().columns.len());
        with.copied().unwrap_or_else(columns)
    }
}

impl Visitor for Expansion<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let announced = with.map(|cte| (&raw const *cte.query, cte.alias.name.value.to_ascii_lowercase())).collect();
        self.scopes.push(Scope { announced, ..Scope::default() });
        self.add(NODE_PARTS)
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        let parts = self.scopes.pop().map_or(0, |scope| scope.parts);
        if let Some(outer) = self.scopes.last_mut()
            && let Some(name) = outer.announced.remove(&std::ptr::from_ref(query))
        {
            outer.named.insert(name, parts);
        }
        // A WITH query is planned where it stands, too.
        self.add(parts)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        if select.projection.len() > limits::MAX_SELECT_ITEMS {
            let message = format!("a SELECT list has at most {} items", limits::MAX_SELECT_ITEMS);
            return ControlFlow::Break(SqlError::Refused { sqlstate: "54011", message });
        }
        if grouping_sets(&select.group_by) > limits::MAX_GROUPING_SETS {
            let what = "the number of sets that GROUP BY makes";
            return ControlFlow::Break(SqlError::TooComplex { what, most: limits::MAX_GROUPING_SETS });
        }
        self.add(NODE_PARTS)
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<SqlError> {
        self.add(self.parts_of(relation).saturating_add(NODE_PARTS))
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<SqlError> {
        self.add(1)
    }
}

/// How many sets of columns a GROUP BY groups by: the product of what its items make.
fn grouping_sets(group_by: &GroupByExpr) -> usize {
    let GroupByExpr::Expressions(items, _) = group_by else { return 1 };
    let sets = |item: &Expr| match item {
        Expr::Cube(columns) => {
            u32::try_from(columns.len()).ok().and_then(|n| 1_usize.checked_shl(n)).unwrap_or(usize::MAX)
        }
        Expr::Rollup(columns) => columns.len().saturating_add(1),
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    };
    items.iter().fold(1, |all, item| all.saturating_mul(sets(item).max(1)))
}
