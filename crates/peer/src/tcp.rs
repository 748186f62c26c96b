//! The network that clusters run on: TCP without delay, with keep-alive.

use std::io;

use cachesql_types::limits;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use crate::network::Network;

/// TCP of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpNetwork;

/// Small frames leave at once, and the kernel too asks whether the other end is there.
fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(limits::PEER_KEEPALIVE).with_interval(limits::PEER_KEEPALIVE);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

impl Network for TcpNetwork {
    type Stream = TcpStream;
    type Listener = TcpListener;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        tune(&stream)?;
        Ok(stream)
    }

    async fn bind(&self, address: &str) -> io::Result<TcpListener> {
        TcpListener::bind(address).await
    }

    fn local_address(&self, listener: &TcpListener) -> io::Result<String> {
        Ok(listener.local_addr()?.to_string())
    }

    async fn accept(&self, listener: &mut TcpListener) -> io::Result<(TcpStream, String)> {
        let (stream, remote) = listener.accept().await?;
        tune(&stream)?;
        Ok((stream, remote.to_string()))
    }
}
