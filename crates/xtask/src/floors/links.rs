//! Links of the documents to files of ours, and to headings within them, exist.

use std::fs;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::failure::{Context, Failure, Outcome};
use crate::workspace::{relative, sorted_entries};

/// Documents that must be there.
const PAGES: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "deny.toml"];

pub(crate) fn check(root: &Path) -> Outcome<Vec<Finding>> {
    let mut findings = Vec::new();
    for page in PAGES {
        if !root.join(page).is_file() {
            findings.push(Finding::error(*page, "is missing"));
        }
    }
    let mut pages: Vec<PathBuf> = Vec::new();
    for folder in [root.to_path_buf(), root.join("docs"), root.join("bench")] {
        if folder.is_dir() {
            pages.extend(
                sorted_entries(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")),
            );
        }
    }
    for page in pages {
        let text = fs::read_to_string(&page).context(|| page.display().to_string())?;
        let name = relative(root, &page);
        let folder = page.parent().ok_or_else(|| Failure::new(format!("{name} is in no folder")))?;
        for (line, target) in links(&text) {
            if let Some(message) = broken(&text, folder, &target) {
                findings.push(Finding::error(format!("{name}:{line}"), message));
            }
        }
    }
    Ok(findings)
}

fn broken(own_text: &str, folder: &Path, target: &str) -> Option<String> {
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let text = if file.is_empty() {
        own_text.to_owned()
    } else {
        let path = folder.join(file);
        if !path.exists() {
            return Some(format!("links to {file}, which does not exist"));
        }
        if heading.is_none() || path.extension().is_none_or(|extension| extension != "md") {
            return None;
        }
        fs::read_to_string(path).ok()?
    };
    let heading = heading?;
    let there = without_fences(&text).any(|(_, line)| line.starts_with('#') && slug(line) == heading);
    (!there).then(|| format!("links to #{heading}, and no heading is called so"))
}

/// A heading's anchor, as GitHub makes it.
fn slug(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

/// Targets of `[text](target)` that are not on another host, with their line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in without_fences(text) {
        let mut outside_code = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        while let Some(start) = outside_code.find("](") {
            let rest = outside_code.split_off(start + 2);
            if let Some((target, _)) = rest.split_once(')') {
                let target = target.split_whitespace().next().unwrap_or_default();
                let elsewhere = target.contains("://") || target.starts_with("mailto:");
                if !target.is_empty() && !elsewhere {
                    found.push((at, target.to_owned()));
                }
            }
            outside_code = rest;
        }
    }
    found
}

/// Lines with their numbers, code blocks left out.
fn without_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(readme: &str) -> Vec<String> {
        let root = tempfile::tempdir().expect("a folder");
        for page in PAGES {
            fs::write(root.path().join(page), "# A page\n\n## What it does, and how\n").expect("a page");
        }
        fs::write(root.path().join("README.md"), readme).expect("a page");
        let findings = check(root.path()).expect("pages");
        findings.into_iter().map(|finding| format!("{} {}", finding.place, finding.message)).collect()
    }

    #[test]
    fn links_that_hold_pass() {
        let readme = "# Start\n[a](ARCHITECTURE.md) [b](ARCHITECTURE.md#what-it-does-and-how) [c](#start)\n\
            [d](https://example.org/x#y) `[e](gone.md)`\n```\n[f](gone.md)\n```\n";
        assert_eq!(messages(readme), Vec::<String>::new());
    }

    #[test]
    fn a_link_to_a_file_that_is_gone_is_caught() {
        assert_eq!(
            messages("x\n[a](LICENSE) and [b](gone.md)"),
            ["README.md:2 links to gone.md, which does not exist"]
        );
        assert_eq!(messages("![a](gone.png \"title\")"), ["README.md:1 links to gone.png, which does not exist"]);
    }

    #[test]
    fn a_link_to_a_heading_that_is_gone_is_caught() {
        let gone = ["README.md:1 links to #end, and no heading is called so"];
        assert_eq!(messages("[a](#end)"), gone);
        assert_eq!(messages("[a](CHANGELOG.md#end)"), gone);
    }

    #[test]
    fn a_page_that_is_missing_is_caught() {
        let root = tempfile::tempdir().expect("a folder");
        let findings = check(root.path()).expect("pages");
        assert!(findings.iter().any(|finding| finding.place == "LICENSE" && finding.message == "is missing"));
    }
}
