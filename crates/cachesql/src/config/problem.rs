//! What is wrong with a configuration file, and where: every problem has a line and a column.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
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
    /// The file is sound, but not for what was asked of it: a node that it does not name, for instance.
    #[error("{0}")]
    Unusable(String),
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

/// A place in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The text of a file, and the problems found in it so far.
pub(super) struct Findings {
    file: String,
    text: String,
    problems: Vec<Problem>,
}

impl Findings {
    pub(super) fn new(file: &Path, text: &str) -> Findings {
        Findings { file: file.display().to_string(), text: text.to_owned(), problems: Vec::new() }
    }

    /// Notes a problem at a place in the text.
    pub(super) fn add(&mut self, span: Range<usize>, message: impl Into<String>) {
        let (line, column) = position(&self.text, span.start);
        self.add_at(line, column, message);
    }

    /// Notes a problem at a line and column.
    pub(super) fn add_at(&mut self, line: usize, column: usize, message: impl Into<String>) {
        self.problems.push(Problem { file: self.file.clone(), line, column, message: message.into() });
    }

    /// Line and column of a place in the text.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        let (line, column) = position(&self.text, span.start);
        Place { line, column }
    }

    /// The value if nothing is wrong, else everything that is.
    pub(super) fn conclude<T>(mut self, value: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        self.problems.sort_by_key(|p| (p.line, p.column));
        self.problems.dedup();
        Err(ConfigError::Invalid(self.problems))
    }

    pub(super) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before.get(line_start..).map_or(0, |part| part.chars().count()) + 1;
    (line, column)
}

/// The known word that was probably meant, as the end of a sentence: `; did you mean "refresh"?`, or nothing.
pub(super) fn suggestion<'w>(unknown: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    let lower = unknown.to_lowercase();
    let close = known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&lower, &word.to_lowercase()), word))
        .filter(|(distance, word)| *distance <= 1 + word.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance);
    close.map_or_else(String::new, |(_, word)| format!("; did you mean {word:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "a = 1\n汉字 = x\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, text.find('=').expect("there") + 2), (1, 5));
        assert_eq!(position(text, text.find('x').expect("there")), (2, 6));
        assert_eq!(position(text, 999), (3, 1));
    }

    #[test]
    fn a_misspelt_word_is_recognised() {
        let known = ["refresh", "ttl", "max_rows"];
        assert_eq!(suggestion("refrsh", known), "; did you mean \"refresh\"?");
        assert_eq!(suggestion("maxRows", known), "; did you mean \"max_rows\"?");
        assert_eq!(suggestion("colour", known), "");
    }
}
