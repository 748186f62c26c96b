//! A TCP connection that says when bytes move.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use cachesql_types::limits;
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::activity::Activity;

/// The connection, and where its movements are noted.
pub(crate) struct WatchedSocket {
    inner: TcpStream,
    activity: Arc<Activity>,
}

impl WatchedSocket {
    /// Watches a connection.
    pub(crate) fn new(inner: TcpStream, activity: Arc<Activity>) -> WatchedSocket {
        WatchedSocket { inner, activity }
    }
}

impl Read for WatchedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        // `into` does not show what is put into it, and what comes in has to be seen.
        let mut space = [MaybeUninit::uninit(); limits::HTTP_READ_BYTES];
        let room = into.remaining().min(space.len());
        let mut read = ReadBuf::uninit(space.get_mut(..room).unwrap_or_default());
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut read))?;
        let address = into.initialize_unfilled_to(0).as_ptr().addr();
        self.activity.note_read(read.filled(), address);
        into.put_slice(read.filled());
        Poll::Ready(Ok(()))
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
        let mut unread = [MaybeUninit::uninit(); limits::HTTP_READ_BYTES];
        for _ in 0..limits::HTTP_UNREAD_BYTES / limits::HTTP_READ_BYTES {
            let mut buffer = ReadBuf::uninit(&mut unread);
            let read = Pin::new(&mut self.inner).poll_read(cx, &mut buffer);
            if !matches!(read, Poll::Ready(Ok(()))) || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
