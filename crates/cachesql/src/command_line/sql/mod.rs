//! `cachesql sql`: a statement, a file, a pipe, or a shell.

mod command;
mod complete;
mod describe;
mod line;
mod session;
mod shell;
mod split;
mod terminal;

use std::io::{BufRead, BufReader, IsTerminal as _};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};

use super::arguments::SqlArguments;
use super::client::{Client, Target};
use super::failure::Failure;
use session::{Format, Session};
use split::Splitter;

/// The most of an answer that is held to be printed in a frame.
const SHOWN_BYTES: usize = 256 << 20;

/// The most that one line of a file or pipe may have.
const LINE_BYTES: u64 = 64 << 20;

pub(super) fn run(arguments: SqlArguments) -> Result<(), Failure> {
    let format = match (arguments.json, arguments.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Table,
    };
    let client = Client::new(Target::new(&arguments.node)?);
    let mut session = Session::new(client, format, arguments.consistency, std::io::stdout().is_terminal());
    let reads_input = arguments.file.as_deref().is_some_and(|path| path.as_os_str() == "-");
    let runtime = super::runtime(tokio::runtime::Builder::new_current_thread())?;
    if let Some(statement) = arguments.statement {
        return runtime.block_on(run_text(&mut session, statement.as_bytes()));
    }
    if let Some(path) = arguments.file.filter(|path| path.as_os_str() != "-") {
        let file = std::fs::File::open(&path).map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))?;
        return runtime.block_on(run_text(&mut session, BufReader::new(file)));
    }
    if !reads_input && std::io::stdin().is_terminal() {
        return shell::run(&mut session, &runtime);
    }
    runtime.block_on(run_text(&mut session, std::io::stdin().lock()))
}

/// Runs statement after statement of a text; the first that fails ends it.
async fn run_text(session: &mut Session, mut text: impl BufRead) -> Result<(), Failure> {
    let mut splitter = Splitter::default();
    let mut line = String::new();
    let mut is_first = true;
    loop {
        line.clear();
        let read = std::io::Read::take(&mut text, LINE_BYTES).read_line(&mut line);
        if read.map_err(|e| Failure::Failed(format!("the statements cannot be read: {e}")))? == 0 {
            break;
        }
        // Some editors put a byte order mark before UTF-8; it is no part of the first statement.
        let mark = if std::mem::take(&mut is_first) { "\u{feff}" } else { "" };
        for statement in splitter.push(line.strip_prefix(mark).unwrap_or(&line)) {
            session.run(&statement).await?;
        }
    }
    match splitter.finish() {
        Some(statement) => session.run(&statement).await,
        None => Ok(()),
    }
}

async fn whole_body(body: hyper::body::Incoming) -> Result<Bytes, Failure> {
    let collected = Limited::new(body, SHOWN_BYTES).collect().await.map_err(|e| {
        if e.is::<http_body_util::LengthLimitError>() {
            Failure::Failed("the answer is too large for a frame; ask for --csv or --json, or put a LIMIT".into())
        } else {
            Failure::Unreachable(format!("the node went away in the middle of the answer: {e}"))
        }
    })?;
    Ok(collected.to_bytes())
}
