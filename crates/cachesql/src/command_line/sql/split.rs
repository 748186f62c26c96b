//! Cuts a text into statements at the `;` that end them: not those inside quotes, comments or dollar quotes.

/// Collects text, and gives each statement when its `;` has come.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    text: String,
    /// How much of `text` has been looked at.
    seen: usize,
    state: State,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    /// Inside quotes that this character ends; doubled, it is a part of the text.
    Quoted(u8),
    LineComment,
    /// Nested so deep.
    BlockComment(usize),
    /// Inside `$tag$ … $tag$`; holds the mark.
    Dollar(String),
}

impl Splitter {
    /// Adds text; gives the statements that it completes, without their `;`. Empty ones do not count.
    pub(super) fn push(&mut self, more: &str) -> Vec<String> {
        self.text.push_str(more);
        let mut statements = Vec::new();
        while let Some(end) = self.next_end() {
            let statement = self.text.get(..end).unwrap_or_default().trim().to_owned();
            self.text.drain(..=end);
            self.seen = 0;
            if is_more_than_comments(&statement) {
                statements.push(statement);
            }
        }
        statements
    }

    /// What is left when no more comes; `None` when there is nothing in it.
    pub(super) fn finish(self) -> Option<String> {
        let rest = self.text.trim();
        is_more_than_comments(rest).then(|| rest.to_owned())
    }

    /// Looks on from `seen` to the next `;` that ends a statement.
    fn next_end(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.seen) {
            let rest = bytes.get(self.seen..).unwrap_or_default();
            let mut step = 1;
            match &mut self.state {
                State::Plain => match byte {
                    b';' => return Some(self.seen),
                    b'\'' | b'"' => self.state = State::Quoted(*byte),
                    b'-' if rest.starts_with(b"--") => self.state = State::LineComment,
                    b'/' if rest.starts_with(b"/*") => (self.state, step) = (State::BlockComment(1), 2),
                    b'$' => {
                        if let Some(mark) = dollar_mark(rest) {
                            step = mark.len();
                            self.state = State::Dollar(mark);
                        }
                    }
                    _ => {}
                },
                State::Quoted(quote) => {
                    // A doubled quote ends and begins again: the same outcome.
                    if byte == quote {
                        self.state = State::Plain;
                    }
                }
                State::LineComment if *byte == b'\n' => self.state = State::Plain,
                State::LineComment => {}
                State::BlockComment(depth) => {
                    if rest.starts_with(b"/*") {
                        *depth += 1;
                        step = 2;
                    } else if rest.starts_with(b"*/") {
                        *depth -= 1;
                        step = 2;
                    }
                    if *depth == 0 {
                        self.state = State::Plain;
                    }
                }
                State::Dollar(mark) => {
                    if rest.starts_with(mark.as_bytes()) {
                        step = mark.len();
                        self.state = State::Plain;
                    }
                }
            }
            self.seen += step;
        }
        None
    }
}

/// The mark of a dollar quote that begins here. `$1` is a parameter.
fn dollar_mark(bytes: &[u8]) -> Option<String> {
    let end = 1 + bytes.get(1..)?.iter().position(|b| *b == b'$')?;
    let tag = bytes.get(1..end)?;
    let is_tag =
        tag.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') && !tag.first().is_some_and(u8::is_ascii_digit);
    is_tag.then(|| String::from_utf8_lossy(bytes.get(..=end).unwrap_or_default()).into_owned())
}

fn is_more_than_comments(statement: &str) -> bool {
    let mut rest = statement.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix("--") {
            rest = after.split_once('\n').map_or("", |(_, next)| next).trim_start();
        } else if let Some(after) = rest.strip_prefix("/*") {
            rest = after.split_once("*/").map_or("", |(_, next)| next).trim_start();
        } else {
            return !rest.is_empty();
        }
    }
}

/// True when a text on the shell's line is whole: all that has begun is ended by a `;`.
pub(super) fn is_complete(text: &str) -> bool {
    let mut splitter = Splitter::default();
    splitter.push(text);
    splitter.finish().is_none()
}

/// True when a text ends outside of quotes and comments: a line that follows may be a command of the shell.
pub(super) fn is_outside(text: &str) -> bool {
    let mut splitter = Splitter::default();
    splitter.push(text);
    splitter.state == State::Plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut statements = splitter.push(text);
        statements.extend(splitter.finish());
        statements
    }

    #[test]
    fn semicolons_inside_something_do_not_end_a_statement() {
        let cases: &[(&str, &[&str])] = &[
            ("SELECT 1; SELECT 2", &["SELECT 1", "SELECT 2"]),
            ("SELECT ';';SELECT 'it''s; fine'", &["SELECT ';'", "SELECT 'it''s; fine'"]),
            ("SELECT \"a;b\" -- c; d\n, 2;", &["SELECT \"a;b\" -- c; d\n, 2"]),
            ("SELECT /* a; /* b; */ c; */ 1;", &["SELECT /* a; /* b; */ c; */ 1"]),
            ("SELECT $$a;b$$; SELECT $x$ ; $$ ; $x$, $1;", &["SELECT $$a;b$$", "SELECT $x$ ; $$ ; $x$, $1"]),
            ("SELECT $1; SELECT $2", &["SELECT $1", "SELECT $2"]),
            (" ;; -- nothing\n ; /* nothing */ ", &[]),
            ("SELECT '汉;字';", &["SELECT '汉;字'"]),
        ];
        for (text, expected) in cases {
            assert_eq!(split(text), *expected, "{text}");
        }
    }

    #[test]
    fn text_may_come_in_pieces() {
        let text = "INSERT INTO t VALUES ('a;b'); -- x;y\nSELECT /* ; */ 2;";
        let mut splitter = Splitter::default();
        let mut statements = Vec::new();
        for line in text.split_inclusive('\n') {
            statements.extend(splitter.push(line));
        }
        statements.extend(splitter.finish());
        assert_eq!(statements, split(text));
        assert_eq!(statements.len(), 2);
    }

    #[test]
    fn the_shell_knows_where_a_command_may_stand() {
        for text in ["SELECT 1\n", "SELECT ';' -- it's\n", "/* ' */\n", ""] {
            assert!(is_outside(text), "{text}");
        }
        for text in ["SELECT '\n", "SELECT \"a\n", "SELECT $$\n", "/* \n"] {
            assert!(!is_outside(text), "{text}");
        }
    }

    #[test]
    fn the_shell_knows_when_a_statement_is_whole() {
        for text in ["SELECT 1;", "", "  ", "-- x", "SELECT ';';"] {
            assert!(is_complete(text), "{text}");
        }
        for text in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT"] {
            assert!(!is_complete(text), "{text}");
        }
    }
}
