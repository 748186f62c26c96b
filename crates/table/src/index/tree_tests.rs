//! The tree does as an ordered map, and versions do not disturb each other.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::index::key::KeyBytes;

/// Long keys among them, which are kept elsewhere.
fn bytes(key: u16) -> KeyBytes {
    KeyBytes::new(format!("{key:05}").repeat(1 + usize::from(key % 7)).as_bytes())
}

fn verify<K: Key + std::fmt::Debug>(tree: &Tree<K, u32>, model: &BTreeMap<Vec<u8>, (K, u32)>) {
    assert_eq!(tree.keys(), model.len() as u64);
    assert_eq!(tree.rows(), model.len() as u64);
    assert_eq!(tree.bytes(), tree.count_bytes());
    let wanted: Vec<u32> = model.values().map(|(_, v)| *v).collect();
    let found: Vec<u32> = tree.entries(0, tree.keys()).copied().collect();
    assert_eq!(found, wanted);
    let mut backwards: Vec<u32> = tree.entries(0, tree.keys()).rev().copied().collect();
    backwards.reverse();
    assert_eq!(backwards, wanted);
    for (rank, (key, value)) in model.values().enumerate() {
        assert_eq!(tree.get(key.lookup()), Some(value));
        assert_eq!(tree.rank(key.lookup(), false), (rank as u64, rank as u64));
        assert_eq!(tree.rank(key.lookup(), true), (rank as u64 + 1, rank as u64 + 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn it_does_as_an_ordered_map(
        loaded in prop::collection::btree_set(0_u16..3_000, 0..1_500),
        changes in prop::collection::vec((0_u16..3_000, any::<bool>(), 1_u16..200), 0..60),
    ) {
        let mut model: BTreeMap<Vec<u8>, (KeyBytes, u32)> =
            loaded.iter().map(|k| (bytes(*k).lookup().to_vec(), (bytes(*k), u32::from(*k)))).collect();
        let mut tree = Tree::from_sorted(model.values().cloned());
        verify(&tree, &model);
        let held = (tree.clone(), model.clone());
        // Runs of consecutive keys: they empty and fill whole leaves.
        for (first, insert, run) in changes {
            for key in first..first + run {
                let (stored, value) = (bytes(key), u32::from(key) + 1);
                if insert {
                    model.insert(stored.lookup().to_vec(), (stored.clone(), value));
                    tree.insert(stored, |_| Some(value));
                } else {
                    model.remove(stored.lookup());
                    tree.remove(stored.lookup(), |_| true);
                }
            }
            prop_assert_eq!(tree.bytes(), tree.count_bytes());
        }
        verify(&tree, &model);
        verify(&held.0, &held.1);
        for (_, (key, _)) in std::mem::take(&mut model) {
            tree.remove(key.lookup(), |_| true);
        }
        verify(&tree, &model);
    }
}

#[test]
fn growing_keys_fill_their_leaves() {
    let mut tree = Tree::new();
    for key in 0..100_000_u64 {
        tree.insert(key, |_| Some(1_u32));
    }
    // A key of eight bytes and a row of four take sixteen; a tenth may be lost to nodes.
    assert!(tree.bytes() < 100_000 * 16 * 11 / 10, "{}", tree.bytes());
    assert_eq!(tree.bytes(), tree.count_bytes());
}
