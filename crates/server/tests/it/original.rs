//! `/cache/*`, byte for byte as the original's client expects it.

use crate::fixture::Server;

fn ok(data: &str) -> String {
    format!(r#"{{"code":0,"message":"ok","data":{data}}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_flat_objects_in_column_order() {
    let server = Server::start().await;
    let first =
        r#"{"id":1,"name":"张三","age":30,"ok":true,"price":1.50,"born":"1969-12-31T23:59:59","doc":"{\"a\":[1,2]}"}"#;
    let third = r#"{"id":3,"name":"","age":null,"ok":null,"price":null,"born":null,"doc":null}"#;
    let cases = [
        ("/cache/get?table=people&column=id&value=1", ok(&format!("[{first}]"))),
        ("/cache/get?table=PEOPLE&column=ID&value=1", ok(&format!("[{first}]"))),
        ("/cache/get?table=people&column=name&value=%E5%BC%A0%E4%B8%89", ok(&format!("[{first}]"))),
        ("/cache/get?table=people&column=name&value=", ok(&format!("[{third}]"))),
        ("/cache/get?table=people&column=id&value=99", ok("[]")),
        ("/cache/get?table=loaded&column=CODE&value=007", ok(r#"[{"ID":1,"CODE":"007"}]"#)),
        ("/cache/get?table=loaded&column=CODE&value=7", ok("[]")),
        ("/cache/get?table=people&column=id&value=abc", ok("[]")),
        ("/cache/get?table=people&column=id&value=", ok("[]")),
        ("/cache/get?table=people&column=id&value=99999999999999999999", ok("[]")),
        ("/cache/less?table=loaded&column=ID&value=2", ok(r#"[{"ID":1,"CODE":"007"}]"#)),
        ("/cache/more?table=loaded&column=ID&value=2", ok(r#"[{"ID":3,"CODE":""}]"#)),
        ("/cache/range?table=loaded&column=ID&from=1&to=2", ok(r#"[{"ID":1,"CODE":"007"},{"ID":2,"CODE":null}]"#)),
        ("/cache/composite?table=people&index=name%2Bage&values=%E5%BC%A0%E4%B8%89,30", ok(&format!("[{first}]"))),
        ("/cache/composite?table=people&index=name+age&values=%E5%BC%A0%E4%B8%89,30", ok(&format!("[{first}]"))),
        ("/cache/query?sql=SELECT+ID+FROM+loaded+WHERE+ID+%3E+1+ORDER+BY+ID", ok(r#"[{"ID":2},{"ID":3}]"#)),
        ("/cache/query?sql=SELECT+ID+FROM+loaded+WHERE+CODE+LIKE+%2700%25%27", ok(r#"[{"ID":1}]"#)),
        (
            "/cache/query?sql=SELECT+ID+FROM+loaded+WHERE+ID+%3E+9",
            r#"{"code":0,"message":"empty","data":[]}"#.to_owned(),
        ),
        (
            "/cache/query?sql=SELECT+CODE,+count(*)+AS+n+FROM+loaded+WHERE+ID+%3E+9+GROUP+BY+CODE",
            r#"{"code":0,"message":"empty","data":[]}"#.to_owned(),
        ),
    ];
    for (target, expected) in cases {
        let reply = server.get(target).await;
        assert_eq!((reply.status, reply.text()), (200, expected.as_str()), "{target}");
        assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    }
    let posted = server.form("/cache/query", "sql=SELECT+ID+FROM+loaded+WHERE+ID+%3D+2").await;
    assert_eq!(posted.text(), ok(r#"[{"ID":2}]"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_changed_by_forms() {
    let server = Server::start().await;
    let changed = |op: &str| ok(&format!(r#"{{"table":"people","op":"{op}"}}"#));
    let insert = server.form("/cache/insert", "table=people&column=id&value=70&name=%E6%9D%8E+%2B%26&age=5").await;
    assert_eq!((insert.status, insert.text()), (200, changed("insert").as_str()));
    let read = server.get("/rest/people?id=eq.70&select=name,age,price").await;
    assert_eq!(read.text(), r#"[{"name":"李 +&","age":5,"price":null}]"#);
    let again = server.form("/cache/insert", "table=people&column=id&value=70&name=again").await;
    assert_eq!(again.text(), changed("insert"));
    let update = server.form("/cache/update", "table=people&column=id&value=70&price=7.5").await;
    assert_eq!(update.text(), changed("update"));
    let read = server.get("/rest/people?id=eq.70&select=name,age,price").await;
    assert_eq!(read.text(), r#"[{"name":"again","age":null,"price":7.50}]"#);
    let nothing = server.form("/cache/update", "table=people&column=id&value=71&name=x").await;
    assert_eq!((nothing.status, nothing.text()), (200, changed("update").as_str()));
    // Parameters in the query string of a POST count too.
    let delete = server.form("/cache/delete?table=people", "column=id&value=70").await;
    assert_eq!(delete.text(), changed("delete"));
    assert_eq!(server.get("/rest/people?id=eq.70").await.text(), "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_kept() {
    let server = Server::start().await;
    let cases = [
        (
            "/cache/load",
            "table=loaded",
            r#"{"code":0,"message":"loaded","data":{"table":"loaded","rows":3}}"#.to_owned(),
        ),
        ("/cache/refresh", "", r#"{"code":0,"message":"refreshed","data":{"tables":1}}"#.to_owned()),
        ("/cache/ttl", "table=loaded&ms=60000", ok(r#"{"table":"loaded","ttl":60000}"#)),
        ("/cache/maxSize", "table=loaded&size=2", ok(r#"{"table":"loaded","maxSize":2}"#)),
        ("/cache/clean", "table=loaded", ok(r#"{"table":"loaded","cleaned":1}"#)),
        ("/cache/compact", "table=loaded", ok(r#"{"table":"loaded","rows":2}"#)),
        ("/cache/truncate", "table=loaded", ok(r#"{"table":"loaded","truncated":true}"#)),
    ];
    for (target, form, expected) in cases {
        let reply = server.form(target, form).await;
        assert_eq!((reply.status, reply.text()), (200, expected.as_str()), "{target}");
    }
    let stats = server.get("/cache/stats?table=loaded").await;
    let expected =
        ok(r#"{"table":"loaded","totalRows":0,"activeRows":0,"ttl":60000,"maxSize":2,"indexes":["ID","CODE"]}"#);
    assert_eq!(stats.text(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_described() {
    let server = Server::start().await;
    let list = server.get("/cache/list").await.json();
    assert_eq!(list["data"][0]["name"].as_str(), Some("loaded"));
    assert!(list["data"][0]["sql"].is_string());
    let metrics = server.get("/cache/metrics").await.json();
    assert_eq!(metrics["data"]["tables"].to_string(), "2");
    assert_eq!(metrics["data"]["memory"]["max"].to_string(), (1_u64 << 30).to_string());
    assert_eq!(metrics["data"]["tables_detail"][0]["name"].as_str(), Some("loaded"));
    assert_eq!(metrics["data"]["tables_detail"][0]["rows"].to_string(), "3");
    let health = server.get("/cache/health").await;
    assert_eq!((health.status, health.json()["data"]["status"].as_str()), (200, Some("UP")));
    assert_eq!(health.json()["data"]["memory"]["max"].to_string(), "1024");
    let root = server.ask("GET", "/", &[("Accept", "application/json")], "").await;
    assert!(root.text().starts_with(r#"{"code":0,"message":"CacheSQL","data":{"endpoints":["#), "{}", root.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_in_plain_text() {
    let server = Server::start().await;
    let gets = [
        ("/cache/get?table=people&column=id", 400, "Missing column/value"),
        ("/cache/get?table=people&value=1", 400, "Missing column/value"),
        ("/cache/get?table=people", 400, "Missing column/value"),
        ("/cache/get", 400, "Missing table"),
        ("/cache/range?table=people&column=id&from=1", 400, "Missing column/from/to"),
        ("/cache/composite?table=people&index=a", 400, "Missing index/values"),
        ("/cache/query", 400, "Missing sql"),
        ("/cache/get?table=nothing&column=id&value=1", 404, "Table not found: nothing"),
        ("/cache/stats?table=nothing", 404, "Table not found: nothing"),
        ("/cache/get?table=people&column=nothing&value=1", 400, "Column not found: nothing"),
        ("/cache/insert", 405, "Method Not Allowed"),
        ("/cache/load", 405, "Method Not Allowed"),
        ("/cache/nothing", 404, "Not Found"),
        ("/cache/get?table=people&table=people&column=id&value=1", 400, "Repeated parameter: table"),
    ];
    for (target, status, text) in gets {
        let reply = server.get(target).await;
        assert_eq!((reply.status, reply.text()), (status, text), "{target}");
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"), "{target}");
    }
    assert_eq!(server.get("/cache/insert").await.header("allow"), Some("POST"));
    let posts = [
        ("/cache/get", "table=people&column=id&value=1", 405, "Method Not Allowed"),
        ("/cache/insert", "table=people&column=id", 400, "Missing column/value"),
        ("/cache/insert", "table=nothing&column=id&value=1", 404, "Table not found: nothing"),
        ("/cache/load", "table=a-b", 400, "Invalid table name"),
        ("/cache/load", "", 400, "Missing table"),
        ("/cache/load", "table=people", 400, "table \"people\" has no source to load it from"),
        ("/cache/load", "table=nothing", 404, "Table not found: nothing"),
        ("/cache/ttl", "table=people&ms=-1", 400, "Invalid ms"),
        ("/cache/ttl", "table=people&ms=x", 400, "Invalid ms"),
        ("/cache/ttl", "table=people", 400, "Missing ms"),
        ("/cache/maxSize", "table=people&size=99999999999999999999", 400, "Invalid size"),
    ];
    for (target, form, status, text) in posts {
        let reply = server.form(target, form).await;
        assert_eq!((reply.status, reply.text()), (status, text), "{target} {form}");
    }
    for target in [
        "/cache/get?table=people&column=id&value=%zz",
        "/cache/get?table=people&column=name&value=%ff",
        "/cache/more?table=people&column=id&value=abc",
        "/cache/query?sql=SELEC",
        "/cache/query?sql=DELETE+FROM+people",
        "/cache/composite?table=people&index=name%2Bage&values=x",
    ] {
        assert_eq!(server.get(target).await.status, 400, "{target}");
    }
    let json = server.ask("POST", "/cache/insert", &[("Content-Type", "application/json")], "{}").await;
    assert_eq!(json.status, 415);
    assert!(server.get("/rest/people?select=id").await.text().len() > 50, "nothing was deleted");
}

/// Tables that are too large to be looked through on the spot are looked through elsewhere, with the same answers.
#[tokio::test(flavor = "multi_thread")]
async fn large_tables_answer_alike() {
    let server = Server::start().await;
    let rows: String = (0..60_000).map(|i| format!("{},{}\n", i + 1000, i % 7)).collect();
    let written =
        server.ask("POST", "/rest/people", &[("Content-Type", "text/csv")], &format!("id,name\n{rows}")).await;
    assert_eq!(written.header("content-range"), Some("*/60000"), "{}", written.text());
    let one = r#"{"id":60999,"name":"2"}"#;
    assert_eq!(
        server.get("/rest/people?select=id,name&doc=is.null&price=is.null&id=gt.60998&id=lt.70000").await.text(),
        format!("[{one}]")
    );
    let counted = server.ask("GET", "/rest/people?name=like.6*&limit=1", &[("Prefer", "count=exact")], "").await;
    assert_eq!((counted.status, counted.header("content-range")), (206, Some("0-0/8571")));
    let range = server.get("/cache/range?table=people&column=id&from=60999&to=60999").await;
    assert!(
        range.text().starts_with(r#"{"code":0,"message":"ok","data":[{"id":60999,"name":"2","age":null"#),
        "{}",
        range.text()
    );
    for (target, rows) in [
        ("/cache/get?table=people&column=price&value=1.50", 1),
        ("/cache/less?table=people&column=id&value=3", 2),
        ("/cache/more?table=people&column=id&value=60990", 10),
        ("/cache/composite?table=people&index=price%2Bage&values=1.50,30", 1),
        ("/cache/get?table=people&column=name&value=3", 8571),
    ] {
        let reply = server.get(target).await;
        assert_eq!(reply.json()["data"].as_array().map(Vec::len), Some(rows), "{target}");
    }
    assert_eq!(server.get("/cache/less?table=people&column=id&value=abc").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn its_reads_heed_tokens_as_others_do() {
    let server = Server::start().await;
    let now = server.node.token(&server.node.snapshot()).to_string();
    for target in [
        "/cache/get?table=people&column=id&value=1",
        "/cache/less?table=people&column=id&value=3",
        "/cache/query?sql=SELECT+1",
    ] {
        let ask = async |header: (&str, &str)| server.ask("GET", target, &[header], "").await;
        let known = ask(("Cachesql-Token", &now)).await;
        assert_eq!((known.status, known.header("cachesql-token")), (200, Some(now.as_str())), "{target}");
        assert_eq!(ask(("Cachesql-Token", "main:99999999")).await.status, 503, "{target}");
        assert_eq!(ask(("Cachesql-Token", "garbage")).await.status, 400, "{target}");
        assert_eq!(ask(("Cachesql-Consistency", "whatever")).await.status, 400, "{target}");
        assert_eq!(ask(("Cachesql-Consistency", "linearizable")).await.status, 200, "{target}");
    }
}
