//! Following the routes: one task asks a node to hold its answer until they change, and takes over what it tells.

use std::sync::Arc;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::address::Address;
use crate::core::Core;
use crate::limits;

/// The task that follows. Dropping this ends it, whatever it waits for.
#[derive(Debug)]
pub(crate) struct Follower(AbortHandle);

impl Follower {
    /// Begins to follow.
    pub(crate) fn begin(core: &Arc<Core>) -> Follower {
        Follower(tokio::spawn(follow(core.clone())).abort_handle())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the last answer was marked with, and whose it was: a mark means nothing to another node.
type Mark = (Address, String);

async fn follow(core: Arc<Core>) {
    let mut known: Option<Mark> = None;
    loop {
        let began = Instant::now();
        let (mark, told) = ask(&core, known.as_ref()).await;
        // A node that cannot hold its answer is not asked at once again.
        let pause = if told && mark.is_some() && mark != known { limits::ROUTES_PAUSE } else { limits::FOLLOW_PAUSE };
        known = mark;
        sleep_until(began + pause).await;
    }
}

/// Asks the node whose mark is known, or else any; gives the newest mark, and whether the routes are others than before.
async fn ask(core: &Core, known: Option<&Mark>) -> (Option<Mark>, bool) {
    let nodes = core.who_knows();
    let same =
        known.and_then(|(address, mark)| nodes.iter().find(|n| n.address == *address).map(|n| (n, mark.as_str())));
    let (node, mark) = match (same, nodes.first()) {
        (Some((node, mark)), _) => (node, Some(mark)),
        (None, Some(node)) => (node, None),
        (None, None) => return (None, false),
    };
    // The first answer is wanted at once; from then on what changes is.
    let wait = mark.is_some().then_some(limits::FOLLOW_WAIT);
    let deadline = Instant::now() + limits::FOLLOW_WAIT + 2 * limits::FOLLOW_GRACE;
    match core.ask_topology(node, mark, wait, deadline).await {
        Ok(Some((topology, mark))) => {
            core.adopt(&topology);
            (mark.map(|mark| (node.address.clone(), mark)), true)
        }
        Ok(None) => (known.cloned(), false),
        Err(_) => (None, false),
    }
}
