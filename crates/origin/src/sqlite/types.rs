//! Which type a column of SQLite has here, and how its values become that type.

use cachesql_types::{DataType, Value};
use rusqlite::types::ValueRef;

use crate::batch::reason_of;
use crate::convert::coerce;

/// The type that a column's declaration asks for; `None` when it has none, or one that says "number" and no more: then the
/// values decide.
///
/// Every integer type is BIGINT, since SQLite keeps 64 bits whatever was declared; every floating type is DOUBLE for the
/// same reason. Names that SQL knows are taken at their word; others go by SQLite's own rules ("Determination Of Column
/// Affinity" of its documentation).
pub(crate) fn declared_type(declaration: Option<&str>) -> Option<DataType> {
    let declaration = declaration?.trim();
    let lower = declaration.to_ascii_lowercase();
    if matches!(lower.as_str(), "" | "any" | "numeric" | "decimal" | "dec" | "number") {
        return None;
    }
    match DataType::parse(declaration) {
        Some(integer) if integer.is_integer() => return Some(DataType::BigInt),
        Some(DataType::Real) => return Some(DataType::Double),
        Some(known) => return Some(known),
        None => {}
    }
    let has = |word: &str| lower.contains(word);
    if has("int") {
        Some(DataType::BigInt)
    } else if has("char") || has("clob") || has("text") {
        Some(DataType::Text)
    } else if has("blob") {
        Some(DataType::Bytea)
    } else if has("real") || has("floa") || has("doub") {
        Some(DataType::Double)
    } else {
        None
    }
}

/// What the values of a column without a declared type have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    integers: bool,
    // An integer that a double does not hold.
    long_integers: bool,
    reals: bool,
    texts: bool,
    blobs: bool,
}

impl Seen {
    pub(crate) fn add(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(v) => {
                self.integers = true;
                self.long_integers |= Value::BigInt(v).coerce(DataType::Double).is_err();
            }
            ValueRef::Real(_) => self.reals = true,
            ValueRef::Text(_) => self.texts = true,
            ValueRef::Blob(_) => self.blobs = true,
        }
    }

    /// The type that holds all of them exactly; TEXT when there was none but NULL. `Err` names the mixture.
    pub(crate) fn data_type(self) -> Result<DataType, &'static str> {
        match self {
            Seen { blobs: true, integers: false, reals: false, texts: false, .. } => Ok(DataType::Bytea),
            Seen { blobs: true, .. } => Err("a mixture of blobs and other values"),
            Seen { texts: true, .. } => Ok(DataType::Text),
            Seen { reals: true, long_integers: true, .. } => Err("a mixture of reals and integers beyond 2^53"),
            Seen { reals: true, .. } => Ok(DataType::Double),
            Seen { integers: true, .. } => Ok(DataType::BigInt),
            _ => Ok(DataType::Text),
        }
    }
}

/// A stored value as a value of a column's type. `Err` is the reason why it is none.
pub(crate) fn value_of(stored: ValueRef<'_>, data_type: DataType) -> Result<Value, &'static str> {
    let not_converted = "values of its type are not converted";
    match (stored, data_type) {
        (ValueRef::Null, _) => Ok(Value::Null),
        (ValueRef::Integer(v @ (0 | 1)), DataType::Boolean) => Ok(Value::Boolean(v == 1)),
        (ValueRef::Integer(_) | ValueRef::Real(_), DataType::Date | DataType::Timestamp | DataType::TimestampTz) => {
            Err(
                "a number may count days, seconds or milliseconds; make it text in the query, such as datetime(column, 'unixepoch')",
            )
        }
        (ValueRef::Integer(v), _) => coerce(&Value::BigInt(v), data_type).map_err(|e| reason_of(&e)),
        (ValueRef::Real(v), _) => coerce(&Value::Double(v), data_type).map_err(|e| reason_of(&e)),
        // In a column of blobs a text is its bytes; PostgreSQL's escapes mean nothing to SQLite.
        (ValueRef::Text(text), DataType::Bytea) => Ok(Value::Bytea(text.into())),
        (ValueRef::Text(text), _) => {
            let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
            Value::parse(text, data_type).map_err(|e| reason_of(&e))
        }
        (ValueRef::Blob(bytes), DataType::Bytea) => Ok(Value::Bytea(bytes.into())),
        (ValueRef::Blob(bytes), DataType::Uuid) => bytes.try_into().map(Value::Uuid).map_err(|_| not_converted),
        (ValueRef::Blob(_), _) => Err(not_converted),
    }
}

/// A stored value as an error shows it.
pub(crate) fn shown_value(stored: ValueRef<'_>) -> String {
    match stored {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(v) => v.to_string(),
        ValueRef::Real(v) => Value::Double(v).to_text(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => Value::Bytea(bytes.get(..bytes.len().min(100)).unwrap_or_default().into()).to_text(),
    }
}

/// Bytes of a stored value.
pub(crate) fn stored_bytes(stored: ValueRef<'_>) -> usize {
    match stored {
        ValueRef::Null => 0,
        ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_as_sqlite_reads_them() {
        let cases = [
            ("INTEGER", Some(DataType::BigInt)),
            ("smallint", Some(DataType::BigInt)),
            ("UNSIGNED BIG INT", Some(DataType::BigInt)),
            ("VARCHAR(20)", Some(DataType::Text)),
            ("NATIVE CHARACTER(70)", Some(DataType::Text)),
            ("CLOB", Some(DataType::Text)),
            ("BLOB", Some(DataType::Bytea)),
            ("FLOAT", Some(DataType::Double)),
            ("REAL", Some(DataType::Double)),
            ("DECIMAL(10,2)", Some(DataType::Decimal { precision: 10, scale: 2 })),
            ("NUMERIC", None),
            ("DATETIME", Some(DataType::Timestamp)),
            ("BOOLEAN", Some(DataType::Boolean)),
            ("STRANGE", None),
            ("", None),
        ];
        for (declaration, expected) in cases {
            assert_eq!(declared_type(Some(declaration)), expected, "{declaration}");
        }
        assert_eq!(declared_type(None), None);
    }
}
