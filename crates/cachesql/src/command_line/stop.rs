//! The wish to stop: SIGTERM or SIGINT, or a parent that is gone. The first lets requests under way finish; the second does not wait for them.

use tokio::sync::watch;

use super::failure::Failure;

/// Tells when a stop was asked for.
pub(super) struct Stop {
    asked: watch::Receiver<bool>,
}

impl Stop {
    /// Begins to listen for signals; `with_parent`, for the end of standard input too, which a parent holds open.
    pub(super) fn on_signals(with_parent: bool) -> Result<Stop, Failure> {
        let (tell, asked) = watch::channel(false);
        let mut signals =
            Signals::new().map_err(|e| Failure::Failed(format!("signals cannot be listened for: {e}")))?;
        let (gone, mut parent) = watch::channel(false);
        if with_parent {
            // A thread of its own: a read of standard input cannot be broken off, and must not keep the process from ending.
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                gone.send_replace(true);
            });
        }
        tokio::spawn(async move {
            tokio::select! {
                () = signals.next() => {}
                () = async {
                    if parent.wait_for(|gone| *gone).await.is_err() {
                        // Nobody watches a parent.
                        std::future::pending::<()>().await;
                    }
                } => {}
            }
            tell.send_replace(true);
            signals.next().await;
            eprintln!("stopping at once");
            std::process::exit(1);
        });
        Ok(Stop { asked })
    }

    /// Ends when a stop was asked for.
    pub(super) fn requested(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut asked = self.asked.clone();
        async move {
            // The sender lives as long as the process.
            let _ = asked.wait_for(|asked| *asked).await;
        }
    }
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
