//! One running member: what callers ask of it goes from here to the engine, the writer or a table's loads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cachesql_sql::{DirectRows, Explanation, Prepared, Rows, Select, SqlError, StatementKind, Write};
use cachesql_table::{GroupSnapshot, Table};
use cachesql_types::{Token, limits};
use tokio::sync::watch;

use crate::command::{Command, Done};
use crate::config::Routes;
use crate::configured::Configured;
use crate::core::{Core, find_table, sql_error};
use crate::counters::{Counters, MeasuredState};
use crate::error::NodeError;
use crate::log::Log;
use crate::memory::MemoryReport;
use crate::mutation::{Mutation, Shape, table_of};
use crate::original::Original;
use crate::outcome::Outcome;
use crate::progress;
use crate::reload::Reload;
use crate::remembered::RequestKey;
use crate::replica::MembersChange;
use crate::request::{
    BatchAnswer, Consistency, LoadReport, RequestOptions, SqlAnswer, Statement, TableLoad, WriteAnswer,
};
use crate::status::GroupStatus;
use crate::tasks::Tasks;
use crate::writer::{Writer, Written};

/// One running member.
pub struct Node {
    pub(crate) core: Arc<Core>,
    pub(crate) writer: Writer,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) configured: Arc<ArcSwap<Configured>>,
    pub(crate) reload: Reload,
    /// False for a node that is its group's only member: what it has is never old.
    pub(crate) has_others: bool,
    /// The sweeper and the loads, which write, and end before the writer does.
    pub(crate) feeders: Tasks,
    pub(crate) writer_task: Tasks,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.core.name).field("group", &self.core.group).finish_non_exhaustive()
    }
}

impl Node {
    /// Stops loads and the sweeper, lets the writes that wait be served, and returns when all of that has ended. Reads are
    /// answered for as long as somebody holds the node.
    pub async fn shutdown(&self) {
        self.feeders.stop();
        self.feeders.ended().await;
        tracing::info!("stopping: loads and the sweeper have ended");
        // Whoever leads next takes the writes that come now.
        self.log.hand_over().await;
        self.writer.close().await;
        let mut served = std::pin::pin!(self.writer_task.ended());
        // Without a majority the writes that are on their way are never agreed on: then it is not known what becomes of them.
        if tokio::time::timeout(limits::WRITES_GRACE, &mut served).await.is_err() {
            tracing::warn!("stopping: writes are on their way that nobody has agreed on");
            self.log.stop().await;
            served.await;
        } else {
            self.log.stop().await;
        }
        tracing::info!("stopping: this node takes part in its group no more");
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The name of the group that its tables belong to.
    pub fn group(&self) -> &str {
        &self.core.group
    }

    /// The same, shared.
    pub fn shared_group(&self) -> &Arc<str> {
        &self.core.group
    }

    /// True once every configured table was loaded.
    pub fn ready(&self) -> bool {
        progress::all_loaded(&self.core.loads.borrow())
    }

    /// Returns once every configured table was loaded.
    pub async fn wait_ready(&self) {
        // The sender lives in the node, so this cannot fail while it is borrowed.
        let _ = self.core.loads.subscribe().wait_for(|loads| progress::all_loaded(loads)).await;
    }

    /// How far the configured tables' loads are, in configuration order.
    pub fn loads(&self) -> watch::Receiver<Vec<TableLoad>> {
        self.core.loads.subscribe()
    }

    /// The newest snapshot. Never waits.
    pub fn snapshot(&self) -> GroupSnapshot {
        self.core.snapshot()
    }

    /// Reads the newest snapshot, at once. Cheaper than [`Node::snapshot`] where many threads read: none of them counts itself in.
    pub fn read_now<T>(&self, read: impl FnOnce(&GroupSnapshot) -> T) -> T {
        self.core.read_now(read)
    }

    /// A snapshot as new as asked for. Waits only for a token that is ahead of this node, and only for so long.
    pub async fn snapshot_for(&self, consistency: &Consistency) -> Result<GroupSnapshot, NodeError> {
        self.core.counted(self.snapshot_as_new(consistency).await)
    }

    async fn snapshot_as_new(&self, consistency: &Consistency) -> Result<GroupSnapshot, NodeError> {
        match consistency {
            Consistency::Linearizable => self.log.confirm().await?,
            Consistency::Bounded(most) if self.age().is_none_or(|age| age > *most) => self.log.confirm().await?,
            Consistency::Any | Consistency::Session(_) | Consistency::Bounded(_) => {}
        }
        self.core.snapshot_for(consistency).await
    }

    /// What somebody who saw a snapshot has seen.
    pub fn token(&self, snapshot: &GroupSnapshot) -> Token {
        self.core.token(snapshot.index())
    }

    /// A read of one table, as a typed plan. Synchronous, and quick when an index serves it.
    pub fn select(
        &self,
        snapshot: &GroupSnapshot,
        select: &Select,
        params: &[cachesql_types::Value],
    ) -> Result<DirectRows, NodeError> {
        self.selected(self.core.engine.select(snapshot, select, params))
    }

    /// The same from a table of a snapshot.
    pub fn select_from(
        &self,
        table: &Arc<Table>,
        select: &Select,
        params: &[cachesql_types::Value],
    ) -> Result<DirectRows, NodeError> {
        self.selected(self.core.engine.select_from(table, select, params))
    }

    fn selected(&self, rows: Result<DirectRows, SqlError>) -> Result<DirectRows, NodeError> {
        match rows {
            Ok(rows) => {
                self.core.counters.reads_direct.inc();
                rows.touch(|| self.core.clock.now_ms());
                Ok(rows)
            }
            Err(error) => self.core.counted(Err(sql_error(error))),
        }
    }

    /// Plans a statement without running it: its kind, its parameters and the columns of its answer.
    pub fn prepare(
        &self,
        snapshot: &GroupSnapshot,
        sql: &str,
        types: &[Option<cachesql_types::DataType>],
    ) -> Result<Arc<Prepared>, NodeError> {
        self.core.counted(self.core.engine.prepare(snapshot, sql, types).map_err(sql_error))
    }

    /// Which path would serve a statement, and which index.
    pub async fn explain(&self, sql: &str) -> Result<Explanation, NodeError> {
        let snapshot = self.core.snapshot();
        self.core.counted(self.core.engine.explain(&snapshot, sql).await.map_err(sql_error))
    }

    /// Runs one statement.
    pub async fn sql(&self, statement: Statement, options: &RequestOptions) -> Result<SqlAnswer, NodeError> {
        self.core.counted(self.run_statement(statement, options).await)
    }

    async fn run_statement(&self, statement: Statement, options: &RequestOptions) -> Result<SqlAnswer, NodeError> {
        let snapshot = self.snapshot_as_new(&options.consistency).await?;
        let prepared = self.core.engine.prepare(&snapshot, &statement.sql, &[]).map_err(sql_error)?;
        if is_read(prepared.kind()) {
            return self.read(&snapshot, &prepared, &statement).await;
        }
        let key = request_key(options, || format!("{:?}", (&statement.sql, &statement.params)))?;
        let written = self.mutate(Mutation::Statements(Arc::new(vec![statement])), key).await?;
        let outcome =
            written.outcomes.first().ok_or_else(|| NodeError::Internal("a write without an outcome".into()))?;
        Ok(self.sql_answer(&written, outcome))
    }

    async fn read(
        &self,
        snapshot: &GroupSnapshot,
        prepared: &Prepared,
        statement: &Statement,
    ) -> Result<SqlAnswer, NodeError> {
        let rows = self.core.engine.query(snapshot, prepared, &statement.params).await.map_err(sql_error)?;
        match &rows {
            Rows::Direct(direct) => {
                self.core.counters.reads_direct.inc();
                direct.touch(|| self.core.clock.now_ms());
            }
            Rows::Stream(_) => {
                self.core.counters.reads_datafusion.inc();
            }
        }
        Ok(SqlAnswer {
            columns: rows.shared_columns(),
            rows: Some(rows),
            affected: None,
            token: self.core.token(snapshot.index()),
            served_by: self.core.name.clone(),
            age: self.age(),
            replayed: false,
        })
    }

    fn sql_answer(&self, written: &Written, outcome: &Outcome) -> SqlAnswer {
        SqlAnswer {
            columns: outcome.columns(),
            rows: outcome.rows(),
            affected: outcome.affected,
            token: self.core.token(written.index),
            served_by: self.core.name.clone(),
            age: self.age(),
            replayed: written.replayed,
        }
    }

    /// Runs several statements, all or nothing; each sees what the ones before it did, and nobody else sees half of it.
    pub async fn batch(&self, statements: Vec<Statement>, options: &RequestOptions) -> Result<BatchAnswer, NodeError> {
        self.core.counted(self.run_batch(statements, options).await)
    }

    async fn run_batch(&self, statements: Vec<Statement>, options: &RequestOptions) -> Result<BatchAnswer, NodeError> {
        if statements.len() > limits::MAX_BATCH_STATEMENTS {
            let most = limits::MAX_BATCH_STATEMENTS;
            return Err(NodeError::BatchTooLong { statements: statements.len(), most });
        }
        let snapshot = self.snapshot_as_new(&options.consistency).await?;
        // A statement that cannot be prepared yet may need what one before it creates: the writer will see.
        let prepare =
            |s: &Statement| self.core.engine.prepare(&snapshot, &s.sql, &[]).ok().filter(|p| is_read(p.kind()));
        if let Some(reads) = statements.iter().map(prepare).collect::<Option<Vec<_>>>() {
            let mut answers = Vec::with_capacity(reads.len());
            for (prepared, statement) in reads.iter().zip(&statements) {
                answers.push(self.read(&snapshot, prepared, statement).await?);
            }
            return Ok(BatchAnswer { answers, token: self.core.token(snapshot.index()) });
        }
        let content = || format!("{:?}", statements.iter().map(|s| (&s.sql, &s.params)).collect::<Vec<_>>());
        let key = request_key(options, content)?;
        let written = self.mutate(Mutation::Statements(Arc::new(statements)), key).await?;
        let answers = written.outcomes.iter().map(|outcome| self.sql_answer(&written, outcome)).collect();
        Ok(BatchAnswer { answers, token: self.core.token(written.index) })
    }

    /// Runs a typed write. `seen` is the snapshot that its column positions were taken from: when the table has another
    /// shape by the time its turn comes, it is refused.
    pub async fn write(
        &self,
        seen: &GroupSnapshot,
        write: Write,
        options: &RequestOptions,
    ) -> Result<WriteAnswer, NodeError> {
        self.core.counted(self.run_write(seen, write, options).await)
    }

    async fn run_write(
        &self,
        seen: &GroupSnapshot,
        write: Write,
        options: &RequestOptions,
    ) -> Result<WriteAnswer, NodeError> {
        let schema = find_table(seen, table_of(&write))?.schema().clone();
        let key = request_key(options, || format!("{write:?}"))?;
        self.mutate_one(Mutation::Typed(Arc::new(write), Shape::Here(schema)), key).await
    }

    /// Makes a change of one outcome.
    pub(crate) async fn mutate_one(
        &self,
        mutation: Mutation,
        key: Option<RequestKey>,
    ) -> Result<WriteAnswer, NodeError> {
        let written = self.mutate(mutation, key).await?;
        Ok(WriteAnswer {
            affected: written.affected(),
            returning: written.outcomes.first().and_then(Outcome::rows),
            token: self.core.token(written.index),
            replayed: written.replayed,
        })
    }

    /// Loads a table from its source; by difference when it has rows.
    pub async fn load(&self, table: &str) -> Result<LoadReport, NodeError> {
        let done = self.core.counted(self.command(Command::Load(table.to_owned())).await)?;
        match done {
            Done::Loaded(report) => Ok(report),
            other => other.unexpected(),
        }
    }

    /// Loads every table that has a source, by difference; how many those are. All are tried; the first failure is told.
    pub async fn refresh_all(&self) -> Result<u64, NodeError> {
        match self.core.counted(self.command(Command::Refresh).await)? {
            Done::Refreshed(tables, _) => Ok(tables),
            other => other.unexpected(),
        }
    }

    /// Says how long rows may be left alone before they are removed; `None` for as long as they like.
    pub async fn set_ttl(&self, table: &str, ttl: Option<Duration>) -> Result<Token, NodeError> {
        let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.set(Mutation::Retention { table: table.to_owned(), ttl_ms: Some(ttl_ms), max_rows: None }).await
    }

    /// Says how many rows a table may keep; `None` for as many as come.
    pub async fn set_max_rows(&self, table: &str, max_rows: Option<u64>) -> Result<Token, NodeError> {
        self.set(Mutation::Retention { table: table.to_owned(), ttl_ms: None, max_rows: Some(max_rows) }).await
    }

    async fn set(&self, mutation: Mutation) -> Result<Token, NodeError> {
        let written = self.core.counted(self.mutate(mutation, None).await)?;
        Ok(self.core.token(written.index))
    }

    /// Removes the rows of a table that are too old or too many now; how many those were.
    pub async fn clean(&self, table: &str) -> Result<u64, NodeError> {
        match self.core.counted(self.command(Command::Clean(table.to_owned())).await)? {
            Done::Cleaned(rows, _) => Ok(rows),
            other => other.unexpected(),
        }
    }

    /// Removes all rows of a table; how many those were.
    pub async fn truncate(&self, table: &str) -> Result<u64, NodeError> {
        let outcome = self.mutate(Mutation::Truncate(table.to_owned()), None).await;
        self.core.counted(outcome).map(|written| written.affected())
    }

    /// Gives back the memory of rows that are gone; how many rows the table has.
    pub async fn compact(&self, table: &str) -> Result<u64, NodeError> {
        self.core.counted(self.mutate(Mutation::Compact(table.to_owned()), None).await)?;
        self.core.counted(self.core.table(table)).map(|table| table.row_count())
    }

    /// How its group is doing; `None` when it is in none of several members.
    pub fn group_status(&self) -> Option<GroupStatus> {
        self.log.status()
    }

    /// Which tables are where, as it is configured.
    pub fn routes(&self) -> Arc<Routes> {
        self.configured.load().routes.clone()
    }

    /// How old the rows that it answers from may be: since when they are known to have been the newest. `None` when that was never
    /// known.
    pub fn age(&self) -> Option<Duration> {
        if !self.has_others {
            return Some(Duration::ZERO);
        }
        self.log.fresh_since().map(|since| since.elapsed())
    }

    /// Takes a node out of its group.
    pub async fn take_out(&self, node: &str) -> Result<(), NodeError> {
        self.core.counted(self.log.change_members(MembersChange::Leave(node.to_owned())).await)
    }

    /// Has another node lead its group.
    pub async fn hand_over(&self, node: &str) -> Result<(), NodeError> {
        self.core.counted(self.log.change_members(MembersChange::Lead(node.to_owned())).await)
    }

    /// What the tables take.
    pub fn memory(&self) -> MemoryReport {
        MemoryReport::of(&self.core.snapshot(), self.core.memory_bytes)
    }

    /// What is counted.
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Writes what is counted and measured as OpenMetrics families, without the `# EOF` that ends an exposition.
    pub fn metrics_into(&self, out: &mut String) -> fmt::Result {
        let snapshot = self.core.snapshot();
        let measured = MeasuredState {
            snapshot: &snapshot,
            group: self.log.status(),
            age: self.age(),
            memory_limit_bytes: self.core.memory_bytes,
            cache_hits: self.core.engine.cache_hits(),
            cache_misses: self.core.engine.cache_misses(),
        };
        self.core.counters.write(&measured, out)
    }

    /// The original CacheSQL's operations.
    pub fn original(&self) -> Original<'_> {
        Original::new(self)
    }
}

impl Drop for Node {
    // Without a shutdown nobody waits, but nothing runs on for ever: the writer ends with its last handle.
    fn drop(&mut self) {
        self.feeders.stop();
    }
}

fn is_read(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::Read | StatementKind::Explain)
}

/// The key of a request that has an id; `content` is everything that makes it what it is.
pub(crate) fn request_key(
    options: &RequestOptions,
    content: impl FnOnce() -> String,
) -> Result<Option<RequestKey>, NodeError> {
    options.request_id.as_deref().map(|id| RequestKey::new(id, &content())).transpose()
}
