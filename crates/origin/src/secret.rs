//! Passwords, and texts that may carry one.

use std::fmt;

/// A password. It shows in no Debug output, and has no Display.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a password over.
    pub fn new(secret: impl Into<String>) -> Secret {
        Secret(secret.into())
    }

    /// The password itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// A URL with its secrets replaced, for messages about URLs that could not even be read: whatever stands before an `@` and
/// behind a `:`, and the value of every parameter whose name speaks of a secret.
pub(crate) fn scrubbed(url: &str) -> String {
    let (address, query) = match url.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (url, None),
    };
    let mut shown = scrubbed_address(address);
    if let Some(query) = query {
        shown.push('?');
        let parts: Vec<String> = query.split(['&', ';']).map(scrubbed_parameter).collect();
        shown.push_str(&parts.join("&"));
    }
    shown.chars().take(300).collect()
}

fn scrubbed_address(address: &str) -> String {
    // The last @ ends the user part: a password that should have been percent-encoded may hold others.
    let Some((user_part, host_part)) = address.rsplit_once('@') else { return address.to_owned() };
    let (scheme, user) = match user_part.find("//") {
        Some(at) => user_part.split_at(at + 2),
        None => ("", user_part),
    };
    match user.split_once([':', '/']) {
        Some((name, _)) => format!("{scheme}{name}:***@{host_part}"),
        None => format!("{scheme}{user}@{host_part}"),
    }
}

fn scrubbed_parameter(parameter: &str) -> String {
    let Some((name, _)) = parameter.split_once('=') else { return parameter.to_owned() };
    let lower = name.to_ascii_lowercase();
    let secret = ["pass", "pwd", "secret", "token", "key"].iter().any(|word| lower.contains(word));
    if secret { format!("{name}=***") } else { parameter.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(Secret(***))");
    }

    #[test]
    fn urls_are_shown_without_their_secrets() {
        let cases = [
            ("postgres://u:hunter2@db/hr", "postgres://u:***@db/hr"),
            ("postgres://u:hun@ter2@db/hr", "postgres://u:***@db/hr"),
            ("postgres://u@db/hr?sslpassword=hunter2&x=1", "postgres://u@db/hr?sslpassword=***&x=1"),
            ("jdbc:postgresql://db/hr?user=u&password=hunter2", "jdbc:postgresql://db/hr?user=u&password=***"),
            ("jdbc:oracle:thin:scott/hunter2@db:1521", "jdbc:***@db:1521"),
            ("sqlite:a.db", "sqlite:a.db"),
        ];
        for (url, shown) in cases {
            assert_eq!(scrubbed(url), shown);
        }
    }
}
