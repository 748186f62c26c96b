//! The terminal that progress bars and log lines share: a line goes above the bars, and does not tear them.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::LazyLock;

use indicatif::MultiProgress;

use super::failure::Failure;

static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// The bars of this process; they are drawn on standard error, when that is a terminal.
pub(super) fn bars() -> &'static MultiProgress {
    &BARS
}

/// Prints a line of a command's outcome on standard output. Whoever read it may be gone: that is told apart from a fault.
pub(super) fn print_line(line: impl Display) -> Result<(), Failure> {
    writeln!(io::stdout(), "{line}").map_err(Failure::output)
}

/// Standard error for lines that may come while bars are drawn.
pub(super) struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bars().suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
