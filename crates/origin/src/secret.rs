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

/// A URL with its secrets replaced, for messages about URLs that could not even be read: whatever stands between the user's
/// name and the last `@`, and the value of every parameter whose name speaks of a secret. Where it is in doubt what is what,
/// more is replaced.
pub(crate) fn scrubbed(url: &str) -> String {
    const SHOWN_CHARACTERS: usize = 300;
    // The last @: a password that should have been percent-encoded may hold others.
    let (mut shown, rest) = match url.rsplit_once('@') {
        Some((user, rest)) => (format!("{}@", scrubbed_user(user)), rest),
        None => (String::new(), url),
    };
    // Parameters stand behind a question mark with & between them, or (SQL Server) behind semicolons.
    let (address, parameters) = rest.split_at(rest.find(['?', ';']).map_or(rest.len(), |at| at + 1));
    shown.push_str(address);
    let separator = if address.ends_with(';') { ';' } else { '&' };
    for parameter in parameters.split_inclusive(separator) {
        shown.push_str(&scrubbed_parameter(parameter, separator));
    }
    shown.chars().take(SHOWN_CHARACTERS).collect()
}

fn scrubbed_user(user: &str) -> String {
    let scheme_end = user.find("://").map(|at| at + 3);
    let (scheme, user) = user.split_at(scheme_end.unwrap_or(0));
    if scheme.is_empty() || scheme.contains(['@', '?']) {
        return "***".to_owned();
    }
    match user.find([':', '/', '?', '&', '@']) {
        Some(at) => format!("{scheme}{}:***", user.get(..at).unwrap_or_default()),
        None => format!("{scheme}{user}"),
    }
}

/// One `name=value`, with the separator that follows it.
fn scrubbed_parameter(parameter: &str, separator: char) -> String {
    let Some((name, value)) = parameter.split_once('=') else { return parameter.to_owned() };
    let lower = name.to_ascii_lowercase();
    if !["pass", "pwd", "secret", "token", "key"].iter().any(|word| lower.contains(word)) {
        return parameter.to_owned();
    }
    let end = if value.ends_with(separator) { separator.to_string() } else { String::new() };
    format!("{name}=***{end}")
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
            ("jdbc:oracle:thin:scott/hunter2@db:1521", "***@db:1521"),
            ("u:hunter2@db", "***@db"),
            ("postgres://db/hr?password=hun?t;er2&x=1", "postgres://db/hr?password=***&x=1"),
            ("postgres://u:hun?ter2@db/hr", "postgres://u:***@db/hr"),
            ("jdbc:sqlserver://db;password=hunter2;x=1", "jdbc:sqlserver://db;password=***;x=1"),
            ("sqlite:a.db", "sqlite:a.db"),
        ];
        for (url, shown) in cases {
            assert_eq!(scrubbed(url), shown);
        }
    }
}
