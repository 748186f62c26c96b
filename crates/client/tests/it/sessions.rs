//! What reads of one client see: at least what it wrote and saw.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cachesql_client::{Consistency, Policy};

use crate::fake::{Fake, client_of, open, rows, seeded, written};

fn index(token: Option<&str>) -> u64 {
    token.map_or(0, |token| token.strip_prefix("main:").expect("of the group").parse().expect("a number"))
}

#[tokio::test]
async fn a_read_sends_what_the_client_wrote_to_whichever_node() {
    let (leader, follower) = (Fake::new(written("main:7")).await, Fake::new(rows("main:5")).await);
    let client = client_of(&[&leader, &follower], seeded().policy(Policy::Uniform));
    assert_eq!(client.token("T"), None);
    let done = client.update("T", "a", 1, &serde_json::json!({"b": 2})).await.expect("written");
    assert_eq!((done.affected, done.token.map(|token| token.to_string()).as_deref()), (1, Some("main:7")));
    leader.does(|_| rows("main:7"));
    for _ in 0..20 {
        client.get("T", "a", 1).await.expect("answered");
    }
    // An answer that saw less does not take the promise back.
    assert!(!follower.seen().is_empty());
    for seen in follower.seen().iter().chain(leader.seen().iter().skip(1)) {
        assert_eq!(
            (seen.header("cachesql-consistency"), seen.header("cachesql-token")),
            (Some("session"), Some("main:7"))
        );
    }
    client.forget_session();
    assert_eq!(client.token("T"), None);
}

#[tokio::test]
async fn other_levels_are_sent_without_a_token() {
    let levels = [
        (Consistency::Any, "any"),
        (Consistency::Linearizable, "linearizable"),
        (Consistency::Bounded(Duration::from_millis(250)), "bounded=250ms"),
    ];
    for (level, text) in levels {
        let node = Fake::new(rows("main:7")).await;
        let client = client_of(&[&node], seeded().consistency(level));
        client.get("T", "a", 1).await.expect("answered");
        client.get("T", "a", 1).await.expect("answered");
        let seen = node.seen();
        assert_eq!((seen[1].header("cachesql-consistency"), seen[1].header("cachesql-token")), (Some(text), None));
    }
}

#[tokio::test]
async fn what_code_says_counts_before_what_the_file_says() {
    let node = Fake::new(rows("main:7")).await;
    let group = "cachesql.group.main";
    let file = format!("{group}.master={}\n{group}.tables=T\ncachesql.consistency=any\n", node.url);
    open(&file, seeded()).get("T", "a", 1).await.expect("answered");
    open(&file, seeded().consistency(Consistency::Linearizable)).get("T", "a", 1).await.expect("answered");
    let levels: Vec<_> =
        node.seen().iter().map(|seen| seen.header("cachesql-consistency").map(str::to_owned)).collect();
    assert_eq!(levels, [Some("any".to_owned()), Some("linearizable".to_owned())]);
}

/// Nodes answer with indexes in no order. Whatever a read sends is no less than what had been heard when it began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_never_go_back_however_many_ask_at_once() {
    let next = Arc::new(AtomicU64::new(1));
    let node = Fake::with(move |_| {
        // 2, 1, 4, 3, 6, 5, …
        let index = next.fetch_add(1, Ordering::SeqCst);
        rows(&format!("main:{}", if index % 2 == 1 { index + 1 } else { index - 1 }))
    })
    .await;
    let client = client_of(&[&node], seeded());
    // Each read asks for a value of its own, by which its request is known again, and notes what was heard before.
    let callers = (0..16_u32).map(|caller| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut notes = Vec::new();
            for at in 0..25 {
                let value = (caller * 100 + at).to_string();
                let heard = client.token("T").map_or(0, |token| token.index.0);
                let rows = client.get("T", "a", value.as_str()).await.expect("answered");
                let answered = rows.token().expect("one").index.0;
                let after = client.token("T").expect("one").index.0;
                assert!(after >= heard.max(answered), "{after} after {heard} and {answered}");
                notes.push((value, heard));
            }
            notes
        })
    });
    let mut notes = HashMap::new();
    for caller in callers.collect::<Vec<_>>() {
        notes.extend(caller.await.expect("no assertion failed"));
    }
    assert_eq!(client.token("T").expect("one").index.0, 400);
    let seen = node.seen();
    assert_eq!(seen.len(), 400);
    for request in &seen {
        let body: serde_json::Value = serde_json::from_str(&request.body).expect("JSON");
        let heard = notes[body["params"][0].as_str().expect("text")];
        let sent = index(request.header("cachesql-token"));
        assert!(sent >= heard, "{sent} was sent, and {heard} had been heard");
    }
}
