//! Who may use the door: loopback alone, or whoever shows the token.

use std::fmt;

use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::{HeaderMap, Method, StatusCode};

use super::failure::Failure;

/// A secret that requests must show, as `Authorization: Bearer …` or as the password of `Authorization: Basic …` (with any
/// user name).
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// A token; `None` for an empty one, which would let everyone in.
    pub fn new(secret: impl Into<String>) -> Option<AccessToken> {
        Some(secret.into()).filter(|s| !s.is_empty()).map(AccessToken)
    }

    /// Whether a request shows the token. The time that it takes tells nothing of how much of it is right.
    fn shown_by(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok()) else { return false };
        let Some((scheme, credentials)) = value.split_once(' ') else { return false };
        let credentials = credentials.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return same(credentials.as_bytes(), self.0.as_bytes());
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let Some(decoded) = decode_base64(credentials) else { return false };
            let mut halves = decoded.splitn(2, |b| *b == b':');
            return match (halves.next(), halves.next()) {
                (Some(_), Some(password)) => same(password, self.0.as_bytes()),
                _ => false,
            };
        }
        false
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

/// The one check that every request passes before anything else is made of it.
pub(crate) fn check(token: Option<&AccessToken>, method: &Method, headers: &HeaderMap) -> Result<(), Failure> {
    if token.is_some_and(|token| !token.shown_by(headers)) {
        return Err(Failure::new(StatusCode::UNAUTHORIZED, "28000", "authentication is required"));
    }
    // A page of another site can make a browser post forms here. It names its origin when it does.
    if !matches!(*method, Method::GET | Method::HEAD) && is_cross_site(headers) {
        return Err(Failure::new(StatusCode::FORBIDDEN, "42501", "requests from pages of other sites are refused"));
    }
    Ok(())
}

fn is_cross_site(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let host = headers.get(HOST).map(|h| h.as_bytes());
    let authority = origin.to_str().ok().and_then(|o| o.split_once("://")).map(|(_, authority)| authority.as_bytes());
    authority.is_none() || authority != host
}

fn same(given: &[u8], expected: &[u8]) -> bool {
    let mut difference = given.len() ^ expected.len();
    for (at, byte) in given.iter().enumerate() {
        // Past the end of the expected bytes the lengths differ already.
        difference |= usize::from(byte ^ expected.get(at).copied().unwrap_or(0));
    }
    difference == 0
}

/// Reads standard base64 with or without padding (RFC 4648, 4).
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in digits.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(digit)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(pairs: &[(hyper::header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(n, v)| (n.clone(), HeaderValue::from_str(v).expect("header"))).collect()
    }

    #[test]
    fn the_token_is_asked_for() {
        let token = AccessToken::new("open sesame");
        let shown = |value: &str| check(token.as_ref(), &Method::GET, &headers(&[(AUTHORIZATION, value)])).is_ok();
        assert!(shown("Bearer open sesame"));
        assert!(shown("bearer open sesame"));
        // "anyone:open sesame", by RFC 4648.
        assert!(shown("Basic YW55b25lOm9wZW4gc2VzYW1l"));
        for wrong in
            ["Bearer open sesam", "Bearer open sesame2", "Bearer", "Basic !!", "Basic b3BlbiBzZXNhbWU=", "Digest x", ""]
        {
            assert!(!shown(wrong), "{wrong}");
        }
        assert!(check(token.as_ref(), &Method::GET, &HeaderMap::new()).is_err());
        assert!(check(None, &Method::GET, &HeaderMap::new()).is_ok());
        assert!(AccessToken::new("").is_none());
    }

    #[test]
    fn nothing_shows_the_token() {
        let token = AccessToken::new("open sesame").expect("not empty");
        assert!(!format!("{token:?}").contains("sesame"));
    }

    #[test]
    fn pages_of_other_sites_do_not_write() {
        let post =
            |origin: &str| check(None, &Method::POST, &headers(&[(HOST, "localhost:8080"), (ORIGIN, origin)])).is_ok();
        assert!(post("http://localhost:8080"));
        assert!(!post("http://evil.example"));
        assert!(!post("null"));
        assert!(check(None, &Method::POST, &HeaderMap::new()).is_ok());
    }
}
