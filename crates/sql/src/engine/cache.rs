//! Statements that are kept, by text and given parameter types. An entry whose tables changed their shape is not found.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cachesql_table::GroupSnapshot;
use cachesql_types::{DataType, limits};
use parking_lot::RwLock;

use super::prepared::Prepared;

/// Longer texts are not kept: they are rarely sent twice, and would take the memory of thousands.
const MAX_KEPT_BYTES: usize = 16 << 10;

#[derive(Default)]
pub(super) struct StatementCache {
    entries: RwLock<HashMap<Arc<str>, Vec<Entry>>>,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

struct Entry {
    prepared: Arc<Prepared>,
    used: AtomicU64,
}

impl StatementCache {
    pub(super) fn get(&self, sql: &str, given: &[Option<DataType>], snapshot: &GroupSnapshot) -> Option<Arc<Prepared>> {
        let entries = self.entries.read();
        let fits = |e: &&Entry| e.prepared.given == given && e.prepared.is_current(snapshot);
        match entries.get(sql).and_then(|same| same.iter().find(fits)) {
            Some(entry) => {
                entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
                self.hits.fetch_add(1, Ordering::Relaxed);
                Some(entry.prepared.clone())
            }
            None => {
                self.misses.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    pub(super) fn put(&self, prepared: Arc<Prepared>) {
        if prepared.text.len() > MAX_KEPT_BYTES {
            return;
        }
        let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let mut entries = self.entries.write();
        let same = entries.entry(prepared.text.clone()).or_default();
        same.retain(|e| e.prepared.given != prepared.given);
        same.push(Entry { prepared, used });
        if entries.len() > limits::STATEMENT_CACHE_ENTRIES {
            evict(&mut entries);
        }
    }

    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub(super) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}

/// Drops the eighth that was used longest ago, so that the next of these is far.
fn evict(entries: &mut HashMap<Arc<str>, Vec<Entry>>) {
    let last = |same: &[Entry]| same.iter().map(|e| e.used.load(Ordering::Relaxed)).max().unwrap_or(0);
    let mut ages: Vec<u64> = entries.values().map(|same| last(same)).collect();
    ages.sort_unstable();
    let oldest = ages.get(ages.len() / 8).copied().unwrap_or(u64::MAX);
    entries.retain(|_, same| last(same) > oldest);
}
