//! One connection after its handshake, whichever side it is seen from: reads frames and hands them on, writes what the
//! outbox has, pings, and notices when the other side is gone.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use cachesql_types::limits;
use futures::future::poll_fn;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::error::Ended;
use crate::frame::{self, Frame, FrameError};
use crate::outbox::{Outbox, Pull};
use crate::wire::{FRAME_HEAD_BYTES, Kind};

/// What one side does with the frames of the other.
pub(crate) trait FrameHandler {
    /// Whether no more is read while the outbox is crowded. A door does that, since what it reads makes it write. A dialer
    /// must not: if both did, each would wait for the other to read.
    const PAUSES: bool;

    /// A frame that is neither ping nor pong.
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), FrameError>;

    /// Called every [`limits::PEER_PING_INTERVAL`]; an error ends the connection.
    fn tick(&mut self) -> Result<(), Ended>;
}

/// Signs of life of a connection, for whoever looks.
#[derive(Debug)]
pub(crate) struct Pulse {
    since: Instant,
    /// Microseconds after `since` at which something was last heard.
    heard_us: AtomicU64,
    /// Microseconds of the last round trip and one, so that 0 is none.
    round_trip_us: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Pulse {
        Pulse { since: Instant::now(), heard_us: AtomicU64::new(0), round_trip_us: AtomicU64::new(0) }
    }

    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Time since something was heard.
    pub(crate) fn heard_ago(&self) -> Duration {
        self.age().saturating_sub(Duration::from_micros(self.heard_us.load(Ordering::Relaxed)))
    }

    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.round_trip_us.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_micros)
    }

    fn hear(&self) {
        self.heard_us.store(microseconds(self.age()), Ordering::Relaxed);
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Runs a connection until it ends.
pub(crate) async fn run<S, H>(stream: S, outbox: &Outbox, pulse: &Pulse, handler: &mut H) -> Ended
where
    S: AsyncRead + AsyncWrite,
    H: FrameHandler,
{
    let (reader, writer) = tokio::io::split(stream);
    let mut reads = pin!(read(reader, outbox, pulse, handler));
    let mut writes = pin!(write(writer, outbox));
    // Who is looked at first changes from time to time, so that neither starves the other, and not by chance, so that a
    // simulation is the same each time.
    let mut reads_first = false;
    poll_fn(|context| {
        reads_first = !reads_first;
        for turn in [reads_first, !reads_first] {
            let ready = if turn { reads.as_mut().poll(context) } else { writes.as_mut().poll(context) };
            if let Poll::Ready(result) = ready {
                return Poll::Ready(result.err().unwrap_or(Ended::Closed));
            }
        }
        Poll::Pending
    })
    .await
}

async fn write<W: AsyncWrite + Unpin>(mut writer: W, outbox: &Outbox) -> Result<(), Ended> {
    let mut buffer = BytesMut::with_capacity(limits::PEER_WRITE_BYTES);
    loop {
        match outbox.pull(&mut buffer) {
            Pull::Write => {}
            Pull::Wait => {
                outbox.filled().await;
                continue;
            }
            Pull::Close => {
                timeout(limits::PEER_STALL, writer.shutdown()).await.map_err(|_| Ended::Stalled)??;
                // The other side has seen all when it closes as well, which the reader notices.
                return std::future::pending().await;
            }
        }
        while buffer.has_remaining() {
            let wrote = timeout(limits::PEER_STALL, writer.write_buf(&mut buffer)).await;
            if wrote.map_err(|_| Ended::Stalled)?? == 0 {
                return Err(Ended::Closed);
            }
        }
        timeout(limits::PEER_STALL, writer.flush()).await.map_err(|_| Ended::Stalled)??;
        buffer.clear();
    }
}

async fn read<R, H>(mut reader: R, outbox: &Outbox, pulse: &Pulse, handler: &mut H) -> Result<(), Ended>
where
    R: AsyncRead + Unpin,
    H: FrameHandler,
{
    let mut buffer = BytesMut::new();
    let mut ticks = interval(limits::PEER_PING_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pings = Pings::default();
    // Silence counts while this side listens only. It has to be found twice: after the first time this side looks once more
    // for what may have arrived while it was itself held up.
    let mut quiet_since = Instant::now();
    let mut overdue = false;
    loop {
        let paused = take_frames(&mut buffer, outbox, pulse, &mut pings, handler)?;
        // Room for a whole frame beside what is there, so that the buffer is bounded by two.
        if buffer.capacity() - buffer.len() < FRAME_HEAD_BYTES + limits::PEER_REFUSAL_BYTES {
            buffer.reserve(FRAME_HEAD_BYTES + limits::PEER_FRAME_BYTES);
        }
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                handler.tick()?;
                if paused {
                    quiet_since = Instant::now();
                } else if quiet_since.elapsed() >= limits::PEER_SILENCE {
                    if overdue {
                        return Err(Ended::Silent);
                    }
                    overdue = true;
                }
                outbox.ping(pings.next());
            }
            () = outbox.emptied(), if paused => {}
            bytes = reader.read_buf(&mut buffer), if !paused => {
                if bytes? == 0 {
                    return Err(if buffer.is_empty() {
                        Ended::Closed
                    } else {
                        FrameError::Cut { bytes: buffer.len() }.into()
                    });
                }
                pulse.hear();
                (quiet_since, overdue) = (Instant::now(), false);
            }
        }
    }
}

/// Hands on all whole frames; tells whether some may be left because the outbox is crowded.
fn take_frames<H: FrameHandler>(
    buffer: &mut BytesMut,
    outbox: &Outbox,
    pulse: &Pulse,
    pings: &mut Pings,
    handler: &mut H,
) -> Result<bool, Ended> {
    loop {
        if H::PAUSES && outbox.is_crowded() {
            return Ok(true);
        }
        let Some(frame) = frame::decode(buffer)? else { return Ok(false) };
        match frame.kind {
            Kind::Ping | Kind::Pong if !frame.payload.is_empty() => {
                return Err(frame.malformed("it has a payload").into());
            }
            Kind::Ping => outbox.pong(frame.id),
            Kind::Pong => {
                if let Some(round_trip) = pings.answered(frame.id)? {
                    pulse.round_trip_us.store(microseconds(round_trip).saturating_add(1), Ordering::Relaxed);
                }
            }
            _ => handler.frame(&frame)?,
        }
        let bytes = frame.bytes();
        buffer.advance(bytes);
    }
}

/// Pings of one side: their ids count up from 1, and the time of the last is kept.
#[derive(Default)]
struct Pings {
    last: u64,
    sent: Option<Instant>,
}

impl Pings {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.sent = Some(Instant::now());
        self.last
    }

    /// The time that a ping's answer took; nothing, if another ping went out since.
    fn answered(&mut self, id: u64) -> Result<Option<Duration>, FrameError> {
        if id == 0 || id > self.last {
            return Err(FrameError::AnswerToNothing { id });
        }
        if id < self.last {
            return Ok(None);
        }
        Ok(self.sent.take().map(|sent| sent.elapsed()))
    }
}
