//! Frames: how they are cut out of the bytes that arrive, and written. Lengths are checked before anything is kept, the
//! check sum before anything is believed.

use bytes::{BufMut, BytesMut};
use cachesql_types::limits;

use crate::wire::{FRAME_HEAD_BYTES, Kind};

/// What is wrong with what the other side sent. It ends that connection, and no other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame or a message is longer than it may be.
    #[error("{bytes} bytes at once, more than {most}")]
    TooLong {
        /// Bytes that it has.
        bytes: usize,
        /// Bytes that it may have.
        most: usize,
    },
    /// The connection ended within a frame.
    #[error("the connection ended {bytes} bytes into a frame")]
    Cut {
        /// Bytes of the frame that came.
        bytes: usize,
    },
    /// A kind of frame that there is not.
    #[error("a frame of unknown kind {kind}")]
    UnknownKind {
        /// Its number.
        kind: u8,
    },
    /// A frame that only the other side sends.
    #[error("a frame of kind {kind}, which only this side sends")]
    WrongSide {
        /// Its number.
        kind: u8,
    },
    /// What came is not what was sent.
    #[error("a frame's check sum is {found:08x}, and that of its bytes {expected:08x}")]
    Checksum {
        /// Of the bytes that came.
        expected: u32,
        /// In the frame.
        found: u32,
    },
    /// A frame's payload lacks what its kind needs, or has more.
    #[error("a frame of kind {kind} that cannot be read: {why}")]
    Malformed {
        /// Number of its kind.
        kind: u8,
        /// What is wrong.
        why: &'static str,
    },
    /// More of a message that did not begin, or is complete.
    #[error("a continuation of call {id}, of which nothing is open")]
    ContinuationOfNothing {
        /// Id of the call.
        id: u64,
    },
    /// An answer to what was not asked, or was answered.
    #[error("an answer to call {id}, which is not open")]
    AnswerToNothing {
        /// Id of the call.
        id: u64,
    },
    /// A cancellation of what was not asked.
    #[error("a cancellation of call {id}, which was not made")]
    CancelOfNothing {
        /// Id of the call.
        id: u64,
    },
    /// Ids of calls only rise.
    #[error("call {id} after call {last}")]
    IdUsedTwice {
        /// Id of the call.
        id: u64,
        /// The highest id before.
        last: u64,
    },
    /// Requests were begun after the farewell that says there will be none.
    #[error("call {id} after a farewell")]
    AfterGoodbye {
        /// Id of the call.
        id: u64,
    },
    /// More messages are begun and not completed than calls may be under way.
    #[error("more than {most} messages are begun and not completed")]
    TooManyOpen {
        /// How many may be.
        most: usize,
    },
}

/// One frame, as it lies in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) id: u64,
    pub(crate) payload: &'a [u8],
}

impl Frame<'_> {
    /// Bytes that it takes of what was read.
    pub(crate) fn bytes(&self) -> usize {
        FRAME_HEAD_BYTES + self.payload.len()
    }

    pub(crate) fn malformed(&self, why: &'static str) -> FrameError {
        FrameError::Malformed { kind: self.kind.number(), why }
    }
}

/// The frame that the bytes begin with; nothing, if more must be read. Never asks for more than
/// [`limits::PEER_FRAME_BYTES`] and a head.
pub(crate) fn decode(read: &[u8]) -> Result<Option<Frame<'_>>, FrameError> {
    let Some((length, rest)) = read.split_first_chunk::<4>() else { return Ok(None) };
    let bytes = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if bytes > limits::PEER_FRAME_BYTES {
        return Err(FrameError::TooLong { bytes, most: limits::PEER_FRAME_BYTES });
    }
    let Some((kind, rest)) = rest.split_first_chunk::<1>() else { return Ok(None) };
    let kind = Kind::from_number(kind[0]).ok_or(FrameError::UnknownKind { kind: kind[0] })?;
    let Some((id, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
    let Some((found, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some(payload) = rest.get(..bytes) else { return Ok(None) };
    let frame = Frame { kind, id: u64::from_be_bytes(*id), payload };
    let found = u32::from_be_bytes(*found);
    let expected = checksum(kind, frame.id, &[payload]);
    if found != expected {
        return Err(FrameError::Checksum { expected, found });
    }
    Ok(Some(frame))
}

/// Writes a frame whose payload is these parts, at most [`limits::PEER_FRAME_BYTES`] together.
pub(crate) fn encode(into: &mut BytesMut, kind: Kind, id: u64, parts: [&[u8]; 2]) {
    let bytes = parts[0].len() + parts[1].len();
    debug_assert!(bytes <= limits::PEER_FRAME_BYTES, "a frame of {bytes} bytes");
    into.reserve(FRAME_HEAD_BYTES + bytes);
    into.put_u32(u32::try_from(bytes).unwrap_or(u32::MAX));
    into.put_u8(kind.number());
    into.put_u64(id);
    into.put_u32(checksum(kind, id, &parts));
    into.put_slice(parts[0]);
    into.put_slice(parts[1]);
}

fn checksum(kind: Kind, id: u64, parts: &[&[u8]]) -> u32 {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let mut sum = crc32fast::Hasher::new();
    sum.update(&u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes());
    sum.update(&[kind.number()]);
    sum.update(&id.to_be_bytes());
    for part in parts {
        sum.update(part);
    }
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Owned = (u8, u64, Vec<u8>);

    /// Decodes as a connection does, with what arrives in pieces; the frames until the first error, and that.
    fn decode_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Owned>, Option<FrameError>) {
        let (mut read, mut frames) = (Vec::new(), Vec::new());
        for piece in pieces {
            read.extend_from_slice(piece);
            loop {
                match decode(&read) {
                    Ok(Some(frame)) => {
                        frames.push((frame.kind.number(), frame.id, frame.payload.to_vec()));
                        let bytes = frame.bytes();
                        read.drain(..bytes);
                    }
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
            // What is kept while waiting for more is less than one frame.
            assert!(read.len() < FRAME_HEAD_BYTES + limits::PEER_FRAME_BYTES);
        }
        let cut = (!read.is_empty()).then_some(FrameError::Cut { bytes: read.len() });
        (frames, cut)
    }

    fn encode_all(frames: &[Owned]) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        for (kind, id, payload) in frames {
            let (head, tail) = payload.split_at(payload.len() / 3);
            encode(&mut bytes, Kind::from_number(*kind).expect("a kind"), *id, [head, tail]);
        }
        bytes.to_vec()
    }

    fn any_frames() -> impl Strategy<Value = Vec<Owned>> {
        proptest::collection::vec((1..=10_u8, any::<u64>(), proptest::collection::vec(any::<u8>(), 0..200)), 1..12)
    }

    /// The bytes of one frame, from the table in `wire`; the sum is that of Python's `zlib.crc32`.
    #[test]
    fn a_frame_has_the_bytes_that_the_protocol_says() {
        let mut bytes = BytesMut::new();
        encode(&mut bytes, Kind::Refusal, 0x0102, [b"\x00\x2a", b"no"]);
        assert_eq!(bytes[..], *b"\0\0\0\x04\x04\0\0\0\0\0\0\x01\x02\xb2\xcf\x6d\x23\0\x2ano");
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_by_its_four_bytes() {
        let most = limits::PEER_FRAME_BYTES;
        let head = |bytes: usize| u32::try_from(bytes).expect("small").to_be_bytes();
        assert_eq!(decode(&head(most)), Ok(None));
        assert_eq!(decode(&head(most + 1)), Err(FrameError::TooLong { bytes: most + 1, most }));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_frames(frames in any_frames(), cuts in proptest::collection::vec(any::<usize>(), 0..40)) {
            let bytes = encode_all(&frames);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(decode_pieces(pieces), (frames, None));
        }

        #[test]
        fn an_end_at_any_place_gives_whole_frames_and_says_so(frames in any_frames(), end in any::<usize>()) {
            let bytes = encode_all(&frames);
            let end = end % (bytes.len() + 1);
            let (found, error) = decode_pieces([&bytes[..end]]);
            prop_assert_eq!(&found[..], &frames[..found.len()]);
            let whole = encode_all(&found).len();
            let expected = (whole < end).then_some(FrameError::Cut { bytes: end - whole });
            prop_assert_eq!(error, expected);
        }

        #[test]
        fn any_flipped_bit_is_noticed(frames in any_frames(), at in any::<usize>()) {
            let mut bytes = encode_all(&frames);
            let at = at % (bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
            let (found, error) = decode_pieces([&bytes[..]]);
            prop_assert!(error.is_some());
            prop_assert_eq!(&found[..], &frames[..found.len()]);
        }

        #[test]
        fn any_bytes_give_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..4_000), small in any::<bool>()) {
            let mut bytes = bytes;
            if small && bytes.len() > 4 {
                // Lengths that are within the bound, so that more than the length is looked at.
                bytes[..3].copy_from_slice(&[0, 0, 0]);
            }
            let (found, error) = decode_pieces([&bytes[..]]);
            prop_assert!(error.is_some() || encode_all(&found) == bytes);
        }
    }
}
