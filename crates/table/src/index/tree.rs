//! An ordered map whose versions share what they have in common: a B+tree of `Arc` nodes.
//!
//! A clone is one reference count. A change copies the nodes on its path that another version still holds, and changes
//! in place those that it owns alone; so the second change of a batch to the same leaf costs no copy. Inner nodes know how many keys
//! and rows lie under each child: a position is a rank, ranges are pairs of ranks, and counting a range is two descents.

use std::sync::Arc;

/// What the tree is ordered by.
pub(crate) trait Key: Clone {
    /// The borrowed form that look-ups use, so that they need not allocate.
    type Lookup: ?Sized + Ord;
    /// The key, borrowed.
    fn lookup(&self) -> &Self::Lookup;
    /// Bytes beyond the key's own size.
    fn heap_bytes(&self) -> usize;

    /// Where among ascending keys one is, or would be. None of them is below `bounds.0` or above `bounds.1`, where those are
    /// known.
    fn search(keys: &[Self], key: &Self::Lookup, _bounds: Bounds<'_, Self>) -> Result<usize, usize> {
        keys.binary_search_by(|k| k.lookup().cmp(key))
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
    root: Arc<Node<K, V>>,
    keys: u64,
    rows: u64,
    bytes: usize,
}

#[derive(Clone)]
enum Node<K, V> {
    Leaf(Leaf<K, V>),
    Inner(Inner<K, V>),
}

/// Keys in order, and the entry of each at the same place.
#[derive(Clone)]
pub(crate) struct Leaf<K, V> {
    keys: Vec<K>,
    pub(crate) values: Vec<V>,
}

/// `separators[i]` is above every key under `children[i]` and not above any under `children[i + 1]`.
#[derive(Clone)]
struct Inner<K, V> {
    separators: Vec<K>,
    children: Vec<Child<K, V>>,
}

#[derive(Clone)]
struct Child<K, V> {
    node: Arc<Node<K, V>>,
    keys: u64,
    rows: u64,
}

/// What one change did, summed on the way back to the root.
#[derive(Default)]
struct Tally {
    keys: i64,
    rows: i64,
    bytes: i64,
}

/// The right half of a node that became too large, and the smallest key in it.
struct Split<K, V> {
    separator: K,
    right: Child<K, V>,
}

#[allow(clippy::cast_possible_wrap)]
fn signed(count: u64) -> i64 {
    count as i64
}

#[allow(clippy::cast_possible_wrap)]
fn signed_bytes(count: usize) -> i64 {
    count as i64
}

/// Makes room for one more without doubling: nodes are small and live long.
fn reserve_one<T>(items: &mut Vec<T>, most: usize) {
    if items.len() == items.capacity() {
        items.reserve_exact((items.len() / 4).clamp(1, most.saturating_sub(items.len()).max(1)));
    }
}

impl<K: Key, V: Entry> Leaf<K, V> {
    fn position(&self, key: &K::Lookup) -> Result<usize, usize> {
        K::search(&self.keys, key, (None, None))
    }

    fn insert(
        &mut self,
        key: K,
        change: impl FnOnce(Option<&mut V>) -> Option<V>,
        tally: &mut Tally,
    ) -> Option<Split<K, V>> {
        match self.position(key.lookup()) {
            Ok(at) => {
                let value = &mut self.values[at];
                let (rows, heap) = (value.rows(), value.heap_bytes());
                if let Some(replacement) = change(Some(value)) {
                    *value = replacement;
                }
                tally.rows += signed(value.rows()) - signed(rows);
                tally.bytes += signed_bytes(value.heap_bytes()) - signed_bytes(heap);
                None
            }
            Err(at) => {
                let value = change(None)?;
                tally.keys += 1;
                tally.rows += signed(value.rows());
                tally.bytes += signed_bytes(key.heap_bytes() + value.heap_bytes());
                reserve_one(&mut self.keys, V::LEAF_ENTRIES + 1);
                reserve_one(&mut self.values, V::LEAF_ENTRIES + 1);
                self.keys.insert(at, key);
                self.values.insert(at, value);
                (self.keys.len() > V::LEAF_ENTRIES).then(|| self.split(at)).flatten()
            }
        }
    }

    /// Splits in the middle; or, when the last key was just appended, leaves the left full: keys that only grow then fill
    /// their leaves.
    fn split(&mut self, inserted: usize) -> Option<Split<K, V>> {
        let length = self.keys.len();
        let at = if inserted + 1 == length { length - 1 } else { length / 2 };
        let right = Leaf { keys: self.keys.split_off(at), values: self.values.split_off(at) };
        self.keys.shrink_to_fit();
        self.values.shrink_to_fit();
        let separator = right.keys.first()?.clone();
        let (keys, rows) = (right.keys.len() as u64, right.values.iter().map(Entry::rows).sum());
        Some(Split { separator, right: Child { node: Arc::new(Node::Leaf(right)), keys, rows } })
    }
}

impl<K: Key, V: Entry> Inner<K, V> {
    /// The child under which the key belongs.
    fn child_of(&self, key: &K::Lookup) -> usize {
        self.child_within(key, (None, None))
    }

    fn child_within(&self, key: &K::Lookup, bounds: Bounds<'_, K>) -> usize {
        match K::search(&self.separators, key, bounds) {
            Ok(at) => at + 1,
            Err(at) => at,
        }
    }

    fn insert(
        &mut self,
        key: K,
        change: impl FnOnce(Option<&mut V>) -> Option<V>,
        tally: &mut Tally,
    ) -> Option<Split<K, V>> {
        let at = self.child_of(key.lookup());
        let child = &mut self.children[at];
        let (keys, rows) = (tally.keys, tally.rows);
        let split = insert_at(&mut child.node, key, change, tally);
        child.keys = child.keys.saturating_add_signed(tally.keys - keys);
        child.rows = child.rows.saturating_add_signed(tally.rows - rows);
        let Split { separator, right } = split?;
        child.keys -= right.keys;
        child.rows -= right.rows;
        tally.bytes += signed_bytes(separator.heap_bytes());
        reserve_one(&mut self.separators, INNER_CHILDREN);
        reserve_one(&mut self.children, INNER_CHILDREN + 1);
        self.separators.insert(at, separator);
        self.children.insert(at + 1, right);
        (self.children.len() > INNER_CHILDREN).then(|| self.split(at + 1, tally)).flatten()
    }

    fn split(&mut self, inserted: usize, tally: &mut Tally) -> Option<Split<K, V>> {
        let length = self.children.len();
        let at = if inserted + 1 == length { length - 1 } else { length / 2 };
        let right = Inner { children: self.children.split_off(at), separators: self.separators.split_off(at) };
        let separator = self.separators.pop()?;
        // It moves to the parent, which counts it again.
        tally.bytes -= signed_bytes(separator.heap_bytes());
        self.children.shrink_to_fit();
        self.separators.shrink_to_fit();
        let keys = right.children.iter().map(|c| c.keys).sum();
        let rows = right.children.iter().map(|c| c.rows).sum();
        Some(Split { separator, right: Child { node: Arc::new(Node::Inner(right)), keys, rows } })
    }

    /// After a removal under child `at`: drops it when empty, joins it with a neighbour when both fit in one node.
    fn rebalance(&mut self, at: usize, tally: &mut Tally) {
        if self.children[at].keys == 0 {
            let child = self.children.remove(at);
            tally.bytes -= signed_bytes(child.node.total_bytes());
            if !self.separators.is_empty() {
                let separator = self.separators.remove(at.saturating_sub(1));
                tally.bytes -= signed_bytes(separator.heap_bytes());
            }
            return;
        }
        let most = self.children[at].node.most();
        if self.children[at].node.len() >= most / 4 {
            return;
        }
        let fits = |left: usize| {
            let (Some(a), Some(b)) = (self.children.get(left), self.children.get(left + 1)) else { return false };
            a.node.len() + b.node.len() <= most * 3 / 4
        };
        let left = match at.checked_sub(1) {
            Some(left) if fits(left) => left,
            _ if fits(at) => at,
            _ => return,
        };
        let right = self.children.remove(left + 1);
        let separator = self.separators.remove(left);
        let heap = separator.heap_bytes();
        let target = &mut self.children[left];
        let before = target.node.shallow_bytes() + right.node.shallow_bytes() + heap;
        let node = Arc::make_mut(&mut target.node);
        let kept = node.append(separator, Arc::unwrap_or_clone(right.node));
        let after = node.shallow_bytes() + if kept { heap } else { 0 };
        tally.bytes += signed_bytes(after) - signed_bytes(before);
        target.keys += right.keys;
        target.rows += right.rows;
    }
}

impl<K: Key, V: Entry> Node<K, V> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.keys.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    fn most(&self) -> usize {
        match self {
            Node::Leaf(_) => V::LEAF_ENTRIES,
            Node::Inner(_) => INNER_CHILDREN,
        }
    }

    /// Joins the right neighbour to this node; says whether the separator between the two is still kept.
    fn append(&mut self, separator: K, right: Node<K, V>) -> bool {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => {
                left.keys.reserve_exact(right.keys.len());
                left.values.reserve_exact(right.values.len());
                left.keys.extend(right.keys);
                left.values.extend(right.values);
                false
            }
            (Node::Inner(left), Node::Inner(right)) => {
                left.separators.push(separator);
                left.separators.extend(right.separators);
                left.children.extend(right.children);
                true
            }
            // All leaves lie at one depth.
            _ => unreachable!("neighbours are of one level"),
        }
    }

    /// The node itself, without what keys and entries hold elsewhere, and without its children.
    fn shallow_bytes(&self) -> usize {
        let vectors = match self {
            Node::Leaf(leaf) => leaf.keys.capacity() * size_of::<K>() + leaf.values.capacity() * size_of::<V>(),
            Node::Inner(inner) => {
                inner.separators.capacity() * size_of::<K>() + inner.children.capacity() * size_of::<Child<K, V>>()
            }
        };
        ARC_COUNTS + size_of::<Node<K, V>>() + vectors
    }

    /// The node and all under it, counted by walking.
    fn total_bytes(&self) -> usize {
        let below: usize = match self {
            Node::Leaf(leaf) => {
                leaf.keys.iter().map(Key::heap_bytes).sum::<usize>()
                    + leaf.values.iter().map(Entry::heap_bytes).sum::<usize>()
            }
            Node::Inner(inner) => {
                inner.separators.iter().map(Key::heap_bytes).sum::<usize>()
                    + inner.children.iter().map(|c| c.node.total_bytes()).sum::<usize>()
            }
        };
        self.shallow_bytes() + below
    }
}

fn insert_at<K: Key, V: Entry>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    change: impl FnOnce(Option<&mut V>) -> Option<V>,
    tally: &mut Tally,
) -> Option<Split<K, V>> {
    let before = node.shallow_bytes();
    let owned = Arc::make_mut(node);
    // Boxed as a trait object below the root would cost an allocation; recursion over `impl FnOnce` of one type does not.
    let split = match owned {
        Node::Leaf(leaf) => leaf.insert(key, change, tally),
        Node::Inner(inner) => inner.insert(key, change, tally),
    };
    let after = owned.shallow_bytes() + split.as_ref().map_or(0, |s| s.right.node.shallow_bytes());
    tally.bytes += signed_bytes(after) - signed_bytes(before);
    split
}

/// `change` says whether the entry goes.
fn remove_at<K: Key, V: Entry>(
    node: &mut Arc<Node<K, V>>,
    key: &K::Lookup,
    change: impl FnOnce(&mut V) -> bool,
    tally: &mut Tally,
) {
    let before = node.shallow_bytes();
    let owned = Arc::make_mut(node);
    match owned {
        Node::Leaf(leaf) => {
            if let Ok(at) = leaf.position(key) {
                let value = &mut leaf.values[at];
                let (rows, heap) = (value.rows(), value.heap_bytes());
                if change(value) {
                    let key = leaf.keys.remove(at);
                    leaf.values.remove(at);
                    tally.keys -= 1;
                    tally.rows -= signed(rows);
                    tally.bytes -= signed_bytes(key.heap_bytes() + heap);
                } else {
                    tally.rows += signed(value.rows()) - signed(rows);
                    tally.bytes += signed_bytes(value.heap_bytes()) - signed_bytes(heap);
                }
            }
            tally.bytes += signed_bytes(owned.shallow_bytes()) - signed_bytes(before);
        }
        Node::Inner(inner) => {
            let at = inner.child_of(key);
            let child = &mut inner.children[at];
            let (keys, rows) = (tally.keys, tally.rows);
            remove_at(&mut child.node, key, change, tally);
            child.keys = child.keys.saturating_add_signed(tally.keys - keys);
            child.rows = child.rows.saturating_add_signed(tally.rows - rows);
            inner.rebalance(at, tally);
            tally.bytes += signed_bytes(owned.shallow_bytes()) - signed_bytes(before);
        }
    }
}

impl<K: Key, V: Entry> Tree<K, V> {
    /// No keys.
    pub(crate) fn new() -> Tree<K, V> {
        let root = Node::Leaf(Leaf { keys: Vec::new(), values: Vec::new() });
        Tree { bytes: root.total_bytes(), root: Arc::new(root), keys: 0, rows: 0 }
    }

    /// Builds full leaves from keys that strictly ascend.
    pub(crate) fn from_sorted(entries: impl Iterator<Item = (K, V)>) -> Tree<K, V> {
        let mut leaves: Vec<(K, Child<K, V>)> = Vec::new();
        let mut entries = entries.peekable();
        while entries.peek().is_some() {
            let mut leaf =
                Leaf { keys: Vec::with_capacity(V::LEAF_ENTRIES), values: Vec::with_capacity(V::LEAF_ENTRIES) };
            for (key, value) in entries.by_ref().take(V::LEAF_ENTRIES) {
                leaf.keys.push(key);
                leaf.values.push(value);
            }
            leaf.keys.shrink_to_fit();
            leaf.values.shrink_to_fit();
            let Some(first) = leaf.keys.first().cloned() else { break };
            let (keys, rows) = (leaf.keys.len() as u64, leaf.values.iter().map(Entry::rows).sum());
            leaves.push((first, Child { node: Arc::new(Node::Leaf(leaf)), keys, rows }));
        }
        let mut level = leaves;
        while level.len() > 1 {
            level = Self::parents(level);
        }
        let Some((_, root)) = level.pop() else { return Tree::new() };
        Tree { bytes: root.node.total_bytes(), keys: root.keys, rows: root.rows, root: root.node }
    }

    fn parents(level: Vec<(K, Child<K, V>)>) -> Vec<(K, Child<K, V>)> {
        let mut parents = Vec::with_capacity(level.len() / INNER_CHILDREN + 1);
        let mut level = level.into_iter().peekable();
        while level.peek().is_some() {
            let mut first = None;
            let mut inner = Inner { separators: Vec::new(), children: Vec::new() };
            for (key, child) in level.by_ref().take(INNER_CHILDREN) {
                match first {
                    None => first = Some(key),
                    Some(_) => inner.separators.push(key),
                }
                inner.children.push(child);
            }
            inner.separators.shrink_to_fit();
            inner.children.shrink_to_fit();
            let keys = inner.children.iter().map(|c| c.keys).sum();
            let rows = inner.children.iter().map(|c| c.rows).sum();
            parents.extend(first.map(|key| (key, Child { node: Arc::new(Node::Inner(inner)), keys, rows })));
        }
        parents
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
        let mut node = &*self.root;
        let mut bounds = (None, None);
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.values.get(K::search(&leaf.keys, key, bounds).ok()?),
                Node::Inner(inner) => {
                    let at = inner.child_within(key, bounds);
                    let below = at.checked_sub(1).and_then(|at| inner.separators.get(at));
                    bounds = (below.or(bounds.0), inner.separators.get(at).or(bounds.1));
                    node = &inner.children[at].node;
                }
            }
        }
    }

    /// How many keys and rows lie before the key; with `after`, before what follows the key.
    pub(crate) fn rank(&self, key: &K::Lookup, after: bool) -> (u64, u64) {
        let (mut keys, mut rows) = (0, 0);
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let at = match leaf.position(key) {
                        Ok(at) => at + usize::from(after),
                        Err(at) => at,
                    };
                    return (keys + at as u64, rows + leaf.values[..at].iter().map(Entry::rows).sum::<u64>());
                }
                Node::Inner(inner) => {
                    let at = inner.child_of(key);
                    for child in &inner.children[..at] {
                        keys += child.keys;
                        rows += child.rows;
                    }
                    node = &inner.children[at].node;
                }
            }
        }
    }

    /// The leaf that holds the key of the rank, and the place in it. The rank must be below `keys`.
    pub(super) fn leaf_at(&self, rank: u64) -> Option<(&Leaf<K, V>, usize)> {
        let mut rank = rank;
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    return usize::try_from(rank).ok().filter(|r| *r < leaf.keys.len()).map(|r| (leaf, r));
                }
                Node::Inner(inner) => {
                    let mut children = inner.children.iter();
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

    /// Sets, changes or keeps the entry of a key: `change` is given the present entry, and may answer a new one.
    pub(crate) fn insert(&mut self, key: K, change: impl FnOnce(Option<&mut V>) -> Option<V>) {
        let mut tally = Tally::default();
        let split = insert_at(&mut self.root, key, change, &mut tally);
        self.settle(&tally);
        let Some(Split { separator, right }) = split else { return };
        self.bytes += separator.heap_bytes();
        let left = Child { node: self.root.clone(), keys: self.keys - right.keys, rows: self.rows - right.rows };
        let root = Node::Inner(Inner { separators: vec![separator], children: vec![left, right] });
        self.bytes += root.shallow_bytes();
        self.root = Arc::new(root);
    }

    /// Changes the entry of a key that is present; it goes when `change` says so.
    pub(crate) fn remove(&mut self, key: &K::Lookup, change: impl FnOnce(&mut V) -> bool) {
        let mut tally = Tally::default();
        remove_at(&mut self.root, key, change, &mut tally);
        self.settle(&tally);
        loop {
            let only = match &*self.root {
                Node::Inner(inner) if inner.children.is_empty() => return *self = Tree::new(),
                Node::Inner(inner) if inner.children.len() == 1 => inner.children[0].node.clone(),
                _ => return,
            };
            self.bytes -= self.root.shallow_bytes();
            self.root = only;
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn settle(&mut self, tally: &Tally) {
        self.keys = self.keys.saturating_add_signed(tally.keys);
        self.rows = self.rows.saturating_add_signed(tally.rows);
        self.bytes = self.bytes.saturating_add_signed(tally.bytes as isize);
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
