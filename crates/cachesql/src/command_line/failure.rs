//! How a command ends: what went wrong, and the exit code that says it to programs.

use std::process::ExitCode;

use crate::config::ConfigError;

/// The exit codes, as the help and the documents say them.
pub(super) const EXIT_CODES: &str = "Exit codes:
  0  done
  1  failed: a statement was refused, a load broke off, a door could not be opened
  2  the command line is wrong
  3  the configuration is wrong
  4  the node cannot be reached, or went away";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It was tried, and did not work.
    #[error("{0}")]
    Failed(String),
    /// The command line asks for something that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The configuration is wrong.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// The node cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// Whoever reads our output is gone: no reason to say anything.
    #[error("nobody reads the output any more")]
    OutputClosed,
}

impl Failure {
    /// What the process ends with.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Failed(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Configuration(_) => 3,
            Failure::Unreachable(_) => 4,
            Failure::OutputClosed => 0,
        })
    }

    /// Writing to standard output failed.
    pub(super) fn output(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Failed(format!("standard output: {error}")),
        }
    }
}
