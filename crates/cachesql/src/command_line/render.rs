//! Rows as people read them: columns in a frame, as wide as their widest value on the screen (a Chinese character takes two
//! cells), or one value a line where the terminal is too narrow.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr as _;

use crate::config::units::show_count;

/// An answer's rows as text.
#[derive(Debug, Default)]
pub(super) struct Grid {
    pub(super) columns: Vec<GridColumn>,
    /// Rows of cells; `None` is NULL.
    pub(super) rows: Vec<Vec<Option<String>>>,
}

/// A column of a grid.
#[derive(Clone, Debug)]
pub(super) struct GridColumn {
    pub(super) name: String,
    /// Numbers stand on the right.
    pub(super) is_number: bool,
}

/// When one value a line is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Expanded {
    /// When the frame would be wider than the terminal.
    #[default]
    Auto,
    On,
    Off,
}

const NULL: &str = "NULL";

impl Grid {
    /// Prints the rows and how many there are. `width` is the terminal's; `None` when it does not matter.
    pub(super) fn print(&self, out: &mut impl Write, width: Option<usize>, expanded: Expanded) -> io::Result<()> {
        let widths = self.widths();
        let total: usize = widths.iter().map(|w| w + 3).sum::<usize>() + 1;
        let is_narrow = width.is_some_and(|available| total > available);
        let expand = expanded == Expanded::On || (expanded == Expanded::Auto && is_narrow && !self.rows.is_empty());
        if expand {
            self.print_expanded(out)?;
        } else {
            self.print_frame(out, &widths)?;
        }
        writeln!(out, "({})", show_count(self.rows.len(), "row"))
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|c| visible(&c.name).width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(shown(cell.as_deref()).width());
            }
        }
        widths
    }

    fn print_frame(&self, out: &mut impl Write, widths: &[usize]) -> io::Result<()> {
        let rule = |out: &mut dyn Write, left: &str, middle: &str, right: &str| {
            let parts: Vec<_> = widths.iter().map(|w| "─".repeat(w + 2)).collect();
            writeln!(out, "{left}{}{right}", parts.join(middle))
        };
        rule(out, "┌", "┬", "┐")?;
        let names = self.columns.iter().map(|c| visible(&c.name));
        print_line(out, names, widths, &self.columns)?;
        rule(out, "├", "┼", "┤")?;
        for row in &self.rows {
            print_line(out, row.iter().map(|cell| shown(cell.as_deref())), widths, &self.columns)?;
        }
        rule(out, "└", "┴", "┘")
    }

    fn print_expanded(&self, out: &mut impl Write) -> io::Result<()> {
        let widest = self.columns.iter().map(|c| visible(&c.name).width()).max().unwrap_or(0);
        for (i, row) in self.rows.iter().enumerate() {
            writeln!(out, "── row {} ──", i + 1)?;
            for (column, cell) in self.columns.iter().zip(row) {
                let name = visible(&column.name);
                let gap = " ".repeat(widest - name.width().min(widest));
                writeln!(out, "{name}{gap} │ {}", shown(cell.as_deref()))?;
            }
        }
        Ok(())
    }
}

fn print_line(
    out: &mut impl Write,
    cells: impl Iterator<Item = String>,
    widths: &[usize],
    columns: &[GridColumn],
) -> io::Result<()> {
    for ((cell, width), column) in cells.zip(widths).zip(columns) {
        let gap = " ".repeat(width - cell.width().min(*width));
        match column.is_number {
            true => write!(out, "│ {gap}{cell} ")?,
            false => write!(out, "│ {cell}{gap} ")?,
        }
    }
    writeln!(out, "│")
}

fn shown(cell: Option<&str>) -> String {
    cell.map_or_else(|| NULL.to_owned(), visible)
}

/// Control characters as escapes: they would break the frame, or steer the terminal.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c) => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let column = |name: &str, is_number| GridColumn { name: name.into(), is_number };
        Grid {
            columns: vec![column("id", true), column("姓名", false)],
            rows: vec![
                vec![Some("1".into()), Some("张三".into())],
                vec![Some("1000".into()), Some("a\n\u{1b}[31m".into())],
                vec![None, Some(String::new())],
            ],
        }
    }

    fn printed(width: Option<usize>, expanded: Expanded) -> String {
        let mut out = Vec::new();
        grid().print(&mut out, width, expanded).expect("printed");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn frames_line_up_on_the_screen() {
        let expected = "┌──────┬───────────────┐\n│   id │ 姓名          │\n├──────┼───────────────┤\n│    1 │ 张三          │\n\
                        │ 1000 │ a\\n\\u{1b}[31m │\n│ NULL │               │\n└──────┴───────────────┘\n(3 rows)\n";
        assert_eq!(printed(None, Expanded::Auto), expected);
        assert_eq!(printed(Some(24), Expanded::Auto), expected);
    }

    #[test]
    fn a_narrow_terminal_gets_one_value_a_line() {
        let narrow = printed(Some(23), Expanded::Auto);
        assert!(narrow.starts_with("── row 1 ──\nid   │ 1\n姓名 │ 张三\n── row 2 ──\n"), "{narrow}");
        assert_eq!(printed(None, Expanded::On), narrow);
        assert!(printed(Some(3), Expanded::Off).starts_with('┌'));
    }
}
