//! What waits to be written to one connection. Short frames without a message go first; messages take turns, a frame each,
//! so that a long one never holds up those behind it.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use cachesql_types::limits;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::frame;
use crate::wire::{FRAME_HEAD_BYTES, Kind, REQUEST_HEAD_BYTES, Rejection};

/// What stands before a message's first part.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    bytes: [u8; REQUEST_HEAD_BYTES],
    used: usize,
}

impl Head {
    fn new(parts: &[&[u8]]) -> Head {
        let mut head = Head::default();
        for part in parts {
            head.bytes[head.used..head.used + part.len()].copy_from_slice(part);
            head.used += part.len();
        }
        head
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

struct Message {
    kind: Kind,
    id: u64,
    head: Head,
    payload: Bytes,
    /// Bytes of the payload that were taken to be written.
    taken: usize,
    begun: bool,
    /// What the caller holds of the room for waiting messages; given back as the message goes.
    room: Option<OwnedSemaphorePermit>,
}

impl Message {
    fn left(&self) -> usize {
        self.payload.len() - self.taken
    }

    fn next(&mut self) -> Outgoing {
        let (kind, head) = if self.begun { (Kind::Continue, Head::default()) } else { (self.kind, self.head) };
        self.begun = true;
        let bytes = self.left().min(limits::PEER_FRAME_BYTES - head.used);
        let part = self.payload.slice(self.taken..self.taken + bytes);
        self.taken += bytes;
        let left = self.left();
        if let Some(room) = &mut self.room
            && room.num_permits() > left
        {
            drop(room.split(room.num_permits() - left));
        }
        Outgoing { kind, id: self.id, head, part }
    }
}

/// One frame that is to be written.
struct Outgoing {
    kind: Kind,
    id: u64,
    head: Head,
    part: Bytes,
}

#[derive(Default)]
struct State {
    ping: Option<u64>,
    pong: Option<u64>,
    control: VecDeque<(Kind, u64, Head)>,
    messages: VecDeque<Message>,
    /// Bytes of `messages` that are not taken.
    bytes: usize,
    /// Calls that were taken on and have none of the frames yet that end a call.
    owed: usize,
    said_goodbye: bool,
    /// Nothing more will be asked: when nothing is owed either, the connection ends.
    settling: bool,
}

/// What the writer does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pull {
    /// Write what is in the buffer.
    Write,
    /// Wait for more.
    Wait,
    /// Close: all is said.
    Close,
}

/// How far a call had got when nobody wanted it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Nothing of it was taken to be written.
    Unsent,
    /// Part of it was; the rest never will be.
    Partly,
    /// All of it was.
    Sent,
}

#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// For the writer: there is something to write.
    filled: Notify,
    /// For the reader: there is room again.
    emptied: Notify,
}

impl Outbox {
    /// Queues a request; ids rise in the order of calls.
    pub(crate) fn request(&self, id: u64, service: u16, left_ms: u32, payload: Bytes, room: OwnedSemaphorePermit) {
        let total = length(&payload);
        let head = Head::new(&[&service.to_be_bytes(), &left_ms.to_be_bytes(), &total]);
        self.push(Kind::Request, id, head, payload, Some(room));
    }

    /// Notes that a call was taken on, and is owed one of the frames that end it.
    pub(crate) fn owe(&self) {
        self.state.lock().owed += 1;
    }

    /// Queues the answer to a call that is owed one.
    pub(crate) fn answer(&self, id: u64, payload: Bytes) {
        let head = Head::new(&[&length(&payload)]);
        self.push(Kind::Answer, id, head, payload, None);
    }

    /// Queues the refusal of a call that is owed an answer.
    pub(crate) fn refuse(&self, id: u64, code: u16, message: &str) {
        let end = message.floor_char_boundary(limits::PEER_REFUSAL_BYTES);
        let head = Head::new(&[&code.to_be_bytes()]);
        self.push(Kind::Refusal, id, head, Bytes::copy_from_slice(&message.as_bytes()[..end]), None);
    }

    fn push(&self, kind: Kind, id: u64, head: Head, payload: Bytes, room: Option<OwnedSemaphorePermit>) {
        let mut state = self.state.lock();
        if kind != Kind::Request {
            state.owed = state.owed.saturating_sub(1);
        }
        state.bytes += payload.len();
        state.messages.push_back(Message { kind, id, head, payload, taken: 0, begun: false, room });
        drop(state);
        self.filled.notify_one();
    }

    /// Ends a call that was not taken on.
    pub(crate) fn reject(&self, id: u64, rejection: Rejection) {
        self.control(Kind::Rejected, id, Head::new(&[&[rejection.number()]]));
    }

    /// Ends a call that is owed an answer, and that nobody waits for.
    pub(crate) fn cancelled(&self, id: u64) {
        let mut state = self.state.lock();
        state.owed = state.owed.saturating_sub(1);
        drop(state);
        self.control(Kind::Cancelled, id, Head::default());
    }

    /// Takes back what is left of an answer, and ends the call; does nothing when the answer is gone.
    pub(crate) fn withdraw(&self, id: u64) {
        if self.remove(id).is_some() {
            self.control(Kind::Cancelled, id, Head::default());
        }
    }

    /// Takes back what is left of a request, and says so to the other side if part of it is on its way.
    pub(crate) fn stop(&self, id: u64) -> Stopped {
        let stopped = match self.remove(id) {
            Some(false) => return Stopped::Unsent,
            Some(true) => Stopped::Partly,
            None => Stopped::Sent,
        };
        self.control(Kind::Cancel, id, Head::default());
        stopped
    }

    /// As `stop`, when the other side has ended the call: it is told only that no more parts come.
    pub(crate) fn stop_parts(&self, id: u64) {
        if self.remove(id) == Some(true) {
            self.control(Kind::Cancel, id, Head::default());
        }
    }

    /// Takes a waiting message out; tells whether it had begun.
    fn remove(&self, id: u64) -> Option<bool> {
        let mut state = self.state.lock();
        let at = state.messages.iter().position(|message| message.id == id)?;
        let message = state.messages.remove(at)?;
        state.bytes -= message.left();
        drop(state);
        self.emptied.notify_one();
        Some(message.begun)
    }

    fn control(&self, kind: Kind, id: u64, head: Head) {
        self.state.lock().control.push_back((kind, id, head));
        self.filled.notify_one();
    }

    pub(crate) fn ping(&self, id: u64) {
        self.state.lock().ping = Some(id);
        self.filled.notify_one();
    }

    /// Only the last ping is answered, so that pings cannot pile up answers.
    pub(crate) fn pong(&self, id: u64) {
        self.state.lock().pong = Some(id);
        self.filled.notify_one();
    }

    /// Says once that nothing more should be asked (a door), or will be (a dialer).
    pub(crate) fn goodbye(&self) {
        let mut state = self.state.lock();
        if !state.said_goodbye {
            state.said_goodbye = true;
            state.control.push_back((Kind::Goodbye, 0, Head::default()));
            drop(state);
            self.filled.notify_one();
        }
    }

    pub(crate) fn said_goodbye(&self) -> bool {
        self.state.lock().said_goodbye
    }

    /// Lets the writer close when all that is owed is written.
    pub(crate) fn settle(&self) {
        self.state.lock().settling = true;
        self.filled.notify_one();
    }

    /// Whether so much waits that no more should be taken on.
    pub(crate) fn is_crowded(&self) -> bool {
        let state = self.state.lock();
        state.bytes >= limits::PEER_UNWRITTEN_BYTES || state.control.len() >= limits::PEER_CONTROL_FRAMES
    }

    /// Waits until something was taken to be written, or taken back.
    pub(crate) async fn emptied(&self) {
        self.emptied.notified().await;
    }

    /// Waits until something was queued.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Takes back all messages of which nothing was taken to be written; gives their ids.
    pub(crate) fn take_unbegun(&self) -> Vec<u64> {
        let mut state = self.state.lock();
        let (begun, unbegun): (VecDeque<_>, VecDeque<_>) = state.messages.drain(..).partition(|message| message.begun);
        state.bytes = begun.iter().map(Message::left).sum();
        state.messages = begun;
        unbegun.iter().map(|message| message.id).collect()
    }

    /// Takes everything back; gives the ids of messages that were not taken whole.
    pub(crate) fn take_all(&self) -> Vec<u64> {
        let mut state = self.state.lock();
        state.bytes = 0;
        state.control.clear();
        state.messages.drain(..).map(|message| message.id).collect()
    }

    /// Encodes what is next into the buffer, up to about [`limits::PEER_WRITE_BYTES`].
    pub(crate) fn pull(&self, buffer: &mut BytesMut) -> Pull {
        let mut frames = Vec::new();
        let mut state = self.state.lock();
        let mut bytes = 0;
        let State { ping, pong, control, .. } = &mut *state;
        let pings = pong.take().map(|id| (Kind::Pong, id)).into_iter().chain(ping.take().map(|id| (Kind::Ping, id)));
        let pings = pings.map(|(kind, id)| (kind, id, Head::default()));
        for (kind, id, head) in pings.chain(control.drain(..)) {
            bytes += FRAME_HEAD_BYTES + head.used;
            frames.push(Outgoing { kind, id, head, part: Bytes::new() });
        }
        while bytes < limits::PEER_WRITE_BYTES
            && let Some(mut message) = state.messages.pop_front()
        {
            let frame = message.next();
            state.bytes -= frame.part.len();
            bytes += FRAME_HEAD_BYTES + frame.head.used + frame.part.len();
            frames.push(frame);
            if message.left() > 0 {
                state.messages.push_back(message);
            }
        }
        let close = frames.is_empty() && state.settling && state.owed == 0;
        drop(state);
        if frames.is_empty() {
            return if close { Pull::Close } else { Pull::Wait };
        }
        self.emptied.notify_one();
        // Check sums are computed without the lock.
        for Outgoing { kind, id, head, part } in &frames {
            frame::encode(buffer, *kind, *id, [head.as_bytes(), part]);
        }
        Pull::Write
    }
}

/// Messages are shorter than [`limits::PEER_MESSAGE_BYTES`], and that fits, by a relation in `limits`.
fn length(payload: &Bytes) -> [u8; 4] {
    let mut bytes = [0; 4];
    (&mut bytes[..]).put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulled(outbox: &Outbox) -> Vec<(Kind, u64, usize)> {
        let mut buffer = BytesMut::new();
        outbox.pull(&mut buffer);
        let mut frames = Vec::new();
        let mut rest = &buffer[..];
        while let Some(frame) = frame::decode(rest).expect("our own frames") {
            frames.push((frame.kind, frame.id, frame.payload.len()));
            rest = &rest[frame.bytes()..];
        }
        frames
    }

    const FRAME: usize = limits::PEER_FRAME_BYTES;

    #[test]
    fn messages_take_turns_and_short_frames_go_first() {
        let outbox = Outbox::default();
        outbox.answer(1, Bytes::from(vec![0; 3 * FRAME]));
        outbox.answer(2, Bytes::from(vec![0; 2 * FRAME]));
        outbox.answer(3, Bytes::from_static(b"short"));
        outbox.ping(7);
        assert_eq!(pulled(&outbox), [(Kind::Ping, 7, 0), (Kind::Answer, 1, FRAME), (Kind::Answer, 2, FRAME)]);
        outbox.reject(9, Rejection::Busy);
        let next = pulled(&outbox);
        assert_eq!(next[..3], [(Kind::Rejected, 9, 1), (Kind::Answer, 3, 9), (Kind::Continue, 1, FRAME)]);
    }

    #[test]
    fn what_is_taken_back_is_not_written_and_the_other_side_is_told_when_it_saw_some() {
        let outbox = Outbox::default();
        outbox.answer(1, Bytes::from(vec![0; 9 * FRAME]));
        assert_eq!(pulled(&outbox).len(), 2);
        outbox.answer(2, Bytes::from_static(b"short"));
        assert_eq!(outbox.stop(2), Stopped::Unsent);
        assert_eq!(outbox.stop(1), Stopped::Partly);
        assert_eq!(outbox.stop(3), Stopped::Sent);
        assert_eq!(pulled(&outbox), [(Kind::Cancel, 1, 0), (Kind::Cancel, 3, 0)]);
        assert_eq!(outbox.state.lock().bytes, 0);
    }

    #[test]
    fn it_closes_when_nothing_is_owed() {
        let outbox = Outbox::default();
        let mut buffer = BytesMut::new();
        outbox.owe();
        outbox.settle();
        assert_eq!(outbox.pull(&mut buffer), Pull::Wait);
        outbox.refuse(1, 5, "no");
        assert_eq!(outbox.pull(&mut buffer), Pull::Write);
        assert_eq!(outbox.pull(&mut buffer), Pull::Close);
    }

    #[test]
    fn it_is_crowded_by_bytes_and_by_short_frames_until_they_are_taken() {
        let outbox = Outbox::default();
        outbox.answer(1, Bytes::from(vec![0; limits::PEER_UNWRITTEN_BYTES]));
        assert!(outbox.is_crowded());
        pulled(&outbox);
        assert!(!outbox.is_crowded());
        outbox.take_all();
        for id in 0..limits::PEER_CONTROL_FRAMES as u64 {
            assert!(!outbox.is_crowded());
            outbox.reject(id, Rejection::Busy);
        }
        assert!(outbox.is_crowded());
        pulled(&outbox);
        assert!(!outbox.is_crowded());
    }

    #[test]
    fn a_refusal_is_cut_between_characters() {
        let outbox = Outbox::default();
        outbox.refuse(1, 5, &"ü".repeat(limits::PEER_REFUSAL_BYTES));
        assert_eq!(pulled(&outbox), [(Kind::Refusal, 1, 2 + limits::PEER_REFUSAL_BYTES)]);
        outbox.refuse(1, 5, &format!("x{}", "ü".repeat(limits::PEER_REFUSAL_BYTES)));
        assert_eq!(pulled(&outbox), [(Kind::Refusal, 1, 2 + limits::PEER_REFUSAL_BYTES - 1)]);
    }
}
