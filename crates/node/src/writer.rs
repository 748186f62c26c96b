//! The one place where rows change. All writes go through it, one after the other, each in five steps:
//!
//! 1. plan: what was asked for becomes row operations, against the newest snapshot;
//! 2. rehearse: the operations are applied to that snapshot in private; a refusal ends the write here, with nothing logged;
//! 3. log: the operations take their position in the group's log;
//! 4. publish: the rehearsed snapshot becomes the newest;
//! 5. answer, with the position.
//!
//! Planning happens in turn, so two updates never work from the same old row. Readers take no part in any of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use cachesql_sql::{BatchAnswer, BatchStatement, Engine};
use cachesql_table::{Applied, GroupSnapshot, Operation};
use cachesql_types::{LogIndex, limits};
use futures::FutureExt as _;
use tokio::sync::{mpsc, oneshot};

use crate::core::{Core, sql_error};
use crate::error::NodeError;
use crate::log::{Entry, Log};
use crate::outcome::Outcome;
use crate::remembered::{RequestKey, RequestMemory};
use crate::request::Statement;

/// Operations and what to answer once they are applied.
pub(crate) struct Planned {
    pub(crate) operations: Vec<Operation>,
    /// `None`: one outcome, of as many rows as applying counts.
    pub(crate) outcomes: Option<Vec<Outcome>>,
}

impl Planned {
    /// Operations whose outcome is the number of rows that applying them counts.
    pub(crate) fn counted(operations: Vec<Operation>) -> Planned {
        Planned { operations, outcomes: None }
    }
}

type MakePlan = Box<dyn FnOnce(&Engine, &GroupSnapshot) -> Result<Planned, NodeError> + Send>;

/// How a write becomes operations, when its turn comes.
pub(crate) enum Plan {
    /// SQL, in order, each seeing what the ones before it did.
    Statements(Vec<Statement>),
    /// A computation that is over in microseconds.
    Quick(MakePlan),
    /// A computation that may take long, and runs where blocking is allowed.
    Long(MakePlan),
}

impl Plan {
    pub(crate) fn quick(
        make: impl FnOnce(&Engine, &GroupSnapshot) -> Result<Planned, NodeError> + Send + 'static,
    ) -> Plan {
        Plan::Quick(Box::new(make))
    }

    pub(crate) fn long(
        make: impl FnOnce(&Engine, &GroupSnapshot) -> Result<Planned, NodeError> + Send + 'static,
    ) -> Plan {
        Plan::Long(Box::new(make))
    }

    /// A computation that may look at every row of a table of so many.
    pub(crate) fn looking_at(
        rows: u64,
        make: impl FnOnce(&Engine, &GroupSnapshot) -> Result<Planned, NodeError> + Send + 'static,
    ) -> Plan {
        if rows <= limits::INLINE_SCAN_ROWS { Plan::quick(make) } else { Plan::long(make) }
    }

    /// Operations that are known already.
    pub(crate) fn operations(operations: Vec<Operation>) -> Plan {
        Plan::quick(move |_, _| Ok(Planned::counted(operations)))
    }
}

/// A write that was applied.
#[derive(Clone)]
pub(crate) struct Written {
    /// Its position; for a write that changed nothing, the position of what it saw.
    pub(crate) index: LogIndex,
    pub(crate) outcomes: Arc<Vec<Outcome>>,
    /// True when the answer is an earlier one's.
    pub(crate) replayed: bool,
}

impl Written {
    /// Rows written, over all statements.
    pub(crate) fn affected(&self) -> u64 {
        self.outcomes.iter().filter_map(|o| o.affected).fold(0, u64::saturating_add)
    }
}

struct Job {
    plan: Plan,
    request: Option<RequestKey>,
    reply: oneshot::Sender<Result<Written, NodeError>>,
}

enum Message {
    Write(Job),
    /// Nothing is accepted any more; what waits is still served.
    Close,
}

/// A handle to the writer.
#[derive(Clone)]
pub(crate) struct Writer(mpsc::Sender<Message>);

impl Writer {
    /// Makes a writer and the task that is it. The task ends when it was closed, or every handle is gone, and the queue is
    /// empty.
    pub(crate) fn new(core: Arc<Core>, log: Arc<dyn Log>) -> (Writer, impl Future<Output = ()> + Send) {
        let (sender, messages) = mpsc::channel(limits::WRITE_QUEUE);
        let task = WriterTask { core, log, messages, remembered: RequestMemory::default(), fenced: None };
        (Writer(sender), task.run())
    }

    /// Hands a write over and waits for its outcome. Once its turn has come it runs to its end, also when the caller leaves.
    pub(crate) async fn write(&self, plan: Plan, request: Option<RequestKey>) -> Result<Written, NodeError> {
        let (reply, outcome) = oneshot::channel();
        self.0.try_send(Message::Write(Job { plan, request, reply })).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => NodeError::Busy { what: "writes" },
            mpsc::error::TrySendError::Closed(_) => NodeError::Shutdown,
        })?;
        outcome.await.map_err(|_| NodeError::Shutdown)?
    }

    /// Accepts no more writes, and lets the task end once those that wait are served.
    pub(crate) async fn close(&self) {
        // It is closed already when the message finds nobody.
        let _ = self.0.send(Message::Close).await;
    }

    /// Applies operations that are known already.
    pub(crate) async fn apply(&self, operations: Vec<Operation>) -> Result<Written, NodeError> {
        self.write(Plan::operations(operations), None).await
    }
}

struct WriterTask {
    core: Arc<Core>,
    log: Arc<dyn Log>,
    messages: mpsc::Receiver<Message>,
    remembered: RequestMemory,
    /// Set when the log and the published snapshot no longer agree; every later write is refused with it.
    fenced: Option<String>,
}

impl WriterTask {
    async fn run(mut self) {
        while let Some(message) = self.messages.recv().await {
            let Message::Write(job) = message else {
                self.messages.close();
                continue;
            };
            // Its caller left before its turn came: nobody was told anything, and nothing has happened.
            if job.reply.is_closed() {
                continue;
            }
            // All state is immutable and published last, so a panic on the way leaves nothing half done.
            let outcome = AssertUnwindSafe(self.serve(job.plan, job.request)).catch_unwind().await;
            let outcome =
                outcome.unwrap_or_else(|_| Err(NodeError::Internal("a write panicked; it was not applied".into())));
            if let Err(NodeError::Fenced(reason)) = &outcome
                && self.fenced.is_none()
            {
                tracing::error!(reason, "the writer has fenced itself");
                self.fenced = Some(reason.clone());
            }
            // The caller may have left meanwhile; a retry with its request id finds the outcome.
            let _ = job.reply.send(outcome);
        }
    }

    async fn serve(&mut self, plan: Plan, request: Option<RequestKey>) -> Result<Written, NodeError> {
        if let Some(reason) = &self.fenced {
            return Err(NodeError::Fenced(reason.clone()));
        }
        if let Some(key) = &request
            && let Some(earlier) = self.remembered.find(key)?
        {
            return Ok(Written { index: earlier.index, outcomes: earlier.outcomes, replayed: true });
        }
        let newest = self.core.snapshot();
        let planned = self.plan(plan, &newest).await?;
        let (index, applied) = match planned.operations.is_empty() {
            true => (newest.index(), Vec::new()),
            false => self.commit(newest, planned.operations, request.clone()).await?,
        };
        let outcomes = planned.outcomes.unwrap_or_else(|| {
            let rows = applied.iter().map(|a| a.rows).fold(0, u64::saturating_add);
            vec![Outcome::written(rows, None)]
        });
        let written = Written { index, outcomes: Arc::new(outcomes), replayed: false };
        self.core.counters.written(written.affected());
        if let Some(key) = request {
            self.remembered.remember(key, index, written.outcomes.clone());
        }
        Ok(written)
    }

    async fn plan(&self, plan: Plan, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        match plan {
            Plan::Statements(statements) => self.plan_statements(statements, newest).await,
            Plan::Quick(make) => make(&self.core.engine, newest),
            Plan::Long(make) => {
                let (core, newest) = (self.core.clone(), newest.clone());
                unblocked(move || make(&core.engine, &newest)).await?
            }
        }
    }

    async fn plan_statements(&self, statements: Vec<Statement>, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        let engine = &self.core.engine;
        if let [only] = statements.as_slice() {
            let prepared = engine.prepare(newest, &only.sql, &[]).map_err(sql_error)?;
            let plan = engine.plan_write(newest, &prepared, &only.params).await.map_err(sql_error)?;
            let outcome = Outcome::written(plan.affected, plan.returning);
            return Ok(Planned { operations: plan.operations, outcomes: Some(vec![outcome]) });
        }
        let batch: Vec<BatchStatement> =
            statements.into_iter().map(|s| BatchStatement { sql: s.sql, params: s.params }).collect();
        let plan = engine.plan_batch(newest, &batch).await.map_err(sql_error)?;
        let mut outcomes = Vec::with_capacity(plan.answers.len());
        for answer in plan.answers {
            outcomes.push(match answer {
                BatchAnswer::Written { affected, returning } => Outcome::written(affected, returning),
                BatchAnswer::Rows(rows) => Outcome::read(rows, self.core.statement_memory_bytes).await?,
            });
        }
        Ok(Planned { operations: plan.operations, outcomes: Some(outcomes) })
    }

    /// Steps 2 to 4.
    async fn commit(
        &self,
        newest: GroupSnapshot,
        operations: Vec<Operation>,
        request: Option<RequestKey>,
    ) -> Result<(LogIndex, Vec<Applied>), NodeError> {
        let index = newest.index().next();
        let entry = Entry { request, operations: Arc::new(operations) };
        let used_bytes = newest.memory().total();
        let (next, applied) = rehearse(newest, index, entry.operations.clone()).await?;
        self.admit(&entry.operations, used_bytes, next.memory().total())?;
        let logged = self.log.append(&entry).await?;
        if logged != index {
            return Err(NodeError::Fenced(format!("the log gave position {logged} to a write rehearsed at {index}")));
        }
        self.core.publish(next);
        Ok((index, applied))
    }

    /// Refuses operations that would bring rows and take the node past its memory limit. Those that take rows away always
    /// pass: marking rows deleted costs a few bytes, and is the way back below the limit.
    fn admit(&self, operations: &[Operation], used_bytes: u64, next_bytes: u64) -> Result<(), NodeError> {
        let limit_bytes = self.core.memory_bytes;
        if next_bytes <= limit_bytes || next_bytes <= used_bytes || !operations.iter().any(brings_rows) {
            return Ok(());
        }
        let needed_bytes = next_bytes.saturating_sub(limit_bytes);
        Err(NodeError::MemoryLimit { what: "the write".into(), needed_bytes, used_bytes, limit_bytes })
    }
}

/// Applies operations to a snapshot in private; many of them where blocking is allowed.
async fn rehearse(
    newest: GroupSnapshot,
    index: LogIndex,
    operations: Arc<Vec<Operation>>,
) -> Result<(GroupSnapshot, Vec<Applied>), NodeError> {
    if is_small(&operations) {
        return Ok(newest.apply(index, &operations)?);
    }
    Ok(unblocked(move || newest.apply(index, &operations)).await??)
}

/// Runs a computation that may take long on a thread where that harms nobody.
pub(crate) async fn unblocked<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, NodeError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|failed| NodeError::Internal(format!("a computation broke off: {failed}")))
}

fn is_small(operations: &[Operation]) -> bool {
    let mut rows = 0_usize;
    for operation in operations {
        rows = rows.saturating_add(match operation {
            Operation::Put { rows, .. } => rows.len(),
            Operation::Delete { keys, .. } => keys.len(),
            Operation::CreateTable { .. }
            | Operation::DropTable { .. }
            | Operation::DropIndex { .. }
            | Operation::SetRetention { .. }
            | Operation::BeginLoad { .. } => 1,
            _ => return false,
        });
    }
    rows <= limits::INLINE_APPLY_ROWS
}

fn brings_rows(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Put { .. }
            | Operation::CreateTable { .. }
            | Operation::CreateIndex { .. }
            | Operation::LoadRows { .. }
            | Operation::FinishLoad { .. }
    )
}
