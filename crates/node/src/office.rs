//! What only the member that leads does beside serving writes: it takes over what its predecessor left, keeps tables as they are
//! configured, loads them, and removes rows that are too old or too many.

use std::sync::Arc;

use arc_swap::ArcSwap;
use cachesql_table::Operation;
use cachesql_types::limits;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::TableConfig;
use crate::configured::Configured;
use crate::core::Core;
use crate::error::NodeError;
use crate::log::Log;
use crate::progress::Progress;
use crate::source::{empty_table, reconciled};
use crate::tasks::stopped;
use crate::writer::Writer;

/// A number for each time that this member has taken office; `None` while it has not.
pub(crate) type Office = watch::Sender<Option<u64>>;

/// What taking office needs.
pub(crate) struct Duties {
    pub(crate) core: Arc<Core>,
    pub(crate) writer: Writer,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) configured: Arc<ArcSwap<Configured>>,
    pub(crate) office: Arc<Office>,
}

impl Duties {
    /// Takes office whenever this member leads, until told to stop. `taken` says that it has done so already.
    pub(crate) async fn run(self: Arc<Self>, taken: bool, mut stop: watch::Receiver<bool>) {
        let mut taken = taken;
        let mut times = u64::from(taken);
        loop {
            let turn = async {
                if !taken {
                    self.log.wait_leads(true).await;
                    if let Err(error) = self.take().await {
                        tracing::warn!(%error, "this node leads, and cannot take over yet");
                        return sleep(limits::MEMBERS_LOOK).await;
                    }
                    times = times.saturating_add(1);
                    self.office.send_replace(Some(times));
                }
                self.log.wait_leads(false).await;
                taken = false;
                self.office.send_replace(None);
            };
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = turn => {}
            }
        }
    }

    /// Takes over what a stop or another member left, and makes tables what is configured.
    pub(crate) async fn take(&self) -> Result<(), NodeError> {
        self.log.lead().await?;
        self.abandon_loads().await?;
        self.make(&self.configured.load_full().tables).await
    }

    /// Makes tables what they are configured to be, on the member that leads. Only what has no source begins without a load.
    pub(crate) async fn make(&self, tables: &[TableConfig]) -> Result<(), NodeError> {
        for table in tables {
            let kept = self.core.snapshot().table(&table.name).cloned();
            let changes = match &kept {
                Some(kept) => reconciled(kept, table)?,
                None => empty_table(table)?,
            };
            if !changes.is_empty() {
                self.writer.apply(changes).await?;
            }
        }
        Ok(())
    }

    /// Gives up the loads that a stop, or another member, has left in the middle.
    async fn abandon_loads(&self) -> Result<(), NodeError> {
        let loads: Vec<u64> = self.core.snapshot().loads().map(|(load, _, _)| load).collect();
        if loads.is_empty() {
            return Ok(());
        }
        self.writer.apply(loads.into_iter().map(|load| Operation::AbandonLoad { load }).collect()).await.map(drop)
    }
}

/// Marks configured tables as loaded once they are there, whoever loaded them.
pub(crate) async fn notice_tables(core: Arc<Core>, mut stop: watch::Receiver<bool>) {
    let (mut published, mut loads) = (core.published(), core.loads.subscribe());
    loop {
        let waiting: Vec<String> = {
            let loads = loads.borrow_and_update();
            loads.iter().filter(|load| !load.loaded_once).map(|load| load.table.clone()).collect()
        };
        for table in &waiting {
            if let Some(kept) = core.snapshot().table(table) {
                Progress::new(core.loads.clone(), table).kept(kept);
            }
        }
        tokio::select! {
            () = stopped(&mut stop) => return,
            changed = published.changed(), if !waiting.is_empty() => if changed.is_err() { return },
            changed = loads.changed() => if changed.is_err() { return },
        }
    }
}
