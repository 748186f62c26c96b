//! Connections to one node: opened when needed, kept for the next request, and closed when a request on them is given up.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::limits;

/// The connections that nobody uses at the moment, the one used last at the end.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<(Connection, Instant)>>);

impl Pool {
    /// A kept connection that is still open, as far as can be told from here.
    pub(crate) fn take(&self) -> Option<Connection> {
        let now = Instant::now();
        let mut idle = self.0.lock();
        while let Some((connection, since)) = idle.pop() {
            if now.duration_since(since) >= limits::IDLE_TIMEOUT {
                // Those before it have idled for longer.
                idle.clear();
                return None;
            }
            if !connection.sender.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose last answer was read to its end.
    pub(crate) fn put(&self, connection: Connection) {
        let now = Instant::now();
        let mut idle = self.0.lock();
        idle.retain(|(kept, since)| now.duration_since(*since) < limits::IDLE_TIMEOUT && !kept.sender.is_closed());
        if idle.len() < limits::IDLE_CONNECTIONS && !connection.sender.is_closed() {
            idle.push((connection, now));
        }
    }
}

/// One HTTP/1.1 connection. Dropping it closes it at once, in the middle of an answer too: one that nobody waits for any more
/// is not read.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The address of the node that gave it.
    pub(crate) node: String,
    pub(crate) head: Response<()>,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status()
    }

    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers().get(name).and_then(|value| value.to_str().ok())
    }
}

/// How a request on a connection failed.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Nothing of it left this process.
    Unsent(String),
    /// The node may have read it.
    Sent(String),
}

impl Connection {
    /// Opens a connection.
    pub(crate) async fn open(authority: &str, time: Duration) -> Result<Connection, String> {
        let connecting = tokio::time::timeout(time, TcpStream::connect(authority)).await;
        let stream = connecting
            .map_err(|_| format!("cannot connect within {} ms", time.as_millis()))?
            .map_err(|error| format!("cannot connect: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            // Its error reaches whoever waits for the answer.
            let _ = connection.await;
        });
        Ok(Connection { sender, authority: authority.to_owned() })
    }

    /// Sends a request and reads its answer whole, up to a number of bytes.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>, most_bytes: usize) -> Result<Reply, Broken> {
        self.sender.ready().await.map_err(|error| Broken::Unsent(error.to_string()))?;
        let response = self.sender.try_send_request(request).await.map_err(|mut failed| {
            let unsent = failed.take_message().is_some();
            let error = failed.into_error().to_string();
            if unsent { Broken::Unsent(error) } else { Broken::Sent(error) }
        })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, most_bytes).collect().await.map_err(|error| {
            Broken::Sent(match error.is::<LengthLimitError>() {
                true => format!("an answer of more than {most_bytes} bytes"),
                false => format!("the answer ends in the middle: {error}"),
            })
        })?;
        Ok(Reply { node: self.authority.clone(), head: Response::from_parts(head, ()), body: body.to_bytes() })
    }
}
