//! What README.md shows is what happens: every `$ …` line of its console blocks is run on the sample, and must print what the
//! page says.

use std::process::Command;

use crate::running::Running;

struct Example {
    command: String,
    expected: String,
}

/// The commands of the blocks marked `console`, each with the lines that follow it.
fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_block = false;
    let mut continues = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_block = line == "```console";
            continues = false;
        } else if in_block && continues {
            let last = examples.last_mut().expect("a command goes on");
            last.command.push_str(&format!("\n{line}"));
            continues = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
            examples.push(Example { command: command.to_owned(), expected: String::new() });
            continues = line.ends_with('\\');
        } else if in_block && let Some(example) = examples.last_mut() {
            example.expected.push_str(&format!("{line}\n"));
        }
    }
    examples
}

#[test]
fn the_examples_of_the_readme_print_what_it_says() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no curl on this machine, so the README's examples were not tried");
        return;
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("there");
    let examples = examples(&page);
    assert!(examples.len() >= 7, "{} examples are found", examples.len());
    let node = Running::sample();
    let address = node.url.trim_start_matches("http://");
    for Example { command, expected } in examples {
        let binary = env!("CARGO_BIN_EXE_cachesql");
        let line = command.replace("127.0.0.1:8080", address).replace("curl ", "curl -s ");
        let line = if let Some(rest) = line.strip_prefix("cachesql ") { format!("{binary} {rest}") } else { line };
        let output = Command::new("sh").arg("-c").arg(&line).env("CACHESQL_URL", &node.url).output().expect("sh runs");
        let printed = String::from_utf8(output.stdout).expect("text").replace("\r\n", "\n");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(printed.trim_end(), expected.trim_end(), "{command}\n{complaint}");
    }
}
