//! How a node comes up: its log, what is there of its tables, and what runs beside its callers.

use std::collections::BTreeMap;
use std::sync::Arc;

use cachesql_table::Operation;
use cachesql_types::limits;
use tokio::sync::Semaphore;

use crate::config::{NodeConfig, TableConfig};
use crate::core::Core;
use crate::error::NodeError;
use crate::load::Loader;
use crate::log::{LocalLog, Log};
use crate::node::Node;
use crate::origins::Origins;
use crate::progress::Progress;
use crate::refresher::Refresher;
use crate::replicated::ReplicatedLog;
use crate::retention;
use crate::source::{empty_table, reconciled};
use crate::state::State;
use crate::tasks::Tasks;
use crate::writer::Writer;

impl Node {
    /// Starts a node. It returns once the configuration is understood; tables are loaded behind it, each as soon as its
    /// turn comes, and a load that fails is tried again. Must be called inside a tokio runtime with time enabled.
    pub async fn start(config: NodeConfig) -> Result<Arc<Node>, NodeError> {
        check_names(&config.tables)?;
        let core = Arc::new(Core::new(&config));
        let state = Arc::new(State::new(core.clone()));
        let Some(data) = &config.data else {
            let log = Arc::new(LocalLog::new(state.clone()));
            return Node::assemble(config, core, state, log, Tasks::new()).await;
        };
        let (group, name) = (config.group.as_str(), config.name.as_str());
        let folder = data.join(folder_name(group));
        let log = Arc::new(ReplicatedLog::start_alone(&folder, group, name, config.seed, state.clone()).await?);
        let feeders = Tasks::new();
        feeders.spawn(log.compact(feeders.stop_signal()));
        Node::assemble(config, core, state, log, feeders).await
    }

    /// The same on a log of the caller's, which applies to the given state what is agreed on.
    pub async fn start_on(
        config: NodeConfig,
        log: impl FnOnce(Arc<State>) -> Arc<dyn Log>,
    ) -> Result<Arc<Node>, NodeError> {
        check_names(&config.tables)?;
        let core = Arc::new(Core::new(&config));
        let state = Arc::new(State::new(core.clone()));
        let log = log(state.clone());
        Node::assemble(config, core, state, log, Tasks::new()).await
    }

    async fn assemble(
        config: NodeConfig,
        core: Arc<Core>,
        state: Arc<State>,
        log: Arc<dyn Log>,
        feeders: Tasks,
    ) -> Result<Arc<Node>, NodeError> {
        let origins = Origins::new(&config.origins)?;
        let writer_task = Tasks::new();
        let (writer, task) = Writer::new(core.clone(), state, log.clone(), config.seed);
        writer_task.spawn(task);
        abandon_loads(&core, &writer).await?;

        let mut refreshers = BTreeMap::new();
        let permits = Arc::new(Semaphore::new(limits::LOADS_AT_ONCE));
        for (position, table) in config.tables.iter().enumerate() {
            let progress = Progress::new(core.loads.clone(), position);
            let kept = core.snapshot().table(&table.name).cloned();
            if let Some(kept) = &kept {
                let changes = reconciled(kept, table)?;
                if !changes.is_empty() {
                    writer.apply(changes).await?;
                }
                progress.kept(kept);
            }
            let Some(origin) = origins.of_table(table)? else {
                if kept.is_none() {
                    writer.apply(empty_table(table)?).await?;
                    progress.needs_no_load();
                }
                continue;
            };
            let loader = Loader { core: core.clone(), writer: writer.clone(), config: table.clone(), origin, progress };
            let (refresher, task) = Refresher::new(loader, permits.clone(), kept.is_some(), feeders.stop_signal());
            refreshers.insert(table.name.clone(), refresher);
            feeders.spawn(task);
        }
        feeders.spawn(retention::sweep(core.clone(), writer.clone(), config.sweep_interval, feeders.stop_signal()));
        Ok(Arc::new(Node { core, writer, log, refreshers, tables: config.tables, feeders, writer_task }))
    }
}

/// Gives up the loads that a stop has left in the middle.
async fn abandon_loads(core: &Core, writer: &Writer) -> Result<(), NodeError> {
    let loads: Vec<u64> = core.snapshot().loads().map(|(load, _, _)| load).collect();
    if loads.is_empty() {
        return Ok(());
    }
    writer.apply(loads.into_iter().map(|load| Operation::AbandonLoad { load }).collect()).await.map(drop)
}

/// The name of a group's folder: its own, with every byte that a file system may take otherwise written in hexadecimal.
fn folder_name(group: &str) -> String {
    let mut name = String::from("group-");
    for byte in group.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            // Capitals too: there are file systems that do not tell them apart.
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    name
}

fn check_names(tables: &[TableConfig]) -> Result<(), NodeError> {
    for (at, table) in tables.iter().enumerate() {
        let earlier = tables.iter().take(at).find(|other| other.name.eq_ignore_ascii_case(&table.name));
        if let Some(earlier) = earlier {
            return Err(NodeError::Config(format!(
                "there are two tables named {:?} and {:?}",
                earlier.name, table.name
            )));
        }
    }
    Ok(())
}
