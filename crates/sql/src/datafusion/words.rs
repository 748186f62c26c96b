//! DataFusion's and Arrow's words → SQL's.

/// A message with the types that Arrow names in it named as SQL does.
pub(super) fn sql_words(message: &str) -> String {
    let mut words = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, from) = rest.split_at(at);
        words.push_str(before);
        let end = from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(from.len());
        let (word, behind) = from.split_at(end);
        let arguments = arguments(behind);
        match sql_type_name(word, arguments) {
            Some(name) => {
                words.push_str(&name);
                rest = behind.get(arguments.map_or(0, |inner| inner.len() + 2)..).unwrap_or_default();
            }
            None => {
                words.push_str(word);
                rest = behind;
            }
        }
    }
    words.push_str(rest);
    words
}

/// What stands in parentheses at the front of a text.
fn arguments(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?;
    let mut depth = 1_usize;
    for (at, c) in inner.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return inner.get(..at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The name of an Arrow type in SQL, with its arguments if it has any.
fn sql_type_name(word: &str, arguments: Option<&str>) -> Option<String> {
    let name = match (word, arguments) {
        ("Boolean", None) => "BOOLEAN",
        ("Int8" | "UInt8" | "Int16", None) => "SMALLINT",
        ("UInt16" | "Int32", None) => "INTEGER",
        ("UInt32" | "Int64", None) => "BIGINT",
        ("UInt64", None) => "DECIMAL(20,0)",
        ("Float16" | "Float32", None) => "REAL",
        ("Float64", None) => "DOUBLE",
        ("Utf8" | "LargeUtf8" | "Utf8View", None) => "TEXT",
        ("Binary" | "LargeBinary" | "BinaryView", None) => "BYTEA",
        ("Date32" | "Date64", None) => "DATE",
        ("Time32" | "Time64", _) => "TIME",
        ("Timestamp", Some(inner)) if inner.contains("UTC") || inner.contains('+') => "TIMESTAMPTZ",
        ("Timestamp", Some(_)) => "TIMESTAMP",
        ("Interval" | "Duration", Some(_)) => "INTERVAL",
        ("List" | "LargeList" | "FixedSizeList" | "ListView", Some(_)) => "ARRAY",
        ("Struct", Some(_)) => "ROW",
        ("FixedSizeBinary", Some("16")) => "UUID",
        ("FixedSizeBinary", Some(_)) => "BYTEA",
        ("Decimal32" | "Decimal64" | "Decimal128" | "Decimal256", Some(inner)) => {
            return Some(format!("DECIMAL({})", inner.replace(' ', "")));
        }
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_their_names_in_sql() {
        for (arrow, sql) in [
            ("Int64 + Utf8View", "BIGINT + TEXT"),
            ("Timestamp(µs, \"UTC\") - Timestamp(µs)", "TIMESTAMPTZ - TIMESTAMP"),
            ("(Decimal128(10, 2), Interval(MonthDayNano))", "(DECIMAL(10,2), INTERVAL)"),
            ("Int64s of x_Int64", "Int64s of x_Int64"),
            ("Interval", "Interval"),
            ("Timestamp(", "Timestamp("),
            ("汉 Date32 字", "汉 DATE 字"),
        ] {
            assert_eq!(sql_words(arrow), sql);
        }
    }
}
