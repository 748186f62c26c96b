//! Writes on their way: proposed, and not yet known to be agreed on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cachesql_types::limits;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use futures::{FutureExt as _, future};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::error::NodeError;
use crate::log::{Settled, Submitted};
use crate::outcome::Outcome;
use crate::remembered::RequestKey;
use crate::writer::Written;

pub(crate) type Reply = oneshot::Sender<Result<Written, NodeError>>;
/// Those who wait for one write, and whether they asked again, with the same request id, for what was on its way already.
type Waiting = Arc<Mutex<Vec<(Reply, bool)>>>;

/// Writes on their way. Owned by the writer.
pub(crate) struct Flight {
    core: Arc<Core>,
    writes: FuturesUnordered<BoxFuture<'static, Landed>>,
    by_id: HashMap<Arc<str>, (RequestKey, Waiting)>,
    /// True once a write did not become what those after it were planned on.
    broken: bool,
    fenced: Option<String>,
}

struct Landed {
    key: Option<RequestKey>,
    outcome: Result<(), NodeError>,
}

impl Flight {
    pub(crate) fn new(core: Arc<Core>) -> Flight {
        Flight { core, writes: FuturesUnordered::new(), by_id: HashMap::new(), broken: false, fenced: None }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.writes.len() < limits::WRITES_IN_FLIGHT
    }

    /// True when what is planned next must start from what is agreed on, and no longer from what is on its way.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Why this member's log and rows no longer agree, if they do not.
    pub(crate) fn fenced(&self) -> Option<&String> {
        self.fenced.as_ref()
    }

    /// Lets a request wait for the one of the same key that is on its way; gives it back when there is none.
    pub(crate) fn join(&self, key: &RequestKey, reply: Reply) -> Option<Reply> {
        match self.by_id.get(key.id()) {
            None => Some(reply),
            Some((known, waiting)) if known == key => {
                waiting.lock().push((reply, true));
                None
            }
            Some(_) => {
                // Its caller may have left.
                let _ = reply.send(Err(NodeError::RequestIdReused { id: key.id().to_owned() }));
                None
            }
        }
    }

    /// Takes a write of so many bytes on its way, whose outcomes are known if it is agreed on.
    pub(crate) fn take_off(
        &mut self,
        submitted: Submitted,
        outcomes: Arc<Vec<Outcome>>,
        key: Option<RequestKey>,
        reply: Reply,
        bytes: usize,
    ) {
        let waiting: Waiting = Arc::new(Mutex::new(vec![(reply, false)]));
        if let Some(key) = &key {
            self.by_id.insert(Arc::from(key.id()), (key.clone(), waiting.clone()));
        }
        // After that, those who wait are told that nothing is known of it.
        let patience = limits::with_time_for(bytes, limits::WRITE_WAIT);
        let mut write = land(self.core.clone(), submitted, outcomes, key, waiting, patience).boxed();
        // Alone, a node has nobody to wait for.
        match (&mut write).now_or_never() {
            Some(landed) => self.note(landed),
            None => self.writes.push(write),
        }
    }

    /// Waits for the next write to land. Never ends when none is on its way.
    pub(crate) async fn landing(&mut self) {
        match self.writes.next().await {
            Some(landed) => self.note(landed),
            None => future::pending().await,
        }
    }

    /// Waits until no write is on its way.
    pub(crate) async fn landed(&mut self) {
        while let Some(landed) = self.writes.next().await {
            self.note(landed);
        }
        self.broken = false;
    }

    /// Waits for something while writes land.
    pub(crate) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.landing() => {}
            }
        }
    }

    fn note(&mut self, Landed { key, outcome }: Landed) {
        if let Some(key) = key {
            self.by_id.remove(key.id());
        }
        if let Err(error) = outcome {
            self.broken = true;
            if let NodeError::Fenced(reason) = error {
                tracing::error!(reason, "the writer has fenced itself");
                self.fenced = Some(reason);
            }
        }
    }
}

/// Waits until a write has landed and tells those who wait; before that, if it takes long, that it is not known what becomes of it.
async fn land(
    core: Arc<Core>,
    mut submitted: Submitted,
    outcomes: Arc<Vec<Outcome>>,
    key: Option<RequestKey>,
    waiting: Waiting,
    patience: Duration,
) -> Landed {
    let settled = match (&mut submitted).now_or_never() {
        Some(settled) => settled,
        None => match tokio::time::timeout(patience, &mut submitted).await {
            Ok(settled) => settled,
            Err(_) => {
                tell(&waiting, &Err(NodeError::Unknown));
                submitted.await
            }
        },
    };
    let outcome = match settled {
        Ok(Settled { index, applied: true }) => Ok(Written { index, outcomes, replayed: false }),
        Ok(Settled { applied: false, .. }) => Err(NodeError::Superseded),
        Err(error) => Err(error),
    };
    if let Ok(written) = &outcome {
        core.counters.written(written.affected());
    }
    tell(&waiting, &outcome);
    Landed { key, outcome: outcome.map(drop) }
}

fn tell(waiting: &Waiting, outcome: &Result<Written, NodeError>) {
    let replies = std::mem::take(&mut *waiting.lock());
    for (reply, replayed) in replies {
        let outcome = outcome.clone().map(|written| Written { replayed, ..written });
        // A caller that left asks again with its request id, or does not care.
        let _ = reply.send(outcome);
    }
}
