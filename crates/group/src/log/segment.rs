//! One file of the log: a head, and records one after the other.

use std::io;

use bytes::Bytes;
use parking_lot::RwLock;

use super::LogError;
use super::record::{RECORD_HEAD, RecordHead, SEGMENT_HEAD, read_segment_head, segment_head};
use crate::disk::{Disk, DiskFile, read_up_to};

const SUFFIX: &str = ".log";

pub(super) struct Segment<F> {
    pub(super) name: String,
    /// Index of its first record.
    pub(super) first: u64,
    file: F,
    /// Where each record ends. Its writer alone changes it, after the bytes are written.
    ends: RwLock<Vec<u64>>,
}

/// The name of the segment that begins with a record.
pub(super) fn name_of(first: u64) -> String {
    format!("{first:020}{SUFFIX}")
}

/// Which record a file's name says that it begins with; `None` for files that are no segments.
pub(super) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let first = digits.parse().ok()?;
    (name_of(first) == name).then_some(first)
}

impl<F: DiskFile> Segment<F> {
    /// Makes the file that begins with a record; when this returns it is certain to be there.
    pub(super) fn create(disk: &impl Disk<File = F>, first: u64) -> io::Result<Segment<F>> {
        let name = name_of(first);
        let file = disk.create(&name)?;
        file.write_at(0, &segment_head(first))?;
        file.sync()?;
        disk.sync()?;
        Ok(Segment { name, first, file, ends: RwLock::default() })
    }

    /// Opens a file, with what is in it. `None` when a crash came before it had a head.
    pub(super) fn open(disk: &impl Disk<File = F>, first: u64, most: u64) -> Result<Option<Opened<F>>, LogError> {
        let name = name_of(first);
        let failed = |source| LogError::Disk { file: name.clone(), source };
        let file = disk.open(&name).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        if length > most {
            let detail = format!("it has {length} bytes, and no segment has more than {most}");
            return Err(LogError::Rot { file: name, position: 0, detail });
        }
        let bytes = read_up_to(&file, 0, usize::try_from(most).unwrap_or(usize::MAX)).map_err(failed)?;
        match read_segment_head(&bytes) {
            Some(found) if found == first => {}
            Some(found) => {
                let detail = format!("it begins with record {found}, not with that of its name");
                return Err(LogError::Rot { file: name, position: 0, detail });
            }
            None if bytes.len() < SEGMENT_HEAD || bytes.iter().all(|byte| *byte == 0) => return Ok(None),
            None => {
                let detail = "its head is damaged, or of another version".to_owned();
                return Err(LogError::Rot { file: name, position: 0, detail });
            }
        }
        Ok(Some(Opened { segment: Segment { name, first, file, ends: RwLock::default() }, bytes }))
    }

    /// Index of the record that would come next.
    pub(super) fn next(&self) -> u64 {
        self.first + self.ends.read().len() as u64
    }

    /// Bytes of it.
    pub(super) fn end(&self) -> u64 {
        self.ends.read().last().copied().unwrap_or(SEGMENT_HEAD as u64)
    }

    /// Writes records behind the last one; `lengths` are the bytes of each, `bytes` are all of them.
    pub(super) fn append(&self, bytes: &[u8], lengths: &[u64]) -> io::Result<()> {
        let mut end = self.end();
        self.file.write_at(end, bytes)?;
        self.ends.write().extend(lengths.iter().map(|length| {
            end += length;
            end
        }));
        Ok(())
    }

    /// Removes the records from an index on.
    pub(super) fn cut_from(&self, index: u64) -> io::Result<()> {
        let keep = usize::try_from(index.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.ends.write().truncate(keep);
        self.file.set_len(self.end())?;
        self.file.sync()
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// One record; `None` beyond the last.
    pub(super) fn read(&self, index: u64) -> Result<Option<Bytes>, LogError> {
        let Some((start, end)) = self.place(index) else { return Ok(None) };
        let failed = |source| LogError::Disk { file: self.name.clone(), source };
        let bytes = usize::try_from(end - start).unwrap_or(usize::MAX);
        let mut bytes = read_up_to(&self.file, start, bytes).map_err(failed)?;
        let intact = RecordHead::read(&bytes).filter(|head| head.index == index && head.record_bytes() == end - start);
        let intact = intact.is_some_and(|head| bytes.get(RECORD_HEAD..).is_some_and(|content| head.fits(content)));
        if !intact {
            let detail = format!("record {index} is not what was written");
            return Err(LogError::Rot { file: self.name.clone(), position: start, detail });
        }
        Ok(Some(Bytes::from(bytes.split_off(RECORD_HEAD))))
    }

    fn place(&self, index: u64) -> Option<(u64, u64)> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        let ends = self.ends.read();
        let start = at.checked_sub(1).map_or(Some(SEGMENT_HEAD as u64), |before| ends.get(before).copied())?;
        Some((start, *ends.get(at)?))
    }
}

/// A segment whose records were checked.
pub(super) struct Checked<F> {
    pub(super) segment: Segment<F>,
    /// Where what a crash left unfinished began, and how many bytes of it were cut off.
    pub(super) cut: Option<(u64, u64)>,
}

/// A segment whose records are not looked at yet, and all its bytes.
pub(super) struct Opened<F> {
    segment: Segment<F>,
    bytes: Vec<u8>,
}

impl<F: DiskFile> Opened<F> {
    /// Checks all records. What a crash left unfinished at the end is cut off when `is_last`. Anything else that is wrong is rot.
    pub(super) fn check(self, is_last: bool) -> Result<Checked<F>, LogError> {
        let Opened { segment, bytes } = self;
        let mut ends = Vec::new();
        let mut at = SEGMENT_HEAD;
        while at < bytes.len() {
            let index = segment.first + ends.len() as u64;
            let Some(end) = end_of_record(&bytes, at, index) else { break };
            at = end;
            ends.push(at as u64);
        }
        let index = segment.first + ends.len() as u64;
        *segment.ends.write() = ends;
        if at == bytes.len() {
            return Ok(Checked { segment, cut: None });
        }
        if !is_last || !is_unfinished(&bytes, at, index) {
            let detail = format!("record {index} is not what was written");
            return Err(LogError::Rot { file: segment.name, position: at as u64, detail });
        }
        let failed = |source| LogError::Disk { file: segment.name.clone(), source };
        segment.file.set_len(at as u64).and_then(|()| segment.file.sync()).map_err(failed)?;
        Ok(Checked { segment, cut: Some((at as u64, (bytes.len() - at) as u64)) })
    }
}

/// Where the record of an index ends that begins at a position; `None` when it is not intact.
fn end_of_record(bytes: &[u8], at: usize, index: u64) -> Option<usize> {
    let head = RecordHead::read(bytes.get(at..)?).filter(|head| head.index == index)?;
    let start = at + RECORD_HEAD;
    let end = start.checked_add(usize::try_from(head.length).ok()?)?;
    head.fits(bytes.get(start..end)?).then_some(end)
}

/// Whether what stands at a position, which is no intact record, can be a record that was not synced when a crash came: it is
/// cut short, or disks left a hole in it. If it was synced, or nothing tells why it should be damaged, it is rot: cutting it
/// off would lose what was acknowledged.
fn is_unfinished(bytes: &[u8], at: usize, index: u64) -> bool {
    if was_synced(bytes, at, index) {
        return false;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let (length, whole) = match RecordHead::read(rest).filter(|head| head.index == index) {
        Some(head) => (head.record_bytes(), true),
        None => (RECORD_HEAD as u64, false),
    };
    let end = at.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
    if end > bytes.len() {
        // A head that is there says where the content should end; a head that is not there can itself only be cut.
        return whole || rest.len() < RECORD_HEAD;
    }
    has_hole(bytes, at, end)
}

/// Whether a later record tells that the one of the index was synced before it was written.
fn was_synced(bytes: &[u8], at: usize, index: u64) -> bool {
    // Records take some bytes each: the indexes that can follow are few, and most positions are passed over by that alone.
    let most = index.saturating_add((bytes.len() / RECORD_HEAD) as u64);
    (at + 1..bytes.len().saturating_sub(RECORD_HEAD)).any(|at| {
        let later = bytes.get(at + 4..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b));
        later > index
            && later <= most
            && RecordHead::read(bytes.get(at..).unwrap_or_default()).is_some_and(|head| head.synced > index)
            && end_of_record(bytes, at, later).is_some()
    })
}

/// What disks write at once.
const SECTOR: usize = 512;

/// Whether some sector is zero from where `from..to` meets it up to its end or the file's: one that never arrived. A record whose
/// own last bytes are zero, and begin a sector, would be taken for such a one were it damaged elsewhere.
fn has_hole(bytes: &[u8], from: usize, to: usize) -> bool {
    let mut start = from;
    while start < to {
        let end = (start / SECTOR + 1).saturating_mul(SECTOR).min(bytes.len());
        let part = bytes.get(start..end).unwrap_or_default();
        if part.iter().all(|byte| *byte == 0) {
            return true;
        }
        start = end;
    }
    false
}
