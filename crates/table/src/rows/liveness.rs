//! Which rows of a chunk are deleted, and when its rows were last used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;
use cachesql_types::limits::CHUNK_ROWS;

const WORDS: usize = CHUNK_ROWS / 64;

/// The deleted rows of one chunk. Versions share it until a row is deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deleted {
    bits: Option<Arc<[u64; WORDS]>>,
    count: u32,
}

impl Deleted {
    pub(crate) fn contains(&self, offset: usize) -> bool {
        self.bits.as_ref().is_some_and(|bits| bits.get(offset / 64).is_some_and(|w| w >> (offset % 64) & 1 == 1))
    }

    /// Marks a row; false when it was marked already.
    pub(crate) fn insert(&mut self, offset: usize) -> bool {
        let bits = Arc::make_mut(self.bits.get_or_insert_with(|| Arc::new([0; WORDS])));
        let Some(word) = bits.get_mut(offset / 64) else { return false };
        let before = *word;
        *word |= 1 << (offset % 64);
        let new = *word != before;
        self.count += u32::from(new);
        new
    }

    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn bytes(&self) -> usize {
        if self.bits.is_some() { 16 + WORDS * 8 } else { 0 }
    }

    /// A mask of the live ones of the first `rows` rows; `None` when none of them is deleted.
    pub(crate) fn live_mask(&self, rows: usize) -> Option<BooleanArray> {
        (self.count > 0).then(|| BooleanArray::new(BooleanBuffer::collect_bool(rows, |i| !self.contains(i)), None))
    }
}

/// When the rows of one chunk were last used, in milliseconds of the caller's clock; 0 is "not known". All versions of the
/// chunk share it: reading a row through an old snapshot is a use as well.
#[derive(Debug)]
pub(crate) struct AccessTimes {
    times: Box<[AtomicU64]>,
}

impl AccessTimes {
    pub(crate) fn new() -> Arc<AccessTimes> {
        Arc::new(AccessTimes { times: (0..CHUNK_ROWS).map(|_| AtomicU64::new(0)).collect() })
    }

    pub(crate) fn get(&self, offset: usize) -> u64 {
        self.times.get(offset).map_or(0, |t| t.load(Ordering::Relaxed))
    }

    /// Never goes back: readers on several threads may touch out of order.
    pub(crate) fn touch(&self, offset: usize, now_ms: u64) {
        if let Some(time) = self.times.get(offset) {
            time.fetch_max(now_ms, Ordering::Relaxed);
        }
    }

    /// For a row that takes the place of an earlier one.
    pub(crate) fn set(&self, offset: usize, time: u64) {
        if let Some(place) = self.times.get(offset) {
            place.store(time, Ordering::Relaxed);
        }
    }

    pub(crate) const BYTES: usize = 16 + size_of::<AccessTimes>() + CHUNK_ROWS * 8;
}
