//! What was applied is what was agreed on, across snapshots and restarts.
#![allow(clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};

use openraft::storage::RaftSnapshotBuilder;

use super::*;
use crate::disk::{Crash, MemoryDisk};
use crate::raft::testing::Words;
use crate::raft::{LeaderId, Member, Proposal};

fn entry(index: u64, payload: EntryPayload<Proposal, u64, Member>) -> Entry {
    Entry { log_id: LogId::new(LeaderId { term: 1, node_id: 1 }, index), payload }
}

fn word(index: u64, text: &'static str) -> Entry {
    entry(index, EntryPayload::Normal(Proposal(Bytes::from_static(text.as_bytes()))))
}

fn members(index: u64) -> Entry {
    let members: BTreeMap<u64, Member> = [(1, Member { name: "a".into() }), (2, Member { name: "b".into() })].into();
    let membership = openraft::Membership::new(vec![BTreeSet::from([1])], members).expect("members");
    entry(index, EntryPayload::Membership(membership))
}

fn open(disk: &MemoryDisk, drive: Drive) -> Applier<MemoryDisk, Words> {
    Applier::open(disk.clone(), drive, Arc::default()).expect("a machine")
}

async fn apply(applier: &mut Applier<MemoryDisk, Words>, entries: Vec<Entry>) -> io::Result<()> {
    applier.apply(futures::stream::iter(entries.into_iter().map(|entry| Ok((entry, None))))).await
}

fn words(applier: &Applier<MemoryDisk, Words>) -> Vec<(u64, Bytes)> {
    applier.machine().0.read().clone()
}

#[tokio::test]
async fn a_snapshot_is_of_the_state_that_was_when_it_was_begun() {
    for drive in [Drive::Thread, Drive::Inline] {
        let disk = MemoryDisk::default();
        let mut applier = open(&disk, drive);
        assert!(applier.get_current_snapshot().await.expect("known").is_none());
        apply(&mut applier, vec![members(0), word(1, "one"), word(2, "two")]).await.expect("applied");
        let mut builder = applier.get_snapshot_builder().await;
        apply(&mut applier, vec![word(3, "three")]).await.expect("applied");
        let built = builder.build_snapshot().await.expect("built");
        assert_eq!(built.meta.last_log_id.map(|id| id.index), Some(2));
        let current = applier.get_current_snapshot().await.expect("known").expect("there is one");
        assert_eq!(current.meta, built.meta);

        let mut found = open(&disk.crash(Crash::Lost), drive);
        assert_eq!(words(&found), [(1, Bytes::from_static(b"one")), (2, Bytes::from_static(b"two"))]);
        let (applied, membership) = found.applied_state().await.expect("known");
        assert_eq!(applied.map(|id| id.index), Some(2));
        assert_eq!(membership, built.meta.last_membership);
        assert_eq!(membership.membership().get_node(&2).map(|m| m.name.as_str()), Some("b"));
    }
}

#[tokio::test]
async fn a_snapshot_of_another_member_takes_the_place_of_the_state() {
    let (here, there) = (MemoryDisk::default(), MemoryDisk::default());
    let (mut leader, mut follower) = (open(&there, Drive::Inline), open(&here, Drive::Inline));
    apply(&mut leader, vec![members(0), word(1, "one"), word(2, "two")]).await.expect("applied");
    apply(&mut follower, vec![word(1, "one")]).await.expect("applied");
    let built = leader.get_snapshot_builder().await.build_snapshot().await.expect("built");
    follower.install_snapshot(&built.meta, built.snapshot).await.expect("installed");
    assert_eq!(words(&follower), words(&leader));
    let found = open(&here.crash(Crash::Lost), Drive::Inline);
    assert_eq!(words(&found), words(&leader));
}

#[tokio::test]
async fn a_damaged_snapshot_changes_nothing() {
    let (here, there) = (MemoryDisk::default(), MemoryDisk::default());
    let (mut leader, mut follower) = (open(&there, Drive::Inline), open(&here, Drive::Inline));
    apply(&mut leader, vec![word(1, "one"), word(2, "two")]).await.expect("applied");
    apply(&mut follower, vec![word(1, "one")]).await.expect("applied");
    let before = words(&follower);
    let built = leader.get_snapshot_builder().await.build_snapshot().await.expect("built");
    let name = crate::disk::Disk::list(&there).expect("names").pop().expect("a snapshot");
    there.damage(&name, |bytes| *bytes.last_mut().expect("content") ^= 1);
    follower.install_snapshot(&built.meta, built.snapshot).await.expect_err("damaged");
    assert_eq!(words(&follower), before);
    assert!(
        Applier::open(there, Drive::Inline, Arc::<Words>::default()).is_err(),
        "it fetches anew, or is not started"
    );
}

#[tokio::test]
async fn what_cannot_be_applied_ends_it_there() {
    let mut applier = open(&MemoryDisk::default(), Drive::Inline);
    let error = apply(&mut applier, vec![word(1, "one"), word(2, "fence"), word(3, "three")]).await;
    assert_eq!(error.expect_err("fenced").to_string(), "told to");
    assert_eq!(words(&applier), [(1, Bytes::from_static(b"one"))]);
    assert_eq!(applier.applied_state().await.expect("known").0.map(|id| id.index), Some(1));
}

#[tokio::test]
async fn old_snapshots_go_when_a_newer_one_is_there() {
    let disk = MemoryDisk::default();
    let mut applier = open(&disk, Drive::Inline);
    for index in 1..5 {
        apply(&mut applier, vec![word(index, "word")]).await.expect("applied");
        applier.get_snapshot_builder().await.build_snapshot().await.expect("built");
        assert_eq!(snapshot::list(&disk).expect("names"), [index]);
    }
}
