//! Row ids, and one row as readers see it.

use cachesql_types::Value;
use cachesql_types::limits::CHUNK_ROWS;

use crate::cell::Cell;
use crate::rows::chunk::Chunk;

/// Where a row lies: the slot of its chunk, and the place in it. Valid in the snapshot that it came from; a later one may
/// have moved the row, or another row in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

impl RowId {
    pub(crate) const OFFSET_BITS: u32 = CHUNK_ROWS.trailing_zeros();

    pub(crate) fn new(slot: u32, offset: usize) -> Option<RowId> {
        let offset = u32::try_from(offset).ok().filter(|o| (*o as usize) < CHUNK_ROWS)?;
        (slot < crate::rows::store::MAX_SLOTS).then_some(RowId(slot << Self::OFFSET_BITS | offset))
    }

    pub(crate) fn slot(self) -> u32 {
        self.0 >> Self::OFFSET_BITS
    }

    pub(crate) fn offset(self) -> usize {
        self.0 as usize & (CHUNK_ROWS - 1)
    }
}

/// What names a row in an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// The values of the primary key's columns, in the key's order.
    Columns(Vec<Value>),
    /// The number of a row of a table without primary key.
    Number(u64),
}

/// One live row.
#[derive(Clone, Copy)]
pub struct Row<'a>(Place<'a>);

#[derive(Clone, Copy)]
enum Place<'a> {
    Chunk(&'a Chunk, usize),
    Tail(&'a [Value]),
}

impl<'a> Row<'a> {
    pub(crate) fn in_chunk(chunk: &'a Chunk, offset: usize) -> Row<'a> {
        Row(Place::Chunk(chunk, offset))
    }

    pub(crate) fn in_tail(values: &'a [Value]) -> Row<'a> {
        Row(Place::Tail(values))
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        match self.0 {
            Place::Chunk(chunk, _) => chunk.columns().len(),
            Place::Tail(values) => values.len(),
        }
    }

    /// One field, borrowed; NULL for a column that the table does not have.
    #[inline]
    pub fn cell(&self, column: usize) -> Cell<'a> {
        match self.0 {
            Place::Chunk(chunk, offset) => chunk.columns().get(column).map_or(Cell::Null, |c| c.cell(offset)),
            Place::Tail(values) => values.get(column).map_or(Cell::Null, Cell::of_value),
        }
    }

    /// Fetches what a look at some of the fields begins with, so that memory is waited for once and not for each.
    #[inline]
    pub fn warm(&self, columns: impl Iterator<Item = usize>) {
        if let Place::Chunk(chunk, offset) = self.0 {
            chunk.warm(offset, columns);
        }
    }

    /// One field, on its own.
    pub fn value(&self, column: usize) -> Value {
        match self.0 {
            Place::Chunk(..) => self.cell(column).to_value(),
            Place::Tail(values) => values.get(column).cloned().unwrap_or(Value::Null),
        }
    }

    /// All fields, on their own.
    pub fn values(&self) -> Vec<Value> {
        match self.0 {
            Place::Chunk(chunk, offset) => {
                chunk.warm(offset, 0..chunk.columns().len());
                chunk.columns().iter().map(|c| c.cell(offset).to_value()).collect()
            }
            Place::Tail(values) => values.to_vec(),
        }
    }
}
