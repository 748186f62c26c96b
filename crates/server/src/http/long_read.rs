//! Reads that may look at many rows, kept off the threads that serve connections: one scan of a large table would hold up
//! everybody who is served by the same thread.

use cachesql_node::{Comparison, Filter, Table};
use cachesql_types::limits;

use super::failure::Failure;

/// Whether a read is quick enough to be served on the spot: the table is small, or one of the columns that the read fixes to
/// a value leads an index.
pub(crate) fn is_quick(table: &Table, fixed: impl Iterator<Item = usize> + Clone) -> bool {
    let leads = |column: usize| table.indexes().iter().any(|i| i.definition().columns.first() == Some(&column));
    table.row_count() <= limits::INLINE_SCAN_ROWS || fixed.clone().any(leads)
}

/// Columns that conditions, all of which must hold, fix to one value or a few.
pub(crate) fn fixed_columns(filters: &[Filter]) -> impl Iterator<Item = usize> + Clone {
    filters.iter().filter_map(|filter| match filter {
        Filter::Compare { column, op: Comparison::Equal, .. } | Filter::In { column, .. } => Some(*column),
        _ => None,
    })
}

/// Runs a read on a thread that may block.
pub(crate) async fn off_thread<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(read).await.map_err(|error| {
        tracing::error!(%error, "a read ended in a panic");
        Failure::internal()
    })
}
