//! A node that does what a test wants, and remembers what it was asked.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cachesql_client::{Builder, Client};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Path and query string.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }
}

/// What a node does with a statement.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Says nothing, ever.
    Stall,
    /// Begins an answer and falls silent.
    Half,
    /// Closes the connection without an answer.
    Reset,
}

/// One row, `n` = 1, and a token.
pub(crate) fn rows(token: &str) -> Does {
    let body = format!("{{\"columns\":[{{\"name\":\"n\",\"type\":\"BIGINT\"}}],\"rows\":[[1]],\"token\":\"{token}\"}}");
    Does::Answer { status: 200, headers: vec![("cachesql-token", token.to_owned())], body }
}

/// One row written.
pub(crate) fn written(token: &str) -> Does {
    let body = format!("{{\"columns\":[],\"rows\":[],\"affected\":1,\"token\":\"{token}\"}}");
    Does::Answer { status: 200, headers: vec![("cachesql-token", token.to_owned())], body }
}

/// An error with its code.
pub(crate) fn error(status: u16, code: &str, message: &str) -> Does {
    let body = format!("{{\"code\":\"{code}\",\"message\":\"{message}\",\"details\":null,\"hint\":null}}");
    Does::Answer { status, headers: Vec::new(), body }
}

/// "Not leader", and perhaps who is.
pub(crate) fn not_leader(leader: Option<&str>) -> Does {
    let Does::Answer { status, body, .. } = error(421, "25006", "this node does not lead the group") else {
        unreachable!()
    };
    let headers = leader.map(|name| ("cachesql-leader", name.to_owned())).into_iter().collect();
    Does::Answer { status, headers, body }
}

/// A body that may fall silent.
struct Text {
    unsent: Option<Bytes>,
    ends: bool,
}

impl Text {
    fn whole(text: impl Into<Bytes>) -> Text {
        Text { unsent: Some(text.into()).filter(|text| !text.is_empty()), ends: true }
    }
}

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.unsent.take() {
            Some(text) => Poll::Ready(Some(Ok(Frame::data(text)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

type Behaviour = Box<dyn FnMut(&Seen) -> Does + Send>;

struct Inner {
    seen: Mutex<Vec<Seen>>,
    does: Mutex<Behaviour>,
    /// What `/v1/cluster` answers, and its mark; nothing for a node that has no such path.
    cluster: watch::Sender<Option<(String, String)>>,
    connections: AtomicUsize,
    /// Says nothing to who asks for the routes.
    mute: AtomicBool,
}

/// The node. Dropping it closes its port and its connections.
pub(crate) struct Fake {
    pub(crate) name: String,
    pub(crate) url: String,
    inner: Arc<Inner>,
    _serving: JoinSet<()>,
}

impl Fake {
    /// A node that answers every statement alike.
    pub(crate) async fn new(does: Does) -> Fake {
        Fake::with(move |_| does.clone()).await
    }

    /// A node that answers as a function says.
    pub(crate) async fn with(does: impl FnMut(&Seen) -> Does + Send + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let name = listener.local_addr().expect("bound").to_string();
        let inner = Arc::new(Inner {
            seen: Mutex::default(),
            does: Mutex::new(Box::new(does)),
            cluster: watch::Sender::new(None),
            connections: AtomicUsize::new(0),
            mute: AtomicBool::new(false),
        });
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, inner.clone()));
        Fake { url: format!("http://{name}"), name, inner, _serving: serving }
    }

    /// Answers otherwise from now on.
    pub(crate) fn does(&self, does: impl FnMut(&Seen) -> Does + Send + 'static) {
        *self.inner.does.lock() = Box::new(does);
    }

    /// Statements that arrived, in their order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().iter().filter(|seen| seen.path == "/v1/sql").cloned().collect()
    }

    /// How often it was asked for the routes.
    pub(crate) fn asked_for_routes(&self) -> usize {
        self.questions().len()
    }

    /// Questions for the routes, in their order.
    pub(crate) fn questions(&self) -> Vec<Seen> {
        self.inner.seen.lock().iter().filter(|seen| seen.path.starts_with("/v1/cluster")).cloned().collect()
    }

    /// Connections that are open.
    pub(crate) fn connections(&self) -> usize {
        self.inner.connections.load(Ordering::SeqCst)
    }

    /// Says nothing to who asks for the routes from now on.
    pub(crate) fn falls_silent(&self) {
        self.inner.mute.store(true, Ordering::SeqCst);
    }

    /// Tells these routes from now on, under a mark.
    pub(crate) fn tells(&self, routes: &str, mark: &str) {
        self.inner.cluster.send_replace(Some((routes.to_owned(), mark.to_owned())));
    }
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, inner.clone()));
    }
}

/// Counts a connection while it is open.
struct Counted(Arc<Inner>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn serve(stream: TcpStream, inner: Arc<Inner>) {
    inner.connections.fetch_add(1, Ordering::SeqCst);
    let counted = Counted(inner);
    let answer = |request| answer(request, counted.0.clone());
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

async fn answer(request: Request<Incoming>, inner: Arc<Inner>) -> Result<Response<Text>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let body = String::from_utf8(body.to_vec()).expect("UTF-8");
    let seen = Seen { path: head.uri.to_string(), headers: head.headers, body };
    inner.seen.lock().push(seen.clone());
    if seen.path.starts_with("/v1/cluster") {
        if inner.mute.load(Ordering::SeqCst) {
            return std::future::pending().await;
        }
        return Ok(cluster(&seen, &inner).await.unwrap_or_else(|never| match never {}));
    }
    let does = (inner.does.lock())(&seen);
    match does {
        Does::Answer { status, headers, body } => {
            let mut response =
                Response::builder().status(status).header("content-type", "application/json; charset=utf-8");
            for (name, value) in headers {
                response = response.header(name, value);
            }
            Ok(response.body(Text::whole(body)).expect("sound"))
        }
        Does::Stall => std::future::pending().await,
        Does::Half => {
            let response = Response::builder().header("content-type", "application/json");
            Ok(response.body(Text { unsent: Some(Bytes::from_static(b"{")), ends: false }).expect("sound"))
        }
        Does::Reset => Err(std::io::Error::other("reset")),
    }
}

/// As the interface has it: with the mark that is known and a wait, the answer is held until it changes.
async fn cluster(seen: &Seen, inner: &Inner) -> Result<Response<Text>, Infallible> {
    let mut cluster = inner.cluster.subscribe();
    let told = |told: &Option<(String, String)>| told.as_ref().map(|(_, mark)| mark.clone());
    let known = seen.header("if-none-match").map(str::to_owned);
    if known.is_some() && seen.path.contains("wait=") {
        let _ = cluster.wait_for(|now| told(now) != known).await;
    }
    let now = cluster.borrow_and_update().clone();
    Ok(match now {
        None => Response::builder().status(404).body(Text::whole("")).expect("sound"),
        Some((_, mark)) if Some(&mark) == known.as_ref() => {
            Response::builder().status(304).header("etag", mark).body(Text::whole("")).expect("sound")
        }
        Some((routes, mark)) => Response::builder()
            .header("content-type", "application/json")
            .header("etag", mark)
            .body(Text::whole(routes))
            .expect("sound"),
    })
}

/// The routes of one group, `main`, with a table `T`.
pub(crate) fn routes(leader: Option<&Fake>, term: u64, members: &[&Fake]) -> String {
    cluster_of(members, &[("main", leader, term, members, "T")])
}

/// One group as `/v1/cluster` tells it: name, leader, term, members, table.
pub(crate) type Told<'a> = (&'a str, Option<&'a Fake>, u64, &'a [&'a Fake], &'a str);

/// The routes of several groups.
pub(crate) fn cluster_of(nodes: &[&Fake], groups: &[Told<'_>]) -> String {
    let node = |node: &&Fake| serde_json::json!({"name": node.name, "http": node.url, "more": [1]});
    let group = |(name, leader, term, members, table): &Told<'_>| {
        let member = |node: &&Fake| serde_json::json!({"node": node.name, "role": "follower", "index": 4711});
        serde_json::json!({
            "name": name, "leader": leader.map(|node| &node.name), "term": term, "failover": "automatic",
            "members": members.iter().map(member).collect::<Vec<_>>(), "tables": [table],
        })
    };
    // A node that is alone is reached as it was asked; a second one that nobody hears of keeps these apart.
    let mut nodes: Vec<_> = nodes.iter().map(node).collect();
    nodes.push(serde_json::json!({"name": "without a door", "http": null}));
    let groups: Vec<_> = groups.iter().map(group).collect();
    serde_json::json!({"node": "a", "nodes": nodes, "groups": groups}).to_string()
}

/// A client of one group, `main`, with a table `T`, by a properties file. The first node is the master.
pub(crate) fn client_of(nodes: &[&Fake], builder: Builder) -> Client {
    let (master, slaves) = nodes.split_first().expect("a master");
    let slaves: Vec<&str> = slaves.iter().map(|node| node.url.as_str()).collect();
    let group = "cachesql.group.main";
    let text = format!("{group}.master={}\n{group}.slaves={}\n{group}.tables=T\n", master.url, slaves.join(","));
    open(&text, builder)
}

/// A client by the text of a properties file.
pub(crate) fn open(properties: &str, builder: Builder) -> Client {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cachesql.properties");
    std::fs::write(&file, properties).expect("written");
    builder.open(&file).expect("sound")
}

/// A port that nobody listens on.
pub(crate) async fn refusing() -> Fake {
    let mut fake = Fake::new(Does::Reset).await;
    fake._serving.shutdown().await;
    fake
}

/// Options for tests: choices from one seed.
pub(crate) fn seeded() -> Builder {
    Client::builder().seed(42)
}

/// Waits until something holds; fails after ten seconds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(std::time::Instant::now() < until, "{what}: not within ten seconds");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
