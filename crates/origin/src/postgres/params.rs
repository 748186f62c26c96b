//! Parameters of a query: finding them, and binding values to them.

use bytes::BytesMut;
use cachesql_types::Value;
use tokio_postgres::types::{Format, IsNull, ToSql, Type};

/// A value for a parameter of whatever type the server found it to have: it is sent as text, and the server reads it as
/// that type, exactly as it would read a literal. It is never part of the statement.
#[derive(Debug)]
pub(crate) struct Bound<'a>(pub(crate) &'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if self.0.is_null() {
            return Ok(IsNull::Yes);
        }
        let mut text = Vec::new();
        self.0.write_text(&mut text);
        out.extend_from_slice(&text);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    fn to_sql_checked(
        &self,
        parameter: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.to_sql(parameter, out)
    }
}

/// Whether a text may be put inside the parentheses of `COPY (…)`: it is a query that COPY takes, and has no semicolon. (That
/// it is one whole statement, the server has said before, when it was prepared by itself.)
pub(crate) fn fits_copy(sql: &str) -> bool {
    let first: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
    let takes = ["select", "with", "values", "table"].iter().any(|word| first.eq_ignore_ascii_case(word));
    takes && !sql.contains(';')
}

/// The query with its `?` parameters, of which there must be `count`, written `$1`, `$2`, … as PostgreSQL wants them. A
/// query that has `$1` already, or no values, keeps its question marks: they are operators there. `??` is the operator
/// `?` in a query that has parameters, as in JDBC. `Err` is how many there are.
pub(crate) fn numbered(sql: &str, count: usize) -> Result<String, usize> {
    let pieces = pieces(sql);
    let code = |piece: &&Piece<'_>| piece.is_code;
    if count == 0 || pieces.iter().filter(code).any(|piece| has_numbered(piece.text)) {
        return Ok(sql.to_owned());
    }
    let mut out = String::with_capacity(sql.len() + count * 2);
    let mut found = 0;
    for piece in &pieces {
        if !piece.is_code {
            out.push_str(piece.text);
            continue;
        }
        let mut characters = piece.text.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '?' {
                out.push(character);
            } else if characters.next_if_eq(&'?').is_some() {
                out.push('?');
            } else {
                found += 1;
                out.push_str(&format!("${found}"));
            }
        }
    }
    if found == count { Ok(out) } else { Err(found) }
}

fn has_numbered(code: &str) -> bool {
    code.as_bytes().windows(2).any(|pair| matches!(pair, [b'$', digit] if digit.is_ascii_digit()))
}

/// A stretch of a statement: code, or a literal, quoted name or comment with its delimiters.
struct Piece<'a> {
    text: &'a str,
    is_code: bool,
}

/// Splits a statement by PostgreSQL's lexical rules. Anything that does not end runs to the end of the text.
fn pieces(sql: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = sql;
    while !rest.is_empty() {
        let start = rest.char_indices().find_map(|(at, _)| opaque_length(rest, at).map(|length| (at, length)));
        let (at, length) = start.unwrap_or((rest.len(), 0));
        let (code, after) = rest.split_at(at);
        let (opaque, after) = after.split_at(length);
        pieces.push(Piece { text: code, is_code: true });
        pieces.push(Piece { text: opaque, is_code: false });
        rest = after;
    }
    pieces
}

/// Length of the literal, quoted name or comment that begins at `at`, if one does.
fn opaque_length(text: &str, at: usize) -> Option<usize> {
    let (before, rest) = text.split_at(at);
    let until = |opening: usize, closing: &str| {
        let inside = rest.get(opening..).unwrap_or_default();
        inside.find(closing).map_or(rest.len(), |end| opening + end + closing.len())
    };
    match rest.as_bytes() {
        [b'\'', ..] if is_escape_string(before) => Some(escape_string_length(rest)),
        // A doubled quote inside ends one literal and begins the next: the same to us.
        [b'\'', ..] => Some(until(1, "'")),
        [b'"', ..] => Some(until(1, "\"")),
        [b'-', b'-', ..] => Some(until(2, "\n")),
        [b'/', b'*', ..] => Some(block_comment_length(rest)),
        [b'$', ..] => dollar_tag(before, rest).map(|tag| until(tag.len(), tag)),
        _ => None,
    }
}

/// Whether the quote that follows `before` begins an `E'…'` string, in which a backslash escapes.
fn is_escape_string(before: &str) -> bool {
    let Some(head) = before.strip_suffix(['e', 'E']) else { return false };
    !head.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
}

fn escape_string_length(rest: &str) -> usize {
    let mut bytes = rest.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'\'' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some([first, second]) = rest.as_bytes().get(at..at + 2) {
        match (first, second) {
            (b'/', b'*') => {
                depth += 1;
                at += 2;
            }
            (b'*', b'/') if depth == 1 => return at + 2,
            (b'*', b'/') => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The opening tag (`$$`, `$tag$`) of a dollar-quoted string.
fn dollar_tag<'a>(before: &str, rest: &'a str) -> Option<&'a str> {
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let name_end = rest.get(1..)?.find('$')? + 1;
    let name = rest.get(1..name_end)?;
    let starts_well = !name.starts_with(|c: char| c.is_ascii_digit());
    (starts_well && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then(|| rest.get(..=name_end)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn question_marks_are_numbered_outside_of_literals() {
        let cases = [
            ("SELECT ? + ?", 2, Ok("SELECT $1 + $2")),
            ("SELECT '?', \"?\", 'it''s ?' -- ?\n, ?", 1, Ok("SELECT '?', \"?\", 'it''s ?' -- ?\n, $1")),
            (r"SELECT E'\'?', e'a\\', ?", 1, Ok(r"SELECT E'\'?', e'a\\', $1")),
            (r"SELECT 'a\', ?", 1, Ok(r"SELECT 'a\', $1")),
            ("SELECT $$?$$, $a$ ? $b$ ? $a$, ?", 1, Ok("SELECT $$?$$, $a$ ? $b$ ? $a$, $1")),
            ("SELECT /* ? /* ? */ ? */ ?", 1, Ok("SELECT /* ? /* ? */ ? */ $1")),
            ("SELECT j ?? 'k' FROM t WHERE a = ?", 1, Ok("SELECT j ? 'k' FROM t WHERE a = $1")),
            ("SELECT j ? 'k' FROM t WHERE a = $1", 1, Ok("SELECT j ? 'k' FROM t WHERE a = $1")),
            ("SELECT j ? 'k'", 0, Ok("SELECT j ? 'k'")),
            ("SELECT '汉字?', ?", 1, Ok("SELECT '汉字?', $1")),
            ("SELECT ?", 2, Err(1)),
            ("SELECT '?", 1, Err(0)),
        ];
        for (sql, count, expected) in cases {
            assert_eq!(numbered(sql, count), expected.map(str::to_owned), "{sql}");
        }
    }

    #[test]
    fn copy_takes_queries_only() {
        assert!(fits_copy("with a as (select 1) select * from a"));
        assert!(fits_copy("VALUES (1)"));
        assert!(!fits_copy("SELECT ';'"));
        assert!(!fits_copy("SHOW server_version"));
        assert!(!fits_copy("/* hint */ SELECT 1"));
    }

    proptest! {
        #[test]
        fn any_text_is_split_into_itself(sql in "[a'\"$?E\\\\/*\n;汉1-]{0,40}") {
            let joined: String = pieces(&sql).iter().map(|piece| piece.text).collect();
            prop_assert_eq!(&joined, &sql);
            let _ = numbered(&sql, 1);
        }
    }
}
