//! The header that shows who asks (RFC 6750 Bearer, RFC 7617 Basic). Its value never shows in a message or in Debug.

use hyper::header::HeaderValue;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `Bearer TOKEN`; `None` for a token that is empty or that a header cannot carry.
pub(crate) fn bearer(token: &str) -> Option<HeaderValue> {
    let sound = !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic());
    sound.then(|| secret(format!("Bearer {token}"))).flatten()
}

/// `Basic …`; `None` for a user name with a colon, which would end it.
pub(crate) fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    let sound = !user.contains(':');
    sound.then(|| secret(format!("Basic {}", base64(format!("{user}:{password}").as_bytes())))).flatten()
}

fn secret(text: String) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| bits << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = BASE64.get(bits >> (18 - 6 * place) & 63).copied().map_or('=', char::from);
            out.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn the_published_vectors_of_base64() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, expected) in vectors {
            assert_eq!(base64(text.as_bytes()), expected, "{text:?}");
        }
    }

    /// RFC 7617, section 2.
    #[test]
    fn the_example_of_basic() {
        let header = basic("Aladdin", "open sesame").expect("sound");
        assert_eq!(header.as_bytes(), b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(format!("{header:?}"), "Sensitive");
        assert!(basic("a:b", "c").is_none());
        assert!(bearer("").is_none() && bearer("a b").is_none() && bearer("abc").is_some());
    }
}
