//! The calling side of one connection: calls that are under way, their answers, and what is known of them when it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use cachesql_types::limits;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::error::{CallError, Ended, NotSent, Unknown, whole_milliseconds};
use crate::frame::{Frame, FrameError};
use crate::identity::NodeName;
use crate::message::{Incoming, Progress, Room, longest_message};
use crate::network::BoxedStream;
use crate::outbox::{Outbox, Stopped};
use crate::pipe::{FrameHandler, Pulse, run};
use crate::wire::{Kind, Lane, REQUEST_HEAD_BYTES, Rejection};

/// Bytes of a request that goes in one frame.
const SHORT_BYTES: usize = limits::PEER_FRAME_BYTES - REQUEST_HEAD_BYTES;

/// What a call comes to, before the name of the other node is added.
#[derive(Debug)]
enum Failure {
    NotSent(NotSent),
    Unknown(Unknown),
    Refused { code: u16, message: String },
}

type Reply = Result<Bytes, Failure>;

/// A call that was queued, until a frame comes that ends it.
struct Waiting {
    /// Who waits; nobody, when the caller has left.
    reply: Option<oneshot::Sender<Reply>>,
    /// The answer, when some of it is there.
    answer: Option<Incoming>,
    _slot: OwnedSemaphorePermit,
}

impl Waiting {
    fn tell(&mut self, reply: Reply) {
        if let Some(caller) = self.reply.take() {
            // It fails when the caller leaves at this moment.
            let _ = caller.send(reply);
        }
    }
}

struct Calls {
    last_id: u64,
    /// By id, so that all are told in the same order each time.
    waiting: BTreeMap<u64, Waiting>,
    /// Why nothing more may be asked.
    over: Option<NotSent>,
    leaving: bool,
}

/// One connection to a node, in one lane. `calls` is locked before the outbox, never after it.
pub(crate) struct Connection {
    to: NodeName,
    lane: Lane,
    version: u16,
    outbox: Outbox,
    pulse: Pulse,
    calls: Mutex<Calls>,
    /// Calls that may be under way.
    slots: Arc<Semaphore>,
    /// Bytes of messages of one frame that may wait to be written.
    short_queue: Arc<Semaphore>,
    /// Bytes of longer ones: those of one frame do not wait behind them for room.
    long_queue: Arc<Semaphore>,
}

impl Connection {
    pub(crate) fn new(to: NodeName, lane: Lane, version: u16) -> Connection {
        let calls = Calls { last_id: 0, waiting: BTreeMap::new(), over: None, leaving: false };
        Connection {
            to,
            lane,
            version,
            outbox: Outbox::default(),
            pulse: Pulse::new(),
            calls: Mutex::new(calls),
            slots: Arc::new(Semaphore::new(limits::PEER_IN_FLIGHT)),
            short_queue: Arc::new(Semaphore::new(limits::PEER_QUEUE_BYTES)),
            long_queue: Arc::new(Semaphore::new(limits::PEER_QUEUE_BYTES)),
        }
    }

    pub(crate) fn version(&self) -> u16 {
        self.version
    }

    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Calls that are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.calls.lock().waiting.len()
    }

    /// Runs the connection until it ends; then every call that is under way is told. So it is when this is dropped.
    pub(crate) async fn run(&self, stream: BoxedStream, room: Room) -> Ended {
        let end = EndOnDrop { connection: self, ended: Some(Ended::Stopped) };
        let mut handler = Answers { connection: self, room };
        let ended = run(stream, &self.outbox, &self.pulse, &mut handler).await;
        let left = matches!(ended, Ended::Closed) && self.calls.lock().leaving;
        let ended = if left { Ended::Goodbye } else { ended };
        end.with(ended)
    }

    /// Calls a service and waits for the answer. Who drops the future cancels the call.
    pub(crate) async fn call(&self, service: u16, payload: Bytes, deadline: Instant) -> Result<Bytes, CallError> {
        self.reply(service, payload, deadline).await.map_err(|failure| {
            let to = self.to.clone();
            match failure {
                Failure::NotSent(why) => CallError::NotSent { to, why },
                Failure::Unknown(why) => CallError::Unknown { to, why },
                Failure::Refused { code, message } => CallError::Refused { to, code, message },
            }
        })
    }

    async fn reply(&self, service: u16, payload: Bytes, deadline: Instant) -> Reply {
        let (bytes, most) = (payload.len(), longest_message(self.lane));
        if bytes > most {
            return Err(Failure::NotSent(NotSent::TooLong { bytes, most }));
        }
        let slot = self.acquire(&self.slots, 1, deadline).await?;
        // A message longer than the queue waits until that is empty.
        let queue = if bytes <= SHORT_BYTES { &self.short_queue } else { &self.long_queue };
        let queue = self.acquire(queue, bytes.min(limits::PEER_QUEUE_BYTES), deadline).await?;
        let (reply, answer) = oneshot::channel();
        let id =
            self.begin(service, payload, deadline, Waiting { reply: Some(reply), answer: None, _slot: slot }, queue)?;
        let mut call = LeaveOnDrop { connection: self, id: Some(id) };
        let result = timeout_at(deadline, answer).await;
        match result {
            Ok(Ok(reply)) => {
                call.id = None;
                reply
            }
            // Every call is told something; should one be forgotten, this is what is known of it.
            Ok(Err(_)) => Err(Failure::Unknown(Unknown::Ended(Ended::Closed))),
            Err(_) => Err(match call.leave() {
                Some(Stopped::Unsent | Stopped::Partly) => Failure::NotSent(NotSent::Deadline),
                Some(Stopped::Sent) | None => Failure::Unknown(Unknown::Deadline),
            }),
        }
    }

    /// Waits for room, until the deadline or the end of the connection.
    async fn acquire(
        &self,
        semaphore: &Arc<Semaphore>,
        permits: usize,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        if deadline <= Instant::now() {
            return Err(Failure::NotSent(NotSent::Deadline));
        }
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(semaphore).try_acquire_many_owned(permits) {
            return Ok(permit);
        }
        match timeout_at(deadline, Arc::clone(semaphore).acquire_many_owned(permits)).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Failure::NotSent(self.calls.lock().why_over())),
            Err(_) => Err(Failure::NotSent(NotSent::Deadline)),
        }
    }

    fn begin(
        &self,
        service: u16,
        payload: Bytes,
        deadline: Instant,
        waiting: Waiting,
        queue: OwnedSemaphorePermit,
    ) -> Result<u64, Failure> {
        let left_ms = whole_milliseconds(deadline.saturating_duration_since(Instant::now()));
        let mut calls = self.calls.lock();
        if calls.over.is_some() {
            return Err(Failure::NotSent(calls.why_over()));
        }
        calls.last_id += 1;
        let id = calls.last_id;
        calls.waiting.insert(id, waiting);
        // Under the lock, so that requests stand in the queue in the order of their ids.
        self.outbox.request(id, service, left_ms, payload, queue);
        Ok(id)
    }

    /// Nobody waits for a call any more. Nothing, if it has ended.
    fn leave(&self, id: u64) -> Option<Stopped> {
        let mut calls = self.calls.lock();
        let waiting = calls.waiting.get_mut(&id)?;
        waiting.reply = None;
        if let Some(answer) = &mut waiting.answer {
            answer.discard();
        }
        let stopped = self.outbox.stop(id);
        if stopped == Stopped::Unsent {
            calls.waiting.remove(&id);
        }
        Some(stopped)
    }

    fn close_queues(&self) {
        for queue in [&self.slots, &self.short_queue, &self.long_queue] {
            queue.close();
        }
    }

    /// Tells every call that is under way that the connection has ended; only the first reason counts.
    pub(crate) fn end(&self, ended: &Ended) {
        let mut calls = self.calls.lock();
        if !matches!(calls.over, Some(NotSent::Ended(_))) {
            calls.over = Some(NotSent::Ended(ended.clone()));
        }
        self.close_queues();
        let unsent = self.outbox.take_all();
        for (id, mut waiting) in std::mem::take(&mut calls.waiting) {
            waiting.tell(Err(if unsent.contains(&id) {
                Failure::NotSent(NotSent::Ended(ended.clone()))
            } else {
                Failure::Unknown(Unknown::Ended(ended.clone()))
            }));
        }
    }

    /// The other side wants no more calls: those that are not on their way may go elsewhere.
    fn say_goodbye(&self) {
        let mut calls = self.calls.lock();
        calls.leaving = true;
        calls.over = Some(NotSent::Rejected(Rejection::Leaving));
        self.close_queues();
        for id in self.outbox.take_unbegun() {
            if let Some(mut waiting) = calls.waiting.remove(&id) {
                waiting.tell(Err(Failure::NotSent(NotSent::Rejected(Rejection::Leaving))));
            }
        }
        self.outbox.goodbye();
    }
}

impl Calls {
    fn why_over(&self) -> NotSent {
        self.over.clone().unwrap_or(NotSent::Ended(Ended::Closed))
    }
}

struct EndOnDrop<'a> {
    connection: &'a Connection,
    ended: Option<Ended>,
}

impl EndOnDrop<'_> {
    fn with(mut self, ended: Ended) -> Ended {
        self.ended = Some(ended.clone());
        ended
    }
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            self.connection.end(&ended);
        }
    }
}

struct LeaveOnDrop<'a> {
    connection: &'a Connection,
    id: Option<u64>,
}

impl LeaveOnDrop<'_> {
    fn leave(&mut self) -> Option<Stopped> {
        self.id.take().and_then(|id| self.connection.leave(id))
    }
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Takes in what the door sends.
struct Answers<'a> {
    connection: &'a Connection,
    room: Room,
}

impl FrameHandler for Answers<'_> {
    const PAUSES: bool = false;

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        match frame.kind {
            Kind::Answer => self.answer(frame),
            Kind::Continue => self.more(frame),
            Kind::Refusal => self.refusal(frame),
            Kind::Rejected => self.rejected(frame),
            Kind::Cancelled => self.cancelled(frame),
            Kind::Goodbye => {
                self.connection.say_goodbye();
                Ok(())
            }
            Kind::Request | Kind::Cancel | Kind::Ping | Kind::Pong => {
                Err(FrameError::WrongSide { kind: frame.kind.number() })
            }
        }
    }

    fn tick(&mut self) -> Result<(), Ended> {
        Ok(())
    }
}

impl Answers<'_> {
    fn answer(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        let mut part = frame.payload;
        let total = part.try_get_u32().map_err(|_| frame.malformed("its length is cut"))?;
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let most = longest_message(self.connection.lane);
        if total > most {
            return Err(FrameError::TooLong { bytes: total, most });
        }
        if part.len() > total {
            return Err(frame.malformed("it is longer than it says"));
        }
        let mut calls = self.connection.calls.lock();
        let waiting = unanswered(&mut calls, frame.id)?;
        if part.len() == total {
            waiting.tell(Ok(Bytes::copy_from_slice(part)));
            self.close(&mut calls, frame.id);
            return Ok(());
        }
        let wanted = waiting.reply.is_some();
        let reservation = if wanted { self.room.reserve(total) } else { None };
        waiting.answer = Some(match reservation {
            Some(reservation) => Incoming::assemble(total, part, reservation),
            None => Incoming::Discarding { left: total - part.len() },
        });
        if wanted && matches!(waiting.answer, Some(Incoming::Discarding { .. })) {
            waiting.tell(Err(Failure::Unknown(Unknown::NoRoom { bytes: total })));
            self.connection.outbox.stop(frame.id);
        }
        Ok(())
    }

    fn more(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        let mut calls = self.connection.calls.lock();
        let nothing = FrameError::ContinuationOfNothing { id: frame.id };
        let waiting = calls.waiting.get_mut(&frame.id).ok_or(nothing.clone())?;
        let answer = waiting.answer.take().ok_or(nothing)?;
        let (progress, open) = answer.add(frame.payload).ok_or(frame.malformed("more than is missing, or nothing"))?;
        waiting.answer = open;
        match progress {
            Progress::Open => return Ok(()),
            Progress::Discarded => {}
            Progress::Whole(bytes, _) => waiting.tell(Ok(bytes)),
        }
        self.close(&mut calls, frame.id);
        Ok(())
    }

    fn refusal(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        let mut text = frame.payload;
        let code = text.try_get_u16().map_err(|_| frame.malformed("its code is cut"))?;
        if text.len() > limits::PEER_REFUSAL_BYTES {
            return Err(FrameError::TooLong { bytes: text.len(), most: limits::PEER_REFUSAL_BYTES });
        }
        let message = std::str::from_utf8(text).map_err(|_| frame.malformed("its text is not UTF-8"))?.to_owned();
        let mut calls = self.connection.calls.lock();
        unanswered(&mut calls, frame.id)?.tell(Err(Failure::Refused { code, message }));
        self.close(&mut calls, frame.id);
        Ok(())
    }

    fn rejected(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        let [number] = frame.payload else { return Err(frame.malformed("it is not one byte long")) };
        let rejection = Rejection::from_number(*number).ok_or(frame.malformed("an unknown rejection"))?;
        let mut calls = self.connection.calls.lock();
        unanswered(&mut calls, frame.id)?.tell(Err(Failure::NotSent(NotSent::Rejected(rejection))));
        self.close(&mut calls, frame.id);
        Ok(())
    }

    fn cancelled(&mut self, frame: &Frame<'_>) -> Result<(), FrameError> {
        if !frame.payload.is_empty() {
            return Err(frame.malformed("it has a payload"));
        }
        let mut calls = self.connection.calls.lock();
        let left = calls.waiting.get(&frame.id).is_some_and(|waiting| waiting.reply.is_none());
        if !left {
            return Err(FrameError::AnswerToNothing { id: frame.id });
        }
        self.close(&mut calls, frame.id);
        Ok(())
    }

    /// The other side is done with a call.
    fn close(&self, calls: &mut Calls, id: u64) {
        calls.waiting.remove(&id);
        self.connection.outbox.stop_parts(id);
    }
}

/// A call to which no answer has begun.
fn unanswered(calls: &mut Calls, id: u64) -> Result<&mut Waiting, FrameError> {
    let waiting = calls.waiting.get_mut(&id).filter(|waiting| waiting.answer.is_none());
    waiting.ok_or(FrameError::AnswerToNothing { id })
}
