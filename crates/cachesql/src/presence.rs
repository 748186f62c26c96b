//! What a configuration names outside of itself, files and environment variables, and whether it is there now.

use std::path::Path;

use crate::config::{Configuration, Place, Problem, Secret, TableSource};

/// What is not there, by what comes of it.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    /// A node does not start without these.
    pub needed: Vec<Problem>,
    /// Tables are not loaded without these; or they are variables that the environment of the node may have, if not this one.
    pub missing: Vec<Problem>,
}

/// Looks for all that a configuration names. No database is asked, and of files no more is read than secrets.
pub(crate) fn absent(configuration: &Configuration) -> Absent {
    let mut absent = Absent::default();
    let problem = |place: Place, message: String| {
        let Place { line, column } = place;
        Problem { file: configuration.file.display().to_string(), line, column, message }
    };
    // The secrets of origins that nothing is loaded from need not be there.
    let is_asked = |name: &str| {
        let asks = |source: &TableSource| matches!(source, TableSource::Query { origin, .. } if origin == name);
        configuration.tables.iter().any(|table| asks(&table.source))
    };
    let passwords = configuration.origins.iter().filter(|origin| is_asked(&origin.name)).filter_map(|origin| {
        let password = origin.password.as_ref()?;
        Some((format!("[origins.{}] password", origin.name), password))
    });
    let token = configuration.token.iter().map(|token| ("[access] token".to_owned(), token));
    for (what, placed) in token.chain(passwords) {
        let Err(why) = placed.secret.reveal() else { continue };
        let found = problem(placed.place, format!("{what}: {why}"));
        match placed.secret {
            Secret::Environment(_) => absent.missing.push(found),
            Secret::File(_) | Secret::Plain(_) => absent.needed.push(found),
        }
    }
    for origin in &configuration.origins {
        let files = origin.url.iter().flat_map(|url| url.local_files());
        for (path, why) in files.filter_map(|path| Some((path, unreadable(path)?))) {
            let message = format!("[origins.{}] url: {}: {why}", origin.name, path.display());
            absent.missing.push(problem(origin.url_place, message));
        }
    }
    for table in &configuration.tables {
        if let (TableSource::File(file), Some(place)) = (&table.source, table.file_place)
            && let Some(why) = unreadable(&file.path)
        {
            let message = format!("[tables.{}] file: {}: {why}", table.name, file.path.display());
            absent.missing.push(problem(place, message));
        }
    }
    absent.missing.sort_by_key(|p| (p.line, p.column));
    absent.needed.sort_by_key(|p| (p.line, p.column));
    absent
}

/// Why a file cannot be read; `None` when it can.
fn unreadable(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Err(error) => Some(error.to_string()),
        Ok(found) if found.is_dir() => Some("it is a folder".into()),
        // Opening shows whether it may be read. What is no plain file, a pipe for instance, could wait for ever.
        Ok(found) if found.is_file() => std::fs::File::open(path).err().map(|error| error.to_string()),
        Ok(_) => None,
    }
}
