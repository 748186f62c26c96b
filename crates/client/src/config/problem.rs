//! What is wrong with a configuration file, and where.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read at all.
    #[error("{file}: {reason}")]
    Unreadable {
        /// The file, as it was named.
        file: String,
        /// Why.
        reason: String,
    },
    /// All that is wrong with what the file says, in the order of its lines.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

/// The problems found in a file so far.
pub(super) struct Findings {
    file: String,
    problems: Vec<Problem>,
}

impl Findings {
    pub(super) fn new(file: &str) -> Findings {
        Findings { file: file.to_owned(), problems: Vec::new() }
    }

    pub(super) fn note(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(Problem { file: self.file.clone(), line, message: message.into() });
    }

    /// The value if nothing is wrong, else everything that is.
    pub(super) fn conclude<T>(mut self, value: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        self.problems.sort_by_key(|problem| problem.line);
        Err(ConfigError::Invalid(self.problems))
    }
}
