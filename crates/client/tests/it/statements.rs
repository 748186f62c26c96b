//! Where statements go, and which are refused.

use cachesql_client::{Error, Policy, Value};
use serde::Deserialize;

use crate::fake::{Does, Fake, client_of, open, rows, seeded, written};

fn two_groups(insurance: &[&Fake], finance: &[&Fake]) -> String {
    let lines = |name: &str, nodes: &[&Fake], table: &str| {
        let urls: Vec<&str> = nodes.iter().map(|node| node.url.as_str()).collect();
        let (master, slaves) = urls.split_first().expect("a master");
        let group = format!("cachesql.group.{name}");
        format!("{group}.master={master}\n{group}.slaves={}\n{group}.tables={table}\n", slaves.join(","))
    };
    lines("insurance", insurance, "KCA2,KCA3") + &lines("finance", finance, "KCA4")
}

#[tokio::test]
async fn a_statement_goes_where_its_tables_are() {
    let (one, two) = (Fake::new(rows("insurance:1")).await, Fake::new(rows("finance:1")).await);
    let client = open(&two_groups(&[&one], &[&two]), seeded());
    client.query("SELECT * FROM KCA2 JOIN kca3 ON a = b").await.expect("one group");
    client.query("SELECT * FROM KCA4 WHERE x = 'FROM KCA2'").await.expect("one group");
    assert_eq!((one.seen().len(), two.seen().len()), (1, 1));
    for (sql, table) in [("SELECT * FROM KCA9", "KCA9"), ("SELECT 1", "(the statement names none)")] {
        let error = client.query(sql).await.expect_err("no group");
        assert_eq!(error.to_string(), format!("No group configured for table: {table}"));
    }
    assert_eq!((one.seen().len(), two.seen().len()), (1, 1));
}

#[tokio::test]
async fn tables_of_two_groups_are_refused_with_both_named() {
    let (one, two) = (Fake::new(rows("insurance:1")).await, Fake::new(rows("finance:1")).await);
    let client = open(&two_groups(&[&one], &[&two]), seeded());
    let error = client.query("SELECT * FROM KCA2, KCA4").await.expect_err("two groups");
    assert!(
        matches!(&error, Error::TwoGroups { first_group, second_group, .. } if first_group == "insurance" && second_group == "finance")
    );
    let text = error.to_string();
    for word in ["KCA2", "insurance", "KCA4", "finance"] {
        assert!(text.contains(word), "{text}");
    }
    assert!(one.seen().is_empty() && two.seen().is_empty());
}

#[tokio::test]
async fn tables_of_two_groups_go_to_a_node_that_holds_both() {
    let nodes = [
        Fake::new(rows("insurance:1")).await,
        Fake::new(rows("insurance:1")).await,
        Fake::new(rows("finance:1")).await,
    ];
    let [one, both, three] = &nodes;
    let client = open(&two_groups(&[one, both], &[three, both]), seeded());
    for _ in 0..10 {
        client.query("SELECT * FROM KCA2, KCA4").await.expect("a node holds both");
    }
    assert_eq!([one, both, three].map(|node| node.seen().len()), [0, 10, 0]);
    // One token speaks of one group; to see what was written to either, the read asks for everything.
    assert_eq!(both.seen()[9].header("cachesql-consistency"), Some("linearizable"));
    assert_eq!(
        (client.token("KCA2"), client.token("KCA4")),
        (None, None),
        "nor is it known of which group its answer speaks"
    );
    let error = client.query("INSERT INTO KCA2 SELECT * FROM KCA4").await.expect_err("a write has one group");
    assert!(matches!(error, Error::TwoGroups { .. }));
}

#[tokio::test]
async fn a_statement_that_writes_goes_to_the_leader_with_an_id() {
    let (leader, follower) = (Fake::new(written("main:2")).await, Fake::new(rows("main:1")).await);
    let client = client_of(&[&leader, &follower], seeded().policy(Policy::Uniform));
    for at in 0..10_u32 {
        let rows = client.query_with("UPDATE T SET a = $1", &[Value::from(at)]).await.expect("written");
        assert_eq!(rows.affected(), Some(1));
    }
    assert_eq!((leader.seen().len(), follower.seen().len()), (10, 0));
    assert!(leader.seen().iter().all(|seen| seen.header("cachesql-request-id").is_some()));
}

#[tokio::test]
async fn the_one_group_gets_what_names_no_table() {
    let node = Fake::new(rows("main:1")).await;
    let client = client_of(&[&node], seeded());
    client.query("SELECT 1").await.expect("there is no other group");
    client.query("CREATE TABLE new (a int)").await.expect("there is no other group");
    assert!(matches!(client.query("SELECT * FROM other").await, Err(Error::NoGroup { table }) if table == "other"));
    assert_eq!(node.seen().len(), 2);
}

#[tokio::test]
async fn rows_arrive_typed_and_exact() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Payment {
        id: i64,
        amount: String,
        note: Option<String>,
    }
    let body = r#"{"columns":[{"name":"ID","type":"BIGINT"},{"name":"AMOUNT","type":"DECIMAL(38,2)"},{"name":"NOTE","type":"TEXT"}],
        "rows":[[9007199254740993,99999999999999999999999999999999.10,null]],"token":"main:1"}"#;
    let node = Fake::new(Does::Answer { status: 200, headers: Vec::new(), body: body.to_owned() }).await;
    let client = client_of(&[&node], seeded());
    let rows = client.composite("T", "a+b", &[Value::from("x,y"), Value::from(2)]).await.expect("answered");
    let expected =
        Payment { id: 9_007_199_254_740_993, amount: "99999999999999999999999999999999.10".into(), note: None };
    assert_eq!(rows.typed::<Payment>().expect("it fits"), [expected]);
    let sent: serde_json::Value = serde_json::from_str(&node.seen()[0].body).expect("JSON");
    assert_eq!(sent["sql"], "SELECT * FROM \"T\" WHERE \"a\" = $1 AND \"b\" = $2");
    assert_eq!(sent["params"], serde_json::json!(["x,y", "2"]));
    client.less("T", "a", 5).await.expect("answered");
    client.more("T", "a", 5).await.expect("answered");
    client.range("T", "a", 5, 7).await.expect("answered");
    let sent: Vec<String> = node
        .seen()
        .iter()
        .skip(1)
        .map(|seen| {
            serde_json::from_str::<serde_json::Value>(&seen.body).expect("JSON")["sql"]
                .as_str()
                .expect("text")
                .to_owned()
        })
        .collect();
    let expected = ["\"a\" < $1", "\"a\" > $1", "\"a\" >= $1 AND \"a\" <= $2"];
    assert_eq!(sent, expected.map(|condition| format!("SELECT * FROM \"T\" WHERE {condition}")));
}

#[tokio::test]
async fn an_answer_that_is_none_is_an_error_that_names_the_node() {
    let node = Fake::new(Does::Answer { status: 200, headers: Vec::new(), body: "{\"rows\":5}".into() }).await;
    let client = client_of(&[&node], seeded());
    let error = client.get("T", "a", 1).await.expect_err("no rows");
    assert!(matches!(&error, Error::Answer { node: url, .. } if url.contains(&node.name)), "{error}");
}
