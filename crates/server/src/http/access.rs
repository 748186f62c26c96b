//! Who may use the door: loopback alone, or whoever shows the token.

use std::fmt;
use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, StatusCode, Version};

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

/// Who may ask through a door.
#[derive(Debug)]
pub(crate) enum Access {
    /// Whoever shows the token.
    Token(AccessToken),
    /// Programs on this machine: the door is on loopback. Browsers run here too, with pages from anywhere.
    ThisMachine {
        /// The host that the configuration names, beside IP addresses and `localhost`.
        name: String,
    },
    /// Everyone: the configuration says so.
    Everyone,
}

impl Access {
    /// What a configuration says; `address` is its `host:port`.
    pub(crate) fn new(token: Option<AccessToken>, insecure: bool, address: &str) -> Access {
        match token {
            Some(token) => Access::Token(token),
            None if insecure => Access::Everyone,
            None => Access::ThisMachine { name: host_of(address).unwrap_or_default().to_owned() },
        }
    }

    /// The one check that every request passes before anything else is made of it.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Failure> {
        match self {
            Access::Token(token) if !token.shown_by(&head.headers) => {
                return Err(Failure::new(StatusCode::UNAUTHORIZED, "28000", "authentication is required").with_hint(
                    "send the token as Authorization: Bearer TOKEN, or as the password of Basic authentication",
                ));
            }
            Access::ThisMachine { name } => check_host(head, name)?,
            Access::Token(_) | Access::Everyone => {}
        }
        // A page of another site can make a browser post forms here. It names its origin when it does.
        if !matches!(head.method, Method::GET | Method::HEAD) && is_cross_site(&head.headers) {
            return Err(Failure::new(StatusCode::FORBIDDEN, "42501", "requests from pages of other sites are refused"));
        }
        Ok(())
    }
}

/// Refuses what was asked under a name that somebody else may have given to this machine: the owner of a page's site can let
/// its name point here, and a browser then takes this door for that site (DNS rebinding). An IP address is no name.
fn check_host(head: &Parts, own: &str) -> Result<(), Failure> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        (None, _) if head.version == Version::HTTP_10 => return Ok(()),
        // RFC 9112, 3.2.
        _ => return Err(Failure::bad_request("a request has one Host header")),
    };
    // What a proxy is asked for; browsers send it to proxies alone.
    let target = head.uri.authority().map(Authority::as_str);
    match std::iter::once(host).chain(target).find(|authority| !is_own(authority, own)) {
        None => Ok(()),
        Some(other) => {
            let shown: String = other.chars().take(100).collect();
            Err(Failure::new(StatusCode::FORBIDDEN, "42501", format!("requests for the host {shown:?} are refused"))
                .with_hint(
                    "without an access token this node is asked by an IP address or as localhost; for other names set \
                     `token` in [access], or `http` of the node to NAME:PORT",
                ))
        }
    }
}

fn is_own(authority: &str, own: &str) -> bool {
    host_of(authority).is_some_and(|host| {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        address.parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost") || host.eq_ignore_ascii_case(own)
    })
}

/// The host of `host:port`, or of a host alone; `None` for what is neither.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    (!host.is_empty() && port.bytes().all(|b| b.is_ascii_digit())).then_some(host)
}

fn is_cross_site(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let authority = origin.to_str().ok().and_then(|o| o.split_once("://")).map(|(_, authority)| authority.as_bytes());
    match (authority, headers.get(HOST)) {
        (Some(authority), Some(host)) => !authority.eq_ignore_ascii_case(host.as_bytes()),
        _ => true,
    }
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
    use hyper::Request;
    use hyper::header::HeaderName;

    fn check(access: &Access, method: Method, headers: &[(HeaderName, &str)]) -> Result<(), u16> {
        let mut request = Request::builder().method(method).uri("/");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        access.check(&head).map_err(|failure| failure.status.as_u16())
    }

    fn this_machine() -> Access {
        Access::new(None, false, "node.internal:8080")
    }

    #[test]
    fn the_token_is_asked_for() {
        let access = Access::new(AccessToken::new("open sesame"), true, "127.0.0.1:0");
        let shown = |value: &str| check(&access, Method::GET, &[(AUTHORIZATION, value)]).is_ok();
        assert!(shown("Bearer open sesame"));
        assert!(shown("bearer open sesame"));
        // "anyone:open sesame", by RFC 4648.
        assert!(shown("Basic YW55b25lOm9wZW4gc2VzYW1l"));
        for wrong in
            ["Bearer open sesam", "Bearer open sesame2", "Bearer", "Basic !!", "Basic b3BlbiBzZXNhbWU=", "Digest x", ""]
        {
            assert!(!shown(wrong), "{wrong}");
        }
        assert_eq!(check(&access, Method::GET, &[]), Err(401));
        assert!(AccessToken::new("").is_none());
    }

    #[test]
    fn nothing_shows_the_token() {
        let token = AccessToken::new("open sesame").expect("not empty");
        assert!(!format!("{token:?}").contains("sesame"));
    }

    #[test]
    fn names_that_others_give_are_refused_on_this_machine() {
        let access = this_machine();
        let own = [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:8080",
            "192.168.1.2:1",
            "node.internal",
            "Node.Internal:99",
            "127.0.0.1:",
        ];
        for host in own {
            assert_eq!(check(&access, Method::GET, &[(HOST, host)]), Ok(()), "{host}");
        }
        let others = [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil",
            "",
            ":8080",
            "localhost:80@evil",
            "[::1",
            "::1]",
            "1",
            "0x7f000001",
            "evil.localhost.",
        ];
        for host in others {
            assert_eq!(check(&access, Method::GET, &[(HOST, host)]), Err(403), "{host}");
        }
        let two = [(HOST, "localhost"), (HOST, "localhost")];
        assert_eq!(check(&access, Method::GET, &two), Err(400));
        assert_eq!(check(&access, Method::GET, &[]), Err(400));
        let everyone = Access::new(None, true, "127.0.0.1:0");
        assert_eq!(check(&everyone, Method::GET, &[(HOST, "evil.example")]), Ok(()));
    }

    #[test]
    fn old_requests_have_no_host_and_some_have_two_names() {
        let head = |version, target: &str, host: Option<&str>| {
            let mut request = Request::builder().version(version).uri(target);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let (head, ()) = request.body(()).expect("a request").into_parts();
            this_machine().check(&head).map_err(|failure| failure.status.as_u16())
        };
        assert_eq!(head(Version::HTTP_10, "/", None), Ok(()));
        assert_eq!(head(Version::HTTP_10, "/", Some("evil.example")), Err(403));
        assert_eq!(head(Version::HTTP_11, "http://localhost/", Some("localhost")), Ok(()));
        assert_eq!(head(Version::HTTP_11, "http://evil.example/", Some("localhost")), Err(403));
    }

    #[test]
    fn pages_of_other_sites_do_not_write() {
        let access = this_machine();
        let post = |origin: &str| check(&access, Method::POST, &[(HOST, "localhost:8080"), (ORIGIN, origin)]).is_ok();
        assert!(post("http://localhost:8080"));
        assert!(post("http://LOCALHOST:8080"));
        assert!(!post("http://localhost:8081"));
        assert!(!post("http://evil.example"));
        assert!(!post("null"));
        assert!(check(&access, Method::POST, &[(HOST, "localhost")]).is_ok());
    }
}
