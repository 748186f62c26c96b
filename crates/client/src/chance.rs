//! Random choices, from one seed: SplitMix64 (Steele, Lea and Flood, 2014), without a lock.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the golden ratio is in 64 bits; SplitMix64 steps by it.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A source of random numbers that threads may share.
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    /// The same seed makes the same choices, in the order in which they are asked for.
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(AtomicU64::new(seed))
    }

    /// The next 64 bits.
    pub(crate) fn next(&self) -> u64 {
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        // The high half of a product (Lemire, 2019): its bias is below 2^-32 for any bound there is here.
        let product = u128::from(self.next()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// Brings items into a random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

/// 64 bits that no other process has: hash maps of the standard library are keyed with the system's randomness.
pub(crate) fn from_the_system() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Names for writes, of which no two are equal: 128 random bits of this client, and a number.
#[derive(Debug)]
pub(crate) struct RequestIds {
    client: String,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> RequestIds {
        let client = format!("{:016x}{:016x}", from_the_system(), from_the_system());
        RequestIds { client, next: AtomicU64::new(1) }
    }

    pub(crate) fn next(&self) -> String {
        format!("{}-{}", self.client, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the published generator for seed 1234567.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let chance = Chance::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| chance.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_order_is_as_likely_as_another() {
        let chance = Chance::new(7);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [1, 2, 3];
            chance.shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        // Binomial with n = 6000, p = 1/6: six standard deviations are 173.
        assert!(seen.values().all(|n| (827..=1_173).contains(n)), "{seen:?}");
    }

    #[test]
    fn request_ids_differ_between_clients_and_between_writes() {
        let (one, other) = (RequestIds::new(), RequestIds::new());
        let ids = std::collections::BTreeSet::from([one.next(), one.next(), other.next()]);
        assert_eq!(ids.len(), 3);
        assert!(ids.iter().all(|id| id.len() <= cachesql_types::limits::REQUEST_ID_BYTES));
    }
}
