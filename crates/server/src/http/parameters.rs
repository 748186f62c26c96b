//! Names and values of a query string or a form, each decoded once.
//!
//! `application/x-www-form-urlencoded` as the URL standard reads it (`+` is a space), but strict: a `%` that is not followed
//! by two hex digits, and bytes that are not UTF-8, are errors and never replaced.

use std::borrow::Cow;

use cachesql_types::limits;

/// Why a query string, a form or a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EncodingError {
    /// A `%` without two hex digits behind it.
    #[error("bad percent-encoding: % must be followed by two hex digits")]
    Percent,
    /// What is decoded is not UTF-8.
    #[error("bad encoding: names and values must be UTF-8")]
    Utf8,
    /// More pairs than any table has columns.
    #[error("too many parameters")]
    TooMany,
}

/// Reads the pairs of a query string or form, in order. Empty pairs (`&&`) are skipped; a pair without `=` has an empty value.
pub(crate) fn pairs(text: &str) -> Pairs<'_> {
    Pairs { rest: text, taken: 0 }
}

/// The iterator that [`pairs`] returns.
pub(crate) struct Pairs<'a> {
    rest: &'a str,
    taken: usize,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(Cow<'a, str>, Cow<'a, str>), EncodingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let pair = loop {
            if self.rest.is_empty() {
                return None;
            }
            let (pair, rest) = self.rest.split_once('&').unwrap_or((self.rest, ""));
            self.rest = rest;
            if !pair.is_empty() {
                break pair;
            }
        };
        self.taken += 1;
        if self.taken > limits::HTTP_PARAMETERS {
            self.rest = "";
            return Some(Err(EncodingError::TooMany));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some(decode(name, true).and_then(|name| Ok((name, decode(value, true)?))))
    }
}

/// Decodes one segment of a path: percent-decoding alone, `+` stays.
pub(crate) fn decode_segment(text: &str) -> Result<Cow<'_, str>, EncodingError> {
    decode(text, false)
}

fn decode(text: &str, plus_is_space: bool) -> Result<Cow<'_, str>, EncodingError> {
    if !text.bytes().any(|b| b == b'%' || (b == b'+' && plus_is_space)) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let high = bytes.next().and_then(hex_digit).ok_or(EncodingError::Percent)?;
                let low = bytes.next().and_then(hex_digit).ok_or(EncodingError::Percent)?;
                out.push(high << 4 | low);
            }
            b'+' if plus_is_space => out.push(b' '),
            _ => out.push(byte),
        }
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| EncodingError::Utf8)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, EncodingError> {
        pairs(text).map(|pair| pair.map(|(n, v)| (n.into_owned(), v.into_owned()))).collect()
    }

    #[test]
    fn pairs_are_decoded_once() {
        let cases: [(&str, &[(&str, &str)]); 8] = [
            ("", &[]),
            ("&&", &[]),
            ("a=1&b=2", &[("a", "1"), ("b", "2")]),
            ("a", &[("a", "")]),
            ("a=b=c", &[("a", "b=c")]),
            ("a=x+y&b=x%2By", &[("a", "x y"), ("b", "x+y")]),
            ("a=%2541", &[("a", "%41")]),
            ("%E5%A7%93=%E5%BC%A0", &[("姓", "张")]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn bad_encoding_is_refused_and_never_replaced() {
        for text in ["a=%", "a=%4", "a=%zz", "%=1", "a=%+1"] {
            assert_eq!(read(text), Err(EncodingError::Percent), "{text}");
        }
        for text in ["a=%ff", "a=%E5%A7", "%C0%80=1"] {
            assert_eq!(read(text), Err(EncodingError::Utf8), "{text}");
        }
        assert_eq!(read(&"a=1&".repeat(limits::HTTP_PARAMETERS + 1)), Err(EncodingError::TooMany));
    }

    #[test]
    fn a_plus_in_a_path_stays() {
        assert_eq!(decode_segment("a+b%20c").expect("good"), "a+b c");
    }

    fn encode(text: &str) -> String {
        text.bytes()
            .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(given in proptest::collection::vec(("\\PC{1,8}", "\\PC{0,8}"), 0..6)) {
            let text = given.iter().map(|(n, v)| format!("{}={}", encode(n), encode(v))).collect::<Vec<_>>().join("&");
            prop_assert_eq!(read(&text), Ok(given));
        }

        #[test]
        fn no_text_panics(text in "[a&=%+0-9é]{0,40}") {
            let _ = read(&text);
        }
    }
}
