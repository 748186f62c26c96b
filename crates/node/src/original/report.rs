//! What the original says about tables, memory and health, in its own measures.

/// What there is to say of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// Its name.
    pub table: String,
    /// Rows that are stored, those that are gone and not yet compacted away included.
    pub total_rows: u64,
    /// Rows that are there.
    pub active_rows: u64,
    /// Milliseconds that rows may be left alone; 0 for as long as they like.
    pub ttl_ms: u64,
    /// Rows that the table keeps; 0 for as many as come.
    pub max_size: u64,
    /// Names of its indexes.
    pub indexes: Vec<String>,
}

/// A table and what it is loaded by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableListing {
    /// Its name.
    pub name: String,
    /// Its query, its file, or its own name when it has no source.
    pub sql: String,
}

/// Memory and tables; sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalMetrics {
    /// Number of tables.
    pub tables: usize,
    /// Bytes that rows and indexes take.
    pub memory_used: u64,
    /// Bytes that are set aside for them: the limit.
    pub memory_total: u64,
    /// Bytes that they may take.
    pub memory_max: u64,
    /// Bytes that are left of that.
    pub memory_free: u64,
    /// Worker threads.
    pub threads: usize,
    /// Each table.
    pub tables_detail: Vec<TableDetail>,
}

/// One table among the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDetail {
    /// Its name.
    pub name: String,
    /// Rows that are there.
    pub rows: u64,
    /// Rows that there is space for.
    pub capacity: u64,
    /// Names of its indexes.
    pub indexes: Vec<String>,
}

/// Whether there is memory left; sizes in MiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalHealth {
    /// False from 90 % of the memory limit on.
    pub up: bool,
    /// Number of tables.
    pub tables: usize,
    /// MiB that rows and indexes take.
    pub memory_used_mib: u64,
    /// MiB that they may take.
    pub memory_max_mib: u64,
    /// Loads that talk to an origin now.
    pub pool_active: usize,
    /// Connections that are kept open without use.
    pub pool_idle: usize,
}
