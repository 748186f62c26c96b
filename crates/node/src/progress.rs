//! How far loads are, for whoever wants to watch: progress bars, readiness, the listing.

use std::time::Duration;

use arrow::record_batch::RecordBatch;
use cachesql_origin::Estimate;
use cachesql_table::Table;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::NodeError;
use crate::request::{LoadPhase, LoadReport, TableLoad};

/// The state of every configured table's load; watchers see the newest, and are never waited for.
pub(crate) type Loads = watch::Sender<Vec<TableLoad>>;

/// The loads of these tables, none of them begun.
pub(crate) fn not_begun<'a>(tables: impl Iterator<Item = &'a str>) -> Loads {
    let waiting = |table: &str| TableLoad {
        table: table.to_owned(),
        phase: LoadPhase::Waiting,
        rows: 0,
        bytes: 0,
        estimate: None,
        took: Duration::ZERO,
        began: None,
        error: None,
        attempts: 0,
        loaded_once: false,
    };
    watch::Sender::new(tables.map(waiting).collect())
}

/// True when every table was loaded at least once.
pub(crate) fn all_loaded(loads: &[TableLoad]) -> bool {
    loads.iter().all(|load| load.loaded_once)
}

/// One table's place among the loads.
#[derive(Clone)]
pub(crate) struct Progress {
    loads: std::sync::Arc<Loads>,
    position: usize,
}

impl Progress {
    pub(crate) fn new(loads: std::sync::Arc<Loads>, position: usize) -> Progress {
        Progress { loads, position }
    }

    fn update(&self, change: impl FnOnce(&mut TableLoad)) {
        self.loads.send_modify(|loads| {
            if let Some(load) = loads.get_mut(self.position) {
                change(load);
            }
        });
    }

    /// The table is there: it was kept over a stop, has no source, or another member loaded it.
    pub(crate) fn kept(&self, table: &Table) {
        self.update(|load| {
            load.phase = LoadPhase::Loaded;
            load.rows = table.row_count();
            load.bytes = table.memory().total();
            load.loaded_once = true;
        });
    }

    pub(crate) fn begun(&self) {
        self.update(|load| {
            let failed_before = if load.phase == LoadPhase::Loaded { 0 } else { load.attempts };
            load.phase = LoadPhase::Loading;
            load.began = Some(Instant::now());
            load.attempts = failed_before.saturating_add(1);
            load.rows = 0;
            load.bytes = 0;
            load.estimate = None;
        });
    }

    pub(crate) fn estimated(&self, estimate: Option<Estimate>) {
        self.update(|load| load.estimate = estimate);
    }

    pub(crate) fn arrived(&self, batch: &RecordBatch) {
        self.update(|load| {
            load.rows = load.rows.saturating_add(batch.num_rows() as u64);
            load.bytes = load.bytes.saturating_add(batch.get_array_memory_size() as u64);
        });
    }

    /// The load has ended; `table_bytes` is what the table takes now.
    pub(crate) fn ended(&self, outcome: &Result<LoadReport, NodeError>, took: Duration, table_bytes: u64) {
        self.update(|load| {
            load.took = took;
            load.began = None;
            match outcome {
                Ok(report) => {
                    load.phase = LoadPhase::Loaded;
                    load.rows = report.rows;
                    load.bytes = table_bytes;
                    load.error = None;
                    load.loaded_once = true;
                }
                Err(error) => {
                    load.phase = LoadPhase::Failed;
                    load.error = Some(error.to_string());
                }
            }
        });
    }
}
