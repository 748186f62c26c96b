//! SQL over a snapshot of tables: text becomes a typed plan, a typed plan becomes rows or row operations.

mod answer;
mod error;
mod limits;
mod plan;

pub use answer::{ColumnInfo, StatementKind};
pub use error::SqlError;
pub use limits::EngineLimits;
pub use plan::{Amount, Comparison, Filter, OnConflict, Operand, OrderBy, Projection, Select, Write};
