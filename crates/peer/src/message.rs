//! Messages as they arrive: put together from their frames, within what a connection and a lane may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use cachesql_types::limits;

use crate::wire::Lane;

/// Bytes of the longest message of a lane.
pub(crate) fn longest_message(lane: Lane) -> usize {
    match lane {
        Lane::Urgent => limits::PEER_URGENT_MESSAGE_BYTES,
        Lane::Normal | Lane::Bulk => limits::PEER_MESSAGE_BYTES,
    }
}

/// Bytes that may be held, and are.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    most: usize,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicUsize::new(0), most })
    }

    fn take(&self, bytes: usize) -> bool {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| *used <= self.most)
        });
        taken.is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// The budgets of all connections of each lane: bulk never takes what heartbeats need.
#[derive(Clone, Debug)]
pub(crate) struct LaneBudgets([Arc<Budget>; Lane::ALL.len()]);

impl LaneBudgets {
    pub(crate) fn new() -> LaneBudgets {
        LaneBudgets(Lane::ALL.map(|_| Budget::new(limits::PEER_LANE_BYTES)))
    }

    /// What one more connection of a lane may hold.
    pub(crate) fn connection(&self, lane: Lane) -> Room {
        let [urgent, normal, bulk] = &self.0;
        let all = match lane {
            Lane::Urgent => urgent,
            Lane::Normal => normal,
            Lane::Bulk => bulk,
        };
        Room { connection: Budget::new(limits::PEER_CONNECTION_BYTES), all: Arc::clone(all) }
    }
}

/// What one connection may hold: its own budget, and a share of its lane's.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    connection: Arc<Budget>,
    all: Arc<Budget>,
}

impl Room {
    /// Sets bytes aside, until what is given is dropped; nothing, if there are none left.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<Reservation> {
        if !self.connection.take(bytes) {
            return None;
        }
        if !self.all.take(bytes) {
            self.connection.give_back(bytes);
            return None;
        }
        Some(Reservation { room: self.clone(), bytes })
    }
}

/// Bytes set aside.
#[derive(Debug)]
pub(crate) struct Reservation {
    room: Room,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.room.connection.give_back(self.bytes);
        self.room.all.give_back(self.bytes);
    }
}

/// What became of a part of a message.
#[derive(Debug)]
pub(crate) enum Progress {
    /// More parts are missing.
    Open,
    /// It was the last part of one that nobody wants.
    Discarded,
    /// It was the last part.
    Whole(Bytes, Reservation),
}

/// A message of which more parts will come.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// It is put together in room that was set aside for it.
    Assembling {
        /// Bytes of the whole message.
        total: usize,
        /// What came so far.
        parts: BytesMut,
        /// The room.
        reservation: Reservation,
    },
    /// Nobody wants it; what comes of it is counted only.
    Discarding {
        /// Bytes that are missing.
        left: usize,
    },
}

impl Incoming {
    /// A message of `total` bytes that begins with `part`, which is shorter.
    pub(crate) fn assemble(total: usize, part: &[u8], reservation: Reservation) -> Incoming {
        let mut parts = BytesMut::with_capacity(total);
        parts.extend_from_slice(part);
        Incoming::Assembling { total, parts, reservation }
    }

    /// Keeps nothing of it from now on.
    pub(crate) fn discard(&mut self) {
        if let Incoming::Assembling { total, parts, .. } = self {
            *self = Incoming::Discarding { left: *total - parts.len() };
        }
    }

    /// Takes the next part in; gives the message back while it is open, or what became of it. Nothing, if the part is
    /// empty, or longer than what is missing.
    pub(crate) fn add(mut self, part: &[u8]) -> Option<(Progress, Option<Incoming>)> {
        let missing = match &self {
            Incoming::Assembling { total, parts, .. } => total - parts.len(),
            Incoming::Discarding { left } => *left,
        };
        if part.is_empty() || part.len() > missing {
            return None;
        }
        match &mut self {
            Incoming::Assembling { parts, .. } => parts.extend_from_slice(part),
            Incoming::Discarding { left } => *left -= part.len(),
        }
        if part.len() < missing {
            return Some((Progress::Open, Some(self)));
        }
        Some(match self {
            Incoming::Assembling { parts, reservation, .. } => (Progress::Whole(parts.freeze(), reservation), None),
            Incoming::Discarding { .. } => (Progress::Discarded, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_and_never_exceeded() {
        let room = Room { connection: Budget::new(10), all: Budget::new(15) };
        let other = Room { connection: Budget::new(10), all: Arc::clone(&room.all) };
        let first = room.reserve(10).expect("room");
        assert!(room.reserve(1).is_none(), "the connection is full");
        assert!(other.reserve(6).is_none(), "the lane is full");
        assert_eq!((other.connection.used(), room.all.used()), (0, 10));
        let second = other.reserve(5).expect("room");
        drop((first, second));
        assert_eq!((room.connection.used(), other.connection.used(), room.all.used()), (0, 0, 0));
        assert!(room.reserve(usize::MAX).is_none());
    }

    #[test]
    fn a_message_is_whole_when_its_last_byte_is_there() {
        let room = LaneBudgets::new().connection(Lane::Normal);
        let message = Incoming::assemble(6, b"ab", room.reserve(6).expect("room"));
        let (progress, message) = message.add(b"cde").expect("fits");
        assert!(matches!(progress, Progress::Open));
        let (progress, rest) = message.expect("open").add(b"f").expect("fits");
        assert!(rest.is_none());
        let Progress::Whole(bytes, reservation) = progress else { panic!("{progress:?}") };
        assert_eq!((&bytes[..], room.connection.used()), (&b"abcdef"[..], 6));
        drop(reservation);
        assert_eq!(room.connection.used(), 0);
    }

    #[test]
    fn a_message_longer_than_it_said_is_refused_kept_or_not() {
        let room = LaneBudgets::new().connection(Lane::Normal);
        let open = || Incoming::assemble(4, b"ab", room.reserve(4).expect("room"));
        assert!(open().add(b"cde").is_none());
        assert!(open().add(b"").is_none());
        let mut discarded = open();
        discarded.discard();
        assert_eq!(room.connection.used(), 0);
        assert!(matches!(discarded, Incoming::Discarding { left: 2 }));
        let (_, rest) = discarded.add(b"c").expect("fits");
        let rest = rest.expect("open");
        assert!(matches!(rest, Incoming::Discarding { left: 1 }));
        assert!(rest.add(b"de").is_none());
    }
}
