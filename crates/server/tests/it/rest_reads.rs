//! GET and HEAD of `/rest/{table}`, against rows written by hand.

use crate::fixture::Server;

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_answered_as_they_are() {
    let server = Server::start().await;
    let reply = server.get("/rest/people?order=id").await;
    let expected = concat!(
        r#"[{"id":1,"name":"张三","age":30,"ok":true,"price":1.50,"born":"1969-12-31T23:59:59","doc":{"a":[1,2]}},"#,
        r#"{"id":2,"name":"say \"hi\"","age":40,"ok":false,"price":123456789012345678.90,"born":null,"doc":null},"#,
        r#"{"id":3,"name":"","age":null,"ok":null,"price":null,"born":null,"doc":null},"#,
        r#"{"id":4,"name":null,"age":40,"ok":true,"price":0.00,"born":"2026-11-29T20:31:32.5","doc":null},"#,
        r#"{"id":9007199254740993,"name":"a,b","age":-1,"ok":false,"price":-0.05,"born":null,"doc":"text"}]"#,
    );
    assert_eq!((reply.status, reply.text()), (200, expected));
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(reply.header("content-range"), Some("0-4/*"));
    assert_eq!(reply.header("cachesql-served-by"), Some("local"));
    let token = server.node.token(&server.node.snapshot()).to_string();
    assert_eq!(reply.header("cachesql-token"), Some(token.as_str()));
    assert_eq!(reply.header("age"), Some("0"));
}

/// Each filter of people, and the ids that it keeps.
#[tokio::test(flavor = "multi_thread")]
async fn filters_keep_the_rows_that_they_name() {
    let server = Server::start().await;
    let cases: [(&str, &[i64]); 27] = [
        ("id=eq.1", &[1]),
        ("ID=eq.1", &[1]),
        ("id=eq.9007199254740993", &[9_007_199_254_740_993]),
        ("id=eq.9007199254740992", &[]),
        ("age=neq.40", &[1, 9_007_199_254_740_993]),
        ("age=not.eq.40", &[1, 9_007_199_254_740_993]),
        ("age=gt.30", &[2, 4]),
        ("age=gte.30", &[1, 2, 4]),
        ("age=lt.30", &[9_007_199_254_740_993]),
        ("age=lte.30&id=lt.5", &[1]),
        ("age=gte.0&age=lt.40", &[1]),
        ("age=in.(30,-1)", &[1, 9_007_199_254_740_993]),
        ("age=not.in.(30,-1)", &[2, 4]),
        ("name=in.(%22a,b%22,%E5%BC%A0%E4%B8%89)", &[1, 9_007_199_254_740_993]),
        ("name=eq.", &[3]),
        ("name=is.null", &[4]),
        ("name=not.is.null", &[1, 2, 3, 9_007_199_254_740_993]),
        ("ok=is.true", &[1, 4]),
        ("ok=is.false", &[2, 9_007_199_254_740_993]),
        ("ok=is.unknown", &[3]),
        ("ok=not.is.true", &[2, 3, 9_007_199_254_740_993]),
        ("name=like.say*", &[2]),
        ("name=ilike.SAY%25", &[2]),
        ("or=(id.eq.1,age.eq.40)", &[1, 2, 4]),
        ("and=(age.eq.40,not.or(id.eq.2,id.eq.3))", &[4]),
        ("price=eq.1.5", &[1]),
        ("price=gt.123456789012345678.89", &[2]),
    ];
    for (query, ids) in cases {
        let reply = server.get(&format!("/rest/people?select=id&order=id&{query}")).await;
        let expected: Vec<String> = ids.iter().map(|id| format!("{{\"id\":{id}}}")).collect();
        assert_eq!((reply.status, reply.text()), (200, format!("[{}]", expected.join(",")).as_str()), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_order_and_pages() {
    let server = Server::start().await;
    let cases = [
        ("select=name,id&id=eq.1", r#"[{"name":"张三","id":1}]"#),
        ("select=who:name,id::text&id=eq.2", r#"[{"who":"say \"hi\"","id":"2"}]"#),
        ("select=price::text&id=eq.2", r#"[{"price":"123456789012345678.90"}]"#),
        ("select=id&order=age.desc.nullslast,id.desc&limit=3", r#"[{"id":4},{"id":2},{"id":1}]"#),
        // NULLs are larger than everything, as in PostgreSQL.
        ("select=id&order=age.desc,id&limit=1", r#"[{"id":3}]"#),
        ("select=id&order=age.nullsfirst&limit=1", r#"[{"id":3}]"#),
        ("select=id&order=id&limit=2&offset=1", r#"[{"id":2},{"id":3}]"#),
        ("select=id&order=id&offset=4", r#"[{"id":9007199254740993}]"#),
        ("select=id&limit=0", "[]"),
    ];
    for (query, expected) in cases {
        let reply = server.get(&format!("/rest/people?{query}")).await;
        assert_eq!((reply.status, reply.text()), (200, expected), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_and_counts() {
    let server = Server::start().await;
    let exact = ("Prefer", "count=exact");
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16, &'a str);
    let cases: [Case<'_>; 8] = [
        ("?order=id&select=id", &[("Range", "1-2")], 200, "1-2/*"),
        ("?order=id&select=id", &[("Range", "1-2"), exact], 206, "1-2/5"),
        ("?order=id&select=id&limit=10", &[exact], 200, "0-4/5"),
        ("?age=eq.40&limit=1", &[exact], 206, "0-0/2"),
        ("?age=eq.99", &[exact], 200, "*/0"),
        ("?offset=5", &[exact], 206, "*/5"),
        ("?select=id", &[("Range", "4-"), exact], 206, "4-4/5"),
        ("?select=id", &[("Range", "4-"), ("Range-Unit", "bytes")], 200, "0-4/*"),
    ];
    for (query, headers, status, range) in cases {
        let reply = server.ask("GET", &format!("/rest/people{query}"), headers, "").await;
        assert_eq!((reply.status, reply.header("content-range")), (status, Some(range)), "{query} {headers:?}");
    }
    let beyond = server.ask("GET", "/rest/people?offset=6", &[exact], "").await;
    assert_eq!((beyond.status, beyond.code().as_str()), (416, "PGRST103"));
    let head = server.ask("HEAD", "/rest/people?age=eq.40", &[exact], "").await;
    assert_eq!((head.status, head.header("content-range"), head.body.len()), (200, Some("0-1/2"), 0));
    assert_eq!(head.header("content-type"), Some("application/json; charset=utf-8"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_object_is_exactly_one_row() {
    let server = Server::start().await;
    let accept = [("Accept", "application/vnd.pgrst.object+json")];
    let one = server.ask("GET", "/rest/people?select=id&id=eq.1", &accept, "").await;
    assert_eq!((one.status, one.text()), (200, r#"{"id":1}"#));
    assert_eq!(one.header("content-type"), Some("application/vnd.pgrst.object+json; charset=utf-8"));
    for query in ["age=eq.40", "age=eq.99"] {
        let reply = server.ask("GET", &format!("/rest/people?{query}"), &accept, "").await;
        assert_eq!((reply.status, reply.code().as_str()), (406, "PGRST116"), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_by_status_and_code() {
    let server = Server::start().await;
    let cases = [
        ("/rest/nothing", 404, "42P01"),
        ("/rest/people/1", 404, "42883"),
        ("/rest/people?nothing=eq.1", 400, "42703"),
        ("/rest/people?id=eq.abc", 400, "22P02"),
        ("/rest/people?id=1", 400, "42601"),
        ("/rest/people?select=nothing", 400, "42703"),
        ("/rest/people?select=*,others(*)", 400, "0A000"),
        ("/rest/people?limit=-1", 400, "22P02"),
        ("/rest/people?name=fts.x", 400, "0A000"),
        ("/rest/people?id=eq.%zz", 400, "08P01"),
        ("/rest/people?name=eq.%ff", 400, "22021"),
        ("/rest/%ff", 400, "22021"),
    ];
    for (target, status, code) in cases {
        let reply = server.get(target).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{target}");
        let keys: Vec<String> = reply.json().as_object().expect("an object").keys().cloned().collect();
        assert_eq!(keys, ["code", "details", "hint", "message"], "{target}");
    }
    let deep = format!("/rest/people?and={}id.eq.1{}", "(and".repeat(2000), ")".repeat(2000));
    assert_eq!(server.get(&deep).await.code(), "54001");
    let token = server.ask("GET", "/rest/people", &[("Cachesql-Token", "nonsense")], "").await;
    assert_eq!(token.status, 400);
    let level = server.ask("GET", "/rest/people", &[("Cachesql-Consistency", "eventually")], "").await;
    assert_eq!(level.status, 400);
    let media = server.ask("GET", "/rest/people", &[("Accept", "image/png")], "").await;
    assert_eq!(media.status, 406);
}
