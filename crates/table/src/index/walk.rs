//! Walking a tree in key order, from both ends.

use super::tree::{Entry, Key, Tree};

/// Entries in key order, from both ends. No stack is kept: each leaf is found by its rank.
pub(crate) struct Entries<'a, K, V> {
    tree: &'a Tree<K, V>,
    /// Ranks that neither end has fetched yet.
    start: u64,
    end: u64,
    front: std::slice::Iter<'a, (K, V)>,
    back: std::slice::Iter<'a, (K, V)>,
}

impl<'a, K: Key, V: Entry> Iterator for Entries<'a, K, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        if let Some((_, value)) = self.front.next() {
            return Some(value);
        }
        if self.start == self.end {
            return self.back.next().map(|(_, value)| value);
        }
        let (leaf, at) = self.tree.leaf_at(self.start)?;
        let rest = leaf.get(at..)?;
        let take = usize::try_from(self.end - self.start).unwrap_or(usize::MAX).min(rest.len());
        self.start += take as u64;
        self.front = rest[..take].iter();
        self.front.next().map(|(_, value)| value)
    }
}

impl<K: Key, V: Entry> DoubleEndedIterator for Entries<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Some((_, value)) = self.back.next_back() {
            return Some(value);
        }
        if self.start == self.end {
            return self.front.next_back().map(|(_, value)| value);
        }
        let (leaf, at) = self.tree.leaf_at(self.end - 1)?;
        let rest = leaf.get(..=at)?;
        let take = usize::try_from(self.end - self.start).unwrap_or(usize::MAX).min(rest.len());
        self.end -= take as u64;
        self.back = rest[rest.len() - take..].iter();
        self.back.next_back().map(|(_, value)| value)
    }
}

impl<K: Key, V: Entry> Tree<K, V> {
    /// The entries of the ranks from `start` up to and without `end`.
    pub(crate) fn entries(&self, start: u64, end: u64) -> Entries<'_, K, V> {
        let end = end.min(self.keys());
        Entries { tree: self, start: start.min(end), end, front: [].iter(), back: [].iter() }
    }
}
