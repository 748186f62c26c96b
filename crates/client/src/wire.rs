//! One request to one node: over a kept connection or a new one, within its times, and what its answer means.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request};
use tokio::time::{Instant, timeout_at};

use crate::error::{Refusal, shortened};
use crate::limits;
use crate::node::Node;
use crate::pool::{Broken, Connection, Reply};

pub(crate) const CONSISTENCY: HeaderName = HeaderName::from_static("cachesql-consistency");
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("cachesql-token");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("cachesql-request-id");
/// The name of the node that leads, from one that does not.
pub(crate) const LEADER: HeaderName = HeaderName::from_static("cachesql-leader");

/// What is the same for every request of a client.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    /// For connecting to one node; `None` for the call's deadline alone.
    pub(crate) connect_timeout: Option<Duration>,
    /// For one node's answer; `None` for the call's deadline alone.
    pub(crate) read_timeout: Option<Duration>,
    /// What nodes are shown.
    pub(crate) authorization: Option<HeaderValue>,
}

/// A request to whichever node.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Path and query string.
    pub(crate) path: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    /// True for what may reach a node twice: reads, and writes that carry an id.
    pub(crate) repeatable: bool,
    /// Bytes that its answer may have.
    pub(crate) most_bytes: usize,
}

/// A node did not answer.
#[derive(Debug)]
pub(crate) struct Silence {
    /// What became of it.
    pub(crate) said: String,
    /// True when nothing reached the node.
    pub(crate) unsent: bool,
    /// True when it is the node's fault, and not that of a deadline that was too near.
    pub(crate) fault: bool,
}

impl Wire {
    /// Sends a request to a node until a deadline.
    pub(crate) async fn exchange(&self, node: &Node, ask: &Ask, deadline: Instant) -> Result<Reply, Silence> {
        let silence =
            |said: String, unsent, fault| Silence { said: format!("{}: {said}", node.address), unsent, fault };
        let now = Instant::now();
        let until = self.read_timeout.map_or(deadline, |time| deadline.min(now + time));
        // A node that has its full time and does not use it is at fault.
        let in_full = self.read_timeout.is_none_or(|time| deadline - now >= time);
        let late = || silence(format!("no answer within {} ms", now.elapsed().as_millis()), false, in_full);
        // A node that was restarted has closed what is kept: that is no failure of the new one.
        while let Some(mut kept) = node.pool.take() {
            let request = self.request(node, ask).map_err(|error| silence(error, true, false))?;
            match timeout_at(until, kept.send(request, ask.most_bytes)).await {
                Ok(Ok(reply)) => {
                    node.pool.put(kept);
                    return Ok(reply);
                }
                Ok(Err(Broken::Unsent(_))) => {}
                Ok(Err(Broken::Sent(_))) if ask.repeatable => break,
                Ok(Err(Broken::Sent(error))) => return Err(silence(error, false, true)),
                Err(_) => return Err(late()),
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let time = self.connect_timeout.map_or(left, |time| left.min(time));
        let began = Instant::now();
        let mut fresh = Connection::open(&node.address.authority(), time).await.map_err(|error| {
            let refused = began.elapsed() < time;
            silence(error, true, refused || self.connect_timeout.is_none_or(|most| left >= most))
        })?;
        let until = self.read_timeout.map_or(deadline, |time| deadline.min(Instant::now() + time));
        let request = self.request(node, ask).map_err(|error| silence(error, true, false))?;
        match timeout_at(until, fresh.send(request, ask.most_bytes)).await {
            Ok(Ok(reply)) => {
                node.pool.put(fresh);
                Ok(reply)
            }
            Ok(Err(Broken::Unsent(error))) => Err(silence(error, true, true)),
            Ok(Err(Broken::Sent(error))) => Err(silence(error, false, true)),
            Err(_) => Err(late()),
        }
    }

    fn request(&self, node: &Node, ask: &Ask) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(format!("{}{}", node.address.path(), ask.path))
            .header(HOST, node.address.authority())
            .header(ACCEPT, "application/json");
        if !ask.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(Full::new(ask.body.clone())).map_err(|error| error.to_string())
    }
}

/// A node did not do its part.
#[derive(Debug)]
pub(crate) enum Missed {
    /// It does not lead the group; nothing was applied.
    NotLeader {
        /// Its words.
        said: String,
        /// The name of the node that does.
        leader: Option<String>,
    },
    /// Nothing was applied; another node, or this one later, may do it.
    NotApplied {
        /// Its words, or what became of it.
        said: String,
        /// It is well, and has not seen what it would have to show.
        behind: bool,
        /// It answered.
        answered: bool,
    },
    /// What became of the request cannot be said.
    Unknown {
        /// Its words, or what became of it.
        said: String,
        /// It answered.
        answered: bool,
    },
    /// It understood the request and refused it.
    Refused(Refusal),
}

impl Missed {
    /// What to tell of it.
    pub(crate) fn said(&self) -> String {
        match self {
            Missed::NotLeader { said, .. } | Missed::NotApplied { said, .. } | Missed::Unknown { said, .. } => {
                said.clone()
            }
            Missed::Refused(refusal) => format!("{}: {refusal}", refusal.node),
        }
    }
}

impl From<Silence> for Missed {
    fn from(silence: Silence) -> Missed {
        match silence.unsent {
            true => Missed::NotApplied { said: silence.said, behind: false, answered: false },
            false => Missed::Unknown { said: silence.said, answered: false },
        }
    }
}

/// The four members of an error; all may be missing, as when a proxy speaks for a node.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ErrorBody {
    code: Option<String>,
    message: Option<String>,
    details: Option<String>,
    hint: Option<String>,
}

/// What an answer means, and whether the node that gave it is well.
pub(crate) fn judge(node: &Node, reply: Reply, is_write: bool) -> (Result<Reply, Missed>, bool) {
    let status = reply.status();
    let is_json =
        reply.header(CONTENT_TYPE.as_str()).is_some_and(|t| t.to_ascii_lowercase().starts_with("application/json"));
    if status.is_success() {
        if is_json {
            return (Ok(reply), true);
        }
        let said = format!("{}: an answer that is not application/json", node.address);
        return (Err(Missed::Unknown { said, answered: false }), false);
    }
    let error: ErrorBody =
        if is_json { serde_json::from_slice(&reply.body).unwrap_or_default() } else { ErrorBody::default() };
    let refusal = Refusal {
        node: node.address.to_string(),
        status: status.as_u16(),
        code: error.code.unwrap_or_default(),
        message: match error.message {
            Some(message) => shortened(&message),
            None if reply.body.is_empty() => format!("HTTP status {}", status.as_u16()),
            None => shortened(String::from_utf8_lossy(&reply.body).trim()),
        },
        details: error.details.as_deref().map(shortened),
        hint: error.hint.as_deref().map(shortened),
        outcome_known: true,
    };
    let said = format!("{}: {} {}", node.address, refusal.status, refusal.message);
    let leader = reply.header(LEADER.as_str()).map(str::to_owned);
    let not_applied = |behind| Missed::NotApplied { said: said.clone(), behind, answered: true };
    let unknown = |answered| Missed::Unknown { said: said.clone(), answered };
    match (refusal.status, refusal.code.as_str()) {
        (421, _) => (Err(Missed::NotLeader { said, leader }), true),
        (_, "57P03") => (Err(not_applied(true)), true),
        // Too many wait, or the leader changed before the write was applied.
        (_, "53000" | "40001") => (Err(not_applied(false)), true),
        (503, code) if code.starts_with("53") && !is_write => (Err(not_applied(false)), true),
        (503, code) if code.starts_with("53") => (Err(Missed::Refused(refusal)), true),
        // The statement took too long; it would elsewhere.
        (504, "57014") => (Err(Missed::Refused(refusal)), true),
        (504, "08007") => (Err(unknown(true)), true),
        (500, _) => (Err(unknown(true)), true),
        (502..=504, _) => (Err(unknown(false)), false),
        _ => (Err(Missed::Refused(refusal)), true),
    }
}

/// A question for the routes; with `known` and `wait` it is held until they are others than those.
pub(crate) fn ask_for_routes(known: Option<&str>, wait: Option<Duration>) -> Ask {
    let path = match wait {
        Some(wait) => format!("/v1/cluster?wait={}s", wait.as_secs()),
        None => "/v1/cluster".to_owned(),
    };
    let known = known.and_then(|etag| HeaderValue::from_str(etag).ok());
    let headers = known.map(|etag| (hyper::header::IF_NONE_MATCH, etag)).into_iter().collect();
    Ask { method: Method::GET, path, headers, body: Bytes::new(), repeatable: true, most_bytes: limits::ROUTES_BYTES }
}
