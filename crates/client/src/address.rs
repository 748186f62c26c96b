//! Where a node is: `http://host:port`, perhaps with a path before the node's own, in one spelling.

use std::fmt;
use std::str::FromStr;

/// A node's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    /// Lower-case; a name, an IPv4 address, or an IPv6 address in brackets.
    host: String,
    port: u16,
    /// Without a slash at its end.
    path: String,
}

/// Hosts that a node binds to and that no one can connect to.
const EVERY_INTERFACE: [&str; 3] = ["0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]"];

impl Address {
    /// `host:port`, as a connection and the `Host` header want it.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// What stands before the path of each request.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The same, with the host of a node that was reached in place of "every interface", which names none.
    pub(crate) fn reached_as(mut self, asked: &Address) -> Address {
        if EVERY_INTERFACE.contains(&self.host.as_str()) {
            self.host.clone_from(&asked.host);
        }
        self
    }

    /// Reads a URL, or `host:port` as a node may call its door.
    pub(crate) fn of_door(text: &str) -> Result<Address, String> {
        if text.contains("://") { text.parse() } else { format!("http://{text}").parse() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}{}", self.host, self.port, self.path)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = |why: &str| format!("expected a URL such as http://192.168.1.10:8080, found {text:?}: {why}");
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return Err(wrong("this client does not speak https yet"));
            }
            _ => return Err(wrong("it does not begin with http://")),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at_checked(at).unwrap_or((rest, "")));
        if rest.contains(['@', '?', '#']) || rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(wrong("an address is http://, host, port and perhaps a path"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().ok().filter(|port| *port != 0);
                (host, port.ok_or_else(|| wrong("there is no such port"))?)
            }
            _ => (authority, 80),
        };
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || (host.contains([':', '[', ']']) && !bracketed) {
            return Err(wrong("it has no host"));
        }
        Ok(Address { host: host.to_ascii_lowercase(), port, path: path.trim_end_matches('/').to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_has_one_spelling() {
        let cases = [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("HTTP://Node-A:8080/", "http://node-a:8080"),
            ("http://db", "http://db:80"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("http://[::1]", "http://[::1]:80"),
            ("http://my_host:9/cache//", "http://my_host:9/cache"),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), expected);
        }
        assert_eq!(Address::of_door("10.0.0.1:8080").expect("a door").to_string(), "http://10.0.0.1:8080");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "localhost",
            "ftp://a",
            "https://a",
            "http://",
            "http://:80",
            "http://a:0",
            "http://a:x",
            "http://a:65536",
            "http://u@a",
            "http://a?x",
            "http://a b",
            "http://::1:80",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_interface_is_no_place_to_connect_to() {
        let asked: Address = "http://db:8080".parse().expect("an address");
        let reached = |text: &str| Address::of_door(text).expect(text).reached_as(&asked).to_string();
        assert_eq!(reached("0.0.0.0:81"), "http://db:81");
        assert_eq!(reached("[::]:81"), "http://db:81");
        assert_eq!(reached("10.0.0.1:81"), "http://10.0.0.1:81");
    }
}
