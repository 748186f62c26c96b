//! How far loads are, for whoever wants to watch: progress bars, readiness, the listing.

use std::sync::Arc;
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

/// The loads of the tables that a node starts with, none of them begun.
pub(crate) fn not_begun<'a>(tables: impl Iterator<Item = &'a str>) -> Loads {
    watch::Sender::new(tables.map(|table| waiting(table, true)).collect())
}

fn waiting(table: &str, from_start: bool) -> TableLoad {
    TableLoad {
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
        from_start,
    }
}

/// Has the loads be those of these tables: what is known of those that stay is kept.
pub(crate) fn replace<'a>(loads: &Loads, tables: impl Iterator<Item = &'a str>) {
    let tables: Vec<&str> = tables.collect();
    loads.send_modify(|loads| {
        let mut before = std::mem::take(loads);
        let kept = |name: &&str| {
            let at = before.iter().position(|load| load.table == **name);
            at.map_or_else(|| waiting(name, false), |at| before.swap_remove(at))
        };
        *loads = tables.iter().map(kept).collect();
    });
}

/// True when every table that the node started with was loaded at least once. One that came later does not make it less ready.
pub(crate) fn all_loaded(loads: &[TableLoad]) -> bool {
    loads.iter().all(|load| load.loaded_once || !load.from_start)
}

/// One table's place among the loads.
#[derive(Clone)]
pub(crate) struct Progress {
    loads: Arc<Loads>,
    table: Arc<str>,
}

impl Progress {
    pub(crate) fn new(loads: Arc<Loads>, table: &str) -> Progress {
        Progress { loads, table: Arc::from(table) }
    }

    fn update(&self, change: impl FnOnce(&mut TableLoad)) {
        self.loads.send_modify(|loads| {
            if let Some(load) = loads.iter_mut().find(|load| *load.table == *self.table) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use cachesql_types::{LogIndex, Token};

    #[test]
    fn what_is_known_of_a_table_that_stays_is_kept_and_a_new_one_makes_the_node_no_less_ready() {
        let loads = Arc::new(not_begun(["a", "b"].into_iter()));
        assert!(!all_loaded(&loads.borrow()));
        for table in ["a", "b"] {
            let token = Token { group: "g".into(), index: LogIndex(1) };
            let took = Duration::from_secs(1);
            let report = LoadReport { table: table.into(), rows: 7, put: 7, deleted: 0, took, token };
            Progress::new(loads.clone(), table).ended(&Ok(report), took, 70);
        }
        assert!(all_loaded(&loads.borrow()));
        replace(&loads, ["c", "b"].into_iter());
        let now: Vec<_> = loads.borrow().iter().map(|load| (load.table.clone(), load.rows, load.loaded_once)).collect();
        assert_eq!(now, [("c".to_owned(), 0, false), ("b".to_owned(), 7, true)]);
        assert!(all_loaded(&loads.borrow()));
        // Of a table that is not there any more nothing is said.
        Progress::new(loads.clone(), "a").begun();
        assert_eq!(loads.borrow().len(), 2);
    }
}
