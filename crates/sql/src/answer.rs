//! What is known of a statement before it runs: its kind, the columns of its answer.

use cachesql_types::DataType;

/// One column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// It answers rows and changes nothing.
    Read,
    /// INSERT, UPDATE, DELETE, TRUNCATE.
    Write,
    /// CREATE or DROP of a table or an index.
    Definition,
    /// EXPLAIN: answers rows that tell how a statement would be served.
    Explain,
}
