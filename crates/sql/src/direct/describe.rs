//! The direct path in words, for EXPLAIN.

use std::sync::Arc;

use cachesql_table::Table;
use cachesql_types::Value;

use super::access::{Access, Class, Order};
use super::compile::CompiledSelect;
use super::execute::{Way, amount, choose, is_large};
use super::join::CompiledJoin;
use crate::error::SqlError;

/// The index that serves a plan, and a line about it. NULL for a parameter that matters shows the way of other values.
pub(crate) fn describe_select(
    plan: &CompiledSelect,
    table: &Table,
    parameters: &[Value],
) -> Result<(Option<String>, String), SqlError> {
    let limit = amount(plan.limit, parameters, "LIMIT", "2201W")?;
    let way = choose(plan, table, parameters, limit)?;
    let name = &table.schema().name;
    let access = match &way {
        Way::Index { access, .. } | Way::Row { access, .. } => Some(*access),
        Way::Nothing => plan.accesses.first(),
        Way::Scan => None,
    };
    let Some(access) = access else {
        let sorted = if plan.order.is_empty() { "" } else { ", sort" };
        return Ok((None, format!("scan of {name}, {} conditions tried{sorted}", plan.conjuncts.len())));
    };
    let index = index_name(table, access.index);
    let mut line = format!("{} of index {} of {name}", manner(access), index.as_deref().unwrap_or("?"));
    if !access.residual.is_empty() {
        line.push_str(&format!(", {} more conditions tried", access.residual.len()));
    }
    if !plan.order.is_empty() {
        line.push_str(if access.order == Order::Unserved { ", sort" } else { ", in its order" });
    }
    Ok((index, line))
}

/// Whether a plan is left to DataFusion because of its rows.
pub(crate) fn hands_over(plan: &CompiledSelect, table: &Table, parameters: &[Value]) -> Result<bool, SqlError> {
    let limit = amount(plan.limit, parameters, "LIMIT", "2201W")?;
    Ok(is_large(plan, table, &choose(plan, table, parameters, limit)?, limit))
}

/// The index of the first table of a join, and a line per table.
pub(crate) fn describe_join(
    plan: &CompiledJoin,
    tables: &[Arc<Table>],
    parameters: &[Value],
) -> Result<(Option<String>, String), SqlError> {
    let first = tables.get(plan.first).ok_or_else(|| SqlError::Internal("a table of a join is gone".into()))?;
    let (index, line) = describe_select(&plan.start, first, parameters)?;
    let mut lines = format!("  {line}\n");
    for step in &plan.steps {
        if let Some(table) = tables.get(step.table) {
            let index = index_name(table, step.index).unwrap_or_default();
            lines.push_str(&format!("  then by index {index} of {}\n", table.schema().name));
        }
    }
    Ok((index, lines))
}

fn index_name(table: &Table, at: usize) -> Option<String> {
    table.indexes().get(at).map(|index| index.definition().name.clone())
}

fn manner(access: &Access) -> &'static str {
    match access.class {
        Class::UniqueEquality => "one key",
        Class::Equality => "keys",
        Class::In => "list of keys",
        Class::Range => "range",
        Class::Prefix => "prefix",
        Class::Order => "walk",
    }
}
