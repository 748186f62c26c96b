//! Rows that were acknowledged and are not there, or were refused and are.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::history::{Action, Operation, Outcome};

/// Whether the rows that are there at the end are those that were acknowledged, and of the others only those of which nothing is known.
pub fn lost_writes(operations: &[Operation], there: &BTreeSet<i64>) -> Result<(), String> {
    let mut asked = BTreeMap::new();
    for operation in operations {
        if let Action::Insert { id } = operation.action {
            asked.insert(id, operation);
        }
    }
    for (id, operation) in &asked {
        match (&operation.outcome, there.contains(id)) {
            (Outcome::Done { .. }, false) => {
                return Err(format!("a write that was acknowledged is lost: {operation:?}"));
            }
            (Outcome::NotDone(_), true) => {
                return Err(format!("a write that was refused is there: {operation:?}"));
            }
            _ => {}
        }
    }
    match there.iter().find(|id| !asked.contains_key(id)) {
        Some(id) => Err(format!("row {id} is there, and nobody wrote it")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{done, op, refused, unknown};

    fn insert(id: i64, outcome: Outcome) -> Operation {
        op((1, 2), Action::Insert { id }, outcome)
    }

    #[test]
    fn what_was_acknowledged_is_there_and_the_unknown_may_be() {
        let operations = [insert(1, done(None, 1)), insert(2, unknown()), insert(3, unknown()), insert(4, refused())];
        assert_eq!(lost_writes(&operations, &[1, 3].into()), Ok(()));
    }

    #[test]
    fn a_lost_write_is_found() {
        assert!(lost_writes(&[insert(1, done(None, 1))], &[].into()).is_err_and(|why| why.contains("lost")));
    }

    #[test]
    fn a_refused_write_that_is_there_is_found() {
        assert!(lost_writes(&[insert(1, refused())], &[1].into()).is_err_and(|why| why.contains("refused")));
    }

    #[test]
    fn a_row_of_nobody_is_found() {
        assert!(lost_writes(&[], &[1].into()).is_err_and(|why| why.contains("nobody")));
    }
}
