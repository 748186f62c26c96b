//! The one place where rows change. All writes go through it, one after the other, each in five steps:
//!
//! 1. plan: what was asked for becomes row operations, against the newest snapshot;
//! 2. rehearse: the operations are applied to that snapshot in private; a refusal ends the write here, with nothing logged;
//! 3. log: the operations take their position in the group's log, together with those of others that have come meanwhile;
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
use crate::entry::{Answered, Entry, Packed, Place};
use crate::error::NodeError;
use crate::flight::{Flight, Reply};
use crate::log::Log;
use crate::outcome::Outcome;
use crate::remembered::RequestKey;
use crate::request::Statement;
use crate::state::{Rehearsed, State};

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

    /// True for what the node itself looked for and did not find: rows to refresh or to remove. A caller's write that finds
    /// nothing is agreed on all the same, since what it saw has to be.
    fn is_nothing(&self) -> bool {
        self.operations.is_empty() && self.outcomes.is_none()
    }
}

type MakePlan = Box<dyn FnOnce(&Engine, &GroupSnapshot) -> Result<Planned, NodeError> + Send>;

/// How a write becomes operations, when its turn comes.
pub(crate) enum Plan {
    /// SQL, in order, each seeing what the ones before it did.
    Statements(Arc<Vec<Statement>>),
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
    reply: Reply,
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
    /// empty. `seed` tells its runs from those of every other writer of the group.
    pub(crate) fn new(
        core: Arc<Core>,
        state: Arc<State>,
        log: Arc<dyn Log>,
        seed: u64,
    ) -> (Writer, impl Future<Output = ()> + Send) {
        let (sender, messages) = mpsc::channel(limits::WRITE_QUEUE);
        let flight = Flight::new(core.clone());
        let run = Run { is_open: false, number: 0, last: Place::default(), head: GroupSnapshot::empty() };
        let (planned, planned_bytes) = (Vec::new(), 0);
        let task =
            WriterTask { core, state, log, messages, flight, planned, planned_bytes, run, next_run: seed.max(1) };
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
    state: Arc<State>,
    log: Arc<dyn Log>,
    messages: mpsc::Receiver<Message>,
    flight: Flight,
    /// Writes that are planned, and not proposed yet.
    planned: Vec<Packed>,
    planned_bytes: usize,
    run: Run,
    next_run: u64,
}

/// Writes that are planned on top of each other.
struct Run {
    /// False before the first, and once one of them was lost.
    is_open: bool,
    /// Tells it from every other run of the group.
    number: u64,
    /// The place of the newest of them; of the write that they began from, before the first.
    last: Place,
    /// The rows as that write leaves them.
    head: GroupSnapshot,
}

impl Run {
    fn next_place(&self) -> Place {
        let step = if self.last.run == self.number { self.last.step.saturating_add(1) } else { 1 };
        Place { run: self.number, step }
    }
}

/// What a write has come to, once it is planned.
enum Ready {
    /// It waits to be proposed, and these are its outcomes if it is agreed on.
    Packed(Packed, GroupSnapshot, Arc<Vec<Outcome>>),
    /// There is nothing to agree on.
    Nothing,
}

impl WriterTask {
    async fn run(mut self) {
        loop {
            if !self.planned.is_empty() && (self.flight.is_quiet() || self.is_full() && self.flight.has_room()) {
                self.propose().await;
            }
            let message = tokio::select! {
                biased;
                () = self.flight.landing() => continue,
                message = self.messages.recv(), if !self.is_full() => message,
            };
            let Some(message) = message else { break };
            self.take(message).await;
            // What has come by now is proposed together.
            while !self.is_full()
                && let Ok(message) = self.messages.try_recv()
            {
                self.take(message).await;
            }
        }
        self.propose().await;
        self.flight.landed().await;
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Close => self.messages.close(),
            Message::Write(job) => self.serve(job).await,
        }
    }

    /// Whether nothing can be put into the next proposal any more.
    fn is_full(&self) -> bool {
        self.planned.len() >= limits::PROPOSAL_WRITES || self.planned_bytes >= limits::PROPOSAL_BYTES
    }

    async fn serve(&mut self, Job { plan, request, reply }: Job) {
        // Its caller left before its turn came: nobody was told anything, and nothing has happened.
        if reply.is_closed() {
            return;
        }
        // Before it is known what the group agreed on, nobody can say that a request is new.
        if let Err(error) = self.open_run().await {
            return drop(reply.send(Err(error)));
        }
        let earlier = request.as_ref().map_or(Ok(None), |key| self.earlier(key));
        let reply = match (earlier, &request) {
            // The caller may have left meanwhile; a retry with its request id finds the outcome.
            (Ok(Some(written)), _) => return drop(reply.send(Ok(written))),
            (Err(error), _) => return drop(reply.send(Err(error))),
            (Ok(None), None) => reply,
            (Ok(None), Some(key)) => match self.flight.join(key, reply) {
                Some(reply) => reply,
                None => return,
            },
        };
        // All state is immutable and published last, so a panic on the way leaves nothing half done.
        let ready = AssertUnwindSafe(self.prepare(plan, request.clone())).catch_unwind().await;
        match ready {
            Ok(Ok(Ready::Packed(packed, next, outcomes))) => self.add(packed, next, outcomes, request, reply).await,
            Ok(Ok(Ready::Nothing)) => {
                let outcomes = Arc::new(vec![Outcome::written(0, None)]);
                drop(reply.send(Ok(Written { index: self.state.index(), outcomes, replayed: false })));
            }
            Ok(Err(error)) => drop(reply.send(Err(error))),
            Err(_) => drop(reply.send(Err(NodeError::Internal("a write panicked; it was not applied".into())))),
        }
    }

    /// Puts a write into the next proposal, and proposes those before it first where they do not go together.
    async fn add(
        &mut self,
        packed: Packed,
        next: GroupSnapshot,
        outcomes: Arc<Vec<Outcome>>,
        key: Option<RequestKey>,
        reply: Reply,
    ) {
        let bytes = packed.bytes.len();
        if !self.planned.is_empty() && self.planned_bytes.saturating_add(bytes) > limits::PROPOSAL_BYTES {
            self.propose().await;
            if !self.run.is_open || self.flight.is_broken() {
                return drop(reply.send(Err(NodeError::Superseded)));
            }
        }
        let (place, answered) = (packed.entry.place, packed.entry.answered.clone());
        self.state.expect(Rehearsed { place, snapshot: next.clone(), answered });
        self.run.last = place;
        self.run.head = next;
        let may_ride = packed.entry.operations.iter().all(Operation::changes_rows_only);
        self.planned_bytes = if may_ride { self.planned_bytes.saturating_add(bytes) } else { limits::PROPOSAL_BYTES };
        self.planned.push(packed);
        self.flight.board(outcomes, key, reply);
    }

    /// Step 3, for all that are planned.
    async fn propose(&mut self) {
        let writes = std::mem::take(&mut self.planned);
        self.planned_bytes = 0;
        if writes.is_empty() {
            return;
        }
        // They are planned on what was lost.
        if self.flight.is_broken() {
            return self.flight.turn_away(&NodeError::Superseded);
        }
        let bytes = writes.iter().map(|write| write.bytes.len()).fold(0, usize::saturating_add);
        match self.log.submit(writes).await {
            Ok(submitted) => self.flight.take_off(submitted, bytes),
            Err(error) => {
                // Where the log took nothing, nothing that comes may be planned on it.
                self.run.is_open = false;
                self.flight.turn_away(&error);
            }
        }
    }

    /// What an earlier request with this key was answered.
    fn earlier(&self, key: &RequestKey) -> Result<Option<Written>, NodeError> {
        let Some(earlier) = self.state.remembered(key)? else { return Ok(None) };
        let outcomes = Outcome::decode(&earlier.outcomes);
        let outcomes = outcomes.map_err(|error| NodeError::Internal(format!("a remembered answer: {error}")))?;
        Ok(Some(Written { index: earlier.index, outcomes: Arc::new(outcomes), replayed: true }))
    }

    /// Steps 1 and 2.
    async fn prepare(&mut self, plan: Plan, request: Option<RequestKey>) -> Result<Ready, NodeError> {
        let head = self.run.head.clone();
        let planned = self.flight.beside(make_plan(&self.core, plan, &head)).await?;
        if planned.is_nothing() && request.is_none() {
            return Ok(Ready::Nothing);
        }
        let operations = Arc::new(planned.operations);
        // Whatever changes more than rows has a position of its own.
        if !operations.iter().all(Operation::changes_rows_only) {
            self.propose().await;
            if !self.run.is_open {
                return Err(NodeError::Superseded);
            }
        }
        let is_first = self.planned.is_empty();
        let (next, applied) = self.flight.beside(rehearse(head.clone(), operations.clone(), is_first)).await?;
        self.admit(&operations, head.memory().total(), next.memory().total())?;
        if self.flight.is_broken() {
            return Err(NodeError::Superseded);
        }
        let outcomes = planned.outcomes.unwrap_or_else(|| {
            let rows = applied.iter().map(|a| a.rows).fold(0, u64::saturating_add);
            vec![Outcome::written(rows, None)]
        });
        let answered = request.map(|key| Answered { key, outcomes: Outcome::encode(&outcomes) });
        let (place, after) = (self.run.next_place(), self.run.last);
        let packed = self.log.pack(Entry { place, after, answered, operations })?;
        Ok(Ready::Packed(packed, next, Arc::new(outcomes)))
    }

    /// Makes sure that there are rows to plan writes on: those that the writes on their way will leave, or, where there is none or one
    /// was lost, those that the group has agreed on.
    async fn open_run(&mut self) -> Result<(), NodeError> {
        if self.run.is_open && !self.flight.is_broken() {
            return Ok(());
        }
        self.run.is_open = false;
        self.planned_bytes = 0;
        if !std::mem::take(&mut self.planned).is_empty() {
            self.flight.turn_away(&NodeError::Superseded);
        }
        self.flight.landed().await;
        if let Some(reason) = self.flight.fenced() {
            return Err(NodeError::Fenced(reason.clone()));
        }
        self.state.expect_nothing();
        self.log.lead().await?;
        let (head, after) = self.state.newest();
        let number = self.next_run;
        self.next_run = self.next_run.wrapping_add(1);
        self.run = Run { is_open: true, head, last: after, number };
        Ok(())
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

async fn make_plan(core: &Arc<Core>, plan: Plan, head: &GroupSnapshot) -> Result<Planned, NodeError> {
    match plan {
        Plan::Statements(statements) => plan_statements(core, Arc::unwrap_or_clone(statements), head).await,
        Plan::Quick(make) => make(&core.engine, head),
        Plan::Long(make) => {
            let (core, head) = (core.clone(), head.clone());
            unblocked(move || make(&core.engine, &head)).await?
        }
    }
}

async fn plan_statements(core: &Core, statements: Vec<Statement>, head: &GroupSnapshot) -> Result<Planned, NodeError> {
    let engine = &core.engine;
    if let [only] = statements.as_slice() {
        let prepared = engine.prepare(head, &only.sql, &[]).map_err(sql_error)?;
        let plan = engine.plan_write(head, &prepared, &only.params).await.map_err(sql_error)?;
        let outcome = Outcome::written(plan.affected, plan.returning);
        return Ok(Planned { operations: plan.operations, outcomes: Some(vec![outcome]) });
    }
    let batch: Vec<BatchStatement> =
        statements.into_iter().map(|s| BatchStatement { sql: s.sql, params: s.params }).collect();
    let plan = engine.plan_batch(head, &batch).await.map_err(sql_error)?;
    let mut outcomes = Vec::with_capacity(plan.answers.len());
    for answer in plan.answers {
        outcomes.push(match answer {
            BatchAnswer::Written { affected, returning } => Outcome::written(affected, returning),
            BatchAnswer::Rows(rows) => Outcome::read(rows, core.statement_memory_bytes).await?,
        });
    }
    Ok(Planned { operations: plan.operations, outcomes: Some(outcomes) })
}

/// Applies operations to a snapshot in private; many of them where blocking is allowed. `is_first` says that they are the first of
/// their proposal, which takes a position.
async fn rehearse(
    head: GroupSnapshot,
    operations: Arc<Vec<Operation>>,
    is_first: bool,
) -> Result<(GroupSnapshot, Vec<Applied>), NodeError> {
    let is_small = is_small(&operations);
    let apply = move || match is_first {
        // Its real position is not known yet, and never lower.
        true => head.apply(head.index().next(), &operations),
        false => head.apply_more(&operations),
    };
    Ok(if is_small { apply()? } else { unblocked(apply).await?? })
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
