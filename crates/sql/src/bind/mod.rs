//! Syntax tree → typed plan, for the shapes that the direct path answers. What does not fit is no error: it is
//! DataFusion's.

mod operand;
mod parameters;
mod predicate;
mod scope;
mod select;

pub(crate) use operand::literal_value;
pub(crate) use parameters::{ParameterTypes, coerce_parameters, comparable};
pub(crate) use predicate::bind_predicate;
pub(crate) use scope::{Scope, object_name, single_table};
pub(crate) use select::{Bound, bind_query};

use crate::error::SqlError;

/// Why a tree did not become a typed plan.
pub(crate) enum Unfit {
    /// Its shape is none of the direct path's.
    Shape,
    /// It can never run.
    Error(SqlError),
}

impl From<SqlError> for Unfit {
    fn from(error: SqlError) -> Unfit {
        Unfit::Error(error)
    }
}
