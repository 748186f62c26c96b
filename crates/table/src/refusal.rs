//! Why a write is refused. A refusal is the same on every member; a fence is a reason to stop.

use cachesql_types::{DataType, SchemaError, counted};

/// Why operations are not applied. None of them is, then.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// The operations are at fault; every member refuses them alike.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The log is at fault; this member must stop applying.
    #[error("stopped: {0}")]
    Fenced(String),
}

/// Why operations or rows are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No table of that name.
    #[error("table {table:?} does not exist")]
    UnknownTable {
        /// The name.
        table: String,
    },
    /// A table of that name is there already.
    #[error("table {table:?} already exists")]
    TableExists {
        /// The name.
        table: String,
    },
    /// A schema that breaks a rule.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// No index of that name.
    #[error("index {index:?} does not exist")]
    UnknownIndex {
        /// The table.
        table: String,
        /// The name.
        index: String,
    },
    /// An index of that name is there already.
    #[error("index {index:?} already exists")]
    IndexExists {
        /// The table.
        table: String,
        /// The name.
        index: String,
    },
    /// A row of another number of values than the table has columns.
    #[error("table {table}: a row has {}, the table {}", counted(*.values, "value"), counted(*.columns, "column"))]
    Width {
        /// The table.
        table: String,
        /// Columns of the table.
        columns: usize,
        /// Values of the row.
        values: usize,
    },
    /// NULL in a column that may not hold it.
    #[error("column {column:?} of table {table:?} may not be NULL")]
    NotNull {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A value that the column cannot hold as it is.
    #[error("table {table}: column {column} of type {data_type} cannot hold {value}")]
    Type {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The column's type.
        data_type: DataType,
        /// The value, cut to a readable length.
        value: String,
    },
    /// Two rows of one key.
    #[error("duplicate key in table {table:?}: {columns} = {key} (index {index:?})")]
    DuplicateKey {
        /// The table.
        table: String,
        /// The index that keeps keys apart; the primary key's is named by its columns.
        index: String,
        /// Its columns, separated by commas.
        columns: String,
        /// The key, cut to a readable length.
        key: String,
    },
    /// The table is full.
    #[error("table {table}: it cannot hold more rows")]
    TooManyRows {
        /// The table.
        table: String,
    },
    /// A key of another shape than the table's rows have.
    #[error("table {table}: a row is named by {wanted}")]
    KeyShape {
        /// The table.
        table: String,
        /// What its keys are.
        wanted: String,
    },
    /// No load of that number is under way.
    #[error("load {load} is not under way")]
    UnknownLoad {
        /// The number.
        load: u64,
    },
    /// A load of that number is under way already.
    #[error("load {load} is already under way")]
    LoadExists {
        /// The number.
        load: u64,
    },
    /// A batch or a load whose columns or key are not those of the table.
    #[error("table {table}: rows do not fit: {detail}")]
    Batch {
        /// The table.
        table: String,
        /// What is different.
        detail: String,
    },
}
