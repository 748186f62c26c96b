//! Health, metrics, tables, the dashboard.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::fixture::{PATIENCE, Reply, Server, read_to_end};

#[tokio::test(flavor = "multi_thread")]
async fn health_and_metrics() {
    let server = Server::start().await;
    assert_eq!(server.get("/healthz").await.text(), "ok\n");
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, ready.json()["ready"].as_bool()), (200, Some(true)));
    assert_eq!(ready.json()["tables"][0]["table"].as_str(), Some("loaded"));
    assert_eq!(ready.json()["tables"][0]["phase"].as_str(), Some("loaded"));
    assert_eq!(ready.json()["tables"][0]["rows"].as_u64(), Some(3));
    // The door may see later than their client that the connections before are gone.
    let mut metrics = server.get("/metrics").await;
    let mut asked = 3;
    while !metrics.text().contains("cachesql_http_connections 1\n") {
        assert!(asked < 1000, "{}", metrics.text());
        metrics = server.get("/metrics").await;
        asked += 1;
    }
    assert_eq!(metrics.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    let text = metrics.text();
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    assert!(text.contains(&format!("cachesql_http_requests_total{{interface=\"other\"}} {asked}\n")), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_cluster() {
    let server = Server::start().await;
    let tables = server.get("/v1/tables").await.json();
    let people = &tables[1];
    assert_eq!((people["name"].as_str(), people["rows"].to_string().as_str()), (Some("people"), "5"));
    assert_eq!(people["key"].to_string(), r#"["id"]"#);
    assert_eq!(people["columns"][4].to_string(), r#"{"name":"price","nullable":true,"type":"DECIMAL(20,2)"}"#);
    assert_eq!(people["indexes"][1].to_string(), r#"{"columns":["name","age"],"name":"name+age","unique":false}"#);
    assert_eq!(server.get("/rest/").await.json(), tables);
    assert_eq!(server.get("/rest").await.json(), tables);
    let cluster = server.get("/v1/cluster").await.json();
    assert_eq!(cluster["nodes"][0]["name"].as_str(), Some("local"));
    assert_eq!(cluster["groups"][0]["leader"].as_str(), Some("local"));
    assert_eq!(cluster["tables"][1].to_string(), r#"{"group":"main","name":"people"}"#);
    assert_eq!(cluster["groups"][0]["members"][0]["node"].as_str(), Some("local"));
    assert!(cluster["groups"][0]["tables"].as_array().is_some_and(|tables| tables.iter().any(|t| t == "people")));
}

/// Who follows the routes is told of a change, and not of writes.
#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_is_told_again_when_its_routes_change() {
    let server = Server::start().await;
    let first = server.get("/v1/cluster").await;
    let tag = first.header("etag").expect("a tag").to_owned();
    let known = [("If-None-Match", tag.as_str())];
    let asked = |path: &'static str| server.ask("GET", path, &known, "");
    let json = [("Content-Type", "application/json")];
    let sql = |body: &'static str| server.ask("POST", "/v1/sql", &json, body);
    let unchanged = asked("/v1/cluster").await;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    assert_eq!(sql(r#"{"sql":"UPDATE people SET age = 5 WHERE id = 1"}"#).await.status, 200);
    assert_eq!(asked("/v1/cluster").await.status, 304, "a write changes no route");
    let (changed, created) =
        tokio::join!(asked("/v1/cluster?wait=30s"), sql(r#"{"sql":"CREATE TABLE made (id BIGINT)"}"#));
    assert_eq!((created.status, changed.status), (200, 200));
    assert_ne!(changed.header("etag"), Some(&*tag));
    let tables = changed.json()["groups"][0]["tables"].clone();
    assert!(tables.as_array().is_some_and(|tables| tables.iter().any(|t| t == "made")), "{tables}");
    assert_eq!(server.get("/v1/cluster?wait=soon").await.status, 400);
}

/// A node that is alone has no members to change, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_group_of_one_cannot_be_changed() {
    let server = Server::start().await;
    for path in ["/v1/cluster/transfer", "/v1/cluster/leave"] {
        let json = [("Content-Type", "application/json")];
        let refused = server.ask("POST", path, &json, r#"{"node":"b"}"#).await;
        assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("55000")), "{path}");
        assert_eq!(server.ask("POST", path, &json, "{}").await.status, 400, "{path}");
        assert_eq!(server.ask("POST", path, &json, "nonsense").await.status, 400, "{path}");
        assert_eq!(server.get(path).await.status, 405, "{path}");
    }
}

/// The address that `/v1/cluster` tells is one that works: the configured one, or the one that the caller used.
#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_node_is_one_that_its_caller_can_use() {
    let named = Server::start_with(|config| config.address = "localhost:0".to_owned()).await;
    let told = named.get("/v1/cluster").await.json()["nodes"][0]["http"].to_string();
    assert_eq!(told, format!("\"http://localhost:{}\"", named.address.port()));
    for (bound, reached) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1")] {
        let everywhere = Server::start_with(|config| {
            config.address = bound.to_owned();
            config.insecure = true;
        })
        .await;
        let reached = std::net::SocketAddr::new(reached.parse().expect("an address"), everywhere.address.port());
        let mut stream = TcpStream::connect(reached).await.expect("connect");
        let request = b"GET /v1/cluster HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.expect("write");
        let cluster = Reply::parse(&read_to_end(&mut stream).await).json();
        assert_eq!(cluster["nodes"][0]["http"].as_str(), Some(&*format!("http://{reached}")), "{bound}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_for_browsers_and_loads_nothing_from_elsewhere() {
    let server = Server::start().await;
    let page = server.ask("GET", "/", &[("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")], "").await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    for target in ["/dashboard.js", "/dashboard.css"] {
        assert!(page.text().contains(target));
        let asset = server.get(target).await;
        assert_eq!(asset.status, 200);
        assert!(!asset.text().contains("://") && !asset.text().contains("innerHTML"), "{target}");
    }
    assert!(!page.text().contains("://"));
    assert_eq!(server.get("/").await.json()["message"].as_str(), Some("CacheSQL"));
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_are_not_there() {
    let server = Server::start().await;
    for target in ["/nothing", "/v1", "/v1/", "/v1/nothing", "/restless", "/cachet", "//", "/rest/a/b"] {
        let reply = server.get(target).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "42883"), "{target}");
    }
    for (method, target, allow) in [
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/v1/tables", "GET, HEAD"),
        ("GET", "/v1/sql", "POST"),
        ("OPTIONS", "/rest/people", "GET, HEAD, POST, PATCH, PUT, DELETE"),
        ("BREW", "/rest/people", "GET, HEAD, POST, PATCH, PUT, DELETE"),
    ] {
        let reply = server.ask(method, target, &[], "").await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {target}");
    }
}

/// A pipe in the place of a file: who reads it waits until this is dropped, and then finds nothing in it.
struct Held(std::path::PathBuf);

impl Held {
    fn at(path: std::path::PathBuf) -> Held {
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
        Held(path)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Opened to write as well as to read, a pipe does not wait; that it was opened to write is what readers wait for.
        let _ = std::fs::OpenOptions::new().read(true).write(true).open(&self.0);
        // Who comes later finds nothing to wait at.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What is served is what is shown: the old rows, while a refresh runs and after it failed.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_shows_the_rows_that_are_served() {
    let server = Server::start().await;
    let table = async || server.get("/readyz").await.json()["tables"][0].clone();
    let served = async || server.get("/v1/tables").await.json()[0].clone();
    let before = served().await;
    assert_eq!((before["name"].as_str(), before["rows"].as_u64()), (Some("loaded"), Some(3)));

    let path = server.folder.path().join("loaded.csv");
    std::fs::remove_file(&path).expect("removed");
    let held = Held::at(path);
    let node = server.node.clone();
    let refresh = tokio::spawn(async move { node.load("loaded").await });
    let loading = tokio::time::timeout(PATIENCE, async {
        loop {
            let now = table().await;
            if now["phase"] == "loading" && now["took_ms"].as_u64() > Some(0) {
                return now;
            }
        }
    });
    let loading = loading.await.expect("time goes on while it loads");
    assert_eq!((loading["rows"].as_u64(), loading["arrived_rows"].as_u64()), (Some(3), Some(0)));
    assert_eq!(loading["bytes"], before["bytes"]);

    // A file without a header is no table, and neither is one that is not there.
    drop(held);
    refresh.await.expect("no panic").expect_err("nothing to load");
    let failed = table().await;
    assert_eq!((failed["phase"].as_str(), failed["rows"].as_u64()), (Some("failed"), Some(3)));
    assert!(failed["arrived_rows"].is_null() && failed["bytes"] == before["bytes"], "{failed}");
    assert!(failed["error"].as_str().is_some_and(|why| why.contains("loaded.csv")), "{failed}");
    assert_eq!(server.get("/rest/loaded").await.json().as_array().map(Vec::len), Some(3));
}

/// A table whose first load does not succeed is not taken for one that does not exist, by no interface.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_not_loaded_yet_is_not_missing() {
    let server = Server::start_unloaded().await;
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, ready.json()["ready"].as_bool()), (503, Some(false)));
    for target in ["/rest/LOADED", "/v1/explain?sql=SELECT+*+FROM+loaded"] {
        let reply = server.get(target).await;
        assert_eq!((reply.status, reply.code().as_str()), (503, "57P03"), "{target}");
        assert!(reply.header("retry-after").is_some());
    }
    let sql = server.ask("POST", "/v1/sql", &[], r#"{"sql":"SELECT * FROM loaded"}"#).await;
    assert_eq!((sql.status, sql.code().as_str()), (503, "57P03"));
    let original = server.get("/cache/get?table=loaded&column=ID&value=1").await;
    assert_eq!(original.status, 503);
    assert!(original.text().starts_with("table \"loaded\" is not loaded yet"), "{}", original.text());
    assert_eq!(server.get("/rest/other").await.status, 404);
    assert_eq!(server.get("/healthz").await.status, 200);
}
