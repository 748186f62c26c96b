//! What only the member that leads does beside serving writes: it takes over what its predecessor left, keeps tables as they are
//! configured, loads them, and removes rows that are too old or too many.

use std::sync::Arc;

use cachesql_table::Operation;
use cachesql_types::limits;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::TableConfig;
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
    pub(crate) tables: Vec<TableConfig>,
    pub(crate) office: Arc<Office>,
}

impl Duties {
    /// Takes office whenever this member leads, until told to stop. `taken` says that it has done so already.
    pub(crate) async fn run(self, taken: bool, mut stop: watch::Receiver<bool>) {
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
        for table in &self.tables {
            let kept = self.core.snapshot().table(&table.name).cloned();
            let changes = match &kept {
                Some(kept) => reconciled(kept, table)?,
                // Only what has no source begins without a load.
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

/// Marks configured tables as loaded once they are there, whoever loaded them, until all are.
pub(crate) async fn notice_tables(core: Arc<Core>, mut stop: watch::Receiver<bool>) {
    let mut published = core.published();
    loop {
        let waiting: Vec<(usize, String)> = {
            let loads = core.loads.borrow();
            let missing = loads.iter().enumerate().filter(|(_, load)| !load.loaded_once);
            missing.map(|(position, load)| (position, load.table.clone())).collect()
        };
        if waiting.is_empty() {
            return;
        }
        for (position, table) in &waiting {
            if let Some(table) = core.snapshot().table(table) {
                Progress::new(core.loads.clone(), *position).kept(table);
            }
        }
        tokio::select! {
            () = stopped(&mut stop) => return,
            changed = published.changed() => if changed.is_err() { return },
        }
    }
}
