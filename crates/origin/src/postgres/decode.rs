//! PostgreSQL's binary values and its binary COPY format, straight into columns. Nothing is allocated for a value.
//!
//! The formats are those of the `*send` functions of PostgreSQL's types and of the page on COPY, "Binary Format".

use cachesql_types::{MICROS_PER_DAY, Value};

use crate::columns::{ColumnBuilder, Values};
use crate::postgres::numeric;

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL's calendar begins.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * MICROS_PER_DAY;

/// Why a value did not go in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its length or content is not that of its type: the columns changed, or the server does not speak as it should.
    Malformed,
    /// The type here has no such value; the value as a person writes it, and why.
    NotHeld { value: String, reason: &'static str },
}

/// Appends one value. Nothing is appended when it is refused.
pub(crate) fn decode(builder: &mut ColumnBuilder, jsonb: bool, bytes: &[u8]) -> Result<(), Fault> {
    match &mut builder.values {
        Values::Boolean(v) => v.push(u8::from_be_bytes(fixed(bytes)?) != 0),
        Values::SmallInt(v) => v.push(i16::from_be_bytes(fixed(bytes)?)),
        Values::Integer(v) => v.push(i32::from_be_bytes(fixed(bytes)?)),
        Values::BigInt(v) => v.push(i64::from_be_bytes(fixed(bytes)?)),
        Values::Real(v) => v.push(f32::from_be_bytes(fixed(bytes)?)),
        Values::Double(v) => v.push(f64::from_be_bytes(fixed(bytes)?)),
        Values::Decimal { values, precision, scale } => values.push(numeric::decode(bytes, *precision, *scale)?),
        Values::Text(v) | Values::Bytea(v) => v.push(bytes),
        Values::Json(v) if jsonb => match bytes.split_first() {
            Some((1, text)) => v.push(text),
            _ => return Err(Fault::Malformed),
        },
        Values::Json(v) => v.push(bytes),
        Values::Date(v) => v.push(date(i32::from_be_bytes(fixed(bytes)?))?),
        Values::Time(v) => v.push(i64::from_be_bytes(fixed(bytes)?)),
        Values::Timestamp(v) | Values::TimestampTz(v) => v.push(timestamp(i64::from_be_bytes(fixed(bytes)?))?),
        Values::Uuid(v) => v.extend_from_slice(&fixed::<16>(bytes)?),
    }
    builder.mark_value();
    Ok(())
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Fault> {
    bytes.try_into().map_err(|_| Fault::Malformed)
}

fn date(days: i32) -> Result<i32, Fault> {
    // Infinity and -infinity are the ends of the type on both sides.
    if days == i32::MAX || days == i32::MIN {
        return Ok(days);
    }
    days.checked_add(EPOCH_DAYS).filter(|d| *d != i32::MAX).ok_or_else(|| Fault::NotHeld {
        value: format!("{days} days after 2000-01-01"),
        reason: "it is too far from 1970",
    })
}

fn timestamp(micros: i64) -> Result<i64, Fault> {
    if micros == i64::MAX || micros == i64::MIN {
        return Ok(micros);
    }
    micros.checked_add(EPOCH_MICROS).filter(|m| *m != i64::MAX).ok_or_else(|| Fault::NotHeld {
        value: far_timestamp(micros),
        reason: "it is more than 292,277 years from 1970",
    })
}

/// A timestamp that 1970 cannot count to, as a person writes it.
fn far_timestamp(micros_since_2000: i64) -> String {
    // 400 years of the Gregorian calendar are a whole number of days, so the text differs in its year only.
    const FOUR_CENTURIES: i64 = 146_097 * MICROS_PER_DAY;
    let near =
        Value::Timestamp(micros_since_2000.saturating_sub(FOUR_CENTURIES).saturating_add(EPOCH_MICROS)).to_text();
    match near.split_once('-').and_then(|(year, rest)| Some((year.parse::<i64>().ok()?, rest))) {
        Some((year, rest)) => format!("{}-{rest}", year + 400),
        None => near,
    }
}

/// Takes binary COPY data apart, however it is cut into messages.
pub(crate) struct CopyReader {
    // A row that has only come in part.
    pending: Vec<u8>,
    header_read: bool,
    ended: bool,
    columns: usize,
}

/// COPY data that is not in its format.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MalformedCopy;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

impl CopyReader {
    pub(crate) fn new(columns: usize) -> CopyReader {
        CopyReader { pending: Vec::new(), header_read: false, ended: false, columns }
    }

    /// Takes a message's bytes and calls `row` for each whole row in what has come so far, in order.
    pub(crate) fn feed<E: From<MalformedCopy>>(
        &mut self,
        data: &[u8],
        mut row: impl FnMut(Fields<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.pending.is_empty() {
            let rest = self.take_rows(data, &mut row)?;
            self.pending.extend_from_slice(rest);
            return Ok(());
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(data);
        let rest = self.take_rows(&joined, &mut row)?.len();
        joined.drain(..joined.len() - rest);
        self.pending = joined;
        Ok(())
    }

    /// Whether the end of the data has been seen, and nothing stands behind it.
    pub(crate) fn is_complete(&self) -> bool {
        self.ended && self.pending.is_empty()
    }

    fn take_rows<'d, E: From<MalformedCopy>>(
        &mut self,
        mut data: &'d [u8],
        row: &mut impl FnMut(Fields<'_>) -> Result<(), E>,
    ) -> Result<&'d [u8], E> {
        if !self.header_read {
            let Some(rest) = skip_header(data)? else { return Ok(data) };
            data = rest;
            self.header_read = true;
        }
        while !self.ended {
            let Some((count, fields)) = data.split_first_chunk::<2>() else { break };
            let count = i16::from_be_bytes(*count);
            if count == -1 {
                self.ended = true;
                data = fields;
                break;
            }
            if usize::try_from(count) != Ok(self.columns) {
                return Err(MalformedCopy.into());
            }
            let Some(length) = fields_length(fields, self.columns)? else { break };
            let (fields, rest) = fields.split_at(length);
            row(Fields(fields))?;
            data = rest;
        }
        Ok(data)
    }
}

/// Skips signature, flags and extension. `None` while they have not all come.
fn skip_header(data: &[u8]) -> Result<Option<&[u8]>, MalformedCopy> {
    let Some((signature, rest)) = data.split_at_checked(SIGNATURE.len()) else { return Ok(None) };
    if signature != SIGNATURE {
        return Err(MalformedCopy);
    }
    let Some((flags, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    // Bits 16 to 31 say that the data cannot be read without knowing them.
    if u32::from_be_bytes(*flags) >> 16 != 0 {
        return Err(MalformedCopy);
    }
    let Some((extension, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let extension = usize::try_from(u32::from_be_bytes(*extension)).map_err(|_| MalformedCopy)?;
    Ok(rest.split_at_checked(extension).map(|(_, rest)| rest))
}

/// Length of a row's fields; `None` while they have not all come.
fn fields_length(fields: &[u8], columns: usize) -> Result<Option<usize>, MalformedCopy> {
    let mut rest = fields;
    for _ in 0..columns {
        let Some((length, after)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        rest = match i32::from_be_bytes(*length) {
            -1 => after,
            length => {
                let length = usize::try_from(length).map_err(|_| MalformedCopy)?;
                let Some((_, after)) = after.split_at_checked(length) else { return Ok(None) };
                after
            }
        };
    }
    Ok(Some(fields.len() - rest.len()))
}

/// The fields of one row: bytes, or `None` for NULL.
pub(crate) struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// Bytes of the row.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let (field, rest) = rest.split_at_checked(length)?;
                self.0 = rest;
                Some(Some(field))
            }
            Err(_) => {
                self.0 = rest;
                Some(None)
            }
        }
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
