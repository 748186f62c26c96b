//! A folder of the file system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Disk, DiskFile};

/// A folder of the file system, which no other process uses at the same time.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held, and with it the lock, until the folder is given up.
    _lock: File,
}

/// The file whose lock says that the folder is in use.
const LOCK: &str = ".lock";

impl Folder {
    /// A folder; it is made, with those above it, when it is not there. An error of the kind `WouldBlock` when it is in use.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Folder> {
        let path = path.into();
        let missing: Vec<&Path> = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists()).collect();
        fs::create_dir_all(&path)?;
        // A folder that was just made is itself a name in the one above it.
        for made in missing {
            if let Some(above) = made.parent().filter(|p| !p.as_os_str().is_empty()) {
                File::open(above)?.sync_all()?;
            }
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => io::Error::new(ErrorKind::WouldBlock, "another process uses it"),
            fs::TryLockError::Error(error) => error,
        })?;
        Ok(Folder { path, _lock: lock })
    }
}

impl Disk for Folder {
    type File = File;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
                && name != LOCK
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl DiskFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while let Some(rest) = into.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, position + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, position)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        File::set_len(self, length)
    }

    fn sync(&self) -> io::Result<()> {
        // The length is metadata that reading needs, and is written with the content.
        self.sync_data()
    }
}
