//! A snapshot written out, piece by piece, and read again: what a member keeps on disk, and what a new one is sent.
//!
//! A table is a piece that tells its shape, then its rows a chunk at a time; a load under way likewise. Dead rows are left out, and
//! indexes, which are built anew from sorted runs. Times of use are each member's own and left out too. Row ids are others
//! after it: what names rows in operations are keys and numbers, which stay.

use std::sync::Arc;

use cachesql_types::{LogIndex, TableSchema};

use crate::refusal::Refusal;
use crate::snapshot::{GroupSnapshot, Load};
use crate::staged::StagedRows;
use crate::table::{Retention, Table};
use crate::wire::{DecodeError, Piece};

/// Why bytes are not a snapshot's image.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum ImageError {
    /// A piece that cannot be read.
    #[error(transparent)]
    Piece(#[from] DecodeError),
    /// Rows or definitions that no table may have.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Pieces that do not follow each other.
    #[error("a snapshot's pieces are not in order: {0}")]
    Order(&'static str),
}

impl GroupSnapshot {
    /// Everything in it as pieces of bytes, in the order in which [`ImageReader`] takes them. Each is made when it is asked for, and
    /// is about as large as a chunk of rows.
    pub fn image(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let tables = self.tables().flat_map(|table| table_pieces(table));
        let loads = self.begun().flat_map(|(number, load)| load_pieces(number, load));
        let end = Piece::End { index: self.index(), definitions: self.definitions() };
        tables.chain(loads).chain(std::iter::once(end)).map(|piece| piece.encode())
    }
}

fn table_pieces(table: &Table) -> impl Iterator<Item = Piece> + '_ {
    let begin = Piece::Table {
        schema: TableSchema::clone(table.schema()),
        retention: table.retention(),
        next_number: table.next_number,
    };
    let rows = (0..table.chunk_count()).filter_map(|chunk| {
        let (batch, numbers) = table.plain_chunk(chunk)?;
        Some(Piece::Rows { batch, numbers })
    });
    std::iter::once(begin).chain(rows)
}

fn load_pieces(number: u64, load: &Load) -> impl Iterator<Item = Piece> + '_ {
    let begin = Piece::Load { load: number, schema: TableSchema::clone(&load.schema) };
    std::iter::once(begin).chain(load.staged.batches().map(|batch| Piece::Rows { batch, numbers: None }))
}

/// Makes a snapshot of the pieces that [`GroupSnapshot::image`] gave.
#[derive(Default)]
pub struct ImageReader {
    tables: Vec<Arc<Table>>,
    loads: Vec<(u64, Arc<Load>)>,
    open: Option<Open>,
    end: Option<(LogIndex, LogIndex)>,
}

/// What the rows that come next belong to.
struct Open {
    what: OpenKind,
    staged: StagedRows,
    numbers: Vec<u64>,
}

enum OpenKind {
    Table { retention: Retention, next_number: u64 },
    Load { load: u64 },
}

impl ImageReader {
    /// Nothing yet.
    pub fn new() -> ImageReader {
        ImageReader::default()
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), ImageError> {
        if self.end.is_some() {
            return Err(ImageError::Order("something follows the end"));
        }
        match Piece::decode(piece)? {
            Piece::Table { schema, retention, next_number } => {
                self.open(schema, OpenKind::Table { retention, next_number })
            }
            Piece::Load { load, schema } => self.open(schema, OpenKind::Load { load }),
            Piece::Rows { batch, numbers } => {
                let open = self.open.as_mut().ok_or(ImageError::Order("rows of no table"))?;
                let is_keyless_table =
                    matches!(open.what, OpenKind::Table { .. }) && open.staged.schema().key.is_empty();
                match numbers {
                    Some(numbers) if is_keyless_table && numbers.len() == batch.num_rows() => {
                        open.numbers.extend(numbers)
                    }
                    None if !is_keyless_table => {}
                    _ => return Err(ImageError::Order("rows without their numbers, or numbers without their rows")),
                }
                Ok(open.staged.push(&batch)?)
            }
            Piece::End { index, definitions } => {
                self.close()?;
                self.end = Some((index, definitions));
                Ok(())
            }
        }
    }

    /// The snapshot, once all pieces are there.
    pub fn finish(self) -> Result<GroupSnapshot, ImageError> {
        let (index, definitions) = self.end.ok_or(ImageError::Order("the end is missing"))?;
        Ok(GroupSnapshot::of_parts(index, definitions, self.tables, self.loads.into_iter().collect()))
    }

    fn open(&mut self, schema: TableSchema, what: OpenKind) -> Result<(), ImageError> {
        self.close()?;
        schema.check().map_err(Refusal::from)?;
        self.open = Some(Open { what, staged: StagedRows::new(Arc::new(schema)), numbers: Vec::new() });
        Ok(())
    }

    fn close(&mut self) -> Result<(), ImageError> {
        let Some(Open { what, staged, numbers }) = self.open.take() else { return Ok(()) };
        match what {
            OpenKind::Table { retention, next_number } => {
                let last = self.tables.last().map(|table| &table.schema().name);
                if last.is_some_and(|last| *last >= staged.schema().name) || !self.loads.is_empty() {
                    return Err(ImageError::Order("tables are not in the order of their names, before all loads"));
                }
                self.tables.push(Arc::new(Table::of_rows(staged, numbers, retention, next_number)?));
            }
            OpenKind::Load { load } => {
                if self.loads.last().is_some_and(|(last, _)| *last >= load) {
                    return Err(ImageError::Order("loads are not in the order of their numbers"));
                }
                self.loads.push((load, Arc::new(Load { schema: staged.schema().clone(), staged })));
            }
        }
        Ok(())
    }
}
