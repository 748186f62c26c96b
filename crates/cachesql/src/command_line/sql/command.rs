//! What is entered in the shell: a command of its own, with what it takes, or SQL.

use crate::command_line::render::Expanded;

/// The shell's own commands, and what they do.
pub(super) const COMMANDS: [(&str, &str); 7] = [
    ("\\dt", "lists the tables"),
    ("\\d", "describes a table: \\d KCA2"),
    ("\\i", "runs the statements of a file: \\i file.sql"),
    ("\\x", "prints one value a line: \\x on, off or auto (where the frame is too wide); alone it switches"),
    ("\\timing", "tells how long each statement took: \\timing on or off; alone it switches"),
    ("\\q", "leaves"),
    ("\\?", "this list"),
];

/// What was entered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry<'t> {
    /// The wish to leave.
    Leave,
    /// The list of commands.
    Help,
    /// The list of tables.
    Tables,
    /// One table.
    Describe(&'t str),
    /// A file of statements.
    Include(&'t str),
    /// One value a line; `None` switches.
    Expanded(Option<Expanded>),
    /// The time of each statement; `None` switches.
    Timing(Option<bool>),
    /// SQL.
    Statements,
}

/// What an entry means. The error says what was expected of a command.
pub(super) fn entry(text: &str) -> Result<Entry<'_>, String> {
    let text = text.trim().trim_end_matches(';').trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let alone = |entry| if rest.is_empty() { Ok(entry) } else { Err(format!("{word} stands alone, found {rest:?}")) };
    match word {
        "\\q" => alone(Entry::Leave),
        "\\?" => alone(Entry::Help),
        "\\dt" => alone(Entry::Tables).map_err(|why| format!("{why}; \\d {rest} describes a table")),
        // Without its backslash a word is a command when it is all that is entered.
        "exit" | "quit" if rest.is_empty() => Ok(Entry::Leave),
        "help" if rest.is_empty() => Ok(Entry::Help),
        "\\d" if rest.is_empty() => Ok(Entry::Tables),
        "\\d" => Ok(Entry::Describe(rest.trim_matches('"'))),
        "\\i" if rest.is_empty() => Err("\\i: expected a file, as in \\i file.sql".into()),
        "\\i" => Ok(Entry::Include(rest)),
        "\\x" => match rest {
            "" => Ok(Entry::Expanded(None)),
            "on" => Ok(Entry::Expanded(Some(Expanded::On))),
            "off" => Ok(Entry::Expanded(Some(Expanded::Off))),
            "auto" => Ok(Entry::Expanded(Some(Expanded::Auto))),
            _ => Err(format!("\\x: expected on, off, auto or nothing, found {rest:?}")),
        },
        "\\timing" => match rest {
            "" => Ok(Entry::Timing(None)),
            "on" => Ok(Entry::Timing(Some(true))),
            "off" => Ok(Entry::Timing(Some(false))),
            _ => Err(format!("\\timing: expected on, off or nothing, found {rest:?}")),
        },
        _ if word.starts_with('\\') => Err(format!("unknown command {word}; \\? lists commands")),
        _ => Ok(Entry::Statements),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_they_take() {
        let cases = [
            ("\\q", Entry::Leave),
            ("exit;", Entry::Leave),
            ("help", Entry::Help),
            ("\\dt", Entry::Tables),
            ("\\d", Entry::Tables),
            ("\\d  \"KCA2\" ;", Entry::Describe("KCA2")),
            ("\\i my file.sql", Entry::Include("my file.sql")),
            ("\\x", Entry::Expanded(None)),
            ("\\x on", Entry::Expanded(Some(Expanded::On))),
            ("\\x off;", Entry::Expanded(Some(Expanded::Off))),
            ("\\x auto", Entry::Expanded(Some(Expanded::Auto))),
            ("\\timing", Entry::Timing(None)),
            ("\\timing off", Entry::Timing(Some(false))),
            ("SELECT 1;", Entry::Statements),
            ("exit from t;", Entry::Statements),
        ];
        for (text, expected) in cases {
            assert_eq!(entry(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_a_command_does_not_take_is_refused() {
        let cases = [
            ("\\x maybe", "\\x: expected on, off, auto or nothing, found \"maybe\""),
            ("\\timing 1", "\\timing: expected on, off or nothing, found \"1\""),
            ("\\i", "\\i: expected a file, as in \\i file.sql"),
            ("\\q now", "\\q stands alone, found \"now\""),
            ("\\dt KCA2", "\\dt stands alone, found \"KCA2\"; \\d KCA2 describes a table"),
            ("\\z", "unknown command \\z; \\? lists commands"),
        ];
        for (text, expected) in cases {
            assert_eq!(entry(text), Err(expected.to_owned()), "{text}");
        }
    }
}
