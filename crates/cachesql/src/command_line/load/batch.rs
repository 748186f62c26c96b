//! Cuts CSV and NDJSON into batches of whole records, byte for byte as they were: what a value means is the node's matter.

use crate::command_line::arguments::LoadFormat;

/// Bytes after which a batch is sent, however few records it has.
const BATCH_BYTES: usize = 8 << 20;

/// What some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Some whole records, ready to be sent; CSV with the header line before them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) body: Vec<u8>,
    pub(super) rows: u64,
    /// The line of the file that the first record begins on, from 1.
    pub(super) first_line: u64,
}

/// Takes bytes as they come, and gives batches.
#[derive(Debug)]
pub(super) struct Batcher {
    format: LoadFormat,
    rows_of_a_batch: u64,
    /// The header line of CSV, once it is whole.
    header: Option<Vec<u8>>,
    /// Whole records since the last batch, then the record that is not whole yet.
    pending: Vec<u8>,
    /// Where in `pending` the last record begins.
    record_start: usize,
    rows: u64,
    in_quotes: bool,
    /// Nothing has ended yet: a byte order mark may stand before what comes first.
    is_at_start: bool,
    line: u64,
    record_line: u64,
    first_line: u64,
}

impl Batcher {
    pub(super) fn new(format: LoadFormat, rows_of_a_batch: u64) -> Batcher {
        Batcher {
            format,
            rows_of_a_batch: rows_of_a_batch.max(1),
            header: None,
            pending: Vec::new(),
            record_start: 0,
            rows: 0,
            in_quotes: false,
            is_at_start: true,
            line: 1,
            record_line: 1,
            first_line: 1,
        }
    }

    /// Takes bytes; gives the batches that they fill.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Batch> {
        let mut batches = Vec::new();
        for byte in bytes {
            self.pending.push(*byte);
            match byte {
                b'"' if self.format == LoadFormat::Csv => self.in_quotes = !self.in_quotes,
                b'\n' => {
                    self.line += 1;
                    if !self.in_quotes {
                        self.end_record();
                        batches.extend(self.full_batch());
                    }
                }
                _ => {}
            }
        }
        batches
    }

    /// What is left when no more comes. The error says what is unfinished.
    pub(super) fn finish(mut self) -> Result<Option<Batch>, String> {
        if self.in_quotes {
            return Err(format!("the record that begins on line {} has a quote that nothing ends", self.record_line));
        }
        if self.record_start < self.pending.len() {
            self.pending.push(b'\n');
            self.end_record();
        }
        if self.format == LoadFormat::Csv && self.header.is_none() {
            return Err("there is no header line".into());
        }
        Ok(self.take_batch())
    }

    /// The record at the end of `pending` is whole.
    fn end_record(&mut self) {
        // A byte order mark belongs neither to the first column's name nor to the first object.
        if std::mem::take(&mut self.is_at_start) && self.pending.starts_with(BYTE_ORDER_MARK) {
            self.pending.drain(..BYTE_ORDER_MARK.len());
        }
        let record = self.pending.get(self.record_start..).unwrap_or_default();
        let is_blank = record.iter().all(u8::is_ascii_whitespace);
        if is_blank {
            self.pending.truncate(self.record_start);
        } else if self.format == LoadFormat::Csv && self.header.is_none() {
            self.header = Some(record.to_vec());
            self.pending.truncate(self.record_start);
        } else {
            if self.rows == 0 {
                self.first_line = self.record_line;
            }
            self.rows += 1;
        }
        self.record_start = self.pending.len();
        self.record_line = self.line;
    }

    fn full_batch(&mut self) -> Option<Batch> {
        let is_full = self.rows >= self.rows_of_a_batch || self.pending.len() >= BATCH_BYTES;
        if is_full { self.take_batch() } else { None }
    }

    fn take_batch(&mut self) -> Option<Batch> {
        if self.rows == 0 {
            return None;
        }
        let mut body = self.header.clone().unwrap_or_default();
        body.append(&mut self.pending);
        self.record_start = 0;
        Some(Batch { body, rows: std::mem::take(&mut self.rows), first_line: self.first_line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(format: LoadFormat, rows: u64, text: &str, step: usize) -> Result<Vec<(String, u64, u64)>, String> {
        let mut batcher = Batcher::new(format, rows);
        let mut batches = Vec::new();
        for piece in text.as_bytes().chunks(step) {
            batches.extend(batcher.push(piece));
        }
        batches.extend(batcher.finish()?);
        let show = |b: Batch| (String::from_utf8(b.body).expect("text"), b.rows, b.first_line);
        Ok(batches.into_iter().map(show).collect())
    }

    #[test]
    fn csv_records_stay_whole_and_as_they_were() {
        let text = "\u{feff}id,name\r\n1,\"a\nb, \"\"x\"\"\"\r\n\r\n2,汉\r\n3,";
        let expected =
            [("id,name\r\n1,\"a\nb, \"\"x\"\"\"\r\n2,汉\r\n".to_owned(), 2, 2), ("id,name\r\n3,\n".to_owned(), 1, 6)];
        for step in [1, 3, 1000] {
            assert_eq!(batches(LoadFormat::Csv, 2, text, step).expect("sound"), expected, "{step}");
        }
    }

    #[test]
    fn ndjson_is_cut_at_lines_whatever_quotes_it_has() {
        let text = "{\"a\":\"\\\"\"}\n\n{\"a\":2}\n{\"a\":3}";
        let expected = [("{\"a\":\"\\\"\"}\n{\"a\":2}\n".to_owned(), 2, 1), ("{\"a\":3}\n".to_owned(), 1, 4)];
        assert_eq!(batches(LoadFormat::Ndjson, 2, text, 2).expect("sound"), expected);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_what_follows() {
        for step in [1, 2, 1000] {
            let rows =
                batches(LoadFormat::Ndjson, 9, "\u{feff}{\"a\":1}\n{\"a\":\"\u{feff}\"}\n", step).expect("sound");
            assert_eq!(rows, [("{\"a\":1}\n{\"a\":\"\u{feff}\"}\n".to_owned(), 2, 1)], "{step}");
            // A first line with nothing but the mark is a blank one.
            let rows = batches(LoadFormat::Ndjson, 9, "\u{feff}\n{\"a\":1}\n", step).expect("sound");
            assert_eq!(rows, [("{\"a\":1}\n".to_owned(), 1, 2)], "{step}");
            let rows = batches(LoadFormat::Csv, 9, "\u{feff}\na\n1\n", step).expect("sound");
            assert_eq!(rows, [("a\n1\n".to_owned(), 1, 3)], "{step}");
        }
        assert_eq!(batches(LoadFormat::Csv, 9, "\u{feff}", 9).expect_err("empty"), "there is no header line");
    }

    #[test]
    fn what_is_unfinished_is_an_error() {
        let error = batches(LoadFormat::Csv, 9, "a\n1\n\"2", 9).expect_err("unfinished");
        assert_eq!(error, "the record that begins on line 3 has a quote that nothing ends");
        assert_eq!(batches(LoadFormat::Csv, 9, "\n", 9).expect_err("empty"), "there is no header line");
        assert_eq!(batches(LoadFormat::Csv, 9, "a,b\n", 9), Ok(vec![]));
        assert_eq!(batches(LoadFormat::Ndjson, 9, "", 9), Ok(vec![]));
    }
}
