//! One request on its way through the door.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use cachesql_node::{Consistency, GroupSnapshot, Node, NodeError, RequestOptions};
use cachesql_types::{LogIndex, Token};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};

use super::answer::{CONSISTENCY, REQUEST_ID, TOKEN, set_header};
use super::door::Door;
use super::failure::Failure;
use super::request_body::RequestBody;

/// A request: its head, its body while it is unread, and the door that it came through.
pub(crate) struct Call<'a> {
    pub(crate) door: &'a Door,
    pub(crate) head: Parts,
    body: Option<Incoming>,
}

impl<'a> Call<'a> {
    /// A request that came through a door.
    pub(crate) fn new(door: &'a Door, head: Parts, body: Incoming) -> Call<'a> {
        Call { door, head, body: Some(body) }
    }

    /// The node behind the door.
    pub(crate) fn node(&self) -> &'a Arc<Node> {
        self.door.node()
    }

    /// The request's method.
    pub(crate) fn method(&self) -> &Method {
        &self.head.method
    }

    /// The request's headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The query string, not decoded.
    pub(crate) fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    /// The body, while it is unread.
    pub(crate) fn unread_body(&self) -> Option<&Incoming> {
        self.body.as_ref()
    }

    /// Reads the body, once.
    pub(crate) async fn read_body(&mut self) -> Result<RequestBody, Failure> {
        let body = self.body.take().ok_or_else(Failure::internal)?;
        self.door.bodies().read(&self.head.headers, body).await
    }

    /// A header's text, when there is one.
    pub(crate) fn header(&self, name: &HeaderName) -> Result<Option<&str>, Failure> {
        let mut values = self.head.headers.get_all(name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Failure::bad_request(format!("the header {name} is given twice")));
        }
        value.to_str().map(Some).map_err(|_| Failure::bad_request(format!("the header {name} is not ASCII")))
    }

    /// What the request's reads must see.
    pub(crate) fn consistency(&self) -> Result<Consistency, Failure> {
        let (level, token) = (self.header(&CONSISTENCY)?, self.header(&TOKEN)?);
        if level.is_none() && token.is_none() {
            return Ok(Consistency::default());
        }
        Ok(Consistency::parse(level, token)?)
    }

    /// How the request is to be served.
    pub(crate) fn options(&self) -> Result<RequestOptions, Failure> {
        Ok(RequestOptions {
            consistency: self.consistency()?,
            request_id: self.header(&REQUEST_ID)?.map(str::to_owned),
        })
    }

    /// The failure of a request for a table that no snapshot has: it may be one that is still to be loaded.
    pub(crate) fn unknown_table(&self, name: &str) -> Failure {
        let loads = self.node().loads();
        let loads = loads.borrow();
        match loads.iter().find(|load| !load.loaded_once && load.table.eq_ignore_ascii_case(name)) {
            Some(load) => NodeError::NotLoaded { table: load.table.clone(), failure: load.error.clone() }.into(),
            None => Failure::unknown_table(name),
        }
    }

    /// The snapshot that the request reads.
    pub(crate) async fn snapshot(&self) -> Result<GroupSnapshot, Failure> {
        match self.consistency()? {
            Consistency::Any => Ok(self.node().snapshot()),
            consistency => Ok(self.node().snapshot_for(&consistency).await?),
        }
    }
}

/// Says how far the answer's group was.
pub(crate) fn set_token(headers: &mut HeaderMap, token: &Token) {
    set_header(headers, TOKEN, token.to_string());
}

thread_local! {
    /// The position that this thread wrote last: until the next write, all answers have the same one.
    static POSITION: RefCell<Option<(Arc<str>, LogIndex, HeaderValue)>> = const { RefCell::new(None) };
}

/// The same for a read of this node's own group.
pub(crate) fn set_position(headers: &mut HeaderMap, node: &Node, index: LogIndex) {
    let value = POSITION.with_borrow_mut(|last| match last {
        Some((group, at, value)) if *at == index && Arc::ptr_eq(group, node.shared_group()) => Some(value.clone()),
        _ => {
            let text = Bytes::from(format!("{}:{index}", node.group()));
            // A group whose name no header can carry has none.
            let value = HeaderValue::from_maybe_shared(text).ok()?;
            *last = Some((node.shared_group().clone(), index, value.clone()));
            Some(value)
        }
    });
    if let Some(value) = value {
        headers.insert(TOKEN, value);
    }
}
