//! The command line: reads the arguments, sets up logging, runs the command, ends with the code that tells how it went.

mod arguments;
mod bench;
mod check;
mod client;
mod cluster;
mod demo;
mod failure;
mod histogram;
mod load;
mod logging;
#[cfg(test)]
mod reference;
mod render;
mod sample;
mod serve;
mod sql;
mod stop;
mod terminal;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

pub use arguments::Arguments;
use arguments::{Command, ServeArguments};
use failure::Failure;

/// Runs what the process was called with.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(message) = logging::start(&arguments.log, arguments.log_json) {
        eprintln!("error: {message}");
        return Failure::Usage(message).exit_code();
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed) {
                eprintln!("error: {failure}");
            }
            failure.exit_code()
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command.unwrap_or(Command::Serve(ServeArguments::default())) {
        Command::Serve(serve) => on_all_cores(serve::run(serve)),
        Command::Bench(bench) => on_all_cores(bench::run(bench)),
        Command::Sql(sql) => sql::run(sql),
        Command::Load(load) => on_this_thread(load::run(load)),
        Command::Cluster(cluster) => on_this_thread(cluster::run(cluster)),
        Command::Demo(demo) => on_this_thread(demo::run(demo)),
        Command::Check(check) => check::run(&check),
        Command::Completions { shell } => {
            // Written at once: the generator panics when its reader is gone.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "cachesql", &mut script);
            std::io::stdout().write_all(&script).map_err(Failure::output)
        }
    }
}

fn on_all_cores<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    runtime(tokio::runtime::Builder::new_multi_thread())?.block_on(work)
}

fn on_this_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    runtime(tokio::runtime::Builder::new_current_thread())?.block_on(work)
}

fn runtime(mut builder: tokio::runtime::Builder) -> Result<tokio::runtime::Runtime, Failure> {
    builder.enable_all().build().map_err(|e| Failure::Failed(format!("cannot start: {e}")))
}
