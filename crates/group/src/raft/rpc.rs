//! What members ask each other, as bytes. The tags never change.

use bytes::{Bytes, BytesMut};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};

use super::codec::{CodecError, Reader, decode_entry, encode_entry, encode_vote, put_place, take_place};
use super::{Types, Vote};

const ASK_APPEND: u8 = 1;
const ASK_VOTE: u8 = 2;
const ASK_PRE_VOTE: u8 = 3;
const ASK_SNAPSHOT: u8 = 4;
const ASK_LEAD: u8 = 5;

const APPENDED: u8 = 1;
const APPENDED_UP_TO: u8 = 2;
const APPEND_CONFLICTS: u8 = 3;
const APPEND_HIGHER_VOTE: u8 = 4;
const VOTED: u8 = 5;
const SNAPSHOT_TAKEN: u8 = 6;
const SNAPSHOT_GOES_ON: u8 = 7;
const LEADS: u8 = 8;
const LEADS_NOT: u8 = 9;

/// What one member asks another.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// Append entries; without any, a heartbeat.
    Append(AppendEntriesRequest<Types>),
    /// Vote for somebody.
    Vote(VoteRequest<Types>),
    /// Whether it would vote.
    PreVote(VoteRequest<Types>),
    /// Take a piece of a snapshot.
    Snapshot(SnapshotPiece),
    /// Lead, because the leader wants it.
    Lead(TransferLeaderRequest<Types>),
}

/// A piece of a snapshot's content; pieces follow each other without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SnapshotPiece {
    /// The leader's vote.
    pub(super) vote: Vote,
    /// The log index that the snapshot is as of.
    pub(super) index: u64,
    /// Bytes of the content before this piece.
    pub(super) offset: u64,
    /// Whether it is the last one.
    pub(super) last: bool,
    /// What the snapshot notes of itself; with the first piece.
    pub(super) note: Bytes,
    /// The piece.
    pub(super) bytes: Bytes,
}

/// What the other one answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Append(AppendEntriesResponse<Types>),
    Vote(VoteResponse<Types>),
    /// The snapshot is whole, and taken unless the vote is a higher one.
    SnapshotTaken(Vote),
    /// So many bytes of the content are there.
    SnapshotGoesOn(u64),
    /// Whether it will lead; if not, why.
    Lead(Result<(), String>),
}

impl Ask {
    /// What is asked of the member of that number: the number in eight bytes (little-endian), a tag, and what belongs to it.
    pub(super) fn encode(&self, of: u64) -> Bytes {
        let mut out = BytesMut::new();
        out.extend_from_slice(&of.to_le_bytes());
        match self {
            Ask::Append(append) => {
                out.extend_from_slice(&[ASK_APPEND]);
                out.extend_from_slice(&encode_vote(&append.vote));
                put_place(&mut out, append.prev_log_id.as_ref());
                put_place(&mut out, append.leader_commit.as_ref());
                for entry in &append.entries {
                    out.extend_from_slice(&entry.log_id.index.to_le_bytes());
                    let bytes = encode_entry(entry);
                    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
                    out.extend_from_slice(&bytes);
                }
            }
            Ask::Vote(vote) => put_vote(&mut out, ASK_VOTE, vote),
            Ask::PreVote(vote) => put_vote(&mut out, ASK_PRE_VOTE, vote),
            Ask::Snapshot(piece) => {
                out.extend_from_slice(&[ASK_SNAPSHOT]);
                out.extend_from_slice(&encode_vote(&piece.vote));
                out.extend_from_slice(&piece.index.to_le_bytes());
                out.extend_from_slice(&piece.offset.to_le_bytes());
                out.extend_from_slice(&[u8::from(piece.last)]);
                out.extend_from_slice(&(piece.note.len() as u64).to_le_bytes());
                out.extend_from_slice(&piece.note);
                out.extend_from_slice(&piece.bytes);
            }
            Ask::Lead(lead) => {
                out.extend_from_slice(&[ASK_LEAD]);
                out.extend_from_slice(&encode_vote(lead.from_leader()));
                out.extend_from_slice(&lead.to_node_id().to_le_bytes());
                put_place(&mut out, lead.last_log_id());
            }
        }
        out.freeze()
    }

    /// Reads what is asked, and of which member.
    pub(super) fn decode(bytes: &Bytes) -> Result<(u64, Ask), CodecError> {
        let mut reader = Reader(bytes);
        let of = reader.number()?;
        let ask = match reader.byte()? {
            ASK_APPEND => {
                let (vote, prev_log_id) = (reader.vote()?, take_place(&mut reader)?);
                let leader_commit = take_place(&mut reader)?;
                let mut entries = Vec::new();
                while !reader.0.is_empty() {
                    let index = reader.number()?;
                    let length = usize::try_from(reader.number()?).map_err(|_| CodecError::Short)?;
                    entries.push(decode_entry(index, &bytes.slice_ref(reader.bytes(length)?))?);
                }
                Ask::Append(AppendEntriesRequest { vote, prev_log_id, entries, leader_commit })
            }
            ASK_VOTE => Ask::Vote(take_vote(&mut reader)?),
            ASK_PRE_VOTE => Ask::PreVote(take_vote(&mut reader)?),
            ASK_SNAPSHOT => {
                let (vote, index, offset) = (reader.vote()?, reader.number()?, reader.number()?);
                let last = take_flag(&mut reader)?;
                let length = usize::try_from(reader.number()?).map_err(|_| CodecError::Short)?;
                let note = bytes.slice_ref(reader.bytes(length)?);
                let content = bytes.slice_ref(reader.0);
                reader.0 = &[];
                Ask::Snapshot(SnapshotPiece { vote, index, offset, last, note, bytes: content })
            }
            ASK_LEAD => {
                let (from, to) = (reader.vote()?, reader.number()?);
                Ask::Lead(TransferLeaderRequest::new(from, to, take_place(&mut reader)?))
            }
            unknown => return Err(CodecError::Tag(unknown)),
        };
        reader.end()?;
        Ok((of, ask))
    }
}

fn put_vote(out: &mut BytesMut, tag: u8, request: &VoteRequest<Types>) {
    out.extend_from_slice(&[tag]);
    out.extend_from_slice(&encode_vote(&request.vote));
    put_place(out, request.last_log_id.as_ref());
    out.extend_from_slice(&[u8::from(request.leadership_transfer)]);
}

fn take_vote(reader: &mut Reader<'_>) -> Result<VoteRequest<Types>, CodecError> {
    let mut request = VoteRequest::new(reader.vote()?, take_place(reader)?);
    request.leadership_transfer = take_flag(reader)?;
    Ok(request)
}

fn take_flag(reader: &mut Reader<'_>) -> Result<bool, CodecError> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        unknown => Err(CodecError::Tag(unknown)),
    }
}

impl Reply {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Reply::Append(AppendEntriesResponse::Success) => out.extend_from_slice(&[APPENDED]),
            Reply::Append(AppendEntriesResponse::PartialSuccess(up_to)) => {
                out.extend_from_slice(&[APPENDED_UP_TO]);
                put_place(&mut out, up_to.as_ref());
            }
            Reply::Append(AppendEntriesResponse::Conflict) => out.extend_from_slice(&[APPEND_CONFLICTS]),
            Reply::Append(AppendEntriesResponse::HigherVote(vote)) => {
                out.extend_from_slice(&[APPEND_HIGHER_VOTE]);
                out.extend_from_slice(&encode_vote(vote));
            }
            Reply::Vote(response) => {
                out.extend_from_slice(&[VOTED]);
                out.extend_from_slice(&encode_vote(&response.vote));
                out.extend_from_slice(&[u8::from(response.vote_granted)]);
                put_place(&mut out, response.last_log_id.as_ref());
            }
            Reply::SnapshotTaken(vote) => {
                out.extend_from_slice(&[SNAPSHOT_TAKEN]);
                out.extend_from_slice(&encode_vote(vote));
            }
            Reply::SnapshotGoesOn(offset) => {
                out.extend_from_slice(&[SNAPSHOT_GOES_ON]);
                out.extend_from_slice(&offset.to_le_bytes());
            }
            Reply::Lead(Ok(())) => out.extend_from_slice(&[LEADS]),
            Reply::Lead(Err(why)) => {
                out.extend_from_slice(&[LEADS_NOT]);
                out.extend_from_slice(why.as_bytes());
            }
        }
        out.freeze()
    }

    pub(super) fn decode(bytes: &Bytes) -> Result<Reply, CodecError> {
        let mut reader = Reader(bytes);
        let reply = match reader.byte()? {
            APPENDED => Reply::Append(AppendEntriesResponse::Success),
            APPENDED_UP_TO => Reply::Append(AppendEntriesResponse::PartialSuccess(take_place(&mut reader)?)),
            APPEND_CONFLICTS => Reply::Append(AppendEntriesResponse::Conflict),
            APPEND_HIGHER_VOTE => Reply::Append(AppendEntriesResponse::HigherVote(reader.vote()?)),
            VOTED => {
                let (vote, vote_granted) = (reader.vote()?, take_flag(&mut reader)?);
                Reply::Vote(VoteResponse { vote, vote_granted, last_log_id: take_place(&mut reader)? })
            }
            SNAPSHOT_TAKEN => Reply::SnapshotTaken(reader.vote()?),
            SNAPSHOT_GOES_ON => Reply::SnapshotGoesOn(reader.number()?),
            LEADS => Reply::Lead(Ok(())),
            LEADS_NOT => {
                let why = String::from_utf8_lossy(reader.0).into_owned();
                reader.0 = &[];
                Reply::Lead(Err(why))
            }
            unknown => return Err(CodecError::Tag(unknown)),
        };
        reader.end()?;
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;
    use crate::raft::{Entry, LeaderId, LogId, Proposal};
    use openraft::EntryPayload;
    use proptest::prelude::*;

    fn asks() -> Vec<Ask> {
        let leader_id = LeaderId { term: 4, node_id: 2 };
        let id = |index| LogId::new(leader_id, index);
        let vote = Vote::new_committed(4, 2);
        let word = |index, text: &'static [u8]| Entry {
            log_id: id(index),
            payload: EntryPayload::Normal(Proposal(Bytes::from_static(text))),
        };
        let blank = Entry { log_id: id(9), payload: EntryPayload::Blank };
        let append = |prev_log_id, entries, leader_commit| {
            Ask::Append(AppendEntriesRequest { vote, prev_log_id, entries, leader_commit })
        };
        let mut transfer = VoteRequest::new(vote, Some(id(3)));
        transfer.leadership_transfer = true;
        let piece = |last, note: &'static [u8], bytes: &'static [u8]| {
            let (note, bytes) = (Bytes::from_static(note), Bytes::from_static(bytes));
            Ask::Snapshot(SnapshotPiece { vote, index: 7, offset: 5, last, note, bytes })
        };
        vec![
            append(None, vec![], None),
            append(Some(id(8)), vec![blank, word(10, b""), word(11, b"word")], Some(id(7))),
            Ask::Vote(VoteRequest::new(Vote::new(5, 1), None)),
            Ask::PreVote(transfer),
            piece(false, b"note", b"content"),
            piece(true, b"", b""),
            Ask::Lead(TransferLeaderRequest::new(vote, 3, Some(id(9)))),
        ]
    }

    fn replies() -> Vec<Reply> {
        let (vote, id) = (Vote::new(4, 2), LogId::new(LeaderId { term: 4, node_id: 2 }, 9));
        vec![
            Reply::Append(AppendEntriesResponse::Success),
            Reply::Append(AppendEntriesResponse::PartialSuccess(None)),
            Reply::Append(AppendEntriesResponse::PartialSuccess(Some(id))),
            Reply::Append(AppendEntriesResponse::Conflict),
            Reply::Append(AppendEntriesResponse::HigherVote(vote)),
            Reply::Vote(VoteResponse { vote, vote_granted: true, last_log_id: Some(id) }),
            Reply::Vote(VoteResponse { vote, vote_granted: false, last_log_id: None }),
            Reply::SnapshotTaken(vote),
            Reply::SnapshotGoesOn(77),
            Reply::Lead(Ok(())),
            Reply::Lead(Err("not flushed".to_owned())),
        ]
    }

    #[test]
    fn what_is_asked_and_answered_comes_back_as_it_was() {
        for ask in asks() {
            let bytes = ask.encode(7);
            let (of, found) = Ask::decode(&bytes).expect("a question");
            assert_eq!(of, 7);
            // It says all but what is in proposals, and the bytes say that.
            assert_eq!(format!("{found:?}"), format!("{ask:?}"));
            assert_eq!(found.encode(7), bytes);
        }
        for reply in replies() {
            assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let head = |ask: &Ask| match ask {
            // Its content is whatever follows.
            Ask::Snapshot(piece) => ask.encode(7).len() - piece.bytes.len(),
            // Entries follow one another: it may end after each.
            Ask::Append(_) => 8 + 1 + 17,
            _ => ask.encode(7).len(),
        };
        for ask in asks() {
            let bytes = ask.encode(7);
            for length in 0..head(&ask) {
                assert!(Ask::decode(&bytes.slice(..length)).is_err(), "{ask:?}, {length} bytes");
            }
        }
    }

    #[test]
    fn the_tags_are_those_that_are_written_down() {
        let tags: Vec<u8> = asks().iter().map(|ask| ask.encode(7)[8]).collect();
        assert_eq!(tags, [1, 1, 2, 3, 4, 4, 5]);
        let tags: Vec<u8> = replies().iter().map(|reply| reply.encode()[0]).collect();
        assert_eq!(tags, [1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 9]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), tag in 0_u8..8) {
            let _ = Ask::decode(&Bytes::from([&[0; 8][..], &[tag], &bytes].concat()));
            let bytes = Bytes::from([&[tag], &*bytes].concat());
            let _ = Reply::decode(&bytes);
        }
    }
}
