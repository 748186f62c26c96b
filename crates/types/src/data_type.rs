//! The types that a column can have.

use std::fmt;

/// The type of a column, a parameter or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// true or false.
    Boolean,
    /// 16-bit signed integer.
    SmallInt,
    /// 32-bit signed integer.
    Integer,
    /// 64-bit signed integer.
    BigInt,
    /// 32-bit IEEE 754.
    Real,
    /// 64-bit IEEE 754.
    Double,
    /// Exact decimal of at most `precision` digits (1 to 38), `scale` of them after the point.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, 0 to `precision`.
        scale: u8,
    },
    /// UTF-8 text of any length; VARCHAR and CHAR are read as this.
    Text,
    /// Bytes.
    Bytea,
    /// A day of the proleptic Gregorian calendar, counted from 1970-01-01.
    Date,
    /// Time of day in microseconds, without a zone.
    Time,
    /// Microseconds since 1970-01-01 00:00:00, without a zone.
    Timestamp,
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz,
    /// 16 bytes.
    Uuid,
    /// JSON text, kept as it was written.
    Json,
}

impl DataType {
    /// Largest precision of a DECIMAL.
    pub const MAX_PRECISION: u8 = 38;

    /// Reads the name of a type as SQL writes it, in any case: `INTEGER`, `int4`, `numeric(10,2)`, `VARCHAR(20)`,
    /// `timestamp with time zone`. Lengths of character types are not enforced. `None` for a name that is not known.
    pub fn parse(name: &str) -> Option<DataType> {
        let name = name.trim().to_ascii_lowercase();
        let (base, arguments) = split_arguments(&name)?;
        let plain = match base.as_str() {
            "boolean" | "bool" => DataType::Boolean,
            "smallint" | "int2" | "tinyint" => DataType::SmallInt,
            "integer" | "int" | "int4" | "mediumint" => DataType::Integer,
            "bigint" | "int8" => DataType::BigInt,
            "real" | "float4" => DataType::Real,
            "double precision" | "double" | "float8" | "float" => DataType::Double,
            "text" | "varchar" | "char" | "character" | "character varying" | "bpchar" | "name" | "clob" | "string" => {
                DataType::Text
            }
            "bytea" | "blob" | "binary" | "varbinary" => DataType::Bytea,
            "date" => DataType::Date,
            "time" | "time without time zone" => DataType::Time,
            "timestamp" | "datetime" | "timestamp without time zone" => DataType::Timestamp,
            "timestamptz" | "timestamp with time zone" => DataType::TimestampTz,
            "uuid" => DataType::Uuid,
            "json" | "jsonb" => DataType::Json,
            "decimal" | "numeric" | "dec" => return decimal_of(&arguments),
            _ => return None,
        };
        Some(plain)
    }

    /// True for the types whose values are numbers.
    pub fn is_numeric(self) -> bool {
        self.is_integer() || matches!(self, DataType::Real | DataType::Double | DataType::Decimal { .. })
    }

    /// True for SMALLINT, INTEGER and BIGINT.
    pub fn is_integer(self) -> bool {
        matches!(self, DataType::SmallInt | DataType::Integer | DataType::BigInt)
    }
}

/// Splits `numeric(10, 2)` into its name and its arguments; `timestamp(3) with time zone` keeps both halves of the name.
fn split_arguments(name: &str) -> Option<(String, Vec<u32>)> {
    let Some((before, rest)) = name.split_once('(') else {
        return Some((name.split_whitespace().collect::<Vec<_>>().join(" "), Vec::new()));
    };
    let (inside, after) = rest.split_once(')')?;
    let arguments = inside.split(',').map(|a| a.trim().parse().ok()).collect::<Option<Vec<u32>>>()?;
    let base = format!("{before} {after}");
    Some((base.split_whitespace().collect::<Vec<_>>().join(" "), arguments))
}

fn decimal_of(arguments: &[u32]) -> Option<DataType> {
    let (precision, scale) = match arguments {
        [] => (38, 10),
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return None,
    };
    if precision == 0 || precision > u32::from(DataType::MAX_PRECISION) || scale > precision {
        return None;
    }
    Some(DataType::Decimal { precision: u8::try_from(precision).ok()?, scale: u8::try_from(scale).ok()? })
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::Boolean => "BOOLEAN",
            DataType::SmallInt => "SMALLINT",
            DataType::Integer => "INTEGER",
            DataType::BigInt => "BIGINT",
            DataType::Real => "REAL",
            DataType::Double => "DOUBLE",
            DataType::Decimal { precision, scale } => return write!(f, "DECIMAL({precision},{scale})"),
            DataType::Text => "TEXT",
            DataType::Bytea => "BYTEA",
            DataType::Date => "DATE",
            DataType::Time => "TIME",
            DataType::Timestamp => "TIMESTAMP",
            DataType::TimestampTz => "TIMESTAMPTZ",
            DataType::Uuid => "UUID",
            DataType::Json => "JSON",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_survives_its_name() {
        let all = [
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Integer,
            DataType::BigInt,
            DataType::Real,
            DataType::Double,
            DataType::Decimal { precision: 10, scale: 2 },
            DataType::Text,
            DataType::Bytea,
            DataType::Date,
            DataType::Time,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Uuid,
            DataType::Json,
        ];
        for data_type in all {
            assert_eq!(DataType::parse(&data_type.to_string()), Some(data_type));
        }
    }

    #[test]
    fn names_of_other_databases_are_understood() {
        let cases = [
            ("character varying(20)", DataType::Text),
            ("timestamp(3) with time zone", DataType::TimestampTz),
            ("Double  Precision", DataType::Double),
            ("numeric(5)", DataType::Decimal { precision: 5, scale: 0 }),
            ("int8", DataType::BigInt),
        ];
        for (name, expected) in cases {
            assert_eq!(DataType::parse(name), Some(expected), "{name}");
        }
        for name in ["", "money", "numeric(0)", "numeric(39)", "numeric(5,6)", "numeric(1,2,3)", "numeric(x)", "int("] {
            assert_eq!(DataType::parse(name), None, "{name}");
        }
    }
}
