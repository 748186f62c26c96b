//! Applies what was agreed on to the machine, and keeps its snapshots.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use openraft::entry::RaftPayload;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{EntryPayload, StoredMembership};

use super::codec::{decode_meta, encode_meta};
use super::scribe::Drive;
use super::{Entry, LogId, Membership, Snapshot, SnapshotMeta, Types};
use crate::disk::Disk;
use crate::machine::{Capture, Machine};
use crate::snapshot::{self, SnapshotError, SnapshotReader, SnapshotWriter};

/// Entries that are applied without letting others have a turn.
const APPLIED_TOGETHER: usize = 64;

/// A snapshot on disk.
#[derive(Clone, Debug)]
pub struct StoredSnapshot<D> {
    /// The folder that it is in.
    pub disk: D,
    /// The log index that it is as of.
    pub index: u64,
}

/// The machine of one member of one group, and where its snapshots are.
pub struct Applier<D: Disk + Clone, M: Machine> {
    machine: Arc<M>,
    disk: D,
    drive: Drive,
    applied: Option<LogId>,
    membership: Membership,
    /// The last snapshot.
    snapshot: Option<SnapshotMeta>,
    /// Tells the files of writers apart.
    writers: Arc<AtomicU64>,
}

impl<D: Disk + Clone, M: Machine> Applier<D, M> {
    /// The machine, as the last snapshot in a folder has it. What a crash left unfinished there is removed.
    pub fn open(disk: D, drive: Drive, machine: Arc<M>) -> io::Result<Applier<D, M>> {
        let newest = snapshot::list(&disk)?.last().copied();
        snapshot::clean(&disk)?;
        snapshot::forget_before(&disk, newest.unwrap_or(0))?;
        let (applied, membership, writers) = (None, Membership::default(), Arc::default());
        let mut applier = Applier { machine, disk, drive, applied, membership, snapshot: None, writers };
        if let Some(index) = newest {
            let meta = restore(&applier.disk, &*applier.machine, index)?;
            applier.take(&meta);
        }
        Ok(applier)
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<M> {
        &self.machine
    }

    /// The numbers of those who write snapshots into its folder.
    pub(super) fn writers(&self) -> &Arc<AtomicU64> {
        &self.writers
    }

    fn take(&mut self, meta: &SnapshotMeta) {
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.snapshot = Some(meta.clone());
    }

    /// Applies entries in order; the outcomes of those before the first that cannot be applied, and why it cannot.
    async fn apply_all(&self, entries: Vec<Entry>) -> (Vec<Bytes>, io::Result<()>) {
        let machine = self.machine.clone();
        let apply = move || {
            let mut outcomes = Vec::with_capacity(entries.len());
            for entry in &entries {
                match &entry.payload {
                    EntryPayload::Normal(proposal) => match machine.apply(entry.log_id.index, &proposal.0) {
                        Ok(outcome) => outcomes.push(outcome),
                        Err(fence) => return (outcomes, Err(io::Error::other(fence))),
                    },
                    EntryPayload::Blank | EntryPayload::Membership(_) => outcomes.push(Bytes::new()),
                }
            }
            (outcomes, Ok(()))
        };
        run(self.drive, apply).await.unwrap_or_else(|error| (Vec::new(), Err(error)))
    }
}

/// Reads a snapshot into the machine.
fn restore(disk: &impl Disk, machine: &impl Machine, index: u64) -> io::Result<SnapshotMeta> {
    // All of it is looked at before any of it is used.
    SnapshotReader::open(disk, index).and_then(SnapshotReader::verify).map_err(io::Error::other)?;
    let mut reader = SnapshotReader::open(disk, index).map_err(io::Error::other)?;
    let meta = meta_of(&reader, index).map_err(io::Error::other)?;
    machine.restore(&mut reader).map_err(io::Error::other)?;
    Ok(meta)
}

/// What a snapshot notes of itself.
pub(super) fn meta_of<D: Disk>(reader: &SnapshotReader<D>, index: u64) -> Result<SnapshotMeta, SnapshotError> {
    let rot = |detail: String| SnapshotError::Rot { file: format!("snapshot {index}"), detail };
    let meta = decode_meta(reader.note()).map_err(|error| rot(format!("its note: {error}")))?;
    let of = meta.last_log_id.map_or(0, |id| id.index);
    if of == index { Ok(meta) } else { Err(rot(format!("it notes that it is as of {of}"))) }
}

/// Runs what may take long where it holds up nobody.
async fn run<T: Send + 'static>(drive: Drive, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    match drive {
        Drive::Inline => Ok(work()),
        Drive::Thread => tokio::task::spawn_blocking(work).await.map_err(io::Error::other),
    }
}

impl<D: Disk + Clone, M: Machine> RaftStateMachine<Types> for Applier<D, M> {
    type SnapshotData = StoredSnapshot<D>;
    type SnapshotBuilder = Builder<D>;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), io::Error> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<S>(&mut self, entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + Send,
    {
        let mut ready = entries.ready_chunks(APPLIED_TOGETHER);
        while let Some(chunk) = ready.next().await {
            let (entries, responders): (Vec<_>, Vec<_>) =
                chunk.into_iter().collect::<Result<Vec<_>, io::Error>>()?.into_iter().unzip();
            let marks: Vec<_> = entries.iter().map(|entry| (entry.log_id, entry.payload.get_membership())).collect();
            let (outcomes, applied) = self.apply_all(entries).await;
            for (((id, membership), responder), outcome) in marks.into_iter().zip(responders).zip(outcomes) {
                self.applied = Some(id);
                if let Some(membership) = membership {
                    self.membership = StoredMembership::new(Some(id), membership);
                }
                if let Some(responder) = responder {
                    responder.send(outcome);
                }
            }
            applied?;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder<D> {
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        let writer = self.writers.fetch_add(1, Ordering::Relaxed);
        Builder { capture: Some(self.machine.capture()), meta, disk: self.disk.clone(), drive: self.drive, writer }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: StoredSnapshot<D>) -> Result<(), io::Error> {
        let (disk, machine) = (self.disk.clone(), self.machine.clone());
        let writer = self.writers.fetch_add(1, Ordering::Relaxed);
        let (from, index) = (snapshot.disk, snapshot.index);
        let install = move || {
            if !snapshot::list(&disk)?.contains(&index) {
                snapshot::copy(&from, &disk, index, writer)?;
            }
            restore(&disk, &*machine, index)
        };
        let restored = run(self.drive, install).await??;
        if restored != *meta {
            return Err(io::Error::other("a snapshot is not the one that it was announced as"));
        }
        self.take(meta);
        snapshot::forget_before(&self.disk, index)
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<D>>, io::Error> {
        // Builders work beside this: the newest is whatever is there.
        let Some(index) = snapshot::list(&self.disk)?.last().copied() else { return Ok(None) };
        if self.snapshot.as_ref().is_none_or(|meta| meta.last_log_id.map_or(0, |id| id.index) != index) {
            let reader = SnapshotReader::open(&self.disk, index).map_err(io::Error::other)?;
            self.snapshot = Some(meta_of(&reader, index).map_err(io::Error::other)?);
        }
        let snapshot = StoredSnapshot { disk: self.disk.clone(), index };
        Ok(self.snapshot.clone().map(|meta| Snapshot { meta, snapshot }))
    }
}

/// Writes one snapshot, of the state that was when it was made.
pub struct Builder<D: Disk + Clone> {
    capture: Option<Box<dyn Capture>>,
    meta: SnapshotMeta,
    disk: D,
    drive: Drive,
    writer: u64,
}

impl<D: Disk + Clone> Builder<D> {
    fn write(capture: Box<dyn Capture>, meta: &SnapshotMeta, disk: D, writer: u64) -> io::Result<()> {
        let index = meta.last_log_id.map_or(0, |id| id.index);
        let mut writer = SnapshotWriter::begin(disk.clone(), index, writer, &encode_meta(meta))?;
        capture.write(&mut writer)?;
        writer.finish()?;
        snapshot::forget_before(&disk, index)
    }
}

impl<D: Disk + Clone> RaftSnapshotBuilder<Types> for Builder<D> {
    type SnapshotData = StoredSnapshot<D>;

    async fn build_snapshot(&mut self) -> Result<Snapshot<D>, io::Error> {
        let capture = self.capture.take().ok_or_else(|| io::Error::other("a snapshot is written once"))?;
        let (meta, disk, writer) = (self.meta.clone(), self.disk.clone(), self.writer);
        run(self.drive, move || Builder::write(capture, &meta, disk, writer)).await??;
        let index = self.meta.last_log_id.map_or(0, |id| id.index);
        Ok(Snapshot { meta: self.meta.clone(), snapshot: StoredSnapshot { disk: self.disk.clone(), index } })
    }
}

#[cfg(test)]
#[path = "applier_tests.rs"]
mod tests;
