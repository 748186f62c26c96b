//! Addresses of a test's own: a part of 127.0.0.0/8 that nobody else on the machine uses while the test runs.
//!
//! A port that was free a moment ago is anybody's: another server's, or the near end of any connection. A node that a test stops
//! and starts again must find its own address free, so each test has addresses of which nobody else binds a port.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Where networks are looked for before giving up.
const TRIES: usize = 1_000;
/// The ports begin here: below those that systems give to connections, as are those of [`Loopback::peer`].
const FIRST_PORT: u16 = 8_100;
const PORTS: u16 = 8_000;
/// How far above a node's port for HTTP the one for other nodes is, as nodes of `cachesql.properties` have it.
const PEER_ABOVE: u16 = 10_000;
/// The host whose ports are held, so that nobody else takes the network.
const HELD: u8 = 254;

/// A network of a test's own, until it is dropped.
pub struct Loopback {
    network: [u8; 2],
    port: u16,
    _held: [TcpListener; 2],
}

impl Loopback {
    /// A network that is free. Panics when there is none.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Loopback {
        let random = RandomState::new();
        for n in 0..TRIES {
            let [second, third, a, b, ..] = random.hash_one(n).to_le_bytes();
            // 127.0.0.0/16 is where everybody is.
            let network = [second.max(1), third];
            let port = FIRST_PORT + u16::from_le_bytes([a, b]) % PORTS;
            // Refused too where somebody listens on that port of all addresses.
            let bind = |port| TcpListener::bind((address_of(network, HELD), port));
            if let (Ok(one), Ok(other)) = (bind(port), bind(port + PEER_ABOVE)) {
                return Loopback { network, port, _held: [one, other] };
            }
        }
        panic!("127.0.0.0/8 has no free network");
    }

    /// Where a node answers HTTP. `node` counts from 0 to 252.
    pub fn http(&self, node: usize) -> SocketAddr {
        (self.host(node), self.port).into()
    }

    /// Where a node is reached by others.
    pub fn peer(&self, node: usize) -> SocketAddr {
        (self.host(node), self.port + PEER_ABOVE).into()
    }

    fn host(&self, node: usize) -> Ipv4Addr {
        let host = u8::try_from(node + 1).ok().filter(|host| *host < HELD).expect("fewer than 253 nodes");
        address_of(self.network, host)
    }
}

fn address_of([second, third]: [u8; 2], host: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, second, third, host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Binds once it may: a process that another test is just starting has this one's sockets for a moment.
    fn bind_soon(address: SocketAddr) -> TcpListener {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match TcpListener::bind(address) {
                Ok(listener) => return listener,
                Err(error) => assert!(Instant::now() < deadline, "it is not free again: {error}"),
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_address_is_its_own_and_free_again_and_again() {
        let networks: Vec<Loopback> = (0..50).map(|_| Loopback::new()).collect();
        let hosts: std::collections::BTreeSet<_> = networks.iter().map(|network| network.http(0).ip()).collect();
        assert_eq!(hosts.len(), networks.len());
        for network in &networks {
            for address in [network.http(0), network.peer(0), network.http(1)] {
                // Bound, connected to, and bound again while the connection is there.
                let listener = TcpListener::bind(address).expect("free");
                let near = std::net::TcpStream::connect(address).expect("it listens");
                let _far = listener.accept().expect("connected");
                drop(listener);
                assert_ne!(near.local_addr().expect("connected").ip(), address.ip());
                drop(bind_soon(address));
            }
        }
    }
}
