//! Index keys whose order as plain integers or bytes is that of `Value::total_cmp`.
//!
//! A single column of a fixed width becomes a `u64`. Anything else becomes bytes: the value of a single column as it is; of
//! several columns each one behind a marker, NULL's being the larger, and text so escaped that no value is a prefix of another.

use std::cmp::Ordering;
use std::sync::Arc;

use cachesql_types::{DataType, Decimal, Value};
use smallvec::SmallVec;

use super::tree::{Bounds, Key};
use crate::cell::Cell;

/// A key under construction or being looked up; short ones need no allocation.
pub(crate) type KeyBuffer = SmallVec<[u8; 64]>;

/// Before a value, and before NULL, in a key of several columns.
pub(crate) const VALUE: u8 = 1;
pub(crate) const NULL: u8 = 2;
/// A zero byte of a text within a key of several columns is followed by this, the text's end is zero and `TEXT_END`.
const ESCAPED: u8 = 0xFF;
const TEXT_END: u8 = 1;

impl Key for u64 {
    type Lookup = u64;

    fn lookup(&self) -> &u64 {
        self
    }

    fn heap_bytes(&self) -> usize {
        0
    }

    #[inline]
    fn search<T>(
        items: &[T],
        key_of: impl Fn(&T) -> &u64,
        key: &u64,
        (least, greatest): Bounds<'_, u64>,
    ) -> Result<usize, usize> {
        let least = least.or_else(|| items.first().map(&key_of)).map_or(0, |k| *k);
        let greatest = greatest.or_else(|| items.last().map(&key_of)).map_or(u64::MAX, |k| *k);
        search_numbers(items, key_of, *key, (least, greatest))
    }
}

/// Finds a number among ascending ones. It begins where the number would be were they evenly spread between two bounds, which
/// keys that count upwards are: one line of memory is read then, where halving reads one for nearly each step. From there it
/// looks ever further to one side, and halves what is left: twice the steps of halving alone, for the worst of keys and bounds.
#[inline]
fn search_numbers<T>(
    items: &[T],
    key_of: impl Fn(&T) -> &u64,
    key: u64,
    (least, greatest): (u64, u64),
) -> Result<usize, usize> {
    let share = |part: u64, whole: u64| {
        #[allow(clippy::cast_precision_loss)]
        let share = part as f64 * items.len() as f64 / whole.max(1) as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = share as usize;
        at
    };
    let guess = share(key.saturating_sub(least), greatest.saturating_sub(least));
    // All keys before `low` are smaller, all from `high` on are larger.
    let (mut low, mut high) = (0, items.len());
    let mut step = 1;
    let mut at = guess.min(high.saturating_sub(1));
    while low < high {
        match items.get(at).map_or(Ordering::Greater, |found| key_of(found).cmp(&key)) {
            Ordering::Equal => return Ok(at),
            Ordering::Less => {
                low = at + 1;
                at += step;
            }
            Ordering::Greater => {
                high = at;
                at = at.saturating_sub(step);
            }
        }
        step *= 2;
        if at < low || at >= high {
            break;
        }
    }
    match items.get(low..high).unwrap_or_default().binary_search_by(|item| key_of(item).cmp(&key)) {
        Ok(at) => Ok(low + at),
        Err(at) => Err(low + at),
    }
}

const INLINE_BYTES: usize = 22;

/// Bytes, up to 22 of them inline.
#[derive(Clone, Debug)]
pub(crate) enum KeyBytes {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Shared(Arc<[u8]>),
}

impl KeyBytes {
    pub(crate) fn new(key: &[u8]) -> KeyBytes {
        let mut bytes = [0; INLINE_BYTES];
        match (bytes.get_mut(..key.len()), u8::try_from(key.len())) {
            (Some(inline), Ok(length)) => {
                inline.copy_from_slice(key);
                KeyBytes::Inline { length, bytes }
            }
            _ => KeyBytes::Shared(Arc::from(key)),
        }
    }
}

impl Key for KeyBytes {
    type Lookup = [u8];

    fn lookup(&self) -> &[u8] {
        match self {
            KeyBytes::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or(bytes),
            KeyBytes::Shared(bytes) => bytes,
        }
    }

    /// A separator shares its bytes with a leaf, and is counted all the same: the leaf's key may go before it.
    fn heap_bytes(&self) -> usize {
        match self {
            KeyBytes::Inline { .. } => 0,
            KeyBytes::Shared(bytes) => 16 + bytes.len(),
        }
    }
}

/// Whether a single column of the type is indexed as `u64`.
pub(crate) fn is_fixed(data_type: DataType) -> bool {
    !matches!(data_type, DataType::Decimal { .. } | DataType::Text | DataType::Bytea | DataType::Uuid | DataType::Json)
}

const SIGN: u64 = 1 << 63;

fn of_i64(value: i64) -> u64 {
    value.cast_unsigned() ^ SIGN
}

fn of_f64(value: f64) -> u64 {
    // One zero and one NaN, for an index cannot tell them apart.
    let value = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn to_f64(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

/// The key of a value of a fixed type; `None` for NULL and for values of other types. REAL is kept as a double: it widens exactly.
pub(crate) fn fixed_of(cell: Cell<'_>) -> Option<u64> {
    Some(match cell {
        Cell::Boolean(v) => of_i64(i64::from(v)),
        Cell::SmallInt(v) => of_i64(i64::from(v)),
        Cell::Integer(v) | Cell::Date(v) => of_i64(i64::from(v)),
        Cell::BigInt(v) | Cell::Time(v) | Cell::Timestamp(v) | Cell::TimestampTz(v) => of_i64(v),
        Cell::Real(v) => of_f64(f64::from(v)),
        Cell::Double(v) => of_f64(v),
        Cell::Null | Cell::Decimal(_) | Cell::Text(_) | Cell::Bytea(_) | Cell::Uuid(_) | Cell::Json(_) => return None,
    })
}

fn decimal_key(unscaled: i128) -> [u8; 16] {
    (unscaled.cast_unsigned() ^ (1 << 127)).to_be_bytes()
}

/// Appends a column of a key of several columns.
pub(crate) fn push_component(key: &mut KeyBuffer, cell: Cell<'_>) {
    if matches!(cell, Cell::Null) {
        return key.push(NULL);
    }
    key.push(VALUE);
    match cell {
        Cell::Text(text) | Cell::Json(text) => push_escaped(key, text.as_bytes()),
        Cell::Bytea(bytes) => push_escaped(key, bytes),
        _ => push_plain(key, cell),
    }
}

/// Appends the only column of a key.
pub(crate) fn push_plain(key: &mut KeyBuffer, cell: Cell<'_>) {
    match cell {
        Cell::Text(text) | Cell::Json(text) => key.extend_from_slice(text.as_bytes()),
        Cell::Bytea(bytes) => key.extend_from_slice(bytes),
        Cell::Uuid(bytes) => key.extend_from_slice(&bytes),
        Cell::Decimal(value) => key.extend_from_slice(&decimal_key(value.unscaled)),
        other => key.extend(fixed_of(other).into_iter().flat_map(u64::to_be_bytes)),
    }
}

fn push_escaped(key: &mut KeyBuffer, bytes: &[u8]) {
    for part in bytes.split_inclusive(|b| *b == 0) {
        key.extend_from_slice(part);
        if part.last() == Some(&0) {
            key.push(ESCAPED);
        }
    }
    key.extend_from_slice(&[0, TEXT_END]);
}

/// Makes of a key the smallest one above all that begin with it. False when there is none.
pub(crate) fn successor(key: &mut KeyBuffer) -> bool {
    while let Some(last) = key.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return true;
        }
        key.pop();
    }
    false
}

/// Where a value of any type lies among the values of a column.
pub(crate) enum Place {
    /// The first key that is not below the value, and the first above it; `None` is the end.
    Fixed { from: Option<u64>, after: Option<u64> },
    /// A value of the column's own type, whose bytes are its key.
    Bytes(KeyBuffer),
    /// A number between the decimals of the column: the same as for `Fixed`.
    Decimal { from: Option<u128>, after: Option<u128> },
}

/// Finds a value's place in a column. `None` when its type does not compare with the column's, or it is NULL.
pub(crate) fn place(data_type: DataType, value: &Value) -> Option<Place> {
    if value.is_null() {
        return None;
    }
    if crate::cell::fits(value, data_type) {
        let cell = Cell::of_value(value);
        return Some(match fixed_of(cell) {
            Some(key) => Place::Fixed { from: Some(key), after: key.checked_add(1) },
            None => {
                let mut key = KeyBuffer::new();
                push_plain(&mut key, cell);
                Place::Bytes(key)
            }
        });
    }
    if let (true, Some(integer)) = (data_type.is_integer(), value.as_i64()) {
        let key = of_i64(integer);
        return Some(Place::Fixed { from: Some(key), after: key.checked_add(1) });
    }
    let numbers = data_type.is_numeric() && value.data_type().is_some_and(DataType::is_numeric);
    match data_type {
        DataType::Decimal { scale, .. } if numbers => {
            let below = |key: u128| -> Ordering {
                let unscaled = (key ^ (1 << 127)).cast_signed();
                Value::Decimal(Decimal { unscaled, scale }).total_cmp(value)
            };
            Some(Place::Decimal {
                from: first_where(|key| below(key) != Ordering::Less),
                after: first_where(|key| below(key) == Ordering::Greater),
            })
        }
        _ if numbers => {
            let compare = |key: u64| -> Ordering {
                let here = if data_type.is_integer() {
                    Value::BigInt((key ^ SIGN).cast_signed())
                } else if key < of_f64(f64::NEG_INFINITY) {
                    // Bit patterns that no key has.
                    return Ordering::Less;
                } else {
                    Value::Double(to_f64(key))
                };
                here.total_cmp(value)
            };
            let narrow = |key: u128| u64::try_from(key).unwrap_or(u64::MAX);
            let find = |wanted: &dyn Fn(Ordering) -> bool| {
                first_where(|key| key > u128::from(u64::MAX) || wanted(compare(narrow(key))))
                    .and_then(|key| u64::try_from(key).ok())
            };
            Some(Place::Fixed { from: find(&|o| o != Ordering::Less), after: find(&|o| o == Ordering::Greater) })
        }
        _ => None,
    }
}

/// The first key that satisfies a condition which, once true, stays true.
fn first_where(condition: impl Fn(u128) -> bool) -> Option<u128> {
    let (mut low, mut high) = (0_u128, u128::MAX);
    if !condition(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if condition(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

impl Place {
    /// Writes the place as the bytes of a key's column: the start of the value's own keys or, with `after`, of those
    /// above it. `escaped` for a key of several columns. False when nothing lies there.
    pub(crate) fn push(&self, key: &mut KeyBuffer, data_type: DataType, escaped: bool, after: bool) -> bool {
        match self {
            Place::Fixed { from, after: above } => {
                let Some(place) = (if after { above } else { from }) else { return false };
                key.extend_from_slice(&place.to_be_bytes());
            }
            Place::Decimal { from, after: above } => {
                let Some(place) = (if after { above } else { from }) else { return false };
                key.extend_from_slice(&place.to_be_bytes());
            }
            Place::Bytes(bytes) => {
                let variable = matches!(data_type, DataType::Text | DataType::Bytea | DataType::Json);
                match (variable, escaped) {
                    (true, true) => push_escaped(key, bytes),
                    _ => key.extend_from_slice(bytes),
                }
                if after {
                    match (variable, escaped) {
                        // The next text is this one and a zero byte.
                        (true, false) => key.push(0),
                        (true, true) => return successor(key),
                        (false, _) => return increment(key, bytes.len()),
                    }
                }
            }
        }
        true
    }
}

/// Adds one to the last `length` bytes, as to a big-endian number. False when they were the largest.
fn increment(key: &mut KeyBuffer, length: usize) -> bool {
    let start = key.len() - length;
    for byte in key[start..].iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
