//! The tasks that a node runs beside its callers, and how they end.

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Everything that runs until the node stops.
pub(crate) struct Tasks {
    stop: watch::Sender<bool>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Tasks {
    pub(crate) fn new() -> Tasks {
        Tasks { stop: watch::Sender::new(false), handles: Mutex::new(Vec::new()) }
    }

    /// Says when to stop.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handles.lock().push(tokio::spawn(task));
    }

    /// Tells all tasks to stop, without waiting for them.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until all tasks have ended.
    pub(crate) async fn ended(&self) {
        let handles = std::mem::take(&mut *self.handles.lock());
        for handle in handles {
            if let Err(failed) = handle.await {
                tracing::error!(%failed, "a task of the node broke off");
            }
        }
    }
}

/// Returns when the node is to stop, or is gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the node, which holds the other end, is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}
