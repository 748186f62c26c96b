//! The network between two nodes, as a test wants it: a TCP proxy that passes bytes on, or holds them, in each direction.
//!
//! What is held arrives later, as what was lost on a real network does when TCP sends it again.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Time between two looks whether bytes may go on.
const LOOK: Duration = Duration::from_millis(5);

/// Which bytes go on.
#[derive(Debug, Default)]
struct Gates {
    closed: AtomicBool,
    /// Bytes towards the node that is connected to.
    held_there: AtomicBool,
    /// Bytes back.
    held_back: AtomicBool,
}

/// A way from one node to another. It is gone when this is dropped.
pub(crate) struct Proxy {
    gates: Arc<Gates>,
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// A way to an address.
    pub(crate) fn to(address: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let (gates, to) = (Arc::new(Gates::default()), address.to_owned());
        let proxy = Proxy { gates: gates.clone(), address: listener.local_addr().expect("bound") };
        thread::spawn(move || {
            while !gates.closed.load(Ordering::Relaxed) {
                match listener.accept() {
                    // A node that is gone refuses, and so does the way to it.
                    Ok((near, _)) => drop(TcpStream::connect(&to).map(|far| join(near, far, &gates))),
                    Err(_) => thread::sleep(LOOK),
                }
            }
        });
        proxy
    }

    /// Holds what goes to the node, what comes back, or both.
    pub(crate) fn hold(&self, there: bool, back: bool) {
        self.gates.held_there.store(there, Ordering::Relaxed);
        self.gates.held_back.store(back, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.gates.closed.store(true, Ordering::Relaxed);
    }
}

fn join(near: TcpStream, far: TcpStream, gates: &Arc<Gates>) {
    for (from, to, there) in [(&near, &far, true), (&far, &near, false)] {
        let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
        let gates = gates.clone();
        thread::spawn(move || pass(from, to, &gates, there));
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, gates: &Gates, there: bool) {
    let held = if there { &gates.held_there } else { &gates.held_back };
    // The other thread of the pair may have ended the connection already.
    let _ = from.set_nonblocking(false);
    let _ = from.set_read_timeout(Some(Duration::from_millis(100)));
    let _ = to.set_nodelay(true);
    let mut bytes = [0; 65_536];
    while !gates.closed.load(Ordering::Relaxed) {
        let read = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => break,
        };
        while held.load(Ordering::Relaxed) && !gates.closed.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}
