//! Requests that carry an id and were not applied once.

use std::collections::BTreeMap;

use crate::history::{Action, Operation, Outcome};

/// Whether the counter, which each request adds one to, has counted each that was acknowledged once, and each of which nothing is
/// known at most once. Several operations of one id are one request, tried again.
pub fn not_once(operations: &[Operation], total: i64) -> Result<(), String> {
    let (mut acknowledged, mut unknown) = (0_i64, 0_i64);
    let mut by_request: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for operation in operations {
        let Action::Add { request } = &operation.action else { continue };
        let (is_done, is_unknown) = by_request.entry(request).or_default();
        match operation.outcome {
            Outcome::Done { .. } => *is_done = true,
            Outcome::Unknown(_) => *is_unknown = true,
            Outcome::NotDone(_) => {}
        }
    }
    for (is_done, is_unknown) in by_request.values() {
        match (is_done, is_unknown) {
            (true, _) => acknowledged += 1,
            (false, true) => unknown += 1,
            (false, false) => {}
        }
    }
    if total < acknowledged {
        return Err(format!("{acknowledged} requests were acknowledged, and {total} are counted"));
    }
    if total > acknowledged + unknown {
        return Err(format!(
            "{acknowledged} requests were acknowledged, of {unknown} nothing is known, and {total} are counted"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{done, op, refused, unknown};

    fn add(request: &str, outcome: Outcome) -> Operation {
        op((1, 2), Action::Add { request: request.into() }, outcome)
    }

    #[test]
    fn each_counts_once_and_the_unknown_at_most_once() {
        let operations = [
            add("a", unknown()),
            add("a", done(None, 1)),
            add("b", unknown()),
            add("b", unknown()),
            add("c", refused()),
        ];
        assert_eq!(not_once(&operations, 1), Ok(()));
        assert_eq!(not_once(&operations, 2), Ok(()));
    }

    #[test]
    fn a_request_that_was_applied_twice_is_found() {
        assert!(not_once(&[add("a", unknown()), add("a", done(None, 1))], 2).is_err());
    }

    #[test]
    fn a_request_that_was_lost_is_found() {
        assert!(not_once(&[add("a", done(None, 1))], 0).is_err());
    }

    #[test]
    fn a_refused_request_that_was_applied_is_found() {
        assert!(not_once(&[add("a", refused())], 1).is_err());
    }
}
