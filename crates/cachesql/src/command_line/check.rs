//! `cachesql check`: everything that is wrong with a configuration file, and what it names that is not there.

use serde_json::json;

use super::arguments::CheckArguments;
use super::failure::Failure;
use super::terminal::print_line;
use crate::config::units::show_count;
use crate::config::{self, ConfigError, Configuration, Problem};
use crate::presence;

pub(super) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let read = config::read_file(&arguments.file).and_then(protected);
    let absent = read.as_ref().map(presence::absent).unwrap_or_default();
    let outcome = match absent.needed.is_empty() {
        true => read,
        false => read.and(Err(ConfigError::Invalid(absent.needed))),
    };
    if arguments.json {
        print_line(as_json(&outcome, &absent.missing))?;
        return match outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        };
    }
    for problem in &absent.missing {
        print_line(format_args!("warning: {problem}"))?;
    }
    let configuration = outcome?;
    for notice in &configuration.notices {
        print_line(format_args!("note: {notice}"))?;
    }
    print_line(format_args!("{}: sound ({})", arguments.file.display(), contents(&configuration)))
}

/// All nodes of the file that everyone could ask, as one error.
fn protected(configuration: Configuration) -> Result<Configuration, ConfigError> {
    let mut problems = Vec::new();
    for node in &configuration.nodes {
        match configuration.check_protection(node) {
            Err(ConfigError::Invalid(found)) => problems.extend(found),
            other => other?,
        }
    }
    if problems.is_empty() { Ok(configuration) } else { Err(ConfigError::Invalid(problems)) }
}

fn contents(configuration: &Configuration) -> String {
    let parts = [
        show_count(configuration.nodes.len(), "node"),
        show_count(configuration.origins.len(), "origin"),
        show_count(configuration.tables.len(), "table"),
    ];
    parts.join(", ")
}

fn as_json(outcome: &Result<Configuration, ConfigError>, missing: &[Problem]) -> serde_json::Value {
    let listed = |problems: &[Problem]| {
        let one = |p: &Problem| json!({"file": p.file, "line": p.line, "column": p.column, "message": p.message});
        problems.iter().map(one).collect::<Vec<_>>()
    };
    let warnings = listed(missing);
    match outcome {
        Ok(configuration) => json!({
            "sound": true,
            "warnings": warnings,
            "notices": configuration.notices,
            "nodes": configuration.nodes.iter().map(|n| &n.name).collect::<Vec<_>>(),
            "tables": configuration.tables.iter().map(|t| &t.name).collect::<Vec<_>>(),
        }),
        Err(ConfigError::Invalid(problems)) => {
            json!({ "sound": false, "problems": listed(problems), "warnings": warnings })
        }
        Err(other) => {
            json!({ "sound": false, "problems": [{ "message": other.to_string() }], "warnings": warnings })
        }
    }
}
