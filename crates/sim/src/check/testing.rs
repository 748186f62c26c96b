//! Short ways to write histories.

use crate::history::{Action, Level, Operation, Outcome};

/// An operation of client 0 at node `a`, from and to these counts.
pub(crate) fn op(span: (u64, u64), action: Action, outcome: Outcome) -> Operation {
    let (called, answered) = span;
    Operation { client: 0, node: "a".into(), life: 1, action, called, answered, at_ms: span, outcome }
}

pub(crate) fn done(value: Option<i64>, index: u64) -> Outcome {
    Outcome::Done { value, index }
}

pub(crate) fn unknown() -> Outcome {
    Outcome::Unknown("no answer".into())
}

pub(crate) fn refused() -> Outcome {
    Outcome::NotDone("refused".into())
}

pub(crate) fn put(span: (u64, u64), value: i64, outcome: Outcome) -> Operation {
    op(span, Action::Put { key: 1, value }, outcome)
}

pub(crate) fn get(span: (u64, u64), value: Option<i64>) -> Operation {
    op(span, Action::Get { key: 1, level: Level::Linearizable }, done(value, 0))
}
