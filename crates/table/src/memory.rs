//! What tables take, counted as it changes.

/// Bytes of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Columns, the open tail, marks of deleted rows, and the lists of chunks.
    pub rows_bytes: usize,
    /// All indexes; for a table without primary key also the index by row number.
    pub index_bytes: usize,
    /// Times of last use, kept while the table has a ttl or a limit of rows.
    pub access_bytes: usize,
}

impl TableMemory {
    /// All of it.
    pub fn total(&self) -> u64 {
        (self.rows_bytes + self.index_bytes + self.access_bytes) as u64
    }
}

/// Bytes of all tables of a snapshot, and of the loads that are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Rows of all tables.
    pub rows_bytes: usize,
    /// Indexes of all tables.
    pub index_bytes: usize,
    /// Times of last use of all tables.
    pub access_bytes: usize,
    /// Rows that loads have staged so far.
    pub staged_bytes: usize,
}

impl MemoryUse {
    /// All of it.
    pub fn total(&self) -> u64 {
        (self.rows_bytes + self.index_bytes + self.access_bytes + self.staged_bytes) as u64
    }

    pub(crate) fn add(&mut self, table: &TableMemory) {
        self.rows_bytes += table.rows_bytes;
        self.index_bytes += table.index_bytes;
        self.access_bytes += table.access_bytes;
    }
}
