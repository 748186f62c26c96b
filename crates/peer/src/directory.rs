//! Which nodes there are, and where: a table from names to addresses that can change while connections are open.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::identity::NodeName;

/// The members of the cluster, by name. Copies are one and the same table.
///
/// Who is not in it is refused, and one that is taken out is hung up on within [`cachesql_types::limits::PEER_PING_INTERVAL`].
#[derive(Clone)]
pub struct Directory(Arc<watch::Sender<BTreeMap<NodeName, String>>>);

impl Directory {
    /// A table of names and addresses (`host:port`).
    pub fn new(nodes: impl IntoIterator<Item = (NodeName, String)>) -> Directory {
        Directory(Arc::new(watch::Sender::new(nodes.into_iter().collect())))
    }

    /// Puts this table in the place of the old one, at once.
    pub fn replace(&self, nodes: impl IntoIterator<Item = (NodeName, String)>) {
        self.0.send_replace(nodes.into_iter().collect());
    }

    /// Adds a node, or changes its address.
    pub fn insert(&self, name: NodeName, address: impl Into<String>) {
        self.0.send_modify(|nodes| {
            nodes.insert(name, address.into());
        });
    }

    /// Takes a node out.
    pub fn remove(&self, name: &NodeName) {
        self.0.send_modify(|nodes| {
            nodes.remove(name);
        });
    }

    /// Where a node is.
    pub fn address(&self, name: &NodeName) -> Option<String> {
        self.0.borrow().get(name).cloned()
    }

    /// Whether a node is in it.
    pub fn contains(&self, name: &NodeName) -> bool {
        self.0.borrow().contains_key(name)
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> Vec<(NodeName, String)> {
        self.0.borrow().iter().map(|(name, address)| (name.clone(), address.clone())).collect()
    }

    /// Waits until a node's address is another than `address`, or it is taken out.
    pub(crate) async fn moved(&self, name: &NodeName, address: &str) {
        // It fails when all senders are gone, and `self` is one.
        let _ = self.0.subscribe().wait_for(|nodes| nodes.get(name).is_none_or(|now| now != address)).await;
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.0.borrow().iter()).finish()
    }
}
