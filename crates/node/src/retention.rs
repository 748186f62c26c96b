//! Rows that are too old or too many: found on the newest snapshot, removed through the writer.

use std::sync::Arc;
use std::time::Duration;

use cachesql_table::{GroupSnapshot, Operation, RowKey, Table};
use cachesql_types::limits;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::core::{Core, find_table};
use crate::error::NodeError;
use crate::tasks::stopped;
use crate::writer::{Plan, Planned, Writer, unblocked};

/// Looks at every table now and then, while this member is in office, until the node stops.
pub(crate) async fn sweep(
    core: Arc<Core>,
    writer: Writer,
    every: Duration,
    mut office: watch::Receiver<Option<u64>>,
    mut stop: watch::Receiver<bool>,
) {
    // An interval of nothing is not one.
    let mut ticks = interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return,
            held = async { office.wait_for(Option::is_some).await.is_ok() } => if !held { return },
        }
        tokio::select! {
            () = stopped(&mut stop) => return,
            _ = ticks.tick() => {}
        }
        for table in core.snapshot().tables().filter(|t| is_retained(t)) {
            let name = &table.schema().name;
            match clean(&core, &writer, name).await {
                Ok(0) => {}
                Ok(rows) => tracing::debug!(table = name, rows, "removed rows that had expired or were too many"),
                Err(error) => {
                    tracing::warn!(table = name, %error, "could not remove rows that expired or are too many")
                }
            }
        }
    }
}

/// Removes what is too old or too many of one table, and says how many rows that was.
pub(crate) async fn clean(core: &Arc<Core>, writer: &Writer, table: &str) -> Result<u64, NodeError> {
    let mut removed = 0_u64;
    loop {
        let rows = clean_some(core, writer, table).await?;
        if rows == 0 {
            return Ok(removed);
        }
        removed = removed.saturating_add(rows);
    }
}

/// Removes at most `limits::SWEEP_ROWS` rows.
async fn clean_some(core: &Arc<Core>, writer: &Writer, table: &str) -> Result<u64, NodeError> {
    let now_ms = core.clock.now_ms();
    let looked_at = find_table(&core.snapshot(), table)?.clone();
    if !is_retained(&looked_at) {
        return Ok(0);
    }
    let found = {
        let table = looked_at.clone();
        unblocked(move || overdue(&table, now_ms)).await?
    };
    if found.is_empty() {
        return Ok(0);
    }
    let plan = Plan::long(move |_, newest: &GroupSnapshot| {
        let name = looked_at.schema().name.clone();
        // Gone meanwhile: so are its rows.
        let Some(table) = newest.table(&name) else { return Ok(Planned::counted(Vec::new())) };
        // A row written since the look is not overdue any more, and must not go with the one that it replaced.
        let keys = if Arc::ptr_eq(table, &looked_at) { found } else { overdue(table, now_ms) };
        let delete = (!keys.is_empty()).then_some(Operation::Delete { table: name, keys });
        Ok(Planned::counted(delete.into_iter().collect()))
    });
    Ok(writer.write(plan, None).await?.affected())
}

fn overdue(table: &Table, now_ms: u64) -> Vec<RowKey> {
    let mut keys = table.expired(now_ms);
    if keys.is_empty() {
        keys = table.over_limit(now_ms);
    }
    keys.truncate(limits::SWEEP_ROWS);
    keys
}

fn is_retained(table: &Table) -> bool {
    let retention = table.retention();
    retention.ttl_ms.is_some() || retention.max_rows.is_some()
}
