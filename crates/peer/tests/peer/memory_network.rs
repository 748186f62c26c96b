//! A network in memory, whose connections can be watched, cut and held up.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cachesql_peer::Network;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc;

/// Bytes that one direction of a connection holds.
const PIPE_BYTES: usize = 64 << 10;

/// What is done to one connection.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<FaultState>>);

#[derive(Default)]
struct FaultState {
    /// Nothing arrives any more, and nobody is told.
    cut: bool,
    /// The connecting side does not read, the accepting side does not.
    held: [bool; 2],
    wakers: Vec<Waker>,
}

impl Fault {
    /// Loses all that is sent from now on, both ways.
    pub(crate) fn cut(&self) {
        self.0.lock().expect("not poisoned").cut = true;
    }

    /// The accepting side stops reading, or goes on.
    pub(crate) fn hold(&self, held: bool) {
        self.hold_side(true, held);
    }

    /// The connecting side stops reading, or goes on.
    pub(crate) fn hold_dialer(&self, held: bool) {
        self.hold_side(false, held);
    }

    fn hold_side(&self, accepting: bool, held: bool) {
        let mut state = self.0.lock().expect("not poisoned");
        state.held[usize::from(accepting)] = held;
        state.wakers.drain(..).for_each(Waker::wake);
    }
}

pub(crate) struct MemoryStream {
    inner: DuplexStream,
    fault: Fault,
    accepting: bool,
}

impl AsyncRead for MemoryStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.fault.0.lock().expect("not poisoned");
        if state.cut || state.held[usize::from(self.accepting)] {
            state.wakers.push(context.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        Pin::new(&mut self.inner).poll_read(context, into)
    }
}

impl AsyncWrite for MemoryStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.fault.0.lock().expect("not poisoned").cut {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

type Arrivals = mpsc::UnboundedSender<(MemoryStream, String)>;

#[derive(Clone, Default)]
pub(crate) struct MemoryNetwork(Arc<Mutex<Places>>);

#[derive(Default)]
struct Places {
    listening: BTreeMap<String, Arrivals>,
    /// All connections there were, the oldest first.
    connections: Vec<Fault>,
}

impl MemoryNetwork {
    /// All connections there were, the oldest first.
    pub(crate) fn connections(&self) -> Vec<Fault> {
        self.0.lock().expect("not poisoned").connections.clone()
    }
}

impl Network for MemoryNetwork {
    type Stream = MemoryStream;
    type Listener = (String, mpsc::UnboundedReceiver<(MemoryStream, String)>);

    async fn connect(&self, address: &str) -> io::Result<MemoryStream> {
        let (near, far) = duplex(PIPE_BYTES);
        let fault = Fault::default();
        let mut places = self.0.lock().expect("not poisoned");
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listening = places.listening.get(address).ok_or_else(refused)?;
        let far = MemoryStream { inner: far, fault: fault.clone(), accepting: true };
        let remote = format!("connection {}", places.connections.len());
        listening.send((far, remote)).map_err(|_| refused())?;
        places.connections.push(fault.clone());
        Ok(MemoryStream { inner: near, fault, accepting: false })
    }

    async fn bind(&self, address: &str) -> io::Result<Self::Listener> {
        let (arrive, arrivals) = mpsc::unbounded_channel();
        let mut places = self.0.lock().expect("not poisoned");
        if places.listening.get(address).is_some_and(|old| !old.is_closed()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        places.listening.insert(address.to_owned(), arrive);
        Ok((address.to_owned(), arrivals))
    }

    fn local_address(&self, listener: &Self::Listener) -> io::Result<String> {
        Ok(listener.0.clone())
    }

    async fn accept(&self, listener: &mut Self::Listener) -> io::Result<(MemoryStream, String)> {
        listener.1.recv().await.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}
