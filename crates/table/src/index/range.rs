//! What part of an index is asked for, and the rows in it.

use std::iter::FlatMap;
use std::ops::Bound;

use cachesql_types::{DataType, Value};

use super::key::{KeyBuffer, KeyBytes, NULL, Place, VALUE, place, push_component, successor};
use super::posting::{Posting, PostingRows};
use super::tree::{Entry, Key, Tree};
use super::walk::Entries;
use super::{Index, Map, RowIndexKey};
use crate::cell::Cell;
use crate::row::RowId;

/// Equality on leading columns of an index, then a range of the next.
///
/// Values compare as `Value::total_cmp` has it, so a bound may be of another number type than the column. NULL in `prefix`
/// stands for the rows that have NULL there. A bound or prefix of a type that does not compare with its column selects nothing.
#[derive(Clone, Debug)]
pub struct IndexRange {
    /// Values of the leading columns; no more than the index has.
    pub prefix: Vec<Value>,
    /// Where the next column begins. Of no meaning when the prefix has all columns.
    pub lower: Bound<Value>,
    /// Where the next column ends. NULL is not in any range.
    pub upper: Bound<Value>,
    /// Whether rows with NULL in the next column are selected too, after the others.
    pub nulls: bool,
}

impl IndexRange {
    /// All rows.
    pub fn all() -> IndexRange {
        IndexRange { prefix: Vec::new(), lower: Bound::Unbounded, upper: Bound::Unbounded, nulls: true }
    }

    /// The rows whose leading columns have these values.
    pub fn equal(prefix: &[Value]) -> IndexRange {
        IndexRange { prefix: prefix.to_vec(), lower: Bound::Unbounded, upper: Bound::Unbounded, nulls: true }
    }
}

/// Ranks of keys, and of rows, from the first up to and without the second.
#[derive(Clone, Copy, Default)]
struct Span {
    keys: (u64, u64),
    rows: u64,
}

/// The two stretches that a range can be of, and whether the rows apart whose only column is NULL belong to it.
#[derive(Default)]
struct Selection {
    spans: [Span; 2],
    nulls: bool,
}

/// A place between keys.
enum Edge<'a, Q: ?Sized> {
    Before(&'a Q),
    End,
}

fn span<K: Key, V: Entry>(tree: &Tree<K, V>, from: Edge<'_, K::Lookup>, to: Edge<'_, K::Lookup>) -> Span {
    let rank = |edge: Edge<'_, K::Lookup>| match edge {
        Edge::Before(key) => tree.rank(key, false),
        Edge::End => (tree.keys(), tree.rows()),
    };
    let (start, end) = (rank(from), rank(to));
    if end.0 <= start.0 {
        return Span::default();
    }
    Span { keys: (start.0, end.0), rows: end.1 - start.1 }
}

impl Index {
    /// The selected rows in key order, NULLs last; rows of one key in the order of their ids. Nothing is allocated.
    pub fn select(&self, range: &IndexRange) -> RowIds<'_> {
        if let Some(key) = self.exact_key(&range.prefix) {
            return RowIds { stretches: self.rows_of_key(&key), nulls: None };
        }
        let Selection { spans, nulls } = self.selection(range);
        let nulls = self.nulls.as_ref().filter(|_| nulls).map(Posting::iter);
        let [first, second] = spans.map(|s| s.keys);
        let stretches = match &self.map {
            Map::FixedUnique(tree) => Stretches::FixedUnique(tree.entries(first.0, first.1)),
            Map::Fixed(tree) => Stretches::Fixed(rows_of(tree.entries(first.0, first.1))),
            Map::BytesUnique(tree) => {
                Stretches::BytesUnique(tree.entries(first.0, first.1), tree.entries(second.0, second.1))
            }
            Map::Bytes(tree) => {
                Stretches::Bytes(rows_of(tree.entries(first.0, first.1)), rows_of(tree.entries(second.0, second.1)))
            }
        };
        RowIds { stretches, nulls }
    }

    /// How many rows `select` gives, without walking them.
    pub fn count(&self, range: &IndexRange) -> u64 {
        if let Some(key) = self.exact_key(&range.prefix) {
            return match (&self.map, &key) {
                (Map::Fixed(tree), RowIndexKey::Fixed(key)) => tree.get(key).map_or(0, Entry::rows),
                (Map::Bytes(tree), RowIndexKey::Bytes { key, .. }) => tree.get(key).map_or(0, Entry::rows),
                _ => u64::from(self.holder(&key).is_some()),
            };
        }
        let Selection { spans: [first, second], nulls } = self.selection(range);
        let apart = self.nulls.as_ref().filter(|_| nulls).map_or(0, Entry::rows);
        first.rows + second.rows + apart
    }

    /// By one descent: what callers ask for most.
    fn rows_of_key(&self, key: &RowIndexKey) -> Stretches<'_> {
        match (&self.map, key) {
            (Map::Fixed(tree), RowIndexKey::Fixed(key)) => Stretches::Key(tree.get(key).map(Posting::iter)),
            (Map::Bytes(tree), RowIndexKey::Bytes { key, .. }) => Stretches::Key(tree.get(key).map(Posting::iter)),
            _ => Stretches::Row(self.holder(key)),
        }
    }

    fn selection(&self, range: &IndexRange) -> Selection {
        if range.prefix.len() > self.types.len() {
            return Selection::default();
        }
        let selected = if self.is_single() { self.select_single(range) } else { self.select_composite(range) };
        selected.unwrap_or_default()
    }

    /// `None` when nothing can be selected.
    fn select_single(&self, range: &IndexRange) -> Option<Selection> {
        let data_type = *self.types.first()?;
        if let [value] = range.prefix.as_slice() {
            if value.is_null() {
                return Some(Selection { nulls: true, ..Selection::default() });
            }
            let only = Bound::Included(value);
            return Some(Selection { spans: [self.span_single(data_type, only, only), Span::default()], nulls: false });
        }
        let span = self.span_single(data_type, range.lower.as_ref(), range.upper.as_ref());
        Some(Selection { spans: [span, Span::default()], nulls: range.nulls })
    }

    fn span_single(&self, data_type: DataType, lower: Bound<&Value>, upper: Bound<&Value>) -> Span {
        let found = match &self.map {
            Map::FixedUnique(tree) => fixed_span(tree, data_type, lower, upper),
            Map::Fixed(tree) => fixed_span(tree, data_type, lower, upper),
            Map::BytesUnique(tree) => bytes_span(tree, data_type, lower, upper),
            Map::Bytes(tree) => bytes_span(tree, data_type, lower, upper),
        };
        found.unwrap_or_default()
    }

    fn select_composite(&self, range: &IndexRange) -> Option<Selection> {
        let mut base = KeyBuffer::new();
        for (value, data_type) in range.prefix.iter().zip(self.types.iter()) {
            if value.is_null() || crate::cell::fits(value, *data_type) {
                push_component(&mut base, Cell::of_value(value));
                continue;
            }
            // Of another number type: what it equals exactly, if anything.
            let exact = value.coerce(*data_type).ok().filter(|v| v.compare(value).is_some_and(|o| o.is_eq()))?;
            push_component(&mut base, Cell::of_value(&exact));
        }
        let mut beyond = base.clone();
        let bounded = successor(&mut beyond);
        let after_base = if bounded { Edge::Before(beyond.as_slice()) } else { Edge::End };
        let Some(data_type) = self.types.get(range.prefix.len()).copied() else {
            return Some(Selection { spans: [self.span_bytes(&base, after_base), Span::default()], nulls: false });
        };
        let mut null = base.clone();
        null.push(NULL);
        let nulls = if range.nulls { self.span_bytes(&null, after_base) } else { Span::default() };
        let values = self.component_span(&base, &null, data_type, range).unwrap_or_default();
        Some(Selection { spans: [values, nulls], nulls: false })
    }

    /// The keys of `base` whose next column is within the bounds; `null` is where its NULLs begin.
    fn component_span(
        &self,
        base: &KeyBuffer,
        null: &KeyBuffer,
        data_type: DataType,
        range: &IndexRange,
    ) -> Option<Span> {
        let edge = |bound: &Bound<Value>, is_lower: bool| -> Option<KeyBuffer> {
            let mut key = base.clone();
            key.push(VALUE);
            let (value, after) = match bound {
                Bound::Unbounded => return Some(if is_lower { key } else { null.clone() }),
                Bound::Included(value) => (value, !is_lower),
                Bound::Excluded(value) => (value, is_lower),
            };
            let found = place(data_type, value)?;
            // No key lies there: the column's values end before it.
            if found.push(&mut key, data_type, true, after) { Some(key) } else { Some(null.clone()) }
        };
        let (from, to) = (edge(&range.lower, true)?, edge(&range.upper, false)?);
        Some(self.span_bytes(&from, Edge::Before(&to)))
    }

    fn span_bytes(&self, from: &[u8], to: Edge<'_, [u8]>) -> Span {
        match &self.map {
            Map::BytesUnique(tree) => span(tree, Edge::Before(from), to),
            Map::Bytes(tree) => span(tree, Edge::Before(from), to),
            Map::FixedUnique(_) | Map::Fixed(_) => Span::default(),
        }
    }
}

/// `None` when a bound does not compare with the column.
fn fixed_span<V: Entry>(
    tree: &Tree<u64, V>,
    data_type: DataType,
    lower: Bound<&Value>,
    upper: Bound<&Value>,
) -> Option<Span> {
    let key = |bound: Bound<&Value>, is_lower: bool| -> Option<Option<u64>> {
        let (value, beyond) = match bound {
            Bound::Unbounded => return Some(is_lower.then_some(0)),
            Bound::Included(value) => (value, !is_lower),
            Bound::Excluded(value) => (value, is_lower),
        };
        match place(data_type, value)? {
            Place::Fixed { from, after } => Some(if beyond { after } else { from }),
            Place::Bytes(_) | Place::Decimal { .. } => None,
        }
    };
    let (from, to) = (key(lower, true)?, key(upper, false)?);
    Some(span(tree, from.as_ref().map_or(Edge::End, Edge::Before), to.as_ref().map_or(Edge::End, Edge::Before)))
}

fn bytes_span<V: Entry>(
    tree: &Tree<KeyBytes, V>,
    data_type: DataType,
    lower: Bound<&Value>,
    upper: Bound<&Value>,
) -> Option<Span> {
    let key = |bound: Bound<&Value>, is_lower: bool| -> Option<Option<KeyBuffer>> {
        let (value, after) = match bound {
            Bound::Unbounded => return Some(is_lower.then(KeyBuffer::new)),
            Bound::Included(value) => (value, !is_lower),
            Bound::Excluded(value) => (value, is_lower),
        };
        let mut key = KeyBuffer::new();
        let found = place(data_type, value)?.push(&mut key, data_type, false, after);
        Some(found.then_some(key))
    };
    let (from, to) = (key(lower, true)?, key(upper, false)?);
    Some(span(
        tree,
        from.as_ref().map_or(Edge::End, |k| Edge::Before(k.as_slice())),
        to.as_ref().map_or(Edge::End, |k| Edge::Before(k.as_slice())),
    ))
}

type Postings<'a, K> = FlatMap<Entries<'a, K, Posting>, PostingRows<'a>, fn(&'a Posting) -> PostingRows<'a>>;

fn rows_of<'a, K: Key>(entries: Entries<'a, K, Posting>) -> Postings<'a, K> {
    entries.flat_map(Posting::iter as fn(&'a Posting) -> PostingRows<'a>)
}

/// Large, because it must not allocate.
#[allow(clippy::large_enum_variant)]
enum Stretches<'a> {
    Row(Option<RowId>),
    Key(Option<PostingRows<'a>>),
    FixedUnique(Entries<'a, u64, u32>),
    Fixed(Postings<'a, u64>),
    BytesUnique(Entries<'a, KeyBytes, u32>, Entries<'a, KeyBytes, u32>),
    Bytes(Postings<'a, KeyBytes>, Postings<'a, KeyBytes>),
}

/// Row ids in key order, from both ends.
pub struct RowIds<'a> {
    stretches: Stretches<'a>,
    nulls: Option<PostingRows<'a>>,
}

impl Iterator for RowIds<'_> {
    type Item = RowId;

    fn next(&mut self) -> Option<RowId> {
        let found = match &mut self.stretches {
            Stretches::Row(row) => row.take().map(|row| row.0),
            Stretches::Key(rows) => rows.as_mut().and_then(Iterator::next),
            Stretches::FixedUnique(rows) => rows.next().copied(),
            Stretches::Fixed(rows) => rows.next(),
            Stretches::BytesUnique(first, second) => first.next().or_else(|| second.next()).copied(),
            Stretches::Bytes(first, second) => first.next().or_else(|| second.next()),
        };
        found.or_else(|| self.nulls.as_mut()?.next()).map(RowId)
    }
}

impl DoubleEndedIterator for RowIds<'_> {
    fn next_back(&mut self) -> Option<RowId> {
        if let Some(row) = self.nulls.as_mut().and_then(DoubleEndedIterator::next_back) {
            return Some(RowId(row));
        }
        let found = match &mut self.stretches {
            Stretches::Row(row) => row.take().map(|row| row.0),
            Stretches::Key(rows) => rows.as_mut().and_then(DoubleEndedIterator::next_back),
            Stretches::FixedUnique(rows) => rows.next_back().copied(),
            Stretches::Fixed(rows) => rows.next_back(),
            Stretches::BytesUnique(first, second) => second.next_back().or_else(|| first.next_back()).copied(),
            Stretches::Bytes(first, second) => second.next_back().or_else(|| first.next_back()),
        };
        found.map(RowId)
    }
}
