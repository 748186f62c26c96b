//! What a call can end with other than its answer.

use std::fmt;

use crate::config::ConfigError;
use crate::limits;

/// Why a call, or the opening of a client, failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The configuration file, or an address, cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No group has the table.
    #[error("No group configured for table: {table}")]
    NoGroup {
        /// As it was asked for; for a statement, the first table that no group has.
        table: String,
    },
    /// There is no group at all.
    #[error("No groups configured")]
    NoGroups,
    /// A statement names tables of two groups, and no node has both.
    #[error(
        "one statement, two groups: table {first_table} is in group {first_group}, table {second_table} in group {second_group}, and no node holds both"
    )]
    TwoGroups {
        /// A table of the one group.
        first_table: String,
        /// That group.
        first_group: String,
        /// A table of the other.
        second_table: String,
        /// The other group.
        second_group: String,
    },
    /// What was asked cannot be put into a request: values and columns of different number, data that is no object.
    #[error("{0}")]
    Usage(String),
    /// A node understood the request and refused it. Nothing was applied.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// No node answered a read.
    #[error("All nodes failed, last error: {last}")]
    AllFailed {
        /// What the last node said, or what became of it.
        last: String,
    },
    /// No node took a write, and it was surely not applied.
    #[error("All nodes failed for write, last error: {last}")]
    WriteFailed {
        /// What the last node said, or what became of it.
        last: String,
    },
    /// A write was sent, and how it ended was never heard. It may be applied, or may be yet.
    #[error("All nodes failed for write, last error: {last} (whether the write was applied is not known)")]
    OutcomeUnknown {
        /// What the last node said, or what became of it.
        last: String,
        /// The id that the write carried: the same write with the same id is applied once.
        request_id: Option<String>,
    },
    /// A node answered what is no answer to the request.
    #[error("{node}: {message}")]
    Answer {
        /// Its address.
        node: String,
        /// What is wrong with it.
        message: String,
    },
    /// A row that does not fit the type that was asked for.
    #[error("row {row}: {message}")]
    Row {
        /// Its place in the answer, from 1.
        row: usize,
        /// Which column, and why.
        message: String,
    },
}

impl Error {
    /// The SQLSTATE of a refusal.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Error::Refused(refusal) => Some(refusal.code.as_str()),
            _ => None,
        }
    }

    /// False for a write of which it is not known whether it was applied.
    pub fn outcome_known(&self) -> bool {
        match self {
            Error::OutcomeUnknown { .. } => false,
            Error::Refused(refusal) => refusal.outcome_known,
            _ => true,
        }
    }
}

/// What a node said against a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The node's address.
    pub node: String,
    /// The HTTP status.
    pub status: u16,
    /// The SQLSTATE; empty when it gave none.
    pub code: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// More about it.
    pub details: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// False when an earlier try of the same write may have been applied all the same.
    pub outcome_known: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.code.is_empty() {
            write!(f, " ({})", self.code)?;
        }
        for (label, text) in [("detail", &self.details), ("hint", &self.hint)] {
            if let Some(text) = text {
                write!(f, "; {label}: {text}")?;
            }
        }
        if !self.outcome_known {
            f.write_str(" (an earlier try may have been applied)")?;
        }
        Ok(())
    }
}

/// A text that came from elsewhere, short enough for a message.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(limits::MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
