//! The log does as openraft's own suite asks of one, and keeps what it answered for.
#![allow(clippy::expect_used)]

use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::TypeConfigExt;
use openraft::{EntryPayload, StorageError};

use super::*;
use crate::disk::{Crash, Folder, MemoryDisk};
use crate::raft::applier::Applier;
use crate::raft::testing::Words;
use crate::raft::{LeaderId, Proposal};

struct OnDisk(Drive);

type Built = (tempfile::TempDir, LogStore<Arc<Folder>>, Applier<Arc<Folder>, Words>);

impl StoreBuilder<Types, LogStore<Arc<Folder>>, Applier<Arc<Folder>, Words>, tempfile::TempDir> for OnDisk {
    async fn build(&self) -> Result<Built, StorageError<Types>> {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Arc::new(Folder::open(folder.path()).expect("a folder"));
        let (store, _) = LogStore::open(disk.clone(), self.0).expect("a log");
        let applier = Applier::open(disk, self.0, Arc::default()).expect("a machine");
        Ok((folder, store, applier))
    }
}

#[tokio::test]
async fn openraft_finds_nothing_wrong_with_it() {
    Suite::test_all(OnDisk(Drive::Thread)).await.expect("as openraft wants it");
}

#[tokio::test]
async fn openraft_finds_nothing_wrong_with_it_where_nothing_waits() {
    Suite::test_all(OnDisk(Drive::Inline)).await.expect("as openraft wants it");
}

fn entry(term: u64, index: u64, length: usize) -> Entry {
    let content = Bytes::from(vec![(index % 251) as u8; length]);
    let log_id = LogId::new(LeaderId { term, node_id: 1 }, index);
    Entry { log_id, payload: EntryPayload::Normal(Proposal(content)) }
}

fn open(disk: &MemoryDisk, drive: Drive) -> LogStore<MemoryDisk> {
    LogStore::open(disk.clone(), drive).expect("a log").0
}

/// Appends, and waits until that was answered for.
async fn append(store: &mut LogStore<MemoryDisk>, entries: Vec<Entry>) -> io::Result<()> {
    let (sender, synced) = Types::oneshot();
    store.append(entries, IOFlushed::signal(sender)).await?;
    synced.await.expect("an answer")
}

async fn all(store: &mut LogStore<MemoryDisk>) -> Vec<Entry> {
    store.try_get_log_entries(..).await.expect("readable")
}

#[tokio::test]
async fn what_was_answered_for_survives_a_crash() {
    for drive in [Drive::Thread, Drive::Inline] {
        let disk = MemoryDisk::default();
        let mut store = open(&disk, drive);
        store.save_vote(&Vote::new(3, 7)).await.expect("kept");
        let first: Vec<Entry> = (0..20).map(|index| entry(3, index, 300)).collect();
        append(&mut store, first.clone()).await.expect("kept");
        assert_eq!(all(&mut store).await, first);
        store.truncate_after(Some(first[14].log_id)).await.expect("cut");
        let second: Vec<Entry> = (15..18).map(|index| entry(4, index, 10)).collect();
        append(&mut store, second.clone()).await.expect("kept");
        store.purge(first[4].log_id).await.expect("forgotten");
        store.save_vote(&Vote::new_committed(4, 1)).await.expect("kept");

        let mut found = open(&disk.crash(Crash::Lost), drive);
        assert_eq!(found.read_vote().await.expect("readable"), Some(Vote::new_committed(4, 1)));
        let wanted: Vec<Entry> = first[5..15].iter().chain(&second).cloned().collect();
        assert_eq!(found.try_get_log_entries(5..).await.expect("readable"), wanted);
        let state = found.get_log_state().await.expect("known");
        assert_eq!(state.last_purged_log_id, Some(first[4].log_id));
        assert_eq!(state.last_log_id, Some(second[2].log_id));
    }
}

#[tokio::test]
async fn a_log_that_a_snapshot_replaced_goes_on_behind_it() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, Drive::Thread);
    append(&mut store, (0..5).map(|index| entry(1, index, 10)).collect()).await.expect("kept");
    let far = LogId::new(LeaderId { term: 2, node_id: 1 }, 100);
    // A crash between the note and the removal.
    let noted = disk.crash(Crash::Lost);
    register::write(&noted, PURGED, &encode_log_id(&far)).expect("written");
    store.purge(far).await.expect("forgotten");
    let mut found = open(&disk.crash(Crash::Lost), Drive::Thread);
    let mut cleaned = open(&noted, Drive::Thread);
    for store in [&mut store, &mut found, &mut cleaned] {
        let state = store.get_log_state().await.expect("known");
        assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(far), Some(far)));
        append(store, vec![entry(2, 101, 10)]).await.expect("kept");
        assert_eq!(all(store).await, [entry(2, 101, 10)]);
    }
}

/// However far the disk comes before it fails, what was answered for is there, and nothing is answered for after.
#[tokio::test]
async fn nothing_is_answered_for_after_a_failure() {
    let mut failures = 0;
    for writes in 0..40 {
        let disk = MemoryDisk::default();
        let mut store = open(&disk, Drive::Inline);
        disk.fail_after(writes);
        let (mut entries, mut vote) = (0, None);
        for term in 1..10 {
            let voted = store.save_vote(&Vote::new(term, 1)).await;
            if voted.is_ok() {
                vote = Some(Vote::new(term, 1));
            }
            let appended = append(&mut store, vec![entry(term, entries, 50)]).await;
            entries += u64::from(appended.is_ok());
            if voted.is_err() || appended.is_err() {
                failures += 1;
                disk.fail_after(1_000);
                if voted.is_err() {
                    assert!(store.save_vote(&Vote::new(20, 1)).await.is_err(), "{writes}");
                }
                if appended.is_err() {
                    assert!(append(&mut store, vec![entry(term, entries, 50)]).await.is_err(), "{writes}");
                }
                break;
            }
        }
        for crash in [Crash::Lost, Crash::Kept] {
            let mut found = open(&disk.crash(crash), Drive::Inline);
            assert!(all(&mut found).await.len() as u64 >= entries, "{writes} {crash:?}");
            let found = found.read_vote().await.expect("readable");
            assert!(found >= vote, "{writes} {crash:?}: {found:?}, {vote:?}");
        }
    }
    assert!(failures > 20, "{failures}");
}

#[tokio::test]
async fn entries_that_lie_before_what_is_there_are_missed() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, Drive::Inline);
    append(&mut store, (7..9).map(|index| entry(1, index, 10)).collect()).await.expect("kept");
    let refused = LogStore::open(disk.crash(Crash::Lost), Drive::Inline).err().expect("refused");
    assert_eq!(refused.to_string(), "log: it begins with entry 7, and 0 is needed");
}

#[tokio::test]
async fn what_is_read_at_a_time_is_bounded() {
    let disk = MemoryDisk::default();
    let mut store = open(&disk, Drive::Thread);
    let size = LOG_READ_BYTES / 3;
    append(&mut store, (0..8).map(|index| entry(1, index, size)).collect()).await.expect("kept");
    let read = store.limited_get_log_entries(0, 8).await.expect("readable");
    assert!((1..=3).contains(&read.len()), "{}", read.len());
    assert_eq!(read[0].log_id.index, 0);
    assert_eq!(store.try_get_log_entries(2..=4).await.expect("readable").len(), 3);
}
