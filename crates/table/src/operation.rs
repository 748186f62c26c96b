//! What a group's log carries: changes of rows and definitions, already planned, the same for every member.

use arrow::array::RecordBatch;
use cachesql_types::{IndexDefinition, TableSchema, Value};

use crate::row::RowKey;

/// What happens to a row whose primary key is present. In a table without primary key no row replaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// It is refused.
    Insert,
    /// It replaces the present row. Of rows of one key in one operation the last stays.
    Upsert,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Makes an empty table.
    CreateTable {
        /// Its shape.
        schema: TableSchema,
    },
    /// Removes a table, its rows, and loads into it that are under way: it must not come back when they finish.
    DropTable {
        /// Its name.
        table: String,
    },
    /// Adds an index over the rows that are there.
    CreateIndex {
        /// The table.
        table: String,
        /// The index.
        index: IndexDefinition,
    },
    /// Removes an index. The primary key's cannot be.
    DropIndex {
        /// The table.
        table: String,
        /// The index's name.
        index: String,
    },
    /// Writes whole rows, whose values are of the columns' types already. The rows that an upsert replaces go first, all of
    /// them, so that rows may exchange the keys of unique indexes.
    Put {
        /// The table.
        table: String,
        /// A value for each column, in order.
        rows: Vec<Vec<Value>>,
        /// What happens where a key is present.
        mode: PutMode,
    },
    /// Deletes rows. A key that is not there is passed over.
    Delete {
        /// The table.
        table: String,
        /// The rows.
        keys: Vec<RowKey>,
    },
    /// Deletes all rows.
    Truncate {
        /// The table.
        table: String,
    },
    /// Moves the rows of all chunks that have deleted ones, and seals the tail.
    Compact {
        /// The table.
        table: String,
    },
    /// Sets how long rows are kept, and how many.
    SetRetention {
        /// The table.
        table: String,
        /// Milliseconds, or for ever.
        ttl_ms: Option<u64>,
        /// Rows, or any number.
        max_rows: Option<u64>,
    },
    /// Begins to gather rows, unseen, that will be a table's.
    BeginLoad {
        /// Shape of the rows. Its indexes are of meaning only when the load makes the table.
        schema: TableSchema,
        /// A number that the proposer chose; the log index of the operation is a good one.
        load: u64,
    },
    /// Adds rows to a load.
    LoadRows {
        /// The load.
        load: u64,
        /// Rows in the layout of `cachesql_types::arrow_schema`.
        batch: RecordBatch,
    },
    /// Replaces the table's rows by those of the load; makes the table when it is not there, so that readers never see it
    /// empty. Refused when the table has other columns or another key by now. After a refusal the old rows stay, and so does the
    /// load.
    FinishLoad {
        /// The load.
        load: u64,
    },
    /// Forgets a load. One that is not known is passed over.
    AbandonLoad {
        /// The load.
        load: u64,
    },
}

impl Operation {
    /// Whether it changes rows of a table and nothing else.
    pub fn changes_rows_only(&self) -> bool {
        matches!(self, Operation::Put { .. } | Operation::Delete { .. } | Operation::Truncate { .. })
    }
}

/// What one operation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Rows that were put, deleted, truncated, staged or loaded; for `Compact` the rows of the table; 0 for definitions.
    pub rows: u64,
}
