//! A group's log and vote, as consensus asks for them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use bytes::Bytes;
use cachesql_types::limits::LOG_READ_BYTES;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use parking_lot::RwLock;
use tokio::sync::oneshot;

use super::codec::{decode_entry, decode_log_id, decode_vote, encode_entry, encode_log_id, encode_vote};
use super::scribe::{Drive, Order, Orders, PURGED, Reply, Scribe, VOTE};
use super::{Entry, LogId, Types, Vote};
use crate::disk::Disk;
use crate::log::{Cut, LogError, LogReader, LogWriter};
use crate::register::{self, RegisterError};

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log itself.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The vote, or the note of how far the log was forgotten.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// What they say cannot be.
    #[error("log: {0}")]
    Content(String),
    /// The thread that writes could not be started.
    #[error("log: {0}")]
    Thread(#[from] io::Error),
}

/// The log of one member of one group. A clone is the same log.
#[derive(Clone)]
pub struct LogStore<D: Disk + Clone> {
    orders: Orders<D>,
    reader: LogReader<D>,
    recent: Arc<Recent>,
    state: Arc<RwLock<State>>,
}

/// What is on disk beside the log, as far as it was answered for.
#[derive(Default)]
struct State {
    vote: Option<Vote>,
    purged: Option<LogId>,
}

/// Records that are on their way to the log, by index.
#[derive(Default)]
pub(super) struct Recent(RwLock<BTreeMap<u64, Bytes>>);

impl Recent {
    /// The records before an index are in the log.
    pub(super) fn written(&self, next: u64) {
        let mut recent = self.0.write();
        let later = recent.split_off(&next);
        *recent = later;
    }
}

impl<D: Disk + Clone> LogStore<D> {
    /// Opens the log in a folder. What a crash left unfinished at its end is cut off, and said.
    pub fn open(disk: D, drive: Drive) -> Result<(LogStore<D>, Option<Cut>), OpenError> {
        let content = |what: &str, error: &dyn std::fmt::Display| OpenError::Content(format!("{what}: {error}"));
        let vote = register::read(&disk, VOTE)?.map(|bytes| decode_vote(&bytes)).transpose();
        let vote = vote.map_err(|error| content(VOTE, &error))?;
        let purged = register::read(&disk, PURGED)?.map(|bytes| decode_log_id(&bytes)).transpose();
        let purged: Option<LogId> = purged.map_err(|error| content(PURGED, &error))?;
        let (mut log, cut) = LogWriter::open(disk.clone())?;
        let needed = purged.map_or(0, |id| id.index.saturating_add(1));
        let (first, next) = log.bounds();
        if next <= needed {
            // A crash came between the note and the removal.
            log.forget_before(needed)?;
        } else if first > needed {
            return Err(OpenError::Content(format!("it begins with entry {first}, and {needed} is needed")));
        }
        let recent = Arc::<Recent>::default();
        let reader = log.reader();
        let orders = Orders::start(drive, Scribe::new(log, disk, recent.clone()))?;
        let state = Arc::new(RwLock::new(State { vote, purged }));
        Ok((LogStore { orders, reader, recent, state }, cut))
    }

    /// Entries from an index up to and without another, as far as they are there, and no more of them than take so many bytes; but
    /// the first, whatever its size.
    fn entries(&self, from: u64, to: u64, most_bytes: usize) -> io::Result<Vec<Entry>> {
        // What is no longer needed can lie in a file that is.
        let from = from.max(self.needed());
        // What is on its way is looked at first: it is taken from there only when it is in the log.
        let recent: Vec<(u64, Bytes)> = match from < to {
            true => self.recent.0.read().range(from..to).map(|(index, bytes)| (*index, bytes.clone())).collect(),
            false => Vec::new(),
        };
        let written = recent.first().map_or(to, |(index, _)| *index);
        let mut records = self.reader.read(from, written, most_bytes).map_err(io::Error::other)?;
        let mut bytes: usize = records.iter().map(|(_, record)| record.len()).sum();
        for (index, record) in recent {
            bytes = bytes.saturating_add(record.len());
            let follows = records.last().is_none_or(|(last, _)| last.checked_add(1) == Some(index));
            if !follows || (bytes > most_bytes && !records.is_empty()) {
                break;
            }
            records.push((index, record));
        }
        records.iter().map(|(index, record)| decode_entry(*index, record).map_err(io::Error::other)).collect()
    }

    /// The index that comes next.
    fn next(&self) -> u64 {
        let recent = self.recent.0.read().keys().next_back().map(|last| last.saturating_add(1));
        let (first, next) = self.reader.bounds();
        recent.unwrap_or(if first == next { self.needed() } else { next })
    }

    /// The first index that is still needed.
    fn needed(&self) -> u64 {
        self.state.read().purged.map_or(0, |id| id.index.saturating_add(1))
    }

    async fn ask(&self, order: impl FnOnce(Reply) -> Order) -> io::Result<()> {
        let (reply, answer) = oneshot::channel();
        self.orders.give(order(reply));
        answer.await.unwrap_or_else(|_| Err(io::Error::other("the thread that writes the log has ended")))
    }
}

/// From the first index of a range up to and without the second.
fn ends_of(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let from = match range.start_bound() {
        Bound::Included(index) => *index,
        Bound::Excluded(index) => index.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(index) => index.saturating_add(1),
        Bound::Excluded(index) => *index,
        Bound::Unbounded => u64::MAX,
    };
    (from, to)
}

impl<D: Disk + Clone> RaftLogReader<Types> for LogStore<D> {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> Result<Vec<Entry>, io::Error>
    where
        RB: RangeBounds<u64> + Clone + Debug + Send,
    {
        let (from, to) = ends_of(&range);
        self.entries(from, to, usize::MAX)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        self.entries(start, end, LOG_READ_BYTES)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.state.read().vote)
    }
}

impl<D: Disk + Clone> RaftLogStorage<Types> for LogStore<D> {
    type LogReader = LogStore<D>;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let last_purged_log_id = self.state.read().purged;
        let next = self.next();
        let last = match next.checked_sub(1).filter(|_| next > self.needed()) {
            Some(index) => self.entries(index, next, usize::MAX)?.first().map(|entry| entry.log_id),
            None => None,
        };
        Ok(LogState { last_purged_log_id, last_log_id: last.or(last_purged_log_id) })
    }

    async fn get_log_reader(&mut self) -> LogStore<D> {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let bytes = encode_vote(vote);
        self.ask(|reply| Order::Vote { vote: bytes, reply }).await?;
        self.state.write().vote = Some(*vote);
        Ok(())
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let mut entries = entries.into_iter().peekable();
        let Some(first) = entries.peek().map(|entry| entry.log_id.index) else {
            callback.io_completed(Ok(()));
            return Ok(());
        };
        let records: Vec<Bytes> = entries.map(|entry| encode_entry(&entry)).collect();
        // They can be read from now on, and are known to be kept when they are synced.
        self.recent.0.write().extend((first..).zip(records.iter().cloned()));
        self.orders.give(Order::Append { first, records, synced: callback });
        Ok(())
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        let index = last_log_id.map_or(0, |id| id.index.saturating_add(1));
        self.ask(|reply| Order::CutFrom { index, reply }).await?;
        // All that was on its way is in the log by then, but for what could not be written.
        self.recent.0.write().retain(|at, _| *at < index);
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        let (purged, index) = (encode_log_id(&log_id), log_id.index.saturating_add(1));
        self.ask(|reply| Order::Forget { purged, index, reply }).await?;
        self.recent.0.write().retain(|at, _| *at >= index);
        self.state.write().purged = Some(log_id);
        Ok(())
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
