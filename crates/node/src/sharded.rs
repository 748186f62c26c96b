//! A counter that many threads count on at once.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use prometheus_client::metrics::counter::{Atomic, Counter};

/// Counts on a line of memory that is the thread's own, or shared with few others; reading adds them up. One shared number would go
/// from core to core with each request.
#[derive(Debug, Default)]
pub struct Sharded {
    shards: [Shard; SHARDS],
}

/// Counts what happens with every request.
pub type ShardedCounter = Counter<u64, Sharded>;

const SHARDS: usize = 16;

/// As far apart as processors fetch memory: lines of 64 bytes, in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(AtomicU64);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = Cell::new(THREADS.fetch_add(1, Relaxed) % SHARDS);
}

impl Atomic<u64> for Sharded {
    fn inc(&self) -> u64 {
        self.inc_by(1)
    }

    /// Answers what the thread's share was, not the sum.
    fn inc_by(&self, more: u64) -> u64 {
        self.shards.get(SHARD.get()).map_or(0, |shard| shard.0.fetch_add(more, Relaxed))
    }

    fn get(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_threads_counted_is_added_up() {
        let counter = ShardedCounter::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARDS {
                scope.spawn(|| (0..1_000).for_each(|_| _ = counter.inc()));
            }
        });
        counter.inc_by(7);
        assert_eq!(counter.get(), 2 * SHARDS as u64 * 1_000 + 7);
    }
}
