//! Which handler a path belongs to.

use hyper::{Method, Response};

use super::answer::{failed, json};
use super::body::AnswerBody;
use super::call::Call;
use super::failure::Failure;
use super::parameters::decode_segment;
use super::{cluster, dashboard, health, original, rest, sql};

/// Answers a request that need not wait: a read of what is there, and quick to find. `None` for all others, which go to
/// [`answer`].
pub(crate) fn answer_now(call: &Call<'_>) -> Option<Response<AnswerBody>> {
    if *call.method() != Method::GET {
        return None;
    }
    let path = call.head.uri.path();
    if path == "/cache/get" {
        return original::get_now(call);
    }
    let segment = path.strip_prefix("/rest/").filter(|segment| !segment.is_empty() && !segment.contains('/'))?;
    let table = decode_segment(segment).ok()?;
    let answered = rest::read_now(call, &table).transpose()?;
    call.door.counters().rest();
    Some(answered.unwrap_or_else(|failure| failed(&failure)))
}

/// Answers a request; failures in the manner of the interface that the path belongs to.
pub(crate) async fn answer(call: &mut Call<'_>) -> Response<AnswerBody> {
    let path = call.head.uri.path();
    if path.starts_with("/cache/") {
        return original::answer(call).await;
    }
    let answered = match path.strip_prefix("/rest/").map(str::to_owned) {
        Some(segment) => rest_of(call, &segment).await,
        None => others(call).await,
    };
    answered.unwrap_or_else(|failure| failed(&failure))
}

/// `/rest/{table}`.
async fn rest_of(call: &mut Call<'_>, segment: &str) -> Result<Response<AnswerBody>, Failure> {
    call.door.counters().rest();
    if segment.is_empty() {
        return rest_list(call);
    }
    if segment.contains('/') {
        return Err(Failure::not_found());
    }
    let table = decode_segment(segment)?;
    match *call.method() {
        Method::GET | Method::HEAD => rest::read(call, &table).await,
        Method::POST => rest::insert(call, &table).await,
        Method::PATCH => rest::update(call, &table).await,
        Method::PUT => rest::put(call, &table).await,
        Method::DELETE => rest::delete(call, &table).await,
        _ => Err(Failure::method_not_allowed("GET, HEAD, POST, PATCH, PUT, DELETE")),
    }
}

fn rest_list(call: &Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    only_get(call.method())?;
    Ok(json(hyper::StatusCode::OK, cluster::tables_json(call.node())))
}

async fn others(call: &mut Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    call.door.counters().other();
    match call.head.uri.path() {
        "/v1/sql" => match *call.method() {
            Method::POST => sql::run(call).await,
            _ => Err(Failure::method_not_allowed("POST")),
        },
        "/v1/cluster/transfer" | "/v1/cluster/leave" => match *call.method() {
            Method::POST => cluster::change(call).await,
            _ => Err(Failure::method_not_allowed("POST")),
        },
        "/v1/cluster/reload" => match *call.method() {
            Method::POST => cluster::reload(call).await,
            _ => Err(Failure::method_not_allowed("POST")),
        },
        path => {
            let found =
                ["/", "/dashboard.js", "/dashboard.css", "/healthz", "/readyz", "/metrics", "/rest", "/v1/tables"];
            let found = found.contains(&path) || matches!(path, "/v1/explain" | "/v1/cluster");
            if !found {
                return Err(Failure::not_found());
            }
            only_get(call.method())?;
            get(call).await
        }
    }
}

async fn get(call: &Call<'_>) -> Result<Response<AnswerBody>, Failure> {
    match call.head.uri.path() {
        "/" => Ok(dashboard::root(call)),
        "/dashboard.js" => Ok(dashboard::script()),
        "/dashboard.css" => Ok(dashboard::style()),
        "/healthz" => Ok(health::alive()),
        "/readyz" => Ok(health::ready(call)),
        "/metrics" => Ok(health::metrics(call)),
        "/rest" | "/v1/tables" => rest_list(call),
        "/v1/cluster" => cluster::cluster(call).await,
        "/v1/explain" => sql::explain(call).await,
        _ => Err(Failure::not_found()),
    }
}

fn only_get(method: &Method) -> Result<(), Failure> {
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(Failure::method_not_allowed("GET, HEAD")),
    }
}
