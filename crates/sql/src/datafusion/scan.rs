//! The physical scan of a table in one snapshot: chunk by chunk, or the rows that an index found.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type, SchemaRef};
use cachesql_table::{RowId, Table};
use cachesql_types::limits::CHUNK_ROWS;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};

use super::bounded::begin_batch;

/// How many streams a large table is read by.
const PARTITIONS: usize = 2;

/// A scan.
#[derive(Clone)]
pub(crate) struct TableScan {
    table: Arc<Table>,
    schema: SchemaRef,
    /// Positions of the table's columns, in the order of `schema`, without that of the row id.
    columns: Arc<[usize]>,
    rows: Rows,
    limit: Option<usize>,
    /// Where in `schema` the id of the row stands.
    row_id: Option<usize>,
    properties: Arc<PlanProperties>,
}

#[derive(Debug, Clone)]
enum Rows {
    Chunks(usize),
    Ids(Arc<[RowId]>),
}

impl TableScan {
    pub(crate) fn new(
        table: Arc<Table>,
        schema: SchemaRef,
        columns: Vec<usize>,
        ids: Option<Vec<RowId>>,
        limit: Option<usize>,
        row_id: Option<usize>,
    ) -> TableScan {
        let rows = match ids {
            Some(ids) => Rows::Ids(ids.into()),
            // Chunks do not say the ids of their rows.
            None if row_id.is_some() => Rows::Ids(table.rows().collect()),
            None => Rows::Chunks(table.chunk_count()),
        };
        let pieces = match &rows {
            Rows::Chunks(chunks) => *chunks,
            Rows::Ids(ids) => ids.len().div_ceil(CHUNK_ROWS),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(pieces.clamp(1, PARTITIONS)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        TableScan { table, schema, columns: columns.into(), rows, limit, row_id, properties: Arc::new(properties) }
    }

    fn partitions(&self) -> usize {
        self.properties.partitioning.partition_count()
    }

    /// Number of rows, when no limit cuts them.
    fn row_count(&self) -> usize {
        match &self.rows {
            Rows::Chunks(_) => usize::try_from(self.table.row_count()).unwrap_or(usize::MAX),
            Rows::Ids(ids) => ids.len(),
        }
    }

    /// How many pieces there are: chunks of the table, or as many of the ids.
    fn pieces(&self) -> usize {
        match &self.rows {
            Rows::Chunks(chunks) => *chunks,
            Rows::Ids(ids) => ids.len().div_ceil(CHUNK_ROWS),
        }
    }

    /// One piece; `None` for a chunk that has no rows any more.
    fn piece(&self, at: usize) -> Result<Option<RecordBatch>> {
        match &self.rows {
            Rows::Chunks(_) => match self.table.scan_chunk(at, Some(&self.columns)) {
                Some(batch) => self.shaped(&batch, &[]).map(Some),
                None => Ok(None),
            },
            Rows::Ids(ids) => {
                let from = at.saturating_mul(CHUNK_ROWS);
                let ids = ids.get(from..ids.len().min(from + CHUNK_ROWS)).unwrap_or_default();
                self.shaped(&self.table.gather(ids, Some(&self.columns)), ids).map(Some)
            }
        }
    }

    /// A batch of the table under the plan's names.
    fn shaped(&self, batch: &RecordBatch, ids: &[RowId]) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = batch.columns().iter().map(plain_floats).collect();
        if let Some(at) = self.row_id {
            arrays.insert(at.min(arrays.len()), Arc::new(ids.iter().map(|id| id.0).collect::<UInt32Array>()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?)
    }
}

/// SQL has one zero and one NaN; Arrow's kernels tell several apart.
fn plain_floats(array: &ArrayRef) -> ArrayRef {
    let plain64 = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
    let plain32 = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
    match array.data_type() {
        ArrowType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            let odd = floats.values().iter().any(|v| v.is_nan() || (*v == 0.0 && v.is_sign_negative()));
            if odd { Arc::new(floats.unary::<_, Float64Type>(plain64) as Float64Array) } else { array.clone() }
        }
        ArrowType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            let odd = floats.values().iter().any(|v| v.is_nan() || (*v == 0.0 && v.is_sign_negative()));
            if odd { Arc::new(floats.unary::<_, Float32Type>(plain32) as Float32Array) } else { array.clone() }
        }
        _ => array.clone(),
    }
}

impl fmt::Debug for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.table.schema().name;
        match &self.rows {
            Rows::Chunks(chunks) => write!(f, "TableScan: {table}, {chunks} chunks"),
            Rows::Ids(ids) => write!(f, "TableScan: {table}, {} rows by an index", ids.len()),
        }
    }
}

impl ExecutionPlan for TableScan {
    fn name(&self) -> &'static str {
        "TableScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    #[allow(deprecated)] // Required still, though nothing calls it: `replace_children` took its place.
    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let scan = self.clone();
        let step = self.partitions();
        let most = context.session_config().batch_size().max(1);
        let mut pieces = (partition..self.pieces()).step_by(step);
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut piece: Option<RecordBatch> = None;
        let batches = std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            begin_batch();
            let whole = match piece.take() {
                Some(rest) => rest,
                None => match pieces.find_map(|at| scan.piece(at).transpose())? {
                    Ok(batch) => batch,
                    Err(error) => return Some(Err(error)),
                },
            };
            let rows = whole.num_rows().min(left).min(most);
            left -= rows;
            if rows == whole.num_rows() {
                return Some(Ok(whole));
            }
            piece = Some(whole.slice(rows, whole.num_rows() - rows));
            Some(Ok(whole.slice(0, rows)))
        });
        let batches: Box<dyn Iterator<Item = Result<RecordBatch, DataFusionError>> + Send> = Box::new(batches);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(batches))))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        let rows = self.row_count();
        statistics.num_rows = match (args.partition(), self.limit) {
            (None, None) => Precision::Exact(rows),
            (None, Some(limit)) => Precision::Inexact(rows.min(limit)),
            (Some(_), _) => Precision::Inexact(rows / self.partitions()),
        };
        Ok(Arc::new(statistics))
    }
}
