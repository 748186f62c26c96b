//! `/cache/*`: the original CacheSQL's interface, as its Java client speaks it.
//!
//! Every answer is `{"code":0,"message":"ok","data":…}`; what is wrong is said in plain text with a status. Parameters come in
//! the query string, or with POST as a form, decoded once.

mod change;
mod describe;
mod find;
mod parameters;

use cachesql_node::{Comparison, NodeError};
use hyper::{Method, Response, StatusCode};

use self::parameters::OriginalParameters;
use super::answer::{add_failure_headers, json, text};
use super::body::AnswerBody;
use super::call::Call;
use super::encode::json::write_string;
use super::failure::Failure;
use super::status;

/// Answers `GET /cache/get` when that can be done on the spot.
pub(crate) fn get_now(call: &Call<'_>) -> Option<Response<AnswerBody>> {
    let parameters = OriginalParameters::read(call.query(), None);
    let answered = parameters
        .and_then(|parameters| find::rows_now(call, &find::compared(&parameters, Comparison::Equal)?))
        .transpose()?;
    call.door.counters().original();
    Some(answered.unwrap_or_else(|failure| refused(&failure)))
}

/// Answers a call.
pub(crate) async fn answer(call: &mut Call<'_>) -> Response<AnswerBody> {
    call.door.counters().original();
    serve(call).await.unwrap_or_else(|failure| refused(&failure))
}

/// A failure as the original says it: its status and one line of text.
fn refused(failure: &Failure) -> Response<AnswerBody> {
    let message = match failure.status {
        StatusCode::INTERNAL_SERVER_ERROR => "Internal Server Error".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => "Method Not Allowed".to_owned(),
        _ => failure.message.clone(),
    };
    // The original knows no conflicts: its clients look for 400, 404, 405 and 500.
    let status = if failure.status == StatusCode::CONFLICT { StatusCode::BAD_REQUEST } else { failure.status };
    let mut response = text(status, message);
    add_failure_headers(response.headers_mut(), failure);
    response
}

/// A node's error, with the texts that the original had for it.
fn failure_of(error: &NodeError) -> Failure {
    let failure = status::of_node(error);
    let message = match error {
        NodeError::UnknownTable { table } => format!("Table not found: {table}"),
        NodeError::UnknownColumn { column, .. } => format!("Column not found: {column}"),
        _ => return failure,
    };
    Failure { message, ..failure }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Methods {
    Get,
    Post,
    Both,
}

async fn serve(call: &mut Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    let name = call.head.uri.path().strip_prefix("/cache/").unwrap_or_default();
    let Some((operation, methods)) = Operation::named(name) else {
        return Err(Failure::new(StatusCode::NOT_FOUND, "42883", "Not Found"));
    };
    let is_post = *call.method() == Method::POST;
    let allowed = match methods {
        Methods::Get => matches!(*call.method(), Method::GET | Method::HEAD),
        Methods::Post => is_post,
        Methods::Both => is_post || matches!(*call.method(), Method::GET | Method::HEAD),
    };
    if !allowed {
        return Err(Failure::method_not_allowed(match methods {
            Methods::Get => "GET, HEAD",
            Methods::Post => "POST",
            Methods::Both => "GET, HEAD, POST",
        }));
    }
    if !is_post {
        let parameters = OriginalParameters::read(call.query(), None)?;
        return run(call, operation, &parameters).await;
    }
    let form = parameters::read_form(call).await?;
    let form = form.as_ref().map(super::request_body::RequestBody::text).transpose()?;
    let parameters = OriginalParameters::read(call.query(), form)?;
    run(call, operation, &parameters).await
}

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Less,
    More,
    Range,
    Composite,
    Query,
    Insert,
    Update,
    Delete,
    Load,
    Refresh,
    Ttl,
    MaxSize,
    Clean,
    Truncate,
    Compact,
    Stats,
    List,
    Metrics,
    Health,
}

impl Operation {
    fn named(name: &str) -> Option<(Operation, Methods)> {
        Some(match name {
            "get" => (Operation::Get, Methods::Get),
            "less" => (Operation::Less, Methods::Get),
            "more" => (Operation::More, Methods::Get),
            "range" => (Operation::Range, Methods::Get),
            "composite" => (Operation::Composite, Methods::Get),
            "query" => (Operation::Query, Methods::Both),
            "insert" => (Operation::Insert, Methods::Post),
            "update" => (Operation::Update, Methods::Post),
            "delete" => (Operation::Delete, Methods::Post),
            "load" => (Operation::Load, Methods::Post),
            "refresh" => (Operation::Refresh, Methods::Post),
            "ttl" => (Operation::Ttl, Methods::Post),
            "maxSize" => (Operation::MaxSize, Methods::Post),
            "clean" => (Operation::Clean, Methods::Post),
            "truncate" => (Operation::Truncate, Methods::Post),
            "compact" => (Operation::Compact, Methods::Post),
            "stats" => (Operation::Stats, Methods::Get),
            "list" => (Operation::List, Methods::Get),
            "metrics" => (Operation::Metrics, Methods::Get),
            "health" => (Operation::Health, Methods::Get),
            _ => return None,
        })
    }
}

async fn run(
    call: &Call<'_>,
    operation: Operation,
    parameters: &OriginalParameters<'_>,
) -> Result<Response<AnswerBody>, Failure> {
    match operation {
        Operation::Get => find::rows(call, &find::compared(parameters, Comparison::Equal)?).await,
        Operation::Less => find::rows(call, &find::compared(parameters, Comparison::Less)?).await,
        Operation::More => find::rows(call, &find::compared(parameters, Comparison::Greater)?).await,
        Operation::Range => find::rows(call, &find::range(parameters)?).await,
        Operation::Composite => find::rows(call, &find::composite(parameters)?).await,
        Operation::Query => find::query(call, parameters).await,
        Operation::Insert => change::insert(call, parameters).await,
        Operation::Update => change::update(call, parameters).await,
        Operation::Delete => change::delete(call, parameters).await,
        Operation::Load => change::load(call, parameters).await,
        Operation::Refresh => change::refresh(call).await,
        Operation::Ttl => change::ttl(call, parameters).await,
        Operation::MaxSize => change::max_size(call, parameters).await,
        Operation::Clean => change::clean(call, parameters).await,
        Operation::Truncate => change::truncate(call, parameters).await,
        Operation::Compact => change::compact(call, parameters).await,
        Operation::Stats => describe::stats(call, parameters),
        Operation::List => Ok(describe::list(call)),
        Operation::Metrics => Ok(describe::metrics(call)),
        Operation::Health => Ok(describe::health(call)),
    }
}

/// `{"code":0,"message":…,"data":…}`
fn envelope(status: StatusCode, message: &str, data: &[u8]) -> Response<AnswerBody> {
    let mut out = Vec::with_capacity(data.len() + 48);
    out.extend_from_slice(b"{\"code\":0,\"message\":");
    write_string(&mut out, message);
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(data);
    out.push(b'}');
    json(status, out)
}

/// Every call, as `GET /` lists them.
pub(crate) const ENDPOINTS: [&str; 20] = [
    "GET /cache/get?table=&column=&value=",
    "GET /cache/less?table=&column=&value=",
    "GET /cache/more?table=&column=&value=",
    "GET /cache/range?table=&column=&from=&to=",
    "GET /cache/composite?table=&index=&values=",
    "GET|POST /cache/query?sql=",
    "POST /cache/insert",
    "POST /cache/update",
    "POST /cache/delete",
    "POST /cache/load",
    "POST /cache/refresh",
    "POST /cache/ttl",
    "POST /cache/maxSize",
    "POST /cache/clean",
    "POST /cache/truncate",
    "POST /cache/compact",
    "GET /cache/stats?table=",
    "GET /cache/list",
    "GET /cache/metrics",
    "GET /cache/health",
];

/// The answer to `GET /` for programs: message `CacheSQL`, and what there is.
pub(crate) fn endpoints() -> Response<AnswerBody> {
    let others = [
        "GET|POST|PATCH|PUT|DELETE /rest/{table}",
        "POST /v1/sql",
        "GET /v1/explain?sql=",
        "GET /v1/tables",
        "GET /v1/cluster",
        "GET /metrics",
        "GET /healthz",
        "GET /readyz",
    ];
    let mut data = b"{\"endpoints\":[".to_vec();
    for (at, endpoint) in ENDPOINTS.iter().chain(&others).enumerate() {
        if at > 0 {
            data.push(b',');
        }
        write_string(&mut data, endpoint);
    }
    data.extend_from_slice(b"]}");
    envelope(StatusCode::OK, "CacheSQL", &data)
}
