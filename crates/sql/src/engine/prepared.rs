//! A statement, read and planned.

use std::sync::{Arc, OnceLock};

use cachesql_table::GroupSnapshot;
use cachesql_types::{DataType, TableSchema};
use sqlparser::ast::{Query, Statement};

use crate::answer::{ColumnInfo, StatementKind};
use crate::datafusion::PlannedQuery;
use crate::direct::{CompiledJoin, CompiledSelect};
use crate::error::SqlError;
use crate::write::BoundWrite;

/// A statement, read and planned once. It can be run over any snapshot whose tables have the shape that it was planned
/// for; over others it is planned anew.
#[derive(Debug)]
pub struct Prepared {
    pub(super) text: Arc<str>,
    pub(super) given: Vec<Option<DataType>>,
    pub(super) kind: StatementKind,
    pub(super) columns: Arc<[ColumnInfo]>,
    pub(super) parameters: Vec<DataType>,
    pub(super) tables: Vec<String>,
    /// The shapes that it was planned for.
    pub(super) schemas: Vec<Arc<TableSchema>>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Direct(Box<Direct>),
    DataFusion(Box<PlannedQuery>),
    Write(Box<BoundWrite>),
    Definition(Box<Statement>),
    Explain(Box<Prepared>),
}

/// A query of the direct path, and what stands behind it when its rows are too many.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) plan: DirectPlan,
    pub(super) query: Box<Query>,
    pub(super) behind: OnceLock<Result<Box<PlannedQuery>, SqlError>>,
}

#[derive(Debug)]
pub(super) enum DirectPlan {
    Select(CompiledSelect),
    Join(CompiledJoin),
}

impl Prepared {
    /// What it does.
    pub fn kind(&self) -> StatementKind {
        self.kind
    }

    /// The columns that it answers, as they will come; none for a write without RETURNING.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// The types of its parameters.
    pub fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    /// The tables that it reads or writes, as their schemas name them; those that a definition makes or drops are not
    /// among them unless they are there.
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the tables of a snapshot have the shapes that it was planned for.
    pub(super) fn is_current(&self, snapshot: &GroupSnapshot) -> bool {
        self.schemas.iter().all(|schema| {
            snapshot.table(&schema.name).is_some_and(|t| Arc::ptr_eq(t.schema(), schema) || t.schema() == schema)
        })
    }
}
