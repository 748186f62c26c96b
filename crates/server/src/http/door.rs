//! The open door: what all connections share, and the outer shell of every request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use cachesql_node::Node;
use cachesql_types::limits;
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_ENCODING, HeaderValue, VARY};
use hyper::{Method, Request, Response, StatusCode};

use super::accept;
use super::access::Access;
use super::activity::Activity;
use super::answer::{self, SERVED_BY};
use super::body::AnswerBody;
use super::call::Call;
use super::counters::Counters;
use super::failure::Failure;
use super::listener::HttpConfig;
use super::request_body::{BodyBudget, pass_over};
use super::route;
use super::statements::Statements;

/// One connection, as its requests see it.
pub(crate) struct Connection {
    /// What it is doing.
    pub(crate) activity: Arc<Activity>,
    /// The address that it reached, when the door listens on every address of the machine.
    pub(crate) reached: Option<SocketAddr>,
}

/// What all connections share.
pub(crate) struct Door {
    node: Arc<Node>,
    /// `host:port` as the configuration has it, with the port that was bound; `None` when that is every address of the machine.
    address: Option<String>,
    access: Access,
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
        let host = config.address.rsplit_once(':').map(|(host, _)| host);
        let address = host.filter(|_| !local.ip().to_canonical().is_unspecified());
        Door {
            node,
            address: address.map(|host| format!("{host}:{}", local.port())),
            access: Access::new(config.token, config.insecure, &config.address),
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

    /// What requests of a connection see of it; `local` is its address on this side.
    pub(crate) fn connection(
        &self,
        activity: &Arc<Activity>,
        local: impl FnOnce() -> std::io::Result<SocketAddr>,
    ) -> Connection {
        let reached = if self.address.is_none() { local().ok() } else { None };
        Connection { activity: activity.clone(), reached }
    }

    /// Where others find the door: the configured address, or else the one at which this connection did. `None` when the system
    /// does not say.
    pub(crate) fn address(&self, connection: &Connection) -> Option<String> {
        let reached = || connection.reached.map(|a| SocketAddr::new(a.ip().to_canonical(), a.port()).to_string());
        self.address.clone().or_else(reached)
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

    /// What answers say of who made them.
    pub(crate) fn served_by(&self) -> Option<&HeaderValue> {
        self.served_by.as_ref()
    }

    /// No more requests are wanted; `/readyz` says so.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Whether the door is closing.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Answers one request, whatever happens: a panic is a 500. What need not wait is answered on the spot, and costs no
    /// future.
    pub(crate) fn handle<'a>(&'a self, request: Request<Incoming>, connection: &'a Connection) -> Answering<'a> {
        let (head, body) = request.into_parts();
        let mut call = Call::new(self, connection, head, body);
        let activity = &connection.activity;
        activity.begin_request(call.has_body());
        let now = std::panic::catch_unwind(AssertUnwindSafe(|| self.answer_now(&call)));
        let now = now.unwrap_or_else(|_| Some(panicked()));
        if let Some(response) = now {
            let response = self.finish(response, &call);
            if !call.has_body() {
                return Answering::Ready(Some(response));
            }
            let running = activity.run();
            return Answering::Running(Box::pin(async move {
                let response = passing_over(response, &mut call).await;
                drop(running);
                response
            }));
        }
        let running = activity.run();
        Answering::Running(Box::pin(async move {
            let answered = AssertUnwindSafe(route::answer(&mut call)).catch_unwind().await;
            let response = self.finish(answered.unwrap_or_else(|_| panicked()), &call);
            let response = passing_over(response, &mut call).await;
            drop(running);
            response
        }))
    }

    fn answer_now(&self, call: &Call<'_>) -> Option<Response<AnswerBody>> {
        let refused = self.check(call).err().map(|failure| answer::failed(&failure));
        refused.or_else(|| route::answer_now(call))
    }

    /// Whether the request may be answered at all.
    fn check(&self, call: &Call<'_>) -> Result<(), Failure> {
        if call.head.uri.path_and_query().is_some_and(|p| p.as_str().len() > limits::HTTP_URI_BYTES) {
            let message = format!("the path and query string are longer than {} bytes", limits::HTTP_URI_BYTES);
            return Err(Failure::new(StatusCode::URI_TOO_LONG, "54000", message));
        }
        self.access.check(&call.head)
    }

    fn finish(&self, mut response: Response<AnswerBody>, call: &Call<'_>) -> Response<AnswerBody> {
        if let Some(name) = &self.served_by {
            response.headers_mut().entry(SERVED_BY).or_insert_with(|| name.clone());
        }
        if response.body().is_worth_packing() && *call.method() != Method::HEAD && accept::gzip(call.headers()) {
            response = compressed(response);
        }
        self.counters.answered(response.status());
        response.body_mut().hold(|| call.connection.activity.run());
        response
    }
}

/// Takes a body that nobody read off the connection, which is closed behind the answer when that cannot be done quickly.
async fn passing_over(mut response: Response<AnswerBody>, call: &mut Call<'_>) -> Response<AnswerBody> {
    if let Some(unread) = call.take_body()
        && !pass_over(&call.head.headers, unread, &call.connection.activity).await
    {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn panicked() -> Response<AnswerBody> {
    tracing::error!("a request ended in a panic");
    answer::failed(&Failure::internal())
}

/// An answer: there, until it is taken, or on its way.
pub(crate) enum Answering<'a> {
    /// It is there.
    Ready(Option<Response<AnswerBody>>),
    /// It is on its way.
    Running(Pin<Box<dyn Future<Output = Response<AnswerBody>> + Send + 'a>>),
}

impl Future for Answering<'_> {
    type Output = Result<Response<AnswerBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answering::Ready(response) => response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response))),
            Answering::Running(answering) => answering.as_mut().poll(cx).map(Ok),
        }
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
