//! Whose folder it is.

use cachesql_group::disk::Disk;
use cachesql_group::register;

use crate::bytes_of::ReadError;
use crate::entry::{EntryError, read_array, take};

/// Whose folder it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    group: String,
    node: String,
    /// The member's number in the group. It is given once: a member that lost its disk comes back under another, and so cannot break
    /// what it promised before.
    pub(super) number: u64,
}

/// The register that an identity is kept in.
const IDENTITY: &str = "identity";
/// Its form: this, the number in eight bytes (little-endian), then the names of group and node, each with its length in two.
const IDENTITY_FORM: u8 = 1;

impl Identity {
    /// The identity that is in a folder, which must be this node's in this group; a new one where there is none.
    pub(super) fn of(disk: &impl Disk, group: &str, node: &str, seed: u64) -> Result<Identity, String> {
        let found = register::read(disk, IDENTITY).map_err(|error| error.to_string())?;
        let Some(bytes) = found else {
            let identity = Identity { group: group.to_owned(), node: node.to_owned(), number: seed };
            register::write(disk, IDENTITY, &identity.encode()).map_err(|error| error.to_string())?;
            return Ok(identity);
        };
        let identity = Identity::decode(&bytes).map_err(|error| format!("{IDENTITY}: {error}"))?;
        if identity.group != group || identity.node != node {
            let Identity { group: other_group, node: other, .. } = identity;
            return Err(format!(
                "it belongs to node {other:?} of group {other_group:?}, not to node {node:?} of group {group:?}"
            ));
        }
        Ok(identity)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![IDENTITY_FORM];
        bytes.extend_from_slice(&self.number.to_le_bytes());
        for name in [&self.group, &self.node] {
            bytes.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Result<Identity, ReadError> {
        let rest = &mut bytes;
        let [form] = read_array(rest)?;
        if form != IDENTITY_FORM {
            return Err(EntryError::Tag(form));
        }
        let number = u64::from_le_bytes(read_array(rest)?);
        let mut name = || -> Result<String, EntryError> {
            let length = u16::from_le_bytes(read_array(rest)?);
            Ok(String::from_utf8_lossy(take(rest, usize::from(length))?).into_owned())
        };
        Ok(Identity { group: name()?, node: name()?, number })
    }
}
