//! A disk in memory that does at a crash what disks do: it forgets what was not synced, whole or in part.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, DiskFile};

/// What a disk writes at once.
const SECTOR: usize = 512;

/// A folder in memory. A clone is the same folder.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<Names>>);

#[derive(Debug, Default)]
struct Names {
    now: BTreeMap<String, MemoryFile>,
    /// As a crash would leave them.
    certain: BTreeMap<String, MemoryFile>,
    /// Operations that still succeed; then all that write fail.
    writes_left: Option<u64>,
}

/// A file in memory.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    content: Arc<Mutex<Content>>,
    disk: MemoryDisk,
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    /// As a crash would leave it, at the least.
    certain: Vec<u8>,
}

/// What becomes at a crash of bytes that were written and not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// They are gone.
    Lost,
    /// All of them are there after all.
    Kept,
    /// The first so many of each file are there.
    Torn(usize),
    /// They are there, but for one sector of each file, which is counted from where the synced ones end: it is zero.
    Hole(usize),
}

impl MemoryDisk {
    /// The disk as it is found after a crash.
    pub fn crash(&self, crash: Crash) -> MemoryDisk {
        let found = MemoryDisk::default();
        let names = self.0.lock();
        for (name, file) in &names.certain {
            let content = file.content.lock();
            let after = after_crash(&content, crash);
            let content = Content { now: after.clone(), certain: after };
            let file = MemoryFile { content: Arc::new(Mutex::new(content)), disk: found.clone() };
            found.0.lock().certain.insert(name.clone(), file);
        }
        let mut found_names = found.0.lock();
        found_names.now = found_names.certain.clone();
        drop(found_names);
        found
    }

    /// From now on so many operations that write succeed, and all after them fail.
    pub fn fail_after(&self, writes: u64) {
        self.0.lock().writes_left = Some(writes);
    }

    /// Changes the content of a file behind everyone's back.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let file = self.0.lock().now.get(name).cloned();
        if let Some(file) = file {
            let mut content = file.content.lock();
            change(&mut content.now);
            content.certain = content.now.clone();
        }
    }

    fn may_write(&self) -> io::Result<()> {
        match &mut self.0.lock().writes_left {
            Some(0) => Err(io::Error::other("the disk fails")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn after_crash(content: &Content, crash: Crash) -> Vec<u8> {
    let certain = content.certain.len();
    let mut after = content.now.clone();
    match crash {
        Crash::Kept => {}
        Crash::Lost => after = content.certain.clone(),
        // What was written over or cut, and not synced, is as it was: logs do neither without syncing at once.
        Crash::Torn(_) | Crash::Hole(_) if after.len() <= certain => after = content.certain.clone(),
        Crash::Torn(bytes) => after.truncate(certain.saturating_add(bytes)),
        Crash::Hole(sector) => {
            let first = certain.div_ceil(SECTOR).saturating_add(sector).saturating_mul(SECTOR);
            let end = first.saturating_add(SECTOR).min(after.len());
            if let Some(hole) = after.get_mut(first..end) {
                hole.fill(0);
            }
        }
    }
    after
}

fn missing(name: &str) -> io::Error {
    io::Error::new(ErrorKind::NotFound, name.to_owned())
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().now.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        self.may_write()?;
        let file = MemoryFile { content: Arc::default(), disk: self.clone() };
        let mut names = self.0.lock();
        if names.now.contains_key(name) {
            return Err(io::Error::new(ErrorKind::AlreadyExists, name.to_owned()));
        }
        names.now.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        self.0.lock().now.get(name).cloned().ok_or_else(|| missing(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.may_write()?;
        let mut names = self.0.lock();
        let file = names.now.remove(from).ok_or_else(|| missing(from))?;
        names.now.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.may_write()?;
        self.0.lock().now.remove(name).map(|_| ()).ok_or_else(|| missing(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.may_write()?;
        let mut names = self.0.lock();
        names.certain = names.now.clone();
        Ok(())
    }
}

impl DiskFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.content.lock().now.len() as u64)
    }

    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        let content = self.content.lock();
        let from = usize::try_from(position).unwrap_or(usize::MAX).min(content.now.len());
        let rest = content.now.get(from..).unwrap_or_default();
        let length = rest.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..length), rest.get(..length)) {
            to.copy_from_slice(from);
        }
        Ok(length)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.may_write()?;
        let mut content = self.content.lock();
        let start = usize::try_from(position).map_err(io::Error::other)?;
        let end = start.checked_add(bytes.len()).ok_or_else(|| io::Error::other("too long"))?;
        if content.now.len() < end {
            content.now.resize(end, 0);
        }
        if let Some(place) = content.now.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.disk.may_write()?;
        self.content.lock().now.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.may_write()?;
        let mut content = self.content.lock();
        content.certain = content.now.clone();
        Ok(())
    }
}
