//! A sealed chunk: columns that never change, beside what may change about their rows.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::Buffer;
use cachesql_types::DataType;

use super::column::Column;
use super::liveness::{AccessTimes, Deleted};

/// A chunk is sealed before its rows pass this, whatever their number: the ends of texts are 32-bit numbers.
pub(crate) const CHUNK_BYTES: usize = 1 << 30;

/// The columns of up to `CHUNK_ROWS` rows.
#[derive(Debug)]
pub(crate) struct Chunk {
    columns: Box<[Column]>,
    firsts: Box<[FirstBuffer]>,
    rows: usize,
    bytes: usize,
}

/// Where a look at a column begins, for all types alike: see [`Chunk::warm`].
#[derive(Debug)]
struct FirstBuffer {
    buffer: Buffer,
    row_bits: usize,
}

/// The row numbers of a table without a primary key.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    None,
    /// This and those that follow it.
    From(u64),
    List(Arc<[u64]>),
}

impl Numbers {
    /// Of the numbers of consecutive rows.
    pub(crate) fn of(numbers: Vec<u64>) -> Numbers {
        match numbers.first() {
            None => Numbers::None,
            Some(first) if numbers.iter().zip(*first..).all(|(a, b)| *a == b) => Numbers::From(*first),
            Some(_) => Numbers::List(numbers.into()),
        }
    }

    pub(crate) fn get(&self, offset: usize) -> Option<u64> {
        match self {
            Numbers::None => None,
            Numbers::From(first) => Some(first + offset as u64),
            Numbers::List(numbers) => numbers.get(offset).copied(),
        }
    }

    fn bytes(&self) -> usize {
        if let Numbers::List(numbers) = self { 16 + numbers.len() * 8 } else { 0 }
    }
}

impl FirstBuffer {
    fn of((buffer, row_bits): (&Buffer, usize)) -> FirstBuffer {
        FirstBuffer { buffer: buffer.clone(), row_bits }
    }
}

impl Chunk {
    /// Copies rows out of arrays of the `types::arrow_type` layout: for each column the parts that make it up.
    pub(crate) fn seal(types: &[DataType], columns: &[Vec<ArrayRef>]) -> Chunk {
        let rows = columns.first().map_or(0, |parts| parts.iter().map(|p| p.len()).sum());
        let columns: Box<[Column]> = types.iter().zip(columns).map(|(t, parts)| Column::seal(*t, parts)).collect();
        let firsts: Box<[FirstBuffer]> = columns.iter().map(Column::first_buffer).map(FirstBuffer::of).collect();
        let bytes = 16 + size_of::<Chunk>() + size_of_val(&*firsts) + columns.iter().map(Column::bytes).sum::<usize>();
        Chunk { columns, firsts, rows, bytes }
    }

    /// Reads one byte of each of some columns of a row. They lie in as many places of memory; read in one go, without a
    /// decision between them, they are waited for together.
    pub(crate) fn warm(&self, offset: usize, columns: impl Iterator<Item = usize>) {
        let read = |column: usize| {
            let first = self.firsts.get(column)?;
            first.buffer.get(offset.checked_mul(first.row_bits)? / 8).copied()
        };
        std::hint::black_box(columns.fold(0_u8, |all, column| all ^ read(column).unwrap_or(0)));
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A chunk in its slot.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) chunk: Arc<Chunk>,
    pub(crate) numbers: Numbers,
    pub(crate) deleted: Deleted,
    /// Only while the table has a ttl or a limit of rows.
    pub(crate) access: Option<Arc<AccessTimes>>,
}

impl Slot {
    pub(crate) fn live(&self) -> usize {
        self.chunk.rows() - self.deleted.count()
    }

    /// Whether so few rows live that they are better appended anew.
    pub(crate) fn is_mostly_dead(&self) -> bool {
        self.live() * 4 < self.chunk.rows()
    }

    /// Bytes of the rows, without access times.
    pub(crate) fn bytes(&self) -> usize {
        self.chunk.bytes() + self.numbers.bytes() + self.deleted.bytes()
    }
}
