//! CSV text of cells (RFC 4180), as PostgreSQL's COPY writes it: NULL is nothing, an empty text is `""`.

use cachesql_node::Cell;
use cachesql_types::{
    write_bytea, write_date, write_double, write_real, write_time, write_timestamp, write_timestamptz, write_uuid,
};

use super::json::write_decimal;

/// Appends one field of text, in quotes where it needs them.
pub(crate) fn write_field(out: &mut Vec<u8>, text: &str) {
    let special = |b: u8| matches!(b, b'"' | b',' | b'\n' | b'\r');
    let spaced = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    // `\.` alone on a line ends a COPY.
    if !text.is_empty() && !spaced && text != "\\." && !text.bytes().any(special) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for part in text.split_inclusive('"') {
        out.extend_from_slice(part.as_bytes());
        if part.ends_with('"') {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

/// Appends a cell as PostgreSQL's text of it.
pub(crate) fn write_cell(out: &mut Vec<u8>, cell: Cell<'_>) {
    match cell {
        Cell::Null => {}
        Cell::Boolean(v) => out.push(if v { b't' } else { b'f' }),
        Cell::SmallInt(v) => out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()),
        Cell::Integer(v) => out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()),
        Cell::BigInt(v) => out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()),
        Cell::Real(v) => write_real(out, v),
        Cell::Double(v) => write_double(out, v),
        Cell::Decimal(v) => write_decimal(out, v),
        Cell::Text(text) | Cell::Json(text) => write_field(out, text),
        Cell::Bytea(bytes) => write_bytea(out, bytes),
        Cell::Date(days) => write_date(out, days),
        Cell::Time(micros) => write_time(out, micros),
        Cell::Timestamp(micros) => write_timestamp(out, micros, b' '),
        Cell::TimestampTz(micros) => write_timestamptz(out, micros, b' '),
        Cell::Uuid(bytes) => write_uuid(out, &bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let cases = [
            ("plain", "plain"),
            ("", "\"\""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            (" edge", "\" edge\""),
            ("汉字", "汉字"),
        ];
        for (text, expected) in cases {
            let mut out = Vec::new();
            write_cell(&mut out, Cell::Text(text));
            assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
        }
    }

    #[test]
    fn null_is_nothing() {
        let mut out = Vec::new();
        write_cell(&mut out, Cell::Null);
        assert!(out.is_empty());
    }
}
