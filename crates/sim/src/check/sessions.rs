//! Clients that saw time run backwards.

use std::collections::BTreeMap;

use crate::history::{Action, Level, Operation};

/// Whether each client saw at least what it had seen and written before, in reads that it asked this of; and whether no life of a
/// node showed less than it had shown before, to whomever.
pub fn not_monotonic(operations: &[Operation]) -> Result<(), String> {
    // A client does one thing at a time; what it sees it passes on with its next read.
    let mut by_client: BTreeMap<usize, u64> = BTreeMap::new();
    let mut in_turn: Vec<&Operation> = operations.iter().collect();
    in_turn.sort_by_key(|operation| operation.called);
    for operation in in_turn {
        let Some(index) = operation.index() else { continue };
        let seen = by_client.entry(operation.client).or_default();
        let asked = !matches!(operation.action, Action::Get { level: Level::Any, .. });
        let is_read = matches!(operation.action, Action::Get { .. });
        if asked && is_read && index < *seen {
            return Err(format!("a client that had seen index {seen} was answered as of less: {operation:?}"));
        }
        *seen = (*seen).max(index);
    }
    backwards(operations)
}

/// The first read of a node that shows less than the node had shown when the read began.
fn backwards(operations: &[Operation]) -> Result<(), String> {
    // (count of the event, whether it is an answer, the operation)
    let mut events: Vec<(u64, bool, &Operation)> = Vec::new();
    for operation in operations.iter().filter(|operation| operation.index().is_some()) {
        events.push((operation.called, false, operation));
        events.push((operation.answered, true, operation));
    }
    events.sort_by_key(|(at, ..)| *at);
    let mut shown: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    let mut before: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, is_answer, operation) in events {
        let node = shown.entry((&operation.node, operation.life)).or_default();
        let index = operation.index().unwrap_or_default();
        if !is_answer {
            before.insert(operation.called, *node);
            continue;
        }
        let least = before.get(&operation.called).copied().unwrap_or_default();
        if matches!(operation.action, Action::Get { .. }) && index < least {
            return Err(format!("a node that had shown index {least} showed less: {operation:?}"));
        }
        *node = (*node).max(index);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{done, op, put};

    fn read(span: (u64, u64), level: Level, index: u64, node: &str) -> Operation {
        let operation = op(span, Action::Get { key: 1, level }, done(None, index));
        Operation { node: node.into(), ..operation }
    }

    #[test]
    fn a_client_that_sees_more_and_more_is_content() {
        let write = put((1, 2), 7, done(None, 5));
        let later = [write, read((3, 4), Level::Session, 5, "b"), read((5, 6), Level::Any, 2, "c")];
        assert_eq!(not_monotonic(&later), Ok(()));
    }

    #[test]
    fn a_client_that_does_not_see_its_own_write_is_found() {
        let found = not_monotonic(&[put((1, 2), 7, done(None, 5)), read((3, 4), Level::Session, 4, "b")]);
        assert!(found.is_err());
    }

    #[test]
    fn a_client_that_sees_less_than_before_is_found() {
        let found = not_monotonic(&[read((1, 2), Level::Any, 5, "a"), read((3, 4), Level::Linearizable, 4, "b")]);
        assert!(found.is_err());
    }

    #[test]
    fn a_node_that_does_not_show_what_was_written_through_it_is_found() {
        let other = Operation { client: 1, ..read((3, 4), Level::Any, 4, "a") };
        assert!(not_monotonic(&[put((1, 2), 7, done(None, 5)), other.clone()]).is_err());
        // Another life may.
        assert_eq!(not_monotonic(&[put((1, 2), 7, done(None, 5)), Operation { life: 2, ..other.clone() }]), Ok(()));
        // So may a read that began before the write was answered.
        let beside = Operation { called: 1, answered: 4, ..other };
        assert_eq!(not_monotonic(&[put((2, 3), 7, done(None, 5)), beside]), Ok(()));
    }
}
