//! `POST /v1/sql` and `GET /v1/explain`.

use crate::fixture::Server;

async fn sql(server: &Server, body: &str) -> (u16, String) {
    let reply = server.ask("POST", "/v1/sql", &[], body).await;
    (reply.status, reply.text().to_owned())
}

fn token(server: &Server) -> String {
    server.node.token(&server.node.snapshot()).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_answers_columns_rows_and_a_token() {
    let server = Server::start().await;
    let answered =
        sql(&server, r#"{"sql":"SELECT id, name, price FROM people WHERE id = $1","params":[9007199254740993]}"#).await;
    let expected = format!(
        r#"{{"columns":[{{"name":"id","type":"BIGINT"}},{{"name":"name","type":"TEXT"}},{{"name":"price","type":"DECIMAL(20,2)"}}],"rows":[[9007199254740993,"a,b",-0.05]],"token":"{}"}}"#,
        token(&server)
    );
    assert_eq!(answered, (200, expected));
    let strings = sql(
        &server,
        r#"{"sql":"SELECT id, price FROM people WHERE id = $1","params":["9007199254740993"],"numbers":"string"}"#,
    )
    .await;
    assert!(strings.1.contains(r#""rows":[["9007199254740993","-0.05"]]"#), "{}", strings.1);
    let joined = sql(
        &server,
        r#"{"sql":"SELECT p.name, q.name FROM people p JOIN people q ON q.age = p.age WHERE p.id = 2 ORDER BY q.id"}"#,
    )
    .await;
    assert!(joined.1.contains(r#""rows":[["say \"hi\"","say \"hi\""],["say \"hi\"",null]]"#), "{}", joined.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_say_how_many_rows() {
    let server = Server::start().await;
    let written = sql(&server, r#"{"sql":"UPDATE people SET age = age + 1 WHERE age = 40"}"#).await;
    assert_eq!(written, (200, format!(r#"{{"columns":[],"rows":[],"affected":2,"token":"{}"}}"#, token(&server))));
    let returned = sql(&server, r#"{"sql":"DELETE FROM people WHERE id = 3 RETURNING id, name"}"#).await;
    assert!(returned.1.contains(r#""rows":[[3,""]],"affected":1"#), "{}", returned.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_applied_as_a_whole_or_not_at_all() {
    let server = Server::start().await;
    let good = r#"[{"sql":"INSERT INTO people (id, name) VALUES ($1, $2)","params":[60,"x"]},{"sql":"SELECT count(*) AS n FROM people"}]"#;
    let reply = server.ask("POST", "/v1/sql", &[], good).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answers = reply.json();
    assert_eq!(answers[0]["affected"].to_string(), "1");
    assert_eq!(answers[1]["rows"].to_string(), "[[6]]");
    let bad = r#"[{"sql":"DELETE FROM people"},{"sql":"INSERT INTO people (id) VALUES (NULL)"}]"#;
    assert_eq!(server.ask("POST", "/v1/sql", &[], bad).await.code(), "23502");
    assert!(sql(&server, r#"{"sql":"SELECT count(*) FROM people"}"#).await.1.contains("[[6]]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_by_status_and_code() {
    let server = Server::start().await;
    let nested = format!(r#"{{"sql":"SELECT {}1{}"}}"#, "(".repeat(10_000), ")".repeat(10_000));
    let chain = format!(r#"{{"sql":"SELECT 1 FROM people WHERE {}id = 1"}}"#, "id = 1 AND ".repeat(10_000));
    let deep = format!(r#"{{"sql":"SELECT $1","params":[{}{}]}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let cases = [
        (r#"{"sql":"SELEC 1"}"#, 400, "42601"),
        (r#"{"sql":""}"#, 400, "42601"),
        (r#"{"sql":"SELECT 1; DROP TABLE people"}"#, 400, "42601"),
        (r#"{"sql":"SELECT * FROM nothing"}"#, 404, "42P01"),
        (r#"{"sql":"SELECT nothing FROM people"}"#, 400, "42703"),
        (r#"{"sql":"SELECT * FROM people WHERE id = $1"}"#, 400, "07001"),
        (r#"{"sql":"SELECT * FROM people WHERE id = $1","params":["x"]}"#, 400, "22P02"),
        (r#"{"sql":"INSERT INTO people (id) VALUES (1)"}"#, 409, "23505"),
        (r#"{"sql":"SELECT 1/0"}"#, 400, "22012"),
        (r#"{"query":"SELECT 1"}"#, 400, "22P02"),
        (r#"{"sql":"SELECT 1","consistency":"eventually"}"#, 400, "22023"),
        ("[]", 400, "54000"),
        ("nonsense", 400, "22P02"),
        (nested.as_str(), 400, "54001"),
        (deep.as_str(), 400, "54001"),
    ];
    for (body, status, code) in cases {
        let reply = server.ask("POST", "/v1/sql", &[], body).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{shown}");
    }
    let reply = server.ask("POST", "/v1/sql", &[], &chain).await;
    assert!(reply.status == 200 || reply.code() == "54001", "{}", reply.text());
    assert_eq!(server.get("/rest/people?id=eq.1&select=id").await.text(), r#"[{"id":1}]"#, "it serves on");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_path_and_index() {
    let server = Server::start().await;
    let direct = server.get("/v1/explain?sql=SELECT%20*%20FROM%20people%20WHERE%20age%20=%2040").await.json();
    assert_eq!((direct["path"].as_str(), direct["index"].as_str()), (Some("direct"), Some("age")));
    let other = server.get("/v1/explain?sql=SELECT+age,+count(*)+FROM+people+GROUP+BY+age").await.json();
    assert_eq!(other["path"].as_str(), Some("datafusion"));
    assert_eq!(server.get("/v1/explain").await.status, 400);
    assert_eq!(server.get("/v1/explain?sql=a&sql=b").await.status, 400);
    assert_eq!(server.get("/v1/sql").await.header("allow"), Some("POST"));
}
