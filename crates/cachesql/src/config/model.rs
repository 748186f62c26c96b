//! What a configuration file says, checked: plain data that the rest of the binary starts from.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cachesql_node::Failover;
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
    /// What the nodes share.
    pub cluster: ClusterSection,
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
    /// Where other nodes reach it, `host:port`; `None` when none do.
    pub peer: Option<String>,
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
    /// Names of its nodes.
    pub members: Vec<String>,
    /// The node that leads first, when it is not the first of them.
    pub leader: Option<String>,
    /// Who takes over from a leader that is gone.
    pub failover: Failover,
}

/// Members from which on a group can go on without one of them.
pub(super) const AUTOMATIC_MEMBERS: usize = 3;

/// What the nodes of a cluster share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSection {
    /// Its name; nodes of another are refused.
    pub name: String,
    /// What nodes show each other.
    pub secret: Option<PlacedSecret>,
}

/// The name of a cluster that has none.
pub(super) const DEFAULT_CLUSTER: &str = "cachesql";

impl Default for ClusterSection {
    fn default() -> ClusterSection {
        ClusterSection { name: DEFAULT_CLUSTER.into(), secret: None }
    }
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
        NodeSection {
            name: name.into(),
            http,
            http_place: None,
            peer: None,
            memory_bytes: None,
            data: None,
            insecure: false,
        }
    }

    /// True when it answers on an address that is plainly beyond this machine. A name is looked up when the door is opened.
    pub fn is_beyond_this_machine(&self) -> bool {
        self.http.as_deref().and_then(ip_of).is_some_and(|address| !address.is_loopback())
    }

    /// Where others reach its HTTP: at its address, or, when that is any of its machine's, on the machine that its peers know.
    pub fn reachable_http(&self) -> Option<String> {
        let http = self.http.as_deref()?;
        if !ip_of(http).is_some_and(|address| address.is_unspecified()) {
            return Some(http.to_owned());
        }
        let (_, port) = http.rsplit_once(':')?;
        let (host, _) = self.peer.as_deref()?.rsplit_once(':')?;
        Some(format!("{host}:{port}"))
    }

    /// True when other nodes reach it from this machine only.
    pub fn is_called_on_this_machine(&self) -> bool {
        self.peer.as_deref().is_none_or(|peer| ip_of(peer).is_some_and(|address| address.is_loopback()))
    }
}

/// The address of `host:port`, where the host is one.
fn ip_of(address: &str) -> Option<IpAddr> {
    let (host, _) = address.rsplit_once(':')?;
    host.trim_matches(['[', ']']).parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

impl GroupSection {
    /// A group of nodes that elect a new leader where they can.
    pub(super) fn new(name: impl Into<String>, members: Vec<String>) -> GroupSection {
        let failover = GroupSection::failover_of(members.len(), false);
        GroupSection { name: name.into(), members, leader: None, failover }
    }

    /// Who takes over in a group of so many members, when nothing is said.
    pub(super) fn failover_of(members: usize, has_leader: bool) -> Failover {
        let elects = members >= AUTOMATIC_MEMBERS && !has_leader;
        if elects { Failover::Automatic } else { Failover::Manual }
    }

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
