//! Answers: media types, the headers that every answer carries, and failures as JSON.

use bytes::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Response, StatusCode};

use super::body::AnswerBody;
use super::failure::{Failure, FailureHeader};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// How far the answer's group was: `group:log index`.
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("cachesql-token");
/// The node that answered.
pub(crate) const SERVED_BY: HeaderName = HeaderName::from_static("cachesql-served-by");
/// What a read must see.
pub(crate) const CONSISTENCY: HeaderName = HeaderName::from_static("cachesql-consistency");
/// The caller's own name for a write; the same one is applied once.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("cachesql-request-id");
/// Set when an answer is the remembered one of an earlier request with the same id.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("cachesql-replayed");

/// The node that leads, in the answer of one that does not.
pub(crate) const LEADER: HeaderName = HeaderName::from_static("cachesql-leader");

/// An answer with a body of a media type.
pub(crate) fn answer(status: StatusCode, media_type: HeaderValue, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// An answer of JSON text.
pub(crate) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<AnswerBody> {
    answer(status, JSON, AnswerBody::Whole(text.into()))
}

/// An answer of plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<AnswerBody> {
    answer(status, TEXT, AnswerBody::Whole(text.into()))
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Empty);
    *response.status_mut() = status;
    response
}

/// A failure as JSON.
pub(crate) fn failed(failure: &Failure) -> Response<AnswerBody> {
    let mut response = json(failure.status, failure.to_json());
    add_failure_headers(response.headers_mut(), failure);
    response
}

/// The headers that belong to a failure's status.
pub(crate) fn add_failure_headers(headers: &mut HeaderMap, failure: &Failure) {
    match failure.header.as_deref() {
        Some(FailureHeader::Allow(methods)) => drop(headers.insert(ALLOW, HeaderValue::from_static(methods))),
        Some(FailureHeader::Leader(node)) => set_header(headers, LEADER, node.clone()),
        None => {}
    }
    if failure.status == StatusCode::UNAUTHORIZED {
        headers
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"cachesql\", charset=\"UTF-8\", Bearer"));
    }
    if failure.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(hyper::header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if matches!(failure.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
        // What is left of the body is not worth reading.
        headers.insert(hyper::header::CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Sets a header whose value was made from names that may hold anything; one that no header can carry is left out.
pub(crate) fn set_header(headers: &mut HeaderMap, name: HeaderName, value: impl Into<Bytes>) {
    if let Ok(value) = HeaderValue::from_maybe_shared(value.into()) {
        headers.insert(name, value);
    }
}
