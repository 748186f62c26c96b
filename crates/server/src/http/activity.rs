//! What one connection is doing, for the listener that watches over all of them.
//!
//! The connection's task alone writes, the listener reads once a second: no timer is set and no clock is read per request, and
//! counting takes no locked instruction. Counters only grow (and wrap); all accesses are relaxed, because nothing else is
//! published through them, and a view that is a moment old only moves a time-out by a tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::Waker;

use futures::task::AtomicWaker;

/// What the listener has ordered a connection to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Go on.
    None,
    /// Finish the request under way, then close.
    Finish,
    /// Close now.
    Close,
}

/// One connection's counters and orders.
#[derive(Default)]
pub(crate) struct Activity {
    reads: AtomicU32,
    writes: AtomicU32,
    requests: AtomicU32,
    /// `reads` when the latest request's head was complete, or its answer ready.
    reads_at_request: AtomicU32,
    /// The last four bytes that came in.
    tail: AtomicU32,
    /// The address behind the last byte that came in.
    read_end: AtomicUsize,
    /// Whether bytes behind the latest request came in along with it: the next one has begun.
    next_begun: AtomicBool,
    /// Handlers and streamed answers under way.
    running: AtomicU32,
    write_blocked: AtomicBool,
    closed: AtomicBool,
    order: AtomicU8,
    waker: AtomicWaker,
}

/// Marks a connection as at work until it is dropped, which the connection's task does.
pub(crate) struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        count(&self.0.running, u32::MAX);
        self.0.reads_at_request.store(self.0.reads.load(Relaxed), Relaxed);
    }
}

/// Adds to a counter that nobody else writes.
fn count(counter: &AtomicU32, more: u32) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Activity {
    /// Bytes came in, or the end of them; `address` is where the first of them lies.
    pub(crate) fn note_read(&self, bytes: &[u8], address: usize) {
        count(&self.reads, 1);
        let tail = match bytes.last_chunk() {
            Some(last) => u32::from_be_bytes(*last),
            None => bytes.iter().fold(self.tail.load(Relaxed), |tail, byte| tail << 8 | u32::from(*byte)),
        };
        self.tail.store(tail, Relaxed);
        self.read_end.store(address.wrapping_add(bytes.len()), Relaxed);
    }

    /// Bytes went out, or could not.
    pub(crate) fn note_write(&self, blocked: bool) {
        if !blocked {
            count(&self.writes, 1);
        }
        self.write_blocked.store(blocked, Relaxed);
    }

    /// A request's head is complete; `has_body` when a body follows.
    pub(crate) fn begin_request(&self, has_body: bool) {
        count(&self.requests, 1);
        self.reads_at_request.store(self.reads.load(Relaxed), Relaxed);
        self.next_begun.store(!has_body && !self.ends_with_blank_line(), Relaxed);
    }

    /// A request's body is complete. Its last bytes were handed out where they had come in, before `end`; `None` when the body
    /// came in chunks.
    pub(crate) fn end_body(&self, end: Option<usize>) {
        let next_begun = match end {
            Some(end) => end != self.read_end.load(Relaxed),
            None => !self.ends_with_blank_line(),
        };
        self.next_begun.store(next_begun, Relaxed);
    }

    /// Whether what came in last is the end of a head or of a chunked body, of which both end with an empty line. What stands
    /// behind one is the part of a head that has no such line yet.
    fn ends_with_blank_line(&self) -> bool {
        let [_, before, cr, lf] = self.tail.load(Relaxed).to_be_bytes();
        lf == b'\n' && (cr == b'\n' || (cr == b'\r' && before == b'\n'))
    }

    /// A request, or its answer, takes longer than the task's present turn.
    pub(crate) fn run(self: &Arc<Activity>) -> Running {
        count(&self.running, 1);
        Running(self.clone())
    }

    /// The connection is gone.
    pub(crate) fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Tells the connection's task what to do.
    pub(crate) fn order(&self, order: Order) {
        self.order.store(order as u8, Relaxed);
        self.waker.wake();
    }

    /// What the listener wants; `waker` is woken when that changes.
    pub(crate) fn ordered(&self, waker: &Waker) -> Order {
        self.waker.register(waker);
        match self.order.load(Relaxed) {
            0 => Order::None,
            1 => Order::Finish,
            _ => Order::Close,
        }
    }
}

/// The listener's view of one connection over time.
pub(crate) struct Watch {
    activity: Arc<Activity>,
    moved: (u32, u32),
    requests: u32,
    quiet_ticks: u32,
    head_ticks: u32,
}

/// How many ticks a connection is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Without any byte in or out.
    pub(crate) idle_ticks: u32,
    /// For a request's head to be complete, once its first byte came or the connection was made.
    pub(crate) head_ticks: u32,
}

impl Watch {
    /// Begins to watch a connection.
    pub(crate) fn new(activity: Arc<Activity>) -> Watch {
        Watch { activity, moved: (0, 0), requests: 0, quiet_ticks: 0, head_ticks: 0 }
    }

    /// What is watched.
    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Looks once more; false when the connection is gone, and no longer worth watching. One that has used up its time is
    /// closed.
    pub(crate) fn tick(&mut self, patience: Patience) -> bool {
        let activity = &self.activity;
        if activity.closed.load(Relaxed) {
            return false;
        }
        let reads = activity.reads.load(Relaxed);
        let requests = activity.requests.load(Relaxed);
        let moved = (reads, activity.writes.load(Relaxed));
        let running = activity.running.load(Relaxed) > 0;
        self.quiet_ticks = if moved == self.moved { self.quiet_ticks.saturating_add(1) } else { 0 };
        let more_came = reads != activity.reads_at_request.load(Relaxed) || activity.next_begun.load(Relaxed);
        let head_pending = requests == 0 || more_came;
        let waits_for_head = !running && requests == self.requests && head_pending;
        self.head_ticks = if waits_for_head { self.head_ticks.saturating_add(1) } else { 0 };
        self.moved = moved;
        self.requests = requests;
        let stuck = self.quiet_ticks >= patience.idle_ticks && (!running || activity.write_blocked.load(Relaxed));
        if stuck || self.head_ticks >= patience.head_ticks {
            activity.order(Order::Close);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { idle_ticks: 5, head_ticks: 2 };

    fn order(watch: &Watch) -> Order {
        watch.activity.ordered(Waker::noop())
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    /// The ticks after which a connection is closed when nothing more comes.
    fn closed_after(watch: &mut Watch) -> Option<u32> {
        (1..=10).find(|_| {
            watch.tick(PATIENCE);
            order(watch) == Order::Close
        })
    }

    fn reading(bytes: &[u8]) -> Watch {
        let watch = Watch::new(Arc::default());
        watch.activity.note_read(bytes, 1000);
        watch
    }

    #[test]
    fn a_head_that_trickles_in_is_cut_off() {
        let mut watch = reading(b"G");
        assert!(watch.tick(PATIENCE));
        assert_eq!(order(&watch), Order::None);
        watch.activity.note_read(b"E", 1001);
        assert!(watch.tick(PATIENCE));
        assert_eq!(order(&watch), Order::Close);
    }

    #[test]
    fn a_connection_between_requests_may_idle_for_longer() {
        let mut watch = reading(GET);
        watch.activity.begin_request(false);
        watch.activity.note_write(false);
        // The first tick sees movement, and five do not.
        assert_eq!(closed_after(&mut watch), Some(6));
        let mut watch = reading(&GET[..GET.len() - 1]);
        watch.activity.note_read(b"\n", 1);
        watch.activity.begin_request(false);
        assert_eq!(closed_after(&mut watch), Some(6));
        let mut watch = reading(b"GET / HTTP/1.1\n\n");
        watch.activity.begin_request(false);
        assert_eq!(closed_after(&mut watch), Some(6));
    }

    #[test]
    fn a_head_that_begins_along_with_the_end_of_a_request_has_its_limit() {
        let mut watch = reading(&[GET, b"G"].concat());
        watch.activity.begin_request(false);
        assert_eq!(closed_after(&mut watch), Some(3));
        // A body of five bytes, from 1000 on, and what is behind it.
        for (behind, expected) in [("", Some(6)), ("G", Some(3))] {
            let mut watch = reading(format!("hello{behind}").as_bytes());
            watch.activity.begin_request(true);
            watch.activity.end_body(Some(1005));
            assert_eq!(closed_after(&mut watch), expected, "{behind:?}");
            let mut watch = reading(format!("5\r\nhello\r\n0\r\n\r\n{behind}").as_bytes());
            watch.activity.begin_request(true);
            watch.activity.end_body(None);
            assert_eq!(closed_after(&mut watch), expected, "{behind:?}");
        }
    }

    #[test]
    fn a_request_at_work_is_left_alone_unless_its_reader_does_not_read() {
        let mut watch = reading(GET);
        watch.activity.begin_request(false);
        let running = watch.activity.run();
        for _ in 0..20 {
            watch.tick(PATIENCE);
        }
        assert_eq!(order(&watch), Order::None);
        watch.activity.note_write(true);
        watch.tick(PATIENCE);
        assert_eq!(order(&watch), Order::Close);
        drop(running);
        watch.activity.close();
        assert!(!watch.tick(PATIENCE));
    }
}
