//! Where log lines go: standard error, readable or as JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::terminal::Lines;

/// Starts logging. The error says what is wrong with `levels`.
pub(super) fn start(levels: &str, json: bool) -> Result<(), String> {
    // What consensus says of itself is for its authors; what operators need is said by the node.
    let filter =
        EnvFilter::try_new(format!("openraft=error,{levels}")).map_err(|e| format!("--log {levels:?}: {e}"))?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Lines);
    let started = if json {
        subscriber.json().try_init()
    } else {
        subscriber.with_target(false).with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    started.map_err(|e| format!("logging: {e}"))
}
