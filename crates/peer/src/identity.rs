//! Who a node is to the others, and what it shares with them: names, the cluster's secret, versions, chance.

use std::fmt;
use std::sync::Arc;

use cachesql_types::limits;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::directory::Directory;
use crate::network::{Wrap, plain};
use crate::wire::{NEWEST_VERSION, OLDEST_VERSION, PROOF_BYTES};

/// Why a name or a secret cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Names have 1 to [`limits::PEER_NAME_BYTES`] bytes.
    #[error("the name of a node or cluster has 1 to {most} bytes, not {bytes}", most = limits::PEER_NAME_BYTES)]
    NameLength {
        /// Bytes that it has.
        bytes: usize,
    },
    /// Names stand in log lines, and must not be able to forge one.
    #[error("the name of a node or cluster has no control characters: {name:?}")]
    NameCharacters {
        /// The name.
        name: String,
    },
    /// A secret that can be guessed is none.
    #[error("a cluster secret has at least {least} bytes, not {bytes}", least = limits::PEER_SECRET_BYTES)]
    SecretTooShort {
        /// Bytes that it has.
        bytes: usize,
    },
}

/// The name of a node, by which all others know it, whatever its address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// A name of 1 to [`limits::PEER_NAME_BYTES`] bytes without control characters.
    pub fn new(name: impl AsRef<str>) -> Result<NodeName, IdentityError> {
        let name = name.as_ref();
        if name.is_empty() || name.len() > limits::PEER_NAME_BYTES {
            return Err(IdentityError::NameLength { bytes: name.len() });
        }
        if name.chars().any(char::is_control) {
            return Err(IdentityError::NameCharacters { name: name.to_owned() });
        }
        Ok(NodeName(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", &*self.0)
    }
}

/// What all nodes of a cluster know and nobody else does. It is never shown, sent or compared: what is compared are
/// proofs of it, in constant time.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl Secret {
    /// A secret of at least [`limits::PEER_SECRET_BYTES`] bytes.
    pub fn new(secret: &[u8]) -> Result<Secret, IdentityError> {
        let too_short = IdentityError::SecretTooShort { bytes: secret.len() };
        if secret.len() < limits::PEER_SECRET_BYTES {
            return Err(too_short);
        }
        // HMAC takes a key of any length.
        Hmac::new_from_slice(secret).map(Secret).map_err(|_| too_short)
    }

    /// The proof that one who knows the secret saw all of these parts, in this order.
    pub(crate) fn prove(&self, parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
        self.over(parts).finalize().into_bytes().into()
    }

    /// Whether `proof` is the proof of these parts; takes the same time wherever it differs.
    pub(crate) fn verify(&self, parts: &[&[u8]], proof: &[u8]) -> bool {
        self.over(parts).verify_slice(proof).is_ok()
    }

    /// Each part goes in with its length, so that no two lists of parts run together to the same bytes.
    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// Who this node is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The cluster that it belongs to; nodes of others are refused.
    pub cluster: NodeName,
    /// Its own name.
    pub node: NodeName,
    /// What proves that it belongs to the cluster.
    pub secret: Secret,
}

impl Identity {
    /// An identity of checked parts.
    pub fn new(cluster: &str, node: &str, secret: &[u8]) -> Result<Identity, IdentityError> {
        Ok(Identity { cluster: NodeName::new(cluster)?, node: NodeName::new(node)?, secret: Secret::new(secret)? })
    }
}

/// Versions of the protocol, from the lowest to the highest that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The lowest.
    pub lowest: u16,
    /// The highest.
    pub highest: u16,
}

impl Versions {
    /// What this build speaks.
    pub const SPOKEN: Versions = Versions { lowest: OLDEST_VERSION, highest: NEWEST_VERSION };

    /// The highest version that is in both ranges.
    pub fn highest_common(self, other: Versions) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} to {}", self.lowest, self.highest)
    }
}

/// Fills a buffer with random bytes that nobody can foretell. A simulator passes seeded ones.
pub type Randomness = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// What both directions need: [`crate::Peers`], which calls others, and [`crate::PeerDoor`], which is called.
#[derive(Clone)]
pub struct Endpoint {
    /// Who this node is.
    pub identity: Identity,
    /// Who the others are, and where.
    pub directory: Directory,
    /// For nonces and for the jitter of back-off.
    pub randomness: Randomness,
    /// Versions that are spoken.
    pub versions: Versions,
    /// What is put around each connection before its handshake: nothing, until there is TLS.
    pub wrap: Wrap,
}

impl Endpoint {
    /// An endpoint that speaks all versions of this build over plain connections.
    pub fn new(identity: Identity, directory: Directory, randomness: Randomness) -> Endpoint {
        Endpoint { identity, directory, randomness, versions: Versions::SPOKEN, wrap: plain() }
    }

    pub(crate) fn nonce<const BYTES: usize>(&self) -> [u8; BYTES] {
        let mut nonce = [0; BYTES];
        (self.randomness)(&mut nonce);
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_never_shown() {
        assert_eq!(Secret::new(b"fifteen bytes!!").err(), Some(IdentityError::SecretTooShort { bytes: 15 }));
        let identity = Identity::new("shop", "a", b"sixteen bytes!!!").expect("an identity");
        let shown = format!("{identity:?} {identity:#?}");
        assert!(shown.contains("Secret(…)") && !shown.contains("sixteen"), "{shown}");
    }

    #[test]
    fn names_are_bounded_and_cannot_forge_a_line() {
        assert_eq!(NodeName::new(""), Err(IdentityError::NameLength { bytes: 0 }));
        assert_eq!(NodeName::new("a".repeat(129)), Err(IdentityError::NameLength { bytes: 129 }));
        assert!(NodeName::new("a".repeat(128)).is_ok());
        assert_eq!(NodeName::new("a\nb"), Err(IdentityError::NameCharacters { name: "a\nb".into() }));
    }

    #[test]
    fn the_highest_common_version_is_taken() {
        let range = |lowest, highest| Versions { lowest, highest };
        assert_eq!(range(1, 4).highest_common(range(2, 9)), Some(4));
        assert_eq!(range(2, 9).highest_common(range(1, 4)), Some(4));
        assert_eq!(range(3, 3).highest_common(range(1, 9)), Some(3));
        assert_eq!(range(1, 2).highest_common(range(3, 4)), None);
        assert_eq!(range(5, 1).highest_common(range(1, 9)), None);
    }

    /// The value is Python's `hmac` over the same bytes.
    #[test]
    fn a_proof_depends_on_where_its_parts_end() {
        let secret = Secret::new(b"sixteen bytes!!!").expect("a secret");
        assert_ne!(secret.prove(&[b"ab", b"c"]), secret.prove(&[b"a", b"bc"]));
        let proof = secret.prove(&[b"ab", b"c"]);
        let shown: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, "0249a153ef08d971ff4a7632ebba1767de1e22d6adacaf2d9a315ae0a7debb2d");
        assert!(secret.verify(&[b"ab", b"c"], &proof));
        for at in 0..proof.len() * 8 {
            let mut flipped = proof;
            flipped[at / 8] ^= 1 << (at % 8);
            assert!(!secret.verify(&[b"ab", b"c"], &flipped));
        }
        assert!(!secret.verify(&[b"ab", b"c"], &proof[..31]));
    }
}
