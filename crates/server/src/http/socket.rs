//! A TCP connection that says when bytes move.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::activity::Activity;

/// How often what a peer sent in vain is read from a connection that is closed, 4 KiB at a time.
const UNREAD_READS: usize = 256;

/// The connection, and where its movements are noted.
pub(crate) struct WatchedSocket {
    inner: TokioIo<TcpStream>,
    activity: Arc<Activity>,
}

impl WatchedSocket {
    /// Watches a connection.
    pub(crate) fn new(stream: TcpStream, activity: Arc<Activity>) -> WatchedSocket {
        WatchedSocket { inner: TokioIo::new(stream), activity }
    }
}

impl Read for WatchedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if read.is_ready() {
            self.activity.note_read();
        }
        read
    }
}

impl Write for WatchedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.activity.note_write(written.is_pending());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.activity.note_write(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
        // Bytes that nobody reads would make the system answer with a reset, and the reset could overtake the answer that
        // says why they are not read.
        let mut unread = [0; 4096];
        for _ in 0..UNREAD_READS {
            let mut buffer = ReadBuf::new(&mut unread);
            let read = Pin::new(&mut self.inner).poll_read(cx, buffer.unfilled());
            if !matches!(read, Poll::Ready(Ok(()))) || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
