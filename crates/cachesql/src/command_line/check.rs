//! `cachesql check`: everything that is wrong with a configuration file.

use serde_json::json;

use super::arguments::CheckArguments;
use super::failure::Failure;
use crate::config::{self, ConfigError, Configuration};

pub(super) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let outcome = config::read_file(&arguments.file).and_then(protected);
    if arguments.json {
        println!("{}", as_json(&outcome));
        return match outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        };
    }
    let configuration = outcome?;
    for notice in &configuration.notices {
        println!("note: {notice}");
    }
    println!("{}: sound ({})", arguments.file.display(), contents(&configuration));
    Ok(())
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
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let parts = [
        count(configuration.nodes.len(), "node"),
        count(configuration.origins.len(), "origin"),
        count(configuration.tables.len(), "table"),
    ];
    parts.join(", ")
}

fn as_json(outcome: &Result<Configuration, ConfigError>) -> serde_json::Value {
    match outcome {
        Ok(configuration) => json!({
            "sound": true,
            "notices": configuration.notices,
            "nodes": configuration.nodes.iter().map(|n| &n.name).collect::<Vec<_>>(),
            "tables": configuration.tables.iter().map(|t| &t.name).collect::<Vec<_>>(),
        }),
        Err(ConfigError::Invalid(problems)) => {
            let problem =
                |p: &config::Problem| json!({"file": p.file, "line": p.line, "column": p.column, "message": p.message});
            json!({ "sound": false, "problems": problems.iter().map(problem).collect::<Vec<_>>() })
        }
        Err(other) => json!({ "sound": false, "problems": [{ "message": other.to_string() }] }),
    }
}
