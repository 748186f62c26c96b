//! The log keeps what it synced, whatever the disk does, and never gives out what was not written.
#![allow(clippy::expect_used)]

use proptest::prelude::*;

use super::*;
use crate::disk::{Crash, DiskFile, Folder, MemoryDisk};

const SEGMENT: u64 = 2_000;

fn content(index: u64, length: usize) -> Bytes {
    (0..length).map(|at| (index as usize * 31 + at * 7) as u8).collect::<Vec<u8>>().into()
}

fn open<D: Disk>(disk: D) -> (LogWriter<D>, Option<Cut>) {
    LogWriter::open_with(disk, SEGMENT).expect("a log")
}

/// All records, by their indexes.
fn all<D: Disk>(log: &LogWriter<D>) -> Vec<(u64, Bytes)> {
    let (first, next) = log.bounds();
    log.reader().read(first, next, usize::MAX).expect("readable")
}

/// A log of some records over several files, all synced.
fn filled(records: u64) -> MemoryDisk {
    let disk = MemoryDisk::default();
    let (mut log, _) = open(disk.clone());
    for index in 5..5 + records {
        log.append(index, &[content(index, 40 + index as usize * 13 % 300)]).expect("appended");
    }
    assert_eq!(log.sync().expect("synced"), 5 + records);
    disk
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<usize>),
    Sync,
    /// Cuts so many from the end.
    Cut(u64),
    /// Forgets so many from the front.
    Forget(u64),
    Crash(Crash),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let crash = prop_oneof![
        Just(Crash::Lost),
        Just(Crash::Kept),
        (0_usize..3_000).prop_map(Crash::Torn),
        (0_usize..6).prop_map(Crash::Hole),
    ];
    let step = prop_oneof![
        6 => prop::collection::vec(0_usize..700, 0..6).prop_map(Step::Append),
        3 => Just(Step::Sync),
        1 => (0_u64..8).prop_map(Step::Cut),
        1 => (0_u64..12).prop_map(Step::Forget),
        2 => crash.prop_map(Step::Crash),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_was_synced_is_there_after_any_crash(steps in steps()) {
        let mut disk = MemoryDisk::default();
        let (mut log, _) = open(disk.clone());
        let mut model: Vec<(u64, Bytes)> = Vec::new();
        // The records before it must not be lost.
        let mut certain = 0;
        let mut next = 3;
        for step in steps {
            match step {
                Step::Append(lengths) => {
                    let records: Vec<Bytes> = (next..).zip(&lengths).map(|(i, length)| content(i, *length)).collect();
                    log.append(next, &records).expect("appended");
                    model.extend((next..).zip(records));
                    next += lengths.len() as u64;
                }
                Step::Sync => {
                    log.sync().expect("synced");
                    certain = next;
                }
                Step::Cut(records) => {
                    let index = next.saturating_sub(records).max(model.first().map_or(next, |(index, _)| *index));
                    log.cut_from(index).expect("cut");
                    model.retain(|(i, _)| *i < index);
                    (next, certain) = (index, certain.min(index));
                }
                Step::Forget(records) => {
                    let index = model.first().map_or(next, |(index, _)| *index).saturating_add(records).min(next);
                    log.forget_before(index).expect("forgotten");
                    // Whole files go; what stays is the model's.
                    let first = if log.bounds().0 == log.bounds().1 { next } else { log.bounds().0 };
                    prop_assert!(first <= index);
                    model.retain(|(i, _)| *i >= first);
                }
                Step::Crash(crash) => {
                    disk = disk.crash(crash);
                    log = open(disk.clone()).0;
                    let found = all(&log);
                    prop_assert!(found.len() <= model.len());
                    prop_assert_eq!(&found[..], &model[..found.len()], "a part of what was written, from the front");
                    let reached = found.last().map_or_else(|| model.first().map_or(next, |(i, _)| *i), |(i, _)| i + 1);
                    prop_assert!(reached >= certain.min(next), "{reached} of {certain}");
                    if crash == Crash::Kept {
                        prop_assert_eq!(found.len(), model.len());
                    }
                    model = found;
                    (next, certain) = (reached, reached);
                }
            }
            prop_assert_eq!(&all(&log), &model);
        }
    }
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let disk = filled(24);
    let files = disk.list().expect("names");
    assert!(files.len() >= 2, "over several files");
    for name in &files {
        let length = disk.open(name).expect("there").length().expect("known");
        for bit in 0..length * 8 {
            let damaged = disk.crash(Crash::Lost);
            damaged.damage(name, |bytes| bytes[(bit / 8) as usize] ^= 1 << (bit % 8));
            let found = LogWriter::open_with(damaged, SEGMENT).map(|(log, cut)| (log.bounds(), cut));
            assert!(matches!(found, Err(LogError::Rot { .. })), "{name}, bit {bit}: {found:?}");
        }
    }
}

#[test]
fn rot_that_comes_while_it_runs_is_noticed_by_who_reads() {
    let disk = filled(24);
    let (log, _) = open(disk.clone());
    let name = disk.list().expect("names").remove(0);
    disk.damage(&name, |bytes| bytes[100] ^= 4);
    assert!(matches!(log.reader().read(5, 29, usize::MAX), Err(LogError::Rot { file, .. }) if file == name));
}

#[test]
fn a_synced_record_is_never_taken_for_one_that_did_not_arrive() {
    // A hole in the middle, where later records tell that it was synced.
    let disk = MemoryDisk::default();
    let (mut log, _) = LogWriter::open_with(disk.clone(), 1 << 20).expect("a log");
    for index in 0..20 {
        log.append(index, &[content(index, 600)]).expect("appended");
        log.sync().expect("synced");
    }
    let name = disk.list().expect("names").remove(0);
    let damaged = disk.crash(Crash::Lost);
    damaged.damage(&name, |bytes| bytes[1_024..1_536].fill(0));
    assert!(matches!(LogWriter::open_with(damaged, 1 << 20), Err(LogError::Rot { .. })));
}

#[test]
fn a_file_that_is_missing_is_noticed() {
    let disk = filled(40);
    let files = disk.list().expect("names");
    assert!(files.len() >= 3);
    disk.remove(&files[1]).expect("removed");
    assert!(matches!(LogWriter::open_with(disk, SEGMENT), Err(LogError::Gap { file, .. }) if file == files[2]));
}

#[test]
fn after_a_failure_nothing_is_written_and_nothing_synced_is_lost() {
    let mut failures = 0;
    for writes in 0..60 {
        let disk = filled(10);
        let (mut log, _) = open(disk.clone());
        disk.fail_after(writes);
        let mut certain = log.synced();
        for index in 15..45 {
            let done = log.append(index, &[content(index, 150)]).and_then(|()| log.sync());
            match done {
                Ok(synced) => certain = synced,
                Err(LogError::Disk { .. }) => {
                    failures += 1;
                    // It would succeed now; that it did not before is what counts.
                    disk.fail_after(1_000);
                    assert!(matches!(log.sync(), Err(LogError::Fenced { .. })));
                    assert!(matches!(log.append(index, &[Bytes::new()]), Err(LogError::Fenced { .. })));
                    assert!(matches!(log.cut_from(0), Err(LogError::Fenced { .. })));
                    assert!(matches!(log.forget_before(100), Err(LogError::Fenced { .. })));
                    break;
                }
                Err(other) => panic!("{other}"),
            }
        }
        for crash in [Crash::Lost, Crash::Kept, Crash::Torn(60), Crash::Hole(0)] {
            let (found, _) = open(disk.crash(crash));
            assert!(found.bounds().1 >= certain, "{writes} {crash:?}: {:?} of {certain}", found.bounds());
        }
    }
    assert!(failures > 50, "{failures}");
}

#[test]
fn what_is_cut_off_is_said() {
    let disk = filled(3);
    let (mut log, cut) = open(disk.clone());
    assert_eq!(cut, None);
    log.append(8, &[content(8, 100)]).expect("appended");
    let (found, cut) = open(disk.crash(Crash::Torn(40)));
    let cut = cut.expect("a record is unfinished");
    assert_eq!((found.bounds(), cut.bytes), ((5, 8), 40));
    // What was cut can be written again.
    drop(found);
    let disk = disk.crash(Crash::Torn(40));
    let (mut log, _) = open(disk.clone());
    log.append(8, &[content(8, 7)]).expect("appended");
    log.sync().expect("synced");
    assert_eq!(all(&open(disk.crash(Crash::Lost)).0).last(), Some(&(8, content(8, 7))));
}

#[test]
fn records_follow_one_another() {
    let (mut log, _) = open(filled(3));
    let wrong = log.append(9, &[Bytes::new()]).expect_err("8 is next");
    assert!(matches!(wrong, LogError::NotNext { expected: 8, given: 9 }));
    log.append(8, &[]).expect("nothing is always next");
    log.forget_before(1_000).expect("forgotten");
    assert_eq!(log.bounds(), (0, 0));
    log.append(1_000, &[content(1_000, 5)]).expect("any may follow when there are none");
    assert_eq!(all(&log), [(1_000, content(1_000, 5))]);
}

#[test]
fn reads_are_bounded_and_go_on() {
    let (log, _) = open(filled(24));
    let reader = log.reader();
    let (mut at, mut found) = (5, Vec::new());
    while at < 29 {
        let part = reader.read(at, 29, 500).expect("readable");
        let bytes: usize = part.iter().map(|(_, record)| record.len()).sum();
        assert!(part.len() == 1 || bytes <= 500, "{bytes} bytes");
        at += part.len() as u64;
        found.extend(part);
    }
    assert_eq!(found, all(&log));
    assert_eq!(reader.read(100, 200, 500).expect("readable"), []);
    assert_eq!(reader.read(0, 3, 500).expect("readable"), []);
    assert_eq!(reader.read(0, 7, usize::MAX).expect("readable"), all(&log)[..2]);
}

#[test]
fn it_is_the_same_on_a_file_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data").join("log");
    let written = {
        let (mut log, _) = open(Folder::open(&path).expect("a folder"));
        for index in 0..30 {
            log.append(index, &[content(index, 200), content(index, 0)][..1]).expect("appended");
        }
        log.sync().expect("synced");
        log.cut_from(25).expect("cut");
        log.forget_before(10).expect("forgotten");
        assert!(log.bounds().0 > 0);
        all(&log)
    };
    let last = std::fs::read_dir(&path).expect("names").map(|e| e.expect("a name").path()).max().expect("a file");
    let file = std::fs::OpenOptions::new().append(true).open(&last).expect("there");
    std::io::Write::write_all(&mut &file, &[1, 2, 3]).expect("written");
    let (log, cut) = open(Folder::open(&path).expect("a folder"));
    assert_eq!(all(&log), written);
    assert_eq!(cut.map(|cut| cut.bytes), Some(3));
    assert_eq!(std::fs::metadata(&last).map(|m| m.len()).ok(), log.shared.last().map(|s| s.end()));
}
