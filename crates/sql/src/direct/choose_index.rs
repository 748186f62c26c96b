//! Which indexes could serve a filter and an order, and how narrow each is. Which of them does is decided per execution,
//! when the values are known.

use cachesql_table::Table;
use cachesql_types::{DataType, IndexDefinition, TableSchema};

use super::access::{Access, Class, Next, Order};
use crate::plan::{Comparison, Filter, Operand, OrderBy};

/// All ways into the table, narrowest first.
pub(crate) fn accesses(table: &Table, conjuncts: &[Filter], order: &[OrderBy]) -> Vec<Access> {
    let definitions = table.indexes().iter().map(|index| index.definition());
    let mut found: Vec<Access> =
        definitions.enumerate().filter_map(|(at, index)| access(at, index, table.schema(), conjuncts, order)).collect();
    // More leading columns before fewer: `A+B` before `A`.
    found.sort_by_key(|a| (a.class, usize::MAX - a.prefix.len()));
    found
}

/// What one index can do, if anything.
fn access(
    at: usize,
    index: &IndexDefinition,
    schema: &TableSchema,
    conjuncts: &[Filter],
    order: &[OrderBy],
) -> Option<Access> {
    let mut used = Vec::new();
    let mut prefix = Vec::new();
    for column in &index.columns {
        let Some((position, operand)) = equality(conjuncts, *column) else { break };
        used.push(position);
        prefix.push(operand.clone());
    }
    let next_column = index.columns.get(prefix.len()).copied();
    let next = next_column.map_or(Next::Nothing, |column| next_of(conjuncts, column, schema, &mut used));
    let served = served_order(index, prefix.len(), &next, order);
    let class = match &next {
        Next::In(_) => Class::In,
        Next::Range { .. } if prefix.is_empty() => Class::Range,
        Next::Prefix(..) if prefix.is_empty() => Class::Prefix,
        Next::Nothing if prefix.is_empty() => {
            if served == Order::Unserved {
                return None;
            }
            Class::Order
        }
        Next::Nothing if index.unique && prefix.len() == index.columns.len() => Class::UniqueEquality,
        Next::Nothing | Next::Range { .. } | Next::Prefix(..) => Class::Equality,
    };
    let residual = conjuncts.iter().enumerate().filter(|(i, _)| !used.contains(i)).map(|(_, f)| f.clone()).collect();
    Some(Access { class, index: at, columns: index.columns.clone(), prefix, next, order: served, residual })
}

fn equality(conjuncts: &[Filter], wanted: usize) -> Option<(usize, &Operand)> {
    conjuncts.iter().enumerate().find_map(|(i, filter)| match filter {
        Filter::Compare { column, op: Comparison::Equal, operand } if *column == wanted => Some((i, operand)),
        Filter::In { column, operands } if *column == wanted => match operands.as_slice() {
            [operand] => Some((i, operand)),
            _ => None,
        },
        _ => None,
    })
}

/// A list, a range, or the beginning of a text, for the column behind the prefix.
fn next_of(conjuncts: &[Filter], wanted: usize, schema: &TableSchema, used: &mut Vec<usize>) -> Next {
    let list = conjuncts.iter().enumerate().find_map(|(i, filter)| match filter {
        Filter::In { column, operands } if *column == wanted => Some((i, operands)),
        _ => None,
    });
    if let Some((i, operands)) = list {
        used.push(i);
        return Next::In(operands.clone());
    }
    let mut lower = None;
    let mut upper = None;
    for (i, filter) in conjuncts.iter().enumerate() {
        let Filter::Compare { column, op, operand } = filter else { continue };
        if *column != wanted {
            continue;
        }
        let (end, included) = match op {
            Comparison::Greater => (&mut lower, false),
            Comparison::GreaterOrEqual => (&mut lower, true),
            Comparison::Less => (&mut upper, false),
            Comparison::LessOrEqual => (&mut upper, true),
            Comparison::Equal | Comparison::NotEqual => continue,
        };
        if end.is_none() {
            *end = Some((operand.clone(), included));
            used.push(i);
        }
    }
    if lower.is_some() || upper.is_some() {
        return Next::Range { lower, upper };
    }
    let is_text = schema.columns.get(wanted).is_some_and(|c| matches!(c.data_type, DataType::Text | DataType::Json));
    let like = conjuncts.iter().find_map(|filter| match filter {
        Filter::Like { column, pattern, case_insensitive: false, escape } if *column == wanted && is_text => {
            Some((pattern, *escape))
        }
        _ => None,
    });
    // The pattern is tried on each row too: what follows the beginning is known only when the pattern is.
    like.map_or(Next::Nothing, |(pattern, escape)| Next::Prefix(pattern.clone(), escape))
}

/// Whether walking the index gives the order that is wanted.
fn served_order(index: &IndexDefinition, given: usize, next: &Next, order: &[OrderBy]) -> Order {
    if order.is_empty() || matches!(next, Next::In(_)) {
        return Order::Unserved;
    }
    let (constant, rest) = index.columns.split_at(given.min(index.columns.len()));
    let mut keys = order.iter().filter(|key| !constant.contains(&key.column));
    let mut direction = None;
    let mut columns = rest.iter();
    for key in keys.by_ref() {
        if columns.next() != Some(&key.column) || key.puts_nulls_first() != key.descending {
            return Order::Unserved;
        }
        if *direction.get_or_insert(key.descending) != key.descending {
            return Order::Unserved;
        }
    }
    if direction == Some(true) { Order::Descending } else { Order::Ascending }
}
