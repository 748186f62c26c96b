//! The way to one node in one lane: connects when it is first needed, stays connected, and says at once when there is no
//! connection.

use std::sync::Arc;
use std::time::Duration;

use cachesql_types::limits;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::backoff::backoff;
use crate::connection::Connection;
use crate::error::{Ended, HandshakeError, NotSent};
use crate::handshake;
use crate::identity::{Endpoint, NodeName};
use crate::message::LaneBudgets;
use crate::network::{BoxedStream, Side};
use crate::wire::Lane;

/// Connects to an address, over whatever network there is.
pub(crate) type Connect = Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<BoxedStream>> + Send + Sync>;

/// What all links of a node share.
pub(crate) struct Dialer {
    pub(crate) endpoint: Endpoint,
    pub(crate) connect: Connect,
    pub(crate) budgets: LaneBudgets,
}

/// What a link is at.
#[derive(Clone)]
enum State {
    /// It is worth waiting for.
    Connecting,
    Up(Arc<Connection>),
    /// The last try failed; the next is at that time.
    Down {
        why: NotSent,
        next_try: Instant,
    },
    /// The directory has the node no more; another link is made if it comes back.
    Gone,
}

#[derive(Clone)]
struct Shown {
    state: State,
    address: String,
    last_error: Option<String>,
}

/// A task connects, and everyone who calls looks at what it shows.
pub(crate) struct Link {
    shown: watch::Receiver<Shown>,
    task: AbortHandle,
}

/// What a status page shows of one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneStatus {
    /// The lane.
    pub lane: Lane,
    /// Where its node is, or was when it was last connected to.
    pub address: String,
    /// What it is at.
    pub state: LaneState,
    /// Why the last connection, or try, ended.
    pub last_error: Option<String>,
}

/// What a lane is at.
#[derive(Clone, Debug, PartialEq)]
pub enum LaneState {
    /// The first try, or the first after a connection that had lasted.
    Connecting,
    /// It is connected.
    Connected {
        /// Version that both nodes speak.
        version: u16,
        /// Time since it was.
        since: Duration,
        /// Time since anything was heard.
        heard_ago: Duration,
        /// Time that the last ping took, there and back.
        round_trip: Option<Duration>,
        /// Calls under way.
        in_flight: usize,
    },
    /// It is not.
    Down {
        /// Time until the next try.
        next_try: Duration,
    },
    /// The node was taken out of the directory.
    Gone,
}

impl Link {
    pub(crate) fn open(dialer: Arc<Dialer>, to: NodeName, lane: Lane, address: String) -> Link {
        let (show, shown) = watch::channel(Shown { state: State::Connecting, address, last_error: None });
        let task = tokio::spawn(keep(dialer, to, lane, show)).abort_handle();
        Link { shown, task }
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.shown.borrow().state, State::Gone)
    }

    /// The connection. Waits for it only while it is worth it.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, NotSent> {
        let found = |state: &State| match state {
            State::Connecting => None,
            State::Up(connection) => Some(Ok(Arc::clone(connection))),
            State::Down { why, .. } => Some(Err(why.clone())),
            State::Gone => Some(Err(NotSent::UnknownNode)),
        };
        if let Some(found) = found(&self.shown.borrow().state) {
            return found;
        }
        let mut shown = self.shown.clone();
        let waited = timeout_at(deadline, shown.wait_for(|shown| !matches!(shown.state, State::Connecting))).await;
        match waited {
            Ok(Ok(shown)) => found(&shown.state).unwrap_or(Err(NotSent::Ended(Ended::Stopped))),
            Ok(Err(_)) => Err(NotSent::Ended(Ended::Stopped)),
            Err(_) => Err(NotSent::Deadline),
        }
    }

    pub(crate) fn status(&self, lane: Lane) -> LaneStatus {
        let Shown { state, address, last_error } = self.shown.borrow().clone();
        let state = match state {
            State::Connecting => LaneState::Connecting,
            State::Up(connection) => {
                let pulse = connection.pulse();
                LaneState::Connected {
                    version: connection.version(),
                    since: pulse.age(),
                    heard_ago: pulse.heard_ago(),
                    round_trip: pulse.round_trip(),
                    in_flight: connection.in_flight(),
                }
            }
            State::Down { next_try, .. } => {
                LaneState::Down { next_try: next_try.saturating_duration_since(Instant::now()) }
            }
            State::Gone => LaneState::Gone,
        };
        LaneStatus { lane, address, state, last_error }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connects to a node again and again, for as long as the directory has it.
async fn keep(dialer: Arc<Dialer>, to: NodeName, lane: Lane, show: watch::Sender<Shown>) {
    let directory = &dialer.endpoint.directory;
    let mut failures: u32 = 0;
    while let Some(address) = directory.address(&to) {
        show.send_modify(|shown| {
            shown.address.clone_from(&address);
            if failures == 0 {
                shown.state = State::Connecting;
            }
        });
        let why = match connect(&dialer, &to, lane, &address).await {
            Ok((connection, stream)) => {
                tracing::debug!(node = %to, %address, ?lane, version = connection.version(), "peers: connected");
                let ended = use_connection(&dialer, &to, lane, &address, &connection, stream, &show).await;
                tracing::info!(node = %to, %address, ?lane, error = %ended, "peers: a connection ended");
                let lasted = connection.pulse().age() >= limits::PEER_STEADY && !matches!(ended, Ended::Goodbye);
                failures = if lasted || matches!(ended, Ended::Moved) { 0 } else { failures.saturating_add(1) };
                NotSent::Ended(ended)
            }
            Err(error) => {
                if failures == 0 {
                    tracing::warn!(node = %to, %address, ?lane, %error, "peers: no connection");
                }
                failures = failures.saturating_add(1);
                NotSent::Unreachable(error)
            }
        };
        let pause =
            if failures == 0 { Duration::ZERO } else { backoff(failures, u32::from_be_bytes(dialer.endpoint.nonce())) };
        let last_error = Some(why.to_string());
        let next_try = Instant::now() + pause;
        let state = if failures == 0 { State::Connecting } else { State::Down { why, next_try } };
        show.send_modify(|shown| (shown.state, shown.last_error) = (state, last_error));
        if timeout(pause, directory.moved(&to, &address)).await.is_ok() {
            // It is elsewhere now, and what failed before says nothing about that.
            failures = 0;
        }
    }
    show.send_modify(|shown| shown.state = State::Gone);
}

async fn connect(
    dialer: &Dialer,
    to: &NodeName,
    lane: Lane,
    address: &str,
) -> Result<(Arc<Connection>, BoxedStream), HandshakeError> {
    let stream = timeout(limits::PEER_CONNECT_TIMEOUT, (dialer.connect)(address.to_owned())).await;
    let stream = stream.map_err(|_| HandshakeError::ConnectTimeout)??;
    let greet = async {
        let mut stream = (dialer.endpoint.wrap)(stream, Side::Dialer(to.clone())).await?;
        let version = handshake::dial(&mut stream, &dialer.endpoint, to, lane).await?;
        Ok((Arc::new(Connection::new(to.clone(), lane, version)), stream))
    };
    timeout(limits::PEER_HANDSHAKE_TIMEOUT, greet).await.map_err(|_| HandshakeError::TimedOut)?
}

/// Shows a connection until it ends, or nobody should use it any more.
async fn use_connection(
    dialer: &Dialer,
    to: &NodeName,
    lane: Lane,
    address: &str,
    connection: &Arc<Connection>,
    stream: BoxedStream,
    show: &watch::Sender<Shown>,
) -> Ended {
    show.send_modify(|shown| shown.state = State::Up(Arc::clone(connection)));
    let moved = async {
        dialer.endpoint.directory.moved(to, address).await;
        connection.end(&Ended::Moved);
    };
    tokio::select! {
        biased;
        () = moved => Ended::Moved,
        ended = connection.run(stream, dialer.budgets.connection(lane)) => ended,
    }
}
