//! The workspace as the checks see it: crates with their manifests, and source files parsed once.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Context, Outcome};

/// One folder of `crates/`.
pub(crate) struct Crate {
    /// Name of the folder, which is the crate's name without `cachesql-`.
    pub(crate) folder: String,
    pub(crate) manifest: toml::Table,
    pub(crate) files: Vec<SourceFile>,
}

/// One `.rs` file of a crate.
pub(crate) struct SourceFile {
    /// Relative to the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: Result<syn::File, syn::Error>,
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), syntax: syn::parse_file(text) }
    }

    /// Whether the whole file is only compiled for tests: `tests/…`, `benches/…`, `tests.rs`, `…_tests.rs`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "benches" || part == "examples")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
    }
}

pub(crate) fn crates(root: &Path) -> Outcome<Vec<Crate>> {
    let mut crates = Vec::new();
    for folder in sorted_entries(&root.join("crates"))? {
        let manifest_path = folder.join("Cargo.toml");
        if !manifest_path.is_file() {
            continue;
        }
        let text = fs::read_to_string(&manifest_path).context(|| manifest_path.display().to_string())?;
        let manifest = text.parse::<toml::Table>().context(|| manifest_path.display().to_string())?;
        let mut paths = Vec::new();
        collect_rust(&folder, &mut paths)?;
        let mut files = Vec::new();
        for path in paths {
            let text = fs::read_to_string(&path).context(|| path.display().to_string())?;
            files.push(SourceFile::new(&relative(root, &path), &text));
        }
        let folder = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        crates.push(Crate { folder, manifest, files });
    }
    Ok(crates)
}

fn collect_rust(folder: &Path, into: &mut Vec<PathBuf>) -> Outcome<()> {
    for path in sorted_entries(folder)? {
        let hidden = path.file_name().is_some_and(|name| name == "target" || name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden {
            collect_rust(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

pub(crate) fn sorted_entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).context(|| folder.display().to_string())? {
        paths.push(entry.context(|| folder.display().to_string())?.path());
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}
