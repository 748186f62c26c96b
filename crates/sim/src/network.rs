//! The simulated network, as nodes see it.

use std::io;
use std::net::Ipv4Addr;

use cachesql_peer::Network;
use turmoil::net::{TcpListener, TcpStream};

/// Connections between simulated hosts, by their names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedNetwork;

impl Network for SimulatedNetwork {
    type Stream = TcpStream;
    type Listener = TcpListener;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }

    async fn bind(&self, address: &str) -> io::Result<TcpListener> {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let port = port.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, address.to_owned()))?;
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
    }

    fn local_address(&self, listener: &TcpListener) -> io::Result<String> {
        Ok(listener.local_addr()?.to_string())
    }

    async fn accept(&self, listener: &mut TcpListener) -> io::Result<(TcpStream, String)> {
        let (stream, remote) = listener.accept().await?;
        Ok((stream, remote.to_string()))
    }
}
