//! The seam behind which a group's log lies: entries go in, positions come out.
//!
//! An entry is opaque to whoever keeps it. Alone, a node only numbers its entries; a replicated log carries their bytes to
//! the other members, who apply them in order.

use std::sync::atomic::{AtomicU64, Ordering};

use cachesql_table::{DecodeError, Operation};
use cachesql_types::LogIndex;
use futures::future::BoxFuture;

use crate::error::NodeError;
use crate::remembered::RequestKey;

/// One write as the log carries it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The caller's name for it, that every member remembers.
    pub request: Option<RequestKey>,
    /// What to apply, in order, all or nothing.
    pub operations: std::sync::Arc<Vec<Operation>>,
}

/// Where entries are kept.
pub trait Log: Send + Sync {
    /// Appends an entry; its position once it can no longer be lost. Only the writer calls this, one entry at a time.
    fn append<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<LogIndex, NodeError>>;
}

/// The log of a node that is alone and keeps nothing over a restart: it counts.
#[derive(Debug, Default)]
pub struct LocalLog(AtomicU64);

impl Log for LocalLog {
    fn append<'a>(&'a self, _entry: &'a Entry) -> BoxFuture<'a, Result<LogIndex, NodeError>> {
        let index = LogIndex(self.0.fetch_add(1, Ordering::Relaxed)).next();
        Box::pin(std::future::ready(Ok(index)))
    }
}

// The wire form of an entry. These numbers never change; a new form gets a new one.

/// An entry without a request id: the tag, then the operations.
const TAG_PLAIN: u8 = 1;
/// An entry with one: the tag, the id's length in one byte, the id, the request's fingerprint in eight bytes (little
/// endian), then the operations.
const TAG_WITH_REQUEST: u8 = 2;

impl Entry {
    /// The bytes that a log keeps.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match &self.request {
            None => bytes.push(TAG_PLAIN),
            Some(request) => {
                bytes.push(TAG_WITH_REQUEST);
                // A key is never made with a longer id.
                bytes.push(u8::try_from(request.id().len()).unwrap_or(u8::MAX));
                bytes.extend_from_slice(request.id().as_bytes());
                bytes.extend_from_slice(&request.fingerprint().to_le_bytes());
            }
        }
        bytes.extend_from_slice(&Operation::encode(&self.operations));
        bytes
    }

    /// Reads an entry back.
    pub fn decode(bytes: &[u8]) -> Result<Entry, EntryError> {
        let (tag, rest) = bytes.split_first().ok_or(EntryError::Truncated)?;
        let (request, rest) = match *tag {
            TAG_PLAIN => (None, rest),
            TAG_WITH_REQUEST => {
                let (length, rest) = rest.split_first().ok_or(EntryError::Truncated)?;
                let (id, rest) = rest.split_at_checked(usize::from(*length)).ok_or(EntryError::Truncated)?;
                let (fingerprint, rest) = rest.split_first_chunk::<8>().ok_or(EntryError::Truncated)?;
                let id = std::str::from_utf8(id).map_err(|_| EntryError::RequestId)?;
                let request = RequestKey::of_parts(id, u64::from_le_bytes(*fingerprint));
                (Some(request.map_err(|_| EntryError::RequestId)?), rest)
            }
            unknown => return Err(EntryError::Tag(unknown)),
        };
        Ok(Entry { request, operations: std::sync::Arc::new(Operation::decode(rest)?) })
    }
}

/// Why bytes are not an entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// They end too early.
    #[error("the entry is cut short")]
    Truncated,
    /// A form that this version does not know.
    #[error("entries of form {0} are not known")]
    Tag(u8),
    /// A request id that cannot be one.
    #[error("the entry's request id is malformed")]
    RequestId,
    /// Operations that cannot be read.
    #[error(transparent)]
    Operations(#[from] DecodeError),
}
