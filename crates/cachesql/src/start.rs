//! From a configuration to what a node and its doors are started with. Here secrets are looked up.

use std::sync::Arc;

use cachesql_node::{
    ClusterConfig, ClusterSecret, EngineLimits, NamedOrigin, NodeConfig, OriginConfig, RouteGroup, RouteNode, Routes,
    TableConfig,
};
use cachesql_server::{AccessToken, HttpConfig};
use cachesql_types::Column;

use crate::config::{
    ConfigError, Configuration, GroupSection, LimitsSection, NodeSection, OriginSection, PlacedSecret, Refresh,
    TableSection, TableSource,
};
use crate::machine;

/// Share of the machine's memory that tables may take when nothing is said: three of four parts.
const MEMORY_SHARE: (u64, u64) = (3, 4);

/// What one node of a configuration is started with.
pub fn node_config(configuration: &Configuration, node: &NodeSection) -> Result<NodeConfig, ConfigError> {
    let (part, of) = MEMORY_SHARE;
    let memory_bytes = node.memory_bytes.unwrap_or_else(|| machine::memory_bytes() / of * part);
    let group = configuration.group_of(&node.name).map_or("", |g| g.name.as_str());
    if group.is_empty() {
        return Err(ConfigError::Unusable(format!("node {:?} is in no group, so that it holds no tables", node.name)));
    }
    let tables: Vec<_> = configuration.tables_of(&node.name).collect();
    // Only origins that this node asks: the secrets of others need not be here.
    let asked = |origin: &&OriginSection| {
        tables.iter().any(|t| matches!(&t.source, TableSource::Query { origin: name, .. } if *name == origin.name))
    };
    let origins =
        configuration.origins.iter().filter(asked).map(|o| named_origin(configuration, o)).collect::<Result<_, _>>()?;
    let mut config = NodeConfig::new(memory_bytes);
    config.name = node.name.clone();
    config.group = group.to_owned();
    config.data = node.data.clone();
    config.seed = machine::random();
    config.threads = std::thread::available_parallelism().map_or(1, usize::from);
    config.limits = engine_limits(&configuration.limits);
    config.origins = origins;
    config.tables = tables.into_iter().map(table_config).collect();
    config.cluster = cluster_config(configuration, node)?;
    config.routes = routes(configuration);
    Ok(config)
}

/// What clients are told of a whole configuration.
fn routes(configuration: &Configuration) -> Routes {
    let node = |node: &NodeSection| RouteNode { name: node.name.clone(), http: node.reachable_http() };
    let group = |group: &GroupSection| RouteGroup {
        name: group.name.clone(),
        members: group.members.clone(),
        leader: group.leader.clone().or_else(|| group.members.first().cloned()),
        failover: group.failover,
        tables: configuration.tables.iter().filter(|t| t.group == group.name).map(|t| t.name.clone()).collect(),
    };
    Routes {
        nodes: configuration.nodes.iter().map(node).collect(),
        groups: configuration.groups.iter().map(group).collect(),
    }
}

/// What nodes show each other that are all on one machine, and of which nothing else is said: whoever may open connections there is
/// one of them.
const NO_SECRET: &str = "every node is on this machine";

/// A node's place among the others of its group; `None` where there are none.
fn cluster_config(configuration: &Configuration, node: &NodeSection) -> Result<Option<ClusterConfig>, ConfigError> {
    let Some(group) = configuration.group_of(&node.name).filter(|group| group.members.len() > 1) else {
        return Ok(None);
    };
    let missing = || ConfigError::Unusable(format!("node {:?} has no `peer` address", node.name));
    let secret = match &configuration.cluster.secret {
        Some(secret) => reveal(configuration, "the cluster's secret", secret)?,
        None => NO_SECRET.to_owned(),
    };
    let others = configuration.nodes.iter().filter_map(|n| Some((n.name.clone(), n.peer.clone()?)));
    Ok(Some(ClusterConfig {
        name: configuration.cluster.name.clone(),
        secret: ClusterSecret::new(secret),
        listen: node.peer.clone().ok_or_else(missing)?,
        nodes: others.collect(),
        members: group.members.clone(),
        leader: group.leader.clone(),
        failover: group.failover,
        randomness: Arc::new(machine::fill_random),
    }))
}

/// What the HTTP door of one node is started with; `None` when it opens none.
pub fn http_config(configuration: &Configuration, node: &NodeSection) -> Result<Option<HttpConfig>, ConfigError> {
    let Some(address) = &node.http else {
        return Ok(None);
    };
    let mut http = HttpConfig::new(address.clone());
    http.insecure = node.insecure;
    http.token = match &configuration.token {
        Some(token) => AccessToken::new(reveal(configuration, "[access] token", token)?),
        None => None,
    };
    if let Some(bytes) = configuration.limits.http_body_bytes {
        http.body_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    Ok(Some(http))
}

fn reveal(configuration: &Configuration, what: &str, placed: &PlacedSecret) -> Result<String, ConfigError> {
    placed.secret.reveal().map_err(|why| configuration.problem(placed.place, format!("{what}: {why}")))
}

fn named_origin(configuration: &Configuration, origin: &OriginSection) -> Result<NamedOrigin, ConfigError> {
    let name = &origin.name;
    let url = origin.url.clone().ok_or_else(|| ConfigError::Unusable(format!("[origins.{name}] has no URL")))?;
    let password = match &origin.password {
        Some(secret) => {
            Some(cachesql_node::Secret::new(reveal(configuration, &format!("[origins.{name}] password"), secret)?))
        }
        None => None,
    };
    let config = OriginConfig { url, user: origin.user.clone(), password };
    Ok(NamedOrigin { name: name.clone(), config })
}

fn engine_limits(limits: &LimitsSection) -> EngineLimits {
    let defaults = EngineLimits::default();
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    EngineLimits {
        timeout: limits.statement_timeout.unwrap_or(defaults.timeout),
        memory_bytes: limits.statement_memory_bytes.map_or(defaults.memory_bytes, size),
        rows: limits.statement_rows.unwrap_or(defaults.rows),
        write_rows: limits.statement_write_rows.map_or(defaults.write_rows, size),
    }
}

fn table_config(table: &TableSection) -> TableConfig {
    let source = match &table.source {
        TableSource::Query { origin, sql, params } => {
            cachesql_node::TableSource::Query { origin: origin.clone(), sql: sql.clone(), params: params.clone() }
        }
        TableSource::File(file) => cachesql_node::TableSource::File(file.clone()),
        TableSource::Empty => cachesql_node::TableSource::Empty { columns: columns_of(table) },
    };
    let mut config = TableConfig::new(table.name.clone(), source);
    config.key = table.key.clone();
    config.indexes = table.indexes.clone();
    config.refresh = match table.refresh {
        Refresh::Every(interval) => cachesql_node::Refresh::Every(interval),
        Refresh::Never | Refresh::Follow => cachesql_node::Refresh::Never,
    };
    config.ttl = table.ttl;
    config.max_rows = table.max_rows;
    if table.source != TableSource::Empty {
        config.types = table.columns.clone();
    }
    config
}

fn columns_of(table: &TableSection) -> Vec<Column> {
    let column = |(name, data_type): &(String, _)| {
        let nullable = !table.key.iter().any(|k| k.eq_ignore_ascii_case(name));
        Column { name: name.clone(), data_type: *data_type, nullable }
    };
    table.columns.iter().map(column).collect()
}
