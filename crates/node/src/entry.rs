//! Writes as a group's log carries them: one, or several that were planned at the same time.
//!
//! A member that leads plans its writes on top of each other before any of them is agreed on. So each says after which
//! other it was planned: where that one was not the last to be applied, because another leader came between or the one before it
//! was lost, the entry does nothing, on every member alike.

use std::sync::Arc;

use bytes::Bytes;
use cachesql_table::{DecodeError, Operation};

use crate::remembered::RequestKey;

/// What tells a write from every other of its group: writes that one member planned on top of each other are a run, and are
/// counted in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The run, by a number that no other has. 0 is before the first write.
    pub run: u64,
    /// Which of its writes.
    pub step: u64,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its own place.
    pub place: Place,
    /// The place of the write that it was planned after.
    pub after: Place,
    /// The caller's name for it, and what it was answered.
    pub answered: Option<Answered>,
    /// What to apply, in order, all or nothing.
    pub operations: Arc<Vec<Operation>>,
}

/// What every member remembers of a request that has an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The caller's name for it.
    pub key: RequestKey,
    /// Its outcomes, one a statement, as bytes.
    pub outcomes: Bytes,
}

// The wire form of an entry. These numbers never change; a new form gets a new one. All numbers are little-endian.

/// The tag; run and step of its place, and of the one after which it comes, eight bytes each; then the operations.
const TAG_PLAIN: u8 = 1;
/// The same, but before the operations the request's id with its length in one byte, its fingerprint in eight bytes, and its
/// outcomes with their length in four.
const TAG_ANSWERED: u8 = 2;
/// Several, each planned after the one before it: how many in four bytes, and each with its length in four bytes.
const TAG_SEVERAL: u8 = 3;

/// One write as a log takes it.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The write.
    pub entry: Entry,
    /// The same as bytes; none where the log keeps none.
    pub bytes: Bytes,
}

/// The bytes of writes that are proposed together; those of one are its own.
pub(crate) fn join(writes: &[Packed]) -> Bytes {
    if let [only] = writes {
        return only.bytes.clone();
    }
    let length = writes.iter().map(|write| write.bytes.len().saturating_add(4)).sum::<usize>();
    let mut bytes = Vec::with_capacity(length.saturating_add(5));
    bytes.push(TAG_SEVERAL);
    // There are no more than one proposal may have.
    bytes.extend_from_slice(&u32::try_from(writes.len()).unwrap_or(u32::MAX).to_le_bytes());
    for write in writes {
        // The writer puts no more together than a message may have.
        bytes.extend_from_slice(&u32::try_from(write.bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&write.bytes);
    }
    bytes.into()
}

/// The bytes of each of the writes that were proposed together.
pub(crate) fn split(bytes: &[u8]) -> Result<Vec<&[u8]>, EntryError> {
    let Some((&TAG_SEVERAL, mut rest)) = bytes.split_first() else { return Ok(vec![bytes]) };
    let count = u32::from_le_bytes(read_array(&mut rest)?);
    let mut writes = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(read_array(&mut rest)?);
        writes.push(take(&mut rest, usize::try_from(length).map_err(|_| EntryError::Truncated)?)?);
    }
    if u32::try_from(writes.len()).ok() == Some(count) && count > 0 { Ok(writes) } else { Err(EntryError::Truncated) }
}

impl Entry {
    /// The bytes that a log keeps.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![if self.answered.is_some() { TAG_ANSWERED } else { TAG_PLAIN }];
        for place in [self.place, self.after] {
            bytes.extend_from_slice(&place.run.to_le_bytes());
            bytes.extend_from_slice(&place.step.to_le_bytes());
        }
        if let Some(Answered { key, outcomes }) = &self.answered {
            write_answered(&mut bytes, key, outcomes);
        }
        bytes.extend_from_slice(&Operation::encode(&self.operations));
        bytes
    }

    /// Reads an entry back.
    pub fn decode(bytes: &[u8]) -> Result<Entry, EntryError> {
        let (head, mut rest) = Head::split(bytes)?;
        let answered = if head.is_answered { Some(read_answered(&mut rest)?) } else { None };
        let operations = Arc::new(Operation::decode(rest)?);
        Ok(Entry { place: head.place, after: head.after, answered, operations })
    }
}

/// Where an entry belongs, which is read without the rest of it.
pub(crate) struct Head {
    pub(crate) place: Place,
    pub(crate) after: Place,
    is_answered: bool,
}

impl Head {
    pub(crate) fn split(bytes: &[u8]) -> Result<(Head, &[u8]), EntryError> {
        let (tag, mut rest) = bytes.split_first().ok_or(EntryError::Truncated)?;
        let is_answered = match *tag {
            TAG_PLAIN => false,
            TAG_ANSWERED => true,
            unknown => return Err(EntryError::Tag(unknown)),
        };
        let place = read_place(&mut rest)?;
        let after = read_place(&mut rest)?;
        Ok((Head { place, after, is_answered }, rest))
    }
}

pub(crate) fn write_answered(out: &mut Vec<u8>, key: &RequestKey, outcomes: &Bytes) {
    // A key is never made with a longer id, and outcomes are within the memory that a statement may use.
    out.push(u8::try_from(key.id().len()).unwrap_or(u8::MAX));
    out.extend_from_slice(key.id().as_bytes());
    out.extend_from_slice(&key.fingerprint().to_le_bytes());
    out.extend_from_slice(&u32::try_from(outcomes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(outcomes);
}

pub(crate) fn read_answered(rest: &mut &[u8]) -> Result<Answered, EntryError> {
    let [length] = read_array(rest)?;
    let id = std::str::from_utf8(take(rest, usize::from(length))?).map_err(|_| EntryError::RequestId)?;
    let fingerprint = u64::from_le_bytes(read_array(rest)?);
    let key = RequestKey::of_parts(id, fingerprint).map_err(|_| EntryError::RequestId)?;
    let length = u32::from_le_bytes(read_array(rest)?);
    let outcomes = take(rest, usize::try_from(length).map_err(|_| EntryError::Truncated)?)?;
    Ok(Answered { key, outcomes: Bytes::copy_from_slice(outcomes) })
}

pub(crate) fn read_place(rest: &mut &[u8]) -> Result<Place, EntryError> {
    Ok(Place { run: u64::from_le_bytes(read_array(rest)?), step: u64::from_le_bytes(read_array(rest)?) })
}

pub(crate) fn read_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], EntryError> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(EntryError::Truncated)?;
    *rest = left;
    Ok(*taken)
}

pub(crate) fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], EntryError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(EntryError::Truncated)?;
    *rest = left;
    Ok(taken)
}

/// Why bytes are not an entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// They end too early.
    #[error("it is cut short")]
    Truncated,
    /// A form that this version does not know.
    #[error("form {0} is not known")]
    Tag(u8),
    /// A text that is none.
    #[error("a text that is not UTF-8")]
    Text,
    /// What is nested too deeply.
    #[error("a filter that is nested too deeply")]
    TooDeep,
    /// A request id that cannot be one.
    #[error("the entry's request id is malformed")]
    RequestId,
    /// Operations that cannot be read.
    #[error(transparent)]
    Operations(#[from] DecodeError),
}
