//! The pieces of a snapshot's image as bytes: a version, a tag, and what the tag says.

use arrow::array::RecordBatch;
use cachesql_types::{LogIndex, TableSchema};

use super::read::{DecodeError, Reader, malformed};
use super::{VERSION, batch, piece_tag, write};
use crate::table::Retention;

/// One piece of a snapshot's image.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A table begins; its rows follow.
    Table {
        schema: TableSchema,
        retention: Retention,
        /// The number that the next row gets, where rows have numbers.
        next_number: u64,
    },
    /// Rows of the table or load that began last, in storage order.
    Rows {
        batch: RecordBatch,
        /// One a row, in a table without primary key.
        numbers: Option<Vec<u64>>,
    },
    /// A load under way begins; its rows follow.
    Load { load: u64, schema: TableSchema },
    /// Nothing follows.
    End { index: LogIndex, definitions: LogIndex },
}

impl Piece {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Piece::Table { schema, retention, next_number } => {
                out.push(piece_tag::TABLE);
                write::schema(&mut out, schema);
                write::retention(&mut out, retention.ttl_ms, retention.max_rows);
                write::number(&mut out, *next_number);
            }
            Piece::Rows { batch: rows, numbers: None } => {
                out.push(piece_tag::ROWS);
                batch::write(&mut out, rows);
            }
            Piece::Rows { batch: rows, numbers: Some(numbers) } => {
                out.push(piece_tag::NUMBERED_ROWS);
                write::count(&mut out, numbers.len());
                numbers.iter().for_each(|n| write::number(&mut out, *n));
                batch::write(&mut out, rows);
            }
            Piece::Load { load, schema } => {
                out.push(piece_tag::LOAD);
                write::number(&mut out, *load);
                write::schema(&mut out, schema);
            }
            Piece::End { index, definitions } => {
                out.push(piece_tag::END);
                write::number(&mut out, index.0);
                write::number(&mut out, definitions.0);
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Piece, DecodeError> {
        let mut reader = Reader::new(bytes)?;
        let piece = match reader.byte()? {
            piece_tag::TABLE => {
                let schema = reader.schema()?;
                let (ttl_ms, max_rows) = reader.retention()?;
                let next_number = reader.number()?;
                Piece::Table { schema, retention: Retention { ttl_ms, max_rows }, next_number }
            }
            piece_tag::ROWS => Piece::Rows { numbers: None, batch: batch::read(&mut reader)? },
            piece_tag::NUMBERED_ROWS => {
                let numbers = reader.list(Reader::number)?;
                Piece::Rows { numbers: Some(numbers), batch: batch::read(&mut reader)? }
            }
            piece_tag::LOAD => Piece::Load { load: reader.number()?, schema: reader.schema()? },
            piece_tag::END => Piece::End { index: LogIndex(reader.number()?), definitions: LogIndex(reader.number()?) },
            _ => return Err(malformed("an unknown piece of a snapshot")),
        };
        reader.end()?;
        Ok(piece)
    }
}
