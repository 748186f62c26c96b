//! What rows and indexes take, and what they may take.

use std::sync::atomic::{AtomicU64, Ordering};

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

/// Bytes that loads under way are expected to bring and have not brought yet, so that two loads of which only one fits are
/// not begun together, and both broken off.
#[derive(Debug, Default)]
pub(crate) struct ExpectedBytes(AtomicU64);

impl ExpectedBytes {
    /// Expects so many bytes more, when all that is expected then fits into what is free; else says how many are expected
    /// already.
    pub(crate) fn expect(&self, bytes: u64, free_bytes: u64) -> Result<Expectation<'_>, u64> {
        let fits = |expected: u64| expected.checked_add(bytes).filter(|sum| bytes == 0 || *sum <= free_bytes);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits)?;
        Ok(Expectation { of: self, left: AtomicU64::new(bytes) })
    }
}

/// What one load is still expected to bring; nothing once it is dropped.
#[derive(Debug)]
pub(crate) struct Expectation<'a> {
    of: &'a ExpectedBytes,
    left: AtomicU64,
}

impl Expectation<'_> {
    /// Bytes have come: they count as used from now on.
    pub(crate) fn arrived(&self, bytes: u64) {
        let left = self.left.load(Ordering::SeqCst);
        let met = left.min(bytes);
        self.left.store(left.saturating_sub(met), Ordering::SeqCst);
        self.of.0.fetch_sub(met, Ordering::SeqCst);
    }
}

impl Drop for Expectation<'_> {
    fn drop(&mut self) {
        self.arrived(u64::MAX);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_loads_that_do_not_fit_together_one_is_begun() {
        let expected = ExpectedBytes::default();
        let first = expected.expect(60, 100).expect("it fits");
        assert_eq!(expected.expect(60, 100).err(), Some(60));
        // Half of it has come, and is no longer free.
        first.arrived(30);
        assert_eq!(expected.expect(60, 70).err(), Some(30));
        let second = expected.expect(40, 70).expect("it fits beside the rest");
        drop(first);
        assert_eq!(expected.expect(31, 70).err(), Some(40));
        drop(second);
        assert!(expected.expect(100, 100).is_ok());
        assert!(expected.expect(101, 100).is_err());
        // A load that cannot say how much it will bring is begun, and meets the limit when it comes to it.
        assert!(expected.expect(0, 0).is_ok());
    }
}
