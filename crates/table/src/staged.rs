//! Rows that are gathered outside a table: for a load, or to compare a table with.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use cachesql_types::limits::CHUNK_ROWS;
use cachesql_types::{DataType, TableSchema, arrow_type, data_type_of};

use crate::cell::Cell;
use crate::check::Checker;
use crate::refusal::Refusal;
use crate::rows::build::{Layout, array_of};
use crate::rows::chunk::{CHUNK_BYTES, Chunk};
use crate::rows::column::Column;

/// Rows of one table's shape, sealed into chunks as they come.
#[derive(Clone)]
pub struct StagedRows {
    schema: Arc<TableSchema>,
    types: Arc<[DataType]>,
    chunks: Vec<Arc<Chunk>>,
    /// Fewer rows than a chunk has.
    pending: VecDeque<RecordBatch>,
    pending_rows: usize,
    rows: u64,
    chunk_bytes: usize,
}

impl StagedRows {
    /// No rows yet.
    pub fn new(schema: Arc<TableSchema>) -> StagedRows {
        let types = schema.columns.iter().map(|c| c.data_type).collect();
        StagedRows {
            schema,
            types,
            chunks: Vec::new(),
            pending: VecDeque::new(),
            pending_rows: 0,
            rows: 0,
            chunk_bytes: 0,
        }
    }

    /// The shape of the rows.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that the rows take.
    pub fn bytes(&self) -> usize {
        let pending: usize = self.pending.iter().map(RecordBatch::get_array_memory_size).sum();
        self.chunk_bytes + pending
    }

    /// Adds rows, whose columns must be the table's in order; best in the layout of `cachesql_types::arrow_schema`, others that
    /// hold the same types are converted. Refused, and nothing added: other columns, NULL where it is not allowed, decimals beyond
    /// the column's digits.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), Refusal> {
        let batch = self.checked(batch)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.pending_rows += batch.num_rows();
        self.rows += batch.num_rows() as u64;
        self.pending.push_back(batch);
        while self.pending_rows >= CHUNK_ROWS {
            let chunk = self.take_chunk();
            self.chunk_bytes += chunk.bytes();
            self.chunks.push(chunk);
        }
        Ok(())
    }

    /// The rows, a chunk's worth at a time, in the layout of `cachesql_types::arrow_schema`: as `Operation::LoadRows` takes
    /// them.
    pub fn batches(&self) -> impl Iterator<Item = RecordBatch> {
        let schema = Arc::new(cachesql_types::arrow_schema(&self.schema));
        let sealed = self.chunks.iter().filter_map(move |chunk| {
            let columns = chunk.columns().iter().map(Column::plain).collect();
            // Columns were checked against this very schema when they were pushed.
            RecordBatch::try_new(schema.clone(), columns).ok()
        });
        sealed.chain(self.pending.iter().cloned())
    }

    /// All rows as chunks, the last of which may be short.
    pub(crate) fn finish(mut self) -> Vec<Arc<Chunk>> {
        while self.pending_rows > 0 {
            let chunk = self.take_chunk();
            self.chunks.push(chunk);
        }
        self.chunks
    }

    /// The batch in the plain layout, when it fits the table.
    fn checked(&self, batch: &RecordBatch) -> Result<RecordBatch, Refusal> {
        let refuse = |detail: String| Refusal::Batch { table: self.schema.name.clone(), detail };
        if batch.num_columns() != self.schema.columns.len() {
            return Err(refuse(format!("{} columns instead of {}", batch.num_columns(), self.schema.columns.len())));
        }
        let checker = Checker::new(&self.schema);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
        let batch_schema = batch.schema();
        for ((column, array), field) in self.schema.columns.iter().zip(batch.columns()).zip(batch_schema.fields()) {
            let wanted = arrow_type(column.data_type);
            let plain = if *array.data_type() == wanted {
                array.clone()
            } else if data_type_of(field) == Some(column.data_type) {
                let cells = (0..array.len()).map(|row| Cell::of_array(array.as_ref(), column.data_type, row));
                array_of(column.data_type, Layout::Plain, cells)
            } else {
                let found = data_type_of(field).map_or_else(|| field.data_type().to_string(), |t| t.to_string());
                return Err(refuse(format!("column {} is {found} instead of {}", column.name, column.data_type)));
            };
            checker.array(column, plain.as_ref())?;
            columns.push(plain);
        }
        let schema = Arc::new(cachesql_types::arrow_schema(&self.schema));
        RecordBatch::try_new(schema, columns).map_err(|e| refuse(e.to_string()))
    }

    /// Copies the first pending rows into a chunk: as many as one holds, fewer where they are very large.
    fn take_chunk(&mut self) -> Arc<Chunk> {
        let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.types.len()];
        let (mut wanted, mut bytes) = (CHUNK_ROWS, 0);
        while wanted > 0 {
            let Some(batch) = self.pending.pop_front() else { break };
            let taken = batch.num_rows().min(wanted);
            let part = batch.slice(0, taken);
            bytes += part.columns().iter().map(|c| c.to_data().get_slice_memory_size().unwrap_or(0)).sum::<usize>();
            if bytes > CHUNK_BYTES && wanted < CHUNK_ROWS {
                self.pending.push_front(batch);
                break;
            }
            for (parts, column) in parts.iter_mut().zip(part.columns()) {
                parts.push(column.clone());
            }
            if taken < batch.num_rows() {
                self.pending.push_front(batch.slice(taken, batch.num_rows() - taken));
            }
            wanted -= taken;
        }
        self.pending_rows -= CHUNK_ROWS - wanted;
        Arc::new(Chunk::seal(&self.types, &parts))
    }
}
