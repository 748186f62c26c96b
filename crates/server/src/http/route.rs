//! Which handler a path belongs to.

use hyper::{Method, Response};

use super::answer::{failed, json};
use super::body::AnswerBody;
use super::call::Call;
use super::failure::Failure;
use super::parameters::decode_segment;
use super::{cluster, dashboard, health, original, rest, sql};

/// Answers a request; failures in the manner of the interface that the path belongs to.
///
/// The future of a request is copied a few times before it runs. It holds what the frequent ones need, and borrows the call;
/// the others are boxed.
pub(crate) async fn answer(call: &mut Call<'_>) -> Response<AnswerBody> {
    let path = call.head.uri.path();
    if let Some(at) = path.strip_prefix("/rest/").map(|table| path.len() - table.len()) {
        return rest_of(call, at).await.unwrap_or_else(|failure| failed(&failure));
    }
    if path.starts_with("/cache/") {
        return original::answer(call).await;
    }
    Box::pin(others(call)).await.unwrap_or_else(|failure| failed(&failure))
}

/// `/rest/{table}`, whose table begins at a position of the path.
async fn rest_of(call: &mut Call<'_>, at: usize) -> Result<Response<AnswerBody>, Failure> {
    call.door.counters().rest();
    let segment = call.head.uri.path().get(at..).unwrap_or_default();
    if segment.is_empty() {
        return rest_list(call);
    }
    if segment.contains('/') {
        return Err(Failure::not_found());
    }
    let table = decode_segment(segment)?;
    match *call.method() {
        Method::GET | Method::HEAD => rest::read(call, &table).await,
        _ => {
            let table = table.into_owned();
            Box::pin(rest_write(call, table)).await
        }
    }
}

async fn rest_write(call: &mut Call<'_>, table: String) -> Result<Response<AnswerBody>, Failure> {
    match *call.method() {
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
        "/v1/cluster" => Ok(cluster::cluster(call)),
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
