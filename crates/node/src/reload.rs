//! A node whose configuration is read again while it serves: what may change, and what has to wait for a restart.

use std::sync::Arc;

use tokio::sync::Mutex as TurnMutex;

use crate::config::{ClusterConfig, NodeConfig, RouteNode, Routes, TableConfig};
use crate::configured::{Configured, Loading, check_names, sources};
use crate::error::NodeError;
use crate::node::Node;
use crate::office::Duties;
use crate::progress;

/// Reads a node's configuration as it is now: all of it, and what of its own the reader has to wait for a restart with. The error
/// says what is wrong, and where.
pub type Reread = Arc<dyn Fn() -> Result<(NodeConfig, Vec<String>), String> + Send + Sync>;

/// What a reload has done, in words for whoever asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// What is otherwise from now on.
    pub changed: Vec<String>,
    /// What the configuration says, and holds only once the node is started again.
    pub restart: Vec<String>,
}

/// What a reload needs beside the node.
pub(crate) struct Reload {
    /// What the node was started with; what of it may change is in [`Configured`].
    started: NodeConfig,
    duties: Arc<Duties>,
    loading: Loading,
    /// One at a time; the nodes of the cluster as they were last read.
    turn: TurnMutex<Option<ClusterConfig>>,
}

impl Reload {
    pub(crate) fn new(started: NodeConfig, duties: Arc<Duties>, loading: Loading) -> Reload {
        let turn = TurnMutex::new(started.cluster.clone());
        Reload { started, duties, loading, turn }
    }

    /// False for a node that is its group's only member.
    pub(crate) fn has_others(&self) -> bool {
        self.started.cluster.is_some()
    }
}

impl Node {
    /// Reads the configuration again, and makes of this node what it says: its tables and how they are loaded, the nodes of the
    /// cluster and the members of its group. What is wrong with it is an error, and everything stays as it was.
    ///
    /// A table that is gone from it is not loaded any more; its rows stay until somebody drops it. A member that is gone from it is
    /// taken out of the group by the member that leads.
    pub async fn reload(&self) -> Result<Reloaded, NodeError> {
        self.core.counted(self.read_again().await)
    }

    async fn read_again(&self) -> Result<Reloaded, NodeError> {
        let started = &self.reload.started;
        let reread = started.reread.clone().ok_or_else(|| NodeError::Config(NO_FILE.to_owned()))?;
        let mut cluster = self.reload.turn.lock().await;
        let read = tokio::task::spawn_blocking(move || reread()).await;
        let (config, restart) = read.map_err(|_| NodeError::Shutdown)?.map_err(NodeError::Config)?;
        check_same_place(started, &config)?;
        check_names(&config.tables)?;
        let new = Configured::without_loads(&config);
        let sources = sources(&new)?;

        let before = self.configured.load_full();
        let mut report = Reloaded { changed: changes(&before, &new), restart };
        report.restart.extend(for_a_restart(started, &config));
        // Whoever leads makes the tables; here it is only known what they are to be.
        if self.reload.duties.office.borrow().is_some() {
            self.reload.duties.make(&new.tables).await?;
        }
        progress::replace(&self.core.loads, new.tables.iter().map(|table| table.name.as_str()));
        let begun = self.reload.loading.begin(new, sources, Some(&before), &self.feeders);
        self.configured.store(Arc::new(begun));
        if let (Some(new), Some(before)) = (&config.cluster, &*cluster) {
            report.changed.extend(changed_addresses(before, new));
            self.log.reconfigure(new.clone()).await?;
        }
        *cluster = config.cluster;
        for change in &report.changed {
            tracing::info!(change, "the configuration was read again");
        }
        Ok(report)
    }
}

const NO_FILE: &str = "this node was started without a file that could be read again";

/// A node cannot go to another group while it runs, nor become one of several that was alone.
fn check_same_place(started: &NodeConfig, now: &NodeConfig) -> Result<(), NodeError> {
    let refused = |why: String| Err(NodeError::Config(format!("{why}: that needs a restart, and nothing was changed")));
    if started.group != now.group {
        return refused(format!("node {:?} was in group {:?} and is in {:?}", now.name, started.group, now.group));
    }
    match (&started.cluster, &now.cluster) {
        (None, Some(_)) => refused(format!("node {:?} was alone in its group, and now has others", now.name)),
        (Some(_), None) => refused(format!("node {:?} had others in its group, and now is alone", now.name)),
        _ => Ok(()),
    }
}

/// What has changed that a running node cannot take over.
fn for_a_restart(started: &NodeConfig, now: &NodeConfig) -> Vec<String> {
    let mut changed = Vec::new();
    let mut look = |what: &str, differs: bool| {
        if differs {
            changed.push(what.to_owned());
        }
    };
    look("memory of the node", started.memory_bytes != now.memory_bytes);
    look("data folder of the node", started.data != now.data);
    look("limits of statements", started.limits != now.limits);
    if let (Some(started), Some(now)) = (&started.cluster, &now.cluster) {
        look("name of the cluster", started.name != now.name);
        look("secret of the cluster", started.secret != now.secret);
        look("peer address of the node", started.listen != now.listen);
    }
    changed
}

fn changes(before: &Configured, now: &Configured) -> Vec<String> {
    let mut changes = Vec::new();
    let named = |of: &[TableConfig], name: &str| of.iter().find(|table| table.name == name).cloned();
    for table in &now.tables {
        let origins = |of: &Configured| of.origins.iter().find(|o| Some(&o.name) == table.origin()).cloned();
        match named(&before.tables, &table.name) {
            None => changes.push(format!("table {}: new", table.name)),
            Some(old) if old != *table => changes.push(format!("table {}: configured otherwise", table.name)),
            Some(_) if origins(before) != origins(now) => {
                changes.push(format!("table {}: its origin is configured otherwise", table.name));
            }
            Some(_) => {}
        }
    }
    let gone = before.tables.iter().filter(|table| named(&now.tables, &table.name).is_none());
    changes.extend(
        gone.map(|table| format!("table {}: not loaded any more; its rows stay until it is dropped", table.name)),
    );
    changes.extend(changed_routes(&before.routes, &now.routes));
    changes
}

fn changed_routes(before: &Routes, now: &Routes) -> Vec<String> {
    let mut changes = Vec::new();
    let named = |of: &Routes, name: &str| of.nodes.iter().find(|node| node.name == name).cloned();
    for node in &now.nodes {
        let RouteNode { name, http } = node;
        match named(before, name) {
            None => changes.push(format!("node {name}: new")),
            Some(old) if old.http != *http => changes.push(format!("node {name}: another HTTP address")),
            Some(_) => {}
        }
    }
    let gone = before.nodes.iter().filter(|node| named(now, &node.name).is_none());
    changes.extend(gone.map(|node| format!("node {}: gone", node.name)));
    for group in &now.groups {
        match before.groups.iter().find(|old| old.name == group.name) {
            None => changes.push(format!("group {}: new", group.name)),
            Some(old) if old.members != group.members || old.failover != group.failover => {
                changes.push(format!("group {}: other members, or another failover", group.name));
            }
            Some(_) => {}
        }
    }
    let gone = before.groups.iter().filter(|old| !now.groups.iter().any(|group| group.name == old.name));
    changes.extend(gone.map(|group| format!("group {}: gone", group.name)));
    changes
}

fn changed_addresses(before: &ClusterConfig, now: &ClusterConfig) -> Vec<String> {
    let other = |(name, address): &&(String, String)| before.nodes.iter().any(|(n, a)| n == name && a != address);
    now.nodes.iter().filter(other).map(|(name, _)| format!("node {name}: another peer address")).collect()
}
