//! `cachesql.toml`: from text to a checked [`Configuration`].

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use cachesql_node::Failover;
use cachesql_origin::{CsvOptions, FileFormat, FileSource, OriginUrl};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::model::{
    ClusterSection, Configuration, GroupSection, LimitsSection, NodeSection, OriginSection, PlacedSecret, Refresh,
    Secret, TableSection, TableSource, meaningless_parameters, resolve,
};
use super::options::{self, DEFAULT_HTTP, DEFAULT_NODE, Section};
use super::problem::{ConfigError, Findings, suggestion};
use super::reader::{At, SectionReader, describe};

/// The group of a file that names none.
const DEFAULT_GROUP: &str = "main";

/// Reads the text of a `cachesql.toml`. `file` is for messages and relative paths; nothing is opened.
pub(super) fn read(file: &Path, text: &str) -> Result<Configuration, ConfigError> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let findings = RefCell::new(Findings::new(file, text));
    for error in errors {
        let span = error.span().unwrap_or_default();
        // The parser does not say which key.
        let message = match text.get(span.clone()) {
            Some(key) if error.message() == "duplicate key" => format!("duplicate key `{key}`"),
            _ => error.message().to_owned(),
        };
        findings.borrow_mut().add(span, message);
    }
    // What follows a syntax error was guessed: reporting more of it would mislead.
    if !findings.borrow().is_clean() {
        return findings.into_inner().conclude(()).and_then(|()| Err(ConfigError::Invalid(Vec::new())));
    }
    let reader = DocumentReader { file, findings: &findings, root: document.get_ref() };
    let configuration = reader.configuration();
    findings.into_inner().conclude(configuration)
}

struct DocumentReader<'t> {
    file: &'t Path,
    findings: &'t RefCell<Findings>,
    root: &'t DeTable<'t>,
}

impl<'t> DocumentReader<'t> {
    fn configuration(&self) -> Configuration {
        self.unknown_sections();
        let nodes = self.nodes();
        let groups = self.groups(&nodes);
        self.sections_without_service();
        let origins: Vec<_> = self.named("origins").iter().map(|(name, r)| self.origin(name, r)).collect();
        let tables = self.tables(&groups, &origins);
        Configuration {
            file: self.file.to_owned(),
            cluster: self.cluster(&nodes),
            token: self.single("access").and_then(|reader| self.secret(&reader, "token")),
            limits: self.limits(),
            nodes: nodes.into_iter().map(|n| n.value).collect(),
            groups: groups.into_iter().map(|g| g.value).collect(),
            notices: meaningless_parameters(&origins).collect(),
            origins,
            tables,
        }
    }

    fn note(&self, span: Range<usize>, message: impl Into<String>) {
        self.findings.borrow_mut().add(span, message);
    }

    fn unknown_sections(&self) {
        for key in self.root.keys() {
            let word = key.get_ref().as_ref();
            if options::section(word).is_none() {
                let words = options::SECTIONS.iter().map(|s| s.word);
                let hint = suggestion(word, words.clone());
                let all = words.collect::<Vec<_>>().join(", ");
                let hint = if hint.is_empty() { format!("; expected one of {all}") } else { hint };
                self.note(key.span(), format!("unknown section {word:?}{hint}"));
            }
        }
    }

    fn top(&self, word: &str) -> Option<(&'t Spanned<DeString<'t>>, &'t Spanned<DeValue<'t>>)> {
        self.root.iter().find(|(key, _)| key.get_ref().as_ref() == word)
    }

    /// A section that is there once.
    fn single(&self, word: &'static str) -> Option<SectionReader<'t>> {
        let section = options::section(word)?;
        let (key, value) = self.top(word)?;
        SectionReader::open(section, format!("[{word}]"), key.span(), value.get_ref(), self.findings)
    }

    /// The sections `[word.NAME]`, in the order of the file.
    fn named(&self, word: &'static str) -> Vec<(String, SectionReader<'t>)> {
        let (Some(section), Some((key, value))) = (options::section(word), self.top(word)) else {
            return Vec::new();
        };
        let Some(table) = value.get_ref().as_table() else {
            let found = describe(value.get_ref());
            self.note(key.span(), format!("expected sections [{word}.NAME], found {found}"));
            return Vec::new();
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        entries.into_iter().filter_map(|(name, value)| self.open_named(section, name, value)).collect()
    }

    fn open_named(
        &self,
        section: &'static Section,
        name: &'t Spanned<DeString<'t>>,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<(String, SectionReader<'t>)> {
        let text = name.get_ref().as_ref().to_owned();
        if !value.get_ref().is_table() {
            let found = describe(value.get_ref());
            let word = section.word;
            self.note(name.span(), format!("expected sections [{word}.NAME], found `{text}` with {found}"));
            return None;
        }
        let title = format!("[{}.{text}]", section.word);
        let reader = SectionReader::open(section, title, name.span(), value.get_ref(), self.findings)?;
        Some((text, reader))
    }

    fn nodes(&self) -> Vec<At<NodeSection>> {
        let node = |(name, reader): &(String, SectionReader<'t>)| {
            let http = reader.address("http");
            let value = NodeSection {
                name: name.clone(),
                http_place: http.as_ref().map(|a| self.findings.borrow().place(&a.span)),
                http: http.map(|a| a.value),
                peer: reader.address("peer").map(|a| a.value),
                memory_bytes: reader.size("memory").map(|s| s.value),
                data: reader.text("data").map(|path| resolve(self.file, &path.value)),
                insecure: reader.boolean("insecure").is_some_and(|b| b.value),
            };
            At { span: reader.span.clone(), value }
        };
        let nodes: Vec<_> = self.named("nodes").iter().map(node).collect();
        if !nodes.is_empty() || self.top("nodes").is_some() {
            return nodes;
        }
        let only = NodeSection::new(DEFAULT_NODE, Some(DEFAULT_HTTP.to_owned()));
        vec![At { value: only, span: 0..0 }]
    }

    fn groups(&self, nodes: &[At<NodeSection>]) -> Vec<At<GroupSection>> {
        let found = self.named("groups");
        let groups: Vec<_> = found.iter().map(|(name, reader)| self.group(name, reader, nodes)).collect();
        if !found.is_empty() {
            self.members_of_two(&groups);
            return groups;
        }
        let members: Vec<String> = nodes.iter().map(|n| n.value.name.clone()).collect();
        let (first, rest) = (nodes.first().map_or(0..0, |n| n.span.clone()), members.len() > 1);
        if rest {
            self.members_reach_each_other(DEFAULT_GROUP, &members, nodes, &first);
        }
        vec![At { value: GroupSection::new(DEFAULT_GROUP, members), span: 0..0 }]
    }

    /// Every member of a group of several is called by the others.
    fn members_reach_each_other(
        &self,
        group: &str,
        members: &[String],
        nodes: &[At<NodeSection>],
        place: &Range<usize>,
    ) {
        for member in members {
            let Some(node) = nodes.iter().find(|n| n.value.name == *member) else { continue };
            if node.value.peer.is_none() {
                let message = format!(
                    "group {group:?} has several members, and nothing says where the others reach node {member:?}: `peer` is missing"
                );
                let span = if node.span.is_empty() { place.clone() } else { node.span.clone() };
                self.note(span, message);
            }
        }
    }

    fn group(&self, name: &str, reader: &SectionReader<'t>, nodes: &[At<NodeSection>]) -> At<GroupSection> {
        let is_node = |wanted: &str| nodes.iter().any(|n| n.value.name == wanted);
        if let Some(problem) = GroupSection::problem_of_name(name) {
            reader.note(reader.span.clone(), problem);
        }
        let members = reader.names("members");
        if !reader.has("members") {
            reader.missing("members");
        }
        if let Some(list) = &members {
            for member in list.value.iter().filter(|m| !is_node(m)) {
                let hint = suggestion(member, nodes.iter().map(|n| n.value.name.as_str()));
                reader.note(list.span.clone(), format!("`members`: there is no node {member:?}{hint}"));
            }
            if list.value.len() > 1 {
                self.members_reach_each_other(name, &list.value, nodes, &list.span);
            }
        }
        let members = members.map(|m| m.value).unwrap_or_default();
        let leader = reader.text("leader");
        if let Some(leader) = leader.as_ref().filter(|l| !members.is_empty() && !members.contains(&l.value)) {
            let message = format!("`leader`: {:?} is not a member of the group", leader.value);
            reader.note(leader.span.clone(), message);
        }
        let failover = match reader.text("failover") {
            Some(word) if word.value == "automatic" => {
                if members.len() == 2 {
                    let why =
                        "`failover`: with two members neither can go on without the other: \"automatic\" takes three";
                    reader.note(word.span, why);
                }
                Failover::Automatic
            }
            Some(_) => Failover::Manual,
            None => GroupSection::failover_of(members.len(), leader.is_some()),
        };
        let leader = leader.map(|l| l.value);
        At { value: GroupSection { name: name.to_owned(), members, leader, failover }, span: reader.span.clone() }
    }

    /// A node of this version is in one group.
    fn members_of_two(&self, groups: &[At<GroupSection>]) {
        for (i, group) in groups.iter().enumerate() {
            for member in &group.value.members {
                if let Some(other) = groups.iter().take(i).find(|g| g.value.members.contains(member)) {
                    let (this, other) = (&group.value.name, &other.value.name);
                    let message = format!(
                        "node {member:?} is in groups {other:?} and {this:?}: this version serves one group a node"
                    );
                    self.note(group.span.clone(), message);
                }
            }
        }
    }

    fn cluster(&self, nodes: &[At<NodeSection>]) -> ClusterSection {
        let mut cluster = ClusterSection::default();
        if let Some(reader) = self.single("cluster") {
            cluster.name = reader.text("name").map_or(cluster.name, |name| name.value);
            cluster.secret = self.secret(&reader, "secret");
        }
        let beyond = nodes.iter().find(|n| !n.value.is_called_on_this_machine());
        if let Some(node) = beyond.filter(|_| cluster.secret.is_none()) {
            let message = format!(
                "`peer`: {} is reached from other machines: set `secret` in [cluster], which nodes show each other",
                node.value.peer.as_deref().unwrap_or_default()
            );
            self.note(node.span.clone(), message);
        }
        cluster
    }

    /// Sections that are checked, although nothing is made of them yet.
    fn sections_without_service(&self) {
        for (name, reader) in self.named("caches") {
            for option in options::section("caches").into_iter().flat_map(|s| s.options) {
                reader.check(option);
            }
            reader.note(reader.span.clone(), format!("[caches.{name}]: this version does not serve keyed caches"));
        }
    }

    fn limits(&self) -> LimitsSection {
        let Some(reader) = self.single("limits") else {
            return LimitsSection::default();
        };
        LimitsSection {
            statement_timeout: reader.duration("statement_timeout").map(|d| d.value),
            statement_memory_bytes: reader.size("statement_memory").map(|s| s.value),
            statement_rows: reader.count("statement_rows").map(|c| c.value),
            statement_write_rows: reader.count("statement_write_rows").map(|c| c.value),
            http_body_bytes: reader.size("http_body").map(|s| s.value),
        }
    }

    fn secret(&self, reader: &SectionReader<'t>, word: &str) -> Option<PlacedSecret> {
        let At { value, span } = reader.secret(word)?;
        let secret = match value {
            Secret::File(path) => Secret::File(resolve(self.file, path)),
            other => other,
        };
        Some(PlacedSecret { secret, place: self.findings.borrow().place(&span) })
    }

    fn origin(&self, name: &str, reader: &SectionReader<'t>) -> OriginSection {
        if !reader.has("url") {
            reader.missing("url");
        }
        let user = reader.text("user").map(|u| u.value);
        let password = self.secret(reader, "password");
        let url = reader.text("url").and_then(|url| match served_origin(self.file, &url.value) {
            Ok(parsed) => Some(parsed),
            Err(why) => {
                reader.note(url.span, format!("`url`: {why}"));
                None
            }
        });
        let url_place = self.findings.borrow().place(&reader.place("url"));
        OriginSection { name: name.to_owned(), url, url_place, user, password }
    }

    fn tables(&self, groups: &[At<GroupSection>], origins: &[OriginSection]) -> Vec<TableSection> {
        let readers = self.named("tables");
        for (i, (name, reader)) in readers.iter().enumerate() {
            let twin = readers.iter().take(i).find(|(other, _)| other.eq_ignore_ascii_case(name));
            if let Some((other, _)) = twin {
                let message =
                    format!("table {name:?} differs from table {other:?} in case only: names are matched without case");
                self.note(reader.span.clone(), message);
            }
        }
        readers.iter().map(|(name, reader)| self.table(name, reader, groups, origins)).collect()
    }

    fn table(
        &self,
        name: &str,
        reader: &SectionReader<'t>,
        groups: &[At<GroupSection>],
        origins: &[OriginSection],
    ) -> TableSection {
        let names = |list: Option<At<Vec<String>>>| list.map(|l| l.value).unwrap_or_default();
        let columns = reader.columns("columns");
        let source = self.source(name, reader, origins);
        let refresh = reader.refresh("refresh");
        if let Some(At { value: Refresh::Follow, span }) = &refresh {
            reader.note(
                span.clone(),
                "`refresh`: this version does not serve \"follow\"; an interval such as \"10m\" is",
            );
        }
        if matches!(refresh, Some(At { value: Refresh::Every(_), .. })) && source == TableSource::Empty {
            reader.note(
                reader.place("refresh"),
                "`refresh`: a table without `query` or `file` has nothing to be refreshed from",
            );
        }
        let table = TableSection {
            name: name.to_owned(),
            group: self.table_group(reader, groups),
            source,
            file_place: reader.has("file").then(|| self.findings.borrow().place(&reader.place("file"))),
            key: names(reader.names("key")),
            indexes: reader.indexes("indexes").map(|i| i.value).unwrap_or_default(),
            columns: columns.map(|c| c.value).unwrap_or_default(),
            refresh: refresh.map_or(Refresh::Never, |r| r.value),
            ttl: reader.duration("ttl").map(|d| d.value),
            max_rows: reader.count("max_rows").map(|c| c.value),
        };
        if table.source == TableSource::Empty && !table.columns.is_empty() {
            self.columns_exist(reader, &table);
        }
        table
    }

    /// For a table that begins empty, `columns` are all there are.
    fn columns_exist(&self, reader: &SectionReader<'t>, table: &TableSection) {
        let known = || table.columns.iter().map(|(name, _)| name.as_str());
        let unknown = |name: &&String| !known().any(|k| k.eq_ignore_ascii_case(name));
        for (word, column) in (table.key.iter().map(|c| ("key", c)))
            .chain(table.indexes.iter().flatten().map(|c| ("indexes", c)))
            .filter(|(_, c)| unknown(c))
        {
            let hint = suggestion(column, known());
            reader.note(reader.place(word), format!("`{word}`: there is no column {column:?} in `columns`{hint}"));
        }
    }

    fn table_group(&self, reader: &SectionReader<'t>, groups: &[At<GroupSection>]) -> String {
        let names = groups.iter().map(|g| g.value.name.as_str());
        match (reader.text("group"), groups) {
            (Some(group), _) => {
                if !names.clone().any(|n| n == group.value) {
                    let hint = suggestion(&group.value, names.clone());
                    let all = names.collect::<Vec<_>>().join(", ");
                    let hint = if hint.is_empty() { format!("; there is: {all}") } else { hint };
                    reader.note(group.span, format!("`group`: there is no group {:?}{hint}", group.value));
                }
                group.value
            }
            (None, [only]) => only.value.name.clone(),
            (None, _) => {
                if !reader.has("group") {
                    reader.missing("group");
                }
                String::new()
            }
        }
    }

    fn source(&self, name: &str, reader: &SectionReader<'t>, origins: &[OriginSection]) -> TableSource {
        let origin_name = reader.text("origin");
        let origin = origin_name.as_ref().and_then(|wanted| origins.iter().find(|o| o.name == wanted.value));
        if let (Some(wanted), None) = (&origin_name, origin) {
            let hint = suggestion(&wanted.value, origins.iter().map(|o| o.name.as_str()));
            reader.note(wanted.span.clone(), format!("`origin`: there is no [origins.{}]{hint}", wanted.value));
        }
        let query = reader.text("query");
        let params = reader.values("params");
        if reader.has("file") {
            self.refuse(reader, &["origin", "query", "params"], "a table has either `file` or `origin` and `query`");
            return self.file_source(reader, None);
        }
        // An origin may be a file itself.
        if let Some(path) = origin.and_then(|o| o.url.as_ref()).and_then(OriginUrl::as_file) {
            self.refuse(reader, &["query", "params"], "the origin is a file, which is loaded whole");
            return self.file_source(reader, Some(path));
        }
        self.refuse(reader, &["format", "null", "delimiter"], "it is for a `file`");
        match (reader.has("origin"), reader.has("query")) {
            (true, true) => TableSource::Query {
                origin: origin_name.map(|o| o.value).unwrap_or_default(),
                sql: query.map(|q| q.value).unwrap_or_default(),
                params: params.map(|p| p.value).unwrap_or_default(),
            },
            (true, false) => {
                let message =
                    format!("{} has `origin` without `query`: for instance \"SELECT * FROM {name}\"", reader.title);
                reader.note(reader.place("origin"), message);
                TableSource::Empty
            }
            (false, true) => {
                reader.note(reader.place("query"), format!("{} has `query` without `origin`", reader.title));
                TableSource::Empty
            }
            (false, false) => {
                self.refuse(reader, &["params"], "they are for a `query`");
                if !reader.has("columns") {
                    let expected =
                        "expected `origin` and `query`, or `file`, or `columns` for a table that begins empty";
                    reader.note(reader.span.clone(), format!("{} has nothing to load: {expected}", reader.title));
                }
                TableSource::Empty
            }
        }
    }

    fn refuse(&self, reader: &SectionReader<'t>, words: &[&str], why: &str) {
        for word in words.iter().filter(|w| reader.has(w)) {
            reader.note(reader.place(word), format!("`{word}`: {why}"));
        }
    }

    fn file_source(&self, reader: &SectionReader<'t>, origin_file: Option<&Path>) -> TableSource {
        let file = reader.text("file");
        let path = match (origin_file, &file) {
            (Some(path), _) => path.to_owned(),
            (None, Some(file)) if file.value.contains("://") => {
                reader.note(
                    file.span.clone(),
                    "`file`: expected a path; files are not fetched from URLs by this version",
                );
                return TableSource::Empty;
            }
            (None, Some(file)) => resolve(self.file, &file.value),
            (None, None) => return TableSource::Empty,
        };
        let format = match reader.text("format").as_ref().map(|f| f.value.as_str()) {
            Some("csv") => Some(FileFormat::Csv(CsvOptions::default())),
            Some("ndjson") => Some(FileFormat::Ndjson),
            Some("arrow") => Some(FileFormat::Arrow),
            _ => FileFormat::of_path(&path),
        };
        let Some(mut format) = format else {
            if !reader.has("format") {
                let message =
                    "its ending does not tell what it is: add `format`, one of \"csv\", \"ndjson\", \"arrow\"";
                let word = if file.is_some() { "file" } else { "origin" };
                reader.note(reader.place(word), format!("`{word}`: {message}"));
            }
            return TableSource::Empty;
        };
        self.csv_options(reader, &mut format);
        TableSource::File(FileSource { path, format })
    }

    fn csv_options(&self, reader: &SectionReader<'t>, format: &mut FileFormat) {
        let FileFormat::Csv(options) = format else {
            self.refuse(reader, &["null", "delimiter"], "it is for CSV files");
            return;
        };
        options.null_text = reader.text("null").map(|n| n.value);
        let Some(delimiter) = reader.text("delimiter") else { return };
        match delimiter.value.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => options.delimiter = *byte,
            _ => {
                let expected = "`delimiter`: expected one ASCII character that is no quote and no line end";
                reader.note(delimiter.span, format!("{expected}, found {:?}", delimiter.value));
            }
        }
    }
}

/// Reads an origin's URL; a relative path in it is relative to the configuration file.
pub(super) fn served_origin(file: &Path, url: &str) -> Result<OriginUrl, String> {
    let scheme = url.trim().to_ascii_lowercase();
    let scheme = scheme.strip_prefix("jdbc:").unwrap_or(&scheme);
    if let Some(database) = ["mysql", "mariadb"].iter().find(|name| scheme.starts_with(&format!("{name}:"))) {
        return Err(format!(
            "this version does not serve {database} as an origin; PostgreSQL, SQLite and files are served"
        ));
    }
    let parsed = OriginUrl::parse(url).map_err(|e| e.to_string())?;
    Ok(match file.parent() {
        Some(folder) => parsed.relative_to(folder),
        None => parsed,
    })
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
