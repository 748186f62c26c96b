//! Accepts connections, watches over them, and lets them finish when the node stops.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use cachesql_node::Node;
use cachesql_types::limits;
use futures::FutureExt;
use futures::future::poll_fn;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::AccessToken;
use super::activity::{Activity, Order, Patience, Watch};
use super::door::Door;
use super::socket::WatchedSocket;

/// How the HTTP door is opened.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// `host:port`; port 0 takes a free one.
    pub address: String,
    /// Lets anyone in, from other machines and under any host name. Without it an address that is not loopback needs a token,
    /// and one that is is asked by an IP address, as `localhost`, or by the name in `address`, unless there is a token.
    pub insecure: bool,
    /// What requests must show.
    pub token: Option<AccessToken>,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Connections at a time; more wait to be accepted.
    pub connections: usize,
    /// Time for a request's head to arrive.
    pub head_timeout: Duration,
    /// Time that a connection may idle, or that a reader may leave an answer unread.
    pub idle_timeout: Duration,
    /// Time that requests under way are given when the node stops.
    pub shutdown_grace: Duration,
}

impl HttpConfig {
    /// A door at an address, without a token, with the limits of [`cachesql_types::limits`].
    pub fn new(address: impl Into<String>) -> HttpConfig {
        HttpConfig {
            address: address.into(),
            insecure: false,
            token: None,
            body_bytes: limits::HTTP_BODY_BYTES,
            connections: limits::HTTP_CONNECTIONS,
            head_timeout: limits::HTTP_HEAD_TIMEOUT,
            idle_timeout: limits::HTTP_IDLE_TIMEOUT,
            shutdown_grace: limits::SHUTDOWN_GRACE,
        }
    }
}

/// Why the door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum HttpDoorError {
    /// The address does not resolve, or is not free.
    #[error("http: cannot listen on {address}: {source}")]
    Listen {
        /// The address as it was given.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The address can be reached from other machines, and nothing says who may.
    #[error(
        "http: {address} can be reached from other machines; set an access token, or say `insecure = true` if everyone may read and write"
    )]
    Unprotected {
        /// The address as it was given.
        address: String,
    },
}

/// A bound address that is not served yet.
pub struct HttpDoor {
    listener: TcpListener,
    local: SocketAddr,
    config: HttpConfig,
}

impl HttpDoor {
    /// Binds the address. One beyond loopback is refused unless a token or `insecure` is set.
    pub async fn bind(config: HttpConfig) -> Result<HttpDoor, HttpDoorError> {
        let failed = |source| HttpDoorError::Listen { address: config.address.clone(), source };
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(&config.address).await.map_err(failed)?.collect();
        let protected = config.insecure || config.token.is_some();
        if !protected && addresses.iter().any(|a| !a.ip().to_canonical().is_loopback()) {
            return Err(HttpDoorError::Unprotected { address: config.address });
        }
        let listener = listen(&addresses).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(HttpDoor { listener, local, config })
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `shutdown` is ready; then accepts nothing more, lets requests under way finish, and returns at the
    /// latest when the grace is over.
    pub async fn serve(self, node: Arc<Node>, shutdown: impl Future<Output = ()> + Send) {
        let HttpDoor { listener, local, config } = self;
        let grace = config.shutdown_grace;
        let all = u32::try_from(config.connections.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let slots = Arc::new(Semaphore::new(usize::try_from(all).unwrap_or(Semaphore::MAX_PERMITS)));
        let patience = patience(&config);
        let door = Arc::new(Door::new(node, local, config));
        let mut watches: Vec<Watch> = Vec::new();
        let mut ticks = tokio::time::interval(limits::HTTP_TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                (stream, permit) = accept(&listener, &slots) => watches.push(admit(stream, &door, permit)),
                _ = ticks.tick() => watches.retain_mut(|watch| watch.tick(patience)),
                () = shutdown.as_mut() => break,
            }
        }
        // Who was connected already is served; nobody knows how long ago.
        while let (Ok(permit), Some(Ok((stream, _)))) =
            (slots.clone().try_acquire_owned(), listener.accept().now_or_never())
        {
            watches.push(admit(stream, &door, permit));
        }
        drop(listener);
        door.stop();
        for watch in &watches {
            watch.activity().order(Order::Finish);
        }
        if tokio::time::timeout(grace, slots.acquire_many(all)).await.is_err() {
            tracing::warn!("requests were still under way when the grace was over; their connections are closed");
            for watch in &watches {
                watch.activity().order(Order::Close);
            }
            // Closing needs no more than each task's next turn.
            let _ = tokio::time::timeout(limits::HTTP_TICK, slots.acquire_many(all)).await;
        }
    }
}

/// Binds and serves; see [`HttpDoor`].
pub async fn serve(
    node: Arc<Node>,
    config: HttpConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), HttpDoorError> {
    HttpDoor::bind(config).await?.serve(node, shutdown).await;
    Ok(())
}

/// Listens on the first of some addresses that is free.
fn listen(addresses: &[SocketAddr]) -> std::io::Result<TcpListener> {
    let mut failure = std::io::Error::new(std::io::ErrorKind::InvalidInput, "the name has no address");
    for address in addresses {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let listened = socket.and_then(|socket| {
            socket.set_reuseaddr(true)?;
            socket.bind(*address)?;
            socket.listen(limits::HTTP_BACKLOG)
        });
        match listened {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn patience(config: &HttpConfig) -> Patience {
    let ticks =
        |time: Duration| u32::try_from(time.as_millis() / limits::HTTP_TICK.as_millis()).unwrap_or(u32::MAX).max(1);
    Patience { idle_ticks: ticks(config.idle_timeout), head_ticks: ticks(config.head_timeout) }
}

async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    loop {
        // The semaphore is never closed; were it, nothing more could be accepted.
        let Ok(permit) = slots.clone().acquire_owned().await else { std::future::pending().await };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                // The system has no more descriptors, mostly.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(limits::HTTP_ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Begins to serve a connection, and to watch it.
fn admit(stream: TcpStream, door: &Arc<Door>, permit: OwnedSemaphorePermit) -> Watch {
    let activity = Arc::<Activity>::default();
    let watch = Watch::new(activity.clone());
    tokio::spawn(serve_connection(stream, door.clone(), activity, permit));
    watch
}

/// Tells the system how a connection is used.
fn set_up(stream: &TcpStream) {
    // Without it small answers wait for the reader's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    // A reader's progress is seen by how much more can be written. Were the system's buffers large, a slow one would seem to
    // have stopped for as long as it takes to read them.
    if let Err(error) = SockRef::from(stream).set_tcp_notsent_lowat(limits::HTTP_UNSENT_BYTES) {
        tracing::debug!(%error, "TCP_NOTSENT_LOWAT");
    }
}

async fn serve_connection(stream: TcpStream, door: Arc<Door>, activity: Arc<Activity>, permit: OwnedSemaphorePermit) {
    set_up(&stream);
    let open = door.counters().connection();
    let served = AssertUnwindSafe(drive(stream, &door, &activity)).catch_unwind().await;
    activity.close();
    if served.is_err() {
        tracing::error!("a panic ended a connection");
    }
    drop((open, permit));
}

async fn drive(stream: TcpStream, door: &Arc<Door>, activity: &Arc<Activity>) {
    let shared = door.connection(activity, || stream.local_addr());
    let service = service_fn(|request| door.handle(request, &shared));
    let socket = WatchedSocket::new(stream, activity.clone());
    // Not pipeline_flush: it keeps back the answer to a head that cannot be read.
    // Head and body in one write: gathering them in the kernel costs more than copying a small body.
    let connection = http1::Builder::new()
        .half_close(true)
        .writev(false)
        .max_buf_size(limits::HTTP_HEAD_BYTES)
        .serve_connection(socket, service);
    let mut connection = pin!(connection);
    let mut told = false;
    let mut last_call = None;
    let served = poll_fn(|cx| {
        match activity.ordered(cx.waker()) {
            Order::None => {}
            Order::Finish if told => {}
            Order::Finish => {
                // What has arrived by now is answered first: whoever sent it could not know.
                let last_call = last_call.get_or_insert_with(|| Box::pin(tokio::time::sleep(limits::HTTP_LAST_CALL)));
                if last_call.as_mut().poll(cx).is_ready() {
                    told = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
            Order::Close => return Poll::Ready(Ok(())),
        }
        Pin::as_mut(&mut connection).poll(cx)
    });
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system says of a connection, not what it was told: an option that it does not take would go unnoticed.
    #[tokio::test]
    async fn a_connection_holds_little_that_is_unsent_and_sends_at_once() {
        let listener = listen(&["127.0.0.1:0".parse().expect("an address")]).expect("a free port");
        let _client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connect");
        let (stream, _) = listener.accept().await.expect("accept");
        set_up(&stream);
        assert_eq!(SockRef::from(&stream).tcp_notsent_lowat().expect("asked"), limits::HTTP_UNSENT_BYTES);
        assert!(stream.nodelay().expect("asked"));
    }

    /// Many that come at once, as after a restart, are connected while nobody accepts yet. Beyond the backlog the system would
    /// leave them waiting for seconds.
    #[tokio::test]
    async fn many_connections_may_wait_to_be_accepted() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok();
        let allowed = allowed.and_then(|text| text.trim().parse().ok()).unwrap_or(128);
        let wanted = limits::HTTP_BACKLOG.min(allowed).min(600);
        let listener = listen(&["127.0.0.1:0".parse().expect("an address")]).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut waiting = Vec::new();
        for number in 0..wanted {
            let connected = tokio::time::timeout(Duration::from_secs(30), TcpStream::connect(address)).await;
            waiting.push(connected.unwrap_or_else(|_| panic!("connection {number}")).expect("connect"));
        }
        drop(waiting);
    }
}
