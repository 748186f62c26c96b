//! Reads that may look at many rows, kept off the threads that serve connections: one scan of a large table would hold up
//! everybody who is served by the same thread.

use cachesql_node::{Comparison, Filter, Index, IndexRange, Operand, Table};
use cachesql_types::{Value, limits};

use super::failure::Failure;

/// Whether a read is quick enough to be served on the spot: few rows are compared with little. Rows are few when the table is
/// small, or an index finds few for one of the conditions, all of which must hold.
pub(crate) fn is_quick(table: &Table, filters: &[Filter]) -> bool {
    let found = |filter: &Filter| match filter {
        Filter::Compare { column, op: Comparison::Equal, operand } => {
            finds(table, *column, std::slice::from_ref(operand))
        }
        Filter::In { column, operands } => finds(table, *column, operands),
        _ => u64::MAX,
    };
    let rows = filters.iter().map(found).min().unwrap_or(u64::MAX).min(table.row_count());
    let comparisons = filters.iter().map(Filter::comparisons).sum::<usize>().max(1);
    let work = rows.saturating_mul(u64::try_from(comparisons).unwrap_or(u64::MAX));
    if work <= FEW {
        return true;
    }
    // Long texts take long to look at.
    let row_bytes = table.memory().rows_bytes as u64 / table.stored_rows().max(1);
    work <= limits::INLINE_SCAN_ROWS && work.saturating_mul(row_bytes) <= limits::INLINE_SCAN_BYTES
}

/// Comparisons that take no time to speak of, whatever is compared.
const FEW: u64 = 16;

/// The fewest rows that an index finds for the values of a column.
fn finds(table: &Table, column: usize, operands: &[Operand]) -> u64 {
    let rows_of = |index: &Index, operand: &Operand| match operand {
        Operand::Value(value) => index.count(&IndexRange::equal(std::slice::from_ref(value))),
        Operand::Parameter(_) => u64::MAX,
    };
    let indexes = table.indexes().iter().filter(|index| index.definition().columns.first() == Some(&column));
    let found = indexes.map(|index| {
        // Each value has one row at most.
        let unique = index.definition().unique && index.definition().columns.len() == 1;
        let rows = |operand| if unique { 1 } else { rows_of(index, operand) };
        operands.iter().map(rows).fold(0, u64::saturating_add)
    });
    found.min().unwrap_or(u64::MAX)
}

/// The same for one condition, that a column equals what a text means to it. A text that means nothing equals no value.
pub(crate) fn is_quick_for(table: &Table, column: usize, text: &str) -> bool {
    let data_type = table.schema().columns.get(column).map(|column| column.data_type);
    match data_type.and_then(|data_type| Value::parse(text, data_type).ok()) {
        Some(value) => is_quick(table, &[Filter::equal(column, value)]),
        None => true,
    }
}

/// Runs a read on a thread that may block.
pub(crate) async fn off_thread<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(read).await.map_err(|error| {
        tracing::error!(%error, "a read ended in a panic");
        Failure::internal()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachesql_node::{NodeConfig, RequestOptions, Statement};

    /// A table of more rows than are looked at on the spot, half of which are of one kind.
    async fn table() -> std::sync::Arc<Table> {
        let node = cachesql_node::Node::start(NodeConfig::new(1 << 30)).await.expect("a node");
        let run =
            async |sql: String| node.sql(Statement::new(&sql), &RequestOptions::default()).await.expect("good SQL");
        run("CREATE TABLE t (id INTEGER PRIMARY KEY, kind INTEGER, free INTEGER)".into()).await;
        run("CREATE INDEX kinds ON t (kind)".into()).await;
        let half = limits::INLINE_SCAN_ROWS + 1;
        for kind in [None, Some(7)] {
            let first = if kind.is_some() { half } else { 0 };
            let row = |id: u64| format!("({id}, {}, 1)", kind.map_or(id.to_string(), |kind: u64| kind.to_string()));
            let rows: Vec<String> = (first..first + half).map(row).collect();
            run(format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
        }
        let snapshot = node.snapshot();
        let table = snapshot.table("t").expect("just made").clone();
        node.shutdown().await;
        table
    }

    #[tokio::test]
    async fn reads_that_find_many_rows_are_not_quick() {
        let table = table().await;
        let equal = |column, value| vec![Filter::equal(column, Value::Integer(value))];
        assert!(is_quick(&table, &equal(0, 5)));
        assert!(is_quick(&table, &equal(1, 5)));
        assert!(!is_quick(&table, &equal(1, 7)), "an index finds too many");
        assert!(!is_quick(&table, &equal(2, 1)), "there is no index");
        assert!(!is_quick(&table, &[]));
        assert!(is_quick(&table, &[equal(1, 7), equal(0, 5)].concat()));
        let list = |values: [i32; 2]| Filter::In {
            column: 1,
            operands: values.map(|v| Operand::Value(Value::Integer(v))).to_vec(),
        };
        assert!(is_quick(&table, &[list([1, 2])]));
        assert!(!is_quick(&table, &[list([1, 7])]));
        assert!(!is_quick_for(&table, 1, "7"));
        // Many comparisons of few rows.
        let or =
            |parts: usize| vec![Filter::Or(vec![Filter::equal(2, Value::Integer(2)); parts]), equal(0, 5)[0].clone()];
        assert!(is_quick(&table, &or(100)));
        let most = usize::try_from(limits::INLINE_SCAN_ROWS).expect("small");
        assert!(!is_quick(&table, &or(most)));
        assert!(is_quick_for(&table, 1, "8") && is_quick_for(&table, 1, "x"));
    }
}
