//! What a node is configured with now, and who owns the loads of its tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use cachesql_types::limits;
use tokio::sync::Semaphore;

use crate::config::{NamedOrigin, NodeConfig, Routes, TableConfig};
use crate::core::Core;
use crate::error::NodeError;
use crate::load::Loader;
use crate::office::Office;
use crate::origins::{Origins, TableOrigin};
use crate::progress::Progress;
use crate::refresher::Refresher;
use crate::tasks::Tasks;
use crate::writer::Writer;

/// What a node is configured with, as far as it may change while it runs. Whoever needs it takes it as it is at that moment.
pub(crate) struct Configured {
    pub(crate) tables: Vec<TableConfig>,
    pub(crate) origins: Vec<NamedOrigin>,
    pub(crate) routes: Arc<Routes>,
    /// By the table's configured name.
    pub(crate) refreshers: BTreeMap<String, Refresher>,
}

impl Configured {
    /// What a configuration says, with nobody yet who loads.
    pub(crate) fn without_loads(config: &NodeConfig) -> Configured {
        let routes = Arc::new(config.routes.clone().with_own(&config.name, &config.group));
        let (tables, origins) = (config.tables.clone(), config.origins.clone());
        Configured { tables, origins, routes, refreshers: BTreeMap::new() }
    }

    /// Whether a table is loaded from the same place, by the same means, as in another configuration.
    fn loads_as(&self, table: &TableConfig, other: &Configured) -> bool {
        let origin = |of: &Configured| of.origins.iter().find(|o| table.origin() == Some(&o.name)).cloned();
        other.tables.contains(table) && origin(self) == origin(other)
    }
}

/// What the owners of loads are made of.
pub(crate) struct Loading {
    core: Arc<Core>,
    writer: Writer,
    office: Arc<Office>,
    /// Bounds the loads of all tables together.
    permits: Arc<Semaphore>,
}

impl Loading {
    pub(crate) fn new(core: Arc<Core>, writer: Writer, office: Arc<Office>) -> Loading {
        Loading { core, writer, office, permits: Arc::new(Semaphore::new(limits::LOADS_AT_ONCE)) }
    }

    /// Puts the owners of loads into a configuration, where those of `before` stay that have nothing to do otherwise. The others of
    /// `before` end with it, each once its load under way has ended, for which the new one of its table waits.
    pub(crate) fn begin(
        &self,
        mut configured: Configured,
        sources: Vec<Option<TableOrigin>>,
        before: Option<&Configured>,
        feeders: &Tasks,
    ) -> Configured {
        for (table, origin) in configured.tables.iter().zip(sources) {
            let progress = Progress::new(self.core.loads.clone(), &table.name);
            if let Some(kept) = self.core.snapshot().table(&table.name) {
                progress.kept(kept);
            }
            let Some(origin) = origin else { continue };
            let known = before.and_then(|before| Some((before, before.refreshers.get(&table.name)?)));
            let refresher = match known {
                Some((before, known)) if configured.loads_as(table, before) => known.clone(),
                _ => {
                    let (core, writer, config) = (self.core.clone(), self.writer.clone(), table.clone());
                    let loader = Loader { core, writer, config, origin, progress };
                    let turn = known.map(|(_, known)| known.turn()).unwrap_or_default();
                    let (permits, office) = (self.permits.clone(), self.office.subscribe());
                    let (refresher, task) = Refresher::new(loader, permits, turn, office, feeders.stop_signal());
                    feeders.spawn(task);
                    refresher
                }
            };
            configured.refreshers.insert(table.name.clone(), refresher);
        }
        configured
    }
}

/// Where the rows of each table come from, or why that cannot be.
pub(crate) fn sources(configured: &Configured) -> Result<Vec<Option<TableOrigin>>, NodeError> {
    let origins = Origins::new(&configured.origins)?;
    configured.tables.iter().map(|table| origins.of_table(table)).collect()
}

/// Refuses tables that a caller could not tell apart.
pub(crate) fn check_names(tables: &[TableConfig]) -> Result<(), NodeError> {
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
