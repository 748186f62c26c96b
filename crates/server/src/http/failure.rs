//! A failed request as the doors show it: `{"code","message","details","hint"}`, with an SQLSTATE as code.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::StatusCode;

use super::encode::json::write_string;

/// One failed request. The code is an SQLSTATE; two of PostgREST's own codes stand where its clients look for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// SQLSTATE, or `PGRST103` (range not satisfiable) and `PGRST116` (not exactly one row).
    pub(crate) code: Cow<'static, str>,
    /// What went wrong, in one sentence.
    pub(crate) message: String,
    /// More about it.
    pub(crate) details: Option<String>,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// A header that goes with it. Boxed: every result would be larger for what few have.
    pub(crate) header: Option<Box<FailureHeader>>,
}

/// What a header of a failed request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailureHeader {
    /// Methods that the path has, for a 405.
    Allow(&'static str),
    /// The node that leads, for a 421.
    Leader(String),
}

impl Failure {
    /// A failure with a status and a code.
    pub(crate) fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Failure {
        let (code, message) = (code.into(), message.into());
        Failure { status, code, message, details: None, hint: None, header: None }
    }

    /// A request that is not written as it should be (08P01, protocol violation).
    pub(crate) fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "08P01", message)
    }

    /// A request whose grammar is broken (42601).
    pub(crate) fn syntax(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "42601", message)
    }

    /// A value that is not of its column's type (22P02).
    pub(crate) fn value(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "22P02", message)
    }

    /// What is understood, and not served (0A000).
    pub(crate) fn unsupported(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "0A000", message)
    }

    /// A column that the table does not have (42703).
    pub(crate) fn unknown_column(table: &str, column: &str) -> Failure {
        let shown: String = column.chars().take(100).collect();
        Failure::new(StatusCode::BAD_REQUEST, "42703", format!("column {table}.{shown} does not exist"))
    }

    /// A table that is not there (42P01, 404 as in PostgREST).
    pub(crate) fn unknown_table(table: &str) -> Failure {
        let shown: String = table.chars().take(100).collect();
        Failure::new(StatusCode::NOT_FOUND, "42P01", format!("table {shown} does not exist"))
    }

    /// A path that is not there.
    pub(crate) fn not_found() -> Failure {
        Failure::new(StatusCode::NOT_FOUND, "42883", "there is nothing at this path")
            .with_hint("GET / lists what there is")
    }

    /// A path that is there, for other methods.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Failure {
        let mut failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED, "0A000", "this path does not serve this method");
        failure.header = Some(Box::new(FailureHeader::Allow(allow)));
        failure
    }

    /// A body larger than the limit, in bytes.
    pub(crate) fn body_too_large(limit: usize) -> Failure {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "54000", format!("the body is larger than {limit} bytes"))
    }

    /// A body of a media type that the path does not read.
    pub(crate) fn media_type(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "0A000", message)
    }

    /// A fault of ours. The cause is logged, not shown.
    pub(crate) fn internal() -> Failure {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "internal error")
    }

    /// The same, with details.
    pub(crate) fn with_details(mut self, details: impl Into<String>) -> Failure {
        self.details = Some(details.into());
        self
    }

    /// The same, with a hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// The JSON object that is sent.
    pub(crate) fn to_json(&self) -> Bytes {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(b"{\"code\":");
        write_string(&mut out, &self.code);
        out.extend_from_slice(b",\"message\":");
        write_string(&mut out, &self.message);
        for (name, text) in [("details", &self.details), ("hint", &self.hint)] {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            match text {
                Some(text) => write_string(&mut out, text),
                None => out.extend_from_slice(b"null"),
            }
        }
        out.push(b'}');
        Bytes::from(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_four_members_and_is_escaped() {
        let failure = Failure::syntax("a \"quoted\"\r\nline").with_hint("h");
        let value: serde_json::Value = serde_json::from_slice(&failure.to_json()).expect("JSON");
        let expected =
            serde_json::json!({"code": "42601", "message": "a \"quoted\"\r\nline", "details": null, "hint": "h"});
        assert_eq!(value, expected);
    }
}
