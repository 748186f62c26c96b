//! The rows of one key: a few sorted row ids, or many in segments that are copied one at a time.

use std::iter::FlatMap;
use std::slice;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::tree::Entry;

/// Beyond so many rows a posting list is kept in segments.
const FEW_ROWS: usize = 256;
/// Rows of a full sparse segment, and what a stretch of 65,536 row ids must hold to become a bitmap.
const SEGMENT_ROWS: usize = 512;
/// What a bitmap of one container takes beside its content: two counts, its vector, the container.
const BITMAP_OVERHEAD: usize = 16 + size_of::<RoaringBitmap>() + 40;
/// From so many rows on a container is a plain bitmap of 8 KiB, below it two bytes a row (the Roaring paper, section 2).
const ARRAY_ROWS: u64 = 4096;

/// The rows of one key, in the order of their ids. Never empty.
#[derive(Clone, Debug)]
pub(crate) enum Posting {
    One(u32),
    Few(Arc<Vec<u32>>),
    Many(Arc<Many>),
}

#[derive(Clone, Debug)]
pub(crate) struct Many {
    /// In ascending order; no segment is empty.
    segments: Vec<Segment>,
    rows: u64,
    /// Bytes of the segments' content.
    content_bytes: usize,
}

/// Row ids of one stretch: of whole containers (equal upper 16 bits), one only when it is a bitmap.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Not above any of its rows, above all rows of the segment before. Kept here, so that a segment is found without a look into
    /// others.
    start: u32,
    rows: SegmentSet,
}

#[derive(Clone, Debug)]
enum SegmentSet {
    Sparse(Arc<Vec<u32>>),
    Dense(Arc<RoaringBitmap>),
}

fn container_of(row: u32) -> u32 {
    row >> 16
}

impl Segment {
    /// From rows that ascend; at least one.
    fn sparse(rows: Vec<u32>) -> Segment {
        Segment { start: rows.first().copied().unwrap_or(0), rows: SegmentSet::Sparse(Arc::new(rows)) }
    }

    /// From rows of one container, which ascend; at least one.
    fn dense(rows: &[u32]) -> Segment {
        let bitmap: RoaringBitmap = rows.iter().copied().collect();
        let start = rows.first().copied().unwrap_or(0);
        // A clone has no spare capacity.
        #[allow(clippy::redundant_clone)]
        Segment { start, rows: SegmentSet::Dense(Arc::new(bitmap.clone())) }
    }

    fn len(&self) -> u64 {
        match &self.rows {
            SegmentSet::Sparse(rows) => rows.len() as u64,
            SegmentSet::Dense(rows) => rows.len(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.rows {
            SegmentSet::Sparse(rows) => vector_bytes(rows),
            SegmentSet::Dense(rows) => {
                let rows = rows.len();
                BITMAP_OVERHEAD + if rows <= ARRAY_ROWS { usize::try_from(rows).unwrap_or(0) * 2 } else { 8192 }
            }
        }
    }

    /// Whether the row may be added, given that it lies next to this segment.
    fn takes(&self, row: u32) -> bool {
        matches!(self.rows, SegmentSet::Sparse(_)) || container_of(self.start) == container_of(row)
    }

    fn iter(&self) -> SegmentRows<'_> {
        match &self.rows {
            SegmentSet::Sparse(rows) => SegmentRows::Sparse(rows.iter()),
            SegmentSet::Dense(rows) => SegmentRows::Dense(rows.iter()),
        }
    }
}

fn vector_bytes(rows: &Arc<Vec<u32>>) -> usize {
    16 + size_of::<Vec<u32>>() + rows.capacity() * 4
}

/// Inserts in order, without doubling the capacity. False when it is there already.
fn insert_sorted(rows: &mut Vec<u32>, row: u32) -> bool {
    let Err(at) = rows.binary_search(&row) else { return false };
    if rows.len() == rows.capacity() {
        rows.reserve_exact(rows.len() / 8 + 1);
    }
    rows.insert(at, row);
    true
}

fn remove_sorted(rows: &mut Vec<u32>, row: u32) -> bool {
    let Ok(at) = rows.binary_search(&row) else { return false };
    rows.remove(at);
    true
}

impl Posting {
    /// From row ids that strictly ascend; `None` when there are none.
    pub(crate) fn from_sorted(rows: Vec<u32>) -> Option<Posting> {
        match rows.as_slice() {
            [] => None,
            [row] => Some(Posting::One(*row)),
            many if many.len() > FEW_ROWS => Some(Posting::Many(Arc::new(Many::from_sorted(many)))),
            _ => {
                let mut rows = rows;
                rows.shrink_to_fit();
                Some(Posting::Few(Arc::new(rows)))
            }
        }
    }

    pub(crate) fn insert(&mut self, row: u32) {
        match self {
            Posting::One(other) if *other == row => {}
            Posting::One(other) => {
                *self = Posting::Few(Arc::new(vec![row.min(*other), row.max(*other)]));
            }
            Posting::Few(rows) => {
                let rows = Arc::make_mut(rows);
                insert_sorted(rows, row);
                if rows.len() > FEW_ROWS {
                    *self = Posting::Many(Arc::new(Many::from_sorted(rows)));
                }
            }
            Posting::Many(many) => Arc::make_mut(many).insert(row),
        }
    }

    /// True when the last row went; the posting list must then be dropped.
    pub(crate) fn remove(&mut self, row: u32) -> bool {
        match self {
            Posting::One(only) => *only == row,
            Posting::Few(rows) => {
                let rows = Arc::make_mut(rows);
                remove_sorted(rows, row);
                match rows.as_slice() {
                    [] => true,
                    [only] => {
                        *self = Posting::One(*only);
                        false
                    }
                    _ => false,
                }
            }
            Posting::Many(many) => {
                let many = Arc::make_mut(many);
                many.remove(row);
                // Not at the same size as the way up, or a list at the border would change its form with every write.
                if many.rows <= FEW_ROWS as u64 / 2 {
                    let rows: Vec<u32> = self.iter().collect();
                    let Some(fewer) = Posting::from_sorted(rows) else { return true };
                    *self = fewer;
                }
                false
            }
        }
    }

    pub(crate) fn iter(&self) -> PostingRows<'_> {
        match self {
            Posting::One(row) => PostingRows::Few(slice::from_ref(row).iter()),
            Posting::Few(rows) => PostingRows::Few(rows.iter()),
            Posting::Many(many) => {
                PostingRows::Many(many.segments.iter().flat_map(Segment::iter as fn(&Segment) -> SegmentRows<'_>))
            }
        }
    }

    /// What `heap_bytes` says, counted by walking.
    pub(crate) fn count_bytes(&self) -> usize {
        match self {
            Posting::Many(many) => many.own_bytes() + many.segments.iter().map(Segment::bytes).sum::<usize>(),
            _ => self.heap_bytes(),
        }
    }
}

impl Entry for Posting {
    const LEAF_ENTRIES: usize = 32;

    fn rows(&self) -> u64 {
        match self {
            Posting::One(_) => 1,
            Posting::Few(rows) => rows.len() as u64,
            Posting::Many(many) => many.rows,
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Posting::One(_) => 0,
            Posting::Few(rows) => vector_bytes(rows),
            Posting::Many(many) => many.own_bytes() + many.content_bytes,
        }
    }
}

impl Many {
    fn from_sorted(rows: &[u32]) -> Many {
        let mut segments = Vec::new();
        let mut sparse: Vec<u32> = Vec::new();
        let flush = |sparse: &mut Vec<u32>, segments: &mut Vec<Segment>| {
            if !sparse.is_empty() {
                segments.push(Segment::sparse(sparse.as_slice().to_vec()));
                sparse.clear();
            }
        };
        for group in rows.chunk_by(|a, b| container_of(*a) == container_of(*b)) {
            if group.len() >= SEGMENT_ROWS {
                flush(&mut sparse, &mut segments);
                segments.push(Segment::dense(group));
            } else {
                if sparse.len() + group.len() > SEGMENT_ROWS {
                    flush(&mut sparse, &mut segments);
                }
                sparse.extend_from_slice(group);
            }
        }
        flush(&mut sparse, &mut segments);
        segments.shrink_to_fit();
        let content_bytes = segments.iter().map(Segment::bytes).sum();
        Many { segments, rows: rows.len() as u64, content_bytes }
    }

    fn own_bytes(&self) -> usize {
        16 + size_of::<Many>() + self.segments.capacity() * size_of::<Segment>()
    }

    fn insert(&mut self, row: u32) {
        let after = self.segments.partition_point(|s| s.start <= row);
        let before = after.checked_sub(1).and_then(|before| Some((before, self.segments.get(before)?)));
        let behind = self.segments.get(after);
        // All rows of one container stay in one segment, so that it can become a bitmap. Else what lies next to it takes a row;
        // but never a bitmap of another container.
        let at = match (before, behind) {
            (_, Some(same)) if container_of(same.start) == container_of(row) => after,
            (Some((before, segment)), _) if segment.takes(row) => before,
            (_, Some(sparse)) if sparse.takes(row) => after,
            _ => {
                let alone = Segment::sparse(vec![row]);
                self.content_bytes += alone.bytes();
                self.rows += 1;
                return self.segments.insert(after, alone);
            }
        };
        let segment = &mut self.segments[at];
        let (rows, bytes) = (segment.len(), segment.bytes());
        segment.start = segment.start.min(row);
        match &mut segment.rows {
            SegmentSet::Sparse(rows) => {
                insert_sorted(Arc::make_mut(rows), row);
            }
            SegmentSet::Dense(rows) => {
                Arc::make_mut(rows).insert(row);
            }
        }
        self.rows = self.rows - rows + segment.len();
        self.content_bytes = self.content_bytes - bytes + segment.bytes();
        self.split_when_full(at);
    }

    /// A sparse segment that is too large becomes a bitmap when all of it is of one container, else two segments, cut
    /// where a container begins, so that a bitmap never shares its container.
    fn split_when_full(&mut self, at: usize) {
        let SegmentSet::Sparse(rows) = &self.segments[at].rows else { return };
        if rows.len() <= SEGMENT_ROWS {
            return;
        }
        let middle = rows.len() / 2;
        let left_end = rows.partition_point(|r| container_of(*r) < container_of(rows[middle]));
        let right_end = rows.partition_point(|r| container_of(*r) <= container_of(rows[middle]));
        let cut = if left_end > 0 { left_end } else { right_end };
        let parts: Vec<Segment> = if cut >= rows.len() {
            vec![Segment::dense(rows)]
        } else {
            let (left, right) = rows.split_at(cut);
            vec![Segment::sparse(left.to_vec()), Segment::sparse(right.to_vec())]
        };
        self.content_bytes -= self.segments[at].bytes();
        self.content_bytes += parts.iter().map(Segment::bytes).sum::<usize>();
        self.segments.splice(at..=at, parts);
    }

    fn remove(&mut self, row: u32) {
        let Some(at) = self.segments.partition_point(|s| s.start <= row).checked_sub(1) else { return };
        let segment = &mut self.segments[at];
        let (rows, bytes) = (segment.len(), segment.bytes());
        match &mut segment.rows {
            SegmentSet::Sparse(rows) => {
                remove_sorted(Arc::make_mut(rows), row);
            }
            SegmentSet::Dense(rows) => {
                let rows = Arc::make_mut(rows);
                rows.remove(row);
                if rows.len() < SEGMENT_ROWS as u64 / 4 {
                    segment.rows = SegmentSet::Sparse(Arc::new(rows.iter().collect()));
                }
            }
        }
        self.rows = self.rows - rows + segment.len();
        self.content_bytes = self.content_bytes - bytes + segment.bytes();
        if segment.len() == 0 {
            self.content_bytes -= self.segments.remove(at).bytes();
        } else {
            self.join_when_small(at);
        }
    }

    /// Joins a sparse segment with a sparse one behind it when both together are half full.
    fn join_when_small(&mut self, at: usize) {
        for left in [at, at.saturating_sub(1)] {
            let (Some(a), Some(b)) = (self.segments.get(left), self.segments.get(left + 1)) else { continue };
            let (SegmentSet::Sparse(a), SegmentSet::Sparse(b)) = (&a.rows, &b.rows) else { continue };
            if a.len() + b.len() > SEGMENT_ROWS / 2 {
                continue;
            }
            let joined: Vec<u32> = a.iter().chain(b.iter()).copied().collect();
            let before = self.segments[left].bytes() + self.segments[left + 1].bytes();
            self.segments[left] =
                Segment { start: self.segments[left].start, rows: SegmentSet::Sparse(Arc::new(joined)) };
            self.segments.remove(left + 1);
            self.content_bytes = self.content_bytes - before + self.segments[left].bytes();
            return;
        }
    }
}

/// The rows of one segment.
pub(crate) enum SegmentRows<'a> {
    Sparse(slice::Iter<'a, u32>),
    Dense(roaring::bitmap::Iter<'a>),
}

impl Iterator for SegmentRows<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            SegmentRows::Sparse(rows) => rows.next().copied(),
            SegmentRows::Dense(rows) => rows.next(),
        }
    }
}

impl DoubleEndedIterator for SegmentRows<'_> {
    fn next_back(&mut self) -> Option<u32> {
        match self {
            SegmentRows::Sparse(rows) => rows.next_back().copied(),
            SegmentRows::Dense(rows) => rows.next_back(),
        }
    }
}

/// The rows of one key, in the order of their ids. Large, because it must not allocate.
#[allow(clippy::large_enum_variant)]
pub(crate) enum PostingRows<'a> {
    Few(slice::Iter<'a, u32>),
    Many(FlatMap<slice::Iter<'a, Segment>, SegmentRows<'a>, fn(&'a Segment) -> SegmentRows<'a>>),
}

impl Iterator for PostingRows<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            PostingRows::Few(rows) => rows.next().copied(),
            PostingRows::Many(rows) => rows.next(),
        }
    }
}

impl DoubleEndedIterator for PostingRows<'_> {
    fn next_back(&mut self) -> Option<u32> {
        match self {
            PostingRows::Few(rows) => rows.next_back().copied(),
            PostingRows::Many(rows) => rows.next_back(),
        }
    }
}

#[cfg(test)]
#[path = "posting_tests.rs"]
mod tests;
