//! LIKE: `%` is any text, `_` any one character.

/// A pattern, read once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LikePattern {
    parts: Vec<Part>,
    fold: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(String),
    One,
    Any,
}

impl LikePattern {
    /// Reads a pattern; `escape` takes the meaning off the character behind it. An escape at the end stands for itself.
    pub(crate) fn new(pattern: &str, escape: Option<char>, case_insensitive: bool) -> LikePattern {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut characters = pattern.chars();
        let flush = |literal: &mut String, parts: &mut Vec<Part>| {
            if !literal.is_empty() {
                let text = std::mem::take(literal);
                parts.push(Part::Literal(if case_insensitive { text.to_lowercase() } else { text }));
            }
        };
        while let Some(character) = characters.next() {
            match character {
                c if Some(c) == escape => literal.push(characters.next().unwrap_or(c)),
                '%' => {
                    flush(&mut literal, &mut parts);
                    if parts.last() != Some(&Part::Any) {
                        parts.push(Part::Any);
                    }
                }
                '_' => {
                    flush(&mut literal, &mut parts);
                    parts.push(Part::One);
                }
                c => literal.push(c),
            }
        }
        flush(&mut literal, &mut parts);
        LikePattern { parts, fold: case_insensitive }
    }

    /// Whether a text matches as a whole.
    pub(crate) fn matches(&self, text: &str) -> bool {
        if self.fold { matches(&self.parts, &text.to_lowercase()) } else { matches(&self.parts, text) }
    }

    /// The text that every match begins with, and whether that alone decides (`abc%`).
    pub(crate) fn prefix(&self) -> Option<(&str, bool)> {
        if self.fold {
            return None;
        }
        match self.parts.as_slice() {
            [Part::Literal(prefix), Part::Any] => Some((prefix, true)),
            [Part::Literal(prefix), ..] => Some((prefix, false)),
            _ => None,
        }
    }
}

/// Greedy matching that goes back to the last `%` only: time is the product of both lengths at worst.
fn matches(parts: &[Part], text: &str) -> bool {
    let (mut at, mut rest) = (0, text);
    // Where to go on when a later part fails: behind the last `%`, one character further in the text.
    let mut retry: Option<(usize, &str)> = None;
    loop {
        match parts.get(at) {
            None if rest.is_empty() => return true,
            Some(Part::Any) => {
                if at + 1 == parts.len() {
                    return true;
                }
                at += 1;
                retry = Some((at, rest));
                continue;
            }
            Some(Part::One) => {
                let mut characters = rest.chars();
                if characters.next().is_some() {
                    rest = characters.as_str();
                    at += 1;
                    continue;
                }
            }
            Some(Part::Literal(literal)) => {
                if let Some(tail) = rest.strip_prefix(literal.as_str()) {
                    rest = tail;
                    at += 1;
                    continue;
                }
            }
            None => {}
        }
        let Some((part, from)) = retry else { return false };
        let mut characters = from.chars();
        if characters.next().is_none() {
            return false;
        }
        rest = characters.as_str();
        at = part;
        retry = Some((part, rest));
    }
}

/// The least text above all that begin with `prefix`; `None` when there is none.
pub(crate) fn successor(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        // Code points order as their UTF-8 does. The step over the surrogates is the only gap.
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            _ => char::from_u32(u32::from(last).saturating_add(1)),
        };
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_sql_says() {
        let cases = [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a%", "a", true),
            ("a%", "ba", false),
            ("%b%", "abc", true),
            ("_", "汉", true),
            ("_", "", false),
            ("__", "é", false),
            ("a\\%", "a%", true),
            ("a\\%", "ab", false),
            ("%aab", "aaab", true),
            ("%a_b%", "xaaybcb", true),
            ("%a_b%", "xaayabcb", false),
            ("%", "", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(LikePattern::new(pattern, Some('\\'), false).matches(text), expected, "{text} LIKE {pattern}");
        }
        assert!(LikePattern::new("aB%", Some('\\'), true).matches("AbC"));
    }

    #[test]
    fn the_successor_is_above_all_that_begin_so() {
        assert_eq!(successor("ab"), Some("ac".into()));
        assert_eq!(successor("a\u{10FFFF}"), Some("b".into()));
        assert_eq!(successor("\u{D7FF}"), Some("\u{E000}".into()));
        assert_eq!(successor("\u{10FFFF}"), None);
        assert_eq!(successor(""), None);
    }
}
