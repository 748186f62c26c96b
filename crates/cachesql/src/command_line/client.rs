//! One HTTP connection to a running node, for the commands that ask one.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::arguments::NodeArguments;
use super::failure::Failure;

/// Time to connect to a node.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most of an answer that is held whole. Rows beyond it are read as a stream (`--json`, `--csv`).
const ANSWER_BYTES: usize = 256 << 20;

/// Where a node is, and what it is shown.
#[derive(Clone)]
pub(super) struct Target {
    /// `host:port`.
    authority: String,
    authorization: Option<HeaderValue>,
}

impl Target {
    /// Reads the URL and the token of the arguments.
    pub(super) fn new(arguments: &NodeArguments) -> Result<Target, Failure> {
        let token = match &arguments.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| Failure::Usage(format!("--token-file {}: {e}", path.display())))?;
                Some(text.trim_end().to_owned())
            }
            None => std::env::var("CACHESQL_TOKEN").ok().filter(|t| !t.is_empty()),
        };
        let authorization = match token {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                    .map_err(|_| Failure::Usage("the token has characters that a header cannot hold".into()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Target { authority: authority(&arguments.url)?, authorization })
    }

    /// The target of any other http:// URL: no token goes there.
    pub(super) fn of_url(url: &str) -> Result<(Target, String), Failure> {
        let path =
            url.strip_prefix("http://").and_then(|rest| rest.find('/').and_then(|at| rest.get(at..))).unwrap_or("/");
        let end = url.len() - if path == "/" { 0 } else { path.len() };
        let base = url.get(..end).unwrap_or(url);
        Ok((Target { authority: authority(base)?, authorization: None }, path.to_owned()))
    }

    /// Another node of the same cluster: it is shown the same token.
    pub(super) fn other(&self, url: &str) -> Result<Target, Failure> {
        Ok(Target { authority: authority(url)?, authorization: self.authorization.clone() })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.authority)
    }
}

fn authority(url: &str) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::Usage(format!("URL {url:?}: {why}"));
    let rest = match url.split_once("://") {
        Some(("http", rest)) => rest,
        Some(("https", _)) => return Err(wrong("https is not spoken by this version's commands; use http")),
        Some(_) => return Err(wrong("expected http://HOST:PORT")),
        None => url,
    };
    let rest = rest.trim_end_matches('/');
    if rest.is_empty() || rest.contains(['/', '@', '?', ' ']) {
        return Err(wrong("expected http://HOST:PORT"));
    }
    let has_port = rest.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    Ok(if has_port { rest.to_owned() } else { format!("{rest}:80") })
}

/// A connection that is opened when it is first used, and again when the node closed it.
pub(super) struct Client {
    target: Target,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Client {
    pub(super) fn new(target: Target) -> Client {
        Client { target, sender: None }
    }

    fn unreachable(&self, what: impl std::fmt::Display) -> Failure {
        Failure::Unreachable(format!("{}: {what}", self.target.url()))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failure> {
        let connecting = TcpStream::connect(&self.target.authority);
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| self.unreachable("no answer to the attempt to connect"))?
            .map_err(|e| self.unreachable(format_args!("cannot connect: {e}")))?;
        stream.set_nodelay(true).map_err(|e| self.unreachable(e))?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|e| self.unreachable(e))?;
        tokio::spawn(async move {
            // Its error reaches whoever waits for the answer.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// Sends a request and gives the answer's head; its body is still to be read.
    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.target.authority);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        if let Some(authorization) = &self.target.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let mut request = request.body(Full::new(body)).map_err(|e| Failure::Usage(format!("{path:?}: {e}")))?;
        // A connection that idled may have been closed by the node. What was not sent at all may be sent again.
        for attempt in 0.. {
            let mut sender = match self.sender.take() {
                Some(sender) if !sender.is_closed() => sender,
                _ => self.connect().await?,
            };
            if sender.ready().await.is_err() {
                if attempt > 0 {
                    break;
                }
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.sender = Some(sender);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if attempt == 0 => request = unsent,
                    _ => return Err(self.unreachable(error.into_error())),
                },
            }
        }
        Err(self.unreachable("it closes every connection"))
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let response = self.send(method, path, headers, body).await?;
        let (head, body) = response.into_parts();
        let body = whole(body).await.map_err(|e| self.unreachable(e))?;
        Ok(Answer { status: head.status, body })
    }

    /// Sends a JSON body, and gives the JSON answer of a request that succeeded.
    pub(super) async fn ask_json(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> Result<serde_json::Value, Failure> {
        let json = "application/json";
        let headers = [(hyper::header::ACCEPT, json), (hyper::header::CONTENT_TYPE, json)];
        let bytes = body.map(|b| Bytes::from(b.to_string())).unwrap_or_default();
        let answer = self.ask(method, path, &headers, bytes).await?.success()?;
        serde_json::from_slice(&answer.body).map_err(|e| self.unreachable(format_args!("the answer is not JSON: {e}")))
    }
}

async fn whole(body: Incoming) -> Result<Bytes, String> {
    let collected = Limited::new(body, ANSWER_BYTES).collect().await.map_err(|e| {
        if e.is::<http_body_util::LengthLimitError>() {
            "the answer is too large to be shown; ask for --csv or --json, which are streamed".to_owned()
        } else {
            format!("it went away in the middle of the answer: {e}")
        }
    })?;
    Ok(collected.to_bytes())
}

impl Answer {
    /// The answer if the request succeeded, else what the node said against it.
    pub(super) fn success(self) -> Result<Answer, Failure> {
        if self.status.is_success() { Ok(self) } else { Err(refusal(self.status, &self.body)) }
    }
}

/// How the token is given, for who did not give the right one.
const TOKEN_HINT: &str = "\nhint: no token was given, or not the node's: put it into the environment variable CACHESQL_TOKEN, or into a file and say \
     --token-file FILE";

/// What a node said against a request, for people.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| json.get(name).and_then(serde_json::Value::as_str).filter(|t| !t.is_empty());
    let Some(message) = text("message") else {
        let body = String::from_utf8_lossy(body);
        let body: String = body.trim().chars().filter(|c| !c.is_control()).take(400).collect();
        return Failure::Failed(format!("the node answers {status}: {body}"));
    };
    let mut out = match text("code") {
        Some(code) => format!("{message} ({code})"),
        None => message.to_owned(),
    };
    for (label, name) in [("detail", "details"), ("hint", "hint")] {
        if let Some(more) = text(name) {
            out.push_str(&format!("\n{label}: {more}"));
        }
    }
    if status == StatusCode::UNAUTHORIZED {
        out.push_str(TOKEN_HINT);
    }
    Failure::Failed(out)
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_nodes_are_understood() {
        let cases = [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
            ("localhost:9", "localhost:9"),
            ("http://db", "db:80"),
            ("http://[::1]:8080", "[::1]:8080"),
        ];
        for (url, expected) in cases {
            assert_eq!(authority(url).expect("sound"), expected, "{url}");
        }
        for url in ["https://db", "ftp://db", "http://", "http://u@db", "http://db/x", "a b"] {
            assert!(matches!(authority(url), Err(Failure::Usage(_))), "{url}");
        }
        let (target, path) = Target::of_url("http://h:1/a/b.csv?x=1").expect("sound");
        assert_eq!((target.url().as_str(), path.as_str()), ("http://h:1", "/a/b.csv?x=1"));
    }

    #[test]
    fn refusals_are_told_in_words() {
        let body = br#"{"code":"42P01","message":"table \"x\" does not exist","details":null,"hint":"there is: KCA2"}"#;
        let failure = refusal(StatusCode::NOT_FOUND, body).to_string();
        assert_eq!(failure, "table \"x\" does not exist (42P01)\nhint: there is: KCA2");
        let plain = refusal(StatusCode::BAD_GATEWAY, b"oh\x1b[31m no\n").to_string();
        assert_eq!(plain, "the node answers 502 Bad Gateway: oh[31m no");
        let body = br#"{"code":"28000","message":"authentication is required","details":null,"hint":null}"#;
        let failure = refusal(StatusCode::UNAUTHORIZED, body).to_string();
        assert!(failure.contains("CACHESQL_TOKEN") && failure.contains("--token-file FILE"), "{failure}");
    }

    #[test]
    fn values_are_encoded() {
        assert_eq!(encoded("a b+汉/%"), "a%20b%2B%E6%B1%89%2F%25");
    }
}
