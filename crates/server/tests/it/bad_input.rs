//! Bytes that are not HTTP, or not the HTTP that the door reads: a clear answer or a closed connection, and it serves on.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Reply, Server, read_to_end};

async fn serves_on(server: &Server) {
    assert_eq!(server.get("/rest/people?id=eq.1&select=id").await.text(), r#"[{"id":1}]"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_are_broken_or_too_large() {
    let server = Server::start().await;
    let long_name = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(40 << 10));
    let many_headers = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(200));
    let large_header = format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {}\r\n\r\n", "b".repeat(200 << 10));
    let cases: [(&[u8], u16); 8] = [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /a b c HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n", 400),
        (b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (long_name.as_bytes(), 414),
        (many_headers.as_bytes(), 431),
        (large_header.as_bytes(), 431),
    ];
    for (bytes, status) in cases {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let mut stream = server.connect().await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let reply = read_to_end(&mut stream).await;
        assert!(!reply.is_empty(), "no answer to {shown}");
        let reply = Reply::parse(&reply);
        assert_eq!(reply.status, status, "{shown}");
        assert!(reply.complete && !reply.code().is_empty(), "{shown}: {}", reply.text());
        serves_on(&server).await;
    }
    let tls = server
        .raw(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, b'\r', b'\n', b'\r', b'\n'])
        .await;
    assert!(tls.is_empty() || tls.starts_with(b"HTTP/1.1 400"));
    serves_on(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_or_broken() {
    let server = Server::start_with(|config| config.body_bytes = 1000).await;
    let large = format!(r#"{{"sql":"SELECT '{}'"}}"#, "x".repeat(2000));
    let announced = server.ask("POST", "/v1/sql", &[], &large).await;
    assert_eq!((announced.status, announced.code().as_str()), (413, "54000"));
    let chunk = "x".repeat(600);
    let chunked = format!(
        "POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n{chunk}\r\n258\r\n{chunk}\r\n0\r\n\r\n"
    );
    assert_eq!(Reply::parse(&server.raw(chunked.as_bytes()).await).status, 413);
    let form = server.form("/cache/insert", &format!("table=people&x={}", "y".repeat(2000))).await;
    assert_eq!(form.status, 413);
    let utf8 = b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3\r\n\r\n\"\xff\"";
    let reply = Reply::parse(&server.raw(utf8).await);
    assert_eq!((reply.status, reply.code().as_str()), (400, "22021"));
    let framed = b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n";
    let reply = server.raw(framed).await;
    assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&reply));
    serves_on(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_ends_early_changes_nothing() {
    let server = Server::start().await;
    let mut stream = server.connect().await;
    let head = b"POST /cache/truncate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntable=people";
    stream.write_all(head).await.expect("write");
    stream.shutdown().await.expect("shut down");
    let reply = read_to_end(&mut stream).await;
    assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&reply));
    serves_on(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_senders_are_cut_off() {
    let server = Server::start_with(|config| {
        config.head_timeout = Duration::from_secs(1);
        config.idle_timeout = Duration::from_secs(3);
    })
    .await;
    let begun = Instant::now();
    let mut slow = server.connect().await;
    let mut silent = server.connect().await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("write");
    let trickle = async {
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: b\r\nC: d\r\n".iter().cycle() {
            if slow.write_all(&[*byte]).await.is_err() {
                break;
            }
            let mut answer = [0; 16];
            if let Ok(Ok(0) | Err(_)) = tokio::time::timeout(Duration::from_millis(100), slow.read(&mut answer)).await {
                break;
            }
        }
        begun.elapsed()
    };
    let (trickled, silent_bytes) = tokio::join!(trickle, read_to_end(&mut silent));
    assert!(trickled < Duration::from_secs(5), "{trickled:?}");
    assert!(silent_bytes.is_empty());
    assert!(begun.elapsed() < Duration::from_secs(5));
    let answered = read_to_end(&mut idle).await;
    assert_eq!(Reply::parse(&answered).status, 200);
    let lived = begun.elapsed();
    assert!(lived > Duration::from_secs(2) && lived < Duration::from_secs(8), "{lived:?}");
}

/// Requests that are whole, each with another kind of end.
const WHOLE: [&str; 5] = [
    "GET /rest/people?id=eq.1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n{\"sql\":\"SELECT 1\"}",
    "POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
     9\r\n{\"sql\":\"S\r\n9\r\nELECT 1\"}\r\n0\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nunwanted",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_begins_in_the_packet_of_another_request_is_cut_off() {
    let server = Server::start_with(|config| {
        config.head_timeout = Duration::from_secs(1);
        config.idle_timeout = Duration::from_secs(3600);
    })
    .await;
    let cut_off = WHOLE.map(|request| {
        let bytes = format!("{request}GET /heal");
        let server = &server;
        async move { (request, server.raw(bytes.as_bytes()).await) }
    });
    for (request, answer) in futures::future::join_all(cut_off).await {
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{request}: {}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_part_of_a_head_may_idle() {
    let server = Server::start_with(|config| {
        config.head_timeout = Duration::from_secs(2);
        config.idle_timeout = Duration::from_secs(6);
    })
    .await;
    let idling = WHOLE.map(|request| {
        let server = &server;
        async move {
            let begun = Instant::now();
            let answer = server.raw(request.as_bytes()).await;
            (request, answer, begun.elapsed())
        }
    });
    for (request, answer, lived) in futures::future::join_all(idling).await {
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{request}: {}", String::from_utf8_lossy(&answer));
        assert!(lived > Duration::from_secs(4), "{request}: {lived:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_serves_on_behind_a_small_body_that_nobody_reads() {
    let server = Server::start().await;
    for head in [
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\n",
        "POST /rest/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\n",
        "POST /rest/people HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: br\r\nContent-Length: 8\r\n\r\n",
        "POST /cache/get HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\n",
    ] {
        let mut stream = server.connect().await;
        stream.set_nodelay(true).expect("no delay");
        stream.write_all(head.as_bytes()).await.expect("write");
        // The body is a packet of its own.
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.write_all(b"unwanted").await.expect("write");
        let mut first = vec![0; 12];
        stream.read_exact(&mut first).await.expect("an answer");
        let last = b"GET /v1/tables HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(last).await.expect("write");
        let answers = read_to_end(&mut stream).await;
        let answers = String::from_utf8_lossy(&answers);
        assert!(answers.contains("\"people\""), "{head}: {answers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_closed_behind_a_body_that_does_not_come_or_is_large() {
    // Only an answer that says so can end a connection here in time.
    let server = Server::start_with(|config| {
        config.head_timeout = Duration::from_secs(3600);
        config.idle_timeout = Duration::from_secs(3600);
    })
    .await;
    for headers in [
        "Content-Length: 8\r\n",
        "Content-Length: 1000000\r\n",
        "Content-Length: 8\r\nExpect: 100-continue\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        let reply = Reply::parse(&server.raw(request.as_bytes()).await);
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")), "{headers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_of_every_kind_of_wrong() {
    let server = Server::start().await;
    let long = "x".repeat(20_000);
    let many = "a=1&".repeat(5_000);
    let targets = [
        format!("/rest/{long}"),
        format!("/rest/people?{long}=eq.1"),
        format!("/rest/people?id=eq.{long}"),
        format!("/rest/people?order={long}"),
        format!("/rest/people?{many}"),
        format!("/rest/people?select={}", "id,".repeat(5_000)),
        format!("/cache/get?table={long}&column=id&value=1"),
        format!("/cache/get?table=people&column={long}&value=1"),
        format!("/cache/more?table=people&column=id&value={long}"),
        format!("/cache/query?sql={long}"),
        format!("/cache/get?{many}"),
        "/rest/people?id=eq.1&limit=1&limit=1".to_owned(),
        "/cache/more?table=people&column=id&value=1%00".to_owned(),
        "/rest/people?id=eq.%0d%0aX-Injected:%20yes".to_owned(),
        "/cache/stats?table=a%0d%0aX-Injected:%20yes".to_owned(),
        "/rest/a%0d%0aX-Injected:%20yes".to_owned(),
    ];
    for target in targets {
        let shown: String = target.chars().take(60).collect();
        let reply = server.get(&target).await;
        assert!((400..500).contains(&reply.status), "{shown}: {}", reply.status);
        assert!(reply.header("x-injected").is_none(), "{shown}");
        assert!(reply.body.len() < 1000, "{shown}: {}", reply.text());
    }
    serves_on(&server).await;
}
