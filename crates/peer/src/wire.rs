//! Every tag and number that crosses the wire between nodes. None of them ever changes its meaning; new ones are added.
//!
//! All integers are big-endian. The handshake is four messages, and its form is the same for all versions:
//!
//! | message | from | form |
//! | --- | --- | --- |
//! | greeting | dialer | [`MAGIC`], length `u16`, body |
//! | challenge | door | [`MAGIC`], nonce of [`NONCE_BYTES`] |
//! | proof | dialer | [`PROOF_BYTES`] |
//! | verdict | door | length `u16`, body, [`PROOF_BYTES`]; to a stranger only the length, zero |
//!
//! A greeting's body is: lowest and highest version (`u16` each), lane (`u8`), the names of the cluster, the dialer and the
//! node that is asked for (`u8` length and UTF-8 each), a nonce. What follows it is for later versions, and skipped.
//!
//! After an accepting verdict both sides send frames: payload length `u32`, [`Kind`] `u8`, call id `u64`, CRC-32 (IEEE)
//! of those and the payload `u32`, payload.

/// The first bytes on a connection, from both sides.
pub(crate) const MAGIC: [u8; 8] = *b"CSQLPEER";
/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 32;
/// Bytes of a proof: HMAC-SHA256.
pub(crate) const PROOF_BYTES: usize = 32;
/// What the dialer's proof begins with, so that no proof passes for another.
pub(crate) const DIALER_LABEL: &[u8] = b"cachesql peer dialer 1";
/// What the door's proof begins with.
pub(crate) const DOOR_LABEL: &[u8] = b"cachesql peer door 1";

/// Bytes before a frame's payload.
pub(crate) const FRAME_HEAD_BYTES: usize = 4 + 1 + 8 + 4;
/// Bytes before a request's first part.
pub(crate) const REQUEST_HEAD_BYTES: usize = 2 + 4 + 4;

/// The oldest and the newest version that this build speaks.
pub(crate) const OLDEST_VERSION: u16 = 1;
/// See [`OLDEST_VERSION`].
pub(crate) const NEWEST_VERSION: u16 = 1;

/// Refusal codes from here on are the door's own; services use those below.
pub const FIRST_RESERVED_CODE: u16 = 0xFF00;
/// The service panicked; what it did until then is done.
pub const CODE_PANICKED: u16 = 0xFF01;
/// The service has done what was asked, and its answer is longer than a message may be.
pub const CODE_ANSWER_TOO_LONG: u16 = 0xFF02;

/// What a call may wait behind. Each lane is a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// Votes, heartbeats, small reads. Messages are short.
    Urgent = 1,
    /// The log, forwarded writes.
    Normal = 2,
    /// Snapshots and loads.
    Bulk = 3,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Lane; 3] = [Lane::Urgent, Lane::Normal, Lane::Bulk];

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| lane.number() == number)
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Dialer: a call begins. Its id is higher than all before it. Service `u16`, milliseconds left `u32`, bytes of the whole
    /// message `u32`, first part.
    Request = 1,
    /// Both: the next part of the request or answer of that id.
    Continue = 2,
    /// Door: the answer of that id begins; bytes of the whole answer `u32`, first part.
    Answer = 3,
    /// Door: the service refused; code `u16`, text.
    Refusal = 4,
    /// Door: the call did not reach a service, surely; [`Rejection`] `u8`.
    Rejected = 5,
    /// Dialer: nobody waits for that id any more. It is still owed one of the frames that end it.
    Cancel = 6,
    /// Door: the call of that id was ended as wished.
    Cancelled = 7,
    /// Both: answer with a pong of the same id.
    Ping = 8,
    /// Both.
    Pong = 9,
    /// Door: ask nothing more, what is under way will be answered. Dialer: nothing more will be asked.
    Goodbye = 10,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Request,
        Kind::Continue,
        Kind::Answer,
        Kind::Refusal,
        Kind::Rejected,
        Kind::Cancel,
        Kind::Cancelled,
        Kind::Ping,
        Kind::Pong,
        Kind::Goodbye,
    ];

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// Why a call did not reach a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rejection {
    /// Too many calls, or too many bytes of them, are under way there.
    Busy = 1,
    /// It has no service of that number.
    NoService = 2,
    /// It is about to stop.
    Leaving = 3,
}

impl Rejection {
    const ALL: [Rejection; 3] = [Rejection::Busy, Rejection::NoService, Rejection::Leaving];

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<Rejection> {
        Rejection::ALL.into_iter().find(|rejection| rejection.number() == number)
    }
}

/// What a door says about a greeting to one who knows the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum VerdictTag {
    /// Version `u16` follows.
    Accepted = 1,
    /// The door's cluster follows: `u8` length, UTF-8.
    OtherCluster = 2,
    /// The door's node follows: `u8` length, UTF-8.
    OtherNode = 3,
    /// The dialer is not in the door's directory.
    UnknownNode = 4,
    /// The dialer has the door's own name.
    OwnName = 5,
    /// The door's lowest and highest version follow, `u16` each.
    Versions = 6,
    /// The door has no such lane.
    UnknownLane = 7,
    /// The greeting cannot be read.
    Malformed = 8,
}

impl VerdictTag {
    const ALL: [VerdictTag; 8] = [
        VerdictTag::Accepted,
        VerdictTag::OtherCluster,
        VerdictTag::OtherNode,
        VerdictTag::UnknownNode,
        VerdictTag::OwnName,
        VerdictTag::Versions,
        VerdictTag::UnknownLane,
        VerdictTag::Malformed,
    ];

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<VerdictTag> {
        VerdictTag::ALL.into_iter().find(|tag| tag.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers themselves, written out a second time: whoever changes one breaks running clusters, and this test.
    #[test]
    fn every_number_is_what_it_always_was_and_comes_back() {
        let kinds = Kind::ALL.map(|kind| (kind.number(), format!("{kind:?}")));
        let names = "Request Continue Answer Refusal Rejected Cancel Cancelled Ping Pong Goodbye";
        for (at, name) in names.split(' ').enumerate() {
            assert_eq!(kinds[at], (u8::try_from(at + 1).expect("small"), name.to_owned()));
        }
        assert_eq!(Lane::ALL.map(Lane::number), [1, 2, 3]);
        assert_eq!(Rejection::ALL.map(Rejection::number), [1, 2, 3]);
        assert_eq!(VerdictTag::ALL.map(VerdictTag::number), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((FIRST_RESERVED_CODE, CODE_PANICKED, CODE_ANSWER_TOO_LONG), (65_280, 65_281, 65_282));
        assert_eq!((MAGIC, FRAME_HEAD_BYTES, REQUEST_HEAD_BYTES), (*b"CSQLPEER", 17, 10));
        for number in 0..=u8::MAX {
            assert!(Kind::from_number(number).is_none_or(|kind| kind.number() == number));
            assert_eq!(Kind::from_number(number).is_some(), (1..=10).contains(&number));
            assert!(Lane::from_number(number).is_none_or(|lane| lane.number() == number));
            assert_eq!(Lane::from_number(number).is_some(), (1..=3).contains(&number));
            assert!(Rejection::from_number(number).is_none_or(|rejection| rejection.number() == number));
            assert_eq!(Rejection::from_number(number).is_some(), (1..=3).contains(&number));
            assert!(VerdictTag::from_number(number).is_none_or(|tag| tag.number() == number));
            assert_eq!(VerdictTag::from_number(number).is_some(), (1..=8).contains(&number));
        }
    }
}
