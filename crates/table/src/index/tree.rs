//! An ordered map whose versions share what they have in common: a B+tree of slices behind `Arc`s.
//!
//! A clone is one reference count. A change copies the nodes on its path that another version still holds; entries that only change
//! their value, and nodes that keep their length, change in place when nothing else holds them. Inner nodes know how many keys
//! and rows lie under each child: a position is a rank, ranges are pairs of ranks, and counting a range is two descents.
//!
//! Reads wait for memory more than for anything else. So a node has no header: its parent knows its length and the least key below it,
//! which is enough to guess where to look, and key and value lie side by side. A leaf costs one line of memory that way.

use std::sync::Arc;

mod change;

/// What the tree is ordered by.
pub(crate) trait Key: Clone {
    /// The borrowed form that look-ups use, so that they need not allocate.
    type Lookup: ?Sized + Ord;
    /// The key, borrowed.
    fn lookup(&self) -> &Self::Lookup;
    /// Bytes beyond the key's own size.
    fn heap_bytes(&self) -> usize;

    /// Where among items of ascending keys one is, or would be. None of the keys is below `bounds.0` or above `bounds.1`, where
    /// those are known.
    fn search<T>(
        items: &[T],
        key_of: impl Fn(&T) -> &Self,
        key: &Self::Lookup,
        _bounds: Bounds<'_, Self>,
    ) -> Result<usize, usize> {
        items.binary_search_by(|item| key_of(item).lookup().cmp(key))
    }
}

/// The least and the greatest that the keys of a node can be, as far as the nodes above it tell.
pub(crate) type Bounds<'a, K> = (Option<&'a K>, Option<&'a K>);

/// What a key leads to.
pub(crate) trait Entry: Clone {
    /// Entries of a full leaf. Leaves whose entries hold references are smaller: a copy touches each count.
    const LEAF_ENTRIES: usize;
    /// How many rows the entry leads to.
    fn rows(&self) -> u64;
    /// Bytes beyond the entry's own size.
    fn heap_bytes(&self) -> usize;
}

/// Children of a full inner node; few, because a copy touches the reference count of each.
const INNER_CHILDREN: usize = 32;
/// An `Arc` carries two counts before its content.
const ARC_COUNTS: usize = 16;

#[derive(Clone)]
pub(crate) struct Tree<K, V> {
    root: Node<K, V>,
    keys: u64,
    rows: u64,
    bytes: usize,
}

/// Keys in order, each with what it leads to.
pub(super) type Leaf<K, V> = [(K, V)];

#[derive(Clone)]
enum Node<K, V> {
    Leaf(Arc<Leaf<K, V>>),
    Inner(Arc<[Child<K, V>]>),
}

#[derive(Clone)]
struct Child<K, V> {
    /// Not above any key under this child, and above every key under the child before it. The first child of a node may have smaller keys.
    low: K,
    node: Node<K, V>,
    keys: u64,
    rows: u64,
}

/// The child under which a key belongs.
fn child_of<K: Key, V>(children: &[Child<K, V>], key: &K::Lookup, bounds: Bounds<'_, K>) -> usize {
    match K::search(children.get(1..).unwrap_or_default(), |child| &child.low, key, bounds) {
        Ok(at) => at + 1,
        Err(at) => at,
    }
}

fn position<K: Key, V>(leaf: &Leaf<K, V>, key: &K::Lookup, bounds: Bounds<'_, K>) -> Result<usize, usize> {
    K::search(leaf, |entry| &entry.0, key, bounds)
}

impl<K: Key, V: Entry> Child<K, V> {
    /// A node below a parent. `None` for an empty one.
    fn of(node: Node<K, V>) -> Option<Child<K, V>> {
        let (low, keys, rows) = match &node {
            Node::Leaf(entries) => {
                (entries.first()?.0.clone(), entries.len() as u64, entries.iter().map(|(_, v)| v.rows()).sum())
            }
            Node::Inner(children) => {
                let low = children.first()?.low.clone();
                (low, children.iter().map(|c| c.keys).sum(), children.iter().map(|c| c.rows).sum())
            }
        };
        Some(Child { low, node, keys, rows })
    }
}

impl<K: Key, V: Entry> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Inner(children) => children.len(),
        }
    }

    fn most(&self) -> usize {
        match self {
            Node::Leaf(_) => V::LEAF_ENTRIES,
            Node::Inner(_) => INNER_CHILDREN,
        }
    }

    /// The node itself, without what keys and entries hold elsewhere, and without its children.
    fn shallow_bytes(&self) -> usize {
        ARC_COUNTS
            + match self {
                Node::Leaf(entries) => size_of_val(&**entries),
                Node::Inner(children) => size_of_val(&**children),
            }
    }

    /// The node and all under it, counted by walking.
    fn total_bytes(&self) -> usize {
        let below: usize = match self {
            Node::Leaf(entries) => entries.iter().map(|(k, v)| k.heap_bytes() + v.heap_bytes()).sum(),
            Node::Inner(children) => children.iter().map(|c| c.low.heap_bytes() + c.node.total_bytes()).sum(),
        };
        self.shallow_bytes() + below
    }
}

impl<K: Key, V: Entry> Tree<K, V> {
    /// No keys.
    pub(crate) fn new() -> Tree<K, V> {
        let root = Node::Leaf(Arc::from([]));
        Tree { bytes: root.total_bytes(), root, keys: 0, rows: 0 }
    }

    /// Builds full leaves from keys that strictly ascend.
    pub(crate) fn from_sorted(entries: impl Iterator<Item = (K, V)>) -> Tree<K, V> {
        let mut entries = entries.peekable();
        let mut level = Vec::new();
        while entries.peek().is_some() {
            let leaf: Vec<(K, V)> = entries.by_ref().take(V::LEAF_ENTRIES).collect();
            level.extend(Child::of(Node::Leaf(Arc::from(leaf))));
        }
        while level.len() > 1 {
            let parents = level.chunks(INNER_CHILDREN);
            level = parents.filter_map(|children| Child::of(Node::Inner(Arc::from(children)))).collect();
        }
        let Some(Child { node, keys, rows, .. }) = level.pop() else { return Tree::new() };
        Tree { bytes: node.total_bytes(), root: node, keys, rows }
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// Number of rows that the entries lead to.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of all nodes and of what keys and entries hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same as `bytes`, counted by walking everything.
    pub(crate) fn count_bytes(&self) -> usize {
        self.root.total_bytes()
    }

    pub(crate) fn get(&self, key: &K::Lookup) -> Option<&V> {
        let mut node = &self.root;
        let mut bounds = (None, None);
        loop {
            match node {
                Node::Leaf(entries) => {
                    return entries.get(position(entries, key, bounds).ok()?).map(|(_, value)| value);
                }
                Node::Inner(children) => {
                    let at = child_of(children, key, bounds);
                    let child = children.get(at)?;
                    let least = if at > 0 { Some(&child.low) } else { bounds.0 };
                    bounds = (least, children.get(at + 1).map(|next| &next.low).or(bounds.1));
                    node = &child.node;
                }
            }
        }
    }

    /// How many keys and rows lie before the key; with `after`, before what follows the key.
    pub(crate) fn rank(&self, key: &K::Lookup, after: bool) -> (u64, u64) {
        let (mut keys, mut rows) = (0, 0);
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = match position(entries, key, (None, None)) {
                        Ok(at) => at + usize::from(after),
                        Err(at) => at,
                    };
                    let before = entries.get(..at).unwrap_or_default();
                    return (keys + at as u64, rows + before.iter().map(|(_, v)| v.rows()).sum::<u64>());
                }
                Node::Inner(children) => {
                    let at = child_of(children, key, (None, None));
                    for child in children.get(..at).unwrap_or_default() {
                        keys += child.keys;
                        rows += child.rows;
                    }
                    let Some(child) = children.get(at) else { return (keys, rows) };
                    node = &child.node;
                }
            }
        }
    }

    /// The leaf that holds the key of the rank, and the place in it. The rank must be below `keys`.
    pub(super) fn leaf_at(&self, rank: u64) -> Option<(&Leaf<K, V>, usize)> {
        let mut rank = rank;
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    return usize::try_from(rank).ok().filter(|r| *r < entries.len()).map(|r| (&**entries, r));
                }
                Node::Inner(children) => {
                    let mut children = children.iter();
                    node = loop {
                        let child = children.next()?;
                        if rank < child.keys {
                            break &child.node;
                        }
                        rank -= child.keys;
                    };
                }
            }
        }
    }
}

impl Entry for u32 {
    const LEAF_ENTRIES: usize = 128;

    fn rows(&self) -> u64 {
        1
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
