//! The owner of one table's loads: the first one, the ones at intervals, the ones on demand, one at a time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cachesql_types::limits;
use futures::FutureExt as _;
use tokio::sync::{Mutex as TurnMutex, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::config::Refresh;
use crate::error::NodeError;
use crate::load::Loader;
use crate::request::LoadReport;
use crate::tasks::stopped;

type Reply = oneshot::Sender<Result<LoadReport, NodeError>>;

/// Whoever loads a table holds its turn; two owners of its loads, an old and a new one, share it.
pub(crate) type Turn = Arc<TurnMutex<()>>;

/// A handle to the owner of one table's loads, which ends with its last handle.
#[derive(Clone)]
pub(crate) struct Refresher {
    calls: mpsc::Sender<Reply>,
    turn: Turn,
}

impl Refresher {
    /// Makes the handle and the task that owns the loads. `permits` bounds the loads of all tables together; a table is loaded
    /// while this member is in office, and only refreshed when its rows are there from before.
    pub(crate) fn new(
        loader: Loader,
        permits: Arc<Semaphore>,
        turn: Turn,
        office: watch::Receiver<Option<u64>>,
        stop: watch::Receiver<bool>,
    ) -> (Refresher, impl Future<Output = ()> + Send) {
        let (sender, calls) = mpsc::channel(limits::LOAD_WAITERS);
        let refresher = Refresher { calls: sender, turn: turn.clone() };
        let task = RefresherTask { loader, permits, turn, calls, office, failures: 0, loaded_once: false };
        (refresher, task.run(stop))
    }

    /// The turn that whoever comes after this owner takes too.
    pub(crate) fn turn(&self) -> Turn {
        self.turn.clone()
    }

    /// Loads the table, and waits for the outcome. Calls that come while a load runs share the one after it: what they are
    /// answered was read from the origin after they asked.
    pub(crate) async fn load(&self) -> Result<LoadReport, NodeError> {
        let (reply, outcome) = oneshot::channel();
        self.calls.try_send(reply).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => NodeError::Busy { what: "loads" },
            mpsc::error::TrySendError::Closed(_) => NodeError::Shutdown,
        })?;
        outcome.await.map_err(|_| NodeError::Shutdown)?
    }
}

struct RefresherTask {
    loader: Loader,
    permits: Arc<Semaphore>,
    turn: Turn,
    calls: mpsc::Receiver<Reply>,
    office: watch::Receiver<Option<u64>>,
    /// Failed first loads in a row.
    failures: u32,
    loaded_once: bool,
}

impl RefresherTask {
    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut due = None;
        let mut held = None;
        loop {
            let now = *self.office.borrow_and_update();
            if now != held {
                held = now;
                due = held.and_then(|_| self.first_due());
            }
            let mut callers = tokio::select! {
                () = stopped(&mut stop) => return,
                changed = self.office.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                call = self.calls.recv() => match call {
                    Some(reply) => vec![reply],
                    None => return,
                },
                () = at(due) => Vec::new(),
            };
            while let Ok(reply) = self.calls.try_recv() {
                callers.push(reply);
            }
            if held.is_none() {
                let group = self.loader.core.group.to_string();
                let refused = NodeError::NotLeader { group, leader: None };
                callers.into_iter().for_each(|reply| drop(reply.send(Err(refused.clone()))));
                continue;
            }
            // A table that was dropped here stays dropped until someone asks for it.
            if callers.is_empty() && self.loaded_once && self.is_dropped() {
                due = self.next_interval();
                continue;
            }
            let outcome = tokio::select! {
                () = stopped(&mut stop) => return,
                outcome = self.load() => outcome,
            };
            due = self.next_due(&outcome);
            for reply in callers {
                // A caller that left is not told.
                let _ = reply.send(outcome.clone());
            }
        }
    }

    /// When the table is first loaded by this member, now that it is in office.
    fn first_due(&mut self) -> Option<Instant> {
        self.loaded_once = !self.is_dropped();
        self.failures = 0;
        // What was kept over a stop, or loaded by another, may be as old as that, when it is to be refreshed at all.
        let is_due = !self.loaded_once || matches!(self.loader.config.refresh, Refresh::Every(_));
        is_due.then(Instant::now)
    }

    async fn load(&self) -> Result<LoadReport, NodeError> {
        let _turn = self.turn.lock().await;
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await.map_err(|_| NodeError::Shutdown)?;
        self.loader.progress.begun();
        let started = Instant::now();
        let outcome = AssertUnwindSafe(self.loader.load()).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|_| Err(NodeError::Internal("the load panicked".into())));
        let (table, took) = (&self.loader.config.name, started.elapsed());
        match &outcome {
            Ok(report) => {
                let LoadReport { rows, put, deleted, .. } = report;
                tracing::info!(table, rows, put, deleted, took_ms = took.as_millis(), "loaded");
            }
            Err(error) if self.loaded_once => {
                tracing::warn!(table, %error, "the load failed; rows loaded before are kept");
            }
            Err(error) => tracing::warn!(table, %error, "the load failed; it is tried again"),
        }
        self.loader.core.counters.load_ended(table, outcome.is_ok(), took);
        let snapshot = self.loader.core.snapshot();
        let table_bytes = snapshot.table(table).map_or(0, |table| table.memory().total());
        self.loader.progress.ended(&outcome, took, table_bytes);
        outcome
    }

    fn is_dropped(&self) -> bool {
        self.loader.core.snapshot().table(&self.loader.config.name).is_none()
    }

    /// When the table is loaded again by itself; `None` for never.
    fn next_due(&mut self, outcome: &Result<LoadReport, NodeError>) -> Option<Instant> {
        if outcome.is_ok() {
            self.loaded_once = true;
        }
        if self.loaded_once {
            self.failures = 0;
            return self.next_interval();
        }
        let wait = retry_wait(self.failures);
        self.failures = self.failures.saturating_add(1);
        Instant::now().checked_add(wait)
    }

    fn next_interval(&self) -> Option<Instant> {
        match self.loader.config.refresh {
            Refresh::Never => None,
            Refresh::Every(interval) => Instant::now().checked_add(interval),
        }
    }
}

/// How long to wait after so many failures before the next try of a first load.
fn retry_wait(failures: u32) -> Duration {
    let doubled = limits::LOAD_RETRY_FIRST.checked_mul(2_u32.saturating_pow(failures));
    doubled.map_or(limits::LOAD_RETRY_MOST, |wait| wait.min(limits::LOAD_RETRY_MOST))
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_slow_down_to_a_limit() {
        let waits: Vec<u64> = [0, 1, 5, 6, 40, u32::MAX].into_iter().map(|f| retry_wait(f).as_secs()).collect();
        assert_eq!(waits, [1, 2, 32, 60, 60, 60]);
    }
}
