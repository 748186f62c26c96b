//! What a member says of itself and its group to one that asks before it is in.

use crate::bytes_of::{
    ReadError, end, put_flag, put_number, put_optional, put_text, take_flag, take_number, take_optional, take_text,
};

/// What a member knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Presence {
    /// Its number.
    pub(super) number: u64,
    /// Whether it is in the group: it has founded it, or was taken in.
    pub(super) is_in: bool,
    /// The node that leads, as far as it knows.
    pub(super) leader: Option<String>,
}

impl Presence {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.number);
        put_flag(&mut out, self.is_in);
        put_optional(&mut out, self.leader.as_deref(), put_text);
        out
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Result<Presence, ReadError> {
        let rest = &mut bytes;
        let presence =
            Presence { number: take_number(rest)?, is_in: take_flag(rest)?, leader: take_optional(rest, take_text)? };
        end(rest)?;
        Ok(presence)
    }
}
