//! The open tail: the rows that were appended last, not yet sealed.

use std::sync::{Arc, OnceLock};

use cachesql_types::Value;
use cachesql_types::limits::CHUNK_ROWS;

use super::chunk::CHUNK_BYTES;
use super::liveness::{AccessTimes, Deleted};

/// One row of the tail.
#[derive(Clone, Debug)]
pub(crate) struct TailRow {
    pub(crate) values: Arc<[Value]>,
    /// Only in a table without a primary key.
    pub(crate) number: u64,
}

impl TailRow {
    pub(crate) fn bytes(&self) -> usize {
        16 + self.values.iter().map(|v| size_of::<Value>() + v.heap_bytes()).sum::<usize>()
    }
}

type Places = Arc<[OnceLock<TailRow>]>;

/// Rows that were appended, in places that versions share: each version sees the first `length` of them. A place is set
/// once. Where two versions grow out of one (a write that was refused half-way, a transaction that was not committed), the
/// second finds the place taken and moves to places of its own.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// The slot that the tail's chunk will have.
    pub(crate) slot: u32,
    places: Places,
    length: usize,
    pub(crate) deleted: Deleted,
    pub(crate) access: Option<Arc<AccessTimes>>,
    row_bytes: usize,
}

const FIRST_PLACES: usize = 16;

fn places(count: usize) -> Places {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Tail {
    pub(crate) fn new(slot: u32, with_access: bool) -> Tail {
        let access = with_access.then(AccessTimes::new);
        Tail { slot, places: places(0), length: 0, deleted: Deleted::default(), access, row_bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn live(&self) -> usize {
        self.length - self.deleted.count()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.length >= CHUNK_ROWS || self.row_bytes >= CHUNK_BYTES
    }

    /// Whether so few rows live that they are better appended anew. Not for short tails: they cost little.
    pub(crate) fn is_mostly_dead(&self) -> bool {
        const SHORT_ROWS: usize = 1_024;
        self.length >= SHORT_ROWS && self.live() * 4 < self.length
    }

    pub(crate) fn get(&self, offset: usize) -> Option<&TailRow> {
        self.rows().get(offset)?.get()
    }

    /// Rows that are deleted as well.
    fn rows(&self) -> &[OnceLock<TailRow>] {
        self.places.get(..self.length).unwrap_or_default()
    }

    /// The offset that the row got. The tail must not be full.
    pub(crate) fn push(&mut self, row: TailRow) -> usize {
        let offset = self.length;
        let bytes = row.bytes();
        let taken = match self.places.get(offset) {
            Some(place) => place.set(row).err(),
            None => Some(row),
        };
        if let Some(row) = taken {
            let wanted = (offset + 1).next_power_of_two().clamp(FIRST_PLACES, CHUNK_ROWS.max(offset + 1));
            let mut moved: Vec<OnceLock<TailRow>> = Vec::with_capacity(wanted);
            moved.extend(self.rows().iter().cloned());
            moved.push(OnceLock::from(row));
            moved.resize_with(wanted, OnceLock::new);
            self.places = moved.into();
        }
        self.length += 1;
        self.row_bytes += bytes;
        offset
    }

    /// Bytes of the rows and of the places for them, without access times.
    pub(crate) fn bytes(&self) -> usize {
        let places = if self.places.is_empty() { 0 } else { 16 + self.places.len() * size_of::<OnceLock<TailRow>>() };
        places + self.row_bytes + self.deleted.bytes()
    }

    /// What `bytes` says, counted by walking.
    pub(crate) fn count_bytes(&self) -> usize {
        let rows: usize = self.rows().iter().filter_map(OnceLock::get).map(TailRow::bytes).sum();
        self.bytes() - self.row_bytes + rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> TailRow {
        TailRow { values: vec![Value::BigInt(1)].into(), number }
    }

    #[test]
    fn versions_see_their_own_rows_only() {
        let mut tail = Tail::new(0, false);
        (0..100).for_each(|n| {
            tail.push(row(n));
        });
        let earlier = tail.clone();
        let mut refused = tail.clone();
        (0..5).for_each(|n| {
            refused.push(row(1_000 + n));
        });
        (0..50).for_each(|n| {
            tail.push(row(2_000 + n));
        });
        assert_eq!(earlier.len(), 100);
        assert!(earlier.get(100).is_none());
        assert_eq!(refused.get(102).map(|r| r.number), Some(1_002));
        assert_eq!(tail.get(102).map(|r| r.number), Some(2_002));
        assert_eq!(tail.get(99).map(|r| r.number), Some(99));
        assert_eq!(tail.bytes(), tail.count_bytes());
    }
}
