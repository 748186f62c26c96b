//! The line that is being written: what each key does to it. No terminal here: keys come in, and a picture goes out.

use termion::event::Key;
use unicode_width::UnicodeWidthChar as _;

/// Characters and a cursor among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    characters: Vec<char>,
    cursor: usize,
}

/// What a key asked for, beyond a change of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Press {
    /// Nothing more.
    Edited,
    /// The line is done.
    Submitted,
    /// The line is given up (Ctrl-C).
    Cancelled,
    /// The user leaves (Ctrl-D on an empty line).
    Ended,
    /// Tab.
    Complete,
    /// An older line.
    Older,
    /// A newer line.
    Newer,
    /// A clean screen.
    Clear,
}

impl Line {
    pub(super) fn of(text: &str) -> Line {
        let characters: Vec<_> = text.chars().collect();
        Line { cursor: characters.len(), characters }
    }

    pub(super) fn text(&self) -> String {
        self.characters.iter().collect()
    }

    /// The text up to the cursor.
    pub(super) fn before_cursor(&self) -> String {
        self.characters.iter().take(self.cursor).collect()
    }

    /// Puts a text in the place of the `count` characters before the cursor.
    pub(super) fn replace_before(&mut self, count: usize, text: &str) {
        let from = self.cursor.saturating_sub(count);
        let end = self.cursor;
        self.characters.splice(from..end, text.chars());
        self.cursor = from + text.chars().count();
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: Key) -> Press {
        match key {
            Key::Char('\n' | '\r') => return Press::Submitted,
            Key::Char('\t') => return Press::Complete,
            Key::Ctrl('c') => return Press::Cancelled,
            Key::Ctrl('d') if self.characters.is_empty() => return Press::Ended,
            Key::Ctrl('l') => return Press::Clear,
            Key::Up | Key::Ctrl('p') => return Press::Older,
            Key::Down | Key::Ctrl('n') => return Press::Newer,
            Key::Char(c) if !c.is_control() => self.replace_before(0, c.encode_utf8(&mut [0; 4])),
            Key::Left | Key::Ctrl('b') => self.cursor = self.cursor.saturating_sub(1),
            Key::Right | Key::Ctrl('f') => self.cursor = (self.cursor + 1).min(self.characters.len()),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.characters.len(),
            Key::CtrlLeft | Key::AltLeft | Key::Alt('b') => self.cursor = self.word_before(),
            Key::CtrlRight | Key::AltRight | Key::Alt('f') => self.cursor = self.word_after(),
            Key::Backspace | Key::Ctrl('h') => self.replace_before(1, ""),
            Key::Delete | Key::Ctrl('d') if self.cursor < self.characters.len() => {
                self.characters.remove(self.cursor);
            }
            Key::Ctrl('w') => self.replace_before(self.cursor - self.word_before(), ""),
            Key::Ctrl('u') => self.replace_before(self.cursor, ""),
            Key::Ctrl('k') => self.characters.truncate(self.cursor),
            _ => {}
        }
        Press::Edited
    }

    fn is_word(&self, at: usize) -> bool {
        self.characters.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_')
    }

    fn word_before(&self) -> usize {
        let mut at = self.cursor;
        while at > 0 && !self.is_word(at - 1) {
            at -= 1;
        }
        while at > 0 && self.is_word(at - 1) {
            at -= 1;
        }
        at
    }

    fn word_after(&self) -> usize {
        let mut at = self.cursor;
        while at < self.characters.len() && !self.is_word(at) {
            at += 1;
        }
        while self.is_word(at) {
            at += 1;
        }
        at
    }

    /// The part of the line that fits in `width` cells with the cursor in it, and the cell that the cursor is on.
    pub(super) fn picture(&self, width: usize) -> (String, usize) {
        let cells: Vec<_> = self.characters.iter().map(|c| picture_of(*c)).collect();
        // From the cursor back, as far as there is room.
        let mut start = self.cursor;
        let mut before = 0;
        while start > 0 {
            let step = cells.get(start - 1).map_or(0, |(_, w)| *w);
            if before + step + 1 > width {
                break;
            }
            before += step;
            start -= 1;
        }
        let mut text = String::new();
        let mut used = 0;
        for (shown, cell_width) in cells.iter().skip(start) {
            if used + cell_width > width {
                break;
            }
            used += cell_width;
            text.push(*shown);
        }
        (text, before)
    }
}

/// A character as it is shown, and its cells: one that steers the terminal is shown by a stand-in.
fn picture_of(c: char) -> (char, usize) {
    match c.width() {
        _ if c == '\n' => ('↵', 1),
        Some(width) => (c, width),
        None => ('·', 1),
    }
}

/// Lines that were entered, oldest first, and where one looks among them.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: Vec<String>,
    /// How many entries back the shown one is; 0 is the line being written.
    back: usize,
    /// The line being written, while older ones are looked at.
    draft: String,
}

/// Lines that the history keeps.
const HISTORY_LINES: usize = 2_000;

impl History {
    /// Reads what [`History::encoded`] wrote.
    pub(super) fn decoded(text: &str) -> History {
        let entries =
            text.lines().filter(|l| !l.is_empty()).map(|line| line.replace("\\n", "\n").replace("\\\n", "\\n"));
        History { entries: entries.collect(), ..History::default() }
    }

    /// One entry a line.
    pub(super) fn encoded(&self) -> String {
        let skip = self.entries.len().saturating_sub(HISTORY_LINES);
        let escaped = |e: &String| e.replace("\\n", "\\\\n").replace('\n', "\\n");
        self.entries.iter().skip(skip).map(|e| escaped(e) + "\n").collect()
    }

    /// Adds an entry, unless it is the last one again; and forgets where one looked.
    pub(super) fn add(&mut self, entry: &str) {
        self.back = 0;
        if !entry.trim().is_empty() && self.entries.last().is_none_or(|last| last != entry) {
            self.entries.push(entry.to_owned());
        }
    }

    /// The entry before the shown one; `shown` is kept if it is the line being written.
    pub(super) fn older(&mut self, shown: &str) -> Option<String> {
        if self.back == 0 {
            self.draft = shown.to_owned();
        }
        let at = self.entries.len().checked_sub(self.back + 1)?;
        self.back += 1;
        self.entries.get(at).cloned()
    }

    /// The entry after the shown one; in the end the line being written.
    pub(super) fn newer(&mut self) -> Option<String> {
        self.back = self.back.checked_sub(1)?;
        match self.back {
            0 => Some(std::mem::take(&mut self.draft)),
            back => self.entries.get(self.entries.len().checked_sub(back)?).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, keys: &[Key]) -> (String, usize) {
        let mut line = Line::of(text);
        for key in keys {
            assert_eq!(line.press(*key), Press::Edited);
        }
        (line.text(), line.cursor)
    }

    #[test]
    fn keys_edit_the_line() {
        let cases: &[(&str, &[Key], &str, usize)] = &[
            ("ab", &[Key::Char('汉')], "ab汉", 3),
            ("ab", &[Key::Left, Key::Char('x')], "axb", 2),
            ("ab", &[Key::Backspace, Key::Backspace, Key::Backspace], "", 0),
            ("ab", &[Key::Home, Key::Delete], "b", 0),
            ("ab", &[Key::Delete, Key::Right], "ab", 2),
            ("one two", &[Key::Ctrl('w')], "one ", 4),
            ("one, two", &[Key::CtrlLeft, Key::CtrlLeft, Key::CtrlRight], "one, two", 3),
            ("one two", &[Key::Alt('b'), Key::Ctrl('k')], "one ", 4),
            ("one two", &[Key::Alt('b'), Key::Ctrl('u')], "two", 0),
            ("ab", &[Key::Ctrl('a'), Key::Ctrl('d'), Key::Ctrl('e')], "b", 1),
            ("ab", &[Key::Esc, Key::F(1), Key::Char('\u{7}')], "ab", 2),
        ];
        for (text, keys, expected, cursor) in cases {
            assert_eq!(typed(text, keys), ((*expected).to_owned(), *cursor), "{text} {keys:?}");
        }
        assert_eq!(Line::default().press(Key::Ctrl('d')), Press::Ended);
        assert_eq!(Line::of("x").press(Key::Char('\n')), Press::Submitted);
    }

    #[test]
    fn a_long_line_is_shown_around_the_cursor() {
        let line = Line::of("SELECT 汉字");
        assert_eq!(line.picture(80), ("SELECT 汉字".to_owned(), 11));
        assert_eq!(line.picture(5), ("汉字".to_owned(), 4));
        let mut home = line.clone();
        home.press(Key::Home);
        assert_eq!(home.picture(8), ("SELECT ".to_owned(), 0));
        assert_eq!(Line::of("a\nb\u{1b}").picture(80), ("a↵b·".to_owned(), 4));
    }

    #[test]
    fn history_goes_back_and_forth_and_survives_its_file() {
        let mut history = History::default();
        for entry in ["a", "b", "b", "  ", "c\nd \\n"] {
            history.add(entry);
        }
        let mut history = History::decoded(&history.encoded());
        assert_eq!(history.older("draft").as_deref(), Some("c\nd \\n"));
        assert_eq!(history.older("c").as_deref(), Some("b"));
        assert_eq!(history.older("b").as_deref(), Some("a"));
        assert_eq!(history.older("a"), None);
        assert_eq!(history.newer().as_deref(), Some("b"));
        assert_eq!(history.newer().as_deref(), Some("c\nd \\n"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
    }
}
