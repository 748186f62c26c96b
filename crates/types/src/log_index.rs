//! Positions in a group's log, and the token that carries one to a client and back.

use std::fmt;
use std::str::FromStr;

/// Position of a write in its group's log. 0 is "before the first write"; every write has its own, and they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogIndex(pub u64);

impl LogIndex {
    /// The position that the next write takes.
    pub fn next(self) -> LogIndex {
        LogIndex(self.0.saturating_add(1))
    }
}

impl fmt::Display for LogIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a client keeps of a write, and shows with its reads: `group:log index`, as in `insurance:4711`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Name of the group whose log the index is of.
    pub group: String,
    /// The position that the client has seen.
    pub index: LogIndex,
}

/// A text that is not a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token: {0:?}; a token is a group's name, a colon, and a log index, as in insurance:4711")]
pub struct TokenError(pub String);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.group, self.index)
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        let malformed = || TokenError(text.chars().take(80).collect());
        let (group, index) = text.rsplit_once(':').ok_or_else(malformed)?;
        if group.is_empty() || !index.bytes().all(|b| b.is_ascii_digit()) {
            return Err(malformed());
        }
        let index = index.parse().map_err(|_| malformed())?;
        Ok(Token { group: group.to_owned(), index: LogIndex(index) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_text() {
        let token = Token { group: "insurance:eu".into(), index: LogIndex(u64::MAX) };
        assert_eq!(token.to_string().parse::<Token>().expect("own text"), token);
    }

    #[test]
    fn what_is_not_a_token_is_refused() {
        for text in ["", ":", "a", "a:", ":1", "a:-1", "a:+1", "a:1x", "a:18446744073709551616"] {
            assert!(text.parse::<Token>().is_err(), "{text:?}");
        }
    }
}
