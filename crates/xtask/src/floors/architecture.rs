//! ARCHITECTURE.md against the code. Its own convention:
//!
//! - a symbol is written `` `crate::path::symbol` ``, the crate by its folder; modules on the way may be left out;
//! - a file is written `` `crates/…` ``;
//! - every numbered step below a heading "The life of …" names at least one symbol.
//!
//! All symbols and files named anywhere on the page must exist.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::Finding;
use super::symbols::Symbols;
use super::table::floor;
use crate::failure::{Context, Outcome};
use crate::workspace::Crate;

const PAGE: &str = "ARCHITECTURE.md";
/// Lives that the page must tell.
const LIVES: &[&str] = &["read", "write", "load"];

pub(crate) fn check(root: &Path, crates: &[Crate]) -> Outcome<Vec<Finding>> {
    let text = fs::read_to_string(root.join(PAGE)).context(|| PAGE.to_owned())?;
    Ok(check_text(&text, crates, &|path| root.join(path).exists()))
}

fn check_text(text: &str, crates: &[Crate], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let symbols: HashMap<&str, Symbols> = crates.iter().map(|one| (one.folder.as_str(), Symbols::of(one))).collect();
    let mut findings = Vec::new();
    for (line, reference) in references(text) {
        let place = format!("{PAGE}:{line}");
        if reference.starts_with("crates/") {
            if !exists(&reference) {
                findings.push(Finding::error(place, format!("`{reference}` does not exist")));
            }
            continue;
        }
        let parts: Vec<&str> = reference.split("::").collect();
        let [folder, path @ ..] = parts.as_slice() else { continue };
        match symbols.get(folder) {
            Some(symbols) if !symbols.contains(path) => {
                findings.push(Finding::error(place, format!("`{reference}` names nothing in crates/{folder}")));
            }
            Some(_) => {}
            None if floor(folder).is_some() => {
                findings.push(Finding::error(place, format!("`{reference}`: crates/{folder} does not exist")));
            }
            None => {}
        }
    }
    let steps = steps(text);
    for step in &steps {
        let named = references(&step.text)
            .iter()
            .any(|(_, reference)| reference.split_once("::").is_some_and(|(folder, _)| floor(folder).is_some()));
        if !named {
            findings.push(Finding::error(format!("{PAGE}:{}", step.line), "a step of a life names no symbol"));
        }
    }
    for life in LIVES {
        if !steps.iter().any(|step| step.life.split_whitespace().any(|word| word.trim_matches(',') == *life)) {
            findings.push(Finding::error(PAGE, format!("lacks the life of a {life}, in numbered steps")));
        }
    }
    findings
}

/// Code spans that look like a symbol or a file of ours, with their line; fenced blocks are not read.
fn references(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let span = span.trim_end_matches("()");
            let symbol = span.contains("::") && span.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
            if symbol || span.starts_with("crates/") {
                found.push((at + 1, span.to_owned()));
            }
        }
    }
    found
}

struct Step {
    line: usize,
    life: String,
    text: String,
}

/// Numbered items, continuation lines included, below a heading "The life of …".
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut life: Option<String> = None;
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim();
            life = heading.to_lowercase().strip_prefix("the life of").map(str::to_owned);
            open = false;
        }
        let Some(life) = &life else { continue };
        let numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if numbered {
            steps.push(Step { line: at + 1, life: life.clone(), text: line.to_owned() });
            open = true;
        } else if line.trim().is_empty() {
            open = false;
        } else if let (true, Some(step)) = (open, steps.last_mut()) {
            step.text.push('\n');
            step.text.push_str(line);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::SourceFile;

    const LIVES: &str = "# The life of a read\n1. `table::get`\n# The life of a write\n1. `table::get`\n\
        # The life of a load, and of a refresh\n1. `table::get`\n";

    fn messages(text: &str) -> Vec<String> {
        let one = Crate {
            folder: "table".into(),
            manifest: toml::Table::new(),
            files: vec![SourceFile::new("crates/table/src/lib.rs", "//! X.\nfn get() {}")],
        };
        let exists = |path: &str| path == "crates/table/src/lib.rs";
        check_text(text, &[one], &exists)
            .into_iter()
            .map(|finding| format!("{} {}", finding.place.trim_start_matches("ARCHITECTURE.md:"), finding.message))
            .collect()
    }

    #[test]
    fn a_page_that_holds_passes() {
        assert_eq!(
            messages(&format!("{LIVES}See `crates/table/src/lib.rs`, `std::sync::Arc`.\n")),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_symbol_that_is_gone_is_caught() {
        let text = format!("{LIVES}Also `table::put()`.\n");
        assert_eq!(messages(&text), ["7 `table::put` names nothing in crates/table"]);
    }

    #[test]
    fn a_crate_or_file_that_is_not_there_is_caught() {
        assert_eq!(messages(&format!("{LIVES}`ring::owner`\n")), ["7 `ring::owner`: crates/ring does not exist"]);
        assert_eq!(messages(&format!("{LIVES}`crates/ring`\n")), ["7 `crates/ring` does not exist"]);
    }

    #[test]
    fn a_step_without_a_symbol_is_caught() {
        let text = format!("{LIVES}2. Then a miracle,\n   told at length.\n3. And\n   `table::get`.\n");
        assert_eq!(messages(&text), ["7 a step of a life names no symbol"]);
    }

    #[test]
    fn a_life_that_is_not_told_is_caught() {
        let text = LIVES.replace("# The life of a write\n1. `table::get`\n", "");
        assert_eq!(messages(&text), ["ARCHITECTURE.md lacks the life of a write, in numbered steps"]);
    }

    #[test]
    fn fenced_blocks_are_not_read() {
        assert_eq!(messages(&format!("{LIVES}\n```text\n`table::put`\n```\n")), Vec::<String>::new());
    }
}
