//! What tests agree on: words, one after the other.

use std::io::{self, Read, Write};

use bytes::Bytes;
use parking_lot::RwLock;

use crate::machine::{Capture, Fence, Machine};

/// A machine that remembers what was proposed, each with its index.
#[derive(Debug, Default)]
pub(crate) struct Words(pub(crate) RwLock<Vec<(u64, Bytes)>>);

struct Captured(Vec<(u64, Bytes)>);

impl Machine for Words {
    fn apply(&self, index: u64, proposal: &Bytes) -> Result<Bytes, Fence> {
        if &**proposal == b"fence" {
            return Err(Fence("told to".to_owned()));
        }
        let mut words = self.0.write();
        words.push((index, proposal.clone()));
        Ok(Bytes::from(words.len().to_string()))
    }

    fn capture(&self) -> Box<dyn Capture> {
        Box::new(Captured(self.0.read().clone()))
    }

    fn restore(&self, from: &mut dyn Read) -> Result<(), Fence> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(|error| Fence(error.to_string()))?;
        let short = || Fence("cut short".to_owned());
        let (mut words, mut rest) = (Vec::new(), &*bytes);
        while !rest.is_empty() {
            let (index, more) = rest.split_first_chunk().ok_or_else(short)?;
            let (length, more) = more.split_first_chunk().ok_or_else(short)?;
            let (word, more) = more.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(short)?;
            words.push((u64::from_le_bytes(*index), Bytes::copy_from_slice(word)));
            rest = more;
        }
        *self.0.write() = words;
        Ok(())
    }
}

impl Capture for Captured {
    fn write(self: Box<Self>, to: &mut dyn Write) -> io::Result<()> {
        for (index, word) in self.0 {
            to.write_all(&index.to_le_bytes())?;
            to.write_all(&u32::try_from(word.len()).map_err(io::Error::other)?.to_le_bytes())?;
            to.write_all(&word)?;
        }
        Ok(())
    }
}
