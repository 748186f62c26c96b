//! `GET /`: a page for people, a list of endpoints for programs.
//!
//! The page loads nothing from elsewhere, runs no script but its own file, and writes what it is told as text, never as HTML.

use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::accept;
use super::answer::answer;
use super::body::AnswerBody;
use super::call::Call;
use super::original;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The page when the request names `text/html` and does not name `application/json`; else the list of endpoints.
pub(crate) fn root(call: &Call<'_>) -> Response<AnswerBody> {
    let wants_page = accept::names(call.headers(), "text/html") && !accept::names(call.headers(), "application/json");
    let mut response = if wants_page { asset("text/html; charset=utf-8", PAGE) } else { original::endpoints() };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// The page's script.
pub(crate) fn script() -> Response<AnswerBody> {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

/// The page's style.
pub(crate) fn style() -> Response<AnswerBody> {
    asset("text/css; charset=utf-8", STYLE)
}

fn asset(media_type: &'static str, text: &'static str) -> Response<AnswerBody> {
    let body = AnswerBody::Whole(Bytes::from_static(text.as_bytes()));
    let mut response = answer(StatusCode::OK, HeaderValue::from_static(media_type), body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
