//! Changing a tree: setting and removing keys, splitting nodes that became too large and joining those that became too small.

use std::sync::Arc;

use super::{Child, Entry, INNER_CHILDREN, Key, Leaf, Node, Tree, child_of, position};

/// What one change did, summed on the way back to the root.
#[derive(Default)]
struct Tally {
    keys: i64,
    rows: i64,
    bytes: i64,
}

#[allow(clippy::cast_possible_wrap)]
fn signed(count: u64) -> i64 {
    count as i64
}

#[allow(clippy::cast_possible_wrap)]
fn signed_bytes(count: usize) -> i64 {
    count as i64
}

impl Tally {
    /// Counts what became of an entry that is still there.
    fn changed<V: Entry>(&mut self, before: (u64, usize), value: &V) {
        self.rows += signed(value.rows()) - signed(before.0);
        self.bytes += signed_bytes(value.heap_bytes()) - signed_bytes(before.1);
    }
}

/// The items with one more among them.
fn with<T: Clone>(items: &[T], at: usize, item: T) -> Vec<T> {
    let (before, after) = items.split_at_checked(at).unwrap_or((items, &[]));
    let mut all = Vec::with_capacity(items.len() + 1);
    all.extend_from_slice(before);
    all.push(item);
    all.extend_from_slice(after);
    all
}

/// The items without one of them.
fn without<T: Clone>(items: &[T], at: usize) -> Arc<[T]> {
    let (before, after) = (items.get(..at).unwrap_or(items), items.get(at + 1..).unwrap_or_default());
    let mut rest = Vec::with_capacity(items.len());
    rest.extend_from_slice(before);
    rest.extend_from_slice(after);
    Arc::from(rest)
}

/// Cuts items that are too many in the middle; or, when the last was just appended, leaves the left full: keys that only
/// grow then fill their nodes.
fn cut<T>(mut items: Vec<T>, most: usize, inserted: usize) -> (Arc<[T]>, Option<Arc<[T]>>) {
    if items.len() <= most {
        return (Arc::from(items), None);
    }
    let at = if inserted + 1 == items.len() { items.len() - 1 } else { items.len() / 2 };
    let right = items.split_off(at);
    (Arc::from(items), Some(Arc::from(right)))
}

/// Sets a key below a node. Answers the right half of a node that became too large.
fn insert_at<K: Key, V: Entry>(
    node: &mut Node<K, V>,
    key: K,
    change: impl FnOnce(Option<&mut V>) -> Option<V>,
    tally: &mut Tally,
) -> Option<Child<K, V>> {
    let before = node.shallow_bytes();
    // Recursion over `impl FnOnce` of one type: a trait object would cost an allocation.
    let split = match node {
        Node::Leaf(entries) => insert_in_leaf(entries, key, change, tally),
        Node::Inner(children) => insert_below(children, key, change, tally),
    };
    let after = node.shallow_bytes() + split.as_ref().map_or(0, |right| right.node.shallow_bytes());
    tally.bytes += signed_bytes(after) - signed_bytes(before);
    split
}

fn insert_in_leaf<K: Key, V: Entry>(
    entries: &mut Arc<Leaf<K, V>>,
    key: K,
    change: impl FnOnce(Option<&mut V>) -> Option<V>,
    tally: &mut Tally,
) -> Option<Child<K, V>> {
    match position(entries, key.lookup(), (None, None)) {
        Ok(at) => {
            let (_, value) = Arc::make_mut(entries).get_mut(at)?;
            let before = (value.rows(), value.heap_bytes());
            if let Some(replacement) = change(Some(value)) {
                *value = replacement;
            }
            tally.changed(before, value);
            None
        }
        Err(at) => {
            let value = change(None)?;
            tally.keys += 1;
            tally.rows += signed(value.rows());
            tally.bytes += signed_bytes(key.heap_bytes() + value.heap_bytes());
            let (left, right) = cut(with(entries, at, (key, value)), V::LEAF_ENTRIES, at);
            *entries = left;
            right.and_then(|right| Child::of(Node::Leaf(right)))
        }
    }
}

fn insert_below<K: Key, V: Entry>(
    children: &mut Arc<[Child<K, V>]>,
    key: K,
    change: impl FnOnce(Option<&mut V>) -> Option<V>,
    tally: &mut Tally,
) -> Option<Child<K, V>> {
    let at = child_of(children, key.lookup(), (None, None));
    let child = Arc::make_mut(children).get_mut(at)?;
    let (keys, rows) = (tally.keys, tally.rows);
    let split = insert_at(&mut child.node, key, change, tally);
    child.keys = child.keys.saturating_add_signed(tally.keys - keys);
    child.rows = child.rows.saturating_add_signed(tally.rows - rows);
    let right = split?;
    child.keys -= right.keys;
    child.rows -= right.rows;
    tally.bytes += signed_bytes(right.low.heap_bytes());
    let (left, right) = cut(with(children, at + 1, right), INNER_CHILDREN, at + 1);
    *children = left;
    right.and_then(|right| Child::of(Node::Inner(right)))
}

/// Changes the entry of a key below a node; `change` says whether the entry goes.
fn remove_at<K: Key, V: Entry>(
    node: &mut Node<K, V>,
    key: &K::Lookup,
    change: impl FnOnce(&mut V) -> bool,
    tally: &mut Tally,
) {
    let before = node.shallow_bytes();
    match node {
        Node::Leaf(entries) => remove_in_leaf(entries, key, change, tally),
        Node::Inner(children) => {
            let at = child_of(children, key, (None, None));
            let Some(child) = Arc::make_mut(children).get_mut(at) else { return };
            let (keys, rows) = (tally.keys, tally.rows);
            remove_at(&mut child.node, key, change, tally);
            child.keys = child.keys.saturating_add_signed(tally.keys - keys);
            child.rows = child.rows.saturating_add_signed(tally.rows - rows);
            rebalance(children, at, tally);
        }
    }
    tally.bytes += signed_bytes(node.shallow_bytes()) - signed_bytes(before);
}

fn remove_in_leaf<K: Key, V: Entry>(
    entries: &mut Arc<Leaf<K, V>>,
    key: &K::Lookup,
    change: impl FnOnce(&mut V) -> bool,
    tally: &mut Tally,
) {
    let Ok(at) = position(entries, key, (None, None)) else { return };
    let Some((key, value)) = Arc::make_mut(entries).get_mut(at) else { return };
    let before = (value.rows(), value.heap_bytes());
    if change(value) {
        tally.keys -= 1;
        tally.rows -= signed(before.0);
        tally.bytes -= signed_bytes(key.heap_bytes() + before.1);
        *entries = without(entries, at);
    } else {
        tally.changed(before, value);
    }
}

/// After a removal under child `at`: drops it when empty, joins it with a neighbour when both fit in one node.
fn rebalance<K: Key, V: Entry>(children: &mut Arc<[Child<K, V>]>, at: usize, tally: &mut Tally) {
    let Some(child) = children.get(at) else { return };
    if child.keys == 0 {
        tally.bytes -= signed_bytes(child.low.heap_bytes() + child.node.total_bytes());
        *children = without(children, at);
        return;
    }
    let most = child.node.most();
    if child.node.len() >= most / 4 {
        return;
    }
    let fits = |left: usize| {
        let (a, b) = (children.get(left)?, children.get(left + 1)?);
        (a.node.len() + b.node.len() <= most * 3 / 4).then_some(left)
    };
    let Some(left) = at.checked_sub(1).and_then(fits).or_else(|| fits(at)) else { return };
    let mut all = children.to_vec();
    let right = all.remove(left + 1);
    if let Some(target) = all.get_mut(left) {
        join(target, right, tally);
    }
    *children = Arc::from(all);
}

/// Appends the right neighbour's content to a child.
fn join<K: Key, V: Entry>(left: &mut Child<K, V>, right: Child<K, V>, tally: &mut Tally) {
    let before = left.node.shallow_bytes() + right.node.shallow_bytes();
    match (&mut left.node, right.node) {
        (Node::Leaf(entries), Node::Leaf(more)) => {
            *entries = Arc::from([&**entries, &more].concat());
            tally.bytes -= signed_bytes(right.low.heap_bytes());
        }
        (Node::Inner(children), Node::Inner(more)) => {
            let mut all = [&**children, &more].concat();
            // What was the first child has neighbours on both sides now, and needs a low end that is true.
            if let Some(first) = all.get_mut(children.len()) {
                tally.bytes -= signed_bytes(first.low.heap_bytes());
                first.low = right.low;
            }
            *children = Arc::from(all);
        }
        // All leaves lie at one depth.
        _ => unreachable!("neighbours are of one level"),
    }
    left.keys += right.keys;
    left.rows += right.rows;
    tally.bytes += signed_bytes(left.node.shallow_bytes()) - signed_bytes(before);
}

impl<K: Key, V: Entry> Tree<K, V> {
    /// Sets, changes or keeps the entry of a key: `change` is given the present entry, and may answer a new one.
    pub(crate) fn insert(&mut self, key: K, change: impl FnOnce(Option<&mut V>) -> Option<V>) {
        let mut tally = Tally::default();
        let split = insert_at(&mut self.root, key, change, &mut tally);
        self.settle(&tally);
        let Some(right) = split else { return };
        let Some(left) = Child::of(self.root.clone()) else { return };
        self.bytes += left.low.heap_bytes() + right.low.heap_bytes();
        self.root = Node::Inner(Arc::from([left, right]));
        self.bytes += self.root.shallow_bytes();
    }

    /// Changes the entry of a key that is present; it goes when `change` says so.
    pub(crate) fn remove(&mut self, key: &K::Lookup, change: impl FnOnce(&mut V) -> bool) {
        let mut tally = Tally::default();
        remove_at(&mut self.root, key, change, &mut tally);
        self.settle(&tally);
        loop {
            let Node::Inner(children) = &self.root else { return };
            let only = match &**children {
                [] => return *self = Tree::new(),
                [only] => only,
                _ => return,
            };
            self.bytes -= self.root.shallow_bytes() + only.low.heap_bytes();
            self.root = only.node.clone();
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn settle(&mut self, tally: &Tally) {
        self.keys = self.keys.saturating_add_signed(tally.keys);
        self.rows = self.rows.saturating_add_signed(tally.rows);
        self.bytes = self.bytes.saturating_add_signed(tally.bytes as isize);
    }
}
