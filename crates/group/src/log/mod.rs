//! The log of one member on disk: records of opaque bytes under indexes that count upwards, in files of bounded size.
//!
//! One writer appends and syncs; readers read beside it. What was synced is there after a crash; of what was not, a part from
//! the front may be. When it is opened every record is checked: what a crash left unfinished at the end is cut off, and
//! anything else that is damaged is an error, for a member that drops what it acknowledged would break its promise to the others.

mod record;
mod segment;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use cachesql_types::limits::{LOG_RECORD_BYTES, LOG_SEGMENT_BYTES};
use parking_lot::RwLock;

use self::record::{RECORD_HEAD, RecordHead, SEGMENT_HEAD};
use self::segment::{Checked, Segment, first_of, name_of};
use crate::disk::Disk;

/// Why the log cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The disk failed.
    #[error("log: {file}: {source}")]
    Disk {
        /// The file's name in the log's folder; empty for the folder itself.
        file: String,
        /// What the disk said.
        source: io::Error,
    },
    /// Bytes are not those that were written.
    #[error("log: {file} is damaged at byte {position}: {detail}")]
    Rot {
        /// The file's name in the log's folder.
        file: String,
        /// Where in it.
        position: u64,
        /// What is wrong.
        detail: String,
    },
    /// Records are missing between two files.
    #[error("log: {file} begins with record {found}, where record {expected} should follow")]
    Gap {
        /// The later file's name.
        file: String,
        /// The record that should come.
        expected: u64,
        /// The record that comes.
        found: u64,
    },
    /// Records were given that do not follow the last one.
    #[error("log: record {given} does not follow the last one; {expected} does")]
    NotNext {
        /// The index that would follow.
        expected: u64,
        /// The index that was given.
        given: u64,
    },
    /// A record is longer than any may be.
    #[error("log: a record of {bytes} bytes is longer than {LOG_RECORD_BYTES} (LOG_RECORD_BYTES)")]
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// An earlier write failed, and nobody knows what the disk holds since.
    #[error("log: nothing is written any more, since a write failed: {cause}")]
    Fenced {
        /// The error of then.
        cause: String,
    },
}

/// What was found unfinished when the log was opened, and cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file's name.
    pub file: String,
    /// Where in it the unfinished bytes began.
    pub position: u64,
    /// How many they were.
    pub bytes: u64,
}

/// Which records there are: from the first up to and without the second. Equal when there are none.
pub type Bounds = (u64, u64);

/// Appends to the log, and removes from both its ends. There is one.
pub struct LogWriter<D: Disk> {
    shared: Arc<Shared<D>>,
    segment_bytes: u64,
    /// The records before this one are synced.
    synced: u64,
    /// The first failure of a write.
    failure: Option<String>,
}

/// Reads the log. A clone reads the same one.
pub struct LogReader<D: Disk> {
    shared: Arc<Shared<D>>,
}

impl<D: Disk> Clone for LogReader<D> {
    fn clone(&self) -> Self {
        LogReader { shared: self.shared.clone() }
    }
}

struct Shared<D: Disk> {
    disk: D,
    /// In order; each begins where the one before ends.
    segments: RwLock<Vec<Arc<Segment<D::File>>>>,
}

impl<D: Disk> Shared<D> {
    fn bounds(&self) -> Bounds {
        let segments = self.segments.read();
        match (segments.first(), segments.last()) {
            (Some(first), Some(last)) => (first.first, last.next()),
            _ => (0, 0),
        }
    }

    fn last(&self) -> Option<Arc<Segment<D::File>>> {
        self.segments.read().last().cloned()
    }
}

impl<D: Disk> LogReader<D> {
    /// Which records there are.
    pub fn bounds(&self) -> Bounds {
        self.shared.bounds()
    }

    /// The records of the indexes from the first that is there on, and no more of them than take so many bytes; but that first,
    /// whatever its size.
    pub fn read(&self, from: u64, to: u64, most_bytes: usize) -> Result<Vec<(u64, Bytes)>, LogError> {
        let mut records = Vec::new();
        let mut bytes = 0_usize;
        let mut index = from.max(self.bounds().0);
        while index < to {
            let segment = {
                let segments = self.shared.segments.read();
                let at = segments.partition_point(|segment| segment.first <= index);
                at.checked_sub(1).and_then(|at| segments.get(at).cloned())
            };
            let Some(record) = segment.map_or(Ok(None), |segment| segment.read(index))? else { break };
            bytes = bytes.saturating_add(record.len());
            if !records.is_empty() && bytes > most_bytes {
                break;
            }
            records.push((index, record));
            index += 1;
        }
        Ok(records)
    }
}

impl<D: Disk> LogWriter<D> {
    /// Opens the log of a folder. What a crash left unfinished at its end is cut off, and said.
    pub fn open(disk: D) -> Result<(LogWriter<D>, Option<Cut>), LogError> {
        LogWriter::open_with(disk, LOG_SEGMENT_BYTES)
    }

    /// The same with files of about so many bytes.
    pub fn open_with(disk: D, segment_bytes: u64) -> Result<(LogWriter<D>, Option<Cut>), LogError> {
        let folder = |source| LogError::Disk { file: String::new(), source };
        let mut firsts: Vec<u64> = disk.list().map_err(folder)?.iter().filter_map(|name| first_of(name)).collect();
        firsts.sort_unstable();
        let most = segment_bytes.saturating_add((SEGMENT_HEAD + RECORD_HEAD + LOG_RECORD_BYTES) as u64);
        let mut segments: Vec<Arc<Segment<D::File>>> = Vec::with_capacity(firsts.len());
        let mut cut = None;
        for (at, first) in firsts.iter().enumerate() {
            let is_last = at + 1 == firsts.len();
            let Some(opened) = Segment::open(&disk, *first, most)? else {
                // A crash came while it was made: nothing was in it yet.
                let file = name_of(*first);
                if !is_last {
                    let detail = "it has no head".to_owned();
                    return Err(LogError::Rot { file, position: 0, detail });
                }
                disk.remove(&file).and_then(|()| disk.sync()).map_err(|source| LogError::Disk { file, source })?;
                break;
            };
            let Checked { segment, cut: unfinished } = opened.check(is_last)?;
            if let Some(expected) = segments.last().map(|before| before.next()).filter(|next| *next != *first) {
                return Err(LogError::Gap { file: segment.name, expected, found: *first });
            }
            cut = unfinished.map(|(position, bytes)| Cut { file: segment.name.clone(), position, bytes });
            segments.push(Arc::new(segment));
        }
        if let Some(last) = segments.last() {
            // A record that was whole and not synced is kept, and from now on counted on.
            last.sync().map_err(|source| LogError::Disk { file: last.name.clone(), source })?;
        }
        let shared = Arc::new(Shared { disk, segments: RwLock::new(segments) });
        let synced = shared.bounds().1;
        Ok((LogWriter { shared, segment_bytes, synced, failure: None }, cut))
    }

    /// Reads beside it.
    pub fn reader(&self) -> LogReader<D> {
        LogReader { shared: self.shared.clone() }
    }

    /// Which records there are.
    pub fn bounds(&self) -> Bounds {
        self.shared.bounds()
    }

    /// The records before this index are certain to be there after a crash.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Writes records, the first of which has an index that follows the last; any, when the log is empty. They may be lost
    /// until `sync` has returned.
    pub fn append(&mut self, first: u64, records: &[Bytes]) -> Result<(), LogError> {
        self.check_fence()?;
        let (start, next) = self.bounds();
        if start != next && first != next {
            return Err(LogError::NotNext { expected: next, given: first });
        }
        if let Some(long) = records.iter().find(|record| record.len() > LOG_RECORD_BYTES) {
            return Err(LogError::TooLong { bytes: long.len() });
        }
        if records.is_empty() {
            return Ok(());
        }
        let mut segment = self.segment_for(first)?;
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for (index, record) in (first..).zip(records) {
            if segment.end() + bytes.len() as u64 >= self.segment_bytes {
                self.write(&segment, &bytes, &lengths)?;
                (bytes, lengths) = (Vec::new(), Vec::new());
                segment = self.roll(index)?;
            }
            let length = u32::try_from(record.len()).map_err(|_| LogError::TooLong { bytes: record.len() })?;
            let head = RecordHead::of(index, self.synced, length, record);
            bytes.extend_from_slice(&head.bytes());
            bytes.extend_from_slice(record);
            lengths.push(head.record_bytes());
        }
        self.write(&segment, &bytes, &lengths)
    }

    /// Makes all that was appended certain, and answers the index before which everything is.
    pub fn sync(&mut self) -> Result<u64, LogError> {
        self.check_fence()?;
        if let Some(segment) = self.shared.last() {
            let synced = segment.sync();
            self.fence_on(&segment.name, synced)?;
        }
        self.synced = self.bounds().1;
        Ok(self.synced)
    }

    /// Removes the records from an index on. They are certain to be gone when this returns.
    pub fn cut_from(&mut self, index: u64) -> Result<(), LogError> {
        self.check_fence()?;
        while let Some(last) = self.shared.last().filter(|last| last.first >= index) {
            self.remove(&last)?;
            self.shared.segments.write().pop();
        }
        if let Some(last) = self.shared.last().filter(|last| last.next() > index) {
            let cut = last.cut_from(index);
            self.fence_on(&last.name, cut)?;
        }
        self.synced = self.synced.min(self.bounds().1);
        Ok(())
    }

    /// Removes records before an index, as far as whole files of them can go. With an index beyond the last record all go, and
    /// any may follow.
    pub fn forget_before(&mut self, index: u64) -> Result<(), LogError> {
        self.check_fence()?;
        // The oldest first: were there a crash, what is left has no gap.
        loop {
            let first = self.shared.segments.read().first().cloned();
            let Some(first) = first.filter(|first| first.next() <= index && first.next() > first.first) else { break };
            self.remove(&first)?;
            self.shared.segments.write().remove(0);
        }
        // Where any index may follow, nothing is known of what comes.
        self.synced = self.synced.min(self.bounds().1);
        Ok(())
    }

    fn remove(&mut self, segment: &Segment<D::File>) -> Result<(), LogError> {
        let removed = self.shared.disk.remove(&segment.name).and_then(|()| self.shared.disk.sync());
        self.fence_on(&segment.name, removed)
    }

    fn write(&mut self, segment: &Segment<D::File>, bytes: &[u8], lengths: &[u64]) -> Result<(), LogError> {
        if lengths.is_empty() {
            return Ok(());
        }
        let written = segment.append(bytes, lengths);
        self.fence_on(&segment.name, written)
    }

    /// The segment that a record goes to.
    fn segment_for(&mut self, first: u64) -> Result<Arc<Segment<D::File>>, LogError> {
        match self.shared.last() {
            Some(last) if last.next() == first => Ok(last),
            // An empty one is left when all records were cut; what follows may begin elsewhere.
            Some(last) => {
                self.remove(&last)?;
                self.shared.segments.write().pop();
                self.roll(first)
            }
            None => self.roll(first),
        }
    }

    /// Begins another segment. All before it is synced first: only the last one can be unfinished after a crash.
    fn roll(&mut self, first: u64) -> Result<Arc<Segment<D::File>>, LogError> {
        self.sync()?;
        let created = Segment::create(&self.shared.disk, first);
        let segment = Arc::new(self.fence_on("", created)?);
        self.shared.segments.write().push(segment.clone());
        Ok(segment)
    }

    fn check_fence(&self) -> Result<(), LogError> {
        match &self.failure {
            Some(cause) => Err(LogError::Fenced { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// A write that failed is the last one: a disk that could not sync may say that it did when asked again.
    fn fence_on<T>(&mut self, file: &str, outcome: io::Result<T>) -> Result<T, LogError> {
        outcome.map_err(|source| {
            let error = LogError::Disk { file: file.to_owned(), source };
            self.failure = Some(error.to_string());
            error
        })
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
