//! One node as the client sees it: its address, its health, how near it is, and its connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::address::Address;
use crate::breaker::Breaker;
use crate::chance::Chance;
use crate::pool::Pool;

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) address: Address,
    pub(crate) pool: Pool,
    breaker: Mutex<Breaker>,
    /// Smoothed round trip in nanoseconds; 0 before the first answer.
    round_trip_ns: AtomicU64,
}

impl Node {
    pub(crate) fn new(address: Address) -> Node {
        Node { address, pool: Pool::default(), breaker: Mutex::default(), round_trip_ns: AtomicU64::new(0) }
    }

    /// Whether it is to be asked now.
    pub(crate) fn admits(&self, chance: &Chance) -> bool {
        self.breaker.lock().admits(Instant::now(), chance)
    }

    /// The same, without being granted anything.
    pub(crate) fn is_well(&self) -> bool {
        self.breaker.lock().is_closed(Instant::now())
    }

    pub(crate) fn succeeded(&self) {
        self.breaker.lock().succeeded();
    }

    pub(crate) fn failed(&self, chance: &Chance) {
        self.breaker.lock().failed(Instant::now(), chance);
    }

    /// Takes a measured round trip into the average, with a weight of one fifth.
    pub(crate) fn took(&self, time: Duration) {
        let sample = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let before = self.round_trip_ns.load(Ordering::Relaxed);
        let smoothed = if before == 0 { sample } else { before - before / 5 + sample / 5 };
        // Updates that meet may lose one sample, which no choice depends on.
        self.round_trip_ns.store(smoothed.max(1), Ordering::Relaxed);
    }

    /// The smoothed round trip in nanoseconds; 0 for a node that was never asked, so that it is.
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.round_trip_ns.load(Ordering::Relaxed)
    }
}

/// Every node that was ever heard of, by address: what is known of one outlives the routes that named it.
#[derive(Debug, Default)]
pub(crate) struct Nodes(Mutex<HashMap<Address, Arc<Node>>>);

impl Nodes {
    /// The node at an address.
    pub(crate) fn at(&self, address: &Address) -> Arc<Node> {
        let mut nodes = self.0.lock();
        nodes.entry(address.clone()).or_insert_with(|| Arc::new(Node::new(address.clone()))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_smoothed() {
        let node = Node::new("http://a:1".parse().expect("an address"));
        assert_eq!(node.round_trip_ns(), 0);
        node.took(Duration::from_nanos(1_000));
        assert_eq!(node.round_trip_ns(), 1_000);
        node.took(Duration::from_nanos(2_000));
        assert_eq!(node.round_trip_ns(), 1_200);
    }

    #[test]
    fn an_address_is_one_node() {
        let nodes = Nodes::default();
        let address: Address = "http://A:1/".parse().expect("an address");
        assert!(Arc::ptr_eq(&nodes.at(&address), &nodes.at(&"http://a:1".parse().expect("an address"))));
    }
}
