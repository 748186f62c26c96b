//! `docs/command-line.md`, made from the definition of the command line.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::arguments::Arguments;

/// The page: the help of every command, as the program prints it.
pub(super) fn page() -> String {
    let mut out = String::from(
        "# Command line\n\n<!-- Made from the program's definition of its commands: `cargo xtask docs`. Change it there. -->\n",
    );
    // A fixed width, so that the page is the same on every machine.
    let mut program = Arguments::command().term_width(110).disable_help_subcommand(true);
    program.build();
    push(&mut out, &mut program, "cachesql");
    let names: Vec<_> = program.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    for name in names {
        if let Some(command) = program.find_subcommand_mut(&name) {
            push(&mut out, command, &format!("cachesql {name}"));
        }
    }
    out
}

fn push(out: &mut String, command: &mut clap::Command, title: &str) {
    let help = command.render_long_help().to_string();
    let help: Vec<_> = help.lines().map(str::trim_end).collect();
    let _ = write!(out, "\n## {title}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
}

#[cfg(test)]
mod tests {
    #[test]
    fn documents_are_current_for_the_command_line() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
        let expected = super::page();
        if std::env::var_os("CACHESQL_WRITE_DOCS").is_some() {
            std::fs::write(&path, &expected).expect("written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "{} is out of date: run `cargo xtask docs`", path.display());
    }
}
