//! The rows of one table, by row id.

use std::sync::Arc;

use arrow::array::ArrayRef;
use cachesql_types::{DataType, Value, limits};

use super::build::{Layout, array_of};
use super::chunk::{Chunk, Numbers, Slot};
use super::chunk_map::ChunkMap;
use super::liveness::AccessTimes;
use super::tail::{Tail, TailRow};
use crate::cell::Cell;
use crate::row::{Row, RowId};

/// Row ids are 32 bits: chunks beyond so many have none left.
pub(crate) const MAX_SLOTS: u32 = 1 << (32 - RowId::OFFSET_BITS);
const _: () = assert!((MAX_SLOTS as u64) << RowId::OFFSET_BITS == limits::MAX_TABLE_ROWS);

/// Sealed chunks and the open tail. A clone shares everything.
#[derive(Clone, Debug)]
pub(crate) struct RowStore {
    types: Arc<[DataType]>,
    chunks: ChunkMap,
    tail: Tail,
    /// Slots whose chunks went; the smallest is used first.
    free: Arc<Vec<u32>>,
    rows: u64,
    /// Bytes of all sealed slots.
    sealed_bytes: usize,
    sealed_chunks: usize,
    with_access: bool,
    numbered: bool,
}

impl RowStore {
    pub(crate) fn new(types: Arc<[DataType]>, numbered: bool, with_access: bool) -> RowStore {
        RowStore {
            types,
            chunks: ChunkMap::default(),
            tail: Tail::new(0, with_access),
            free: Arc::default(),
            rows: 0,
            sealed_bytes: 0,
            sealed_chunks: 0,
            with_access,
            numbered,
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Deleted rows of chunks that are still there as well.
    pub(crate) fn stored_rows(&self) -> u64 {
        let sealed: usize = self.chunks.iter().map(|(_, slot)| slot.chunk.rows()).sum();
        (sealed + self.tail.len()) as u64
    }

    pub(crate) fn row(&self, id: RowId) -> Option<Row<'_>> {
        let (slot, offset) = (id.slot(), id.offset());
        if slot == self.tail.slot {
            let row = self.tail.get(offset)?;
            return (!self.tail.deleted.contains(offset)).then_some(Row::in_tail(&row.values));
        }
        let slot = self.chunks.get(slot as usize)?;
        let live = offset < slot.chunk.rows() && !slot.deleted.contains(offset);
        live.then(|| Row::in_chunk(&slot.chunk, offset))
    }

    /// The number of a row of a table without primary key.
    pub(crate) fn number(&self, id: RowId) -> Option<u64> {
        if id.slot() == self.tail.slot {
            return self.tail.get(id.offset()).map(|r| r.number);
        }
        self.chunks.get(id.slot() as usize)?.numbers.get(id.offset())
    }

    pub(crate) fn access(&self, id: RowId) -> Option<&AccessTimes> {
        if id.slot() == self.tail.slot {
            return self.tail.access.as_deref();
        }
        self.chunks.get(id.slot() as usize)?.access.as_deref()
    }

    /// Slots and the tail behind them, as scans count chunks.
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len().max(self.tail.slot as usize + usize::from(self.tail.len() > 0))
    }

    pub(crate) fn chunk(&self, chunk: usize) -> Option<ChunkRows<'_>> {
        if chunk == self.tail.slot as usize {
            return (self.tail.live() > 0).then_some(ChunkRows::Tail(&self.tail));
        }
        self.chunks.get(chunk).map(ChunkRows::Sealed)
    }

    /// Appends a row. `None` when no row id is left.
    pub(crate) fn append(&mut self, values: Arc<[Value]>, number: u64) -> Option<RowId> {
        if self.tail.is_full() {
            self.seal_tail()?;
        }
        let offset = self.tail.push(TailRow { values, number });
        self.rows += 1;
        RowId::new(self.tail.slot, offset)
    }

    /// Turns the tail into a chunk, at the place where its rows are already, and opens another. `None` when no slot is left;
    /// nothing is changed then.
    pub(crate) fn seal_tail(&mut self) -> Option<()> {
        if self.tail.len() == 0 {
            return Some(());
        }
        let slot = self.next_slot()?;
        let tail = std::mem::replace(&mut self.tail, Tail::new(slot, self.with_access));
        if tail.live() == 0 {
            self.release(tail.slot);
            return Some(());
        }
        let rows: Vec<&TailRow> = (0..tail.len()).filter_map(|o| tail.get(o)).collect();
        let columns: Vec<Vec<ArrayRef>> = self
            .types
            .iter()
            .enumerate()
            .map(|(column, data_type)| {
                let cells = rows.iter().map(|r| r.values.get(column).map_or(Cell::Null, Cell::of_value));
                vec![array_of(*data_type, Layout::Plain, cells)]
            })
            .collect();
        let numbers = if self.numbered { Numbers::of(rows.iter().map(|r| r.number).collect()) } else { Numbers::None };
        let chunk = Arc::new(Chunk::seal(&self.types, &columns));
        let slot = Slot { chunk, numbers, deleted: tail.deleted, access: tail.access };
        self.sealed_bytes += slot.bytes();
        self.sealed_chunks += 1;
        self.chunks.set(tail.slot as usize, Some(slot));
        Some(())
    }

    /// Takes a chunk that was sealed elsewhere. The tail must be empty. `None` when no slot is left.
    pub(crate) fn adopt(&mut self, chunk: Arc<Chunk>, numbers: Numbers) -> Option<u32> {
        let next = self.next_slot()?;
        let slot = std::mem::replace(&mut self.tail, Tail::new(next, self.with_access)).slot;
        self.rows += chunk.rows() as u64;
        let access = self.with_access.then(AccessTimes::new);
        let content = Slot { chunk, numbers, deleted: Default::default(), access };
        self.sealed_bytes += content.bytes();
        self.sealed_chunks += 1;
        self.chunks.set(slot as usize, Some(content));
        Some(slot)
    }

    /// A slot for the next tail. The present tail's is in use.
    fn next_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.last().copied() {
            Arc::make_mut(&mut self.free).pop();
            return Some(slot);
        }
        let slot = u32::try_from(self.chunks.len()).ok()?.max(self.tail.slot + 1);
        (slot < MAX_SLOTS).then_some(slot)
    }

    fn release(&mut self, slot: u32) {
        let free = Arc::make_mut(&mut self.free);
        let at = free.partition_point(|s| *s > slot);
        free.insert(at, slot);
    }

    /// Marks a row deleted. A chunk without any live row goes at once.
    pub(crate) fn delete(&mut self, id: RowId) -> bool {
        let (number, offset) = (id.slot(), id.offset());
        if number == self.tail.slot {
            let deleted = offset < self.tail.len() && self.tail.deleted.insert(offset);
            self.rows -= u64::from(deleted);
            return deleted;
        }
        let Some(slot) = self.chunks.get_mut(number as usize) else { return false };
        let before = slot.bytes();
        if offset >= slot.chunk.rows() || !slot.deleted.insert(offset) {
            return false;
        }
        self.rows -= 1;
        self.sealed_bytes = self.sealed_bytes - before + slot.bytes();
        if slot.live() == 0 {
            self.drop_slot(number);
        }
        true
    }

    fn drop_slot(&mut self, number: u32) {
        if let Some(slot) = self.chunks.get(number as usize) {
            self.sealed_bytes -= slot.bytes();
            self.sealed_chunks -= 1;
            self.chunks.set(number as usize, None);
            self.release(number);
        }
    }

    /// Whether the chunk of a row is due for compaction.
    pub(crate) fn is_mostly_dead(&self, number: u32) -> bool {
        if number == self.tail.slot {
            return self.tail.is_mostly_dead();
        }
        self.chunks.get(number as usize).is_some_and(Slot::is_mostly_dead)
    }

    /// Slots that hold at least one deleted row, the tail's included.
    pub(crate) fn slots_with_deleted(&self) -> Vec<u32> {
        let sealed = self.chunks.iter().filter(|(_, s)| s.deleted.count() > 0);
        let mut slots: Vec<u32> = sealed.filter_map(|(number, _)| u32::try_from(number).ok()).collect();
        if self.tail.deleted.count() > 0 {
            slots.push(self.tail.slot);
        }
        slots
    }

    /// The live rows of a chunk, in order.
    pub(crate) fn live_rows(&self, number: u32) -> Vec<RowId> {
        let Some(rows) = self.chunk(number as usize) else { return Vec::new() };
        rows.live().filter_map(|offset| RowId::new(number, offset)).collect()
    }

    /// Moves a live row to the end of the table, with its number and access time.
    pub(crate) fn move_to_end(&mut self, id: RowId) -> Option<RowId> {
        let values: Arc<[Value]> = if id.slot() == self.tail.slot {
            self.tail.get(id.offset())?.values.clone()
        } else {
            self.row(id)?.values().into()
        };
        let number = self.number(id).unwrap_or(0);
        let used = self.access(id).map(|a| a.get(id.offset()));
        let moved = self.append(values, number)?;
        if let (Some(time), Some(access)) = (used, self.access(moved)) {
            access.set(moved.offset(), time);
        }
        self.delete(id);
        Some(moved)
    }

    /// Begins another tail, so that the rows of the present one can be moved.
    pub(crate) fn close_tail(&mut self, number: u32) -> Option<()> {
        if number == self.tail.slot { self.seal_tail() } else { Some(()) }
    }

    pub(crate) fn keeps_access(&self) -> bool {
        self.with_access
    }

    pub(crate) fn keep_access(&mut self, keep: bool) {
        if self.with_access == keep {
            return;
        }
        self.with_access = keep;
        let made = || keep.then(AccessTimes::new);
        self.tail.access = made();
        for number in 0..self.chunks.len() {
            if self.chunks.get(number).is_some()
                && let Some(slot) = self.chunks.get_mut(number)
            {
                slot.access = made();
            }
        }
    }

    pub(crate) fn row_bytes(&self) -> usize {
        self.sealed_bytes + self.tail.bytes() + self.chunks.bytes() + self.free.capacity() * 4
    }

    pub(crate) fn access_bytes(&self) -> usize {
        if self.with_access { (self.sealed_chunks + 1) * AccessTimes::BYTES } else { 0 }
    }

    /// What `row_bytes` says, counted by walking.
    pub(crate) fn count_row_bytes(&self) -> usize {
        let sealed: usize = self.chunks.iter().map(|(_, s)| s.bytes()).sum();
        sealed + self.tail.count_bytes() + self.chunks.bytes() + self.free.capacity() * 4
    }

    /// All live rows, in storage order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RowId> {
        (0..self.chunk_count()).filter_map(|n| Some((n, self.chunk(n)?))).flat_map(|(number, rows)| {
            rows.live().filter_map(move |offset| RowId::new(u32::try_from(number).ok()?, offset))
        })
    }
}

/// The rows of one chunk, sealed or not.
#[derive(Clone, Copy)]
pub(crate) enum ChunkRows<'a> {
    Sealed(&'a Slot),
    Tail(&'a Tail),
}

impl<'a> ChunkRows<'a> {
    fn rows(self) -> usize {
        match self {
            ChunkRows::Sealed(slot) => slot.chunk.rows(),
            ChunkRows::Tail(tail) => tail.len(),
        }
    }

    /// Offsets of the live rows.
    pub(crate) fn live(self) -> impl Iterator<Item = usize> + use<'a> {
        (0..self.rows()).filter(move |offset| match self {
            ChunkRows::Sealed(slot) => !slot.deleted.contains(*offset),
            ChunkRows::Tail(tail) => !tail.deleted.contains(*offset),
        })
    }
}
