//! Walks over JSON text and hands out each value as it is written, so that no digit of a number is lost and no tree is built.
//!
//! Values themselves are checked by `serde_json`; only the commas, colons and brackets of the outer layers are read here.

use std::borrow::Cow;

use hyper::StatusCode;
use serde::de::IgnoredAny;

use super::json::string_of;
use crate::http::failure::Failure;

/// A JSON text and how far it is read.
pub(super) struct Walker<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walker<'a> {
    /// Begins at the front.
    pub(super) fn new(text: &'a str) -> Walker<'a> {
        Walker { text, at: 0 }
    }

    /// The next character that is not white space; it stays.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = self.rest();
        let blank = rest.bytes().take_while(|b| matches!(b, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.at += blank;
        self.rest().bytes().next()
    }

    /// Reads one value of any kind; its text as it is written.
    pub(super) fn value(&mut self) -> Result<&'a str, Failure> {
        if self.peek().is_none() {
            return Err(self.broken("it ends where a value is expected"));
        }
        let rest = self.rest();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                let length = values.byte_offset();
                self.at += length;
                Ok(rest.get(..length).unwrap_or_default())
            }
            Some(Err(error)) => {
                let text = error.to_string();
                Err(self.broken(text.split(" at line ").next().unwrap_or("a value is broken")))
            }
            None => Err(self.broken("a value is expected")),
        }
    }

    /// Reads an object, member by member; values as they are written.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(Cow<'a, str>, &'a str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.expect(b'{', "an object is expected")?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.broken("a member's name is expected"));
            }
            let name = self.value()?;
            let name = string_of(name).ok_or_else(|| self.broken("a member's name is no text"))?;
            self.expect(b':', "a colon is expected")?;
            let value = self.value()?;
            member(name, value)?;
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the object is expected")?;
        }
    }

    /// Reads an array; `element` reads each of its elements off the walker.
    pub(super) fn array(
        &mut self,
        mut element: impl FnMut(&mut Walker<'a>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.expect(b'[', "an array is expected")?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.take(b']') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the array is expected")?;
        }
    }

    /// Refuses anything but white space behind what was read.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.broken("something follows its end")),
        }
    }

    /// The failure for a text that is not the JSON that is wanted, with the place that is reached.
    pub(super) fn broken(&self, what: &str) -> Failure {
        let read = self.text.get(..self.at).unwrap_or_default();
        let line = read.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = read.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Failure::new(StatusCode::BAD_REQUEST, "22P02", format!("the body is not the JSON that is expected: {what}"))
            .with_details(format!("line {line}, column {column}"))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), Failure> {
        if self.take(byte) { Ok(()) } else { Err(self.broken(what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Walks over an array of objects, and gives every value's text.
    fn walk(text: &str) -> Result<Vec<Vec<(String, String)>>, Failure> {
        let mut rows = Vec::new();
        let mut walker = Walker::new(text);
        walker.array(|walker| {
            let mut row = Vec::new();
            walker.object(|name, value| {
                row.push((name.into_owned(), value.to_owned()));
                Ok(())
            })?;
            rows.push(row);
            Ok(())
        })?;
        walker.end()?;
        Ok(rows)
    }

    #[test]
    fn values_are_handed_out_as_they_are_written() {
        let rows = walk(" [ { \"a\\n\" : 1.50 , \"b\":[1, {\"c\":\"]\"}]} , {} ]\n").expect("good");
        let expected = vec![
            vec![("a\n".to_owned(), "1.50".to_owned()), ("b".to_owned(), "[1, {\"c\":\"]\"}]".to_owned())],
            vec![],
        ];
        assert_eq!(rows, expected);
        assert_eq!(walk("[]"), Ok(vec![]));
    }

    #[test]
    fn broken_text_is_refused_with_its_place() {
        let texts = [
            "",
            "[",
            "[{]",
            "[{}",
            "[{},]",
            "[{} {}]",
            "[{\"a\"}]",
            "[{\"a\":}]",
            "[{\"a\":1,}]",
            "[{a:1}]",
            "[{\"a\":01}]",
            "[{\"a\":1}]]",
            "[{\"a\":nul}]",
            "[1]",
            "[{\"a\":\"\u{1}\"}]",
            "[{\"a\":\"\\x\"}]",
        ];
        for text in texts {
            assert!(walk(text).is_err(), "{text}");
        }
        assert_eq!(walk("[{\"a\":1},\n {\"b\":x}]").expect_err("x").details.as_deref(), Some("line 2, column 7"));
    }

    proptest! {
        #[test]
        fn it_accepts_what_serde_json_accepts(text in "\\[(\\{(\"a\":[0-9\"x\\[\\]{}.eE+-]{0,5},?)*\\},?)*\\]") {
            let whole: Result<Vec<serde_json::Map<String, serde_json::Value>>, _> = serde_json::from_str(&text);
            prop_assert_eq!(walk(&text).is_ok(), whole.is_ok(), "{}", text);
        }
    }
}
