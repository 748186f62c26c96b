//! How long to wait before another node is connected to again.

use std::time::Duration;

use cachesql_types::limits;

/// The wait after so many failures in a row: it doubles up to [`limits::PEER_BACKOFF_MOST`], and `chance` takes up to half
/// of it off, so that nodes that lost the same peer do not come back to it at once.
pub(crate) fn backoff(failures: u32, chance: u32) -> Duration {
    let doubled = limits::PEER_BACKOFF_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let whole = doubled.min(limits::PEER_BACKOFF_MOST);
    whole - whole.mul_f64(f64::from(chance) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_to_a_bound_and_chance_takes_at_most_half() {
        let milliseconds = |failures, chance| backoff(failures, chance).as_millis();
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 7].map(|failures| milliseconds(failures, 0)),
            [50, 100, 200, 400, 800, 1_000, 1_000]
        );
        assert_eq!(milliseconds(u32::MAX, 0), 1_000);
        assert_eq!((milliseconds(1, u32::MAX), milliseconds(9, u32::MAX)), (25, 500));
        assert_eq!(milliseconds(9, u32::MAX / 2), 750);
    }
}
