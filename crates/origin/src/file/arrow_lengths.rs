//! What an Arrow IPC file says of its own lengths, before anything is allocated by them: a broken or hostile file must not
//! make this process ask for more memory than the file is long. Counts the rows on the way.
//!
//! The layouts are those of the page "Serialization and Interprocess Communication (IPC)" of the Arrow format.

use std::io::{self, Read, Seek, SeekFrom};

use arrow_ipc::{Block, Message, root_as_footer, root_as_message};

use crate::file::arrow::FILE_MAGIC;

/// Footer length and magic at the end of a file.
const TAIL_BYTES: u64 = 10;
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Checks that all parts lie within the file, and counts its rows. The error is a reason for a person.
pub(super) fn checked_rows(input: &mut (impl Read + Seek), is_file: bool) -> Result<u64, String> {
    let size = input.seek(SeekFrom::End(0)).map_err(said)?;
    if is_file { rows_of_file(input, size) } else { rows_of_stream(input, size) }
}

fn said(error: io::Error) -> String {
    error.to_string()
}

fn rows_of_file(input: &mut (impl Read + Seek), size: u64) -> Result<u64, String> {
    let mut tail = [0; TAIL_BYTES as usize];
    let tail_at = size.checked_sub(TAIL_BYTES).ok_or("it is too short")?;
    input.seek(SeekFrom::Start(tail_at)).map_err(said)?;
    input.read_exact(&mut tail).map_err(said)?;
    let (length, magic) = tail.split_at(4);
    if magic != FILE_MAGIC {
        return Err("it does not end as Arrow files end; perhaps it is cut".to_owned());
    }
    let length = length.try_into().map(u32::from_le_bytes).map_err(|_| "it is too short")?;
    let footer_at = tail_at.checked_sub(u64::from(length)).ok_or("its footer is longer than the file")?;
    let footer = read_at(input, footer_at, u64::from(length), size)?;
    let footer = root_as_footer(&footer).map_err(|error| format!("its footer is broken: {error}"))?;
    let mut rows = 0_u64;
    for block in footer.dictionaries().iter().flatten() {
        block_within(block, size)?;
    }
    for block in footer.recordBatches().iter().flatten() {
        let (offset, metadata) = block_within(block, size)?;
        let message = read_at(input, offset, metadata, size)?;
        // Older writers leave the continuation mark out.
        let skipped = if message.starts_with(&CONTINUATION) { 8 } else { 4 };
        rows = rows.saturating_add(rows_of(&message_of(message.get(skipped..).unwrap_or_default())?));
    }
    Ok(rows)
}

/// Where a block begins and how long its metadata is.
fn block_within(block: &Block, size: u64) -> Result<(u64, u64), String> {
    let number = |value: i64| u64::try_from(value).ok();
    let parts = number(block.offset()).zip(number(i64::from(block.metaDataLength()))).zip(number(block.bodyLength()));
    let ((offset, metadata), body) = parts.ok_or("a length in its footer is negative")?;
    let end = offset.checked_add(metadata).and_then(|end| end.checked_add(body));
    if end.is_none_or(|end| end > size) {
        return Err("a part of it lies behind its end; perhaps it is cut".to_owned());
    }
    Ok((offset, metadata))
}

fn rows_of_stream(input: &mut (impl Read + Seek), size: u64) -> Result<u64, String> {
    let mut at = 0_u64;
    let mut rows = 0_u64;
    while at < size {
        let mut word = [0; 4];
        let mut prefix = |at: u64| -> Result<[u8; 4], String> {
            input.seek(SeekFrom::Start(at)).map_err(said)?;
            input.read_exact(&mut word).map_err(said)?;
            Ok(word)
        };
        let mut length = prefix(at)?;
        at += 4;
        if length == CONTINUATION {
            length = prefix(at)?;
            at += 4;
        }
        let length = u32::from_le_bytes(length);
        if length == 0 {
            break;
        }
        let metadata = read_at(input, at, u64::from(length), size)?;
        let message = message_of(&metadata)?;
        rows = rows.saturating_add(rows_of(&message));
        let body = u64::try_from(message.bodyLength()).map_err(|_| "a length in it is negative")?;
        let end = at.checked_add(u64::from(length)).and_then(|end| end.checked_add(body));
        at = end.filter(|end| *end <= size).ok_or("a part of it lies behind its end; perhaps it is cut")?;
    }
    Ok(rows)
}

fn message_of(metadata: &[u8]) -> Result<Message<'_>, String> {
    root_as_message(metadata).map_err(|error| format!("a message in it is broken: {error}"))
}

fn rows_of(message: &Message<'_>) -> u64 {
    message.header_as_record_batch().and_then(|batch| u64::try_from(batch.length()).ok()).unwrap_or(0)
}

/// Reads a part that must lie within the file.
fn read_at(input: &mut (impl Read + Seek), at: u64, length: u64, size: u64) -> Result<Vec<u8>, String> {
    if at.checked_add(length).is_none_or(|end| end > size) {
        return Err("a part of it lies behind its end; perhaps it is cut".to_owned());
    }
    input.seek(SeekFrom::Start(at)).map_err(said)?;
    let mut part = vec![0; usize::try_from(length).map_err(|_| "it is too long")?];
    input.read_exact(&mut part).map_err(said)?;
    Ok(part)
}
