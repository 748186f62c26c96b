//! Java's `.properties` text, as `java.util.Properties.load` reads it: comments with `#` and `!`, keys that end at `=`, `:`
//! or white space, lines that go on after a backslash, `\t \r \n \f \uXXXX`. The file is UTF-8 or, when it is not valid
//! UTF-8, ISO-8859-1.

/// One key and its value, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The key.
    pub key: String,
    /// The value; white space at its end is kept, as Java keeps it.
    pub value: String,
    /// Line that the key is on, from 1.
    pub line: usize,
    /// Column of the key in characters, from 1.
    pub column: usize,
}

/// A `\u` escape that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenEscape {
    /// Line that the entry begins on, from 1.
    pub line: usize,
    /// Column that the entry begins at, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// The text of a properties file.
pub fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
        Err(_) => bytes.iter().map(|b| char::from(*b)).collect(),
    }
}

/// Reads every entry. Keys may repeat: Java lets the last one win.
pub fn parse(text: &str) -> Vec<Result<Property, BrokenEscape>> {
    logical_lines(text).into_iter().map(entry).collect()
}

struct LogicalLine {
    characters: Vec<char>,
    line: usize,
    column: usize,
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Joins lines that go on, and drops comments and empty ones.
fn logical_lines(text: &str) -> Vec<LogicalLine> {
    let mut lines = Vec::new();
    let mut current = LogicalLine { characters: Vec::new(), line: 1, column: 1 };
    let mut in_comment = false;
    let mut skip_blanks = true;
    let mut continued = false;
    let mut after_backslash = false;
    let (mut line, mut column) = (1, 0);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        column += 1;
        let ends_line = c == '\n' || c == '\r';
        let at_end = characters.peek().is_none();
        if c == '\r' && characters.peek() == Some(&'\n') {
            characters.next();
        }
        if ends_line {
            line += 1;
            column = 0;
        }
        if in_comment {
            in_comment = !ends_line;
            continue;
        }
        if skip_blanks {
            // A line that goes on skips the blanks of the next one; if that is empty, the entry ends there.
            if is_blank(c) || (ends_line && !continued) {
                continue;
            }
            skip_blanks = false;
            continued = false;
        }
        if current.characters.is_empty() && !ends_line {
            if c == '#' || c == '!' {
                in_comment = true;
                skip_blanks = true;
                continue;
            }
            (current.line, current.column) = (line, column);
        }
        if !ends_line {
            after_backslash = c == '\\' && !after_backslash;
            current.characters.push(c);
            continue;
        }
        skip_blanks = true;
        if after_backslash {
            current.characters.pop();
            after_backslash = false;
            continued = true;
            // As Java does: a text that ends right after a backslash and a line end still has an entry there.
            if at_end {
                lines.push(current);
                return lines;
            }
        } else if !current.characters.is_empty() {
            lines.push(std::mem::replace(&mut current, LogicalLine { characters: Vec::new(), line: 1, column: 1 }));
        }
    }
    let unfinished = after_backslash;
    if unfinished {
        current.characters.pop();
    }
    if unfinished || !current.characters.is_empty() {
        lines.push(current);
    }
    lines
}

fn entry(logical: LogicalLine) -> Result<Property, BrokenEscape> {
    let LogicalLine { characters, line, column } = logical;
    let mut escaped = false;
    let is_end = |c: &char| {
        let ends = !escaped && (is_blank(*c) || matches!(c, '=' | ':'));
        escaped = *c == '\\' && !escaped;
        ends
    };
    let key_end = characters.iter().position(is_end).unwrap_or(characters.len());
    let (key, rest) = characters.split_at_checked(key_end).unwrap_or((&characters, &[]));
    // Between key and value: blanks, and at most one sign.
    let mut seen_sign = false;
    let is_value = |c: &char| {
        let sign = matches!(c, '=' | ':') && !seen_sign;
        seen_sign |= sign;
        !sign && !is_blank(*c)
    };
    let value_start = rest.iter().position(is_value).unwrap_or(rest.len());
    let value = rest.get(value_start..).unwrap_or(&[]);
    let broken = |message| BrokenEscape { line, column, message };
    Ok(Property { key: unescape(key).map_err(broken)?, value: unescape(value).map_err(broken)?, line, column })
}

fn unescape(characters: &[char]) -> Result<String, String> {
    // Escapes are UTF-16 units, so that a character beyond the first plane takes two of them.
    let mut units = Vec::with_capacity(characters.len());
    let mut rest = characters.iter();
    while let Some(c) = rest.next() {
        let plain = match c {
            '\\' => match rest.next() {
                Some('u') => {
                    units.push(escaped_unit(rest.by_ref().take(4))?);
                    continue;
                }
                Some('t') => '\t',
                Some('r') => '\r',
                Some('n') => '\n',
                Some('f') => '\u{c}',
                Some(other) => *other,
                None => break,
            },
            other => *other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).map_err(|_| "half of a surrogate pair in \\u escapes".to_owned())
}

fn escaped_unit<'c>(digits: impl Iterator<Item = &'c char>) -> Result<u16, String> {
    let digits: String = digits.collect();
    let well_formed = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| well_formed);
    unit.ok_or_else(|| format!("\\u{digits} is not \\u and four hexadecimal digits"))
}

#[cfg(test)]
#[path = "properties_tests.rs"]
mod tests;
