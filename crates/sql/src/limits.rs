//! What one statement may take.

use std::time::Duration;

use cachesql_types::limits;

use crate::error::SqlError;

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

impl EngineLimits {
    /// More rows than one statement may answer.
    pub(crate) fn too_many_to_answer(&self) -> SqlError {
        SqlError::TooManyRows { most: self.rows, word: "limits.statement_rows" }
    }

    /// More rows than one statement may write.
    pub(crate) fn too_many_to_write(&self) -> SqlError {
        let most = u64::try_from(self.write_rows).unwrap_or(u64::MAX);
        SqlError::TooManyRows { most, word: "limits.statement_write_rows" }
    }
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
