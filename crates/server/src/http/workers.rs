//! The threads that serve connections: each has a runtime of its own, and a connection stays on the one that it was given.
//!
//! A request is short, and what it reads is in memory: handing its task from thread to thread would cost more than it gains.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::mpsc;

/// What serves one connection.
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Worker {
    jobs: mpsc::UnboundedSender<Job>,
    open: Arc<AtomicUsize>,
}

/// The threads of one door. They end when this is dropped, and with them the connections that are still open.
pub(crate) struct Workers {
    workers: Vec<Worker>,
}

impl Workers {
    /// One thread for each core.
    pub(crate) fn start() -> io::Result<Workers> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = (0..count).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Workers { workers })
    }

    /// Serves a connection on the thread that has the fewest.
    pub(crate) fn serve(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let Some(worker) = self.workers.iter().min_by_key(|worker| worker.open.load(Relaxed)) else { return };
        let open = Open::new(worker.open.clone());
        // A worker ends only after this does.
        let _ = worker.jobs.send(Box::pin(async move {
            connection.await;
            drop(open);
        }));
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Worker> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (jobs, mut queue) = mpsc::unbounded_channel::<Job>();
        std::thread::Builder::new().name(format!("http-{number}")).spawn(move || {
            runtime.block_on(async move {
                while let Some(job) = queue.recv().await {
                    tokio::spawn(job);
                }
            });
        })?;
        Ok(Worker { jobs, open: Arc::default() })
    }
}

/// One connection of a worker, counted until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(open: Arc<AtomicUsize>) -> Open {
        open.fetch_add(1, Relaxed);
        Open(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
