//! What a configuration file says, checked: plain data that the rest of the binary starts from.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cachesql_origin::{FileSource, OriginUrl};
use cachesql_types::{DataType, Value};

use super::problem::{ConfigError, Place, Problem};

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The nodes; at least one.
    pub nodes: Vec<NodeSection>,
    /// The groups; at least one.
    pub groups: Vec<GroupSection>,
    /// What HTTP requests must show.
    pub token: Option<PlacedSecret>,
    /// What one request may take.
    pub limits: LimitsSection,
    /// The origins.
    pub origins: Vec<OriginSection>,
    /// The tables.
    pub tables: Vec<TableSection>,
    /// What was read and has no meaning here, for the log.
    pub notices: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSection {
    /// Its name.
    pub name: String,
    /// Where it answers HTTP, `host:port`; `None` when it does not.
    pub http: Option<String>,
    /// Where the file says so.
    pub http_place: Option<Place>,
    /// The most that tables may take, in bytes; `None` for a share of the machine's memory.
    pub memory_bytes: Option<u64>,
    /// The folder of its log and snapshots; `None` when it keeps nothing over a restart.
    pub data: Option<PathBuf>,
    /// Whether it may answer beyond this machine without a token.
    pub insecure: bool,
}

/// A group of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSection {
    /// Its name.
    pub name: String,
    /// Names of its nodes; one in this version.
    pub members: Vec<String>,
}

/// What one request may take; `None` stands for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsSection {
    /// Time of one statement.
    pub statement_timeout: Option<Duration>,
    /// Memory of one statement in bytes.
    pub statement_memory_bytes: Option<u64>,
    /// Rows that one statement may answer.
    pub statement_rows: Option<u64>,
    /// Rows that one statement may write.
    pub statement_write_rows: Option<u64>,
    /// Bytes of a request's body.
    pub http_body_bytes: Option<u64>,
}

/// An origin.
#[derive(Clone, Debug)]
pub struct OriginSection {
    /// Its name.
    pub name: String,
    /// Where it is; `None` when the file gave no sound URL, which is a problem of its own.
    pub url: Option<OriginUrl>,
    /// Where the file says that.
    pub url_place: Place,
    /// Who connects, when the URL does not say.
    pub user: Option<String>,
    /// The password, when the URL does not hold it.
    pub password: Option<PlacedSecret>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableSection {
    /// Its name.
    pub name: String,
    /// The group that holds it.
    pub group: String,
    /// Where its rows come from.
    pub source: TableSource,
    /// Where the configuration names the file that it is loaded from.
    pub file_place: Option<Place>,
    /// Columns of its primary key; empty for the origin's.
    pub key: Vec<String>,
    /// Columns of each of its indexes.
    pub indexes: Vec<Vec<String>>,
    /// Types of columns where they are said.
    pub columns: Vec<(String, DataType)>,
    /// How often the source is asked again.
    pub refresh: Refresh,
    /// How long rows stay that nobody reads or writes.
    pub ttl: Option<Duration>,
    /// How many rows stay.
    pub max_rows: Option<u64>,
}

/// Where a table's rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableSource {
    /// A query on an origin.
    Query {
        /// The origin's name.
        origin: String,
        /// The query.
        sql: String,
        /// Its parameters.
        params: Vec<Value>,
    },
    /// A file; its path is relative to the working directory.
    File(FileSource),
    /// Nowhere: it begins empty.
    Empty,
}

/// How often a source is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// On demand only.
    Never,
    /// Every so often.
    Every(Duration),
    /// Changes as they commit; no version serves it yet.
    Follow,
}

/// A secret, and where the file speaks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSecret {
    /// Where the secret is.
    pub secret: Secret,
    /// Where the file says that.
    pub place: Place,
}

/// Where a secret is, so that a configuration can be shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// In an environment variable.
    Environment(String),
    /// In a file; white space at its end does not count.
    File(PathBuf),
    /// In the configuration itself, as the original server keeps `db.password`.
    Plain(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Environment(name) => write!(f, "{{ env = {name:?} }}"),
            Secret::File(path) => write!(f, "{{ file = {path:?} }}"),
            Secret::Plain(_) => f.write_str("(hidden)"),
        }
    }
}

impl Secret {
    /// The secret itself. The error names where it was looked for.
    pub fn reveal(&self) -> Result<String, String> {
        let (text, place) = match self {
            Secret::Plain(text) => return Ok(text.clone()),
            Secret::Environment(name) => {
                let text = std::env::var(name).map_err(|e| match e {
                    std::env::VarError::NotPresent => format!("environment variable {name} is not set"),
                    std::env::VarError::NotUnicode(_) => format!("environment variable {name} is not UTF-8"),
                })?;
                (text, format!("environment variable {name}"))
            }
            Secret::File(path) => {
                let place = format!("secret file {}", path.display());
                (std::fs::read_to_string(path).map_err(|e| format!("{place}: {e}"))?, place)
            }
        };
        match text.trim_end() {
            "" => Err(format!("{place} is empty")),
            trimmed => Ok(trimmed.to_owned()),
        }
    }
}

/// What the URLs of origins say that has no meaning here.
pub(super) fn meaningless_parameters(origins: &[OriginSection]) -> impl Iterator<Item = String> {
    let of_origin = |origin: &OriginSection| {
        let ignored = origin.url.as_ref().map(|url| url.ignored_parameters().to_vec()).unwrap_or_default();
        let name = origin.name.clone();
        ignored.into_iter().map(move |parameter| format!("origin {name}: {parameter} of its URL has no meaning here"))
    };
    origins.iter().flat_map(of_origin)
}

/// A path as the file says it, seen from the working directory.
pub(super) fn resolve(file: &Path, path: impl AsRef<Path>) -> PathBuf {
    match file.parent() {
        Some(folder) if path.as_ref().is_relative() => folder.join(path),
        _ => path.as_ref().to_owned(),
    }
}

impl NodeSection {
    /// A node that answers HTTP there, of which nothing else is said.
    pub(super) fn new(name: impl Into<String>, http: Option<String>) -> NodeSection {
        NodeSection { name: name.into(), http, http_place: None, memory_bytes: None, data: None, insecure: false }
    }

    /// True when it answers on an address that is plainly beyond this machine. A name is looked up when the door is opened.
    pub fn is_beyond_this_machine(&self) -> bool {
        let host = self.http.as_deref().and_then(|address| address.rsplit_once(':')).map(|(host, _)| host);
        let address = host.and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
        address.is_some_and(|address| !address.to_canonical().is_loopback())
    }
}

impl GroupSection {
    /// What is wrong with a group's name, if anything: answers carry it in a header, in their tokens, and it comes back in one.
    pub(super) fn problem_of_name(name: &str) -> Option<String> {
        let sound = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
        (!sound).then(|| {
            format!("the name of a group goes through HTTP headers: expected ASCII letters, digits and signs without spaces, found {name:?}")
        })
    }
}

impl Configuration {
    /// What is wrong in the file at a place.
    pub fn problem(&self, place: Place, message: String) -> ConfigError {
        let Place { line, column } = place;
        ConfigError::Invalid(vec![Problem { file: self.file.display().to_string(), line, column, message }])
    }

    /// Refuses a node that everyone could ask: one beyond this machine, without a token and without the word for it.
    pub fn check_protection(&self, node: &NodeSection) -> Result<(), ConfigError> {
        if !node.is_beyond_this_machine() || node.insecure || self.token.is_some() {
            return Ok(());
        }
        let address = node.http.as_deref().unwrap_or_default();
        let message = format!(
            "`http`: {address} can be reached from other machines: set `token` in [access], or say `insecure = true` if \
             everyone may read and write"
        );
        Err(match node.http_place {
            Some(place) => self.problem(place, message),
            None => ConfigError::Unusable(message),
        })
    }

    /// The node to start: the one of that name, or the only one.
    pub fn node(&self, name: Option<&str>) -> Result<&NodeSection, String> {
        let names = || self.nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>().join(", ");
        match (name, self.nodes.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(format!("there are several nodes ({}): say which one with --node", names())),
            (Some(name), nodes) => nodes
                .iter()
                .find(|n| n.name == name)
                .ok_or_else(|| format!("there is no node {name:?}; there is: {}", names())),
        }
    }

    /// The group that a node is a member of; the first where there are several.
    pub fn group_of(&self, node: &str) -> Option<&GroupSection> {
        self.groups.iter().find(|g| g.members.iter().any(|m| m == node))
    }

    /// Tables that a node holds.
    pub fn tables_of<'c>(&'c self, node: &'c str) -> impl Iterator<Item = &'c TableSection> {
        let holds =
            move |group: &str| self.groups.iter().any(|g| g.name == group && g.members.iter().any(|m| m == node));
        self.tables.iter().filter(move |table| holds(&table.group))
    }
}
