//! What clients asked for and were answered, in order.

use std::fmt::Write as _;

use twox_hash::XxHash3_64;

/// What a read had to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Whatever the member has.
    Any,
    /// At least what its client has seen.
    Session,
    /// Everything that was acknowledged before it began.
    Linearizable,
}

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gives a register a value that no other write gives it.
    Put {
        /// The register.
        key: i64,
        /// The value.
        value: i64,
    },
    /// Reads a register.
    Get {
        /// The register.
        key: i64,
        /// What it has to see.
        level: Level,
    },
    /// Adds one to the counter, under a request id; tries again under the same one.
    Add {
        /// The id.
        request: String,
    },
    /// Adds a row of a key that no other has.
    Insert {
        /// The key.
        id: i64,
    },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done {
        /// What a read found; `None` for nothing, and for writes.
        value: Option<i64>,
        /// The log index that the answer stands for.
        index: u64,
    },
    /// It was refused: it did not happen, and never will.
    NotDone(String),
    /// Nobody knows, or nobody answered.
    Unknown(String),
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Who asked.
    pub client: usize,
    /// The node that was asked.
    pub node: String,
    /// Which of the node's lives.
    pub life: u64,
    /// What was asked.
    pub action: Action,
    /// When it was asked, counted over all calls and answers.
    pub called: u64,
    /// When it was answered, counted likewise.
    pub answered: u64,
    /// The same in simulated milliseconds.
    pub at_ms: (u64, u64),
    /// What became of it.
    pub outcome: Outcome,
}

impl Operation {
    /// The log index of an operation that was done.
    pub fn index(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Done { index, .. } => Some(index),
            _ => None,
        }
    }
}

/// Everything that happened in one run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By when they were answered.
    pub operations: Vec<Operation>,
    /// What was done to the cluster, with its simulated milliseconds.
    pub faults: Vec<(u64, String)>,
}

impl History {
    /// All of it as text, a line for each event.
    pub fn text(&self) -> String {
        let mut lines: Vec<(u64, String)> =
            self.faults.iter().map(|(at, what)| (*at, format!("{at:>7} -- {what}"))).collect();
        for op in &self.operations {
            let Operation { client, node, life, action, called, answered, at_ms, outcome } = op;
            let (from, to) = at_ms;
            let line = format!(
                "{from:>7}..{to} ({called}..{answered}) client {client} at {node}.{life}: {action:?} -> {outcome:?}"
            );
            lines.push((*from, line));
        }
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().fold(String::new(), |mut text, (_, line)| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
            text
        })
    }

    /// Stands for all of it, times included.
    pub fn fingerprint(&self) -> u64 {
        XxHash3_64::oneshot(self.text().as_bytes())
    }
}
