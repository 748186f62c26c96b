//! What a node counts, and how it is written out for a scraper (OpenMetrics).

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use cachesql_table::GroupSnapshot;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::memory::bytes_of;
use crate::sharded::ShardedCounter;
use crate::status::GroupStatus;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    class: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TableLabels {
    table: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabels {
    table: String,
    part: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoadLabels {
    table: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabels {
    path: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheLabels {
    outcome: &'static str,
}

/// Handles of everything that is counted. Counting is one atomic addition; only errors and loads look a label up.
pub struct Counters {
    registry: Registry,
    /// Reads that were answered from an index or the rows directly.
    pub reads_direct: ShardedCounter,
    /// Reads that DataFusion answered.
    pub reads_datafusion: ShardedCounter,
    /// Writes that were answered.
    pub writes: Counter,
    /// Rows that they wrote.
    pub rows_written: Counter,
    errors: Family<ErrorLabels, Counter>,
    loads: Family<LoadLabels, Counter>,
    load_seconds: Family<TableLabels, Histogram>,
    statement_cache: Family<CacheLabels, Counter>,
    snapshot_index: Gauge,
    group_leads: Gauge,
    group_term: Gauge,
    group_applied: Gauge,
    /// In milliseconds; -1 while it is not known.
    rows_age: Gauge,
    memory_used: Gauge,
    memory_limit: Gauge,
    table_rows: Family<TableLabels, Gauge>,
    table_bytes: Family<PartLabels, Gauge>,
}

/// Seconds; a load takes from milliseconds to an hour.
const LOAD_BUCKETS: [f64; 10] = [0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 900.0, 3_600.0];

impl Counters {
    pub(crate) fn new() -> Counters {
        let mut registry = Registry::with_prefix("cachesql");
        let reads = Family::<PathLabels, ShardedCounter>::default();
        let reads_direct = reads.get_or_create_owned(&PathLabels { path: "direct" });
        let reads_datafusion = reads.get_or_create_owned(&PathLabels { path: "datafusion" });
        registry.register("reads", "Reads answered, by the path that answered them", reads);
        let writes = Counter::default();
        registry.register("writes", "Writes answered", writes.clone());
        let rows_written = Counter::default();
        registry.register("rows_written", "Rows that writes changed", rows_written.clone());
        let errors = Family::default();
        registry.register("errors", "Requests that failed, by class of SQLSTATE", errors.clone());
        let loads = Family::default();
        registry.register("loads", "Loads of a table that ended, by outcome", loads.clone());
        let load_seconds = Family::new_with_constructor(new_load_histogram as fn() -> Histogram);
        registry.register_with_unit("load_duration", "Time that loads took", Unit::Seconds, load_seconds.clone());
        let statement_cache = Family::<CacheLabels, Counter>::default();
        registry.register("statement_cache", "Look-ups of prepared statements, by outcome", statement_cache.clone());
        let snapshot_index = Gauge::default();
        registry.register("snapshot_index", "Log index of the newest snapshot", snapshot_index.clone());
        let group_leads = Gauge::default();
        registry.register("group_leads", "1 while this node leads its group", group_leads.clone());
        let group_term = Gauge::default();
        registry.register("group_term", "How often the group has looked for a leader", group_term.clone());
        let group_applied = Gauge::default();
        registry.register("group_applied", "Log index of the last entry that is applied here", group_applied.clone());
        let rows_age = Gauge::default();
        let about = "How old the rows may be that this node answers from, in milliseconds; -1 while it does not know";
        registry.register("rows_age_milliseconds", about, rows_age.clone());
        let memory_used = Gauge::default();
        registry.register_with_unit("memory_used", "Rows and indexes", Unit::Bytes, memory_used.clone());
        let memory_limit = Gauge::default();
        registry.register_with_unit("memory_limit", "What they may take", Unit::Bytes, memory_limit.clone());
        let table_rows = Family::default();
        registry.register("table_rows", "Rows of a table", table_rows.clone());
        let table_bytes = Family::default();
        registry.register_with_unit("table", "Memory of a table, by part", Unit::Bytes, table_bytes.clone());
        Counters {
            registry,
            reads_direct,
            reads_datafusion,
            writes,
            rows_written,
            errors,
            loads,
            load_seconds,
            statement_cache,
            snapshot_index,
            group_leads,
            group_term,
            group_applied,
            rows_age,
            memory_used,
            memory_limit,
            table_rows,
            table_bytes,
        }
    }

    pub(crate) fn written(&self, rows: u64) {
        self.writes.inc();
        self.rows_written.inc_by(rows);
    }

    pub(crate) fn error(&self, sqlstate: &str) {
        // The class is the first two characters: a few dozen labels at most.
        let class = sqlstate.chars().take(2).collect();
        self.errors.get_or_create(&ErrorLabels { class }).inc();
    }

    /// Errors of a class of SQLSTATE so far.
    pub fn errors_of_class(&self, class: &str) -> u64 {
        self.errors.get(&ErrorLabels { class: class.to_owned() }).map_or(0, |count| count.get())
    }

    pub(crate) fn load_ended(&self, table: &str, succeeded: bool, took: Duration) {
        let outcome = if succeeded { "done" } else { "failed" };
        self.loads.get_or_create(&LoadLabels { table: table.to_owned(), outcome }).inc();
        self.load_seconds.get_or_create(&TableLabels { table: table.to_owned() }).observe(took.as_secs_f64());
    }

    /// Writes all families, without the `# EOF` that ends an exposition.
    pub(crate) fn write(&self, state: &MeasuredState<'_>, out: &mut String) -> fmt::Result {
        let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.snapshot_index.set(gauge(state.snapshot.index().0));
        let group = state.group.as_ref();
        // A node without other members leads all there is.
        self.group_leads.set(i64::from(group.is_none_or(|group| group.leads)));
        self.group_term.set(gauge(group.map_or(0, |group| group.term)));
        self.group_applied.set(gauge(group.map_or(state.snapshot.index().0, |group| group.applied)));
        self.rows_age.set(state.age.map_or(-1, |age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX)));
        self.memory_used.set(gauge(state.snapshot.memory().total()));
        self.memory_limit.set(gauge(state.memory_limit_bytes));
        for (outcome, count) in [("hit", state.cache_hits), ("miss", state.cache_misses)] {
            // The engine counts; two that ask at once must not add it up twice.
            self.statement_cache.get_or_create(&CacheLabels { outcome }).inner().fetch_max(count, Relaxed);
        }
        // Tables that are gone must not be reported for ever.
        self.table_rows.clear();
        self.table_bytes.clear();
        for table in state.snapshot.tables() {
            let name = &table.schema().name;
            self.table_rows.get_or_create(&TableLabels { table: name.clone() }).set(gauge(table.row_count()));
            let memory = table.memory();
            for (part, bytes) in
                [("rows", memory.rows_bytes), ("indexes", memory.index_bytes), ("access", memory.access_bytes)]
            {
                self.table_bytes.get_or_create(&PartLabels { table: name.clone(), part }).set(gauge(bytes_of(bytes)));
            }
        }
        encode_registry(out, &self.registry)
    }
}

/// What is measured when it is asked for, not counted as it happens.
pub(crate) struct MeasuredState<'a> {
    pub(crate) snapshot: &'a GroupSnapshot,
    /// How its group is doing; `None` when it is in none of several members.
    pub(crate) group: Option<GroupStatus>,
    /// How old its rows may be.
    pub(crate) age: Option<Duration>,
    pub(crate) memory_limit_bytes: u64,
    pub(crate) cache_hits: u64,
    pub(crate) cache_misses: u64,
}

fn new_load_histogram() -> Histogram {
    Histogram::new(LOAD_BUCKETS)
}
