//! The tokens of a statement, as far as names, words, parentheses and commas go.

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A name or a word, without its quotation marks.
    Name {
        /// Its text.
        name: String,
        /// Whether it stood in quotation marks, and so is no word.
        quoted: bool,
    },
    /// Any other character.
    Mark(char),
    /// A text, a number or a parameter.
    Constant,
}

/// Reads a statement's tokens. Comments and white space are no tokens; what is not closed ends with the statement.
pub(crate) fn tokens(sql: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            '-' if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (None, comment_length(rest)),
            '\'' => (Some(Token::Constant), text_length(rest, escapes(&found, sql, rest))),
            '$' => (Some(Token::Constant), dollar_length(rest)),
            '"' | '`' => quoted_name(rest, first),
            _ if first.is_alphabetic() || first == '_' => {
                let length = word_length(rest);
                let name = rest.get(..length).unwrap_or_default().to_owned();
                (Some(Token::Name { name, quoted: false }), length)
            }
            _ if first.is_ascii_digit() => (Some(Token::Constant), number_length(rest)),
            _ => (Some(Token::Mark(first)), first.len_utf8()),
        };
        found.extend(token);
        rest = rest.get(length.max(first.len_utf8())..).unwrap_or_default();
    }
    found
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(text.len())
}

fn number_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '.' && c != '_').unwrap_or(text.len())
}

/// Comments nest.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    let bytes = text.as_bytes();
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Whether a text is written `E'…'`, where a backslash goes with what follows it.
fn escapes(found: &[Token], sql: &str, rest: &str) -> bool {
    let marked = matches!(found.last(), Some(Token::Name { name, quoted: false }) if name.eq_ignore_ascii_case("e"));
    let before = sql.len().checked_sub(rest.len()).and_then(|at| sql.get(..at)).unwrap_or_default();
    marked && before.ends_with(['e', 'E'])
}

/// A text, in which a doubled quotation mark stands for one.
fn text_length(text: &str, escapes: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        let doubled = *byte == b'\'' && bytes.get(at + 1) == Some(&b'\'');
        if *byte == b'\'' && !doubled {
            return at + 1;
        }
        at += if doubled || (escapes && *byte == b'\\') { 2 } else { 1 };
    }
    text.len()
}

/// `$$…$$`, `$tag$…$tag$`, or a parameter such as `$1`.
fn dollar_length(text: &str) -> usize {
    let inside = text.get(1..).unwrap_or_default();
    let tag = inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len());
    let is_tag =
        inside.get(tag..).is_some_and(|r| r.starts_with('$')) && !inside.starts_with(|c: char| c.is_ascii_digit());
    if !is_tag {
        return 1 + tag;
    }
    let (mark, body) = text.split_at_checked(tag + 2).unwrap_or((text, ""));
    body.find(mark).map_or(text.len(), |at| mark.len() + at + mark.len())
}

fn quoted_name(text: &str, quote: char) -> (Option<Token>, usize) {
    let mut name = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c != quote {
            name.push(c);
        } else if characters.next_if(|(_, next)| *next == quote).is_some() {
            name.push(quote);
        } else {
            return (Some(Token::Name { name, quoted: true }), at + 1);
        }
    }
    (Some(Token::Name { name, quoted: true }), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str, quoted: bool) -> Token {
        Token::Name { name: name.to_owned(), quoted }
    }

    #[test]
    fn texts_and_comments_are_passed_over_whole() {
        let read = tokens("a 'x''y' E'\\'z' $1 $t$ '$t $t$ \"q\"\"r\" 1.5e3 /* b /* c */ d */ f -- g\n, e'\\\\'");
        let expected = [
            name("a", false),
            Token::Constant,
            name("E", false),
            Token::Constant,
            Token::Constant,
            Token::Constant,
            name("q\"r", true),
            Token::Constant,
            name("f", false),
            Token::Mark(','),
            name("e", false),
            Token::Constant,
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_not_closed_ends_with_the_statement() {
        for text in ["'a", "\"a", "/* a", "$$ a", "$t$ a", "E'\\", "-- a", "汉'字", "$", "'汉"] {
            assert!(tokens(text).len() <= 2, "{text}");
        }
    }
}
