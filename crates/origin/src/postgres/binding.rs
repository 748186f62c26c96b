//! Channel binding `tls-server-end-point` (RFC 5929 section 4): a hash of the server's certificate that SCRAM signs, so
//! that a password exchange cannot be relayed through another TLS server even where the certificate is not verified.

use rustls::crypto::hash::HashAlgorithm;
use rustls::pki_types::CertificateDer;

// Signature algorithms by the content of their OBJECT IDENTIFIER, with the hash that each uses.
const SHA256_RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const SHA384_RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c];
const SHA1_RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05];
const MD5_RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04];
const SHA1_ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
const SHA256_ECDSA: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const SHA384_ECDSA: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];

/// The hash that binds a password exchange to this certificate. `None` where the certificate's signature names no hash
/// that is known here: then the exchange goes unbound, unless binding is required.
pub(crate) fn server_end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let algorithm = signature_algorithm(certificate)?;
    // MD5 and SHA-1 are replaced by SHA-256, says the RFC.
    let sha256: [&[u8]; 5] = [&SHA256_RSA, &SHA256_ECDSA, &SHA1_RSA, &SHA1_ECDSA, &MD5_RSA];
    let sha384: [&[u8]; 2] = [&SHA384_RSA, &SHA384_ECDSA];
    let hash = if sha256.contains(&algorithm) {
        HashAlgorithm::SHA256
    } else if sha384.contains(&algorithm) {
        HashAlgorithm::SHA384
    } else {
        return None;
    };
    let provider = rustls::crypto::ring::default_provider();
    let suites = provider.cipher_suites.iter().filter_map(|suite| suite.tls13());
    let found = suites.map(|suite| suite.common.hash_provider).find(|h| h.algorithm() == hash)?;
    Some(found.hash(certificate).as_ref().to_vec())
}

/// The content of the OBJECT IDENTIFIER of `Certificate.signatureAlgorithm` (RFC 5280 section 4.1).
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (content, _) = element(certificate, SEQUENCE)?;
    let (_to_be_signed, rest) = element(content, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (identifier, _) = element(algorithm, OBJECT_IDENTIFIER)?;
    Some(identifier)
}

/// Splits one DER element off: its content, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first != tag {
        return None;
    }
    let (short, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*short) {
        length @ 0..=0x7f => (length, rest),
        long @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(long - 0x80)?;
            (digits.iter().fold(0_usize, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
