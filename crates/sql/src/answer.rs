//! What is known of a statement before it runs: its kind, the columns of its answer.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Schema, SchemaRef};
use cachesql_types::{Column, DataType, arrow_field};

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

/// The Arrow schema of an answer: the names of its columns, and the types that its arrays have.
pub(crate) fn result_schema(columns: &[ColumnInfo], types: impl Iterator<Item = ArrowType>) -> SchemaRef {
    let field = |(column, arrow_type): (&ColumnInfo, ArrowType)| {
        let named = Column { name: column.name.clone(), data_type: column.data_type, nullable: true };
        arrow_field(&named).with_data_type(arrow_type)
    };
    Arc::new(Schema::new(columns.iter().zip(types).map(field).collect::<Vec<_>>()))
}
