//! Rows as text, one after the other: JSON objects or arrays, NDJSON, CSV.

use std::cell::RefCell;
use std::sync::Arc;

use arrow_array::RecordBatch;
use cachesql_node::{Cell, ColumnInfo, DirectRows};
use cachesql_types::DataType;
use smallvec::SmallVec;

use super::csv;
use super::json::{self, JsonStyle};

/// Columns of a row that is encoded without an allocation of its own.
const INLINE_CELLS: usize = 24;
/// Shapes that each thread keeps.
const KEPT_SHAPES: usize = 16;

/// How rows stand beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `[{"a":1,"b":2},…]`
    Objects,
    /// One object, without brackets around it.
    SingleObject,
    /// `[[1,2],…]`
    Arrays,
    /// `{"a":1,"b":2}` and a line feed.
    Lines,
    /// A line of names, and a line for each row.
    Csv,
}

/// What is the same for all rows of these columns in a layout.
struct Shape {
    columns: Arc<[ColumnInfo]>,
    layout: Layout,
    /// What stands before the first row.
    header: Vec<u8>,
    /// What stands before each column's cell: its name in JSON, the commas. All in one buffer, `prefix_ends` apart.
    prefixes: Vec<u8>,
    prefix_ends: Vec<usize>,
}

thread_local! {
    /// Shapes that this thread made last, each at a place that follows from the address of its columns: whole rows of a table
    /// have the same columns each time.
    static SHAPES: RefCell<[Option<Arc<Shape>>; KEPT_SHAPES]> = const { RefCell::new([const { None }; KEPT_SHAPES]) };
}

impl Shape {
    fn of(columns: &Arc<[ColumnInfo]>, layout: Layout) -> Arc<Shape> {
        let place = (columns.as_ptr().addr() / 64 + layout as usize) % KEPT_SHAPES;
        SHAPES.with_borrow_mut(|shapes| {
            let Some(kept) = shapes.get_mut(place) else { return Arc::new(Shape::new(columns.clone(), layout)) };
            match kept {
                Some(shape) if shape.layout == layout && Arc::ptr_eq(&shape.columns, columns) => shape.clone(),
                _ => kept.insert(Arc::new(Shape::new(columns.clone(), layout))).clone(),
            }
        })
    }

    fn new(columns: Arc<[ColumnInfo]>, layout: Layout) -> Shape {
        let mut prefixes = Vec::with_capacity(columns.iter().map(|c| c.name.len() + 5).sum());
        let mut prefix_ends = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            match layout {
                Layout::Objects | Layout::SingleObject | Layout::Lines => {
                    prefixes.push(if at == 0 { b'{' } else { b',' });
                    json::write_string(&mut prefixes, &column.name);
                    prefixes.push(b':');
                }
                Layout::Arrays => prefixes.push(if at == 0 { b'[' } else { b',' }),
                Layout::Csv if at > 0 => prefixes.push(b','),
                Layout::Csv => {}
            }
            prefix_ends.push(prefixes.len());
        }
        let header = match layout {
            Layout::Objects | Layout::Arrays => b"[".to_vec(),
            Layout::Csv => csv_header(&columns),
            Layout::SingleObject | Layout::Lines => Vec::new(),
        };
        Shape { columns, layout, header, prefixes, prefix_ends }
    }
}

fn csv_header(columns: &[ColumnInfo]) -> Vec<u8> {
    let mut header = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            header.push(b',');
        }
        csv::write_field(&mut header, &column.name);
    }
    if !columns.is_empty() {
        header.push(b'\n');
    }
    header
}

/// Writes rows in a layout.
pub(crate) struct RowEncoder {
    shape: Arc<Shape>,
    style: JsonStyle,
    /// Columns sent as text; empty when none is.
    as_text: Vec<bool>,
    scratch: Vec<u8>,
    first: bool,
}

impl RowEncoder {
    /// An encoder for rows of these columns.
    pub(crate) fn new(columns: &Arc<[ColumnInfo]>, layout: Layout, style: JsonStyle) -> RowEncoder {
        let style = JsonStyle { one_line: style.one_line || layout == Layout::Lines, ..style };
        let shape = Shape::of(columns, layout);
        RowEncoder { shape, style, as_text: Vec::new(), scratch: Vec::new(), first: true }
    }

    /// Marks columns whose cells are sent as text.
    pub(crate) fn set_text_columns(&mut self, as_text: &[bool]) {
        if as_text.contains(&true) {
            self.as_text = as_text.to_vec();
        }
    }

    /// Bytes that a row of this width is likely to take.
    pub(crate) fn row_bytes(&self) -> usize {
        self.shape.prefixes.len() + self.shape.columns.len() * 16 + 2
    }

    /// Appends what stands before the first row.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.shape.header);
    }

    /// Appends rows from a position on until `out` holds `until` bytes; the position after the last.
    pub(crate) fn direct(&mut self, out: &mut Vec<u8>, rows: &DirectRows, from: usize, until: usize) -> usize {
        let mut at = from;
        while at < rows.len() && out.len() < until {
            let row = rows.row(at);
            row.warm();
            let cells: SmallVec<[Cell<'_>; INLINE_CELLS]> =
                (0..self.shape.columns.len()).map(|c| row.cell(c)).collect();
            touch(&cells);
            self.row(out, |column, _| cells.get(column).copied().unwrap_or(Cell::Null));
            at += 1;
        }
        at
    }

    /// The same for the rows of a batch, whose columns are those that the encoder was made for.
    pub(crate) fn batch(&mut self, out: &mut Vec<u8>, batch: &RecordBatch, from: usize, until: usize) -> usize {
        let mut at = from;
        while at < batch.num_rows() && out.len() < until {
            self.row(out, |column, data_type| {
                batch.columns().get(column).map_or(Cell::Null, |array| Cell::of_array(array, data_type, at))
            });
            at += 1;
        }
        at
    }

    /// Appends what stands after the last row.
    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        if matches!(self.shape.layout, Layout::Objects | Layout::Arrays) {
            out.push(b']');
        }
    }

    fn row<'a>(&mut self, out: &mut Vec<u8>, cell: impl Fn(usize, DataType) -> Cell<'a>) {
        let shape = &*self.shape;
        if !self.first && matches!(shape.layout, Layout::Objects | Layout::Arrays) {
            out.push(b',');
        }
        self.first = false;
        let mut start = 0;
        for (at, (column, end)) in shape.columns.iter().zip(&shape.prefix_ends).enumerate() {
            out.extend_from_slice(shape.prefixes.get(start..*end).unwrap_or_default());
            start = *end;
            let cell = cell(at, column.data_type);
            if shape.layout == Layout::Csv {
                csv::write_cell(out, cell);
            } else if self.as_text.get(at) == Some(&true) {
                write_as_text(out, &mut self.scratch, cell, self.style);
            } else {
                json::write_cell(out, cell, self.style);
            }
        }
        let empty = shape.columns.is_empty();
        match shape.layout {
            Layout::Objects | Layout::SingleObject => out.extend_from_slice(if empty { b"{}" } else { b"}" }),
            Layout::Lines => out.extend_from_slice(if empty { b"{}\n" } else { b"}\n" }),
            Layout::Arrays => out.extend_from_slice(if empty { b"[]" } else { b"]" }),
            Layout::Csv => out.push(b'\n'),
        }
    }
}

/// Reads the beginning of each text. The cells of one row lie in as many places of memory; read in one go, before anything is
/// written, they are waited for together.
fn touch(cells: &[Cell<'_>]) {
    let first = |cell: &Cell<'_>| match cell {
        Cell::Text(text) | Cell::Json(text) => text.as_bytes().first().copied().unwrap_or(0),
        _ => 0,
    };
    std::hint::black_box(cells.iter().fold(0_u8, |all, cell| all ^ first(cell)));
}

/// Appends a cell as a JSON string of PostgreSQL's text of it.
fn write_as_text(out: &mut Vec<u8>, scratch: &mut Vec<u8>, cell: Cell<'_>, style: JsonStyle) {
    match cell {
        Cell::Null => json::write_cell(out, cell, style),
        Cell::Text(text) | Cell::Json(text) => json::write_string(out, text),
        Cell::Boolean(v) => json::write_string(out, if v { "true" } else { "false" }),
        _ => {
            scratch.clear();
            csv::write_cell(scratch, cell);
            json::write_string(out, std::str::from_utf8(scratch).unwrap_or_default());
        }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
