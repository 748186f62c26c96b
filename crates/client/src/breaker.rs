//! Whether a node is asked at all: after failures in a row it is left out, and tried by one call now and then.

use std::time::Duration;

use tokio::time::Instant;

use crate::chance::Chance;
use crate::limits;

/// What is known of a node's health. The time is passed in.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// In a row; never more than `BREAKER_FAILURES`.
    failures: u32,
    /// Since the node is left out; each doubles the time to the next probe.
    probes_failed: u32,
    probing: bool,
    left_out_until: Option<Instant>,
}

impl Breaker {
    /// Whether the node is to be asked. Where its time is over, this grants one caller the probe, and others only after
    /// another such time: a probe whose caller went away does not leave the node out for ever.
    pub(crate) fn admits(&mut self, now: Instant, chance: &Chance) -> bool {
        if self.failures < limits::BREAKER_FAILURES {
            return true;
        }
        if self.left_out_until.is_some_and(|until| now < until) {
            return false;
        }
        self.probing = true;
        self.leave_out(now, chance);
        true
    }

    /// Whether the node is not left out, or its time is over.
    pub(crate) fn is_closed(&self, now: Instant) -> bool {
        self.failures < limits::BREAKER_FAILURES || self.left_out_until.is_none_or(|until| now >= until)
    }

    /// The node answered.
    pub(crate) fn succeeded(&mut self) {
        *self = Breaker::default();
    }

    /// The node did not answer. Once it is left out only a probe's failure counts: many requests that fail at one moment
    /// are one failure.
    pub(crate) fn failed(&mut self, now: Instant, chance: &Chance) {
        if self.failures < limits::BREAKER_FAILURES {
            self.failures += 1;
        } else if self.probing {
            self.probing = false;
            self.probes_failed += 1;
        } else {
            return;
        }
        if self.failures == limits::BREAKER_FAILURES {
            self.leave_out(now, chance);
        }
    }

    fn leave_out(&mut self, now: Instant, chance: &Chance) {
        let factor = 1_u32.checked_shl(self.probes_failed).unwrap_or(u32::MAX);
        let time = limits::BREAKER_FIRST.saturating_mul(factor).min(limits::BREAKER_MOST);
        // Clients that saw it fail together do not come back together.
        let quarter_ms = u64::try_from(time.as_millis() / 4).unwrap_or(u64::MAX);
        self.left_out_until = Some(now + time + Duration::from_millis(chance.below(quarter_ms + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A breaker on a clock that only the test moves.
    struct Bench {
        breaker: Breaker,
        now: Instant,
        chance: Chance,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { breaker: Breaker::default(), now: Instant::now(), chance: Chance::new(3) }
        }

        fn admits(&mut self) -> bool {
            self.breaker.admits(self.now, &self.chance)
        }

        fn fails(&mut self, times: u32) {
            for _ in 0..times {
                self.breaker.failed(self.now, &self.chance);
            }
        }

        fn after(&mut self, ms: u64) -> &mut Bench {
            self.now += Duration::from_millis(ms);
            self
        }
    }

    #[test]
    fn it_opens_after_three_failures_in_a_row() {
        let mut bench = Bench::new();
        bench.fails(2);
        assert!(bench.admits());
        bench.breaker.succeeded();
        bench.fails(2);
        assert!(bench.admits(), "an answer in between begins the count anew");
        bench.fails(1);
        assert!(!bench.admits());
        assert!(!bench.after(499).admits());
    }

    #[test]
    fn it_half_opens_for_one_caller() {
        let mut bench = Bench::new();
        bench.fails(3);
        // Half a second, and up to a quarter of it by chance.
        assert!(bench.after(626).admits());
        assert!(!bench.admits(), "the probe is one caller's");
        bench.breaker.succeeded();
        assert!(bench.admits() && bench.admits());
    }

    #[test]
    fn failed_probes_double_the_time_up_to_a_bound() {
        let mut bench = Bench::new();
        bench.fails(3);
        let mut expected_ms = 500;
        for _ in 0..12 {
            assert!(bench.after(expected_ms + expected_ms / 4 + 1).admits());
            bench.fails(1);
            expected_ms = (expected_ms * 2).min(30_000);
            assert!(!bench.after(expected_ms - 1).admits(), "{expected_ms}");
            bench.now -= Duration::from_millis(expected_ms - 1);
        }
        assert_eq!(expected_ms, 30_000);
    }

    #[test]
    fn failures_of_many_at_one_moment_are_one() {
        let mut bench = Bench::new();
        bench.fails(50);
        assert!(bench.after(626).admits(), "fifty failures do not leave it out for longer than three");
    }

    #[test]
    fn a_probe_whose_caller_went_away_is_followed_by_another() {
        let mut bench = Bench::new();
        bench.fails(3);
        assert!(bench.after(626).admits());
        assert!(!bench.after(400).admits());
        assert!(bench.after(226).admits());
    }
}
