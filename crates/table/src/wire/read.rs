//! Reading operations, without trust.

use std::sync::Arc;

use cachesql_types::{Column, DataType, Decimal, IndexDefinition, TableSchema, Value};

use super::{VERSION, batch, flag, key_tag, operation_tag, value_tag};
use crate::operation::{Operation, PutMode};
use crate::row::RowKey;

/// Why bytes are not operations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They end too early, or a length in them is beyond their end.
    #[error("the operations end before they are complete")]
    Truncated,
    /// There are more of them than the operations take.
    #[error("{bytes} bytes follow the operations")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// A version that is not known here.
    #[error("operations of version {version} are not understood")]
    Version {
        /// The version.
        version: u8,
    },
    /// Something that no operation has.
    #[error("malformed operations: {what}")]
    Malformed {
        /// What it is.
        what: &'static str,
    },
}

pub(super) fn malformed(what: &'static str) -> DecodeError {
    DecodeError::Malformed { what }
}

type Result<T> = std::result::Result<T, DecodeError>;

/// Takes values off the front of bytes, as [`encode_values`](super::encode_values) wrote them.
pub fn decode_values(rest: &mut &[u8]) -> Result<Vec<Value>> {
    let mut reader = Reader { rest };
    let values = reader.list(Reader::value)?;
    *rest = reader.rest;
    Ok(values)
}

/// What is left to read.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of what follows the version, which must be this one.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Reader<'a>> {
        let mut reader = Reader { rest: bytes };
        match reader.byte()? {
            VERSION => Ok(reader),
            version => Err(DecodeError::Version { version }),
        }
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::Trailing { bytes: self.rest.len() }) }
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// At most ten bytes, and no more than are needed.
    pub(super) fn number(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return Err(malformed("a number beyond 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 { Err(malformed("a padded number")) } else { Ok(value) };
            }
        }
        Err(malformed("a number beyond 64 bits"))
    }

    pub(super) fn count(&mut self) -> Result<usize> {
        usize::try_from(self.number()?).map_err(|_| DecodeError::Truncated)
    }

    /// A count and so many items. Each takes at least a byte, so a count beyond what is left is refused before anything is
    /// allocated.
    pub(super) fn list<T>(&mut self, item: impl Fn(&mut Reader<'a>) -> Result<T>) -> Result<Vec<T>> {
        let count = self.count()?;
        if count > self.rest.len() {
            return Err(DecodeError::Truncated);
        }
        // An item may take much more memory than its bytes: grow with what is really there.
        let mut items = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| malformed("text that is not UTF-8"))
    }

    pub(super) fn name(&mut self) -> Result<String> {
        self.text().map(str::to_owned)
    }

    /// Flags of which only the known may be set.
    pub(super) fn flags(&mut self, known: u8) -> Result<u8> {
        let flags = self.byte()?;
        if flags & !known == 0 { Ok(flags) } else { Err(malformed("unknown flags")) }
    }

    pub(super) fn data_type(&mut self) -> Result<DataType> {
        Ok(match self.byte()? {
            value_tag::BOOLEAN => DataType::Boolean,
            value_tag::SMALLINT => DataType::SmallInt,
            value_tag::INTEGER => DataType::Integer,
            value_tag::BIGINT => DataType::BigInt,
            value_tag::REAL => DataType::Real,
            value_tag::DOUBLE => DataType::Double,
            value_tag::TEXT => DataType::Text,
            value_tag::BYTEA => DataType::Bytea,
            value_tag::DATE => DataType::Date,
            value_tag::TIME => DataType::Time,
            value_tag::TIMESTAMP => DataType::Timestamp,
            value_tag::TIMESTAMPTZ => DataType::TimestampTz,
            value_tag::UUID => DataType::Uuid,
            value_tag::JSON => DataType::Json,
            value_tag::DECIMAL => {
                let [precision, scale] = self.array()?;
                if precision == 0 || precision > DataType::MAX_PRECISION || scale > precision {
                    return Err(malformed("a decimal type that cannot be"));
                }
                DataType::Decimal { precision, scale }
            }
            _ => return Err(malformed("an unknown type")),
        })
    }

    fn value(&mut self) -> Result<Value> {
        Ok(match self.byte()? {
            value_tag::NULL => Value::Null,
            value_tag::FALSE => Value::Boolean(false),
            value_tag::TRUE => Value::Boolean(true),
            value_tag::SMALLINT => Value::SmallInt(i16::from_le_bytes(self.array()?)),
            value_tag::INTEGER => Value::Integer(i32::from_le_bytes(self.array()?)),
            value_tag::BIGINT => Value::BigInt(i64::from_le_bytes(self.array()?)),
            value_tag::REAL => Value::Real(f32::from_bits(u32::from_le_bytes(self.array()?))),
            value_tag::DOUBLE => Value::Double(f64::from_bits(u64::from_le_bytes(self.array()?))),
            value_tag::DECIMAL => {
                let unscaled = i128::from_le_bytes(self.array()?);
                let value = Decimal { unscaled, scale: self.byte()? };
                if value.scale > DataType::MAX_PRECISION || value.digits() > u32::from(DataType::MAX_PRECISION) {
                    return Err(malformed("a decimal of more than 38 digits"));
                }
                Value::Decimal(value)
            }
            value_tag::TEXT => Value::Text(Arc::from(self.text()?)),
            value_tag::JSON => Value::Json(Arc::from(self.text()?)),
            value_tag::BYTEA => Value::Bytea(Arc::from(self.bytes()?)),
            value_tag::DATE => Value::Date(i32::from_le_bytes(self.array()?)),
            value_tag::TIME => Value::Time(i64::from_le_bytes(self.array()?)),
            value_tag::TIMESTAMP => Value::Timestamp(i64::from_le_bytes(self.array()?)),
            value_tag::TIMESTAMPTZ => Value::TimestampTz(i64::from_le_bytes(self.array()?)),
            value_tag::UUID => Value::Uuid(self.array()?),
            _ => return Err(malformed("an unknown value")),
        })
    }

    fn row(&mut self) -> Result<Vec<Value>> {
        self.list(Reader::value)
    }

    fn index(&mut self) -> Result<IndexDefinition> {
        let name = self.name()?;
        let columns = self.list(Reader::count)?;
        let unique = self.flags(flag::UNIQUE)? == flag::UNIQUE;
        Ok(IndexDefinition { name, columns, unique })
    }

    pub(super) fn column(&mut self) -> Result<Column> {
        let name = self.name()?;
        let data_type = self.data_type()?;
        let nullable = self.flags(flag::NULLABLE)? == flag::NULLABLE;
        Ok(Column { name, data_type, nullable })
    }

    pub(super) fn schema(&mut self) -> Result<TableSchema> {
        let name = self.name()?;
        let columns = self.list(Reader::column)?;
        let key = self.list(Reader::count)?;
        let indexes = self.list(Reader::index)?;
        Ok(TableSchema { name, columns, key, indexes })
    }

    fn key(&mut self) -> Result<RowKey> {
        match self.byte()? {
            key_tag::COLUMNS => Ok(RowKey::Columns(self.row()?)),
            key_tag::NUMBER => Ok(RowKey::Number(self.number()?)),
            _ => Err(malformed("an unknown kind of row key")),
        }
    }

    fn put(&mut self, mode: PutMode) -> Result<Operation> {
        let table = self.name()?;
        let rows = self.list(Reader::row)?;
        Ok(Operation::Put { table, rows, mode })
    }

    /// The ttl in milliseconds, and the most rows.
    pub(super) fn retention(&mut self) -> Result<(Option<u64>, Option<u64>)> {
        let flags = self.flags(flag::TTL | flag::MAX_ROWS)?;
        let mut optional = |bit: u8| if flags & bit == 0 { Ok(None) } else { self.number().map(Some) };
        Ok((optional(flag::TTL)?, optional(flag::MAX_ROWS)?))
    }

    pub(super) fn operation(&mut self) -> Result<Operation> {
        Ok(match self.byte()? {
            operation_tag::CREATE_TABLE => Operation::CreateTable { schema: self.schema()? },
            operation_tag::DROP_TABLE => Operation::DropTable { table: self.name()? },
            operation_tag::CREATE_INDEX => Operation::CreateIndex { table: self.name()?, index: self.index()? },
            operation_tag::DROP_INDEX => Operation::DropIndex { table: self.name()?, index: self.name()? },
            operation_tag::PUT_INSERT => self.put(PutMode::Insert)?,
            operation_tag::PUT_UPSERT => self.put(PutMode::Upsert)?,
            operation_tag::DELETE => Operation::Delete { table: self.name()?, keys: self.list(Reader::key)? },
            operation_tag::TRUNCATE => Operation::Truncate { table: self.name()? },
            operation_tag::COMPACT => Operation::Compact { table: self.name()? },
            operation_tag::SET_RETENTION => {
                let table = self.name()?;
                let (ttl_ms, max_rows) = self.retention()?;
                Operation::SetRetention { table, ttl_ms, max_rows }
            }
            operation_tag::BEGIN_LOAD => Operation::BeginLoad { load: self.number()?, schema: self.schema()? },
            operation_tag::LOAD_ROWS => Operation::LoadRows { load: self.number()?, batch: batch::read(self)? },
            operation_tag::FINISH_LOAD => Operation::FinishLoad { load: self.number()? },
            operation_tag::ABANDON_LOAD => Operation::AbandonLoad { load: self.number()? },
            _ => return Err(malformed("an unknown operation")),
        })
    }
}
