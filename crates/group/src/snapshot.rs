//! Snapshots on disk: a note of what they are of, and content of any length, under checksums and in bounded memory.
//!
//! A snapshot is written under another name and gets its own when all of it is certain to be there. So what has a snapshot's name
//! is whole; and what has rotted since is noticed by whoever reads it, block by block, before a byte of it is given out.

use std::io::{self, Read, Write};

use cachesql_types::limits::{SNAPSHOT_BLOCK_BYTES, SNAPSHOT_NOTE_BYTES};

use crate::disk::{Disk, DiskFile};

/// Magic and version.
const MAGIC: [u8; 8] = *b"CSQLSNP\x01";
/// Before each block: its length, and its checksum with that of all before it.
const BLOCK_HEAD: usize = 8;
/// What the last block's length is or-ed with: what ends without it was cut.
const LAST: u32 = 1 << 31;
const SUFFIX: &str = ".snapshot";
const DRAFT_SUFFIX: &str = ".snapshot.next";

/// Why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk failed.
    #[error("snapshot: {file}: {source}")]
    Disk {
        /// The file's name.
        file: String,
        /// What the disk said.
        source: io::Error,
    },
    /// Bytes are not those that were written.
    #[error("snapshot: {file} is damaged: {detail}")]
    Rot {
        /// The file's name.
        file: String,
        /// What is wrong.
        detail: String,
    },
}

fn name_of(index: u64) -> String {
    format!("{index:020}{SUFFIX}")
}

fn index_of(name: &str) -> Option<u64> {
    let index = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (name_of(index) == name).then_some(index)
}

/// Log indexes of all snapshots in a folder, in order. What was left unfinished by a crash is none.
pub fn list(disk: &impl Disk) -> io::Result<Vec<u64>> {
    Ok(disk.list()?.iter().filter_map(|name| index_of(name)).collect())
}

/// Removes the snapshots before an index.
pub fn forget_before(disk: &impl Disk, index: u64) -> io::Result<()> {
    remove(disk, |name| index_of(name).is_some_and(|of| of < index))
}

/// Removes what a crash left unfinished; nobody may be writing.
pub fn clean(disk: &impl Disk) -> io::Result<()> {
    remove(disk, |name| name.ends_with(DRAFT_SUFFIX))
}

fn remove(disk: &impl Disk, goes: impl Fn(&str) -> bool) -> io::Result<()> {
    let names: Vec<String> = disk.list()?.into_iter().filter(|name| goes(name)).collect();
    for name in &names {
        disk.remove(name)?;
    }
    if names.is_empty() { Ok(()) } else { disk.sync() }
}

/// Writes one snapshot. Dropped before `finish` it leaves nothing that counts.
pub struct SnapshotWriter<D: Disk> {
    disk: D,
    index: u64,
    draft: String,
    file: D::File,
    position: u64,
    /// Of all blocks so far.
    sum: u32,
    block: Vec<u8>,
}

impl<D: Disk> SnapshotWriter<D> {
    /// Begins the snapshot as of a log index, with a note that is read before its content. Of several writers of one folder
    /// each has a number.
    pub fn begin(disk: D, index: u64, writer: u64, note: &[u8]) -> io::Result<SnapshotWriter<D>> {
        if note.len() > SNAPSHOT_NOTE_BYTES {
            return Err(io::Error::other(format!("a note of {} bytes is too long for a snapshot", note.len())));
        }
        let draft = format!("{index:020}.{writer}{DRAFT_SUFFIX}");
        if disk.list()?.contains(&draft) {
            disk.remove(&draft)?;
        }
        let file = disk.create(&draft)?;
        file.write_at(0, &MAGIC)?;
        let (position, block) = (MAGIC.len() as u64, Vec::new());
        let mut writer = SnapshotWriter { disk, index, draft, file, position, sum: crc32fast::hash(&MAGIC), block };
        // The note is a block of its own.
        writer.block.extend_from_slice(note);
        writer.put_block(0)?;
        Ok(writer)
    }

    fn put_block(&mut self, flag: u32) -> io::Result<()> {
        let length = u32::try_from(self.block.len()).map_err(io::Error::other)? | flag;
        let mut hasher = crc32fast::Hasher::new_with_initial(self.sum);
        hasher.update(&length.to_le_bytes());
        hasher.update(&self.block);
        self.sum = hasher.finalize();
        let head = [length.to_le_bytes(), self.sum.to_le_bytes()].concat();
        self.file.write_at(self.position, &[&head, &*self.block].concat())?;
        self.position += (BLOCK_HEAD + self.block.len()) as u64;
        self.block.clear();
        Ok(())
    }

    /// Makes it certain, and gives it its name. One of the same index is replaced.
    pub fn finish(mut self) -> io::Result<()> {
        self.put_block(LAST)?;
        self.file.sync()?;
        self.disk.rename(&self.draft, &name_of(self.index))?;
        self.disk.sync()
    }
}

impl<D: Disk> Write for SnapshotWriter<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == SNAPSHOT_BLOCK_BYTES {
            self.put_block(0)?;
        }
        let taken = bytes.len().min(SNAPSHOT_BLOCK_BYTES - self.block.len());
        self.block.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies a snapshot from one folder into another, checked.
pub fn copy<D: Disk + Clone>(from: &D, to: &D, index: u64, writer: u64) -> io::Result<()> {
    let mut reader = SnapshotReader::open(from, index).map_err(io::Error::other)?;
    let mut writer = SnapshotWriter::begin(to.clone(), index, writer, reader.note())?;
    io::copy(&mut reader, &mut writer)?;
    writer.finish()
}

/// Reads one snapshot from its beginning.
pub struct SnapshotReader<D: Disk> {
    name: String,
    file: D::File,
    position: u64,
    sum: u32,
    note: Vec<u8>,
    block: Vec<u8>,
    /// Bytes of the block that were given out.
    given: usize,
    ended: bool,
}

impl<D: Disk> SnapshotReader<D> {
    /// Opens the snapshot of a log index.
    pub fn open(disk: &D, index: u64) -> Result<SnapshotReader<D>, SnapshotError> {
        let name = name_of(index);
        let failed = |source| SnapshotError::Disk { file: name.clone(), source };
        let file = disk.open(&name).map_err(failed)?;
        let mut magic = [0; MAGIC.len()];
        let read = file.read_at(0, &mut magic).map_err(failed)?;
        if read < magic.len() || magic != MAGIC {
            return Err(SnapshotError::Rot { file: name, detail: "it does not begin as a snapshot does".to_owned() });
        }
        let (position, sum) = (MAGIC.len() as u64, crc32fast::hash(&MAGIC));
        let (note, block) = (Vec::new(), Vec::new());
        let mut reader = SnapshotReader { name, file, position, sum, note, block, given: 0, ended: false };
        reader.next_block()?;
        reader.note = std::mem::take(&mut reader.block);
        Ok(reader)
    }

    /// What was noted when it was begun.
    pub fn note(&self) -> &[u8] {
        &self.note
    }

    /// Reads the rest and gives nothing out: whether it is intact.
    pub fn verify(mut self) -> Result<(), SnapshotError> {
        while !self.ended {
            self.next_block()?;
        }
        Ok(())
    }

    fn rot(&self, detail: impl Into<String>) -> SnapshotError {
        SnapshotError::Rot { file: self.name.clone(), detail: detail.into() }
    }

    fn read_exactly(&self, position: u64, into: &mut [u8]) -> Result<(), SnapshotError> {
        let failed = |source| SnapshotError::Disk { file: self.name.clone(), source };
        let read = self.file.read_at(position, into).map_err(failed)?;
        if read == into.len() { Ok(()) } else { Err(self.rot("it ends too early")) }
    }

    fn next_block(&mut self) -> Result<(), SnapshotError> {
        let mut head = [0; BLOCK_HEAD];
        self.read_exactly(self.position, &mut head)?;
        let [l0, l1, l2, l3, s0, s1, s2, s3] = head;
        let (length, sum) = (u32::from_le_bytes([l0, l1, l2, l3]), u32::from_le_bytes([s0, s1, s2, s3]));
        let bytes = usize::try_from(length & !LAST).unwrap_or(usize::MAX);
        // A length that was damaged does not make much be allocated.
        if bytes > SNAPSHOT_BLOCK_BYTES.max(SNAPSHOT_NOTE_BYTES) {
            return Err(self.rot(format!("a block at byte {} is longer than any is", self.position)));
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(bytes, 0);
        self.read_exactly(self.position + BLOCK_HEAD as u64, &mut block)?;
        let mut hasher = crc32fast::Hasher::new_with_initial(self.sum);
        hasher.update(&length.to_le_bytes());
        hasher.update(&block);
        if hasher.finalize() != sum {
            return Err(self.rot(format!("the block at byte {} is not what was written", self.position)));
        }
        self.position += (BLOCK_HEAD + bytes) as u64;
        (self.sum, self.block, self.given, self.ended) = (sum, block, 0, length & LAST != 0);
        Ok(())
    }
}

impl<D: Disk> Read for SnapshotReader<D> {
    /// A [`SnapshotError`] is the error's inner one.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.block.len() && !self.ended {
            self.next_block().map_err(io::Error::other)?;
        }
        let rest = self.block.get(self.given..).unwrap_or_default();
        let taken = rest.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..taken), rest.get(..taken)) {
            to.copy_from_slice(from);
        }
        self.given += taken;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;
    use crate::disk::{Crash, Folder, MemoryDisk};
    use proptest::prelude::*;

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    fn write<D: Disk>(disk: D, index: u64, note: &[u8], content: &[u8]) -> io::Result<()> {
        let mut writer = SnapshotWriter::begin(disk, index, 0, note)?;
        writer.write_all(content)?;
        writer.finish()
    }

    fn read<D: Disk>(disk: &D, index: u64) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let mut reader = SnapshotReader::open(disk, index).map_err(io::Error::other)?;
        let mut content = Vec::new();
        reader.read_to_end(&mut content)?;
        Ok((reader.note().to_vec(), content))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn it_comes_back_as_it_was(blocks in 0_usize..3, more in -1_isize..2, pieces in 1_usize..5) {
            let content = content((blocks * SNAPSHOT_BLOCK_BYTES).saturating_add_signed(more * 3));
            let disk = MemoryDisk::default();
            let mut writer = SnapshotWriter::begin(disk.clone(), 9, 0, b"note").expect("begun");
            content.chunks(content.len() / pieces + 1).for_each(|piece| writer.write_all(piece).expect("written"));
            writer.finish().expect("finished");
            prop_assert!(read(&disk.crash(Crash::Lost), 9).expect("intact") == (b"note".to_vec(), content));
        }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_goes_unnoticed() {
        let disk = MemoryDisk::default();
        write(disk.clone(), 9, b"note", &content(100)).expect("written");
        let name = name_of(9);
        let bytes = disk.open(&name).expect("there").length().expect("known");
        assert_eq!(bytes, (8 + 8 + 4 + 8 + 100) as u64);
        for bit in 0..bytes * 8 {
            let damaged = disk.crash(Crash::Lost);
            damaged.damage(&name, |bytes| bytes[(bit / 8) as usize] ^= 1 << (bit % 8));
            assert!(read(&damaged, 9).is_err(), "bit {bit}");
            let verified = SnapshotReader::open(&damaged, 9).and_then(SnapshotReader::verify);
            assert!(matches!(verified, Err(SnapshotError::Rot { .. })), "bit {bit}");
        }
        for length in 0..bytes {
            let damaged = disk.crash(Crash::Lost);
            damaged.damage(&name, |bytes| bytes.truncate(length as usize));
            assert!(read(&damaged, 9).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn blocks_do_not_change_their_places() {
        let disk = MemoryDisk::default();
        let block = content(SNAPSHOT_BLOCK_BYTES);
        write(disk.clone(), 9, b"", &[&*block, &block, &block].concat()).expect("written");
        let (first, size) = (8 + BLOCK_HEAD, BLOCK_HEAD + SNAPSHOT_BLOCK_BYTES);
        disk.damage(&name_of(9), |bytes| {
            let (left, right) = bytes.split_at_mut(first + size);
            left[first..].swap_with_slice(&mut right[..size]);
        });
        assert!(read(&disk, 9).is_err());
    }

    #[test]
    fn a_crash_leaves_a_whole_snapshot_or_none() {
        for writes in 0..12 {
            for crash in [Crash::Lost, Crash::Kept, Crash::Torn(20), Crash::Hole(0)] {
                let disk = MemoryDisk::default();
                write(disk.clone(), 5, b"old", &content(10)).expect("written");
                disk.fail_after(writes);
                let written = write(disk.clone(), 9, b"new", &content(1_000));
                let found = disk.crash(crash);
                let snapshots = list(&found).expect("names");
                assert!(snapshots.contains(&5), "the old one stays until it is forgotten");
                assert!(written.is_err() || snapshots.contains(&9), "{writes} {crash:?}");
                for index in snapshots {
                    read(&found, index).expect("whole");
                }
                clean(&found).expect("cleaned");
                forget_before(&found, 9).expect("forgotten");
                let left = found.list().expect("names");
                assert!(left.iter().all(|name| *name == name_of(9)), "{left:?}");
            }
        }
    }

    #[test]
    fn it_is_the_same_on_a_file_system() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = std::sync::Arc::new(Folder::open(folder.path()).expect("a folder"));
        write(disk.clone(), 7, b"a", &content(5_000)).expect("written");
        write(disk.clone(), 7, b"b", &content(3_000_000)).expect("written over");
        assert_eq!(list(&disk).expect("names"), [7]);
        assert!(read(&disk, 7).expect("intact") == (b"b".to_vec(), content(3_000_000)));
        assert!(matches!(SnapshotReader::open(&disk, 8).map(|_| ()), Err(SnapshotError::Disk { .. })));
    }
}
