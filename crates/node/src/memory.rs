//! What rows and indexes take, and what they may take.

use cachesql_table::GroupSnapshot;

/// The memory of a node's tables. All sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// Rows and indexes of all tables, and of loads under way.
    pub used_bytes: u64,
    /// What they may take together.
    pub limit_bytes: u64,
    /// The tables, in name order.
    pub tables: Vec<TableMemoryReport>,
}

/// The memory of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMemoryReport {
    /// The table.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Bytes of them, and of the times that they were last used.
    pub rows_bytes: u64,
    /// Bytes of its indexes, the primary key's included.
    pub index_bytes: u64,
}

/// A size in memory as a number of bytes that is reported.
pub(crate) fn bytes_of(size: usize) -> u64 {
    size as u64
}

impl MemoryReport {
    pub(crate) fn of(snapshot: &GroupSnapshot, limit_bytes: u64) -> MemoryReport {
        let tables = snapshot.tables().map(|table| {
            let memory = table.memory();
            TableMemoryReport {
                name: table.schema().name.clone(),
                rows: table.row_count(),
                rows_bytes: bytes_of(memory.rows_bytes + memory.access_bytes),
                index_bytes: bytes_of(memory.index_bytes),
            }
        });
        MemoryReport { used_bytes: snapshot.memory().total(), limit_bytes, tables: tables.collect() }
    }
}
