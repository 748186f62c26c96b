//! `cargo xtask floors`: what the design says is absent, checked.
//!
//! - [`manifests`]: a crate depends only on crates below it, and on outside crates that belong to it;
//! - [`imports`]: no sockets, files, clocks or randomness where there must be none;
//! - [`files`]: every file says what it is, and is one idea long;
//! - [`architecture`]: every step of ARCHITECTURE.md names a symbol that exists;
//! - [`links`]: what the documents point at is there.

mod architecture;
mod files;
mod imports;
mod links;
mod manifests;
mod symbols;
mod table;

use std::fmt;
use std::path::Path;

use crate::failure::{Failure, Outcome};
use crate::workspace;

/// One thing that a check has to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// `file` or `file:line`.
    pub(crate) place: String,
    pub(crate) message: String,
    /// A warning is shown and does not fail the check.
    pub(crate) warning: bool,
}

impl Finding {
    pub(crate) fn error(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into(), warning: false }
    }

    pub(crate) fn warning(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into(), warning: true }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.warning { "warning" } else { "error" };
        write!(f, "{kind}: {}: {}", self.place, self.message)
    }
}

pub(crate) fn report(root: &Path) -> Outcome<()> {
    let crates = workspace::crates(root)?;
    let mut findings = Vec::new();
    for one in &crates {
        findings.extend(manifests::check(one));
        for file in &one.files {
            findings.extend(imports::check(&one.folder, file));
            findings.extend(files::check(file));
        }
    }
    findings.extend(architecture::check(root, &crates)?);
    findings.extend(links::check(root)?);

    findings.sort_by(|a, b| b.warning.cmp(&a.warning).then_with(|| a.place.cmp(&b.place)));
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| !finding.warning).count();
    let file_count: usize = crates.iter().map(|one| one.files.len()).sum();
    println!(
        "floors: {} crates, {file_count} files, {errors} errors, {} warnings",
        crates.len(),
        findings.len() - errors
    );
    if errors > 0 { Err(Failure::new(format!("floors: {errors} errors"))) } else { Ok(()) }
}
