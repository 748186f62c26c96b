//! What one statement may take.

use std::time::Duration;

use cachesql_types::limits;

/// Bounds of one statement; beyond them it fails with an error of its own kind, and never answers a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Time until it is stopped.
    pub timeout: Duration,
    /// Bytes that it may hold beside the tables: sorts, joins, groups.
    pub memory_bytes: usize,
    /// Rows that it may answer.
    pub rows: u64,
    /// Rows that it may write.
    pub write_rows: usize,
}

impl Default for EngineLimits {
    fn default() -> EngineLimits {
        EngineLimits {
            timeout: limits::STATEMENT_TIMEOUT,
            memory_bytes: limits::STATEMENT_MEMORY_BYTES,
            rows: limits::STATEMENT_ROWS,
            write_rows: limits::STATEMENT_WRITE_ROWS,
        }
    }
}
