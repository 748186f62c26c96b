//! What a node is started with: plain data, made by whoever reads the configuration.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cachesql_origin::{FileSource, OriginConfig};
use cachesql_peer::Randomness;
use cachesql_sql::EngineLimits;
use cachesql_types::{Column, DataType, Value, limits};

use crate::clock::{Clock, SystemClock};
use crate::reload::Reread;

/// Everything that one node is started with.
#[derive(Clone)]
pub struct NodeConfig {
    /// The node's name; answers say that it served them.
    pub name: String,
    /// Name of the group that its tables belong to; tokens carry it.
    pub group: String,
    /// Bytes that rows and indexes may take together, loads under way included. Writes and loads that would pass it are refused.
    pub memory_bytes: u64,
    /// Worker threads of the process; only reported.
    pub threads: usize,
    /// Limits of one statement.
    pub limits: EngineLimits,
    /// Where tables come from.
    pub origins: Vec<NamedOrigin>,
    /// The tables to load.
    pub tables: Vec<TableConfig>,
    /// Time between two looks for rows that have expired or are too many.
    pub sweep_interval: Duration,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The folder of the log and its snapshots. Without it the node keeps nothing over a restart.
    pub data: Option<PathBuf>,
    /// A random number that tells this run of the node from every other of its group.
    pub seed: u64,
    /// The other members of its group; `None` when there are none.
    pub cluster: Option<ClusterConfig>,
    /// Which tables are where, as far as it is configured: what clients are told.
    pub routes: Routes,
    /// Entries of the log after which its state is written out, and those of them that are kept for members that are not far behind.
    pub snapshot_entries: (u64, u64),
    /// Reads the configuration again; without it, what the node was started with holds until it stops.
    pub reread: Option<Reread>,
}

/// Which tables are where in a whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// The nodes, this one included.
    pub nodes: Vec<RouteNode>,
    /// The groups, this node's own included.
    pub groups: Vec<RouteGroup>,
}

impl Routes {
    /// The same with this node and its group in them, where they are not.
    pub(crate) fn with_own(mut self, node: &str, group: &str) -> Routes {
        if !self.nodes.iter().any(|known| known.name == node) {
            self.nodes.push(RouteNode { name: node.to_owned(), http: None });
        }
        if !self.groups.iter().any(|known| known.name == group) {
            let (name, members) = (group.to_owned(), vec![node.to_owned()]);
            self.groups.push(RouteGroup {
                name,
                members,
                leader: None,
                failover: Failover::Manual,
                tables: Vec::new(),
            });
        }
        self
    }
}

/// A node, as clients reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteNode {
    /// Its name.
    pub name: String,
    /// Where it answers HTTP, `host:port`; `None` when it does not.
    pub http: Option<String>,
}

/// A group, as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteGroup {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub members: Vec<String>,
    /// The node that leads first.
    pub leader: Option<String>,
    /// Who takes over from a leader that is gone.
    pub failover: Failover,
    /// Its tables.
    pub tables: Vec<String>,
}

/// A node's place in a cluster.
#[derive(Clone)]
pub struct ClusterConfig {
    /// The cluster's name. Nodes of others are refused.
    pub name: String,
    /// What proves that a node belongs to the cluster.
    pub secret: ClusterSecret,
    /// Where this node is called by others, `host:port`.
    pub listen: String,
    /// Every node of the cluster, this one included: its name, and where it is called.
    pub nodes: Vec<(String, String)>,
    /// The nodes that are members of this node's group, this one included. The first one founds it, unless `leader` says another.
    pub members: Vec<String>,
    /// The node that founds the group.
    pub leader: Option<String>,
    /// Who takes over from a leader that is gone.
    pub failover: Failover,
    /// Fills a buffer with random bytes that nobody can foretell.
    pub randomness: Randomness,
}

/// A cluster's secret. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterSecret(Vec<u8>);

impl ClusterSecret {
    /// A secret of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> ClusterSecret {
        ClusterSecret(bytes.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Who takes over from a leader that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// Whom the other members elect: all of them vote.
    Automatic,
    /// Whom an operator names: only the leader votes.
    Manual,
}

impl NodeConfig {
    /// A node named `local` in a group named `main`, alone, without tables, on the machine's clock.
    pub fn new(memory_bytes: u64) -> NodeConfig {
        NodeConfig {
            name: "local".into(),
            group: "main".into(),
            memory_bytes,
            threads: 1,
            limits: EngineLimits::default(),
            origins: Vec::new(),
            tables: Vec::new(),
            sweep_interval: limits::SWEEP_INTERVAL,
            clock: Arc::new(SystemClock),
            data: None,
            seed: 1,
            cluster: None,
            routes: Routes::default(),
            snapshot_entries: (limits::SNAPSHOT_ENTRIES, limits::KEPT_ENTRIES),
            reread: None,
        }
    }
}

impl fmt::Debug for NodeConfig {
    // Origins carry passwords and stay out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeConfig")
            .field("name", &self.name)
            .field("group", &self.group)
            .field("memory_bytes", &self.memory_bytes)
            .field("tables", &self.tables.iter().map(|t| &t.name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// An origin and the name that tables call it by.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedOrigin {
    /// Its name, unique among the origins.
    pub name: String,
    /// Where and how it is reached.
    pub config: OriginConfig,
}

/// One table: where its rows come from, and how it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct TableConfig {
    /// Its name, unique among the tables whatever the case.
    pub name: String,
    /// Where its rows come from.
    pub source: TableSource,
    /// Columns of the primary key; empty to take the origin's, when that can be known.
    pub key: Vec<String>,
    /// Columns of each index beside the primary key. They are named as the original names them: `A`, or `A+B`.
    pub indexes: Vec<Vec<String>>,
    /// Types that differ from what the origin says, by column.
    pub types: Vec<(String, DataType)>,
    /// When the rows are read again.
    pub refresh: Refresh,
    /// Rows not read or written for that long are removed. A read that goes over a table as a whole (a join, a sum) is not a
    /// read of each of its rows.
    pub ttl: Option<Duration>,
    /// Rows beyond that many, least recently used first, are removed.
    pub max_rows: Option<u64>,
}

impl TableConfig {
    /// A table that is loaded once, with what the origin says of its key, and no indexes.
    pub fn new(name: impl Into<String>, source: TableSource) -> TableConfig {
        TableConfig {
            name: name.into(),
            source,
            key: Vec::new(),
            indexes: Vec::new(),
            types: Vec::new(),
            refresh: Refresh::Never,
            ttl: None,
            max_rows: None,
        }
    }

    /// The origin that it is loaded from, by name.
    pub(crate) fn origin(&self) -> Option<&String> {
        match &self.source {
            TableSource::Query { origin, .. } => Some(origin),
            TableSource::File(_) | TableSource::Empty { .. } => None,
        }
    }
}

/// Where a table's rows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum TableSource {
    /// A query on an origin.
    Query {
        /// Name of the origin.
        origin: String,
        /// The query; parameters are `$1` and so on, or `?`.
        sql: String,
        /// Its parameters, in order.
        params: Vec<Value>,
    },
    /// A file.
    File(FileSource),
    /// Nowhere: the table is there from the start, without rows.
    Empty {
        /// Its columns.
        columns: Vec<Column>,
    },
}

/// When a table's rows are read again from where they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// On demand only.
    Never,
    /// That long after the last time ended.
    Every(Duration),
}
