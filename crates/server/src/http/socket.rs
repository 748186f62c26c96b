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
use super::unreadable;

/// The connection, and where its movements are noted.
pub(crate) struct WatchedSocket {
    inner: TcpStream,
    activity: Arc<Activity>,
    /// Whether the latest bytes were taken in part: what is written next goes on with them.
    in_part: bool,
    /// What is written instead of an answer of hyper's own, and how much of it was taken.
    instead: Option<(Vec<u8>, usize)>,
}

impl WatchedSocket {
    /// Watches a connection.
    pub(crate) fn new(inner: TcpStream, activity: Arc<Activity>) -> WatchedSocket {
        WatchedSocket { inner, activity, in_part: false, instead: None }
    }
}

impl WatchedSocket {
    fn poll_write_some(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.activity.note_write(written.is_pending());
        written
    }

    /// Writes what stands for other bytes; `length`, how many those are, when all of it is taken.
    fn poll_write_instead(&mut self, cx: &mut Context<'_>, length: usize) -> Poll<io::Result<usize>> {
        while let Some((text, taken)) = self.instead.take() {
            let rest = text.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let written = self.poll_write_some(cx, rest);
            let more = if let Poll::Ready(Ok(more)) = written { more } else { 0 };
            self.instead = Some((text, taken.saturating_add(more)));
            match ready!(written) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(length))
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
        // Whatever does not go on with something begins with a head, or with the length of a chunk.
        if !self.in_part && self.instead.is_none() {
            self.instead = unreadable::explained(buf).map(|text| (text, 0));
        }
        if self.instead.is_some() {
            return self.poll_write_instead(cx, buf.len());
        }
        let written = self.poll_write_some(cx, buf);
        if let Poll::Ready(Ok(length)) = written {
            self.in_part = length < buf.len();
        }
        written
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
