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

/// A write, whose outcomes are known if it is agreed on.
struct Passenger {
    key: Option<RequestKey>,
    outcomes: Arc<Vec<Outcome>>,
    waiting: Waiting,
}

/// Writes on their way, those together that were proposed together. Owned by the writer.
pub(crate) struct Flight {
    core: Arc<Core>,
    /// Writes that are not proposed yet.
    boarding: Vec<Passenger>,
    proposals: FuturesUnordered<BoxFuture<'static, Landed>>,
    by_id: HashMap<Arc<str>, (RequestKey, Waiting)>,
    /// True once a write did not become what those after it were planned on.
    broken: bool,
    fenced: Option<String>,
}

struct Landed {
    keys: Vec<RequestKey>,
    outcome: Result<(), NodeError>,
}

impl Flight {
    pub(crate) fn new(core: Arc<Core>) -> Flight {
        let (boarding, proposals) = (Vec::new(), FuturesUnordered::new());
        Flight { core, boarding, proposals, by_id: HashMap::new(), broken: false, fenced: None }
    }

    /// Whether a proposal may take off that is full.
    pub(crate) fn has_room(&self) -> bool {
        self.proposals.len() < limits::PROPOSALS_IN_FLIGHT
    }

    /// Whether so little is on its way that nothing is gained by waiting for more to propose together.
    pub(crate) fn is_quiet(&self) -> bool {
        self.proposals.len() < limits::PROPOSALS_AHEAD
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

    /// Has a write be of the next proposal.
    pub(crate) fn board(&mut self, outcomes: Arc<Vec<Outcome>>, key: Option<RequestKey>, reply: Reply) {
        let waiting: Waiting = Arc::new(Mutex::new(vec![(reply, false)]));
        if let Some(key) = &key {
            self.by_id.insert(Arc::from(key.id()), (key.clone(), waiting.clone()));
        }
        self.boarding.push(Passenger { key, outcomes, waiting });
    }

    /// Tells the writes of the next proposal that there will be none.
    pub(crate) fn turn_away(&mut self, error: &NodeError) {
        for Passenger { key, waiting, .. } in std::mem::take(&mut self.boarding) {
            if let Some(key) = key {
                self.by_id.remove(key.id());
            }
            tell(&waiting, &Err(error.clone()));
        }
    }

    /// Takes the proposal of those who have boarded, of so many bytes, on its way.
    pub(crate) fn take_off(&mut self, submitted: Submitted, bytes: usize) {
        let passengers = std::mem::take(&mut self.boarding);
        // After that, those who wait are told that nothing is known of it.
        let patience = limits::with_time_for(bytes, limits::WRITE_WAIT);
        let mut proposal = land(self.core.clone(), submitted, passengers, patience).boxed();
        // Alone, a node has nobody to wait for.
        match (&mut proposal).now_or_never() {
            Some(landed) => self.note(landed),
            None => self.proposals.push(proposal),
        }
    }

    /// Waits for the next proposal to land. Never ends when none is on its way.
    pub(crate) async fn landing(&mut self) {
        match self.proposals.next().await {
            Some(landed) => self.note(landed),
            None => future::pending().await,
        }
    }

    /// Waits until no proposal is on its way.
    pub(crate) async fn landed(&mut self) {
        while let Some(landed) = self.proposals.next().await {
            self.note(landed);
        }
        self.broken = false;
    }

    /// Waits for something while proposals land.
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

    fn note(&mut self, Landed { keys, outcome }: Landed) {
        for key in keys {
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

/// Waits until a proposal has landed and tells those who wait; before that, if it takes long, that it is not known what becomes of it.
async fn land(core: Arc<Core>, mut submitted: Submitted, passengers: Vec<Passenger>, patience: Duration) -> Landed {
    let settled = match (&mut submitted).now_or_never() {
        Some(settled) => settled,
        None => match tokio::time::timeout(patience, &mut submitted).await {
            Ok(settled) => settled,
            Err(_) => {
                passengers.iter().for_each(|passenger| tell(&passenger.waiting, &Err(NodeError::Unknown)));
                submitted.await
            }
        },
    };
    let agreed = match settled {
        Ok(Settled { index, applied: true }) => Ok(index),
        Ok(Settled { applied: false, .. }) => Err(NodeError::Superseded),
        Err(error) => Err(error),
    };
    let mut keys = Vec::new();
    for Passenger { key, outcomes, waiting } in passengers {
        let written = agreed.clone().map(|index| Written { index, outcomes, replayed: false });
        if let Ok(written) = &written {
            core.counters.written(written.affected());
        }
        tell(&waiting, &written);
        keys.extend(key);
    }
    Landed { keys, outcome: agreed.map(drop) }
}

fn tell(waiting: &Waiting, outcome: &Result<Written, NodeError>) {
    let replies = std::mem::take(&mut *waiting.lock());
    for (reply, replayed) in replies {
        let outcome = outcome.clone().map(|written| Written { replayed, ..written });
        // A caller that left asks again with its request id, or does not care.
        let _ = reply.send(outcome);
    }
}
