//! One request on its way through the door.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use cachesql_node::{Consistency, GroupSnapshot, Node, NodeError, RequestOptions};
use cachesql_types::{LogIndex, Token};
use hyper::body::{Body as _, Incoming};
use hyper::header::{AGE, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};

use super::accept::RowsType;
use super::answer::{CONSISTENCY, JSON, REQUEST_ID, SERVED_BY, TOKEN, set_header};
use super::door::{Connection, Door};
use super::failure::Failure;
use super::request_body::{RequestBody, check_encoding};

/// A request: its head, its body while it is unread, and the door and the connection that it came through.
pub(crate) struct Call<'a> {
    pub(crate) door: &'a Door,
    pub(crate) connection: &'a Connection,
    pub(crate) head: Parts,
    body: Option<Incoming>,
}

impl<'a> Call<'a> {
    /// A request that came through a door.
    pub(crate) fn new(door: &'a Door, connection: &'a Connection, head: Parts, body: Incoming) -> Call<'a> {
        Call { door, connection, head, body: Some(body) }
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

    /// Whether there is a body that is not read yet.
    pub(crate) fn has_body(&self) -> bool {
        self.body.as_ref().is_some_and(|body| !body.is_end_stream())
    }

    /// Takes a body that is not read, if the request brought one.
    pub(crate) fn take_body(&mut self) -> Option<Incoming> {
        self.body.take().filter(|body| !body.is_end_stream())
    }

    /// Reads the body, once.
    pub(crate) async fn read_body(&mut self) -> Result<RequestBody, Failure> {
        check_encoding(&self.head.headers)?;
        let body = self.body.take().ok_or_else(Failure::internal)?;
        self.door.bodies().read(&self.head.headers, body, &self.connection.activity).await
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

/// What the headers of an answer to a read depend on, but for the node and how far it is.
#[derive(Clone, Copy)]
pub(crate) enum ReadKind {
    /// `/rest`, in a type. Its reads say how old what they answer can be.
    Rest(RowsType),
    /// `/cache`.
    Original,
}

impl ReadKind {
    const KINDS: usize = 6;

    fn place(self) -> usize {
        match self {
            ReadKind::Rest(rows_type) => rows_type as usize,
            ReadKind::Original => ReadKind::KINDS - 1,
        }
    }
}

/// Headers that all answers of one kind have until the next write.
struct Stamp {
    group: Arc<str>,
    index: LogIndex,
    /// In seconds; `None` when that is not known.
    age: Option<u64>,
    headers: HeaderMap,
}

thread_local! {
    /// The stamps that this thread made last, by kind.
    static STAMPS: RefCell<[Option<Stamp>; ReadKind::KINDS]> = const { RefCell::new([const { None }; ReadKind::KINDS]) };
}

/// The headers of an answer to a read of this node's own group: its type, how far the group was, and who answers.
pub(crate) fn read_headers(call: &Call<'_>, kind: ReadKind, index: LogIndex) -> HeaderMap {
    let group = call.node().shared_group();
    let age = call.node().age().map(whole_seconds);
    let is_of = |stamp: &Stamp| stamp.index == index && stamp.age == age && Arc::ptr_eq(&stamp.group, group);
    STAMPS.with_borrow_mut(|stamps| match stamps.get_mut(kind.place()) {
        Some(Some(stamp)) if is_of(stamp) => stamp.headers.clone(),
        place => {
            let headers = make_read_headers(call, kind, index, age);
            if let Some(place) = place {
                *place = Some(Stamp { group: group.clone(), index, age, headers: headers.clone() });
            }
            headers
        }
    })
}

/// An age in whole seconds, rounded up: nothing is older than it says.
pub(crate) fn whole_seconds(age: Duration) -> u64 {
    age.as_secs().saturating_add(u64::from(age.subsec_nanos() > 0))
}

fn make_read_headers(call: &Call<'_>, kind: ReadKind, index: LogIndex, age: Option<u64>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    match kind {
        ReadKind::Rest(rows_type) => {
            headers.insert(CONTENT_TYPE, rows_type.header());
            if let Some(age) = age {
                headers.insert(AGE, HeaderValue::from(age));
            }
        }
        ReadKind::Original => {
            headers.insert(CONTENT_TYPE, JSON);
        }
    }
    // A group whose name no header can carry has none.
    set_header(&mut headers, TOKEN, format!("{}:{index}", call.node().group()));
    if let Some(name) = call.door.served_by() {
        headers.insert(SERVED_BY, HeaderValue::from_bytes(name.as_bytes()).unwrap_or_else(|_| name.clone()));
    }
    headers
}
