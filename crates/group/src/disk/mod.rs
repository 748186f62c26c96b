//! A folder of files, as far as a log needs one. The simulator has its own, which forgets what was not synced.

mod folder;
#[cfg(any(test, feature = "simulation"))]
mod memory;
mod volatile;

use std::io;
use std::sync::Arc;

pub use folder::Folder;
#[cfg(any(test, feature = "simulation"))]
pub use memory::{Crash, MemoryDisk};
pub use volatile::VolatileDisk;

/// A folder. Names that were made, renamed or removed are certain to be so after a crash only when `sync` has returned.
pub trait Disk: Send + Sync + 'static {
    /// A file of the folder.
    type File: DiskFile;

    /// Names of all files, in order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file; an error when there is one of the name.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file that is there, to read and to write.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name, in place of a file that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names certain.
    fn sync(&self) -> io::Result<()>;
}

impl<D: Disk> Disk for Arc<D> {
    type File = D::File;

    fn list(&self) -> io::Result<Vec<String>> {
        D::list(self)
    }

    fn create(&self, name: &str) -> io::Result<D::File> {
        D::create(self, name)
    }

    fn open(&self, name: &str) -> io::Result<D::File> {
        D::open(self, name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        D::rename(self, from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        D::remove(self, name)
    }

    fn sync(&self) -> io::Result<()> {
        D::sync(self)
    }
}

/// An open file. What was written is certain to be there after a crash only when `sync` has returned.
pub trait DiskFile: Send + Sync + 'static {
    /// Bytes of it.
    fn length(&self) -> io::Result<u64>;

    /// Reads from a position; fewer bytes than asked for only at the end.
    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes all of the bytes at a position.
    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts or extends it.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes content and length certain.
    fn sync(&self) -> io::Result<()>;
}

/// Reads up to so many bytes from a position.
pub(crate) fn read_up_to(file: &impl DiskFile, position: u64, most: usize) -> io::Result<Vec<u8>> {
    let left = file.length()?.saturating_sub(position);
    let mut bytes = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(most)];
    let read = file.read_at(position, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
