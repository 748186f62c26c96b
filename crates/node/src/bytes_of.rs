//! How this crate writes and reads what members send each other: little-endian numbers, and texts and lists with their length
//! in four bytes. Reading trusts nothing: a length beyond what is there is an error before anything is allocated.

use cachesql_table::{DecodeError, decode_values, encode_values};
use cachesql_types::Value;

use crate::entry::{EntryError, read_array, take};

/// What went wrong while bytes were read.
pub(crate) type ReadError = EntryError;

pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    // What has more items or bytes does not fit into a message.
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// A tag, and a text behind it.
pub(crate) fn put_tagged(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    put_text(out, text);
}

pub(crate) fn put_flag(out: &mut Vec<u8>, flag: bool) {
    out.push(u8::from(flag));
}

/// A flag, and the thing itself if it is there.
pub(crate) fn put_optional<T>(out: &mut Vec<u8>, optional: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    put_flag(out, optional.is_some());
    if let Some(there) = optional {
        put(out, there);
    }
}

pub(crate) fn put_list<T>(out: &mut Vec<u8>, items: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_count(out, items.len());
    items.iter().for_each(|item| put(out, item));
}

pub(crate) fn put_values(out: &mut Vec<u8>, values: &[Value]) {
    encode_values(out, values);
}

pub(crate) fn take_byte(rest: &mut &[u8]) -> Result<u8, ReadError> {
    read_array(rest).map(|[byte]| byte)
}

pub(crate) fn take_flag(rest: &mut &[u8]) -> Result<bool, ReadError> {
    match take_byte(rest)? {
        0 => Ok(false),
        1 => Ok(true),
        unknown => Err(ReadError::Tag(unknown)),
    }
}

pub(crate) fn take_number(rest: &mut &[u8]) -> Result<u64, ReadError> {
    Ok(u64::from_le_bytes(read_array(rest)?))
}

pub(crate) fn take_count(rest: &mut &[u8]) -> Result<usize, ReadError> {
    usize::try_from(u32::from_le_bytes(read_array(rest)?)).map_err(|_| ReadError::Truncated)
}

pub(crate) fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], ReadError> {
    let length = take_count(rest)?;
    take(rest, length)
}

pub(crate) fn take_text(rest: &mut &[u8]) -> Result<String, ReadError> {
    Ok(std::str::from_utf8(take_bytes(rest)?).map_err(|_| ReadError::Text)?.to_owned())
}

pub(crate) fn take_optional<T>(
    rest: &mut &[u8],
    item: impl FnOnce(&mut &[u8]) -> Result<T, ReadError>,
) -> Result<Option<T>, ReadError> {
    if take_flag(rest)? { item(rest).map(Some) } else { Ok(None) }
}

/// Each item takes at least a byte, so that a number of them beyond what is there is refused at once.
pub(crate) fn take_list<T>(
    rest: &mut &[u8],
    mut item: impl FnMut(&mut &[u8]) -> Result<T, ReadError>,
) -> Result<Vec<T>, ReadError> {
    let count = take_count(rest)?;
    if count > rest.len() {
        return Err(ReadError::Truncated);
    }
    // An item may take much more memory than its bytes: grow with what is really there.
    let mut items = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        items.push(item(rest)?);
    }
    Ok(items)
}

pub(crate) fn take_values(rest: &mut &[u8]) -> Result<Vec<Value>, ReadError> {
    decode_values(rest).map_err(ReadError::Operations)
}

/// That nothing follows.
pub(crate) fn end(rest: &[u8]) -> Result<(), ReadError> {
    match rest.len() {
        0 => Ok(()),
        bytes => Err(ReadError::Operations(DecodeError::Trailing { bytes })),
    }
}
