//! Registers that no one order of the operations explains.
//!
//! Wing and Gong's search, with Lowe's memory of what was tried: an operation may come next if none that is left was answered before
//! it was called. A write of which nothing is known may come at any time after its call, or never.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::history::{Action, Level, Operation, Outcome};

/// Operations of one register that are searched at the most.
const MOST: usize = 128;

/// Whether there is, for each register, an order of its writes and of its linearizable reads that explains what was read, and in which
/// nothing comes before what was answered before it was called. Registers have no value at first.
pub fn not_linearizable(operations: &[Operation]) -> Result<(), String> {
    let mut by_key: BTreeMap<i64, Vec<Step>> = BTreeMap::new();
    for operation in operations {
        if let Some((key, step)) = step_of(operation) {
            by_key.entry(key).or_default().push(step);
        }
    }
    for (key, steps) in by_key {
        let read: BTreeSet<i64> = steps.iter().filter(|step| !step.writes).filter_map(|step| step.value).collect();
        // One of which nothing is known, and that nobody read, explains nothing.
        let mut steps: Vec<Step> = steps;
        steps.retain(|step| step.answered.is_some() || step.value.is_some_and(|value| read.contains(&value)));
        if steps.len() > MOST {
            return Err(format!("register {key} has {} operations, and at most {MOST} can be searched", steps.len()));
        }
        if !has_order(&steps) {
            return Err(format!("register {key} is not linearizable: {steps:?}"));
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Step {
    writes: bool,
    value: Option<i64>,
    called: u64,
    /// `None`: it may come at any time, or never.
    answered: Option<u64>,
}

fn step_of(operation: &Operation) -> Option<(i64, Step)> {
    let (called, answered) = (operation.called, operation.answered);
    match (&operation.action, &operation.outcome) {
        (Action::Put { key, value }, Outcome::Done { .. }) => {
            Some((*key, Step { writes: true, value: Some(*value), called, answered: Some(answered) }))
        }
        (Action::Put { key, value }, Outcome::Unknown(_)) => {
            Some((*key, Step { writes: true, value: Some(*value), called, answered: None }))
        }
        (Action::Get { key, level: Level::Linearizable }, Outcome::Done { value, .. }) => {
            Some((*key, Step { writes: false, value: *value, called, answered: Some(answered) }))
        }
        _ => None,
    }
}

fn has_order(steps: &[Step]) -> bool {
    let mut tried: HashSet<(u128, Option<i64>)> = HashSet::new();
    let mut open = vec![(0_u128, None)];
    while let Some((taken, value)) = open.pop() {
        if !tried.insert((taken, value)) {
            continue;
        }
        let is_left = |at: usize| taken & (1 << at) == 0;
        let left = || steps.iter().enumerate().filter(|(at, _)| is_left(*at));
        let Some(first_answer) = left().filter_map(|(_, step)| step.answered).min() else { return true };
        for (at, step) in left().filter(|(_, step)| step.called < first_answer) {
            if step.writes {
                open.push((taken | (1 << at), step.value));
            } else if step.value == value {
                open.push((taken | (1 << at), value));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{done, get, put, refused, unknown};

    fn written(span: (u64, u64), value: i64) -> Operation {
        put(span, value, done(None, 0))
    }

    #[test]
    fn one_after_the_other_is_an_order() {
        let operations =
            [get((1, 2), None), written((3, 4), 1), get((5, 6), Some(1)), written((7, 8), 2), get((9, 10), Some(2))];
        assert_eq!(not_linearizable(&operations), Ok(()));
    }

    #[test]
    fn a_read_beside_a_write_may_see_it_or_not() {
        for value in [Some(1), Some(2)] {
            assert_eq!(not_linearizable(&[written((1, 2), 1), written((3, 6), 2), get((4, 5), value)]), Ok(()));
        }
    }

    #[test]
    fn a_stale_read_is_found() {
        assert!(not_linearizable(&[written((1, 2), 1), written((3, 4), 2), get((5, 6), Some(1))]).is_err());
        assert!(not_linearizable(&[written((1, 2), 1), get((3, 4), None)]).is_err());
    }

    #[test]
    fn reads_that_go_back_are_found() {
        let beside = [written((1, 2), 1), written((3, 10), 2), get((4, 5), Some(2)), get((6, 7), Some(1))];
        assert!(not_linearizable(&beside).is_err());
    }

    #[test]
    fn a_value_of_nobody_is_found() {
        assert!(not_linearizable(&[get((1, 2), Some(9))]).is_err());
        assert!(not_linearizable(&[put((1, 2), 9, refused()), get((3, 4), Some(9))]).is_err());
    }

    #[test]
    fn an_unknown_write_may_come_late_or_never_but_not_twice() {
        let late = [put((1, 2), 1, unknown()), written((3, 4), 2), get((5, 6), Some(2)), get((7, 8), Some(1))];
        assert_eq!(not_linearizable(&late), Ok(()));
        assert_eq!(not_linearizable(&[put((1, 2), 1, unknown()), get((3, 4), None)]), Ok(()));
        let twice = [put((1, 2), 1, unknown()), get((3, 4), Some(1)), written((5, 6), 2), get((7, 8), Some(1))];
        assert!(not_linearizable(&twice).is_err());
        // Nor before it was called.
        assert!(not_linearizable(&[get((1, 2), Some(1)), put((3, 4), 1, unknown())]).is_err());
    }

    #[test]
    fn other_levels_and_other_registers_are_no_matter() {
        let mut any = get((3, 4), None);
        any.action = Action::Get { key: 1, level: Level::Any };
        let mut other = get((5, 6), None);
        other.action = Action::Get { key: 2, level: Level::Linearizable };
        assert_eq!(not_linearizable(&[written((1, 2), 1), any, other]), Ok(()));
    }
}
