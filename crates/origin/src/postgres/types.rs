//! Which of our types a column of PostgreSQL has.

use cachesql_types::DataType;
use tokio_postgres::types::{Kind, Type};

/// How a value of a column arrives in binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireType {
    pub(crate) data_type: DataType,
    /// JSONB puts the version of its format before the text.
    pub(crate) jsonb: bool,
}

/// The type of a numeric column without precision, whose values may have any number of digits. A value that this cannot
/// hold exactly fails the load, by name.
const PLAIN_NUMERIC: DataType = DataType::Decimal { precision: 38, scale: 10 };

/// The type for a column; `modifier` is its `atttypmod`. `Err` is advice for a person.
pub(crate) fn wire_type(column: &Type, modifier: i32) -> Result<WireType, &'static str> {
    let plain = |data_type| Ok(WireType { data_type, jsonb: false });
    match column.kind() {
        // The server describes a column of a domain by the type beneath already; expressions may still show the domain.
        Kind::Domain(base) => return wire_type(base, modifier),
        // Enum values are sent as their labels, in binary too.
        Kind::Enum(_) => return plain(DataType::Text),
        _ => {}
    }
    plain(match *column {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::SmallInt,
        Type::INT4 => DataType::Integer,
        Type::INT8 => DataType::BigInt,
        Type::FLOAT4 => DataType::Real,
        Type::FLOAT8 => DataType::Double,
        Type::NUMERIC => return numeric_type(modifier).map(|data_type| WireType { data_type, jsonb: false }),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => DataType::Text,
        // What a literal without a type is: sent as text.
        Type::UNKNOWN => DataType::Text,
        Type::BYTEA => DataType::Bytea,
        Type::DATE => DataType::Date,
        Type::TIME => DataType::Time,
        Type::TIMESTAMP => DataType::Timestamp,
        Type::TIMESTAMPTZ => DataType::TimestampTz,
        Type::UUID => DataType::Uuid,
        Type::JSON => DataType::Json,
        Type::JSONB => return Ok(WireType { data_type: DataType::Json, jsonb: true }),
        // An extension's type without a fixed OID; it is text that compares without case, and is sent as text.
        _ if column.name() == "citext" && *column.kind() == Kind::Simple => DataType::Text,
        Type::MONEY => return Err("cast it in the query: (column)::numeric(19,2)"),
        Type::OID | Type::XID | Type::CID => return Err("cast it in the query: (column)::bigint"),
        Type::TIMETZ => return Err("cast it in the query: (column)::time, or ::text to keep the zone"),
        _ if matches!(column.kind(), Kind::Array(_) | Kind::Composite(_)) => {
            return Err("cast it in the query: to_json(column), or (column)::text");
        }
        _ => return Err("cast it in the query: (column)::text"),
    })
}

/// `numeric(p,s)` keeps its precision where 38 digits suffice. PostgreSQL 15 allows a scale below 0 or above the precision.
fn numeric_type(modifier: i32) -> Result<DataType, &'static str> {
    // The modifier is (precision << 16 | scale) + 4; the scale has 11 bits, signed.
    const HEADER: i32 = 4;
    if modifier < HEADER {
        return Ok(PLAIN_NUMERIC);
    }
    let packed = modifier - HEADER;
    let precision = (packed >> 16) & 0xffff;
    let scale = ((packed & 0x7ff) ^ 1_024) - 1_024;
    let digits = if scale < 0 { precision - scale } else { precision.max(scale) };
    let most = i32::from(DataType::MAX_PRECISION);
    let advice = "cast it in the query: (column)::numeric(38,…), or ::text";
    // More than 38 digits may be declared and never used: a value that has them fails the load, by name.
    let scale = scale.max(0);
    if scale > most {
        return Err(advice);
    }
    let precision = u8::try_from(digits.min(most)).map_err(|_| advice)?;
    Ok(DataType::Decimal { precision, scale: u8::try_from(scale).map_err(|_| advice)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `atttypmod` is packed by `numerictypmodin`.
    fn modifier(precision: i32, scale: i32) -> i32 {
        ((precision << 16) | (scale & 0x7ff)) + 4
    }

    #[test]
    fn numeric_keeps_its_precision_and_scale() {
        let decimal = |precision, scale| Ok(DataType::Decimal { precision, scale });
        assert_eq!(numeric_type(-1), decimal(38, 10));
        assert_eq!(numeric_type(modifier(10, 2)), decimal(10, 2));
        assert_eq!(numeric_type(modifier(38, 38)), decimal(38, 38));
        assert_eq!(numeric_type(modifier(5, -2)), decimal(7, 0));
        assert_eq!(numeric_type(modifier(3, 5)), decimal(5, 5));
        assert_eq!(numeric_type(modifier(1000, 2)), decimal(38, 2));
        assert!(numeric_type(modifier(100, 60)).is_err());
    }
}
