//! SQL over a snapshot of tables: text becomes a typed plan, a typed plan becomes rows or row operations.
//!
//! The life of a read:
//! 1. [`Engine::prepare`] looks the text up among the statements that it keeps. What is not there is read by
//!    `parse::parse`, after `complexity::check_complexity` has told from its tokens that nothing will recurse too deep;
//!    `expansion::check_expansion` tells from the tree that planning it will not take long.
//! 2. `bind::bind_query` turns the tree into a [`Select`], or a join of a few tables, when its shape is one of the direct
//!    path's, and finds the types of its parameters; `direct::CompiledSelect` lists the indexes that could serve it. Any other
//!    shape is planned by `datafusion::PlannedQuery`. Either way the answer's columns are known now ([`Prepared`]).
//! 3. [`Engine::query`] brings the parameters to their types, and runs the plan over the snapshot that it is given.
//! 4. The direct path: `direct::run_select` chooses the index by the values at hand, walks it, tries what conditions are
//!    left, orders, cuts. It answers [`DirectRows`]: row ids, and the tables they are in. When the rows are too many to be
//!    tried one by one, it hands the statement over to DataFusion.
//! 5. DataFusion's path: the plan is optimized with the parameters' values; `datafusion`'s table provider takes conditions
//!    to an index where one is selective, and streams chunks otherwise. It answers a [`RowStream`], within the time, memory
//!    and rows of [`EngineLimits`].
//!
//! The life of a write:
//! 1. [`Engine::prepare`] reads it as it reads a query; `write::bind_write` binds its values, assignments and conditions to
//!    the columns of its table. What only DataFusion can work out becomes a query inside it.
//! 2. [`Engine::plan_write`] finds the rows it is about, by the direct path or by that query, works out the new ones, and
//!    answers a [`WritePlan`]: row operations, whole rows in the columns' types, nothing left to evaluate.
//! 3. Whoever owns the tables applies the operations, all or none, and sees duplicate keys then.
//!
//! REST and the original API skip the text: [`Engine::select`] and [`Engine::plan_typed_write`] take typed plans.
//!
//! Names: a table or column matches its exact spelling first, then without regard to ASCII case, quoted or not. A column
//! that several tables of a statement have, in any spelling, is ambiguous without its table.

mod answer;
mod bind;
mod complexity;
mod datafusion;
mod direct;
mod engine;
mod error;
mod expansion;
mod limits;
mod parse;
mod plan;
mod write;

use std::sync::Arc;

pub use answer::{ColumnInfo, StatementKind};
pub use datafusion::RowStream;
pub use direct::{DirectRow, DirectRows};
pub use engine::{BatchAnswer, BatchPlan, BatchStatement, Engine, Explanation, Path, Prepared};
pub use error::SqlError;
pub use limits::EngineLimits;
pub use plan::{Amount, Comparison, Filter, OnConflict, Operand, OrderBy, Projection, Select, Write};
pub use write::{Returned, WritePlan};

/// The rows that a statement answers.
#[derive(Debug)]
pub enum Rows {
    /// Of the direct path: all there, by id.
    Direct(DirectRows),
    /// Of DataFusion's path, or ready batches: to be read as they come.
    Stream(RowStream),
}

impl Rows {
    /// The columns of each row.
    pub fn columns(&self) -> &[ColumnInfo] {
        match self {
            Rows::Direct(rows) => rows.columns(),
            Rows::Stream(rows) => rows.columns(),
        }
    }

    /// The columns, shared.
    pub fn shared_columns(&self) -> Arc<[ColumnInfo]> {
        match self {
            Rows::Direct(rows) => rows.shared_columns(),
            Rows::Stream(rows) => rows.shared_columns(),
        }
    }
}
