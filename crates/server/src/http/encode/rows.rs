//! Rows as text, one after the other: JSON objects or arrays, NDJSON, CSV.

use arrow_array::RecordBatch;
use cachesql_node::{Cell, ColumnInfo, DirectRows};
use cachesql_types::DataType;

use super::csv;
use super::json::{self, JsonStyle};

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

/// Writes rows in a layout.
pub(crate) struct RowEncoder {
    layout: Layout,
    style: JsonStyle,
    types: Vec<DataType>,
    /// What stands before each column's cell: its name in JSON, the commas. All in one buffer, `prefix_ends` apart.
    prefixes: Vec<u8>,
    prefix_ends: Vec<usize>,
    /// Columns sent as text; empty when none is.
    as_text: Vec<bool>,
    scratch: Vec<u8>,
    first: bool,
}

impl RowEncoder {
    /// An encoder for rows of these columns.
    pub(crate) fn new(columns: &[ColumnInfo], layout: Layout, style: JsonStyle) -> RowEncoder {
        let style = JsonStyle { one_line: style.one_line || layout == Layout::Lines, ..style };
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
        let types = columns.iter().map(|c| c.data_type).collect();
        let mut encoder = RowEncoder {
            layout,
            style,
            types,
            prefixes,
            prefix_ends,
            as_text: Vec::new(),
            scratch: Vec::new(),
            first: true,
        };
        if layout == Layout::Csv {
            encoder.take_csv_header(columns);
        }
        encoder
    }

    /// The line of names is what stands before the first row.
    fn take_csv_header(&mut self, columns: &[ColumnInfo]) {
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
        // Kept behind the prefixes, where no column reaches.
        self.prefixes.extend_from_slice(&header);
    }

    /// Marks columns whose cells are sent as text.
    pub(crate) fn set_text_columns(&mut self, as_text: &[bool]) {
        if as_text.contains(&true) {
            self.as_text = as_text.to_vec();
        }
    }

    /// Bytes that a row of this width is likely to take.
    pub(crate) fn row_bytes(&self) -> usize {
        self.prefixes.len() + self.types.len() * 16 + 2
    }

    /// Appends what stands before the first row.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        match self.layout {
            Layout::Objects | Layout::Arrays => out.push(b'['),
            Layout::Csv => {
                let start = self.prefix_ends.last().copied().unwrap_or(0);
                out.extend_from_slice(self.prefixes.get(start..).unwrap_or_default());
            }
            Layout::SingleObject | Layout::Lines => {}
        }
    }

    /// Appends rows from a position on until `out` holds `until` bytes; the position after the last.
    pub(crate) fn direct(&mut self, out: &mut Vec<u8>, rows: &DirectRows, from: usize, until: usize) -> usize {
        let mut at = from;
        while at < rows.len() && out.len() < until {
            let row = rows.row(at);
            self.row(out, |column, _| row.cell(column));
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
        if matches!(self.layout, Layout::Objects | Layout::Arrays) {
            out.push(b']');
        }
    }

    fn row<'a>(&mut self, out: &mut Vec<u8>, cell: impl Fn(usize, DataType) -> Cell<'a>) {
        if !self.first && matches!(self.layout, Layout::Objects | Layout::Arrays) {
            out.push(b',');
        }
        self.first = false;
        let mut start = 0;
        for (column, (data_type, end)) in self.types.iter().zip(&self.prefix_ends).enumerate() {
            out.extend_from_slice(self.prefixes.get(start..*end).unwrap_or_default());
            start = *end;
            let cell = cell(column, *data_type);
            if self.layout == Layout::Csv {
                csv::write_cell(out, cell);
            } else if self.as_text.get(column) == Some(&true) {
                write_as_text(out, &mut self.scratch, cell, self.style);
            } else {
                json::write_cell(out, cell, self.style);
            }
        }
        let empty = self.types.is_empty();
        match self.layout {
            Layout::Objects | Layout::SingleObject => out.extend_from_slice(if empty { b"{}" } else { b"}" }),
            Layout::Lines => out.extend_from_slice(if empty { b"{}\n" } else { b"}\n" }),
            Layout::Arrays => out.extend_from_slice(if empty { b"[]" } else { b"]" }),
            Layout::Csv => out.push(b'\n'),
        }
    }
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
