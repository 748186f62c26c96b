//! Who may use the door.

use cachesql_server::{AccessToken, HttpConfig, HttpDoor, HttpDoorError};

use crate::fixture::{Reply, Server};

#[tokio::test]
async fn an_address_that_others_reach_wants_a_token_or_the_word() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = HttpDoor::bind(HttpConfig::new(address)).await;
        assert!(matches!(refused, Err(HttpDoorError::Unprotected { .. })), "{address}");
    }
    let insecure = HttpConfig { insecure: true, ..HttpConfig::new("0.0.0.0:0") };
    assert!(HttpDoor::bind(insecure).await.is_ok());
    let token = HttpConfig { token: AccessToken::new("secret"), ..HttpConfig::new("0.0.0.0:0") };
    assert!(HttpDoor::bind(token).await.is_ok());
    assert!(HttpDoor::bind(HttpConfig::new("127.0.0.1:0")).await.is_ok());
    assert!(matches!(HttpDoor::bind(HttpConfig::new("nonsense")).await, Err(HttpDoorError::Listen { .. })));
}

/// Every route, with every method that it has.
const ROUTES: [(&str, &str); 21] = [
    ("GET", "/"),
    ("GET", "/dashboard.js"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/rest"),
    ("GET", "/rest/people"),
    ("POST", "/rest/people"),
    ("PATCH", "/rest/people?id=eq.1"),
    ("PUT", "/rest/people?id=eq.1"),
    ("DELETE", "/rest/people?id=eq.1"),
    ("POST", "/v1/sql"),
    ("GET", "/v1/explain?sql=SELECT%201"),
    ("GET", "/v1/tables"),
    ("GET", "/v1/cluster"),
    ("POST", "/v1/cluster/transfer"),
    ("POST", "/v1/cluster/leave"),
    ("POST", "/v1/cluster/reload"),
    ("GET", "/cache/get?table=people&column=id&value=1"),
    ("POST", "/cache/truncate?table=people"),
    ("GET", "/nothing"),
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_to_those_without_the_token() {
    let server = Server::start_with(|config| config.token = AccessToken::new("open sesame")).await;
    for (method, target) in ROUTES {
        for headers in [&[][..], &[("Authorization", "Bearer open")][..], &[("Authorization", "Basic b3Blbg==")][..]] {
            let reply = server.ask(method, target, headers, "").await;
            assert_eq!((reply.status, reply.code().as_str()), (401, "28000"), "{method} {target} {headers:?}");
            assert!(reply.header("www-authenticate").is_some_and(|v| v.contains("Basic") && v.contains("Bearer")));
            let hint = reply.json()["hint"].to_string();
            assert!(hint.contains("Authorization: Bearer"), "{hint}");
        }
        let known = server.ask(method, target, &[("Authorization", "Bearer open sesame")], "").await;
        assert_ne!(known.status, 401, "{method} {target}");
    }
    let basic = server
        .ask("GET", "/rest/people?select=id&id=eq.2", &[("Authorization", "Basic YW55b25lOm9wZW4gc2VzYW1l")], "")
        .await;
    assert_eq!(basic.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_change_nothing() {
    let server = Server::start().await;
    let headers = [("Origin", "http://evil.example"), ("Content-Type", "application/x-www-form-urlencoded")];
    let reply = server.ask("POST", "/cache/truncate", &headers, "table=people").await;
    assert_eq!(reply.status, 403);
    let own = [("Origin", "http://localhost"), ("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(server.ask("POST", "/cache/clean", &own, "table=people").await.status, 200);
}

/// A page of a site whose owner let its name point to this machine is no guest either: its browser sends that name as Host.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_others_gave_to_this_machine_are_refused() {
    let server = Server::start().await;
    let asked = |version: &str, target: &str, hosts: &str| {
        format!("GET {target} HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n")
    };
    for (method, target) in ROUTES {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: evil.example:8080\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let reply = Reply::parse(&server.raw(request.as_bytes()).await);
        assert_eq!((reply.status, reply.code().as_str()), (403, "42501"), "{method} {target}");
        assert!(reply.json()["hint"].as_str().is_some_and(|hint| hint.contains("[access]")), "{}", reply.text());
    }
    assert_eq!(server.get("/rest/people?select=id&id=eq.1").await.text(), r#"[{"id":1}]"#, "nothing was truncated");
    let own = format!("Host: {}\r\n", server.address);
    let cases = [
        ("1.1", "/healthz", own.as_str(), 200),
        ("1.1", "/healthz", "Host: [::1]:8080\r\n", 200),
        ("1.1", "http://evil.example/healthz", "Host: localhost\r\n", 403),
        ("1.1", "/healthz", "", 400),
        ("1.1", "/healthz", "Host: localhost\r\nHost: evil.example\r\n", 400),
        ("1.0", "/healthz", "", 200),
        ("1.0", "/healthz", "Host: evil.example\r\n", 403),
    ];
    for (version, target, hosts, status) in cases {
        let reply = Reply::parse(&server.raw(asked(version, target, hosts).as_bytes()).await);
        assert_eq!(reply.status, status, "{version} {target} {hosts}");
    }
    // Who shows the token may use any name, and so may everyone where the configuration says that everyone may ask.
    let evil = asked("1.1", "/healthz", "Authorization: Bearer open sesame\r\nHost: evil.example\r\n");
    let protected = Server::start_with(|config| config.token = AccessToken::new("open sesame")).await;
    assert_eq!(Reply::parse(&protected.raw(evil.as_bytes()).await).status, 200);
    let open = Server::start_with(|config| config.insecure = true).await;
    assert_eq!(Reply::parse(&open.raw(evil.as_bytes()).await).status, 200);
}
