//! Statements that never end are stopped from inside: operators look at the clock.
//!
//! DataFusion's operators loop for as long as their inputs have rows and nothing passes their filter, and a task that does
//! not come back to its scheduler can neither be cancelled nor told the time. So every operator that may hand on more, or
//! later, than it takes is watched: between batches, and within a nested-loop join's filter, which is tried on one batch at a
//! time. What functions make of rows is counted from one batch to the next, too: see `bounded`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};

use super::bounded::begin_batch;
use super::scan::TableScan;
use crate::error::SqlError;

/// Batches after which a watched operator lets other tasks run.
const BATCHES_PER_TURN: u32 = 16;

/// When a statement must have ended. Shared by all that works for it.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
    abandoned: AtomicBool,
}

impl Deadline {
    pub(crate) fn new(limit: Duration) -> Arc<Deadline> {
        Arc::new(Deadline { at: Instant::now() + limit, limit, abandoned: AtomicBool::new(false) })
    }

    /// When it is.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        if self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.at {
            return Err(DataFusionError::External(Box::new(SqlError::Timeout { limit: self.limit })));
        }
        Ok(())
    }
}

/// The plan with its operators watched.
pub(crate) fn watched(plan: Arc<dyn ExecutionPlan>, deadline: &Arc<Deadline>) -> Result<Arc<dyn ExecutionPlan>> {
    let watch = |node: Arc<dyn ExecutionPlan>| {
        // These answer each batch with one, and at once.
        if node.is::<ProjectionExec>() || node.is::<FilterExec>() || node.is::<TableScan>() {
            return Ok(Transformed::no(node));
        }
        let node = match node.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) => with_watched_filter(join, deadline)?.unwrap_or(node),
            None => node,
        };
        let watched: Arc<dyn ExecutionPlan> = Arc::new(Watched { input: node, deadline: deadline.clone() });
        Ok(Transformed::yes(watched))
    };
    plan.transform_up(watch).map(|done| done.data)
}

fn with_watched_filter(join: &NestedLoopJoinExec, deadline: &Arc<Deadline>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = join.filter() else { return Ok(None) };
    let expression = Arc::new(WatchedFilter { inner: filter.expression().clone(), deadline: deadline.clone() });
    let filter = JoinFilter::new(expression, filter.column_indices().to_vec(), filter.schema().clone());
    let builder = NestedLoopJoinExecBuilder::new(join.left().clone(), join.right().clone(), *join.join_type());
    let watched = builder.with_filter(Some(filter)).with_projection_ref(join.projection().clone()).build()?;
    Ok(Some(Arc::new(watched)))
}

/// An operator whose batches are counted against the clock.
#[derive(Debug)]
struct Watched {
    input: Arc<dyn ExecutionPlan>,
    deadline: Arc<Deadline>,
}

impl DisplayAs for Watched {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl ExecutionPlan for Watched {
    fn name(&self) -> &'static str {
        "Watched"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else { return Ok(self) };
        Ok(Arc::new(Watched { input, deadline: self.deadline.clone() }))
    }

    #[allow(deprecated)] // Required still, though `replace_children` took its place.
    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else { return Ok(self) };
        Ok(Arc::new(Watched { input, deadline: self.deadline.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(WatchedStream { input, deadline: self.deadline.clone(), batches: 0 }))
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs.first().cloned().unwrap_or_else(|| Arc::new(Statistics::new_unknown(&self.schema()))))
    }
}

struct WatchedStream {
    input: SendableRecordBatchStream,
    deadline: Arc<Deadline>,
    batches: u32,
}

impl Stream for WatchedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Err(error) = this.deadline.check() {
            return Poll::Ready(Some(Err(error)));
        }
        if this.batches >= BATCHES_PER_TURN {
            this.batches = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        begin_batch();
        let next = ready!(this.input.poll_next_unpin(context));
        begin_batch();
        this.batches += 1;
        Poll::Ready(next)
    }
}

impl RecordBatchStream for WatchedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// A join's filter that looks at the clock each time that it is tried.
#[derive(Debug)]
struct WatchedFilter {
    inner: Arc<dyn PhysicalExpr>,
    deadline: Arc<Deadline>,
}

impl PartialEq for WatchedFilter {
    fn eq(&self, other: &WatchedFilter) -> bool {
        *self.inner == *other.inner
    }
}

impl Eq for WatchedFilter {}

impl Hash for WatchedFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for WatchedFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for WatchedFilter {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.deadline.check()?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(inner) = children.into_iter().next() else { return Ok(self) };
        Ok(Arc::new(WatchedFilter { inner, deadline: self.deadline.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
