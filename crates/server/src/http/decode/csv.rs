//! CSV bodies (RFC 4180), record by record. Whether a field stood in quotes is kept: nothing is NULL, `""` is an empty text.

use std::borrow::Cow;

/// One field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// Its text, without quotes.
    pub(crate) text: Cow<'a, str>,
    /// Whether it stood in quotes.
    pub(crate) quoted: bool,
}

/// Why a text is not CSV.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CsvError {
    /// The text ends within quotes.
    #[error("line {line}: a quoted field is not closed")]
    Unclosed {
        /// Where the field begins.
        line: u64,
    },
    /// Something other than a comma or the end of the line after a closing quote.
    #[error("line {line}: a comma or the end of the line must follow a closing quote")]
    AfterQuote {
        /// Where.
        line: u64,
    },
    /// A quote within a field that does not begin with one.
    #[error("line {line}: a field with a quote in it must stand in quotes, and the quote be doubled")]
    BareQuote {
        /// Where.
        line: u64,
    },
}

/// Reads records.
pub(crate) struct Records<'a> {
    rest: &'a str,
    line: u64,
    done: bool,
}

impl<'a> Records<'a> {
    /// Begins at the front of a text.
    pub(crate) fn new(text: &'a str) -> Records<'a> {
        Records { rest: text, line: 1, done: text.is_empty() }
    }

    /// The line that the next record begins on, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next record into `fields`; false at the end. A line feed at the very end begins no record.
    pub(crate) fn read(&mut self, fields: &mut Vec<Field<'a>>) -> Result<bool, CsvError> {
        fields.clear();
        if self.done || self.rest.is_empty() {
            self.done = true;
            return Ok(false);
        }
        loop {
            fields.push(self.field()?);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            match self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix(['\n', '\r'])) {
                Some(rest) => {
                    self.rest = rest;
                    self.line += 1;
                }
                None => self.done = true,
            }
            return Ok(true);
        }
    }

    fn field(&mut self) -> Result<Field<'a>, CsvError> {
        let Some(inside) = self.rest.strip_prefix('"') else {
            let at = self.rest.find([',', '\n', '\r']).unwrap_or(self.rest.len());
            let (text, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
            if text.contains('"') {
                return Err(CsvError::BareQuote { line: self.line });
            }
            self.rest = rest;
            return Ok(Field { text: Cow::Borrowed(text), quoted: false });
        };
        let begun = self.line;
        let mut text: Cow<'a, str> = Cow::Borrowed("");
        let mut rest = inside;
        loop {
            let Some((part, after)) = rest.split_once('"') else { return Err(CsvError::Unclosed { line: begun }) };
            self.line += u64::try_from(part.bytes().filter(|b| *b == b'\n').count()).unwrap_or(0);
            match after.strip_prefix('"') {
                Some(after) => {
                    let whole = text.to_mut();
                    whole.push_str(part);
                    whole.push('"');
                    rest = after;
                }
                None => {
                    if text.is_empty() {
                        text = Cow::Borrowed(part);
                    } else {
                        text.to_mut().push_str(part);
                    }
                    self.rest = after;
                    break;
                }
            }
        }
        if self.rest.is_empty() || self.rest.starts_with([',', '\n', '\r']) {
            Ok(Field { text, quoted: true })
        } else {
            Err(CsvError::AfterQuote { line: self.line })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::encode::write_csv_field;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<Vec<(String, bool)>>, CsvError> {
        let mut records = Records::new(text);
        let mut fields = Vec::new();
        let mut all = Vec::new();
        while records.read(&mut fields)? {
            all.push(fields.iter().map(|f| (f.text.to_string(), f.quoted)).collect());
        }
        Ok(all)
    }

    #[test]
    fn records_are_read_as_the_rfc_says() {
        let plain = |t: &str| (t.to_owned(), false);
        let quoted = |t: &str| (t.to_owned(), true);
        assert_eq!(read("a,b\r\n1,2\r\n"), Ok(vec![vec![plain("a"), plain("b")], vec![plain("1"), plain("2")]]));
        assert_eq!(read("a\n1"), Ok(vec![vec![plain("a")], vec![plain("1")]]));
        assert_eq!(read("x,,\"\"\n"), Ok(vec![vec![plain("x"), plain(""), quoted("")]]));
        assert_eq!(read("\"a,\"\"b\"\"\n\",c"), Ok(vec![vec![quoted("a,\"b\"\n"), plain("c")]]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("a\n\nb"), Ok(vec![vec![plain("a")], vec![plain("")], vec![plain("b")]]));
    }

    #[test]
    fn broken_quotes_are_refused_with_their_line() {
        assert_eq!(read("a\n\"x\n\n"), Err(CsvError::Unclosed { line: 2 }));
        assert_eq!(read("a\n\"x\"y"), Err(CsvError::AfterQuote { line: 2 }));
        assert_eq!(read("a\"b"), Err(CsvError::BareQuote { line: 1 }));
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(rows in proptest::collection::vec(proptest::collection::vec("[a\",\n\r é]{0,6}", 2..4), 1..5)) {
            let mut text = Vec::new();
            for row in &rows {
                for (at, field) in row.iter().enumerate() {
                    if at > 0 { text.push(b','); }
                    write_csv_field(&mut text, field);
                }
                text.push(b'\n');
            }
            let back = read(std::str::from_utf8(&text).expect("UTF-8")).expect("own text");
            let texts: Vec<Vec<String>> = back.into_iter().map(|r| r.into_iter().map(|(t, _)| t).collect()).collect();
            prop_assert_eq!(texts, rows);
        }
    }
}
