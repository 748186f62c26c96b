//! What a group's entries mean, as far as consensus has to know.

use std::fmt;
use std::io::{self, Read, Write};

use bytes::Bytes;

/// Everything that members agree on. It changes by entries alone, and the same ones make the same of it on every member: no clock, no
/// chance, no order of a hash map.
pub trait Machine: Send + Sync + 'static {
    /// Applies the next entry. The outcome goes to who proposed it, on this member.
    fn apply(&self, index: u64, proposal: &Bytes) -> Result<Bytes, Fence>;

    /// The state as it is now; cheap, for it is written out later, beside further entries.
    fn capture(&self) -> Box<dyn Capture>;

    /// Takes another state in place of this one, as [`Capture::write`] wrote it.
    fn restore(&self, from: &mut dyn Read) -> Result<(), Fence>;
}

/// A state that does not change any more.
pub trait Capture: Send + Sync {
    /// Writes it out.
    fn write(self: Box<Self>, to: &mut dyn Write) -> io::Result<()>;
}

/// Why a member cannot go on: what it holds is no longer certain to be what the others hold. What every member refuses alike is no
/// reason, but an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence(pub String);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fence {}
