//! The direct path: typed plans answered from indexes, row by row, without DataFusion.

mod access;
mod choose_index;
mod compile;
mod describe;
mod execute;
mod join;
mod like;
mod point;
mod rows;
mod sort;
mod test;

pub(crate) use compile::CompiledSelect;
pub(crate) use describe::{describe_join, describe_select, hands_over};
pub(crate) use execute::{Budget, Outcome, holds, matching_rows, run_select, selective_rows, tests};
pub(crate) use join::{CompiledJoin, run_join};
pub(crate) use point::{find_point, point_answer};
pub use rows::{DirectRow, DirectRows};
pub(crate) use test::column_of;
