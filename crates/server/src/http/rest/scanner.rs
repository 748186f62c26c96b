//! Reading the grammar's texts from left to right.

use std::borrow::Cow;

use crate::http::failure::Failure;

/// A text and how far it is read.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Begins at the front.
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { rest: text }
    }

    /// What is not read yet.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Whether everything is read.
    pub(crate) fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a text if it comes next.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads a text that must come next.
    pub(crate) fn expect(&mut self, text: &str) -> Result<(), Failure> {
        if self.take(text) { Ok(()) } else { Err(self.unexpected(text)) }
    }

    /// Reads everything that is left.
    pub(crate) fn take_rest(&mut self) -> &'a str {
        std::mem::take(&mut self.rest)
    }

    /// Reads up to one of some characters, which stays, or to the end.
    pub(crate) fn until(&mut self, stops: &[char]) -> &'a str {
        let at = self.rest.find(stops).unwrap_or(self.rest.len());
        let (read, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
        self.rest = rest;
        read
    }

    /// Reads a text in double quotes, in which a backslash takes the meaning off the next character; or else up to one of
    /// some characters.
    pub(crate) fn quoted_or_until(&mut self, stops: &[char]) -> Result<Cow<'a, str>, Failure> {
        let Some(inside) = self.rest.strip_prefix('"') else { return Ok(Cow::Borrowed(self.until(stops))) };
        let mut plain = true;
        let mut escaped = false;
        for (at, c) in inside.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => {
                    escaped = true;
                    plain = false;
                }
                '"' => {
                    let (text, rest) = inside.split_at_checked(at).unwrap_or((inside, ""));
                    self.rest = rest.strip_prefix('"').unwrap_or(rest);
                    return Ok(if plain { Cow::Borrowed(text) } else { Cow::Owned(unescape(text)) });
                }
                _ => {}
            }
        }
        Err(Failure::syntax("a quoted text is not closed").with_details(shortened(self.rest)))
    }

    /// The failure for something that should come next and does not.
    pub(crate) fn unexpected(&self, expected: &str) -> Failure {
        let found = if self.at_end() { "the end".to_owned() } else { format!("{:?}", shortened(self.rest)) };
        Failure::syntax(format!("expected {expected:?}, found {found}"))
    }
}

/// The front of a text, for messages.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_what_would_end_a_text() {
        let mut scanner = Scanner::new(r#""a,b\"c\\",plain,"#);
        assert_eq!(scanner.quoted_or_until(&[',']).expect("quoted"), r#"a,b"c\"#);
        assert!(scanner.take(","));
        assert_eq!(scanner.quoted_or_until(&[',']).expect("plain"), "plain");
        assert_eq!(scanner.rest(), ",");
        assert!(Scanner::new(r#""open\""#).quoted_or_until(&[',']).is_err());
    }
}
