//! How records and the heads of segments lie on disk. Numbers are little-endian; these layouts never change, a new one gets
//! another version.

use crc32fast::Hasher;

/// What a segment begins with.
const MAGIC: [u8; 8] = *b"CSQLLOG\n";
/// The layout that this version writes.
const VERSION: u32 = 1;
/// Magic, version, index of the first record, checksum of these.
pub(super) const SEGMENT_HEAD: usize = 8 + 4 + 8 + 4;
/// Length of the content, index, index up to which everything was synced when this was written, checksum of the content,
/// checksum of these.
pub(super) const RECORD_HEAD: usize = 4 + 8 + 8 + 4 + 4;

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// The head of a segment whose first record has the index.
pub(super) fn segment_head(first: u64) -> [u8; SEGMENT_HEAD] {
    let mut head = [0; SEGMENT_HEAD];
    let (content, sum) = head.split_at_mut(SEGMENT_HEAD - 4);
    let fields = MAGIC.into_iter().chain(VERSION.to_le_bytes()).chain(first.to_le_bytes());
    content.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
    sum.copy_from_slice(&checksum(&[content]).to_le_bytes());
    head
}

/// The index of a segment's first record; `None` for what is no head that this version can read.
pub(super) fn read_segment_head(bytes: &[u8]) -> Option<u64> {
    let head = bytes.first_chunk::<SEGMENT_HEAD>()?;
    let first = u64::from_le_bytes(*head.get(12..)?.first_chunk()?);
    (*head == segment_head(first)).then_some(first)
}

/// What stands before a record's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    /// Bytes of the content.
    pub(super) length: u32,
    /// The record's index.
    pub(super) index: u64,
    /// Up to which index everything was synced when this was written. What rotted is known by it from what never arrived.
    pub(super) synced: u64,
    content_sum: u32,
}

impl RecordHead {
    /// The head of a content.
    pub(super) fn of(index: u64, synced: u64, length: u32, content: &[u8]) -> RecordHead {
        RecordHead { length, index, synced, content_sum: checksum(&[content]) }
    }

    /// Whether the content is the one that was written.
    pub(super) fn fits(&self, content: &[u8]) -> bool {
        checksum(&[content]) == self.content_sum
    }

    /// Bytes of the whole record.
    pub(super) fn record_bytes(&self) -> u64 {
        RECORD_HEAD as u64 + u64::from(self.length)
    }

    /// As it lies on disk.
    pub(super) fn bytes(&self) -> [u8; RECORD_HEAD] {
        let mut head = [0; RECORD_HEAD];
        let (content, sum) = head.split_at_mut(RECORD_HEAD - 4);
        let fields = self.length.to_le_bytes().into_iter();
        let fields = fields.chain(self.index.to_le_bytes()).chain(self.synced.to_le_bytes());
        let fields = fields.chain(self.content_sum.to_le_bytes());
        content.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        sum.copy_from_slice(&checksum(&[content]).to_le_bytes());
        head
    }

    /// Reads a head; `None` when these bytes are none.
    pub(super) fn read(bytes: &[u8]) -> Option<RecordHead> {
        let bytes = bytes.first_chunk::<RECORD_HEAD>()?;
        let head = RecordHead {
            length: u32::from_le_bytes(*bytes.first_chunk()?),
            index: u64::from_le_bytes(*bytes.get(4..)?.first_chunk()?),
            synced: u64::from_le_bytes(*bytes.get(12..)?.first_chunk()?),
            content_sum: u32::from_le_bytes(*bytes.get(20..)?.first_chunk()?),
        };
        (head.bytes() == *bytes).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_are_those_that_are_written_down() {
        let head = segment_head(0x0102_0304_0506_0708);
        let mut expected = b"CSQLLOG\n".to_vec();
        expected.extend_from_slice(&[1, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(head[..20], expected);
        assert_eq!(read_segment_head(&head), Some(0x0102_0304_0506_0708));

        let record = RecordHead::of(9, 7, 9, b"123456789").bytes();
        assert_eq!(record[..20], [9, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        // The check value of CRC-32/ISO-HDLC is that of "123456789".
        assert_eq!(record[20..24], 0xcbf4_3926_u32.to_le_bytes());
    }

    #[test]
    fn no_flipped_bit_is_taken_for_a_head() {
        let (segment, record) = (segment_head(5), RecordHead::of(9, 7, 3, b"abc").bytes());
        for bit in 0..SEGMENT_HEAD * 8 {
            let mut head = segment;
            head[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_segment_head(&head), None, "bit {bit}");
        }
        for bit in 0..RECORD_HEAD * 8 {
            let mut head = record;
            head[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RecordHead::read(&head), None, "bit {bit}");
        }
        assert_eq!(RecordHead::read(&[0; RECORD_HEAD]), None, "zeros are no head");
    }
}
