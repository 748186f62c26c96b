//! The calling half of a node: calls other nodes by name, over one connection for each node and lane.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::error::{CallError, NotSent};
use crate::identity::{Endpoint, NodeName};
use crate::link::{Dialer, LaneStatus, Link};
use crate::message::LaneBudgets;
use crate::network::{BoxedStream, Network};
use crate::wire::Lane;

/// What a status page shows of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerStatus {
    /// Its name.
    pub node: NodeName,
    /// Its lanes that were used.
    pub lanes: Vec<LaneStatus>,
}

/// All other nodes, as this one calls them. Copies are one and the same; with the last one all connections end.
#[derive(Clone)]
pub struct Peers(Arc<Inner>);

struct Inner {
    dialer: Arc<Dialer>,
    links: RwLock<BTreeMap<NodeName, [Option<Arc<Link>>; Lane::ALL.len()]>>,
}

fn place(lane: Lane) -> usize {
    match lane {
        Lane::Urgent => 0,
        Lane::Normal => 1,
        Lane::Bulk => 2,
    }
}

impl Peers {
    /// Connects to nobody yet: each node and lane is connected to when it is first called.
    pub fn new<N: Network>(network: N, endpoint: Endpoint) -> Peers {
        let network = Arc::new(network);
        let connect = move |address: String| -> futures::future::BoxFuture<'static, std::io::Result<BoxedStream>> {
            let network = Arc::clone(&network);
            Box::pin(async move { Ok(Box::new(network.connect(&address).await?) as BoxedStream) })
        };
        let dialer = Dialer { endpoint, connect: Arc::new(connect), budgets: LaneBudgets::new() };
        Peers(Arc::new(Inner { dialer: Arc::new(dialer), links: RwLock::default() }))
    }

    /// Calls a service of another node, and waits for its answer until the deadline. The error tells what may have
    /// happened. Who drops the future cancels the call: the service's future is dropped as well.
    ///
    /// While a node is known to be out of reach this fails at once. While too much is under way to it this waits.
    pub async fn call(
        &self,
        to: &NodeName,
        lane: Lane,
        service: u16,
        payload: Bytes,
        deadline: Instant,
    ) -> Result<Bytes, CallError> {
        let not_sent = |why| CallError::NotSent { to: to.clone(), why };
        let link = self.link(to, lane).map_err(not_sent)?;
        let connection = link.connection(deadline).await.map_err(not_sent)?;
        connection.call(service, payload, deadline).await
    }

    fn link(&self, to: &NodeName, lane: Lane) -> Result<Arc<Link>, NotSent> {
        let at = place(lane);
        let found = self.0.links.read().get(to).and_then(|lanes| lanes[at].clone());
        if let Some(link) = found.filter(|link| !link.is_gone()) {
            return Ok(link);
        }
        let endpoint = &self.0.dialer.endpoint;
        if *to == endpoint.identity.node {
            return Err(NotSent::OwnName);
        }
        let mut links = self.0.links.write();
        // Nodes that are gone leave nothing behind.
        links.retain(|_, lanes| lanes.iter().flatten().any(|link| !link.is_gone()));
        let address = endpoint.directory.address(to).ok_or(NotSent::UnknownNode)?;
        let place = &mut links.entry(to.clone()).or_default()[at];
        // Another caller may have opened it since.
        if let Some(link) = place.as_ref().filter(|link| !link.is_gone()) {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(Link::open(Arc::clone(&self.0.dialer), to.clone(), lane, address));
        *place = Some(Arc::clone(&link));
        Ok(link)
    }

    /// The state of every node that was called, by name.
    pub fn status(&self) -> Vec<PeerStatus> {
        let links = self.0.links.read();
        let nodes = links.iter().map(|(node, lanes)| {
            let lanes = Lane::ALL.into_iter().zip(lanes);
            let lanes = lanes.filter_map(|(lane, link)| Some(link.as_ref()?.status(lane))).collect();
            PeerStatus { node: node.clone(), lanes }
        });
        nodes.collect()
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Peers").field("node", &self.0.dialer.endpoint.identity.node).finish_non_exhaustive()
    }
}
