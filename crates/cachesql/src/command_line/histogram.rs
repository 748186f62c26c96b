//! Latencies counted in buckets that are at most 3.2 % wide, in memory that does not grow.

use std::time::Duration;

/// Buckets of one power of two.
const STEPS: u64 = 64;
/// Powers of two beyond the first buckets: up to 2^36 microseconds, 19 hours.
const POWERS: u64 = 30;

/// Counts of latencies.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    largest_us: u64,
}

impl Histogram {
    pub(super) fn new() -> Histogram {
        let buckets = usize::try_from(STEPS * (POWERS + 1)).unwrap_or(0);
        Histogram { counts: vec![0; buckets], total: 0, largest_us: 0 }
    }

    pub(super) fn record(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let last = self.counts.len().saturating_sub(1);
        if let Some(count) = self.counts.get_mut(bucket(us).min(last)) {
            *count += 1;
        }
        self.total += 1;
        self.largest_us = self.largest_us.max(us);
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.largest_us = self.largest_us.max(other.largest_us);
    }

    pub(super) fn count(&self) -> u64 {
        self.total
    }

    pub(super) fn largest_us(&self) -> u64 {
        self.largest_us
    }

    /// The latency in microseconds that `share` (0 to 1) of all do not exceed; 0 when there are none.
    pub(super) fn quantile_us(&self, share: f64) -> u64 {
        // Counts of a bench are far below 2^53.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_us(bucket).min(self.largest_us);
            }
        }
        self.largest_us
    }
}

/// Values below `STEPS` have a bucket each; beyond, each power of two is cut in `STEPS / 2` parts, counted on.
fn bucket(us: u64) -> usize {
    let bucket = match us.checked_ilog2() {
        Some(power) if us >= STEPS => {
            let shift = u64::from(power) - u64::from(STEPS.ilog2()) + 1;
            shift * (STEPS / 2) + (us >> shift)
        }
        _ => us,
    };
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The largest value of a bucket.
fn upper_us(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / (STEPS / 2) - 1;
    let within = bucket - shift * (STEPS / 2);
    ((within + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_its_bucket_and_buckets_are_narrow() {
        for us in (0..5_000).chain([99_999, 1 << 20, (1 << 35) + 12_345]) {
            let upper = upper_us(bucket(us));
            assert!(upper >= us, "{us} {upper}");
            assert!(upper - us <= us / 32, "{us} {upper}");
            if bucket(us) > 0 {
                assert!(upper_us(bucket(us) - 1) < us, "{us}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::new();
        for us in 1..=1_000 {
            histogram.record(Duration::from_micros(us));
        }
        let mut both = Histogram::new();
        both.merge(&histogram);
        for (share, expected) in [(0.5, 500), (0.99, 990), (1.0, 1_000)] {
            let found = both.quantile_us(share);
            assert!(found >= expected && found <= expected + expected / 32, "{share}: {found}");
        }
        assert_eq!((both.count(), both.largest_us()), (1_000, 1_000));
        assert_eq!(Histogram::new().quantile_us(0.5), 0);
    }
}
