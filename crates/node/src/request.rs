//! What callers ask of a node and what they get back.

use std::sync::Arc;
use std::time::Duration;

use cachesql_origin::Estimate;
use cachesql_sql::{ColumnInfo, Rows};
use cachesql_types::{Token, Value};
use tokio::time::Instant;

use crate::error::NodeError;

/// One SQL statement with its parameters.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text; one statement.
    pub sql: String,
    /// Its parameters in their natural types; they become what the statement wants where nothing is lost by it.
    pub params: Vec<Value>,
}

impl Statement {
    /// A statement without parameters.
    pub fn new(sql: impl Into<String>) -> Statement {
        Statement { sql: sql.into(), params: Vec::new() }
    }
}

/// How a request is to be served.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// What its reads must see.
    pub consistency: Consistency,
    /// The caller's own name for a write: a second request with the same one is not applied, and gets the first one's answer.
    pub request_id: Option<String>,
}

/// What a read must see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// This member's newest snapshot.
    #[default]
    Any,
    /// At least everything up to the token.
    Session(Option<Token>),
    /// Nothing older than that.
    Bounded(Duration),
    /// Everything acknowledged anywhere before the read began.
    Linearizable,
}

impl Consistency {
    /// Reads the texts of the `Cachesql-Consistency` and `Cachesql-Token` headers: a level is `any`, `session`,
    /// `bounded=250ms` or `linearizable`. A token without a level asks for `session`.
    pub fn parse(level: Option<&str>, token: Option<&str>) -> Result<Consistency, NodeError> {
        let token = token.map(str::parse::<Token>).transpose()?;
        let Some(level) = level else {
            return Ok(token.map_or(Consistency::Any, |token| Consistency::Session(Some(token))));
        };
        let level = level.trim();
        match level {
            "any" => return Ok(Consistency::Any),
            "session" => return Ok(Consistency::Session(token)),
            "linearizable" => return Ok(Consistency::Linearizable),
            _ => {}
        }
        let bound = level.strip_prefix("bounded=").and_then(parse_bound);
        bound.map(Consistency::Bounded).ok_or_else(|| NodeError::Consistency(level.chars().take(80).collect()))
    }
}

/// Reads `250ms`, `2s`, or a bare number of milliseconds.
fn parse_bound(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" | "" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

/// The answer to one statement.
#[derive(Debug)]
pub struct SqlAnswer {
    /// The columns of its rows; empty when it has none.
    pub columns: Arc<[ColumnInfo]>,
    /// Its rows; `None` for a statement that has no rows to answer.
    pub rows: Option<Rows>,
    /// Rows that it wrote; `None` for a read.
    pub affected: Option<u64>,
    /// What the answer saw, or the write's own place in the log.
    pub token: Token,
    /// The node that answered.
    pub served_by: Arc<str>,
    /// How old what was read can be; `None` when that is not known.
    pub age: Option<Duration>,
    /// True when this is the remembered answer of an earlier request with the same id.
    pub replayed: bool,
}

/// The answers to a batch, one a statement.
#[derive(Debug)]
pub struct BatchAnswer {
    /// In the order of the statements.
    pub answers: Vec<SqlAnswer>,
    /// What the batch saw, or its place in the log.
    pub token: Token,
}

/// The answer to a typed write.
#[derive(Debug)]
pub struct WriteAnswer {
    /// Rows written.
    pub affected: u64,
    /// The rows as they were written, when they were asked for.
    pub returning: Option<Rows>,
    /// The write's place in the log.
    pub token: Token,
    /// True when this is the remembered answer of an earlier request with the same id.
    pub replayed: bool,
}

/// How far a configured table's load is.
#[derive(Clone, Debug)]
pub struct TableLoad {
    /// The table.
    pub table: String,
    /// Where it stands.
    pub phase: LoadPhase,
    /// Rows that have arrived in the load under way, or that the last one brought. What the table holds is another matter: old
    /// rows are served while new ones arrive, and after a load that failed.
    pub rows: u64,
    /// Bytes of them as they arrive; once they are all there, what the table takes.
    pub bytes: u64,
    /// What the load was thought to take, when the origin could say.
    pub estimate: Option<Estimate>,
    /// How long the last finished load took.
    pub took: Duration,
    /// When the load under way began.
    pub(crate) began: Option<Instant>,
    /// Why the last one failed.
    pub error: Option<String>,
    /// Tries since the last success, the one under way included.
    pub attempts: u32,
    /// True from the first success on.
    pub loaded_once: bool,
    /// Whether the node started with the table; it may have come with a reload.
    pub from_start: bool,
}

impl TableLoad {
    /// How long the load under way has been at it, or the last finished one took.
    pub fn elapsed(&self) -> Duration {
        self.began.map_or(self.took, |began| began.elapsed())
    }
}

/// Where a load stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPhase {
    /// Not begun yet.
    Waiting,
    /// Under way.
    Loading,
    /// The last one succeeded.
    Loaded,
    /// The last one failed; rows of an earlier one are still served.
    Failed,
}

/// What a load did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// The table.
    pub table: String,
    /// Rows that the origin has.
    pub rows: u64,
    /// Rows written, because they were new or had changed.
    pub put: u64,
    /// Rows removed, because the origin no longer has them.
    pub deleted: u64,
    /// How long it took.
    pub took: Duration,
    /// Its place in the log.
    pub token: Token,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_texts_become_levels() {
        let token = Token { group: "g".into(), index: cachesql_types::LogIndex(7) };
        let parsed = |level, token| Consistency::parse(level, token).expect("well formed");
        assert_eq!(parsed(None, None), Consistency::Any);
        assert_eq!(parsed(None, Some("g:7")), Consistency::Session(Some(token.clone())));
        assert_eq!(parsed(Some("session"), Some("g:7")), Consistency::Session(Some(token)));
        assert_eq!(parsed(Some("session"), None), Consistency::Session(None));
        assert_eq!(parsed(Some("bounded=250ms"), None), Consistency::Bounded(Duration::from_millis(250)));
        assert_eq!(parsed(Some("bounded=2s"), None), Consistency::Bounded(Duration::from_secs(2)));
        assert_eq!(parsed(Some("linearizable"), None), Consistency::Linearizable);
    }

    #[test]
    fn malformed_header_texts_are_refused() {
        for level in ["", "Any", "bounded", "bounded=", "bounded=x", "bounded=1h", "bounded=-1ms", "strong"] {
            assert!(matches!(Consistency::parse(Some(level), None), Err(NodeError::Consistency(_))), "{level:?}");
        }
        assert!(matches!(Consistency::parse(None, Some("g")), Err(NodeError::Token(_))));
    }
}
