//! Nodes a and b on a network in memory, and services that do what tests need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cachesql_peer::{
    Call, CallError, Directory, DoorStatus, Endpoint, Identity, Lane, NodeName, PeerDoor, Peers, Randomness, Refusal,
    Service, Services,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::memory_network::MemoryNetwork;

pub(crate) const SECRET: &[u8] = b"a secret of the cluster";

pub(crate) fn name(name: &str) -> NodeName {
    NodeName::new(name).expect("a name")
}

/// Bytes that differ from call to call, and are the same in every run.
pub(crate) fn randomness(seed: u64) -> Randomness {
    let state = AtomicU64::new(seed);
    Arc::new(move |into: &mut [u8]| {
        for byte in into {
            // SplitMix64, its highest byte.
            let mut z = state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            *byte = (z >> 56) as u8;
        }
    })
}

pub(crate) fn endpoint(node: &str, directory: &Directory) -> Endpoint {
    endpoint_of("shop", node, SECRET, directory)
}

pub(crate) fn endpoint_of(cluster: &str, node: &str, secret: &[u8], directory: &Directory) -> Endpoint {
    let identity = Identity::new(cluster, node, secret).expect("an identity");
    let seed = node.bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte));
    Endpoint::new(identity, directory.clone(), randomness(seed))
}

/// Nodes a and b, each at the address of its name.
pub(crate) fn directory() -> Directory {
    Directory::new(["a", "b"].map(|node| (name(node), format!("{node}:1"))))
}

pub(crate) struct Served {
    pub(crate) status: DoorStatus,
    stop: Arc<Notify>,
    pub(crate) task: JoinHandle<()>,
}

impl Served {
    /// Tells the door to stop.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }
}

/// Opens a door at an address.
pub(crate) async fn open_door(
    network: &MemoryNetwork,
    address: &str,
    endpoint: Endpoint,
    services: Services,
) -> Served {
    let door = PeerDoor::bind(network.clone(), address, endpoint).await.expect("a free address");
    let status = door.status();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(door.serve(services, async move { stopped.notified().await }));
    Served { status, stop, task }
}

/// Node a, which calls, and node b, which serves.
pub(crate) struct Two {
    pub(crate) network: MemoryNetwork,
    pub(crate) directory: Directory,
    pub(crate) a: Peers,
    pub(crate) b: Served,
}

pub(crate) async fn two(services: Services) -> Two {
    let (network, directory) = (MemoryNetwork::default(), directory());
    let b = open_door(&network, "b:1", endpoint("b", &directory), services).await;
    let a = Peers::new(network.clone(), endpoint("a", &directory));
    Two { network, directory, a, b }
}

impl Two {
    pub(crate) async fn call(&self, lane: Lane, service: u16, payload: impl Into<Bytes>) -> Result<Bytes, CallError> {
        self.call_within(Duration::from_secs(10), lane, service, payload).await
    }

    pub(crate) async fn call_within(
        &self,
        time: Duration,
        lane: Lane,
        service: u16,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, CallError> {
        self.a.call(&name("b"), lane, service, payload.into(), Instant::now() + time).await
    }
}

/// Answers with what was sent.
pub(crate) struct Echo;

#[async_trait::async_trait]
impl Service for Echo {
    async fn serve(&self, call: Call) -> Result<Bytes, Refusal> {
        Ok(call.payload)
    }
}

/// Hands each call to the test, which answers it when it likes.
pub(crate) struct Desk(mpsc::UnboundedSender<Visit>);

/// A call that is being served.
pub(crate) struct Visit {
    pub(crate) call: Call,
    pub(crate) answer: oneshot::Sender<Result<Bytes, Refusal>>,
}

impl Visit {
    /// Waits until the service's future was dropped, and with it the receiver.
    pub(crate) async fn dropped(&mut self) {
        let closed = tokio::time::timeout(Duration::from_secs(60), self.answer.closed()).await;
        closed.expect("the service's future is dropped");
    }
}

pub(crate) fn desk() -> (Desk, mpsc::UnboundedReceiver<Visit>) {
    let (arrive, visits) = mpsc::unbounded_channel();
    (Desk(arrive), visits)
}

#[async_trait::async_trait]
impl Service for Desk {
    async fn serve(&self, call: Call) -> Result<Bytes, Refusal> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Visit { call, answer }).map_err(|_| Refusal::new(1, "nobody is at the desk"))?;
        answered.await.unwrap_or_else(|_| Err(Refusal::new(2, "not answered")))
    }
}

pub(crate) const ECHO: u16 = 1;
pub(crate) const DESK: u16 = 2;
