//! Reads lines from a terminal: keys in, the line's picture out, with history and completion.

use std::io::{self, Write};

use termion::input::TermRead as _;
use termion::raw::IntoRawMode as _;
use unicode_width::UnicodeWidthStr as _;

use super::complete::Words;
use super::line::{History, Line, Press};

/// How a reading ended.
pub(super) enum Entered {
    /// A line.
    Line(String),
    /// It was given up.
    Cancelled,
    /// The user leaves.
    End,
}

/// The most candidates that Tab lists.
const LISTED: usize = 60;

/// Reads one line after a prompt.
pub(super) fn read_line(prompt: &str, history: &mut History, words: &Words) -> io::Result<Entered> {
    // In raw mode until this is dropped, so that what is typed or pasted is not shown twice.
    let mut out = io::stdout().into_raw_mode()?;
    let mut line = Line::default();
    draw(&mut out, prompt, &line)?;
    for key in io::stdin().lock().keys() {
        let entered = match line.press(key?) {
            Press::Edited => None,
            Press::Submitted => Some(Entered::Line(line.text())),
            Press::Cancelled => Some(Entered::Cancelled),
            Press::Ended => Some(Entered::End),
            Press::Complete => {
                complete(&mut out, &mut line, words)?;
                None
            }
            Press::Older => {
                line = history.older(&line.text()).map_or(line, |text| Line::of(&text));
                None
            }
            Press::Newer => {
                line = history.newer().map_or(line, |text| Line::of(&text));
                None
            }
            Press::Clear => {
                write!(out, "{}{}", termion::clear::All, termion::cursor::Goto(1, 1))?;
                None
            }
        };
        draw(&mut out, prompt, &line)?;
        if let Some(entered) = entered {
            write!(out, "\r\n")?;
            out.flush()?;
            return Ok(entered);
        }
    }
    Ok(Entered::End)
}

/// Columns of the terminal.
pub(super) fn width() -> Option<usize> {
    termion::terminal_size().ok().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

fn draw(out: &mut impl Write, prompt: &str, line: &Line) -> io::Result<()> {
    let room = width().unwrap_or(80).saturating_sub(prompt.width() + 1).max(8);
    let (picture, cursor) = line.picture(room);
    write!(out, "\r{prompt}{picture}{}\r", termion::clear::UntilNewline)?;
    let column = u16::try_from(prompt.width() + cursor).unwrap_or(u16::MAX);
    if column > 0 {
        write!(out, "{}", termion::cursor::Right(column))?;
    }
    out.flush()
}

fn complete(out: &mut impl Write, line: &mut Line, words: &Words) -> io::Result<()> {
    let before = line.before_cursor();
    let (start, candidates) = words.candidates(&before);
    let written = before.get(start..).unwrap_or_default().chars().count();
    match candidates.as_slice() {
        [] => {}
        [only] => line.replace_before(written, &format!("{only} ")),
        several => {
            let common = common_start(several);
            if common.chars().count() > written {
                line.replace_before(written, &common);
                return Ok(());
            }
            let listed: Vec<_> = several.iter().take(LISTED).map(String::as_str).collect();
            let more = if several.len() > LISTED { " …" } else { "" };
            write!(out, "\r\n{}{more}\r\n", listed.join("  "))?;
        }
    }
    Ok(())
}

/// What all candidates begin with.
fn common_start(candidates: &[String]) -> String {
    let mut common = candidates.first().cloned().unwrap_or_default();
    for candidate in candidates {
        while !candidate.starts_with(&common) {
            common.pop();
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_share_a_start() {
        let words = ["AAC001".to_owned(), "AAC002".to_owned(), "AA".to_owned()];
        assert_eq!(common_start(&words), "AA");
        assert_eq!(common_start(&words[..2]), "AAC00");
        assert_eq!(common_start(&[]), "");
    }

    #[test]
    fn a_line_is_drawn_with_its_cursor() {
        let mut out = Vec::new();
        draw(&mut out, "> ", &Line::of("汉")).expect("drawn");
        assert_eq!(String::from_utf8(out).expect("text"), "\r> 汉\u{1b}[K\r\u{1b}[4C");
    }
}
