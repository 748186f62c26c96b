//! `bench/results.md`: a section for each bench, replaced when that bench runs again.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::figures::{Comparison, table};
use crate::failure::{Context, Outcome};
use crate::steps::output;

const FILE: &str = "bench/results.md";

const HEAD: &str = "\
# Results

Written by `cargo xtask bench`; do not edit. Ours and the peer run in separate processes and take turns, round by round, on one machine; a ratio is of one round, and the middle one of all rounds counts (least and most in brackets). Absolute figures on a shared machine mean nothing. \"CPU µs\" is user and system time of the server for each request: the load generator takes a core of its own, and is often the limit.
";

/// What a bench has to tell beside its table.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// How it was measured, in a sentence or two.
    pub(crate) method: String,
    /// Names and versions of the peers.
    pub(crate) versions: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) comparisons: Vec<Comparison>,
}

impl Section {
    fn text(&self, machine: &str) -> String {
        let Self { name, method, versions, rounds, comparisons } = self;
        format!(
            "## {name}\n\n{}\n{method}\n\n{rounds} rounds. {}. {machine}\n",
            table(comparisons),
            versions.join(", ")
        )
    }
}

pub(crate) fn write(root: &Path, section: &Section, order: &[&str]) -> Outcome<()> {
    let path = root.join(FILE);
    let old = fs::read_to_string(&path).unwrap_or_default();
    let new = merge(&old, section.name, &section.text(&machine(root)), order);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).context(|| folder.display().to_string())?;
    }
    fs::write(&path, new).context(|| FILE.to_owned())
}

/// The page with one section replaced, sections in the given order.
fn merge(old: &str, name: &str, section: &str, order: &[&str]) -> String {
    let mut page = HEAD.to_owned();
    for one in order {
        let heading = format!("## {one}\n");
        let text = if *one == name {
            Some(section.trim_end().to_owned())
        } else {
            old.split_once(&heading).map(|(_, rest)| {
                let body = rest.split_once("\n## ").map_or(rest, |(body, _)| body);
                format!("{heading}{}", body.trim_end())
            })
        };
        if let Some(text) = text {
            page.push_str(&format!("\n{text}\n"));
        }
    }
    page
}

fn machine(root: &Path) -> String {
    let said = |command: &mut Command| output(command).map(|text| text.trim().to_owned()).unwrap_or_default();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{}, commit {}, {}; {model}, {cores} cores, Linux {}, load average at the end {}.",
        said(Command::new("date").args(["-u", "+%Y-%m-%d"])),
        said(Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root)),
        said(Command::new("rustc").arg("--version")),
        said(Command::new("uname").arg("-r")),
        load.split_whitespace().next().unwrap_or("?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_others_stay_in_order() {
        let order = ["a", "b", "c"];
        let page = merge("", "c", "## c\n\nthird\n", &order);
        let page = merge(&page, "a", "## a\n\nfirst\n", &order);
        let page = merge(&page, "c", "## c\n\nthird again\n", &order);
        assert_eq!(page, format!("{HEAD}\n## a\n\nfirst\n\n## c\n\nthird again\n"));
    }
}
