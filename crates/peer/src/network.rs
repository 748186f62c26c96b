//! What carries connections: a trait, so that tests and the simulator can be the network, and the seam where TLS will be.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::identity::NodeName;

/// A network that nodes reach each other over.
pub trait Network: Send + Sync + 'static {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// A bound address.
    type Listener: Send + 'static;

    /// Connects to `host:port`. The caller bounds the time.
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Binds `host:port`; port 0 takes a free one.
    fn bind(&self, address: &str) -> impl Future<Output = io::Result<Self::Listener>> + Send;

    /// Where a listener is, as others would connect to it.
    fn local_address(&self, listener: &Self::Listener) -> io::Result<String>;

    /// The next connection, and where it comes from. Dropping the future loses no connection.
    fn accept(&self, listener: &mut Self::Listener) -> impl Future<Output = io::Result<(Self::Stream, String)>> + Send;
}

/// What both TCP and what is wrapped around it are.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// A connection, whatever it is made of.
pub type BoxedStream = Box<dyn ByteStream>;

/// The side of a connection that is to be wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// This node connected, to that node.
    Dialer(NodeName),
    /// This node was connected to.
    Door,
}

/// Wraps a fresh connection before its handshake: where mutual TLS will be. An error ends the connection. Its time counts
/// as time of the handshake.
pub type Wrap = Arc<dyn Fn(BoxedStream, Side) -> BoxFuture<'static, io::Result<BoxedStream>> + Send + Sync>;

/// Wraps nothing.
pub fn plain() -> Wrap {
    Arc::new(|stream, _| Box::pin(async { Ok(stream) }))
}
