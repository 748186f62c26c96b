//! The original server's `config.properties`, and the `cachesql.properties` of its routing client: from text to a checked
//! [`Configuration`].

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cachesql_types::{DataType, Value};

use super::document::served_origin;
use super::model::{
    ClusterSection, Configuration, GroupSection, LimitsSection, NodeSection, OriginSection, PlacedSecret, Refresh,
    Secret, TableSection, TableSource, meaningless_parameters, resolve,
};
use super::options::{DEFAULT_HTTP, DEFAULT_NODE};
use super::original_keys::MEANINGLESS_FAMILIES;
pub use super::original_keys::{KEYS, OriginalKey};
use super::problem::{ConfigError, Findings, Place, suggestion};
use super::properties::{self, Property};
use super::reader::{index_columns, is_address};

/// The origin that `db.url` becomes.
const ORIGIN: &str = "db";
/// The group of a file without `cachesql.group`.
const DEFAULT_GROUP: &str = "main";
/// The folder of the folders of nodes, beside the file.
const DATA_FOLDER: &str = "cachesql-data";
/// The environment variable of the cluster's secret, when the file does not say it.
const SECRET_VARIABLE: &str = "CACHESQL_SECRET";
/// How far a node's port for other nodes is from its port for HTTP: above it, or below where there is no room above.
const PEER_PORT_DISTANCE: u16 = 10_000;

/// Reads the text of a properties file. `file` is for messages and relative paths; nothing is opened.
pub(super) fn read(file: &Path, text: &str) -> Result<Configuration, ConfigError> {
    let mut reader =
        PropertiesReader { file, findings: Findings::new(file, text), entries: BTreeMap::new(), notices: Vec::new() };
    reader.collect(text);
    let configuration = reader.configuration();
    reader.findings.conclude(configuration)
}

struct PropertiesReader<'t> {
    file: &'t Path,
    findings: Findings,
    entries: BTreeMap<String, Property>,
    notices: Vec<String>,
}

impl PropertiesReader<'_> {
    fn collect(&mut self, text: &str) {
        for entry in properties::parse(text) {
            let property = match entry {
                Ok(property) => property,
                Err(broken) => {
                    self.findings.add_at(broken.line, broken.column, broken.message);
                    continue;
                }
            };
            self.recognise(&property);
            let line = property.line;
            if let Some(earlier) = self.entries.insert(property.key.clone(), property) {
                let key = earlier.key;
                self.notices.push(format!("{key} of line {} is replaced by line {line}", earlier.line));
            }
        }
    }

    fn recognise(&mut self, property: &Property) {
        let key = property.key.as_str();
        let general = general_form(key);
        let known = KEYS.iter().find(|k| k.key == general);
        match known {
            Some(OriginalKey { meaningless: true, about, .. }) => {
                self.notices.push(format!("{key} (line {}) has no meaning here: {about}", property.line));
            }
            Some(_) => {}
            None if MEANINGLESS_FAMILIES.iter().any(|family| key.starts_with(family)) => {
                self.notices.push(format!("{key} (line {}) has no meaning here", property.line));
            }
            None => {
                let hint = suggestion(&general, KEYS.iter().map(|k| k.key));
                self.findings.add_at(property.line, property.column, format!("unknown key {key:?}{hint}"));
            }
        }
    }

    /// The value of a key without white space around it; `None` when it is not there or empty.
    fn value(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|p| p.value.trim()).filter(|v| !v.is_empty())
    }

    fn note(&mut self, key: &str, message: impl Into<String>) {
        let (line, column) = self.entries.get(key).map_or((1, 1), |p| (p.line, p.column));
        self.findings.add_at(line, column, message);
    }

    fn number(&mut self, key: &str, expected: &str, is_sound: impl Fn(u64) -> bool) -> Option<u64> {
        let text = self.value(key)?.to_owned();
        let number = text.parse().ok().filter(|n| is_sound(*n));
        if number.is_none() {
            self.note(key, format!("{key}: expected {expected}, found {text:?}"));
        }
        number
    }

    fn configuration(&mut self) -> Configuration {
        let http = self.http();
        let groups = self.groups();
        let nodes = match groups.is_empty() {
            true => vec![NodeSection::new(DEFAULT_NODE, http)],
            false => self.nodes(&groups),
        };
        let tables = self.tables(&groups);
        let queries = tables.iter().any(|t| matches!(t.source, TableSource::Query { .. }));
        let origins = if queries { self.origin().into_iter().collect() } else { Vec::new() };
        self.notices.extend(meaningless_parameters(&origins));
        let body = self.number("server.http.maxEntitySize", "a number of bytes", |n| n > 0);
        let groups = match groups.is_empty() {
            true => vec![GroupSection::new(DEFAULT_GROUP, vec![DEFAULT_NODE.into()])],
            false => groups,
        };
        Configuration {
            file: self.file.to_owned(),
            cluster: self.cluster(&nodes),
            nodes,
            groups,
            token: None,
            limits: LimitsSection { http_body_bytes: body, ..LimitsSection::default() },
            origins,
            tables,
            notices: std::mem::take(&mut self.notices),
        }
    }

    fn http(&mut self) -> Option<String> {
        if let Some(role) = self.value("server.role").map(str::to_ascii_lowercase)
            && role != "standalone"
        {
            let message = match role.as_str() {
                "master" | "slave" => {
                    format!(
                        "server.role: {role:?} is said another way here: name the nodes of the group with cachesql.group.<G>.master and \
                         .slaves, in one file for all of them"
                    )
                }
                _ => format!("server.role: expected \"standalone\", \"master\" or \"slave\", found {role:?}"),
            };
            self.note("server.role", message);
        }
        let port = self.number("server.port", "a port from 0 to 65535", |n| u16::try_from(n).is_ok());
        let mode = self.value("server.mode").unwrap_or("all").to_ascii_lowercase();
        match mode.as_str() {
            "all" => Some(port.map_or_else(|| DEFAULT_HTTP.to_owned(), |port| format!("127.0.0.1:{port}"))),
            "embed" => None,
            _ => {
                self.note("server.mode", format!("server.mode: expected \"all\" or \"embed\", found {mode:?}"));
                None
            }
        }
    }

    fn origin(&mut self) -> Option<OriginSection> {
        let Some(url) = self.value("db.url").map(str::to_owned) else {
            self.findings.add_at(
                1,
                1,
                "db.url is missing: tables have queries, and nothing says which database they are for",
            );
            return None;
        };
        match served_origin(self.file, &url) {
            Ok(url) => Some(OriginSection {
                name: ORIGIN.into(),
                url: Some(url),
                url_place: self.entries.get("db.url").map_or(Place { line: 1, column: 1 }, place_of),
                user: self.value("db.username").map(str::to_owned),
                // Not trimmed: white space can be part of a password.
                password: self
                    .entries
                    .get("db.password")
                    .map(|p| PlacedSecret { secret: Secret::Plain(p.value.clone()), place: place_of(p) }),
            }),
            Err(why) => {
                self.note("db.url", format!("db.url: {why}"));
                None
            }
        }
    }

    /// Names between `prefix` and `.word`, in the order of the file.
    fn names(&self, prefix: &str, words: &[&str]) -> Vec<String> {
        let name = |p: &Property| {
            let (name, word) = p.key.strip_prefix(prefix)?.rsplit_once('.')?;
            words.contains(&word).then(|| (p.line, name.to_owned()))
        };
        let mut names: Vec<_> = self.entries.values().filter_map(name).collect();
        names.sort();
        let mut seen = Vec::new();
        for (_, name) in names {
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        seen
    }

    fn groups(&mut self) -> Vec<GroupSection> {
        let mut groups: Vec<GroupSection> = Vec::new();
        for name in self.names("cachesql.group.", &["master", "slaves", "tables"]) {
            let key = format!("cachesql.group.{name}.master");
            let Some(url) = self.value(&key).map(str::to_owned) else {
                let place = [".slaves", ".tables"].map(|word| format!("cachesql.group.{name}{word}"));
                let place = place.iter().find(|k| self.entries.contains_key(*k)).cloned().unwrap_or_default();
                self.note(&place, format!("group {name:?} has no master: {key} is missing"));
                continue;
            };
            let Some(address) = address_of_url(&url) else {
                self.note(&key, format!("{key}: expected a URL such as http://192.168.1.10:8080, found {url:?}"));
                continue;
            };
            if let Some(problem) = GroupSection::problem_of_name(&name) {
                self.note(&key, format!("{key}: {problem}"));
            }
            let mut members = vec![address];
            members.extend(self.slaves(&name));
            let key_of =
                |member: usize| if member == 0 { key.clone() } else { format!("cachesql.group.{name}.slaves") };
            for (at, member) in members.iter().enumerate() {
                let other = groups.iter().find(|g| g.members.contains(member));
                if let Some(other) = other {
                    let key = key_of(at);
                    let message = format!(
                        "{key}: {member} is already in group {:?}: this version serves one group a node",
                        other.name
                    );
                    self.note(&key, message);
                } else if members.iter().take(at).any(|earlier| earlier == member) {
                    let key = key_of(at);
                    self.note(&key, format!("{key}: {member} is in the group already"));
                }
            }
            groups.push(GroupSection::new(name, members));
        }
        groups
    }

    /// Addresses of a group's nodes beside its master.
    fn slaves(&mut self, group: &str) -> Vec<String> {
        let key = format!("cachesql.group.{group}.slaves");
        let mut slaves = Vec::new();
        for url in list(self.value(&key).unwrap_or_default()) {
            match address_of_url(&url) {
                Some(address) => slaves.push(address),
                None => {
                    self.note(&key, format!("{key}: expected URLs such as http://192.168.1.11:8080, found {url:?}"));
                }
            }
        }
        slaves
    }

    /// The nodes of the groups; those of groups of several keep what they acknowledge.
    fn nodes(&mut self, groups: &[GroupSection]) -> Vec<NodeSection> {
        let folder = resolve(self.file, self.value("cachesql.data").unwrap_or(DATA_FOLDER));
        let insecure = self.value("cachesql.insecure").is_some_and(|word| word.eq_ignore_ascii_case("true"));
        let mut nodes = Vec::new();
        for group in groups {
            for member in &group.members {
                let mut node = node_of_url(member);
                node.insecure = insecure;
                if group.members.len() > 1 {
                    node.peer = peer_of(member);
                    node.data = Some(folder.join(member.replace(':', "-")));
                }
                nodes.push(node);
            }
        }
        nodes
    }

    /// What the nodes share.
    fn cluster(&mut self, nodes: &[NodeSection]) -> ClusterSection {
        let secret = match self.entries.get("cachesql.secret") {
            Some(property) => {
                Some(PlacedSecret { secret: Secret::Plain(property.value.clone()), place: place_of(property) })
            }
            // Nodes on one machine need none.
            None if nodes.iter().all(NodeSection::is_called_on_this_machine) => None,
            None => Some(PlacedSecret {
                secret: Secret::Environment(SECRET_VARIABLE.into()),
                place: Place { line: 1, column: 1 },
            }),
        };
        ClusterSection { secret, ..ClusterSection::default() }
    }

    /// Table → group, as the routing client's keys say it.
    fn group_of_table(&mut self, groups: &[GroupSection]) -> BTreeMap<String, String> {
        let mut routes: BTreeMap<String, String> = BTreeMap::new();
        for group in groups {
            let key = format!("cachesql.group.{}.tables", group.name);
            let tables: Vec<_> = list(self.value(&key).unwrap_or_default());
            for table in tables {
                if let Some(other) = routes.get(&table) {
                    self.note(&key, format!("{key}: table {table} is already in group {other:?}"));
                } else if !self.entries.contains_key(&format!("cache.table.{table}.sql")) {
                    let message =
                        format!("{key}: nothing says what table {table} holds: cache.table.{table}.sql is missing");
                    self.note(&key, message);
                }
                routes.entry(table).or_insert_with(|| group.name.clone());
            }
        }
        routes
    }

    fn tables(&mut self, groups: &[GroupSection]) -> Vec<TableSection> {
        let routes = self.group_of_table(groups);
        let interval = self.number("cache.refreshInterval", "a number of milliseconds", |_| true).unwrap_or(0);
        let refresh = if interval == 0 { Refresh::Never } else { Refresh::Every(Duration::from_millis(interval)) };
        let mut tables: Vec<TableSection> = Vec::new();
        for name in self.names("cache.table.", &["sql", "indexes", "params", "columns"]) {
            let sql_key = format!("cache.table.{name}.sql");
            if let Some(twin) = tables.iter().find(|t| t.name.eq_ignore_ascii_case(&name)) {
                let message = format!(
                    "table {name:?} differs from table {:?} in case only: names are matched without case",
                    twin.name
                );
                self.note(&sql_key, message);
            }
            let group = match (routes.get(&name), groups.first()) {
                (Some(group), _) => group.clone(),
                (None, None) => DEFAULT_GROUP.into(),
                (None, Some(_)) => {
                    self.note(&sql_key, format!("table {name} is in no cachesql.group.<G>.tables"));
                    continue;
                }
            };
            let indexes = self.indexes(&name);
            let (source, columns) = self.source(&name);
            let refresh = if source == TableSource::Empty { Refresh::Never } else { refresh };
            let key = Vec::new();
            tables.push(TableSection {
                name,
                group,
                source,
                file_place: None,
                key,
                indexes,
                columns,
                refresh,
                ttl: None,
                max_rows: None,
            });
        }
        tables
    }

    fn indexes(&mut self, table: &str) -> Vec<Vec<String>> {
        let key = format!("cache.table.{table}.indexes");
        let mut indexes: Vec<Vec<String>> = Vec::new();
        for text in list(self.value(&key).unwrap_or_default()) {
            match index_columns(&text) {
                Some(columns) if indexes.contains(&columns) => {
                    self.notices.push(format!("{key} names {text} twice"));
                }
                Some(columns) => indexes.push(columns),
                None => self.note(&key, format!("{key}: expected columns such as A or A+B, found {text:?}")),
            }
        }
        indexes
    }

    fn source(&mut self, table: &str) -> (TableSource, Vec<(String, DataType)>) {
        let nothing = (TableSource::Empty, Vec::new());
        let columns_key = format!("cache.table.{table}.columns");
        let Some(sql) = self.value(&format!("cache.table.{table}.sql")).map(str::to_owned) else {
            let place = ["indexes", "params", "columns", "sql"].map(|word| format!("cache.table.{table}.{word}"));
            let place = place.into_iter().find(|k| self.entries.contains_key(k)).unwrap_or_default();
            self.note(&place, format!("nothing says what table {table} holds: cache.table.{table}.sql is missing"));
            return nothing;
        };
        if sql != table {
            if self.entries.contains_key(&columns_key) {
                self.notices.push(format!("{columns_key} has no meaning here: the query names the columns"));
            }
            // As Java splits: a value keeps its white space, and empty ones at the end do not count.
            let params = self.entries.get(&format!("cache.table.{table}.params")).map_or("", |p| p.value.as_str());
            let params = params.trim_end_matches(',');
            let params = if params.is_empty() { Vec::new() } else { params.split(',').map(Value::text).collect() };
            return (TableSource::Query { origin: ORIGIN.into(), sql, params }, Vec::new());
        }
        let mut columns = Vec::new();
        for text in list(self.value(&columns_key).unwrap_or_default()) {
            let (name, data_type) = text.split_once(char::is_whitespace).unwrap_or((&text, "TEXT"));
            match DataType::parse(data_type) {
                Some(data_type) => columns.push((name.to_owned(), data_type)),
                None => self.note(&columns_key, format!("{columns_key}: column {name}: {data_type:?} is not a type")),
            }
        }
        if columns.is_empty() {
            let key = format!("cache.table.{table}.sql");
            self.note(
                &key,
                format!("table {table} begins empty (its sql is its name): {columns_key} must name its columns"),
            );
        }
        (TableSource::Empty, columns)
    }
}

/// `cache.table.KCA2.sql` → `cache.table.<T>.sql`.
fn general_form(key: &str) -> String {
    for (prefix, stand_in) in [("cache.table.", "<T>"), ("cachesql.group.", "<G>")] {
        if let Some((name, word)) = key.strip_prefix(prefix).and_then(|rest| rest.rsplit_once('.'))
            && !name.is_empty()
        {
            return format!("{prefix}{stand_in}.{word}");
        }
    }
    key.to_owned()
}

fn list(text: &str) -> Vec<String> {
    // A type may have a comma in it: DECIMAL(10,2).
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn place_of(property: &Property) -> Place {
    Place { line: property.line, column: property.column }
}

/// `host:port` of `http://host:port`.
fn address_of_url(url: &str) -> Option<String> {
    let address = url.strip_prefix("http://")?.trim_end_matches('/');
    is_address(address).then(|| address.to_owned())
}

/// Where a node is called by others, of where it answers HTTP.
fn peer_of(address: &str) -> Option<String> {
    let (host, port) = address.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let peer = port.checked_add(PEER_PORT_DISTANCE).or_else(|| port.checked_sub(PEER_PORT_DISTANCE))?;
    Some(format!("{host}:{peer}"))
}

fn node_of_url(address: &str) -> NodeSection {
    NodeSection::new(address, Some(address.to_owned()))
}

#[cfg(test)]
#[path = "original_tests.rs"]
mod tests;
