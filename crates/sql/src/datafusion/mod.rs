//! DataFusion's path: everything that the direct path does not answer, over the same snapshot.

mod bounded;
mod clock;
mod decimals;
mod doubles;
mod errors;
mod exists;
mod functions;
mod intervals;
mod json;
mod messages;
mod names;
mod plan;
mod provider;
mod respell;
mod scalar;
mod scan;
mod semantics;
mod session;
mod sign;
mod stream;
mod temporal;
mod watch;
mod words;

pub(crate) use plan::PlannedQuery;
pub(crate) use provider::ROW_ID_COLUMN;
pub(crate) use scalar::array_of;
pub(crate) use session::Session;
pub use stream::RowStream;
