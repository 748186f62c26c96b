//! One HTTP request on a connection of its own.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::{Value, json};

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

/// Sends a request to `host:port`; nothing where the node is gone before it answers, or says nothing for longer than `wait`.
pub(crate) fn request(
    to: &str,
    wait: Option<Duration>,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<Reply> {
    let mut stream = match wait {
        Some(wait) => TcpStream::connect_timeout(&to.to_socket_addrs().ok()?.next()?, wait).ok()?,
        None => TcpStream::connect(to).ok()?,
    };
    stream.set_read_timeout(wait).ok()?;
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Some(Reply { status, head: head.to_owned(), body })
}

/// Runs a statement.
pub(crate) fn run_sql(to: &str, wait: Option<Duration>, sql: &str, headers: &str) -> Option<Reply> {
    let body = json!({ "sql": sql }).to_string();
    request(to, wait, "POST", "/v1/sql", &format!("Content-Type: application/json\r\n{headers}"), &body)
}

fn unchunked(mut body: &str) -> String {
    let mut out = Vec::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
        if size == 0 {
            break;
        }
        out.extend_from_slice(&rest.as_bytes()[..size]);
        body = rest.get(size + 2..).expect("a chunk boundary");
    }
    String::from_utf8(out).expect("text")
}
