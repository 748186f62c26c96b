//! The shell: reads statements with history and completion, runs them, and has a few commands of its own.

use std::path::PathBuf;

use tokio::runtime::Runtime;

use super::command::{self, COMMANDS, Entry};
use super::complete::Words;
use super::line::History;
use super::session::{Session, is_definition};
use super::split::{Splitter, is_complete, is_outside};
use super::terminal::{self, Entered};
use super::{describe, run_text};
use crate::command_line::failure::Failure;
use crate::command_line::render::Expanded;

const PROMPT: &str = "cachesql> ";
const MORE_PROMPT: &str = "       -> ";

/// Talks until the user leaves.
pub(super) fn run(session: &mut Session, runtime: &Runtime) -> Result<(), Failure> {
    let file = history_file();
    // The first time there is none.
    let kept = file.as_ref().and_then(|f| std::fs::read_to_string(f).ok()).unwrap_or_default();
    let mut history = History::decoded(&kept);
    let mut words = Words::default();
    // Also tells at once whether there is a node.
    learn(session, runtime, &mut words)?;
    println!(
        "cachesql {}. Statements end with ;  \\? lists commands, Tab completes, \\q leaves.",
        env!("CARGO_PKG_VERSION")
    );
    while let Some(text) = read_statement(&mut history, &words)? {
        if text.is_empty() {
            continue;
        }
        history.add(&text);
        if !take(session, runtime, &mut words, &text) {
            break;
        }
    }
    if let Some(file) = &file
        && let Err(error) = std::fs::write(file, history.encoded())
    {
        eprintln!("the history was not kept: {}: {error}", file.display());
    }
    Ok(())
}

/// Reads lines until a statement is whole; `None` when the user leaves, nothing when the statement was given up.
fn read_statement(history: &mut History, words: &Words) -> Result<Option<String>, Failure> {
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { PROMPT } else { MORE_PROMPT };
        let entered = terminal::read_line(prompt, history, words);
        match entered.map_err(|e| Failure::Failed(format!("the terminal: {e}")))? {
            Entered::End => return Ok(None),
            Entered::Cancelled => return Ok(Some(String::new())),
            Entered::Line(line) if line.starts_with('\\') && !text.is_empty() && is_outside(&text) => {
                eprintln!("a statement ends with ;  What was begun is given up.");
                text = line;
            }
            Entered::Line(line) => text.push_str(&line),
        }
        let is_command = text.starts_with('\\') || ["exit", "quit", "help"].contains(&text.trim());
        if is_command || is_complete(&text) {
            return Ok(Some(text.trim().to_owned()));
        }
        text.push('\n');
    }
}

fn history_file() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".cachesql_history"))
}

fn learn(session: &mut Session, runtime: &Runtime, words: &mut Words) -> Result<(), Failure> {
    match runtime.block_on(session.tables()) {
        Ok(tables) => words.learn(&tables),
        Err(failure @ Failure::Unreachable(_)) => return Err(failure),
        // Completion then knows keywords only.
        Err(_) => {}
    }
    Ok(())
}

/// Runs what was entered; false when it was the wish to leave.
fn take(session: &mut Session, runtime: &Runtime, words: &mut Words, text: &str) -> bool {
    let entry = match command::entry(text) {
        Ok(entry) => entry,
        Err(why) => {
            eprintln!("{why}");
            return true;
        }
    };
    match entry {
        Entry::Leave => return false,
        Entry::Help => COMMANDS.iter().for_each(|(command, about)| println!("{command:<9} {about}")),
        Entry::Tables => describe_tables(session, runtime, None),
        Entry::Describe(name) => describe_tables(session, runtime, Some(name)),
        Entry::Timing(wanted) => {
            session.timing = wanted.unwrap_or(!session.timing);
            println!("timing is {}", if session.timing { "on" } else { "off" });
        }
        Entry::Expanded(wanted) => {
            let switched = if session.expanded == Expanded::On { Expanded::Auto } else { Expanded::On };
            session.expanded = wanted.unwrap_or(switched);
            let state = match session.expanded {
                Expanded::Auto => "auto",
                Expanded::On => "on",
                Expanded::Off => "off",
            };
            println!("one value a line is {state}");
        }
        Entry::Include(path) => match std::fs::File::open(path) {
            Ok(file) => report(runtime.block_on(run_text(session, std::io::BufReader::new(file)))),
            Err(error) => eprintln!("{path}: {error}"),
        },
        Entry::Statements => run_statements(session, runtime, words, text),
    }
    true
}

fn run_statements(session: &mut Session, runtime: &Runtime, words: &mut Words, text: &str) {
    let mut splitter = Splitter::default();
    let mut statements = splitter.push(text);
    statements.extend(splitter.finish());
    for statement in statements {
        let outcome = runtime.block_on(async {
            tokio::select! {
                outcome = session.run(&statement) => Some(outcome),
                _ = tokio::signal::ctrl_c() => None,
            }
        });
        let Some(outcome) = outcome else {
            // The connection is given up with the request, and the node stops working for it.
            eprintln!("cancelled");
            return;
        };
        let failed = outcome.is_err();
        report(outcome);
        if failed {
            return;
        }
        if is_definition(&statement) {
            report(learn(session, runtime, words));
        }
    }
}

fn describe_tables(session: &mut Session, runtime: &Runtime, name: Option<&str>) {
    let tables = match runtime.block_on(session.tables()) {
        Ok(tables) => tables,
        Err(failure) => return report(Err(failure)),
    };
    let (grid, lines) = match name {
        None => (describe::tables(&tables), Vec::new()),
        Some(name) => match describe::table(&tables, name) {
            Some(described) => described,
            None => return eprintln!("there is no table {name}; \\dt lists them"),
        },
    };
    report(session.print(&grid));
    lines.iter().for_each(|line| println!("{line}"));
}

fn report(outcome: Result<(), Failure>) {
    if let Err(failure) = outcome {
        eprintln!("error: {failure}");
    }
}
