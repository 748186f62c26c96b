//! One row by a unique key of one column: what is asked for most, and needs no plan.

use std::cell::RefCell;
use std::sync::Arc;

use cachesql_table::Table;
use cachesql_types::{TableSchema, Value};

use super::access::{Key, key_of};
use super::compile::{Answer, answer};
use super::rows::RowList;
use super::test::{column_of, resolve};
use crate::error::SqlError;
use crate::plan::{Amount, Comparison, Filter, Operand, Select};

/// The row that a read of this kind finds, if any; `None` for reads of other kinds, and for values that are no keys.
pub(crate) fn find_point(table: &Table, select: &Select, parameters: &[Value]) -> Result<Option<RowList>, SqlError> {
    let Some((column, operand)) = select.filter.as_ref().and_then(equality) else { return Ok(None) };
    let paged = select.offset.is_some() || !matches!(select.limit, None | Some(Amount::Rows(1..)));
    if paged || select.count || !select.order.is_empty() {
        return Ok(None);
    }
    let unique = table.indexes().iter().find(|index| {
        let definition = index.definition();
        definition.unique && definition.columns.as_slice() == [column]
    });
    let Some(index) = unique else { return Ok(None) };
    let column = column_of(table.schema(), column)?;
    let value = resolve(operand, column, "=", parameters)?;
    if value.is_null() {
        return Ok(Some(RowList::new()));
    }
    Ok(match key_of(value, column.data_type) {
        Key::Is(key) => Some(index.find(&[key]).into_iter().collect()),
        Key::Never => Some(RowList::new()),
        Key::Unusable => None,
    })
}

/// The only condition, when it is `column = operand`.
fn equality(filter: &Filter) -> Option<(usize, &Operand)> {
    match filter {
        Filter::Compare { column, op: Comparison::Equal, operand } => Some((*column, operand)),
        Filter::And(parts) => match parts.as_slice() {
            [only] => equality(only),
            _ => None,
        },
        _ => None,
    }
}

/// What answers of whole rows of a table look like. The schema is held, so that no other one can come to lie at its address.
type WholeRows = (Arc<TableSchema>, Answer);

/// Shapes of whole rows that each thread keeps.
const KEPT_SHAPES: usize = 16;

thread_local! {
    /// Those of the tables that this thread read last, each at a place that follows from the address of its schema.
    static WHOLE_ROWS: RefCell<[Option<WholeRows>; KEPT_SHAPES]> = const { RefCell::new([const { None }; KEPT_SHAPES]) };
}

/// Columns and projection of a read's answer.
pub(crate) fn point_answer(select: &Select, schema: &Arc<TableSchema>) -> Result<Answer, SqlError> {
    if select.count || !select.columns.is_empty() {
        return answer(select, schema);
    }
    let place = Arc::as_ptr(schema).addr() / 64 % KEPT_SHAPES;
    WHOLE_ROWS.with_borrow_mut(|known| match known.get_mut(place) {
        Some(Some((of, answer))) if Arc::ptr_eq(of, schema) => Ok(answer.clone()),
        place => {
            let answer = answer(select, schema)?;
            if let Some(place) = place {
                *place = Some((schema.clone(), answer.clone()));
            }
            Ok(answer)
        }
    })
}
