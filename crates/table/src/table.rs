//! One table of a snapshot, as readers see it.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Schema, SchemaRef};
use cachesql_types::{DataType, IndexDefinition, TableSchema, Value};

use crate::cell::Cell;
use crate::index::Index;
use crate::index::tree::Tree;
use crate::memory::TableMemory;
use crate::row::{Row, RowId, RowKey};
use crate::rows::build::{Layout, array_of, view_schema};
use crate::rows::column::Column;
use crate::rows::store::{ChunkRows, RowStore};

/// How long rows are kept, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Milliseconds after which a row that was neither read nor written goes.
    pub ttl_ms: Option<u64>,
    /// Rows beyond which the least recently used go.
    pub max_rows: Option<u64>,
}

impl Retention {
    /// Whether times of use are kept.
    pub(crate) fn needs_access(self) -> bool {
        self.ttl_ms.is_some() || self.max_rows.is_some()
    }
}

/// The rows and indexes of one table, as of its snapshot's log index. A clone shares everything.
#[derive(Clone)]
pub struct Table {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) arrow_schema: SchemaRef,
    pub(crate) types: Arc<[DataType]>,
    pub(crate) rows: RowStore,
    /// The primary key's first, when there is one.
    pub(crate) indexes: Vec<Index>,
    /// By row number; only without primary key.
    pub(crate) numbers: Option<Tree<u64, u32>>,
    /// The number that the next row gets.
    pub(crate) next_number: u64,
    pub(crate) retention: Retention,
}

impl Table {
    /// An empty table. The schema must keep its rules (`TableSchema::check`).
    pub(crate) fn new(schema: Arc<TableSchema>, retention: Retention, next_number: u64) -> Table {
        let types: Arc<[DataType]> = schema.columns.iter().map(|c| c.data_type).collect();
        let mut indexes = Vec::with_capacity(schema.indexes.len() + 1);
        if !schema.key.is_empty() {
            indexes.push(Index::new(primary_definition(&schema), true, &types));
        }
        indexes.extend(schema.indexes.iter().map(|i| Index::new(i.clone(), false, &types)));
        let keyless = schema.key.is_empty();
        Table {
            arrow_schema: view_schema(&schema),
            rows: RowStore::new(types.clone(), keyless, retention.needs_access()),
            numbers: keyless.then(Tree::new),
            schema,
            types,
            indexes,
            next_number,
            retention,
        }
    }

    /// Columns, key and indexes.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// What `scan_chunk` and `gather` answer: `cachesql_types::arrow_schema`, but text and JSON as `Utf8View` and bytes as
    /// `BinaryView`.
    pub fn arrow_schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        self.rows.rows()
    }

    /// Number of rows that are stored, those included that are deleted and not compacted yet.
    pub fn stored_rows(&self) -> u64 {
        self.rows.stored_rows()
    }

    /// The row of a primary key, whose values come in the key's order. `None` for a table without primary key too.
    pub fn get(&self, key: &[Value]) -> Option<RowId> {
        self.indexes.first().filter(|i| i.is_primary())?.find(key)
    }

    /// A row, unless it was deleted.
    pub fn row(&self, id: RowId) -> Option<Row<'_>> {
        self.rows.row(id)
    }

    /// What names the row in operations: its primary key, or its number in a table without one.
    pub fn row_key(&self, id: RowId) -> Option<RowKey> {
        let row = self.row(id)?;
        if self.schema.key.is_empty() {
            return self.rows.number(id).map(RowKey::Number);
        }
        Some(RowKey::Columns(self.schema.key.iter().map(|c| row.value(*c)).collect()))
    }

    /// The row that a key names.
    pub fn find(&self, key: &RowKey) -> Option<RowId> {
        match key {
            RowKey::Columns(values) => self.get(values),
            RowKey::Number(number) => self.numbers.as_ref()?.get(number).copied().map(RowId),
        }
    }

    /// All rows, in storage order: that of their insertion, but for rows that were updated or moved since.
    pub fn rows(&self) -> impl Iterator<Item = RowId> + '_ {
        self.rows.iter()
    }

    /// How many chunks `scan_chunk` knows; some of them may be gone.
    pub fn chunk_count(&self) -> usize {
        self.rows.chunk_count()
    }

    /// The live rows of one chunk, in storage order. `None` for a chunk that is gone or was never there, and when the
    /// projection names a column that is not there. Where no row of the chunk is deleted nothing is copied but views of texts.
    pub fn scan_chunk(&self, chunk: usize, projection: Option<&[usize]>) -> Option<RecordBatch> {
        let (schema, columns) = self.projected(projection)?;
        let rows = self.rows.chunk(chunk)?;
        match rows {
            ChunkRows::Sealed(slot) => {
                let arrays = columns.iter().map(|c| slot.chunk.columns().get(*c).map(|c| c.present()));
                let batch = batch_of(schema, arrays.collect::<Option<_>>()?, slot.chunk.rows())?;
                match slot.deleted.live_mask(slot.chunk.rows()) {
                    Some(mask) => filter_record_batch(&batch, &mask).ok(),
                    None => Some(batch),
                }
            }
            ChunkRows::Tail(tail) => {
                let live: Vec<&[Value]> =
                    rows.live().filter_map(|offset| tail.get(offset)).map(|row| &*row.values).collect();
                let arrays = columns.iter().map(|column| {
                    let cells = live.iter().map(|row| row.get(*column).map_or(Cell::Null, Cell::of_value));
                    Some(array_of(*self.types.get(*column)?, Layout::Views, cells))
                });
                batch_of(schema, arrays.collect::<Option<_>>()?, live.len())
            }
        }
    }

    /// The live rows of one chunk in the layout of `cachesql_types::arrow_schema`, and their numbers when the table has no primary
    /// key. `None` for a chunk without rows.
    pub(crate) fn plain_chunk(&self, chunk: usize) -> Option<(RecordBatch, Option<Vec<u64>>)> {
        let schema = Arc::new(cachesql_types::arrow_schema(&self.schema));
        let rows = self.rows.chunk(chunk)?;
        let live: Vec<usize> = rows.live().collect();
        let (batch, numbers) = match rows {
            ChunkRows::Sealed(slot) => {
                let arrays = slot.chunk.columns().iter().map(Column::plain).collect();
                let batch = batch_of(schema, arrays, slot.chunk.rows())?;
                let batch = match slot.deleted.live_mask(slot.chunk.rows()) {
                    Some(mask) => filter_record_batch(&batch, &mask).ok()?,
                    None => batch,
                };
                (batch, live.iter().filter_map(|offset| slot.numbers.get(*offset)).collect::<Vec<u64>>())
            }
            ChunkRows::Tail(tail) => {
                let rows: Vec<_> = live.iter().filter_map(|offset| tail.get(*offset)).collect();
                let arrays = self.types.iter().enumerate().map(|(column, data_type)| {
                    let cells = rows.iter().map(|row| row.values.get(column).map_or(Cell::Null, Cell::of_value));
                    array_of(*data_type, Layout::Plain, cells)
                });
                (batch_of(schema, arrays.collect(), rows.len())?, rows.iter().map(|row| row.number).collect())
            }
        };
        Some((batch, self.numbers.is_some().then_some(numbers)))
    }

    /// The named rows, in the order given. A row that is not there is left out; callers
    /// name rows of this very snapshot. `None` in the projection means all columns; columns that are not there are left out.
    pub fn gather(&self, ids: &[RowId], projection: Option<&[usize]>) -> RecordBatch {
        let known: Vec<usize> = match projection {
            Some(columns) => columns.iter().copied().filter(|c| *c < self.types.len()).collect(),
            None => (0..self.types.len()).collect(),
        };
        let rows: Vec<Row<'_>> = ids.iter().filter_map(|id| self.row(*id)).collect();
        let arrays: Vec<ArrayRef> = known
            .iter()
            .filter_map(|column| {
                let cells = rows.iter().map(|row| row.cell(*column));
                Some(array_of(*self.types.get(*column)?, Layout::Views, cells))
            })
            .collect();
        let gathered = self.projected(Some(&known)).and_then(|(schema, _)| batch_of(schema, arrays, rows.len()));
        gathered.unwrap_or_else(|| RecordBatch::new_empty(Arc::new(Schema::empty())))
    }

    /// The schema of some columns, and their positions.
    fn projected(&self, projection: Option<&[usize]>) -> Option<(SchemaRef, Vec<usize>)> {
        match projection {
            None => Some((self.arrow_schema.clone(), (0..self.types.len()).collect())),
            Some(columns) => Some((Arc::new(self.arrow_schema.project(columns).ok()?), columns.to_vec())),
        }
    }

    /// The primary key first, when there is one; then the others in the schema's order.
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// Bytes that the table takes; kept as it changes, not walked.
    pub fn memory(&self) -> TableMemory {
        let own = size_of::<Table>() + self.indexes.capacity() * size_of::<Index>();
        TableMemory {
            rows_bytes: own + self.rows.row_bytes(),
            index_bytes: self.indexes.iter().map(Index::bytes).sum::<usize>()
                + self.numbers.as_ref().map_or(0, Tree::bytes),
            access_bytes: self.rows.access_bytes(),
        }
    }

    /// What `memory` says, counted by walking everything: slow, for checks.
    pub fn count_memory(&self) -> TableMemory {
        let own = size_of::<Table>() + self.indexes.capacity() * size_of::<Index>();
        TableMemory {
            rows_bytes: own + self.rows.count_row_bytes(),
            index_bytes: self.indexes.iter().map(Index::count_bytes).sum::<usize>()
                + self.numbers.as_ref().map_or(0, Tree::count_bytes),
            access_bytes: self.rows.access_bytes(),
        }
    }

    /// How long rows are kept, and how many.
    pub fn retention(&self) -> Retention {
        self.retention
    }
}

fn batch_of(schema: SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Option<RecordBatch> {
    RecordBatch::try_new_with_options(schema, arrays, &RecordBatchOptions::new().with_row_count(Some(rows))).ok()
}

/// The primary key as an index: named by its columns, joined by "+", as the original names indexes.
fn primary_definition(schema: &TableSchema) -> IndexDefinition {
    let names: Vec<&str> = schema.key.iter().filter_map(|c| schema.columns.get(*c)).map(|c| c.name.as_str()).collect();
    IndexDefinition { name: names.join("+"), columns: schema.key.clone(), unique: true }
}
