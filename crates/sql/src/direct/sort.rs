//! Ordering rows that no index orders. Only ids are moved, and only as many are sorted as are wanted.

use std::cmp::Ordering;

use cachesql_table::{Cell, Row, RowId, Table};

use super::rows::RowList;
use crate::plan::OrderBy;

/// Orders rows, and keeps those from `offset` on, at most `limit`. Equal rows keep the order of their ids.
pub(crate) fn sort_rows(table: &Table, order: &[OrderBy], ids: &mut RowList, offset: u64, limit: Option<u64>) {
    let compare = |a: &RowId, b: &RowId| compare_rows(table, order, *a, *b);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(ids.len());
    let end = match limit {
        Some(limit) => offset.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).min(ids.len()),
        None => ids.len(),
    };
    if end < ids.len() && end > 0 {
        ids.select_nth_unstable_by(end - 1, compare);
    }
    ids.truncate(end);
    ids.sort_unstable_by(compare);
    ids.drain(..offset);
}

fn compare_rows(table: &Table, order: &[OrderBy], a: RowId, b: RowId) -> Ordering {
    if let (Some(left), Some(right)) = (table.row(a), table.row(b)) {
        let ordering = compare_by(order, &left, &right);
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    a.cmp(&b)
}

fn compare_by(order: &[OrderBy], left: &Row<'_>, right: &Row<'_>) -> Ordering {
    let by = |key: &OrderBy| compare_key(key, left.cell(key.column), right.cell(key.column));
    order.iter().map(by).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Compares two fields as one key of an order does.
pub(crate) fn compare_key(key: &OrderBy, left: Cell<'_>, right: Cell<'_>) -> Ordering {
    let nulls = if key.puts_nulls_first() { Ordering::Less } else { Ordering::Greater };
    match (matches!(left, Cell::Null), matches!(right, Cell::Null)) {
        (true, true) => Ordering::Equal,
        (true, false) => nulls,
        (false, true) => nulls.reverse(),
        (false, false) if key.descending => compare_cells(right, left),
        (false, false) => compare_cells(left, right),
    }
}

fn compare_cells(left: Cell<'_>, right: Cell<'_>) -> Ordering {
    match (left, right) {
        (Cell::Text(a), Cell::Text(b)) | (Cell::Json(a), Cell::Json(b)) => a.cmp(b),
        (Cell::Bytea(a), Cell::Bytea(b)) => a.cmp(b),
        (Cell::BigInt(a), Cell::BigInt(b)) => a.cmp(&b),
        (Cell::Integer(a), Cell::Integer(b)) => a.cmp(&b),
        _ => left.to_value().total_cmp(&right.to_value()),
    }
}
