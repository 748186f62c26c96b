//! A configuration file: which of the two kinds it is, and `cachesql.properties`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use cachesql_types::limits::CONFIG_BYTES;
use cachesql_types::properties::{self, Property};

use super::problem::{ConfigError, Findings};
use super::{Configured, ConfiguredGroup, Settings, authorization, document};
use crate::address::Address;

/// Reads and checks a file. A name that ends in `.toml` is read as `cachesql.toml`, any other as Java properties.
pub(crate) fn read(path: &Path) -> Result<Configured, ConfigError> {
    let name = path.display().to_string();
    let unreadable = |reason: String| ConfigError::Unreadable { file: name.clone(), reason };
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > CONFIG_BYTES {
        return Err(unreadable(format!(
            "it has more than {CONFIG_BYTES} bytes, the most that a configuration may have"
        )));
    }
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return read_properties(&name, &properties::decode(&bytes));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| unreadable(format!("it is not UTF-8: {error}")))?;
    document::read(&name, text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Reads the text of `cachesql.properties`. Keys that do not begin with `cachesql.` are other programs'.
pub(super) fn read_properties(file: &str, text: &str) -> Result<Configured, ConfigError> {
    let mut reader = PropertiesReader { findings: Findings::new(file), entries: BTreeMap::new() };
    for entry in properties::parse(text) {
        match entry {
            Ok(property) if property.key.starts_with("cachesql.") => {
                // As Java has it, the last one counts.
                reader.entries.insert(property.key.clone(), property);
            }
            Ok(_) => {}
            Err(broken) => reader.findings.note(broken.line, broken.message),
        }
    }
    let settings = reader.settings();
    let groups = reader.groups();
    check_tables(
        &mut reader.findings,
        groups
            .iter()
            .flat_map(|(group, line)| group.tables.iter().map(|table| (table.as_str(), group.name.as_str(), *line))),
    );
    let groups: Vec<_> = groups.into_iter().map(|(group, _)| group).collect();
    // Nodes of this file are called by the host and port of their addresses.
    let names = groups.iter().flat_map(|group| &group.members).map(|a| (a.authority(), a.clone())).collect();
    reader.findings.conclude(Configured { groups, names, settings })
}

/// Notes tables that are in two groups, each given with its group and its line. Names are matched without case.
pub(super) fn check_tables<'a>(findings: &mut Findings, tables: impl Iterator<Item = (&'a str, &'a str, usize)>) {
    let mut owners: BTreeMap<String, (&str, &str, usize)> = BTreeMap::new();
    for (table, group, line) in tables {
        let owner = owners.entry(table.to_lowercase()).or_insert((table, group, line));
        if owner.1 != group {
            let as_there = if owner.0 == table { String::new() } else { format!(" (as {:?})", owner.0) };
            let message = format!(
                "table {table:?} is in two groups: {:?}{as_there}, line {}, and {group:?}, line {line}",
                owner.1, owner.2
            );
            findings.note(line, message);
        }
    }
}

struct PropertiesReader {
    findings: Findings,
    entries: BTreeMap<String, Property>,
}

const GROUP: &str = "cachesql.group.";

impl PropertiesReader {
    /// An option's text without white space around it, and its line.
    fn take(&mut self, key: &str) -> Option<(String, usize)> {
        self.entries.remove(key).map(|property| (property.value.trim().to_owned(), property.line))
    }

    fn settings(&mut self) -> Settings {
        let settings = Settings {
            policy: self.word("cachesql.policy"),
            consistency: self.word("cachesql.consistency"),
            connect_timeout: self.milliseconds("cachesql.connectTimeout", 0),
            read_timeout: self.milliseconds("cachesql.readTimeout", 0),
            deadline: self.milliseconds("cachesql.deadline", 1),
            authorization: self.authorization(),
        };
        for (key, property) in std::mem::take(&mut self.entries) {
            if key.starts_with(GROUP) {
                self.entries.insert(key, property);
            } else {
                self.findings.note(property.line, format!("unknown key {key:?}"));
            }
        }
        settings
    }

    fn word<T: std::str::FromStr<Err = String>>(&mut self, key: &str) -> Option<T> {
        let (text, line) = self.take(key)?;
        text.parse().map_err(|error| self.findings.note(line, format!("{key}: {error}"))).ok()
    }

    fn milliseconds(&mut self, key: &str, least: u64) -> Option<Duration> {
        let (text, line) = self.take(key)?;
        let number = text.parse::<u32>().ok().map(u64::from).filter(|number| *number >= least);
        if number.is_none() {
            self.findings.note(line, format!("{key}: expected a number of milliseconds, found {text:?}"));
        }
        number.map(Duration::from_millis)
    }

    /// Messages name the keys and never what is secret.
    fn authorization(&mut self) -> Option<hyper::header::HeaderValue> {
        let token = self.take("cachesql.token");
        let user = self.take("cachesql.user");
        // Not trimmed: a password may begin or end with a space.
        let password = self.entries.remove("cachesql.password").map(|property| (property.value, property.line));
        let (made, line, what) = match (token, user, password) {
            (None, None, None) => return None,
            (Some((token, line)), None, None) => (
                authorization::bearer(&token),
                line,
                "cachesql.token: empty, or with characters that a header cannot carry",
            ),
            (Some((_, line)), ..) => (None, line, "cachesql.token and cachesql.user: one of them, not both"),
            (None, Some((user, line)), password) => {
                let password = password.map(|(password, _)| password).unwrap_or_default();
                (authorization::basic(&user, &password), line, "cachesql.user: a colon ends the name")
            }
            (None, None, Some((_, line))) => (None, line, "cachesql.user is missing, but there is a cachesql.password"),
        };
        if made.is_none() {
            self.findings.note(line, what);
        }
        made
    }

    /// Each group with the line of its tables.
    fn groups(&mut self) -> Vec<(ConfiguredGroup, usize)> {
        let mut words: BTreeMap<String, BTreeMap<&'static str, Property>> = BTreeMap::new();
        for (key, property) in std::mem::take(&mut self.entries) {
            let parts =
                key.strip_prefix(GROUP).and_then(|rest| rest.rsplit_once('.')).filter(|(name, _)| !name.is_empty());
            let word = parts.and_then(|(_, word)| ["master", "slaves", "tables"].into_iter().find(|w| *w == word));
            match (parts, word) {
                (Some((name, _)), Some(word)) => {
                    words.entry(name.to_owned()).or_default().insert(word, property);
                }
                _ => {
                    let line = property.line;
                    self.findings.note(line, format!("unknown key {key:?}; a group has .master, .slaves and .tables"));
                }
            }
        }
        words.into_iter().map(|(name, words)| self.group(name, &words)).collect()
    }

    fn group(&mut self, name: String, words: &BTreeMap<&'static str, Property>) -> (ConfiguredGroup, usize) {
        let first_line = words.values().map(|property| property.line).min().unwrap_or(1);
        let items =
            |word| words.get(word).into_iter().flat_map(|p| p.value.split(',').map(|item| (item.trim(), p.line)));
        let mut addresses = Vec::new();
        for word in ["master", "slaves"] {
            for (text, line) in items(word).filter(|(text, _)| !text.is_empty()) {
                match text.parse::<Address>() {
                    Ok(address) => addresses.push((word, address)),
                    Err(error) => self.findings.note(line, format!("{GROUP}{name}.{word}: {error}")),
                }
            }
        }
        let masters: Vec<_> = addresses.iter().filter(|(word, _)| *word == "master").collect();
        let named = items("master").filter(|(text, _)| !text.is_empty()).count();
        if named != 1 {
            let line = words.get("master").map_or(first_line, |property| property.line);
            let why = if named == 0 { "has no master" } else { "has more than one master" };
            self.findings.note(line, format!("group {name:?} {why}: {GROUP}{name}.master is one URL"));
        }
        let leader = masters.first().map(|(_, address)| address.clone());
        let mut members: Vec<Address> = Vec::new();
        for (_, address) in addresses {
            if !members.contains(&address) {
                members.push(address);
            }
        }
        let tables = items("tables").map(|(table, _)| table.to_owned()).filter(|table| !table.is_empty()).collect();
        let line = words.get("tables").map_or(first_line, |property| property.line);
        (ConfiguredGroup { name, leader, members, tables }, line)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
