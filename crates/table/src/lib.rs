//! Tables in memory: rows in columnar chunks, ordered indexes, and snapshots that share what they have in common.
//!
//! All state is immutable. A writer applies operations to a [`GroupSnapshot`] and gets the next one; readers hold whichever
//! they took, and see its rows and indexes for as long as they like. Applying is deterministic: no clock, no randomness, no order
//! of a hash map shows in the outcome. No input or output here either.
//!
//! `snapshot` applies operations to tables (`table`, `table_write`), which keep rows (`rows`) and indexes (`index`).

mod access;
mod cell;
mod check;
mod difference;
mod image;
mod index;
mod memory;
mod operation;
mod refusal;
mod row;
mod rows;
mod snapshot;
mod staged;
mod table;
mod table_write;
mod wire;

pub use cell::Cell;
pub use image::{ImageError, ImageReader};
pub use index::{Index, IndexRange, RowIds};
pub use memory::{MemoryUse, TableMemory};
pub use operation::{Applied, Operation, PutMode};
pub use refusal::{ApplyError, Refusal};
pub use row::{Row, RowId, RowKey};
pub use snapshot::GroupSnapshot;
pub use staged::StagedRows;
pub use table::{Retention, Table};
pub use wire::{DecodeError, decode_rows, decode_values, encode_rows, encode_values};
