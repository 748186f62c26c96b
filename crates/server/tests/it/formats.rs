//! Media types and compression of rows.

use std::io::Read as _;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_ipc::reader::StreamReader;

use crate::fixture::Server;

#[tokio::test(flavor = "multi_thread")]
async fn csv_and_lines() {
    let server = Server::start().await;
    let target = "/rest/people?select=id,name,ok,price,born&order=id&id=lt.5";
    let csv = server.ask("GET", target, &[("Accept", "text/csv")], "").await;
    let expected = "id,name,ok,price,born\n1,张三,t,1.50,1969-12-31 23:59:59\n2,\"say \"\"hi\"\"\",f,123456789012345678.90,\n3,\"\",,,\n4,,t,0.00,2026-11-29 20:31:32.5\n";
    assert_eq!((csv.header("content-type"), csv.text()), (Some("text/csv; charset=utf-8"), expected));
    let lines = server
        .ask("GET", "/rest/people?select=id,name&order=id&limit=2", &[("Accept", "application/x-ndjson")], "")
        .await;
    assert_eq!(lines.text(), "{\"id\":1,\"name\":\"张三\"}\n{\"id\":2,\"name\":\"say \\\"hi\\\"\"}\n");
    let sql = r#"{"sql":"SELECT count(*) AS n FROM people"}"#;
    let from_sql = server.ask("POST", "/v1/sql", &[("Accept", "text/csv")], sql).await;
    assert_eq!(from_sql.text(), "n\n5\n");
    assert!(from_sql.header("cachesql-token").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn arrow_streams_read_back() {
    let server = Server::start().await;
    let accept = [("Accept", "application/vnd.apache.arrow.stream")];
    let direct = server.ask("GET", "/rest/people?order=id", &accept, "").await;
    let sql = r#"{"sql":"SELECT * FROM people ORDER BY id"}"#;
    let streamed = server.ask("POST", "/v1/sql", &accept, sql).await;
    for reply in [direct, streamed] {
        assert_eq!(reply.header("content-type"), Some("application/vnd.apache.arrow.stream"));
        let batches: Vec<_> = StreamReader::try_new(reply.body.as_slice(), None)
            .expect("a stream")
            .collect::<Result<_, _>>()
            .expect("batches");
        assert_eq!(batches.len(), 1);
        let batch = &batches[0];
        assert_eq!(batch.column_by_name("id").expect("id").as_primitive::<Int64Type>().value(4), 9_007_199_254_740_993);
        assert_eq!(batch.column_by_name("price").expect("price").as_primitive::<Decimal128Type>().value(4), -5);
        let names = batch.column_by_name("name").expect("name").as_string::<i32>();
        assert_eq!((names.value(0), names.value(2)), ("张三", ""));
        assert!(arrow_array::Array::is_null(names, 3));
    }
    let empty = server.ask("GET", "/rest/people?id=eq.99", &accept, "").await;
    assert_eq!(StreamReader::try_new(empty.body.as_slice(), None).expect("a stream").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gzip_is_used_on_request() {
    let server = Server::start().await;
    let sql = r#"{"sql":"SELECT repeat('x', 1000) AS text FROM people a, people b, people c, people d"}"#;
    let plain = server.ask("POST", "/v1/sql", &[], sql).await;
    for target_sql in [sql.to_owned(), sql.replace("people d", "people d, people e")] {
        let packed = server.ask("POST", "/v1/sql", &[("Accept-Encoding", "gzip")], &target_sql).await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        assert!(packed.complete && packed.body.len() < plain.body.len() / 10);
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.body.as_slice()).read_to_string(&mut text).expect("gzip");
        let rows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(rows["rows"].as_array().is_some_and(|rows| rows.len() >= 625));
    }
    let small = server.ask("GET", "/rest/people?id=eq.1", &[("Accept-Encoding", "gzip")], "").await;
    assert_eq!((small.header("content-encoding"), small.status), (None, 200));
}
