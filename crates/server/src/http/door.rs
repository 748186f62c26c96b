//! The open door: what all connections share, and the outer shell of every request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cachesql_node::Node;
use cachesql_types::limits;
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderValue, VARY};
use hyper::{Method, Request, Response, StatusCode};

use super::accept;
use super::access::{self, AccessToken};
use super::activity::Activity;
use super::answer::{self, SERVED_BY};
use super::body::AnswerBody;
use super::call::Call;
use super::counters::Counters;
use super::failure::Failure;
use super::listener::HttpConfig;
use super::request_body::BodyBudget;
use super::route;
use super::statements::Statements;

/// What all connections share.
pub(crate) struct Door {
    node: Arc<Node>,
    local: SocketAddr,
    token: Option<AccessToken>,
    bodies: BodyBudget,
    counters: Counters,
    served_by: Option<HeaderValue>,
    stopping: AtomicBool,
    statements: Statements,
}

impl Door {
    /// A door to a node.
    pub(crate) fn new(node: Arc<Node>, local: SocketAddr, config: HttpConfig) -> Door {
        let served_by = HeaderValue::from_str(node.name()).ok();
        Door {
            node,
            local,
            token: config.token,
            bodies: BodyBudget::new(config.body_bytes),
            counters: Counters::new(),
            served_by,
            stopping: AtomicBool::new(false),
            statements: Statements::start(),
        }
    }

    /// The node behind it.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Where it listens.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// What reads bodies.
    pub(crate) fn bodies(&self) -> &BodyBudget {
        &self.bodies
    }

    /// Where statements run.
    pub(crate) fn statements(&self) -> &Statements {
        &self.statements
    }

    /// What is counted.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// No more requests are wanted; `/readyz` says so.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Whether the door is closing.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Answers one request, whatever happens: a panic is a 500.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        activity: &Arc<Activity>,
    ) -> Result<Response<AnswerBody>, Infallible> {
        let running = activity.begin_request();
        let (head, body) = request.into_parts();
        let gzip = accept::gzip(&head.headers) && head.method != Method::HEAD;
        let mut call = Call::new(self, head, body);
        let answered = AssertUnwindSafe(self.answer(&mut call)).catch_unwind().await;
        let mut response = answered.unwrap_or_else(|_| {
            tracing::error!("a request ended in a panic");
            answer::failed(&Failure::internal())
        });
        if let Some(name) = &self.served_by {
            response.headers_mut().insert(SERVED_BY, name.clone());
        }
        if gzip {
            response = compressed(response);
        }
        self.counters.answered(response.status());
        response.body_mut().hold(running);
        Ok(response)
    }

    async fn answer(&self, call: &mut Call<'_>) -> Response<AnswerBody> {
        if call.head.uri.path_and_query().is_some_and(|p| p.as_str().len() > limits::HTTP_URI_BYTES) {
            let message = format!("the path and query string are longer than {} bytes", limits::HTTP_URI_BYTES);
            return answer::failed(&Failure::new(StatusCode::URI_TOO_LONG, "54000", message));
        }
        if let Err(failure) = access::check(self.token.as_ref(), call.method(), call.headers()) {
            return answer::failed(&failure);
        }
        route::answer(call).await
    }
}

fn compressed(response: Response<AnswerBody>) -> Response<AnswerBody> {
    let (mut head, body) = response.into_parts();
    let (body, packed) = body.gzip();
    if packed {
        head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        head.headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Response::from_parts(head, body)
}
