//! RFC 4180, read byte by byte, because of one thing that readers of CSV commonly lose: whether a field was quoted. An
//! empty field is NULL, and a quoted empty field is the empty string.
//!
//! Lines may end in LF as well as CRLF. A quote inside a field that does not begin with one is itself. Anything else that
//! the RFC does not allow is an error with its line.

use std::io::{self, BufRead};

use cachesql_types::limits;

/// One record: its fields end to end.
#[derive(Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    // Where each field ends in `bytes`, and whether it was quoted.
    fields: Vec<(usize, bool)>,
    line: u64,
}

impl Record {
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The line that the record begins in, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Bytes of all fields together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the record is an empty line.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self.fields.as_slice(), [(0, false)])
    }

    /// The fields in order, each with whether it was quoted.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let mut start = 0;
        self.fields.iter().map(move |(end, quoted)| {
            let field = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            (field, *quoted)
        })
    }

    fn end_field(&mut self, quoted: bool) {
        self.fields.push((self.bytes.len(), quoted));
    }
}

/// Why no record could be read.
#[derive(Debug)]
pub(crate) enum CsvFault {
    Read(io::Error),
    Malformed { line: u64, reason: &'static str },
}

impl From<io::Error> for CsvFault {
    fn from(error: io::Error) -> CsvFault {
        CsvFault::Read(error)
    }
}

/// Reads records off a stream of bytes.
pub(crate) struct CsvReader<R> {
    input: R,
    delimiter: u8,
    line: u64,
    started: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Unquoted,
    Quoted { since: u64 },
    // Behind a quote inside a quoted field: its end, or the first of two.
    QuoteSeen { since: u64 },
    // Behind a carriage return; whether the field before it was quoted.
    CarriageReturn { quoted: bool },
}

impl<R: BufRead> CsvReader<R> {
    pub(crate) fn new(input: R, delimiter: u8) -> CsvReader<R> {
        CsvReader { input, delimiter, line: 1, started: false }
    }

    /// Reads the next record into `record`; false at the end of the input.
    pub(crate) fn read(&mut self, record: &mut Record) -> Result<bool, CsvFault> {
        if !self.started {
            self.started = true;
            skip_mark(&mut self.input)?;
        }
        record.bytes.clear();
        record.fields.clear();
        record.line = self.line;
        let mut state = State::FieldStart;
        let mut field_start = 0;
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return self.end_of_input(state, record);
            }
            let mut rest = chunk;
            let mut done = false;
            while let (false, Some((byte, after))) = (done, rest.split_first()) {
                (state, rest, done) = step(self.delimiter, state, *byte, rest, after, record, &mut self.line)?;
                if state == State::FieldStart {
                    field_start = record.bytes.len();
                }
            }
            let used = chunk.len() - rest.len();
            self.input.consume(used);
            if record.bytes.len() - field_start > limits::MAX_FIELD_BYTES {
                return Err(malformed(record.line, "a field is larger than 64 MiB; perhaps a quote is missing"));
            }
            if done {
                return Ok(true);
            }
        }
    }

    fn end_of_input(&self, state: State, record: &mut Record) -> Result<bool, CsvFault> {
        match state {
            State::FieldStart if record.fields.is_empty() => return Ok(false),
            State::FieldStart | State::Unquoted => record.end_field(false),
            State::QuoteSeen { .. } => record.end_field(true),
            State::Quoted { since } => return Err(malformed(since, "a quoted field begins here and does not end")),
            State::CarriageReturn { .. } => return Err(malformed(self.line, LONE_RETURN)),
        }
        Ok(true)
    }
}

const LONE_RETURN: &str = "a carriage return outside of quotes must be followed by a line feed";

fn malformed(line: u64, reason: &'static str) -> CsvFault {
    CsvFault::Malformed { line, reason }
}

/// Skips the byte order mark that some programs put before UTF-8.
fn skip_mark(input: &mut impl BufRead) -> io::Result<()> {
    if input.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        input.consume(3);
    }
    Ok(())
}

/// Takes one byte, or a run of bytes that mean the same: the next state, what is left, whether the record is whole.
fn step<'c>(
    delimiter: u8,
    state: State,
    byte: u8,
    all: &'c [u8],
    after: &'c [u8],
    record: &mut Record,
    line: &mut u64,
) -> Result<(State, &'c [u8], bool), CsvFault> {
    match state {
        State::Quoted { since } => {
            let length = all.iter().position(|b| *b == b'"').unwrap_or(all.len());
            let (inside, rest) = all.split_at(length);
            *line += inside.iter().filter(|b| **b == b'\n').count() as u64;
            record.bytes.extend_from_slice(inside);
            Ok(match rest.split_first() {
                Some((_, rest)) => (State::QuoteSeen { since }, rest, false),
                None => (state, rest, false),
            })
        }
        State::QuoteSeen { since } if byte == b'"' => {
            record.bytes.push(b'"');
            Ok((State::Quoted { since }, after, false))
        }
        State::FieldStart if byte == b'"' => Ok((State::Quoted { since: *line }, after, false)),
        State::CarriageReturn { quoted } if byte == b'\n' => {
            record.end_field(quoted);
            *line += 1;
            Ok((State::FieldStart, after, true))
        }
        State::CarriageReturn { .. } => Err(malformed(*line, LONE_RETURN)),
        State::FieldStart | State::Unquoted | State::QuoteSeen { .. } => {
            let quoted = matches!(state, State::QuoteSeen { .. });
            if byte == delimiter {
                record.end_field(quoted);
                return Ok((State::FieldStart, after, false));
            }
            match byte {
                b'\n' => {
                    record.end_field(quoted);
                    *line += 1;
                    Ok((State::FieldStart, after, true))
                }
                b'\r' => Ok((State::CarriageReturn { quoted }, after, false)),
                _ if quoted => {
                    Err(malformed(*line, "only a delimiter or the end of the line may follow a closing quote"))
                }
                _ => {
                    let ends = |b: &u8| *b == delimiter || matches!(b, b'\n' | b'\r');
                    let length = all.iter().position(ends).unwrap_or(all.len());
                    let (inside, rest) = all.split_at(length);
                    record.bytes.extend_from_slice(inside);
                    Ok((State::Unquoted, rest, false))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Outcome = Result<Vec<Vec<(String, bool)>>, (u64, &'static str)>;

    /// Reads all records, through buffers of one byte too: no rule may depend on how the input is cut.
    fn read(text: &str) -> Outcome {
        let whole = read_cut(text, 1 << 16);
        assert_eq!(whole, read_cut(text, 1), "{text:?}");
        whole
    }

    fn read_cut(text: &str, capacity: usize) -> Outcome {
        // The mark needs three bytes at once.
        let text = text.strip_prefix('\u{feff}').filter(|_| capacity < 3).unwrap_or(text);
        let mut reader = CsvReader::new(io::BufReader::with_capacity(capacity, text.as_bytes()), b',');
        let mut record = Record::default();
        let mut records = Vec::new();
        loop {
            match reader.read(&mut record) {
                Ok(false) => return Ok(records),
                Ok(true) => {
                    let own = |(field, quoted): (&[u8], bool)| (String::from_utf8_lossy(field).into_owned(), quoted);
                    records.push(record.fields().map(own).collect());
                }
                Err(CsvFault::Malformed { line, reason }) => return Err((line, reason)),
                Err(CsvFault::Read(error)) => panic!("{error}"),
            }
        }
    }

    fn plain(text: &str) -> (String, bool) {
        (text.into(), false)
    }

    fn quoted(text: &str) -> (String, bool) {
        (text.into(), true)
    }

    #[test]
    fn the_rules_of_rfc_4180() {
        assert_eq!(read("aaa,bbb,ccc\r\nzzz,yyy,xxx\r\n").map(|r| r.len()), Ok(2));
        assert_eq!(read("aaa,bbb").map(|r| r.len()), Ok(1));
        assert_eq!(
            read("\"aaa\",\"b\r\nbb\",\"c\"\"cc\"\r\nzzz,yyy,xxx"),
            Ok(vec![
                vec![quoted("aaa"), quoted("b\r\nbb"), quoted("c\"cc")],
                vec![plain("zzz"), plain("yyy"), plain("xxx")],
            ])
        );
        assert_eq!(read(" a , b\n"), Ok(vec![vec![plain(" a "), plain(" b")]]));
    }

    #[test]
    fn empty_and_quoted_empty_are_told_apart() {
        assert_eq!(read(",\"\",\n"), Ok(vec![vec![plain(""), quoted(""), plain("")]]));
        assert_eq!(read("a,\"\""), Ok(vec![vec![plain("a"), quoted("")]]));
        assert_eq!(read("\n"), Ok(vec![vec![plain("")]]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("a,"), Ok(vec![vec![plain("a"), plain("")]]));
    }

    #[test]
    fn a_mark_and_inner_quotes() {
        assert_eq!(read("\u{feff}a\n"), Ok(vec![vec![plain("a")]]));
        assert_eq!(read("5\" pipe,汉字😀\n"), Ok(vec![vec![plain("5\" pipe"), plain("汉字😀")]]));
    }

    #[test]
    fn broken_files_are_refused_with_their_line() {
        assert_eq!(read("a\n\"b\nc").map_err(|e| e.0), Err(2));
        assert_eq!(read("a\n\"b\nc\"d").map_err(|e| e.0), Err(3));
        assert_eq!(read("a\rb\n").map_err(|e| e.0), Err(1));
        assert_eq!(read("a\n\nb\r").map_err(|e| e.0), Err(3));
    }

    proptest! {
        #[test]
        fn fields_survive_their_file(
            records in proptest::collection::vec(
                proptest::collection::vec(("[a\"汉,\r\n ]{0,6}", proptest::bool::ANY), 2..5),
                0..6,
            ),
            crlf: bool,
        ) {
            let mut text = String::new();
            for record in &records {
                for (at, (field, quote)) in record.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    if *quote || field.contains(['"', ',', '\r', '\n']) {
                        text.push_str(&format!("\"{}\"", field.replace('"', "\"\"")));
                    } else {
                        text.push_str(field);
                    }
                }
                text.push_str(if crlf { "\r\n" } else { "\n" });
            }
            let quoted = |(field, quote): (String, bool)| {
                let quote = quote || field.contains(['"', ',', '\r', '\n']);
                (field, quote)
            };
            let expected = records.into_iter().map(|r| r.into_iter().map(quoted).collect()).collect();
            prop_assert_eq!(read(&text), Ok(expected));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a\"\r\n,汉]{0,40}") {
            let _ = read(&text);
        }
    }
}
