//! What one connection is doing, for the listener that watches over all of them.
//!
//! The connection's task alone writes, the listener reads once a second: no timer is set and no clock is read per request, and
//! counting takes no locked instruction. Counters only grow (and wrap); all accesses are relaxed, because nothing else is
//! published through them, and a view that is a moment old only moves a time-out by a tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
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
    /// Bytes came in.
    pub(crate) fn note_read(&self) {
        count(&self.reads, 1);
    }

    /// Bytes went out, or could not.
    pub(crate) fn note_write(&self, blocked: bool) {
        if !blocked {
            count(&self.writes, 1);
        }
        self.write_blocked.store(blocked, Relaxed);
    }

    /// A request's head is complete.
    pub(crate) fn begin_request(&self) {
        count(&self.requests, 1);
        self.reads_at_request.store(self.reads.load(Relaxed), Relaxed);
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
        let head_pending = requests == 0 || reads != activity.reads_at_request.load(Relaxed);
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

    #[test]
    fn a_head_that_trickles_in_is_cut_off() {
        let mut watch = Watch::new(Arc::default());
        watch.activity.note_read();
        assert!(watch.tick(PATIENCE));
        assert_eq!(order(&watch), Order::None);
        watch.activity.note_read();
        assert!(watch.tick(PATIENCE));
        assert_eq!(order(&watch), Order::Close);
    }

    #[test]
    fn a_connection_between_requests_may_idle_for_longer() {
        let mut watch = Watch::new(Arc::default());
        watch.activity.note_read();
        watch.activity.begin_request();
        watch.activity.note_write(false);
        for _ in 0..5 {
            watch.tick(PATIENCE);
            assert_eq!(order(&watch), Order::None);
        }
        watch.tick(PATIENCE);
        assert_eq!(order(&watch), Order::Close);
    }

    #[test]
    fn a_request_at_work_is_left_alone_unless_its_reader_does_not_read() {
        let mut watch = Watch::new(Arc::default());
        watch.activity.note_read();
        watch.activity.begin_request();
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
