//! Ordered indexes: from the values of one or more columns to row ids.

pub(crate) mod key;
pub(crate) mod posting;
mod range;
pub(crate) mod tree;
mod walk;

use std::collections::HashMap;
use std::sync::Arc;

use cachesql_types::{DataType, IndexDefinition, Value};

pub use self::range::{IndexRange, RowIds};

use self::key::{KeyBuffer, KeyBytes, fixed_of, is_fixed, push_component, push_plain};
use self::posting::Posting;
use self::tree::{Entry, Tree};
use crate::cell::Cell;
use crate::row::{Row, RowId};

/// One index. A clone shares everything.
///
/// Rows whose key is NULL, in an index of one column, stand apart: NULL is last whatever the key's form. In a unique index of several
/// columns a key with a NULL in it carries its row id, for such keys are never the same.
#[derive(Clone)]
pub struct Index {
    definition: Arc<IndexDefinition>,
    is_primary: bool,
    types: Arc<[DataType]>,
    map: Map,
    nulls: Option<Posting>,
}

#[derive(Clone)]
enum Map {
    FixedUnique(Tree<u64, u32>),
    Fixed(Tree<u64, Posting>),
    BytesUnique(Tree<KeyBytes, u32>),
    Bytes(Tree<KeyBytes, Posting>),
}

/// One row's key.
pub(crate) enum RowIndexKey {
    Null,
    Fixed(u64),
    Bytes { key: KeyBuffer, has_null: bool },
}

impl Index {
    /// An empty index over columns of the types.
    pub(crate) fn new(definition: IndexDefinition, is_primary: bool, column_types: &[DataType]) -> Index {
        let types: Arc<[DataType]> = definition.columns.iter().filter_map(|c| column_types.get(*c).copied()).collect();
        let fixed = matches!(*types, [only] if is_fixed(only));
        let map = match (fixed, definition.unique) {
            (true, true) => Map::FixedUnique(Tree::new()),
            (true, false) => Map::Fixed(Tree::new()),
            (false, true) => Map::BytesUnique(Tree::new()),
            (false, false) => Map::Bytes(Tree::new()),
        };
        Index { definition: Arc::new(definition), is_primary, types, map, nulls: None }
    }

    /// Its name, columns, and whether it is unique. The primary key's index is named by its columns, joined by "+".
    pub fn definition(&self) -> &IndexDefinition {
        &self.definition
    }

    /// Whether this is the primary key.
    pub fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Number of different keys. NULL counts as one key in an index of one column that is not unique; in a unique index each key with
    /// a NULL counts for itself.
    pub fn distinct_keys(&self) -> u64 {
        let keys = match &self.map {
            Map::FixedUnique(tree) => tree.keys(),
            Map::Fixed(tree) => tree.keys(),
            Map::BytesUnique(tree) => tree.keys(),
            Map::Bytes(tree) => tree.keys(),
        };
        let nulls = self.nulls.as_ref().map_or(0, |n| if self.definition.unique { n.rows() } else { 1 });
        keys + nulls
    }

    /// Number of rows; every row of the table is in every index.
    pub fn rows(&self) -> u64 {
        let rows = match &self.map {
            Map::FixedUnique(tree) => tree.rows(),
            Map::Fixed(tree) => tree.rows(),
            Map::BytesUnique(tree) => tree.rows(),
            Map::Bytes(tree) => tree.rows(),
        };
        rows + self.nulls.as_ref().map_or(0, Entry::rows)
    }

    /// Bytes that the index takes.
    pub fn bytes(&self) -> usize {
        let tree = match &self.map {
            Map::FixedUnique(tree) => tree.bytes(),
            Map::Fixed(tree) => tree.bytes(),
            Map::BytesUnique(tree) => tree.bytes(),
            Map::Bytes(tree) => tree.bytes(),
        };
        tree + self.nulls.as_ref().map_or(0, Entry::heap_bytes)
    }

    /// What `bytes` says, counted by walking.
    pub(crate) fn count_bytes(&self) -> usize {
        let (tree, postings) = match &self.map {
            Map::FixedUnique(tree) => (tree.count_bytes(), 0),
            Map::BytesUnique(tree) => (tree.count_bytes(), 0),
            Map::Fixed(tree) => (tree.count_bytes(), drift(tree)),
            Map::Bytes(tree) => (tree.count_bytes(), drift(tree)),
        };
        (tree + self.nulls.as_ref().map_or(0, Posting::count_bytes)).saturating_add_signed(postings)
    }

    fn is_single(&self) -> bool {
        self.types.len() == 1
    }

    /// The key of a row whose fields `cell` gives.
    pub(crate) fn key_of<'a>(&self, cell: impl Fn(usize) -> Cell<'a>) -> RowIndexKey {
        self.key_from(self.definition.columns.iter().map(|column| cell(*column)))
    }

    /// The key of values that are given in the order of the index's columns, and are of their types.
    fn key_from<'a>(&self, mut cells: impl Iterator<Item = Cell<'a>>) -> RowIndexKey {
        if self.is_single() {
            let cell = cells.next().unwrap_or(Cell::Null);
            if cell.is_null() {
                return RowIndexKey::Null;
            }
            if let (Map::FixedUnique(_) | Map::Fixed(_), Some(key)) = (&self.map, fixed_of(cell)) {
                return RowIndexKey::Fixed(key);
            }
            let mut key = KeyBuffer::new();
            push_plain(&mut key, cell);
            return RowIndexKey::Bytes { key, has_null: false };
        }
        let (mut key, mut has_null) = (KeyBuffer::new(), false);
        for cell in cells {
            has_null |= cell.is_null();
            push_component(&mut key, cell);
        }
        RowIndexKey::Bytes { key, has_null }
    }

    /// The one key that values stand for: a value for every column, each of the column's own type, none NULL.
    fn exact_key(&self, values: &[Value]) -> Option<RowIndexKey> {
        let fit = values.len() == self.types.len()
            && values.iter().zip(self.types.iter()).all(|(value, data_type)| crate::cell::fits(value, *data_type));
        fit.then(|| self.key_from(values.iter().map(Cell::of_value)))
    }

    /// The key under which a row is kept: the same, but for keys that carry their row.
    fn stored_key(&self, key: &RowIndexKey, row: u32) -> KeyBuffer {
        let mut stored = KeyBuffer::new();
        if let RowIndexKey::Bytes { key, has_null } = key {
            stored.extend_from_slice(key);
            if *has_null && self.definition.unique {
                stored.extend_from_slice(&row.to_be_bytes());
            }
        }
        stored
    }

    /// The row that a unique index has for a key; `None` for a key with NULL and in an index that is not unique.
    pub(crate) fn holder(&self, key: &RowIndexKey) -> Option<RowId> {
        match (&self.map, key) {
            (Map::FixedUnique(tree), RowIndexKey::Fixed(key)) => tree.get(key).copied().map(RowId),
            (Map::BytesUnique(tree), RowIndexKey::Bytes { key, has_null: false }) => tree.get(key).copied().map(RowId),
            _ => None,
        }
    }

    /// The row of a full key of a unique index. Values of other number types than the columns' find what they equal. `None`
    /// also for a key that is not of the index's length, or has a NULL.
    pub fn find(&self, key: &[Value]) -> Option<RowId> {
        if key.len() != self.types.len() || !self.definition.unique {
            return None;
        }
        if let Some(exact) = self.exact_key(key) {
            return self.holder(&exact);
        }
        if key.iter().any(Value::is_null) {
            return None;
        }
        self.select(&IndexRange::equal(key)).next()
    }

    /// Adds a row. The caller has seen to it that a unique key is free.
    pub(crate) fn insert(&mut self, key: &RowIndexKey, row: RowId) {
        let row = row.0;
        match key {
            RowIndexKey::Null => match &mut self.nulls {
                Some(nulls) => nulls.insert(row),
                none => *none = Some(Posting::One(row)),
            },
            RowIndexKey::Fixed(key) => match &mut self.map {
                Map::FixedUnique(tree) => tree.insert(*key, |_| Some(row)),
                Map::Fixed(tree) => tree.insert(*key, |present| add(present, row)),
                Map::BytesUnique(_) | Map::Bytes(_) => {}
            },
            RowIndexKey::Bytes { .. } => {
                let stored = KeyBytes::new(&self.stored_key(key, row));
                match &mut self.map {
                    Map::BytesUnique(tree) => tree.insert(stored, |_| Some(row)),
                    Map::Bytes(tree) => tree.insert(stored, |present| add(present, row)),
                    Map::FixedUnique(_) | Map::Fixed(_) => {}
                }
            }
        }
    }

    /// Removes a row that is in the index under the key.
    pub(crate) fn remove(&mut self, key: &RowIndexKey, row: RowId) {
        let row = row.0;
        match key {
            RowIndexKey::Null => {
                if self.nulls.as_mut().is_some_and(|nulls| nulls.remove(row)) {
                    self.nulls = None;
                }
            }
            RowIndexKey::Fixed(key) => match &mut self.map {
                Map::FixedUnique(tree) => tree.remove(key, |holder| *holder == row),
                Map::Fixed(tree) => tree.remove(key, |rows| rows.remove(row)),
                Map::BytesUnique(_) | Map::Bytes(_) => {}
            },
            RowIndexKey::Bytes { .. } => {
                let stored = self.stored_key(key, row);
                match &mut self.map {
                    Map::BytesUnique(tree) => tree.remove(&stored, |holder| *holder == row),
                    Map::Bytes(tree) => tree.remove(&stored, |rows| rows.remove(row)),
                    Map::FixedUnique(_) | Map::Fixed(_) => {}
                }
            }
        }
    }

    /// Gives a row another id. Its key stays, so a unique index changes in place.
    pub(crate) fn relocate(&mut self, key: &RowIndexKey, from: RowId, to: RowId) {
        let in_place = match (&self.map, key) {
            (Map::FixedUnique(_), RowIndexKey::Fixed(_)) => true,
            (Map::BytesUnique(_), RowIndexKey::Bytes { has_null, .. }) => !has_null,
            _ => false,
        };
        if !in_place {
            self.remove(key, from);
        }
        self.insert(key, to);
    }

    /// Fills an empty index with all rows at once. Answers two rows of one key when it is unique and they have it.
    pub(crate) fn build<'a>(
        &mut self,
        count: usize,
        rows: impl Iterator<Item = (RowId, Row<'a>)>,
    ) -> Result<(), (RowId, RowId)> {
        match &self.map {
            Map::FixedUnique(_) | Map::Fixed(_) => self.build_fixed(count, rows),
            Map::BytesUnique(_) => self.build_unique_bytes(count, rows),
            Map::Bytes(_) => {
                self.build_bytes(rows);
                Ok(())
            }
        }
    }

    fn build_fixed<'a>(
        &mut self,
        count: usize,
        rows: impl Iterator<Item = (RowId, Row<'a>)>,
    ) -> Result<(), (RowId, RowId)> {
        let mut pairs: Vec<(u64, u32)> = Vec::with_capacity(count);
        let mut nulls: Vec<u32> = Vec::new();
        let Some(column) = self.definition.columns.first().copied() else { return Ok(()) };
        for (id, row) in rows {
            match fixed_of(row.cell(column)) {
                Some(key) => pairs.push((key, id.0)),
                None => nulls.push(id.0),
            }
        }
        pairs.sort_unstable();
        nulls.sort_unstable();
        self.nulls = Posting::from_sorted(nulls);
        match &mut self.map {
            Map::FixedUnique(tree) => {
                if let Some([a, b]) = pairs.windows(2).find(|w| matches!(w, [a, b] if a.0 == b.0)) {
                    return Err((RowId(a.1), RowId(b.1)));
                }
                *tree = Tree::from_sorted(pairs.into_iter());
            }
            Map::Fixed(tree) => {
                let groups = pairs.chunk_by(|a, b| a.0 == b.0).filter_map(|group| {
                    Some((group.first()?.0, Posting::from_sorted(group.iter().map(|p| p.1).collect())?))
                });
                *tree = Tree::from_sorted(groups);
            }
            Map::BytesUnique(_) | Map::Bytes(_) => {}
        }
        Ok(())
    }

    fn build_unique_bytes<'a>(
        &mut self,
        count: usize,
        rows: impl Iterator<Item = (RowId, Row<'a>)>,
    ) -> Result<(), (RowId, RowId)> {
        let mut pairs: Vec<(KeyBytes, u32)> = Vec::with_capacity(count);
        let mut nulls: Vec<u32> = Vec::new();
        for (id, row) in rows {
            match self.key_of(|column| row.cell(column)) {
                RowIndexKey::Null => nulls.push(id.0),
                key => pairs.push((KeyBytes::new(&self.stored_key(&key, id.0)), id.0)),
            }
        }
        let by_key = |a: &(KeyBytes, u32), b: &(KeyBytes, u32)| {
            tree::Key::lookup(&a.0).cmp(tree::Key::lookup(&b.0)).then(a.1.cmp(&b.1))
        };
        pairs.sort_unstable_by(by_key);
        nulls.sort_unstable();
        self.nulls = Posting::from_sorted(nulls);
        let same = |w: &&[(KeyBytes, u32)]| matches!(w, [a, b] if tree::Key::lookup(&a.0) == tree::Key::lookup(&b.0));
        if let Some([a, b]) = pairs.windows(2).find(same) {
            return Err((RowId(a.1), RowId(b.1)));
        }
        self.map = Map::BytesUnique(Tree::from_sorted(pairs.into_iter()));
        Ok(())
    }

    /// Rows are gathered by key first: there are often few keys, and only they are sorted then.
    fn build_bytes<'a>(&mut self, rows: impl Iterator<Item = (RowId, Row<'a>)>) {
        let mut gathered: HashMap<KeyBuffer, Vec<u32>> = HashMap::new();
        let mut nulls: Vec<u32> = Vec::new();
        for (id, row) in rows {
            match self.key_of(|column| row.cell(column)) {
                RowIndexKey::Bytes { key, .. } => match gathered.get_mut(&key) {
                    Some(rows) => rows.push(id.0),
                    None => {
                        gathered.insert(key, vec![id.0]);
                    }
                },
                RowIndexKey::Null | RowIndexKey::Fixed(_) => nulls.push(id.0),
            }
        }
        nulls.sort_unstable();
        self.nulls = Posting::from_sorted(nulls);
        let mut keys: Vec<(KeyBuffer, Vec<u32>)> = gathered.into_iter().collect();
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let entries = keys.into_iter().filter_map(|(key, mut rows)| {
            rows.sort_unstable();
            Some((KeyBytes::new(&key), Posting::from_sorted(rows)?))
        });
        self.map = Map::Bytes(Tree::from_sorted(entries));
    }
}

fn add(present: Option<&mut Posting>, row: u32) -> Option<Posting> {
    match present {
        Some(rows) => {
            rows.insert(row);
            None
        }
        None => Some(Posting::One(row)),
    }
}

/// What posting lists would be counted as by walking, less what they say of themselves.
fn drift<K: tree::Key>(tree: &Tree<K, Posting>) -> isize {
    tree.entries(0, tree.keys())
        .map(|p| isize::try_from(p.count_bytes()).unwrap_or(0) - isize::try_from(p.heap_bytes()).unwrap_or(0))
        .sum()
}
