//! `cachesql.toml`, as far as a client needs it: `[nodes]`, `[groups]` and the groups of `[tables]`. What else the file says
//! is the nodes' affair, and theirs to check.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::file::check_tables;
use super::problem::{ConfigError, Findings, Problem};
use super::{Configured, ConfiguredGroup, Settings};
use crate::address::Address;

/// The group of a file without `[groups]`, and the node of one without `[nodes]`.
const DEFAULT_GROUP: &str = "main";
const DEFAULT_NODE: (&str, &str) = ("local", "127.0.0.1:8080");

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    nodes: BTreeMap<Spanned<String>, NodeSection>,
    #[serde(default)]
    groups: BTreeMap<Spanned<String>, GroupSection>,
    #[serde(default)]
    tables: BTreeMap<Spanned<String>, TableSection>,
}

#[derive(Deserialize)]
struct NodeSection {
    http: Option<Spanned<String>>,
}

#[derive(Deserialize)]
struct GroupSection {
    members: Spanned<Vec<String>>,
    leader: Option<Spanned<String>>,
    failover: Option<Spanned<String>>,
}

#[derive(Deserialize)]
struct TableSection {
    group: Option<Spanned<String>>,
}

/// Reads the text of a `cachesql.toml`.
pub(super) fn read(file: &str, text: &str) -> Result<Configured, ConfigError> {
    let document: Document = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        ConfigError::Invalid(vec![Problem { file: file.to_owned(), line, message: error.message().to_owned() }])
    })?;
    let mut reader = DocumentReader { text, findings: Findings::new(file), addresses: BTreeMap::new() };
    reader.nodes(&document);
    let mut groups = reader.groups(&document);
    let tables = reader.tables(&document, &mut groups);
    check_tables(
        &mut reader.findings,
        tables.iter().map(|(table, group, line)| (table.as_str(), group.as_str(), *line)),
    );
    let names = reader.addresses.into_iter().collect();
    reader.findings.conclude(Configured { groups, names, settings: Settings::default() })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).bytes().filter(|byte| *byte == b'\n').count() + 1
}

struct DocumentReader<'t> {
    text: &'t str,
    findings: Findings,
    /// Nodes that answer HTTP, by name.
    addresses: BTreeMap<String, Address>,
}

impl DocumentReader<'_> {
    fn note<T>(&mut self, at: &Spanned<T>, message: impl Into<String>) {
        self.findings.note(line_of(self.text, at.span().start), message);
    }

    fn nodes(&mut self, document: &Document) {
        if document.nodes.is_empty() {
            let (name, door) = DEFAULT_NODE;
            self.addresses.extend(Address::of_door(door).ok().map(|address| (name.to_owned(), address)));
        }
        for (name, section) in &document.nodes {
            let Some(http) = &section.http else { continue };
            if let Err(error) =
                Address::of_door(http.get_ref()).map(|address| self.addresses.insert(name.get_ref().clone(), address))
            {
                self.note(http, format!("`http` of node {:?}: {error}", name.get_ref()));
            }
        }
    }

    fn groups(&mut self, document: &Document) -> Vec<ConfiguredGroup> {
        if document.groups.is_empty() {
            let members: Vec<Address> = self.addresses.values().cloned().collect();
            let leader = if members.len() == 1 { members.first().cloned() } else { None };
            return vec![ConfiguredGroup { name: DEFAULT_GROUP.to_owned(), leader, members, tables: Vec::new() }];
        }
        document.groups.iter().map(|(name, section)| self.group(document, name, section)).collect()
    }

    fn group(&mut self, document: &Document, name: &Spanned<String>, section: &GroupSection) -> ConfiguredGroup {
        let title = name.get_ref().as_str();
        let names = section.members.get_ref();
        for member in names {
            // Without [nodes] there is one, of a name of its own.
            let known =
                document.nodes.keys().any(|node| node.get_ref() == member) || self.addresses.contains_key(member);
            if !known {
                self.note(&section.members, format!("group {title:?}: there is no node {member:?}"));
            }
        }
        let members: Vec<Address> = names.iter().filter_map(|member| self.addresses.get(member).cloned()).collect();
        if members.is_empty() {
            self.note(name, format!("group {title:?} has no member with an `http` door, so that no client reaches it"));
        }
        let manual = section.failover.as_ref().is_some_and(|failover| failover.get_ref() == "manual");
        let leader = match &section.leader {
            Some(leader) if !names.contains(leader.get_ref()) => {
                self.note(leader, format!("group {title:?}: its leader {:?} is not a member", leader.get_ref()));
                None
            }
            Some(leader) => self.addresses.get(leader.get_ref()).cloned(),
            None if names.len() == 1 => members.first().cloned(),
            None => {
                if manual {
                    self.note(name, format!("group {title:?} has no leader, and `failover` is \"manual\""));
                }
                None
            }
        };
        ConfiguredGroup { name: title.to_owned(), leader, members, tables: Vec::new() }
    }

    /// Puts tables into their groups, and gives each with its group and its line.
    fn tables(&mut self, document: &Document, groups: &mut [ConfiguredGroup]) -> Vec<(String, String, usize)> {
        let mut placed = Vec::new();
        for (name, section) in &document.tables {
            let table = name.get_ref();
            let group = match &section.group {
                Some(wanted) => groups.iter_mut().find(|group| group.name == *wanted.get_ref()),
                None if groups.len() == 1 => groups.first_mut(),
                None => None,
            };
            match (group, &section.group) {
                (Some(group), _) => {
                    placed.push((table.clone(), group.name.clone(), line_of(self.text, name.span().start)));
                    group.tables.push(table.clone());
                }
                (None, Some(wanted)) => {
                    self.note(wanted, format!("table {table:?}: there is no group {:?}", wanted.get_ref()))
                }
                (None, None) => self
                    .note(name, format!("table {table:?} does not say which `group` it is in, and there are several")),
            }
        }
        placed.sort_by_key(|(_, _, line)| *line);
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[nodes.a]
http = "10.0.0.1:8080"
peer = "10.0.0.1:8079"
[nodes.b]
http = "10.0.0.2:8080"
[nodes.c]
data = "data/c"

[groups.insurance]
leader = "a"
members = ["a", "b", "c"]
[groups.finance]
members = ["b", "c"]

[tables.KCA2]
group = "insurance"
refresh = "10m"
[tables.KCA4]
group = "finance"
"#;

    fn problems(text: &str) -> Vec<String> {
        match read("c.toml", text) {
            Err(ConfigError::Invalid(problems)) => problems.iter().map(ToString::to_string).collect(),
            other => panic!("expected problems, found {other:?}"),
        }
    }

    #[test]
    fn nodes_groups_and_tables_are_read() {
        let read = read("c.toml", FILE).expect("sound");
        let [finance, insurance] = read.groups.as_slice() else { panic!("two groups") };
        assert_eq!(insurance.leader.as_ref().map(ToString::to_string).as_deref(), Some("http://10.0.0.1:8080"));
        assert_eq!(insurance.members.len(), 2, "c answers no HTTP");
        assert_eq!(insurance.tables, ["KCA2"]);
        assert_eq!((finance.leader.clone(), finance.tables.clone()), (None, vec!["KCA4".to_owned()]));
        assert!(read.names.iter().any(|(name, address)| name == "b" && address.to_string() == "http://10.0.0.2:8080"));
    }

    #[test]
    fn a_file_without_nodes_or_groups_is_one_node() {
        let read = read("c.toml", "[tables.T]\nfile = \"t.csv\"\n").expect("sound");
        let [group] = read.groups.as_slice() else { panic!("one group") };
        assert_eq!((group.name.as_str(), group.tables.as_slice()), ("main", &["T".to_owned()][..]));
        assert_eq!(group.leader.as_ref().map(ToString::to_string).as_deref(), Some("http://127.0.0.1:8080"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let text = FILE
            .replace("members = [\"b\", \"c\"]", "members = [\"c\", \"d\"]")
            .replace("leader = \"a\"", "leader = \"x\"");
        let text = text.replace("group = \"finance\"", "group = \"finanse\"").replace("10.0.0.2:8080", "10.0.0.2:x");
        let expected = [
            "c.toml:6: `http` of node \"b\": expected a URL such as http://192.168.1.10:8080, found \"http://10.0.0.2:x\": there is no such port",
            "c.toml:11: group \"insurance\": its leader \"x\" is not a member",
            "c.toml:13: group \"finance\" has no member with an `http` door, so that no client reaches it",
            "c.toml:14: group \"finance\": there is no node \"d\"",
            "c.toml:20: table \"KCA4\": there is no group \"finanse\"",
        ];
        assert_eq!(problems(&text), expected);
        let twin = format!("{FILE}[tables.kca2]\ngroup = \"finance\"\n");
        assert_eq!(
            problems(&twin),
            [
                "c.toml:21: table \"kca2\" is in two groups: \"insurance\" (as \"KCA2\"), line 16, and \"finance\", line 21"
            ]
        );
        let manual = FILE.replace("members = [\"b\", \"c\"]", "members = [\"b\", \"c\"]\nfailover = \"manual\"");
        assert_eq!(problems(&manual), ["c.toml:13: group \"finance\" has no leader, and `failover` is \"manual\""]);
        let broken = problems("[nodes.a]\nhttp = 8080\n");
        assert!(broken.len() == 1 && broken[0].starts_with("c.toml:2: "), "{broken:?}");
        assert!(problems("[tables.T]\n[tables.T]\n")[0].starts_with("c.toml:2: "));
    }
}
