//! POST, PATCH, PUT and DELETE of `/rest/{table}`.

use crate::fixture::{Reply, Server};

const ROWS: (&str, &str) = ("Prefer", "return=representation");

async fn names(server: &Server) -> String {
    server.get("/rest/people?select=id,name&order=id&id=lt.100").await.text().to_owned()
}

fn outcome(reply: &Reply) -> (u16, &str, Option<&str>) {
    (reply.status, reply.text(), reply.header("content-range"))
}

#[tokio::test(flavor = "multi_thread")]
async fn new_rows() {
    let server = Server::start().await;
    let one = server.ask("POST", "/rest/people", &[], r#"{"id":10,"name":"new"}"#).await;
    assert_eq!(outcome(&one), (201, "", Some("*/1")));
    let token = one.header("cachesql-token").expect("a token").to_owned();
    let seen = server.ask("GET", "/rest/people?id=eq.10&select=name,age", &[("Cachesql-Token", &token)], "").await;
    assert_eq!(seen.text(), r#"[{"name":"new","age":null}]"#);

    let many = r#"[{"id":11,"price":9007199254740993.25},{"price":"1","id":12}]"#;
    let many = server.ask("POST", "/rest/people?select=id,p:price", &[ROWS], many).await;
    assert_eq!(outcome(&many), (201, r#"[{"id":11,"p":9007199254740993.25},{"id":12,"p":1.00}]"#, Some("*/2")));
    assert_eq!(many.header("preference-applied"), Some("return=representation"));

    let csv = server
        .ask("POST", "/rest/people", &[("Content-Type", "text/csv")], "id,name\n13,\"a \"\"b\"\"\"\n14,\n15,\"\"\n")
        .await;
    assert_eq!(outcome(&csv), (201, "", Some("*/3")));
    let lines = server
        .ask("POST", "/rest/people", &[("Content-Type", "application/x-ndjson")], "{\"id\":16}\n{\"id\":17}\n")
        .await;
    assert_eq!(outcome(&lines), (201, "", Some("*/2")));
    let read = server.get("/rest/people?select=id,name&id=gte.13&id=lte.16&order=id").await;
    let expected = r#"[{"id":13,"name":"a \"b\""},{"id":14,"name":null},{"id":15,"name":""},{"id":16,"name":null}]"#;
    assert_eq!(read.text(), expected);

    let location = server.ask("POST", "/rest/people", &[("Prefer", "return=headers-only")], r#"{"id":18}"#).await;
    assert_eq!((location.status, location.header("location")), (201, Some("/rest/people?id=eq.18")));
    let nothing = server.ask("POST", "/rest/people", &[], "[]").await;
    assert_eq!(outcome(&nothing), (201, "", Some("*/0")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_there_already() {
    let server = Server::start().await;
    let row = r#"[{"id":1,"name":"changed"},{"id":20,"name":"new"}]"#;
    let refused = server.ask("POST", "/rest/people", &[], row).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "23505"));
    assert!(!names(&server).await.contains("20"), "a refused insert leaves nothing");

    let ignored = server.ask("POST", "/rest/people", &[("Prefer", "resolution=ignore-duplicates")], row).await;
    assert_eq!(outcome(&ignored), (201, "", Some("*/1")));
    assert!(names(&server).await.contains(r#"{"id":1,"name":"张三"}"#));

    let merged =
        server.ask("POST", "/rest/people?on_conflict=id", &[("Prefer", "resolution=merge-duplicates")], row).await;
    assert_eq!(outcome(&merged), (201, "", Some("*/2")));
    let read = server.get("/rest/people?id=eq.1&select=name,age").await;
    assert_eq!(read.text(), r#"[{"name":"changed","age":30}]"#, "columns that the row does not name stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_rows() {
    let server = Server::start().await;
    let changed =
        server.ask("PATCH", "/rest/people?age=eq.40&select=id,name&order=id", &[ROWS], r#"{"name":"forty"}"#).await;
    assert_eq!((changed.status, changed.header("content-range")), (200, Some("0-1/2")));
    assert!(
        changed.text().contains(r#"{"id":2,"name":"forty"}"#) && changed.text().contains(r#"{"id":4,"name":"forty"}"#)
    );
    let quiet = server.ask("PATCH", "/rest/people?id=eq.1", &[], r#"{"name":null}"#).await;
    assert_eq!(outcome(&quiet), (204, "", Some("0-0/1")));
    let none = server.ask("PATCH", "/rest/people?id=eq.77", &[], r#"{"name":"x"}"#).await;
    assert_eq!(outcome(&none), (204, "", Some("*/0")));
    let empty = server.ask("PATCH", "/rest/people?id=eq.1", &[], "{}").await;
    assert_eq!(outcome(&empty), (204, "", Some("*/0")));
    let refused = server.ask("PATCH", "/rest/people", &[], r#"{"name":"all"}"#).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "21000"));
    let all = server.ask("PATCH", "/rest/people", &[("Prefer", "tx=all-rows")], r#"{"name":"all"}"#).await;
    assert_eq!(outcome(&all), (204, "", Some("0-4/5")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_go() {
    let server = Server::start().await;
    let refused = server.ask("DELETE", "/rest/people", &[], "").await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "21000"));
    let gone = server.ask("DELETE", "/rest/people?id=eq.3&select=id,name", &[ROWS], "").await;
    assert_eq!(outcome(&gone), (200, r#"[{"id":3,"name":""}]"#, Some("*/1")));
    let limited =
        server.ask("DELETE", "/rest/people?age=eq.40", &[("Prefer", "handling=strict, max-affected=1")], "").await;
    assert_eq!(limited.status, 400);
    let all = server.ask("DELETE", "/rest/people", &[("Prefer", "tx=all-rows")], "").await;
    assert_eq!(outcome(&all), (204, "", Some("*/4")));
    assert_eq!(server.get("/rest/people").await.text(), "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_row_put_by_its_key() {
    let server = Server::start().await;
    let replaced = server.ask("PUT", "/rest/people?id=eq.1", &[ROWS], r#"{"id":1,"name":"put"}"#).await;
    assert_eq!(replaced.status, 200);
    let read = server.get("/rest/people?id=eq.1&select=name,age").await;
    assert_eq!(read.text(), r#"[{"name":"put","age":null}]"#, "a PUT replaces the whole row");
    let new = server.ask("PUT", "/rest/people?id=eq.30", &[], r#"{"id":30}"#).await;
    assert_eq!(new.status, 204);
    let other = server.ask("PUT", "/rest/people?id=eq.30", &[], r#"{"id":31}"#).await;
    assert_eq!(other.status, 400);
    for query in ["", "?age=eq.1", "?id=gt.1", "?id=eq.1&age=eq.1", "?id=eq.30&limit=1"] {
        assert_eq!(
            server.ask("PUT", &format!("/rest/people{query}"), &[], r#"{"id":30}"#).await.status,
            405,
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_applied_once() {
    let server = Server::start().await;
    let id = [("Cachesql-Request-Id", "one"), ROWS];
    let first = server.ask("POST", "/rest/people", &id, r#"{"id":40}"#).await;
    let again = server.ask("POST", "/rest/people", &id, r#"{"id":40}"#).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.header("cachesql-token"), again.header("cachesql-token"));
    assert_eq!((first.header("cachesql-replayed"), again.header("cachesql-replayed")), (None, Some("true")));
    assert_eq!(first.text(), again.text());
    let other = server.ask("POST", "/rest/people", &id, r#"{"id":41}"#).await;
    assert_eq!(other.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_refused_change_nothing() {
    let server = Server::start().await;
    let before = names(&server).await;
    let cases = [
        ("", 400, "22P02"),
        ("{", 400, "22P02"),
        (r#"{"id":"x"}"#, 400, "22P02"),
        (r#"{"id":50,"nothing":1}"#, 400, "42703"),
        (r#"{"id":50,"price":1.234}"#, 400, "22003"),
        (r#"{"id":null}"#, 400, "23502"),
        (r#"[{"id":50},{"id":50}]"#, 409, "23505"),
        (r#"[{"id":50},{"name":"x"}]"#, 400, "22023"),
        (r#"{"id":50,"name":"x","name":"y"}"#, 400, "42601"),
    ];
    for (body, status, code) in cases {
        let reply = server.ask("POST", "/rest/people", &[], body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{body}");
    }
    let media = server.ask("POST", "/rest/people", &[("Content-Type", "application/xml")], "<x/>").await;
    assert_eq!(media.status, 415);
    let packed = server.ask("POST", "/rest/people", &[("Content-Encoding", "gzip")], "x").await;
    assert_eq!(packed.status, 415);
    let rollback = server.ask("POST", "/rest/people", &[("Prefer", "tx=rollback")], r#"{"id":50}"#).await;
    assert_eq!(rollback.status, 400);
    assert_eq!(names(&server).await, before);
}
