//! Keep-alive, pipelining, half-closed connections, large answers, and the end of the door.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Reply, Server, read_to_end};

/// A statement whose answer is some megabytes.
const LARGE: &str = r#"{"sql":"SELECT a.id, b.id AS other, repeat('x', 1000) AS text FROM people a, people b, people c, people d, people e"}"#;

fn post(body: &str, headers: &str) -> String {
    format!("POST /v1/sql HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_sent_at_once_are_answered_in_order() {
    let server = Server::start().await;
    let ids = [1, 2, 3, 4];
    let mut bytes = Vec::new();
    for id in ids {
        bytes.extend_from_slice(
            format!("GET /rest/people?select=id&id=eq.{id} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes(),
        );
    }
    let mut stream = server.connect().await;
    stream.write_all(&bytes).await.expect("write");
    // The writing half is closed; the answers come all the same.
    stream.shutdown().await.expect("shut down");
    let text = String::from_utf8(read_to_end(&mut stream).await).expect("UTF-8");
    let at: Vec<usize> = ids.iter().map(|id| text.find(&format!("[{{\"id\":{id}}}]")).expect("every answer")).collect();
    assert!(at.is_sorted(), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_is_streamed_whole() {
    let server = Server::start().await;
    let reply = Reply::parse(&server.raw(post(LARGE, "Connection: close\r\n").as_bytes()).await);
    assert_eq!(reply.header("transfer-encoding"), Some("chunked"));
    assert!(reply.complete);
    assert_eq!(reply.json()["rows"].as_array().map(Vec::len), Some(3125));
    let small = Reply::parse(&server.raw(post(r#"{"sql":"SELECT 1"}"#, "Connection: close\r\n").as_bytes()).await);
    assert!(small.complete && small.header("content-length").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_middle_does_not_look_like_an_end() {
    let server = Server::start().await;
    // The quotient fails for one row, which is met long after the first bytes are out.
    let sql = r#"{"sql":"SELECT repeat('x', 1000), 1 / (a.age - 40 + b.id - c.id + 100000 * (5 - d.id)) FROM people a, people b, people c, people d, people e WHERE a.age IS NOT NULL"}"#;
    let bytes = server.raw(post(sql, "Connection: close\r\n").as_bytes()).await;
    let reply = Reply::parse(&bytes);
    assert!(reply.status == 400 || !reply.complete, "{}", reply.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_does_not_read_is_cut_off_and_others_are_served() {
    let server = Server::start_with(|config| config.idle_timeout = Duration::from_secs(2)).await;
    let mut stream = server.connect().await;
    let huge = LARGE.replace("people e", "people e, people f, people g");
    stream.write_all(post(&huge, "").as_bytes()).await.expect("write");
    let mut bytes = vec![0; 1000];
    stream.read_exact(&mut bytes).await.expect("the front of the answer");
    assert_eq!(server.get("/rest/people?id=eq.1&select=id").await.text(), r#"[{"id":1}]"#);
    tokio::time::sleep(Duration::from_secs(6)).await;
    bytes.extend_from_slice(&read_to_end(&mut stream).await);
    assert!(!Reply::parse(&bytes).complete, "{} bytes", bytes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = Server::start_with(|config| config.connections = 1).await;
    let mut first = server.connect().await;
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("write");
    let mut answer = [0; 15];
    first.read_exact(&mut answer).await.expect("an answer");
    let mut second = server.connect().await;
    second.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.expect("write");
    let early = tokio::time::timeout(Duration::from_millis(300), second.read(&mut answer)).await;
    assert!(early.is_err(), "the second connection is not served while the first is open");
    drop(first);
    assert_eq!(Reply::parse(&read_to_end(&mut second).await).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_finished_when_the_door_closes() {
    let mut server = Server::start().await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("write");
    let mut answer = [0; 15];
    idle.read_exact(&mut answer).await.expect("an answer");
    let mut half_sent = server.connect().await;
    let request = post(r#"{"sql":"SELECT 42 AS answer"}"#, "");
    let (front, back) = request.split_at(request.len() - 5);
    half_sent.write_all(front.as_bytes()).await.expect("write");
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.begin_stop();
    tokio::time::sleep(Duration::from_millis(200)).await;
    // An idle connection is closed at once.
    let rest = read_to_end(&mut idle).await;
    assert!(String::from_utf8_lossy(&rest).ends_with("ok\n"));
    half_sent.write_all(back.as_bytes()).await.expect("write");
    let reply = Reply::parse(&read_to_end(&mut half_sent).await);
    assert_eq!((reply.status, reply.json()["rows"].to_string()), (200, "[[42]]".to_owned()));
    let address = server.address;
    server.stopped().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nothing listens any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grace_has_an_end() {
    let mut server = Server::start_with(|config| config.shutdown_grace = Duration::from_millis(500)).await;
    let mut stuck = server.connect().await;
    stuck.write_all(b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{").await.expect("write");
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.begin_stop();
    tokio::time::timeout(Duration::from_secs(5), server.stopped()).await.expect("stopped within the grace");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_had_arrived_when_the_door_closes_is_answered() {
    for _ in 0..5 {
        let mut server = Server::start().await;
        let request = b"GET /rest/people?id=eq.1&select=id HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut streams = Vec::new();
        // Some that were served before, with one request and with many at once; and some that were not accepted yet.
        for kept in 0..6 {
            let mut stream = server.connect().await;
            stream.write_all(request).await.expect("write");
            let mut first = vec![0; 15];
            stream.read_exact(&mut first).await.expect("an answer");
            streams.push((stream, if kept % 2 == 0 { 1 } else { 40 }, 1));
        }
        for _ in 0..6 {
            streams.push((server.connect().await, 1, 0));
        }
        for (stream, requests, _) in &mut streams {
            stream.write_all(&request.repeat(*requests)).await.expect("write");
        }
        server.begin_stop();
        for (stream, requests, before) in &mut streams {
            let text = String::from_utf8(read_to_end(stream).await).expect("UTF-8");
            assert_eq!(text.matches(r#"[{"id":1}]"#).count(), *requests + *before, "{text}");
        }
        server.stopped().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_nobody_reads_leaves_the_connection_open() {
    let server = Server::start().await;
    let mut stream = server.connect().await;
    let body = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let request = format!("GET /rest/people?id=eq.1&select=id HTTP/1.1\r\nHost: localhost\r\n{body}");
    let last = "GET /rest/people?id=eq.2&select=id HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("write");
    let mut first = [0; 15];
    stream.read_exact(&mut first).await.expect("an answer");
    stream.write_all(last.as_bytes()).await.expect("write");
    let text = String::from_utf8(read_to_end(&mut stream).await).expect("UTF-8");
    assert!(text.contains(r#"[{"id":1}]"#) && text.ends_with(r#"[{"id":2}]"#), "{text}");
}
