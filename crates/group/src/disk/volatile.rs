//! A folder in memory, of a member that keeps nothing over a restart: it comes back as a new one, and gets everything from the others.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{Disk, DiskFile};

/// A folder in memory. A clone is the same folder; it is gone with the last one.
#[derive(Clone, Debug, Default)]
pub struct VolatileDisk(Arc<Mutex<BTreeMap<String, VolatileFile>>>);

/// A file in memory.
#[derive(Clone, Debug, Default)]
pub struct VolatileFile(Arc<RwLock<Vec<u8>>>);

fn missing(name: &str) -> io::Error {
    io::Error::new(ErrorKind::NotFound, name.to_owned())
}

impl Disk for VolatileDisk {
    type File = VolatileFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<VolatileFile> {
        let mut files = self.0.lock();
        if files.contains_key(name) {
            return Err(io::Error::new(ErrorKind::AlreadyExists, name.to_owned()));
        }
        let file = VolatileFile::default();
        files.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<VolatileFile> {
        self.0.lock().get(name).cloned().ok_or_else(|| missing(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.lock();
        let file = files.remove(from).ok_or_else(|| missing(from))?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().remove(name).map(drop).ok_or_else(|| missing(name))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for VolatileFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.read().len() as u64)
    }

    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        let content = self.0.read();
        let from = usize::try_from(position).unwrap_or(usize::MAX).min(content.len());
        let rest = content.get(from..).unwrap_or_default();
        let length = rest.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..length), rest.get(..length)) {
            to.copy_from_slice(from);
        }
        Ok(length)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let mut content = self.0.write();
        let start = usize::try_from(position).map_err(io::Error::other)?;
        let end = start.checked_add(bytes.len()).ok_or_else(|| io::Error::other("too long"))?;
        if content.len() < end {
            content.resize(end, 0);
        }
        if let Some(place) = content.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.write().resize(usize::try_from(length).map_err(io::Error::other)?, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
