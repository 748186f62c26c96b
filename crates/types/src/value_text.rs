//! Values as text: PostgreSQL's output formats, and what its input functions accept.
//!
//! Where PostgreSQL would round (more than six digits of a second, more digits than a scale holds), this refuses instead.

use std::io::Write as _;
use std::sync::Arc;

use crate::calendar::{MICROS_PER_DAY, civil_from_days, days_from_civil};
use crate::data_type::DataType;
use crate::decimal::Decimal;
use crate::value::Value;

/// Why a text or a value cannot become a value of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The text is not written as values of the type are.
    #[error("invalid input syntax for type {data_type}: {text:?}")]
    Syntax {
        /// The type that was wanted.
        data_type: DataType,
        /// The text, cut to a readable length.
        text: String,
    },
    /// The type has no such value, or could hold it only rounded.
    #[error("value {text} cannot be held exactly in type {data_type}")]
    Range {
        /// The type that was wanted.
        data_type: DataType,
        /// The value's text, cut to a readable length.
        text: String,
    },
    /// Values of the one type do not become values of the other without a cast.
    #[error("a value of type {from} cannot be used as {to}")]
    Type {
        /// The value's type.
        from: DataType,
        /// The type that was wanted.
        to: DataType,
    },
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

fn syntax(data_type: DataType, text: &str) -> ValueError {
    ValueError::Syntax { data_type, text: shortened(text) }
}

fn range(data_type: DataType, text: &str) -> ValueError {
    ValueError::Range { data_type, text: shortened(text) }
}

impl Value {
    /// Reads a value of a type from text, exactly. White space around anything but text and JSON is ignored.
    pub fn parse(text: &str, data_type: DataType) -> Result<Value, ValueError> {
        let trimmed = text.trim();
        Ok(match data_type {
            DataType::Text => Value::Text(Arc::from(text)),
            DataType::Json => Value::Json(Arc::from(text)),
            DataType::Boolean => Value::Boolean(parse_boolean(trimmed).ok_or_else(|| syntax(data_type, text))?),
            DataType::SmallInt => Value::SmallInt(parse_integer(trimmed, data_type)?),
            DataType::Integer => Value::Integer(parse_integer(trimmed, data_type)?),
            DataType::BigInt => Value::BigInt(parse_integer(trimmed, data_type)?),
            DataType::Real => Value::Real(parse_float(trimmed, data_type)?),
            DataType::Double => Value::Double(parse_float(trimmed, data_type)?),
            DataType::Decimal { precision, scale } => {
                let read = Decimal::parse(trimmed).ok_or_else(|| {
                    let number = trimmed.parse::<f64>().is_ok();
                    if number { range(data_type, text) } else { syntax(data_type, text) }
                })?;
                Value::Decimal(fit_decimal(read, precision, scale).ok_or_else(|| range(data_type, text))?)
            }
            DataType::Bytea => Value::Bytea(Arc::from(parse_bytea(text).ok_or_else(|| syntax(data_type, text))?)),
            DataType::Date => Value::Date(parse_date(trimmed)?),
            DataType::Time => Value::Time(parse_time(trimmed)?),
            DataType::Timestamp => Value::Timestamp(parse_timestamp(trimmed)?),
            DataType::TimestampTz => Value::TimestampTz(parse_timestamptz(trimmed)?),
            DataType::Uuid => Value::Uuid(parse_uuid(trimmed).ok_or_else(|| syntax(data_type, text))?),
        })
    }

    /// The same value in another type, when nothing of it is lost: numbers among number types, text read as any type,
    /// dates as timestamps, anything as itself. NULL stays NULL.
    pub fn coerce(&self, to: DataType) -> Result<Value, ValueError> {
        let Some(from) = self.data_type() else { return Ok(Value::Null) };
        let out_of_range = || range(to, &self.to_text());
        match (self, to) {
            (Value::Decimal(d), DataType::Decimal { precision, scale }) => {
                fit_decimal(*d, precision, scale).map(Value::Decimal).ok_or_else(out_of_range)
            }
            _ if from == to => Ok(self.clone()),
            (Value::Text(text), _) => Value::parse(text, to),
            (Value::Json(text), DataType::Text) => Ok(Value::Text(text.clone())),
            (Value::Date(days), DataType::Timestamp | DataType::TimestampTz) => {
                let micros = date_to_micros(*days);
                Ok(if to == DataType::Timestamp { Value::Timestamp(micros) } else { Value::TimestampTz(micros) })
            }
            (Value::Timestamp(micros), DataType::TimestampTz) => Ok(Value::TimestampTz(*micros)),
            (Value::TimestampTz(micros), DataType::Timestamp) => Ok(Value::Timestamp(*micros)),
            _ if from.is_numeric() && to.is_numeric() => self.coerce_number(to).ok_or_else(out_of_range),
            _ => Err(ValueError::Type { from, to }),
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
    fn coerce_number(&self, to: DataType) -> Option<Value> {
        let as_integer = || match self {
            Value::Decimal(d) => d.to_i64(),
            Value::Real(v) => exact_integer(f64::from(*v)),
            Value::Double(v) => exact_integer(*v),
            _ => self.as_i64(),
        };
        Some(match to {
            DataType::SmallInt => Value::SmallInt(as_integer()?.try_into().ok()?),
            DataType::Integer => Value::Integer(as_integer()?.try_into().ok()?),
            DataType::BigInt => Value::BigInt(as_integer()?),
            DataType::Double => match self {
                Value::Real(v) => Value::Double(f64::from(*v)),
                Value::Decimal(d) => Value::Double(d.to_f64()),
                _ => {
                    let integer = self.as_i64()?;
                    let double = integer as f64;
                    (double as i128 == i128::from(integer)).then_some(Value::Double(double))?
                }
            },
            DataType::Real => match self {
                Value::Double(v) => {
                    let real = *v as f32;
                    (f64::from(real) == *v || v.is_nan()).then_some(Value::Real(real))?
                }
                Value::Decimal(d) => Value::Real(d.to_string().parse().ok()?),
                _ => {
                    let integer = self.as_i64()?;
                    let real = integer as f32;
                    (real as i128 == i128::from(integer)).then_some(Value::Real(real))?
                }
            },
            DataType::Decimal { precision, scale } => {
                let decimal = match self {
                    Value::Real(v) => Decimal::parse(&v.to_string())?,
                    Value::Double(v) => Decimal::parse(&v.to_string())?,
                    _ => Decimal::from(self.as_i64()?),
                };
                Value::Decimal(fit_decimal(decimal, precision, scale)?)
            }
            _ => return None,
        })
    }

    /// Appends the value as PostgreSQL writes it in text; NULL appends nothing.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => {}
            Value::Boolean(v) => out.extend_from_slice(if *v { b"t" } else { b"f" }),
            Value::SmallInt(v) => out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes()),
            Value::Integer(v) => out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes()),
            Value::BigInt(v) => out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes()),
            Value::Real(v) => write_real(out, *v),
            Value::Double(v) => write_double(out, *v),
            Value::Decimal(d) => out.extend_from_slice(d.to_string().as_bytes()),
            Value::Text(text) | Value::Json(text) => out.extend_from_slice(text.as_bytes()),
            Value::Bytea(bytes) => write_bytea(out, bytes),
            Value::Date(days) => write_date(out, *days),
            Value::Time(micros) => write_time(out, *micros),
            Value::Timestamp(micros) => write_timestamp(out, *micros, b' '),
            Value::TimestampTz(micros) => write_timestamptz(out, *micros, b' '),
            Value::Uuid(bytes) => write_uuid(out, bytes),
        }
    }

    /// The value as PostgreSQL writes it in text; NULL is the empty string.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        self.write_text(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn fit_decimal(value: Decimal, precision: u8, scale: u8) -> Option<Decimal> {
    value.rescale(scale).filter(|d| d.digits() <= u32::from(precision))
}

#[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
fn exact_integer(value: f64) -> Option<i64> {
    // 2^63 itself does not fit; the bounds are exact doubles.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    (fits && value.trunc() == value).then_some(value as i64)
}

fn parse_boolean(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn parse_integer<T: TryFrom<i128>>(text: &str, data_type: DataType) -> Result<T, ValueError> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(syntax(data_type, text));
    }
    text.parse::<i128>().ok().and_then(|v| T::try_from(v).ok()).ok_or_else(|| range(data_type, text))
}

fn parse_float<T: std::str::FromStr + Into<f64> + Copy>(text: &str, data_type: DataType) -> Result<T, ValueError> {
    let value: T = text.parse().map_err(|_| syntax(data_type, text))?;
    let wide: f64 = value.into();
    let named = text.trim_start_matches(['-', '+']).starts_with(['i', 'I', 'n', 'N']);
    if wide.is_infinite() && !named {
        return Err(range(data_type, text));
    }
    Ok(value)
}

/// Reads `\x0aff` (hex) or PostgreSQL's escape format (`\\` and `\ooo`).
pub fn parse_bytea(text: &str) -> Option<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        return parse_hex(hex.bytes().filter(|b| !b.is_ascii_whitespace()));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next()? {
            b'\\' => out.push(b'\\'),
            first @ b'0'..=b'3' => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let digit = bytes.next().filter(|d| (b'0'..=b'7').contains(d))?;
                    value = value * 8 + u32::from(digit - b'0');
                }
                out.push(u8::try_from(value).ok()?);
            }
            _ => return None,
        }
    }
    Some(out)
}

fn parse_hex(digits: impl Iterator<Item = u8>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut high = None;
    for digit in digits {
        let nibble = u8::try_from(char::from(digit).to_digit(16)?).ok()?;
        match high.take() {
            None => high = Some(nibble),
            Some(first) => out.push(first << 4 | nibble),
        }
    }
    high.is_none().then_some(out)
}

/// Reads a UUID with or without hyphens or braces, in any case.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    parse_hex(inner.bytes().filter(|b| *b != b'-'))?.try_into().ok()
}

/// Splits digits (1 to `most`) off the front of a text.
fn take_digits(text: &str, most: usize) -> Option<(i64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 || length > most {
        return None;
    }
    Some((text.get(..length)?.parse().ok()?, text.get(length..)?))
}

/// Reads `2026-11-29`, `0044-03-15 BC`, `infinity`, `-infinity`. Days since 1970-01-01.
pub fn parse_date(text: &str) -> Result<i32, ValueError> {
    match text.to_ascii_lowercase().as_str() {
        "infinity" => return Ok(i32::MAX),
        "-infinity" => return Ok(i32::MIN),
        _ => {}
    }
    let (text_ad, bc) = strip_bc(text);
    let (date, rest) = take_date(text_ad, bc).ok_or_else(|| syntax(DataType::Date, text))?;
    // A time of day behind a date is ignored when it is midnight: drivers send such texts.
    if !rest.is_empty()
        && take_time(rest.trim_start_matches(['T', ' '])).is_none_or(|(micros, rest)| micros != 0 || !rest.is_empty())
    {
        return Err(syntax(DataType::Date, text));
    }
    let days = date.ok_or_else(|| range(DataType::Date, text))?;
    i32::try_from(days).ok().filter(|d| *d != i32::MAX && *d != i32::MIN).ok_or_else(|| range(DataType::Date, text))
}

fn strip_bc(text: &str) -> (&str, bool) {
    let stripped = text.strip_suffix("BC").or_else(|| text.strip_suffix("bc"));
    stripped.map_or((text, false), |t| (t.trim_end(), true))
}

/// Splits a date off; the inner `None` is a date that does not exist.
fn take_date(text: &str, bc: bool) -> Option<(Option<i64>, &str)> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let year_digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if year_digits < 4 {
        return None;
    }
    let (year, rest) = take_digits(unsigned, 7)?;
    let (month, rest) = take_digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = take_digits(rest.strip_prefix('-')?, 2)?;
    let year = match (negative, bc) {
        (false, false) => year,
        (true, false) => -year,
        (false, true) if year > 0 => 1 - year,
        _ => return Some((None, rest)),
    };
    let date = days_from_civil(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    Some((date, rest))
}

/// Splits a time of day off: `hh:mm[:ss[.ffffff]]`. Microseconds since midnight.
fn take_time(text: &str) -> Option<(i64, &str)> {
    let (hour, rest) = take_digits(text, 2)?;
    let (minute, rest) = take_digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => take_digits(rest, 2)?,
        None => (0, rest),
    };
    let (micros, rest) = match rest.strip_prefix(['.', ',']) {
        Some(rest) => take_micros(rest)?,
        None => (0, rest),
    };
    let whole = (hour * 60 + minute) * 60 + second;
    let total = whole * 1_000_000 + micros;
    (minute < 60 && second <= 60 && total <= MICROS_PER_DAY).then_some((total, rest))
}

/// Splits a fraction of a second off; digits beyond the sixth must be zero.
fn take_micros(text: &str) -> Option<(i64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let digits = text.get(..length)?;
    if length == 0 || digits.bytes().skip(6).any(|b| b != b'0') {
        return None;
    }
    let micros = digits.bytes().chain(std::iter::repeat(b'0')).take(6).fold(0, |sum, b| sum * 10 + i64::from(b - b'0'));
    Some((micros, text.get(length..)?))
}

/// Splits a zone off: `Z`, `UTC`, `+hh`, `+hhmm`, `+hh:mm`, `+hh:mm:ss`. Seconds east of UTC.
fn parse_zone(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z" | "UTC" | "utc" | "GMT") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text.get(1..)?.chars().filter(|c| *c != ':').collect();
    if !matches!(digits.len(), 2 | 4 | 6) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), |d| d.parse::<i64>().ok());
    let (hours, minutes, seconds) = (part(0)?, part(2)?, part(4)?);
    (hours < 16 && minutes < 60 && seconds < 60).then_some(sign * ((hours * 60 + minutes) * 60 + seconds))
}

/// Reads `hh:mm[:ss[.ffffff]]`. Microseconds since midnight.
pub fn parse_time(text: &str) -> Result<i64, ValueError> {
    match take_time(text) {
        Some((micros, "")) => Ok(micros),
        _ => Err(syntax(DataType::Time, text)),
    }
}

/// Reads `2026-11-29 20:31:32.5` with a space or a `T`, or a date alone. A zone behind it is ignored, as PostgreSQL does.
/// Microseconds since 1970-01-01 00:00:00.
pub fn parse_timestamp(text: &str) -> Result<i64, ValueError> {
    parse_instant(text, DataType::Timestamp).map(|(micros, _)| micros)
}

/// Reads the same with a zone; without one it is UTC. Microseconds since 1970-01-01 00:00:00 UTC.
pub fn parse_timestamptz(text: &str) -> Result<i64, ValueError> {
    let (micros, zone) = parse_instant(text, DataType::TimestampTz)?;
    if matches!(micros, i64::MAX | i64::MIN) {
        return Ok(micros);
    }
    micros.checked_sub(zone * 1_000_000).ok_or_else(|| range(DataType::TimestampTz, text))
}

fn parse_instant(text: &str, data_type: DataType) -> Result<(i64, i64), ValueError> {
    match text.to_ascii_lowercase().as_str() {
        "infinity" => return Ok((i64::MAX, 0)),
        "-infinity" => return Ok((i64::MIN, 0)),
        _ => {}
    }
    let (text_ad, bc) = strip_bc(text);
    let malformed = || syntax(data_type, text);
    let (date, rest) = take_date(text_ad, bc).ok_or_else(malformed)?;
    let (time, rest) = match rest.strip_prefix(['T', 't', ' ']) {
        Some(rest) => take_time(rest.trim_start()).ok_or_else(malformed)?,
        None => (0, rest),
    };
    let zone = match rest.trim_start() {
        "" => 0,
        zone => parse_zone(zone).ok_or_else(malformed)?,
    };
    let days = date.ok_or_else(|| range(data_type, text))?;
    let micros =
        days.checked_mul(MICROS_PER_DAY).and_then(|d| d.checked_add(time)).ok_or_else(|| range(data_type, text))?;
    Ok((micros, zone))
}

fn date_to_micros(days: i32) -> i64 {
    match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        days => i64::from(days).saturating_mul(MICROS_PER_DAY),
    }
}

/// Appends a date, years before 1 as `0044-03-15 BC`.
pub fn write_date(out: &mut Vec<u8>, days: i32) {
    match days {
        i32::MAX => out.extend_from_slice(b"infinity"),
        i32::MIN => out.extend_from_slice(b"-infinity"),
        days => {
            let bc = write_civil(out, i64::from(days));
            write_bc(out, bc);
        }
    }
}

/// Appends year, month and day; true when the year is before 1.
fn write_civil(out: &mut Vec<u8>, days: i64) -> bool {
    let (year, month, day) = civil_from_days(days);
    let bc = year < 1;
    let shown = if bc { 1 - year } else { year };
    if shown < 10_000 {
        write_two(out, shown / 100);
        write_two(out, shown % 100);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(shown).as_bytes());
    }
    out.push(b'-');
    write_two(out, i64::from(month));
    out.push(b'-');
    write_two(out, i64::from(day));
    bc
}

fn write_bc(out: &mut Vec<u8>, bc: bool) {
    if bc {
        out.extend_from_slice(b" BC");
    }
}

fn write_two(out: &mut Vec<u8>, value: i64) {
    let digit = |v: i64| b'0' + u8::try_from(v.rem_euclid(10)).unwrap_or(0);
    out.extend_from_slice(&[digit(value / 10), digit(value)]);
}

/// Appends a time of day, without trailing zeros of its fraction.
pub fn write_time(out: &mut Vec<u8>, micros: i64) {
    let seconds = micros / 1_000_000;
    write_two(out, seconds / 3_600);
    out.push(b':');
    write_two(out, seconds / 60 % 60);
    out.push(b':');
    write_two(out, seconds % 60);
    let mut fraction = micros % 1_000_000;
    if fraction != 0 {
        let mut width = 6;
        while fraction % 10 == 0 {
            fraction /= 10;
            width -= 1;
        }
        out.push(b'.');
        let digits = itoa::Buffer::new().format(fraction).len();
        out.extend(std::iter::repeat_n(b'0', width - digits));
        out.extend_from_slice(itoa::Buffer::new().format(fraction).as_bytes());
    }
}

/// Appends a timestamp; `separator` stands between date and time (PostgreSQL's text has a space, JSON a `T`).
pub fn write_timestamp(out: &mut Vec<u8>, micros: i64, separator: u8) {
    let bc = write_instant(out, micros, separator, b"");
    write_bc(out, bc);
}

/// Appends a timestamp in UTC, with `+00` behind it when the separator is a space, `+00:00` otherwise.
pub fn write_timestamptz(out: &mut Vec<u8>, micros: i64, separator: u8) {
    let bc = write_instant(out, micros, separator, if separator == b' ' { b"+00" } else { b"+00:00" });
    write_bc(out, bc);
}

fn write_instant(out: &mut Vec<u8>, micros: i64, separator: u8, zone: &[u8]) -> bool {
    match micros {
        i64::MAX => out.extend_from_slice(b"infinity"),
        i64::MIN => out.extend_from_slice(b"-infinity"),
        micros => {
            let bc = write_civil(out, micros.div_euclid(MICROS_PER_DAY));
            out.push(separator);
            write_time(out, micros.rem_euclid(MICROS_PER_DAY));
            out.extend_from_slice(zone);
            return bc;
        }
    }
    false
}

/// Appends `\x` and two hex digits a byte.
pub fn write_bytea(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"\\x");
    write_hex(out, bytes);
}

/// Appends a UUID in lower case with hyphens.
pub fn write_uuid(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    let mut rest = bytes.as_slice();
    for (i, length) in [4, 2, 2, 2, 6].into_iter().enumerate() {
        if i > 0 {
            out.push(b'-');
        }
        let (head, tail) = rest.split_at(length);
        write_hex(out, head);
        rest = tail;
    }
}

fn write_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
}

/// Appends a DOUBLE as PostgreSQL does: the shortest digits that read back, an exponent below 1e-4 and from 1e15 on.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    if write_not_finite(out, value) {
        return;
    }
    let mut text = [0_u8; 32];
    let mut rest = text.as_mut_slice();
    let _ = write!(rest, "{value:e}");
    let unused = rest.len();
    let (text, _) = text.split_at(32 - unused);
    write_shortest(out, text, 15);
}

/// Appends a REAL as PostgreSQL does: the shortest digits that read back, an exponent below 1e-4 and from 1e6 on.
pub fn write_real(out: &mut Vec<u8>, value: f32) {
    if write_not_finite(out, f64::from(value)) {
        return;
    }
    let mut text = [0_u8; 32];
    let mut rest = text.as_mut_slice();
    let _ = write!(rest, "{value:e}");
    let unused = rest.len();
    let (text, _) = text.split_at(32 - unused);
    write_shortest(out, text, 6);
}

fn write_not_finite(out: &mut Vec<u8>, value: f64) -> bool {
    let name: &[u8] = match value {
        v if v.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => return false,
    };
    out.extend_from_slice(name);
    true
}

/// Rewrites `-1.2345e-7` as PostgreSQL prints it.
fn write_shortest(out: &mut Vec<u8>, scientific: &[u8], exponent_from: i32) {
    let text = std::str::from_utf8(scientific).unwrap_or("0e0");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    if unsigned.len() < mantissa.len() {
        out.push(b'-');
    }
    if !(-4..exponent_from).contains(&exponent) {
        out.extend_from_slice(unsigned.as_bytes());
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        let magnitude = i64::from(exponent.unsigned_abs());
        if magnitude < 100 {
            write_two(out, magnitude);
        } else {
            out.extend_from_slice(itoa::Buffer::new().format(magnitude).as_bytes());
        }
        return;
    }
    let digits: Vec<u8> = unsigned.bytes().filter(u8::is_ascii_digit).collect();
    match usize::try_from(exponent) {
        Ok(exponent) if exponent + 1 >= digits.len() => {
            out.extend_from_slice(&digits);
            out.extend(std::iter::repeat_n(b'0', exponent + 1 - digits.len()));
        }
        Ok(exponent) => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        Err(_) => {
            out.extend_from_slice(b"0.");
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            out.extend(std::iter::repeat_n(b'0', zeros));
            out.extend_from_slice(&digits);
        }
    }
}

#[cfg(test)]
#[path = "value_text_tests.rs"]
mod tests;
