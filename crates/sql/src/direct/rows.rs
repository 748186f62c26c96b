//! The direct path's answer: ids of rows, and the tables they are in. Doors encode straight from the columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::error::ArrowError;
use cachesql_table::{Cell, Row, RowId, Table};
use smallvec::SmallVec;

use crate::answer::{ColumnInfo, result_schema};
use crate::error::SqlError;

/// Ids of rows; the few of a point read lie inline.
pub(crate) type RowList = SmallVec<[RowId; 4]>;

/// Rows of one answer. They stay as they were in the snapshot that they came from, which this holds on to.
#[derive(Clone, Debug)]
pub struct DirectRows {
    columns: Arc<[ColumnInfo]>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Count(Option<i64>),
    Table { table: Arc<Table>, ids: RowList, projection: Arc<[usize]> },
    Join { tables: Arc<[Arc<Table>]>, ids: Vec<RowId>, projection: Arc<[(usize, usize)]> },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Count(count) => f.debug_tuple("Count").field(count).finish(),
            Source::Table { table, ids, .. } => {
                f.debug_struct("Table").field("table", &table.schema().name).field("ids", ids).finish_non_exhaustive()
            }
            Source::Join { ids, .. } => f.debug_struct("Join").field("ids", ids).finish_non_exhaustive(),
        }
    }
}

impl DirectRows {
    pub(crate) fn count(columns: Arc<[ColumnInfo]>, count: Option<i64>) -> DirectRows {
        DirectRows { columns, source: Source::Count(count) }
    }

    pub(crate) fn of_table(
        table: Arc<Table>,
        ids: RowList,
        columns: Arc<[ColumnInfo]>,
        projection: Arc<[usize]>,
    ) -> DirectRows {
        DirectRows { columns, source: Source::Table { table, ids, projection } }
    }

    /// `ids` holds one id per table for each row.
    pub(crate) fn of_join(
        tables: Arc<[Arc<Table>]>,
        ids: Vec<RowId>,
        columns: Arc<[ColumnInfo]>,
        projection: Arc<[(usize, usize)]>,
    ) -> DirectRows {
        DirectRows { columns, source: Source::Join { tables, ids, projection } }
    }

    /// The columns of each row.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// The columns, shared.
    pub fn shared_columns(&self) -> Arc<[ColumnInfo]> {
        self.columns.clone()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.source {
            Source::Count(count) => usize::from(count.is_some()),
            Source::Table { ids, .. } => ids.len(),
            Source::Join { tables, ids, .. } => ids.len() / tables.len().max(1),
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One row. Beyond the end, every field is NULL.
    #[inline]
    pub fn row(&self, at: usize) -> DirectRow<'_> {
        let place = match &self.source {
            Source::Count(count) => Place::Count(count.filter(|_| at == 0)),
            Source::Table { table, ids, projection } => {
                Place::Table(ids.get(at).and_then(|id| table.row(*id)), projection)
            }
            Source::Join { tables, ids, projection } => {
                let first = at.saturating_mul(tables.len());
                let ids = ids.get(first..first.saturating_add(tables.len())).unwrap_or_default();
                Place::Join(tables, ids, projection)
            }
        };
        DirectRow { place }
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = DirectRow<'_>> {
        (0..self.len()).map(|at| self.row(at))
    }

    /// Notes that the rows were read, in tables that keep count of it; others need no clock.
    pub fn touch(&self, now_ms: impl FnOnce() -> u64) {
        match &self.source {
            Source::Table { table, ids, .. } if table.notes_reads() => {
                let now_ms = now_ms();
                ids.iter().for_each(|id| table.touch(*id, now_ms));
            }
            Source::Join { tables, ids, .. } if tables.iter().any(|table| table.notes_reads()) => {
                let now_ms = now_ms();
                for row in ids.chunks(tables.len().max(1)) {
                    tables.iter().zip(row).for_each(|(table, id)| table.touch(*id, now_ms));
                }
            }
            Source::Count(_) | Source::Table { .. } | Source::Join { .. } => {}
        }
    }

    /// The rows as one Arrow batch, whose fields are named as `columns` are. It holds on to no snapshot but for text that
    /// it shares with one.
    pub fn to_batch(&self) -> Result<RecordBatch, SqlError> {
        let arrays: Vec<ArrayRef> = match &self.source {
            Source::Count(count) => vec![Arc::new(count.iter().copied().collect::<Int64Array>())],
            Source::Table { table, ids, projection } => table.gather(ids, Some(projection)).columns().to_vec(),
            Source::Join { tables, ids, projection } => {
                let width = tables.len().max(1);
                let of_table = |at: usize| ids.iter().skip(at).step_by(width).copied().collect::<Vec<_>>();
                let gathered = projection.iter().map(|(at, column)| {
                    let table = tables.get(*at)?;
                    table.gather(&of_table(*at), Some(&[*column])).columns().first().cloned()
                });
                gathered.collect::<Option<_>>().ok_or_else(|| SqlError::Internal("a column is gone".into()))?
            }
        };
        let failed = |e: ArrowError| SqlError::Internal(e.to_string());
        let types = arrays.iter().map(|a| a.data_type().clone());
        RecordBatch::try_new(result_schema(&self.columns, types), arrays).map_err(failed)
    }
}

/// One row of an answer.
#[derive(Clone, Copy)]
pub struct DirectRow<'a> {
    place: Place<'a>,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Count(Option<i64>),
    Table(Option<Row<'a>>, &'a [usize]),
    Join(&'a [Arc<Table>], &'a [RowId], &'a [(usize, usize)]),
}

impl<'a> DirectRow<'a> {
    /// Fetches what the fields begin with, ahead of reading them one by one.
    #[inline]
    pub fn warm(&self) {
        if let Place::Table(Some(row), projection) = self.place {
            row.warm(projection.iter().copied());
        }
    }

    /// One field, by its position among the answer's columns; NULL beyond them.
    #[inline]
    pub fn cell(&self, column: usize) -> Cell<'a> {
        match self.place {
            Place::Count(count) => count.filter(|_| column == 0).map_or(Cell::Null, Cell::BigInt),
            Place::Table(row, projection) => match (row, projection.get(column)) {
                (Some(row), Some(column)) => row.cell(*column),
                _ => Cell::Null,
            },
            Place::Join(tables, ids, projection) => projection
                .get(column)
                .and_then(|(at, column)| Some(tables.get(*at)?.row(*ids.get(*at)?)?.cell(*column)))
                .unwrap_or(Cell::Null),
        }
    }
}
