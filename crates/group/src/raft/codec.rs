//! What consensus keeps on disk and sends, as bytes. Numbers are little-endian. The tags never change; a new form gets a new one.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use openraft::{EntryPayload, Membership, StoredMembership};

use super::{Entry, LeaderId, LogId, Member, Proposal, SnapshotMeta, Vote};

/// An entry that says nothing but that somebody leads.
const TAG_BLANK: u8 = 1;
/// An entry with a proposal: the rest of the bytes.
const TAG_PROPOSAL: u8 = 2;
/// An entry that names the members: sets of voters, each a count and numbers; then all members, a count, and for each its number
/// and its name behind its length.
const TAG_MEMBERSHIP: u8 = 3;
/// A vote, not granted by a quorum: term and number.
const TAG_VOTE: u8 = 1;
/// A vote that was granted by a quorum.
const TAG_VOTE_COMMITTED: u8 = 2;

/// Why bytes are not what they should be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CodecError {
    /// They end too early.
    #[error("cut short")]
    Short,
    /// There are more of them than belong to it.
    #[error("{0} bytes too many")]
    TooMany(usize),
    /// A form that this version does not know.
    #[error("form {0} is not known")]
    Tag(u8),
    /// Members that no group can have.
    #[error("members that no group can have: {0}")]
    Members(String),
}

/// Reads from the front of bytes.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(CodecError::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, CodecError> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn count(&mut self) -> Result<usize, CodecError> {
        let count = usize::from(u16::from_le_bytes(self.take()?));
        // Each takes a byte at least: no count can make much be allocated for few bytes.
        if count > self.0.len() { Err(CodecError::Short) } else { Ok(count) }
    }

    pub(super) fn number(&mut self) -> Result<u64, CodecError> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a str, CodecError> {
        let length = self.count()?;
        let text = self.bytes(length)?;
        std::str::from_utf8(text).map_err(|_| CodecError::Members("a name that is not UTF-8".to_owned()))
    }

    /// What a count of bytes stands before.
    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], CodecError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CodecError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn vote(&mut self) -> Result<Vote, CodecError> {
        decode_vote(&self.take::<17>()?)
    }

    pub(super) fn end(self) -> Result<(), CodecError> {
        if self.0.is_empty() { Ok(()) } else { Err(CodecError::TooMany(self.0.len())) }
    }
}

/// Writes a count. Groups have a handful of members; more than can be counted here are cut, and refused when they are read.
fn put_count(out: &mut BytesMut, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
}

/// An entry without its index, which the log knows.
pub(super) fn encode_entry(entry: &Entry) -> Bytes {
    let leader = entry.log_id.leader_id;
    let mut out =
        BytesMut::with_capacity(17 + if let EntryPayload::Normal(p) = &entry.payload { p.0.len() } else { 64 });
    let tag = match &entry.payload {
        EntryPayload::Blank => TAG_BLANK,
        EntryPayload::Normal(_) => TAG_PROPOSAL,
        EntryPayload::Membership(_) => TAG_MEMBERSHIP,
    };
    out.extend_from_slice(&[tag]);
    out.extend_from_slice(&leader.term.to_le_bytes());
    out.extend_from_slice(&leader.node_id.to_le_bytes());
    match &entry.payload {
        EntryPayload::Blank => {}
        EntryPayload::Normal(proposal) => out.extend_from_slice(&proposal.0),
        EntryPayload::Membership(membership) => put_membership(&mut out, membership),
    }
    out.freeze()
}

/// Reads an entry back. A proposal shares the bytes.
pub(super) fn decode_entry(index: u64, bytes: &Bytes) -> Result<Entry, CodecError> {
    let mut reader = Reader(bytes);
    let tag = reader.byte()?;
    let leader_id = LeaderId { term: reader.number()?, node_id: reader.number()? };
    let payload = match tag {
        TAG_BLANK => {
            reader.end()?;
            EntryPayload::Blank
        }
        TAG_PROPOSAL => EntryPayload::Normal(Proposal(bytes.slice_ref(reader.0))),
        TAG_MEMBERSHIP => EntryPayload::Membership(take_membership(reader)?),
        unknown => return Err(CodecError::Tag(unknown)),
    };
    Ok(Entry { log_id: LogId::new(leader_id, index), payload })
}

fn put_membership(out: &mut BytesMut, membership: &Membership<u64, Member>) {
    put_count(out, membership.get_joint_config().len());
    for voters in membership.get_joint_config() {
        put_count(out, voters.len());
        voters.iter().for_each(|voter| out.extend_from_slice(&voter.to_le_bytes()));
    }
    put_count(out, membership.nodes().count());
    for (number, member) in membership.nodes() {
        out.extend_from_slice(&number.to_le_bytes());
        put_count(out, member.name.len());
        out.extend_from_slice(member.name.as_bytes());
    }
}

fn take_membership(mut reader: Reader<'_>) -> Result<Membership<u64, Member>, CodecError> {
    let mut sets = Vec::new();
    for _ in 0..reader.count()? {
        let mut voters = BTreeSet::new();
        for _ in 0..reader.count()? {
            voters.insert(reader.number()?);
        }
        sets.push(voters);
    }
    let mut members = BTreeMap::new();
    for _ in 0..reader.count()? {
        let number = reader.number()?;
        members.insert(number, Member { name: reader.text()?.to_owned() });
    }
    reader.end()?;
    Membership::new(sets, members).map_err(|e| CodecError::Members(e.to_string()))
}

/// A vote.
pub(super) fn encode_vote(vote: &Vote) -> Vec<u8> {
    let leader = vote.leader_id();
    let mut out = vec![if vote.is_committed() { TAG_VOTE_COMMITTED } else { TAG_VOTE }];
    out.extend_from_slice(&leader.term.to_le_bytes());
    out.extend_from_slice(&leader.node_id.to_le_bytes());
    out
}

/// Reads a vote back.
pub(super) fn decode_vote(bytes: &[u8]) -> Result<Vote, CodecError> {
    let mut reader = Reader(bytes);
    let tag = reader.byte()?;
    let (term, node_id) = (reader.number()?, reader.number()?);
    reader.end()?;
    match tag {
        TAG_VOTE => Ok(Vote::new(term, node_id)),
        TAG_VOTE_COMMITTED => Ok(Vote::new_committed(term, node_id)),
        unknown => Err(CodecError::Tag(unknown)),
    }
}

/// A place in the log.
pub(super) fn encode_log_id(id: &LogId) -> Vec<u8> {
    let leader = id.leader_id;
    [leader.term, leader.node_id, id.index].iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Reads a place back.
pub(super) fn decode_log_id(bytes: &[u8]) -> Result<LogId, CodecError> {
    let mut reader = Reader(bytes);
    let leader_id = LeaderId { term: reader.number()?, node_id: reader.number()? };
    let index = reader.number()?;
    reader.end()?;
    Ok(LogId::new(leader_id, index))
}

/// What a snapshot is of: its place in the log if it has one, the place of the entry that named the members if there was one, and
/// the members.
pub(super) fn encode_meta(meta: &SnapshotMeta) -> Vec<u8> {
    let mut out = BytesMut::new();
    put_place(&mut out, meta.last_log_id.as_ref());
    put_place(&mut out, meta.last_membership.log_id().as_ref());
    put_membership(&mut out, meta.last_membership.membership());
    out.to_vec()
}

/// Reads it back.
pub(super) fn decode_meta(bytes: &[u8]) -> Result<SnapshotMeta, CodecError> {
    let mut reader = Reader(bytes);
    let last_log_id = take_place(&mut reader)?;
    let of = take_place(&mut reader)?;
    let last_membership = StoredMembership::new(of, take_membership(reader)?);
    Ok(SnapshotMeta { last_log_id, last_membership })
}

/// A place that may be none.
pub(super) fn put_place(out: &mut BytesMut, id: Option<&LogId>) {
    out.extend_from_slice(&[u8::from(id.is_some())]);
    out.extend_from_slice(&id.map(encode_log_id).unwrap_or_default());
}

/// Reads it back.
pub(super) fn take_place(reader: &mut Reader<'_>) -> Result<Option<LogId>, CodecError> {
    match reader.byte()? {
        0 => Ok(None),
        1 => decode_log_id(&reader.take::<24>()?).map(Some),
        unknown => Err(CodecError::Tag(unknown)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;
    use proptest::prelude::*;

    fn entries() -> impl Strategy<Value = Entry> {
        let payload = prop_oneof![
            Just(EntryPayload::Blank),
            prop::collection::vec(any::<u8>(), 0..200).prop_map(|b| EntryPayload::Normal(Proposal(b.into()))),
            (prop::collection::btree_map(1_u64..9, "[a-zé汉]{0,12}", 1..6), any::<bool>()).prop_map(
                |(names, joint)| {
                    let voters: BTreeSet<u64> = names.keys().copied().take(3).collect();
                    let first = voters.iter().copied().take(1).collect();
                    let sets = if joint { vec![first, voters] } else { vec![voters] };
                    let members: BTreeMap<u64, Member> =
                        names.into_iter().map(|(n, name)| (n, Member { name })).collect();
                    EntryPayload::Membership(Membership::new(sets, members).expect("members"))
                }
            ),
        ];
        (any::<u64>(), any::<u64>(), any::<u64>(), payload).prop_map(|(term, node_id, index, payload)| Entry {
            log_id: LogId::new(LeaderId { term, node_id }, index),
            payload,
        })
    }

    proptest! {
        #[test]
        fn an_entry_comes_back_as_it_was(entry in entries()) {
            let bytes = encode_entry(&entry);
            prop_assert_eq!(decode_entry(entry.log_id.index, &bytes), Ok(entry.clone()));
            if !matches!(entry.payload, EntryPayload::Normal(_)) {
                for length in 0..bytes.len() {
                    prop_assert!(decode_entry(1, &bytes.slice(..length)).is_err(), "{length} bytes");
                }
                let longer = Bytes::from([&*bytes, &[0]].concat());
                prop_assert!(decode_entry(1, &longer).is_err());
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode_entry(1, &Bytes::from(bytes.clone()));
            let _ = decode_vote(&bytes);
            let _ = decode_log_id(&bytes);
        }
    }

    #[test]
    fn the_tags_are_those_that_are_written_down() {
        let leader_id = LeaderId { term: 2, node_id: 3 };
        let entry = |payload| encode_entry(&Entry { log_id: LogId::new(leader_id, 9), payload }).to_vec();
        let head = |tag: u8| [&[tag][..], &[2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(entry(EntryPayload::Blank), head(1));
        assert_eq!(
            entry(EntryPayload::Normal(Proposal(Bytes::from_static(b"ab")))),
            [head(2), b"ab".to_vec()].concat()
        );
        let members = [(3, Member { name: "a".to_owned() })].into_iter().collect::<BTreeMap<u64, Member>>();
        let membership = Membership::new(vec![BTreeSet::from([3])], members).expect("members");
        let body = [&[1, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0][..], b"a"].concat();
        assert_eq!(entry(EntryPayload::Membership(membership)), [head(3), body].concat());
        assert_eq!(encode_vote(&Vote::new(2, 3)), head(1));
        assert_eq!(encode_vote(&Vote::new_committed(2, 3)), head(2));
        for vote in [Vote::new(2, 3), Vote::new_committed(2, 3)] {
            assert_eq!(decode_vote(&encode_vote(&vote)), Ok(vote));
        }
        let id = LogId::new(leader_id, 9);
        assert_eq!(decode_log_id(&encode_log_id(&id)), Ok(id));
        assert_eq!(decode_vote(&head(7)), Err(CodecError::Tag(7)));
    }
}
