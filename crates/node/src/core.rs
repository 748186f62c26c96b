//! What all parts of a node see: the published snapshot, the engine, the clock, the counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use cachesql_sql::{Engine, SqlError};
use cachesql_table::{GroupSnapshot, Table};
use cachesql_types::{LogIndex, Token, limits, resolve_name};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::counters::Counters;
use crate::error::NodeError;
use crate::memory::ExpectedBytes;
use crate::progress::{self, Loads};
use crate::request::Consistency;

/// Shared by the node and its tasks. Only the replicated state publishes.
pub(crate) struct Core {
    pub(crate) name: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) memory_bytes: u64,
    pub(crate) threads: usize,
    pub(crate) statement_memory_bytes: usize,
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) counters: Counters,
    /// How far the configured tables' loads are.
    pub(crate) loads: Arc<Loads>,
    /// What loads under way are still expected to bring.
    pub(crate) expected: ExpectedBytes,
    /// The number that the next load is told apart by.
    next_load: AtomicU64,
    snapshot: ArcSwap<GroupSnapshot>,
    published: watch::Sender<LogIndex>,
}

impl Core {
    pub(crate) fn new(config: &NodeConfig) -> Core {
        Core {
            name: Arc::from(config.name.as_str()),
            group: Arc::from(config.group.as_str()),
            memory_bytes: config.memory_bytes,
            threads: config.threads,
            statement_memory_bytes: config.limits.memory_bytes,
            engine: Engine::new(config.limits),
            clock: config.clock.clone(),
            counters: Counters::new(),
            loads: Arc::new(progress::not_begun(config.tables.iter().map(|t| t.name.as_str()))),
            expected: ExpectedBytes::default(),
            // Another member that loads later must not use the same numbers; time sees to that.
            next_load: AtomicU64::new(config.clock.now_ms() << 20),
            snapshot: ArcSwap::from_pointee(GroupSnapshot::empty()),
            published: watch::Sender::new(LogIndex(0)),
        }
    }

    /// The newest snapshot.
    pub(crate) fn snapshot(&self) -> GroupSnapshot {
        GroupSnapshot::clone(&self.snapshot.load())
    }

    /// Reads the newest snapshot without holding on to it.
    pub(crate) fn read_now<T>(&self, read: impl FnOnce(&GroupSnapshot) -> T) -> T {
        read(&self.snapshot.load())
    }

    /// Makes a snapshot the newest: readers that come from now on see it, those at work keep theirs.
    pub(crate) fn publish(&self, snapshot: GroupSnapshot) {
        let index = snapshot.index();
        self.snapshot.store(Arc::new(snapshot));
        self.published.send_replace(index);
    }

    /// Tells of every snapshot that is published.
    pub(crate) fn published(&self) -> watch::Receiver<LogIndex> {
        self.published.subscribe()
    }

    /// A number that no other load has.
    pub(crate) fn next_load(&self) -> u64 {
        self.next_load.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn token(&self, index: LogIndex) -> Token {
        Token { group: self.group.to_string(), index }
    }

    /// A table of the newest snapshot.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<Table>, NodeError> {
        find_table(&self.snapshot.load(), name).cloned()
    }

    /// A snapshot that has at least what a token has seen. A token can be ahead of this member for a moment, or for good when it is
    /// from before a restart of a node that keeps nothing.
    pub(crate) async fn snapshot_for(&self, consistency: &Consistency) -> Result<GroupSnapshot, NodeError> {
        let Consistency::Session(Some(token)) = consistency else { return Ok(self.snapshot()) };
        if *token.group != *self.group {
            return Err(NodeError::OtherGroup { group: token.group.clone(), serves: self.group.to_string() });
        }
        let newest = self.snapshot();
        if newest.index() >= token.index {
            return Ok(newest);
        }
        let mut published = self.published.subscribe();
        let reached = published.wait_for(|index| *index >= token.index);
        match tokio::time::timeout(limits::TOKEN_WAIT, reached).await {
            Ok(Ok(_)) => Ok(self.snapshot()),
            Ok(Err(_)) => Err(NodeError::Shutdown),
            Err(_) => {
                let have = self.snapshot.load().index();
                Err(NodeError::TokenAhead { wanted: token.index, have, waited: limits::TOKEN_WAIT })
            }
        }
    }

    /// Counts an error where it is handed to the caller, and tells a table that is still to come from one that is not there.
    pub(crate) fn counted<T>(&self, outcome: Result<T, NodeError>) -> Result<T, NodeError> {
        outcome.map_err(|error| {
            let error = match error {
                NodeError::UnknownTable { table } => {
                    self.not_loaded(&table).unwrap_or(NodeError::UnknownTable { table })
                }
                other => other,
            };
            self.counters.error(error.sqlstate());
            error
        })
    }

    fn not_loaded(&self, table: &str) -> Option<NodeError> {
        let loads = self.loads.borrow();
        let load = loads.get(resolve_name(loads.iter().map(|load| load.table.as_str()), table)?)?;
        let waited_for = || NodeError::NotLoaded { table: load.table.clone(), failure: load.error.clone() };
        (!load.loaded_once).then(waited_for)
    }
}

/// A table of a snapshot, by its exact name or else without regard to case.
pub(crate) fn find_table<'a>(snapshot: &'a GroupSnapshot, name: &str) -> Result<&'a Arc<Table>, NodeError> {
    snapshot.table(name).ok_or_else(|| NodeError::UnknownTable { table: name.chars().take(80).collect() })
}

/// An engine's error about an unknown table is the node's own.
pub(crate) fn sql_error(error: SqlError) -> NodeError {
    match error {
        SqlError::UnknownTable { table } => NodeError::UnknownTable { table },
        other => NodeError::Sql(other),
    }
}
