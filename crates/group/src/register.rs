//! Small values that must survive a crash whole, in their old form or their new one: the vote, how far the log was forgotten.

use std::io;

use cachesql_types::limits::REGISTER_BYTES;

use crate::disk::{Disk, DiskFile, read_up_to};

/// Why a register cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The disk failed.
    #[error("{name}: {source}")]
    Disk {
        /// The register's name.
        name: String,
        /// What the disk said.
        source: io::Error,
    },
    /// What is there is not what was written.
    #[error("{name} is damaged: it is not what was written")]
    Rot {
        /// The register's name.
        name: String,
    },
    /// A value is longer than any may be.
    #[error("{name}: a value of {bytes} bytes is longer than {REGISTER_BYTES} (REGISTER_BYTES)")]
    TooLong {
        /// The register's name.
        name: String,
        /// The value's bytes.
        bytes: usize,
    },
}

/// Magic and version, then the value, then the checksum of both.
const MAGIC: [u8; 8] = *b"CSQLREG\x01";

/// Where the next value is written before it takes the place of the last.
fn draft(name: &str) -> String {
    format!("{name}.next")
}

/// The value of a register; `None` when it was never written.
pub fn read(disk: &impl Disk, name: &str) -> Result<Option<Vec<u8>>, RegisterError> {
    let failed = |source| RegisterError::Disk { name: name.to_owned(), source };
    if !disk.list().map_err(failed)?.iter().any(|file| file == name) {
        return Ok(None);
    }
    let file = disk.open(name).map_err(failed)?;
    let bytes = read_up_to(&file, 0, MAGIC.len() + REGISTER_BYTES + 5).map_err(failed)?;
    let value = bytes.split_last_chunk::<4>().filter(|(content, sum)| crc32fast::hash(content).to_le_bytes() == **sum);
    let value = value.and_then(|(content, _)| content.strip_prefix(&MAGIC));
    value.map(|value| Some(value.to_vec())).ok_or_else(|| RegisterError::Rot { name: name.to_owned() })
}

/// Gives a register a value. When this returns the value is certain to be there after a crash; until then, the old or the new.
pub fn write(disk: &impl Disk, name: &str, value: &[u8]) -> Result<(), RegisterError> {
    if value.len() > REGISTER_BYTES {
        return Err(RegisterError::TooLong { name: name.to_owned(), bytes: value.len() });
    }
    let content = [&MAGIC, value].concat();
    let bytes = [&*content, &crc32fast::hash(&content).to_le_bytes()].concat();
    replace(disk, name, &bytes).map_err(|source| RegisterError::Disk { name: name.to_owned(), source })
}

fn replace(disk: &impl Disk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let next = draft(name);
    // What an earlier crash may have left.
    if disk.list()?.contains(&next) {
        disk.remove(&next)?;
    }
    let file = disk.create(&next)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    disk.rename(&next, name)?;
    disk.sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Crash, MemoryDisk};

    #[test]
    fn a_crash_leaves_the_old_value_or_the_new_one() {
        let disk = MemoryDisk::default();
        assert_eq!(read(&disk, "vote").expect("readable"), None);
        write(&disk, "vote", b"old").expect("written");
        // However far the next write comes, one of the two is there.
        for writes in 0..10 {
            for crash in [Crash::Lost, Crash::Kept, Crash::Torn(3), Crash::Hole(0)] {
                let before = disk.crash(Crash::Lost);
                before.fail_after(writes);
                let written = write(&before, "vote", b"new");
                let found = read(&before.crash(crash), "vote").expect("readable");
                let wanted: &[&[u8]] = if written.is_ok() { &[b"new"] } else { &[b"old", b"new"] };
                assert!(wanted.contains(&found.as_deref().expect("a value")), "{writes} {crash:?} {found:?}");
                assert_eq!(written.is_ok(), writes >= 5, "create, write, sync, rename and sync of the folder");
            }
        }
    }

    #[test]
    fn what_was_left_by_a_crash_is_no_hindrance() {
        let disk = MemoryDisk::default();
        write(&disk, "vote", b"old").expect("written");
        let before = disk.crash(Crash::Lost);
        before.fail_after(3);
        assert!(write(&before, "vote", b"new").is_err());
        before.fail_after(100);
        before.sync().expect("synced");
        write(&before, "vote", b"newer").expect("written");
        assert_eq!(read(&before.crash(Crash::Lost), "vote").expect("readable").as_deref(), Some(&b"newer"[..]));
    }

    #[test]
    fn no_flipped_bit_and_no_cut_is_a_value() {
        let disk = MemoryDisk::default();
        write(&disk, "vote", b"value").expect("written");
        let bytes = MAGIC.len() + 5 + 4;
        for bit in 0..bytes * 8 {
            let damaged = disk.crash(Crash::Lost);
            damaged.damage("vote", |content| content[bit / 8] ^= 1 << (bit % 8));
            assert!(matches!(read(&damaged, "vote"), Err(RegisterError::Rot { .. })), "bit {bit}");
        }
        for length in 0..bytes {
            let damaged = disk.crash(Crash::Lost);
            damaged.damage("vote", |content| content.truncate(length));
            assert!(matches!(read(&damaged, "vote"), Err(RegisterError::Rot { .. })), "{length} bytes");
        }
    }

    #[test]
    fn values_are_bounded() {
        let disk = MemoryDisk::default();
        write(&disk, "vote", &vec![7; REGISTER_BYTES]).expect("as long as it may be");
        assert_eq!(read(&disk, "vote").expect("readable").map(|v| v.len()), Some(REGISTER_BYTES));
        let long = write(&disk, "vote", &vec![7; REGISTER_BYTES + 1]).expect_err("too long");
        assert!(matches!(long, RegisterError::TooLong { bytes, .. } if bytes == REGISTER_BYTES + 1));
    }
}
