//! JSON text of strings and cells (RFC 8259).

use std::io::Write as _;

use cachesql_node::Cell;
use cachesql_types::{
    Decimal, write_bytea, write_date, write_double, write_real, write_time, write_timestamp, write_timestamptz,
    write_uuid,
};
use serde::de::IgnoredAny;

/// Largest integer that a reader with doubles holds exactly, and its negative: 2^53.
const EXACT_IN_DOUBLES: i64 = 1 << 53;

/// How cells become JSON where there is a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JsonStyle {
    /// DECIMAL, and BIGINT beyond 2^53, as strings: for readers whose numbers are doubles.
    pub(crate) numbers_as_strings: bool,
    /// JSON columns as strings: for readers that know flat objects only.
    pub(crate) json_as_text: bool,
    /// No line breaks between tokens of JSON columns: for NDJSON.
    pub(crate) one_line: bool,
}

/// Appends a string with its quotes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|b| needs_escape(*b)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        if let Some((byte, after)) = special.split_first() {
            write_escape(out, *byte);
            rest = after;
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[inline]
fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cold]
fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a cell: numbers bare and exact, text quoted, NULL as `null`; NaN and the infinities as the strings that
/// PostgreSQL writes, bytes as `"\\x…"`, times as ISO 8601 with a `T`.
pub(crate) fn write_cell(out: &mut Vec<u8>, cell: Cell<'_>, style: JsonStyle) {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Boolean(v) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        Cell::SmallInt(v) => out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()),
        Cell::Integer(v) => out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()),
        Cell::BigInt(v) => {
            let quoted = style.numbers_as_strings && !(-EXACT_IN_DOUBLES..=EXACT_IN_DOUBLES).contains(&v);
            in_quotes_if(out, quoted, |out| out.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()));
        }
        Cell::Real(v) => in_quotes_if(out, !v.is_finite(), |out| write_real(out, v)),
        Cell::Double(v) => in_quotes_if(out, !v.is_finite(), |out| write_double(out, v)),
        Cell::Decimal(v) => in_quotes_if(out, style.numbers_as_strings, |out| write_decimal(out, v)),
        Cell::Text(text) => write_string(out, text),
        Cell::Bytea(bytes) => {
            out.extend_from_slice(b"\"\\");
            write_bytea(out, bytes);
            out.push(b'"');
        }
        Cell::Date(days) => in_quotes_if(out, true, |out| write_date(out, days)),
        Cell::Time(micros) => in_quotes_if(out, true, |out| write_time(out, micros)),
        Cell::Timestamp(micros) => in_quotes_if(out, true, |out| write_timestamp(out, micros, b'T')),
        Cell::TimestampTz(micros) => in_quotes_if(out, true, |out| write_timestamptz(out, micros, b'T')),
        Cell::Uuid(bytes) => in_quotes_if(out, true, |out| write_uuid(out, &bytes)),
        Cell::Json(text) if style.json_as_text => write_string(out, text),
        Cell::Json(text) => write_json(out, text, style.one_line),
    }
}

#[inline]
fn in_quotes_if(out: &mut Vec<u8>, quoted: bool, write: impl FnOnce(&mut Vec<u8>)) {
    if quoted {
        out.push(b'"');
    }
    write(out);
    if quoted {
        out.push(b'"');
    }
}

/// Appends a decimal with all digits of its scale.
pub(crate) fn write_decimal(out: &mut Vec<u8>, value: Decimal) {
    let mut buffer = itoa::Buffer::new();
    let Ok(magnitude) = u64::try_from(value.unscaled.unsigned_abs()) else {
        // Writing to a Vec does not fail.
        let _ = write!(out, "{value}");
        return;
    };
    if value.unscaled < 0 {
        out.push(b'-');
    }
    let digits = buffer.format(magnitude).as_bytes();
    let scale = usize::from(value.scale);
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if let Some((whole, fraction)) =
        digits.len().checked_sub(scale).filter(|w| *w > 0).map(|w| digits.split_at(w))
    {
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', scale.saturating_sub(digits.len())));
        out.extend_from_slice(digits);
    }
}

/// Appends what a JSON column holds. Text that is not JSON (an origin may have sent such) becomes a string, so that the
/// answer stays one.
fn write_json(out: &mut Vec<u8>, text: &str, one_line: bool) {
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        write_string(out, text);
    } else if one_line {
        // Valid JSON has raw line breaks between tokens only.
        out.extend(text.bytes().map(|b| if b == b'\n' || b == b'\r' { b' ' } else { b }));
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(cell: Cell<'_>, style: JsonStyle) -> String {
        let mut out = Vec::new();
        write_cell(&mut out, cell, style);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn cells_are_written_as_the_interface_says() {
        let decimal = |unscaled, scale| Cell::Decimal(Decimal { unscaled, scale });
        let cases = [
            (Cell::Null, "null"),
            (Cell::Boolean(true), "true"),
            (Cell::BigInt(i64::MIN), "-9223372036854775808"),
            (Cell::Double(f64::NAN), "\"NaN\""),
            (Cell::Double(f64::NEG_INFINITY), "\"-Infinity\""),
            (Cell::Real(f32::INFINITY), "\"Infinity\""),
            (Cell::Double(0.1), "0.1"),
            (decimal(-5, 2), "-0.05"),
            (decimal(1_234_500, 4), "123.4500"),
            (decimal(-170_141_183_460_469_231_731_687_303_715_884, 2), "-1701411834604692317316873037158.84"),
            (Cell::Text("a\"b\\c\n\u{1}汉😀"), "\"a\\\"b\\\\c\\n\\u0001汉😀\""),
            (Cell::Bytea(&[0, 255]), "\"\\\\x00ff\""),
            (Cell::Date(-1), "\"1969-12-31\""),
            (Cell::Timestamp(-1), "\"1969-12-31T23:59:59.999999\""),
            (Cell::TimestampTz(0), "\"1970-01-01T00:00:00+00:00\""),
            (Cell::TimestampTz(i64::MAX), "\"infinity\""),
            (Cell::Json("{\"a\": [1,\n2]}"), "{\"a\": [1,\n2]}"),
            (Cell::Json("{broken"), "\"{broken\""),
        ];
        for (cell, expected) in cases {
            assert_eq!(json(cell, JsonStyle::default()), expected);
        }
    }

    #[test]
    fn numbers_that_doubles_damage_can_be_strings() {
        let style = JsonStyle { numbers_as_strings: true, ..JsonStyle::default() };
        assert_eq!(json(Cell::BigInt(9_007_199_254_740_992), style), "9007199254740992");
        assert_eq!(json(Cell::BigInt(9_007_199_254_740_993), style), "\"9007199254740993\"");
        assert_eq!(json(Cell::BigInt(-9_007_199_254_740_993), style), "\"-9007199254740993\"");
        assert_eq!(json(Cell::Decimal(Decimal { unscaled: 10, scale: 1 }), style), "\"1.0\"");
        assert_eq!(json(Cell::Integer(7), style), "7");
    }

    #[test]
    fn json_columns_fit_their_surroundings() {
        let line = JsonStyle { one_line: true, ..JsonStyle::default() };
        assert_eq!(json(Cell::Json("[1,\r\n2]"), line), "[1,  2]");
        let flat = JsonStyle { json_as_text: true, ..JsonStyle::default() };
        assert_eq!(json(Cell::Json("{\"a\":1}"), flat), "\"{\\\"a\\\":1}\"");
    }

    proptest! {
        #[test]
        fn strings_read_back(text in "\\PC{0,20}|[\\x00-\\x7f]{0,20}") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            let back: String = serde_json::from_slice(&out).expect("JSON");
            prop_assert_eq!(back, text);
        }

        #[test]
        fn decimals_are_written_as_their_own_text(unscaled in -(10_i128.pow(37))..10_i128.pow(37), small in -100_000_i128..100_000, scale in 0_u8..=38) {
            for unscaled in [unscaled, small] {
                let value = Decimal { unscaled, scale };
                let mut out = Vec::new();
                write_decimal(&mut out, value);
                prop_assert_eq!(String::from_utf8(out).expect("ASCII"), value.to_string());
            }
        }
    }
}
