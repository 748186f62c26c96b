//! The called half of a node: accepts connections, lets nodes of the cluster in, and serves their calls.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use cachesql_types::limits;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::error::{DoorError, Ended, HandshakeError};
use crate::handshake::{self, Agreed};
use crate::identity::{Endpoint, NodeName};
use crate::message::LaneBudgets;
use crate::network::{BoxedStream, Network, Side};
use crate::outbox::Outbox;
use crate::pipe::{Pulse, run};
use crate::service::Services;
use crate::serving::Serving;
use crate::wire::Lane;

/// A bound address that is not served yet.
pub struct PeerDoor<N: Network> {
    network: N,
    listener: N::Listener,
    address: String,
    endpoint: Endpoint,
    guests: DoorStatus,
}

impl<N: Network> PeerDoor<N> {
    /// Binds an address.
    pub async fn bind(network: N, address: &str, endpoint: Endpoint) -> Result<PeerDoor<N>, DoorError> {
        let failed = |source| DoorError { address: address.to_owned(), source };
        let listener = network.bind(address).await.map_err(failed)?;
        let address = network.local_address(&listener).map_err(failed)?;
        Ok(PeerDoor { network, listener, address, endpoint, guests: DoorStatus::default() })
    }

    /// Where it listens.
    pub fn local_address(&self) -> &str {
        &self.address
    }

    /// Who is at the door, for status pages; readable while it is served.
    pub fn status(&self) -> DoorStatus {
        self.guests.clone()
    }

    /// Serves until `shutdown` is ready. Then nothing more is accepted, the others are told to ask nothing more, what is
    /// under way is answered, and this returns, at the latest after [`limits::SHUTDOWN_GRACE`].
    pub async fn serve(self, services: Services, shutdown: impl Future<Output = ()> + Send) {
        let PeerDoor { network, mut listener, endpoint, guests, .. } = self;
        let (close, closing) = watch::channel(false);
        let hall = Arc::new(Hall { endpoint, services, guests, closing, budgets: LaneBudgets::new() });
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = network.accept(&mut listener) => match accepted {
                    Ok((stream, remote)) => {
                        let (hall, guests) = (Arc::clone(&hall), hall.guests.clone());
                        guests.admit(|seat| connections.spawn(receive(hall, seat, Box::new(stream), remote)));
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: it passes, or it will be said again.
                        tracing::warn!(%error, "peers: cannot accept a connection");
                        tokio::select! {
                            () = &mut shutdown => break,
                            () = sleep(limits::PEER_ACCEPT_PAUSE) => {}
                        }
                    }
                },
            }
        }
        drop(listener);
        close.send_replace(true);
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(limits::SHUTDOWN_GRACE, all).await.is_err() {
            tracing::warn!("peers: calls were under way for longer than the grace, and are ended");
        }
        connections.shutdown().await;
    }
}

impl<N: Network> fmt::Debug for PeerDoor<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PeerDoor").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What all connections of a door share.
struct Hall {
    endpoint: Endpoint,
    services: Services,
    guests: DoorStatus,
    closing: watch::Receiver<bool>,
    budgets: LaneBudgets,
}

/// One connection, from when it was accepted until it ends.
async fn receive(hall: Arc<Hall>, mut seat: Seat, stream: BoxedStream, remote: String) {
    let mut closing = hall.closing.clone();
    let greet = async {
        let mut stream = (hall.endpoint.wrap)(stream, Side::Door).await?;
        let agreed = handshake::answer(&mut stream, &hall.endpoint).await?;
        Ok::<_, HandshakeError>((stream, agreed))
    };
    let greeted = tokio::select! {
        biased;
        // A stranger is owed nothing.
        _ = closing.wait_for(|closing| *closing) => return,
        greeted = timeout(limits::PEER_HANDSHAKE_TIMEOUT, greet) => greeted,
    };
    match greeted.unwrap_or(Err(HandshakeError::TimedOut)) {
        Ok((stream, agreed)) => {
            let replaced = seat.welcome(&agreed);
            let (node, lane) = (agreed.dialer.clone(), agreed.lane);
            let ended = serve_guest(&hall, stream, agreed, replaced).await;
            tracing::debug!(%node, ?lane, %remote, %ended, "peers: a connection of another node ended");
            seat.end(EndedGuest { node, lane, ended });
        }
        Err(error) => {
            tracing::warn!(%remote, %error, "peers: a connection was refused");
            seat.refuse(remote, error);
        }
    }
}

async fn serve_guest(hall: &Hall, stream: BoxedStream, agreed: Agreed, replaced: oneshot::Receiver<()>) -> Ended {
    let mut closing = hall.closing.clone();
    let (outbox, pulse) = (Arc::new(Outbox::default()), Pulse::new());
    let room = hall.budgets.connection(agreed.lane);
    let directory = hall.endpoint.directory.clone();
    let mut serving = Serving::new(agreed, hall.services.clone(), directory, Arc::clone(&outbox), room);
    let mut running = pin!(run(stream, &outbox, &pulse, &mut serving));
    tokio::select! {
        biased;
        _ = replaced => return Ended::Replaced,
        _ = closing.wait_for(|closing| *closing) => outbox.goodbye(),
        ended = &mut running => return ended,
    }
    match running.await {
        Ended::Closed => Ended::Stopped,
        ended => ended,
    }
}

/// A handshake that failed.
#[derive(Clone, Debug)]
pub struct RefusedGuest {
    /// Where the connection came from.
    pub remote: String,
    /// Why it was refused.
    pub error: HandshakeError,
}

/// A connection of another node that ended.
#[derive(Clone, Debug)]
pub struct EndedGuest {
    /// The other node.
    pub node: NodeName,
    /// The connection's lane.
    pub lane: Lane,
    /// Why it ended.
    pub ended: Ended,
}

/// Who is at a door.
#[derive(Clone, Default)]
pub struct DoorStatus(Arc<Mutex<Guests>>);

#[derive(Default)]
struct Guests {
    last_number: u64,
    /// Connections that are not authenticated, the oldest first.
    strangers: VecDeque<(u64, AbortHandle)>,
    /// Connections of other nodes, and how each is told that the same node has connected anew.
    known: BTreeMap<(NodeName, Lane), (u64, oneshot::Sender<()>)>,
    /// The last refused ones, the oldest first.
    refused: VecDeque<RefusedGuest>,
    /// The last ended ones, the oldest first.
    ended: VecDeque<EndedGuest>,
}

/// Adds one to the last few.
fn keep_last<T>(last: &mut VecDeque<T>, one: T) {
    if last.len() >= limits::PEER_GUESTS_REMEMBERED {
        last.pop_front();
    }
    last.push_back(one);
}

impl DoorStatus {
    /// Nodes and lanes that are connected.
    pub fn connected(&self) -> Vec<(NodeName, Lane)> {
        self.0.lock().known.keys().cloned().collect()
    }

    /// Connections that have not proven who they are, yet.
    pub fn strangers(&self) -> usize {
        self.0.lock().strangers.len()
    }

    /// The last refused connections, the oldest first; at most [`limits::PEER_GUESTS_REMEMBERED`].
    pub fn refused(&self) -> Vec<RefusedGuest> {
        self.0.lock().refused.iter().cloned().collect()
    }

    /// The last ended connections of other nodes, the oldest first; at most [`limits::PEER_GUESTS_REMEMBERED`].
    pub fn ended(&self) -> Vec<EndedGuest> {
        self.0.lock().ended.iter().cloned().collect()
    }

    /// A new connection, and the task that `receive` makes of it. When there are too many strangers the oldest has to go: it
    /// had the most time, and who only occupies a place cannot keep others out with it.
    fn admit(&self, receive: impl FnOnce(Seat) -> AbortHandle) {
        // Held until the task is noted, so that it cannot leave before.
        let mut guests = self.0.lock();
        if guests.strangers.len() >= limits::PEER_STRANGERS
            && let Some((_, oldest)) = guests.strangers.pop_front()
        {
            oldest.abort();
        }
        guests.last_number += 1;
        let number = guests.last_number;
        let task = receive(Seat { guests: self.clone(), number, known: None });
        guests.strangers.push_back((number, task));
    }
}

/// A connection's place among the guests; it is free again when this is dropped.
struct Seat {
    guests: DoorStatus,
    number: u64,
    known: Option<(NodeName, Lane)>,
}

impl Seat {
    /// A stranger has become known; it is told when the same node connects anew in that lane, which ends the old
    /// connection: the node would not connect while it has one that works.
    fn welcome(&mut self, agreed: &Agreed) -> oneshot::Receiver<()> {
        let (replace, replaced) = oneshot::channel();
        let key = (agreed.dialer.clone(), agreed.lane);
        self.known = Some(key.clone());
        let mut guests = self.guests.0.lock();
        guests.strangers.retain(|(stranger, _)| *stranger != self.number);
        if let Some((_, old)) = guests.known.insert(key, (self.number, replace)) {
            // It fails when that connection has ended.
            let _ = old.send(());
        }
        replaced
    }

    fn refuse(self, remote: String, error: HandshakeError) {
        keep_last(&mut self.guests.0.lock().refused, RefusedGuest { remote, error });
    }

    fn end(self, guest: EndedGuest) {
        keep_last(&mut self.guests.0.lock().ended, guest);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut guests = self.guests.0.lock();
        guests.strangers.retain(|(stranger, _)| *stranger != self.number);
        if let Some(key) = &self.known
            && guests.known.get(key).is_some_and(|(known, _)| *known == self.number)
        {
            guests.known.remove(key);
        }
    }
}

impl fmt::Debug for DoorStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guests = self.0.lock();
        let mut shown = out.debug_struct("DoorStatus");
        shown.field("strangers", &guests.strangers.len()).field("connected", &guests.known.keys()).finish()
    }
}
