//! The client's own options, and how their texts are read.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hyper::header::HeaderValue;

use crate::policy::Policy;

/// What a read must see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Whatever the node has that answers.
    Any,
    /// At least everything that this client wrote or saw.
    #[default]
    Session,
    /// Nothing older than that; whole milliseconds.
    Bounded(Duration),
    /// Everything that was acknowledged anywhere before the read began.
    Linearizable,
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Consistency::Any => f.write_str("any"),
            Consistency::Session => f.write_str("session"),
            Consistency::Bounded(bound) => write!(f, "bounded={}ms", bound.as_millis()),
            Consistency::Linearizable => f.write_str("linearizable"),
        }
    }
}

impl FromStr for Consistency {
    type Err = String;

    fn from_str(text: &str) -> Result<Consistency, String> {
        let bound = |text: &str| {
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let number: u64 = digits.parse().ok()?;
            match text.get(digits.len()..)? {
                "ms" | "" => Some(Duration::from_millis(number)),
                "s" => Some(Duration::from_secs(number)),
                _ => None,
            }
        };
        let read = match text {
            "any" => Some(Consistency::Any),
            "session" => Some(Consistency::Session),
            "linearizable" => Some(Consistency::Linearizable),
            _ => text.strip_prefix("bounded=").and_then(bound).map(Consistency::Bounded),
        };
        read.ok_or_else(|| format!("expected any, session, bounded=250ms or linearizable, found {text:?}"))
    }
}

/// Options that somebody gave, in a file or in code; `None` for those that nobody did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) policy: Option<Policy>,
    pub(crate) consistency: Option<Consistency>,
    /// Zero for no limit but the deadline, as in the properties.
    pub(crate) connect_timeout: Option<Duration>,
    /// Zero for no limit but the deadline, as in the properties.
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) authorization: Option<HeaderValue>,
}

impl Settings {
    /// These, and where they say nothing, others.
    pub(crate) fn or(self, others: Settings) -> Settings {
        Settings {
            policy: self.policy.or(others.policy),
            consistency: self.consistency.or(others.consistency),
            connect_timeout: self.connect_timeout.or(others.connect_timeout),
            read_timeout: self.read_timeout.or(others.read_timeout),
            deadline: self.deadline.or(others.deadline),
            authorization: self.authorization.or(others.authorization),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_written_as_nodes_read_them() {
        for text in ["any", "session", "linearizable", "bounded=250ms"] {
            assert_eq!(text.parse::<Consistency>().expect(text).to_string(), text);
        }
        assert_eq!("bounded=2s".parse(), Ok(Consistency::Bounded(Duration::from_secs(2))));
        for text in ["", "Any", "bounded", "bounded=", "bounded=1h", "bounded=-1ms", "strong"] {
            assert!(text.parse::<Consistency>().is_err(), "{text:?}");
        }
    }
}
