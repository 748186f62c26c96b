//! The one who writes a group's log. What comes while it waits for the disk is written together, with one sync.

use std::io;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use openraft::storage::IOFlushed;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Types;
use super::store::Recent;
use crate::disk::Disk;
use crate::log::{LogError, LogWriter};
use crate::register;

/// The registers beside the log.
pub(super) const VOTE: &str = "vote";
pub(super) const PURGED: &str = "purged";

/// Who runs the scribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// A thread of its own, so that nobody else waits for the disk.
    Thread,
    /// Whoever orders something: for the simulator, whose disk never waits.
    Inline,
}

/// Says whether something was done.
pub(super) type Reply = oneshot::Sender<io::Result<()>>;

/// What the scribe is told to do, in this order.
pub(super) enum Order {
    /// Write records, and say when they are synced.
    Append { first: u64, records: Vec<Bytes>, synced: IOFlushed<Types> },
    /// Remove records from an index on.
    CutFrom { index: u64, reply: Reply },
    /// Note a place up to which the log is no longer needed, and remove what lies before `index`.
    Forget { purged: Vec<u8>, index: u64, reply: Reply },
    /// Keep a vote.
    Vote { vote: Vec<u8>, reply: Reply },
}

/// Hands orders to the scribe. When the last one is dropped the scribe ends, after what it was told.
#[derive(Clone)]
pub(super) struct Orders<D: Disk>(Way<D>);

#[derive(Clone)]
enum Way<D: Disk> {
    Queue(mpsc::Sender<Order>),
    Here(Arc<Mutex<Scribe<D>>>),
}

impl<D: Disk + Clone> Orders<D> {
    /// Sets a scribe to work.
    pub(super) fn start(drive: Drive, scribe: Scribe<D>) -> io::Result<Orders<D>> {
        match drive {
            Drive::Inline => Ok(Orders(Way::Here(Arc::new(Mutex::new(scribe))))),
            Drive::Thread => {
                let (sender, orders) = mpsc::channel();
                let mut scribe = scribe;
                let name = "cachesql-log".to_owned();
                std::thread::Builder::new().name(name).spawn(move || {
                    while let Ok(order) = orders.recv() {
                        // What came meanwhile is served with it. The sender is bounded by consensus, which has few on their way.
                        scribe.serve(std::iter::once(order).chain(orders.try_iter()));
                    }
                })?;
                Ok(Orders(Way::Queue(sender)))
            }
        }
    }

    /// Gives an order. It is not an error that the scribe is gone: what waits for an answer is told so by its absence.
    pub(super) fn give(&self, order: Order) {
        match &self.0 {
            Way::Queue(queue) => {
                if let Err(mpsc::SendError(order)) = queue.send(order) {
                    fail(order);
                }
            }
            Way::Here(scribe) => scribe.lock().serve(std::iter::once(order)),
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes the log has ended")
}

fn fail(order: Order) {
    match order {
        Order::Append { synced, .. } => synced.io_completed(Err(gone())),
        Order::CutFrom { reply, .. } | Order::Forget { reply, .. } | Order::Vote { reply, .. } => {
            // Who no longer waits does not want to know.
            let _ = reply.send(Err(gone()));
        }
    }
}

/// Writes a log and the registers beside it.
pub(super) struct Scribe<D: Disk> {
    log: LogWriter<D>,
    disk: D,
    /// What readers find here until it is in the log.
    recent: Arc<Recent>,
    /// Those who wait for the next sync.
    unsynced: Vec<IOFlushed<Types>>,
    /// The first register that could not be written: a vote that may or may not be on disk is not given again.
    failure: Option<String>,
}

impl<D: Disk + Clone> Scribe<D> {
    pub(super) fn new(log: LogWriter<D>, disk: D, recent: Arc<Recent>) -> Scribe<D> {
        Scribe { log, disk, recent, unsynced: Vec::new(), failure: None }
    }

    /// Serves orders one after the other. Records that follow each other are synced once.
    fn serve(&mut self, orders: impl Iterator<Item = Order>) {
        for order in orders {
            match order {
                Order::Append { first, records, synced } => match self.log.append(first, &records) {
                    Ok(()) => {
                        self.recent.written(first.saturating_add(records.len() as u64));
                        self.unsynced.push(synced);
                    }
                    Err(error) => synced.io_completed(Err(failed(&error))),
                },
                Order::CutFrom { index, reply } => {
                    self.sync();
                    let _ = reply.send(self.log.cut_from(index).map_err(|error| failed(&error)));
                }
                Order::Forget { purged, index, reply } => {
                    self.sync();
                    let noted = self.write(PURGED, &purged);
                    let forgotten = noted.and_then(|()| self.log.forget_before(index).map_err(|e| failed(&e)));
                    let _ = reply.send(forgotten);
                }
                Order::Vote { vote, reply } => {
                    self.sync();
                    let _ = reply.send(self.write(VOTE, &vote));
                }
            }
        }
        self.sync();
    }

    fn sync(&mut self) {
        if self.unsynced.is_empty() {
            return;
        }
        #[cfg(feature = "simulation")]
        if crate::simulation::PlantedBug::AcknowledgedBeforeSync.is_planted() {
            return self.unsynced.drain(..).for_each(|waiting| waiting.io_completed(Ok(())));
        }
        let synced = self.log.sync().map(|_| ());
        for waiting in self.unsynced.drain(..) {
            waiting.io_completed(match &synced {
                Ok(()) => Ok(()),
                Err(error) => Err(failed(error)),
            });
        }
    }

    fn write(&mut self, name: &str, value: &[u8]) -> io::Result<()> {
        if let Some(cause) = &self.failure {
            return Err(io::Error::other(format!("nothing is written any more, since a write failed: {cause}")));
        }
        register::write(&self.disk, name, value).map_err(|error| {
            self.failure = Some(error.to_string());
            io::Error::other(error)
        })
    }
}

fn failed(error: &LogError) -> io::Error {
    io::Error::other(error.to_string())
}
