//! Changes of rows that callers ask for, as data. Whoever leads makes a plan of one when its turn comes; another member sends it there.

use std::sync::Arc;

use cachesql_sql::{Engine, Write};
use cachesql_table::{GroupSnapshot, Operation};
use cachesql_types::{Column, TableSchema, limits};
use twox_hash::XxHash3_64;

use crate::core::{find_table, sql_error};
use crate::error::NodeError;
use crate::original::Change;
use crate::outcome::Outcome;
use crate::request::Statement;
use crate::writer::{Plan, Planned};

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// SQL, in order, each statement seeing what the ones before it did.
    Statements(Arc<Vec<Statement>>),
    /// A typed write, and the columns that its positions are of.
    Typed(Arc<Write>, Shape),
    /// One of the original's changes.
    Original(Arc<Change>),
    /// How long rows of a table may be left alone, and how many it may keep.
    Retention {
        /// The table.
        table: String,
        /// Milliseconds, or for as long as they like; `None` leaves it as it is.
        ttl_ms: Option<Option<u64>>,
        /// Rows, or as many as come; `None` leaves it as it is.
        max_rows: Option<Option<u64>>,
    },
    /// All rows of a table taken away.
    Truncate(String),
    /// The memory of rows that are gone given back.
    Compact(String),
}

/// The columns that a typed write was made for.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// As this member had them.
    Here(Arc<TableSchema>),
    /// As another member had them: a hash of their names and types.
    Elsewhere(u64),
}

impl Shape {
    /// What stands for the columns on another member.
    pub(crate) fn mark(&self) -> u64 {
        match self {
            Shape::Here(schema) => mark_of(&schema.columns),
            Shape::Elsewhere(mark) => *mark,
        }
    }

    fn is_of(&self, table: &Arc<TableSchema>) -> bool {
        match self {
            Shape::Here(schema) => Arc::ptr_eq(table, schema) || table.columns == schema.columns,
            Shape::Elsewhere(mark) => *mark == mark_of(&table.columns),
        }
    }
}

fn mark_of(columns: &[Column]) -> u64 {
    let mut text = String::new();
    for Column { name, data_type, nullable } in columns {
        text.push_str(&format!("{}:{name}{data_type}{nullable}", name.len()));
    }
    XxHash3_64::oneshot(text.as_bytes())
}

impl Mutation {
    /// How it becomes operations, in the writer's turn. `newest` only tells how long that may take.
    pub(crate) fn plan(self, newest: &GroupSnapshot) -> Plan {
        let rows_of = |table: &str| newest.table(table).map_or(0, |table| table.row_count());
        match self {
            Mutation::Statements(statements) => Plan::Statements(statements),
            Mutation::Typed(write, shape) => {
                let looked_at = match &*write {
                    Write::Insert { rows, .. } if rows.len() <= limits::INLINE_APPLY_ROWS => 0,
                    Write::Insert { .. } => u64::MAX,
                    // Without an index they look at every row.
                    other => rows_of(table_of(other)),
                };
                Plan::looking_at(looked_at, move |engine, newest| typed(engine, newest, &write, &shape))
            }
            Mutation::Original(change) => {
                let rows = rows_of(change.table());
                Plan::looking_at(rows, move |engine, newest| change.plan(engine, newest))
            }
            Mutation::Retention { table, ttl_ms, max_rows } => Plan::quick(move |_, newest| {
                let table = find_table(newest, &table)?;
                let ttl_ms = ttl_ms.unwrap_or(table.retention().ttl_ms);
                let max_rows = max_rows.unwrap_or(table.retention().max_rows);
                let table = table.schema().name.clone();
                Ok(Planned::counted(vec![Operation::SetRetention { table, ttl_ms, max_rows }]))
            }),
            Mutation::Truncate(table) => of_table(table, |table| Operation::Truncate { table }),
            Mutation::Compact(table) => of_table(table, |table| Operation::Compact { table }),
        }
    }
}

fn of_table(table: String, operation: impl FnOnce(String) -> Operation + Send + 'static) -> Plan {
    Plan::quick(move |_, newest| {
        let name = find_table(newest, &table)?.schema().name.clone();
        Ok(Planned::counted(vec![operation(name)]))
    })
}

fn typed(engine: &Engine, newest: &GroupSnapshot, write: &Write, shape: &Shape) -> Result<Planned, NodeError> {
    let table = find_table(newest, table_of(write))?;
    if !shape.is_of(table.schema()) {
        return Err(NodeError::Redefined { table: table.schema().name.clone() });
    }
    let plan = engine.plan_typed_write(newest, write).map_err(sql_error)?;
    let outcome = Outcome::written(plan.affected, plan.returning);
    Ok(Planned { operations: plan.operations, outcomes: Some(vec![outcome]) })
}

/// The table that a typed write is for.
pub(crate) fn table_of(write: &Write) -> &str {
    match write {
        Write::Insert { table, .. }
        | Write::Update { table, .. }
        | Write::Delete { table, .. }
        | Write::Truncate { table } => table,
    }
}
