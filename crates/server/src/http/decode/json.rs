//! JSON bodies: a depth that is checked before anything is built, and values that keep every digit.

use std::borrow::Cow;

use cachesql_types::{DataType, Decimal, Value, ValueError, limits};
use hyper::StatusCode;
use serde::de::IgnoredAny;

use crate::http::failure::Failure;

/// Refuses text that nests arrays and objects deeper than the limit. It need not be JSON; that is found out later.
pub(crate) fn check_depth(text: &str) -> Result<(), Failure> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limits::JSON_DEPTH {
            let message = format!("the JSON body is nested more than {} deep", limits::JSON_DEPTH);
            return Err(Failure::new(StatusCode::BAD_REQUEST, "54001", message));
        }
    }
    Ok(())
}

/// A JSON value as a value of a type. Numbers are read digit by digit; nothing is rounded. Objects and arrays become JSON
/// or text.
pub(crate) fn typed_value(raw: &str, data_type: DataType) -> Result<Value, ValueError> {
    if raw == "null" {
        return Ok(Value::Null);
    }
    if data_type == DataType::Json {
        return Value::parse(raw, data_type);
    }
    if raw.starts_with('"') {
        return Value::parse(&text_of(raw, data_type)?, data_type);
    }
    let number = raw.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    if number && data_type.is_integer() && raw.contains(['.', 'e', 'E']) {
        // 1.0 and 1e3 are integers to JSON.
        if let Some(decimal) = Decimal::parse(raw) {
            return Value::Decimal(decimal).coerce(data_type);
        }
    }
    match (raw, data_type) {
        ("true" | "false", DataType::Boolean | DataType::Text) => Value::parse(raw, data_type),
        ("true" | "false", _) => Err(ValueError::Type { from: DataType::Boolean, to: data_type }),
        _ if !number && data_type != DataType::Text => Err(ValueError::Type { from: DataType::Json, to: data_type }),
        _ => Value::parse(raw, data_type),
    }
}

/// A JSON value in the type that is natural to it: strings are TEXT, integers BIGINT, other numbers DECIMAL (DOUBLE where
/// DECIMAL has too few digits), objects and arrays JSON.
pub(crate) fn natural_value(raw: &str) -> Result<Value, ValueError> {
    match raw.as_bytes().first() {
        _ if raw == "null" => Ok(Value::Null),
        Some(b'"') => Ok(Value::text(text_of(raw, DataType::Text)?.into_owned())),
        Some(b't' | b'f') => Value::parse(raw, DataType::Boolean),
        Some(b'[' | b'{') => Value::parse(raw, DataType::Json),
        _ => {
            if let Ok(integer) = Value::parse(raw, DataType::BigInt) {
                return Ok(integer);
            }
            match Decimal::parse(raw) {
                Some(decimal) => Ok(Value::Decimal(decimal)),
                // With an exponent it is meant as a DOUBLE; without one every digit counts.
                None if raw.contains(['e', 'E']) => Value::parse(raw, DataType::Double),
                None => Value::parse(raw, DataType::Decimal { precision: DataType::MAX_PRECISION, scale: 0 }),
            }
        }
    }
}

/// The text of a JSON string; `None` for what is not one, and for one with half a surrogate pair, which is no text.
pub(super) fn string_of(raw: &str) -> Option<Cow<'_, str>> {
    let inside = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"'))?;
    if inside.contains('\\') {
        serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inside))
    }
}

fn text_of(raw: &str, data_type: DataType) -> Result<Cow<'_, str>, ValueError> {
    string_of(raw).ok_or_else(|| ValueError::Syntax { data_type, text: raw.chars().take(100).collect() })
}

/// Whether a text is JSON.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn typed(raw: &str, data_type: DataType) -> Result<String, ValueError> {
        typed_value(raw, data_type).map(|v| v.to_text())
    }

    #[test]
    fn values_keep_their_digits() {
        let decimal = DataType::Decimal { precision: 38, scale: 10 };
        let cases = [
            ("9007199254740993", DataType::BigInt, "9007199254740993"),
            ("12345678901234567890.0123456789", decimal, "12345678901234567890.0123456789"),
            ("1.0", DataType::Integer, "1"),
            ("1e3", DataType::Integer, "1000"),
            ("\"42\"", DataType::Integer, "42"),
            ("42", DataType::Text, "42"),
            ("007", DataType::Text, "007"),
            ("true", DataType::Text, "true"),
            ("\"a\\u6c49\\n\"", DataType::Text, "a汉\n"),
            ("{\"a\": 1}", DataType::Json, "{\"a\": 1}"),
            ("\"x\"", DataType::Json, "\"x\""),
            ("[1,2]", DataType::Text, "[1,2]"),
            ("\"NaN\"", DataType::Double, "NaN"),
        ];
        for (raw, data_type, expected) in cases {
            assert_eq!(typed(raw, data_type).expect(raw), expected, "{raw} as {data_type}");
        }
        assert!(typed_value("null", DataType::Json).expect("null").is_null());
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        for (raw, data_type) in [
            ("1.5", DataType::Integer),
            ("true", DataType::Integer),
            ("[1]", DataType::Integer),
            ("{}", DataType::Boolean),
            ("1e400", DataType::Double),
            ("32768", DataType::SmallInt),
            ("\"abc\"", DataType::BigInt),
            ("\"\\ud800\"", DataType::Text),
        ] {
            assert!(typed_value(raw, data_type).is_err(), "{raw} as {data_type}");
        }
    }

    #[test]
    fn natural_types() {
        let natural = |raw| natural_value(raw).expect("value").data_type();
        assert_eq!(natural("9223372036854775807"), Some(DataType::BigInt));
        assert_eq!(natural("9223372036854775808"), Some(DataType::Decimal { precision: 19, scale: 0 }));
        assert_eq!(natural("0.10"), Some(DataType::Decimal { precision: 2, scale: 2 }));
        assert_eq!(natural("1e300"), Some(DataType::Double));
        assert_eq!(natural("\"1\""), Some(DataType::Text));
        assert_eq!(natural("false"), Some(DataType::Boolean));
        assert_eq!(natural("null"), None);
        for raw in ["99999999999999999999999999999999999999999999", "0.1234567890123456789012345678901234567890"] {
            assert!(matches!(natural_value(raw), Err(ValueError::Range { .. })), "{raw}");
        }
        assert!(natural_value("\"\\ud800\"").is_err());
    }

    #[test]
    fn depth_is_counted_outside_strings() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(check_depth(&nested(limits::JSON_DEPTH)).is_ok());
        assert!(check_depth(&nested(limits::JSON_DEPTH + 1)).is_err());
        assert!(check_depth(&format!("\"{}\\\"[\"", "[".repeat(1000))).is_ok());
        assert!(check_depth(&"{\"a\":".repeat(1_000_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}\",:0-9a-e.\\\\]{0,40}") {
            let _ = check_depth(&text);
            let _ = typed_value(&text, DataType::Integer);
            let _ = natural_value(&text);
        }
    }
}
