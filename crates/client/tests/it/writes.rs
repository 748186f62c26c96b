//! Where a write goes, when it is sent again, and what is said when its outcome is not known.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cachesql_client::{Client, Error, Written};

use crate::fake::{Does, Fake, Seen, client_of, error, not_leader, open, refusing, routes, rows, seeded, written};

async fn insert(client: &Client) -> Result<Written, Error> {
    client.insert("T", "a", 1, &serde_json::json!({"b": "x"})).await
}

fn ids(seen: &[Seen]) -> BTreeSet<String> {
    seen.iter().map(|seen| seen.header("cachesql-request-id").expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn writes_go_to_the_leader_each_with_an_id_of_its_own() {
    let (leader, follower) = (Fake::new(written("main:1")).await, Fake::new(rows("main:1")).await);
    let client = client_of(&[&leader, &follower], seeded());
    for _ in 0..5 {
        assert_eq!(insert(&client).await.expect("written").affected, 1);
        client.delete("T", "a", 1).await.expect("written");
    }
    assert_eq!((leader.seen().len(), follower.seen().len()), (10, 0));
    assert_eq!(ids(&leader.seen()).len(), 10);
    // One batch, all or nothing: the row that was there goes, the new one comes.
    let sent: serde_json::Value = serde_json::from_str(&leader.seen()[0].body).expect("JSON");
    let texts: Vec<&str> =
        sent.as_array().expect("a batch").iter().map(|one| one["sql"].as_str().expect("text")).collect();
    assert_eq!(texts, ["DELETE FROM \"T\" WHERE \"a\" = $1", "INSERT INTO \"T\" (\"a\", \"b\") VALUES ($1, $2)"]);
}

#[tokio::test]
async fn a_leader_that_is_named_is_followed_and_remembered() {
    let (old, new) = (Fake::new(rows("main:1")).await, Fake::new(written("main:2")).await);
    let name = new.name.clone();
    old.does(move |_| not_leader(Some(&name)));
    let client = client_of(&[&old, &new], seeded());
    insert(&client).await.expect("the new leader takes it");
    insert(&client).await.expect("and the next");
    assert_eq!((old.seen().len(), new.seen().len()), (1, 2));
    assert_eq!(ids(&old.seen()).len() + ids(&new.seen()).len(), 3);
    assert!(ids(&new.seen()).is_superset(&ids(&old.seen())), "the same id on the way to the leader");
}

#[tokio::test]
async fn nodes_that_name_each_other_end_the_walk() {
    let (one, two) = (Fake::new(rows("main:1")).await, Fake::new(rows("main:1")).await);
    let (of_one, of_two) = (one.name.clone(), two.name.clone());
    one.does(move |_| not_leader(Some(&of_two)));
    two.does(move |_| not_leader(Some(&of_one)));
    let client = client_of(&[&one, &two], seeded().deadline(Duration::from_secs(2)));
    let began = Instant::now();
    let error = insert(&client).await.expect_err("nobody leads");
    assert!(matches!(&error, Error::WriteFailed { last } if last.contains("421")), "{error}");
    assert!(error.to_string().starts_with("All nodes failed for write, last error: "), "{error}");
    assert!(began.elapsed() < Duration::from_secs(3));
    // Each once a round, and rounds are 50, 100, 200, 400, 400 … ms apart: seven fit into two seconds.
    let asked = (one.seen().len(), two.seen().len());
    assert!(asked.0 == asked.1 && (2..=8).contains(&asked.0), "{asked:?}");
}

#[tokio::test]
async fn a_name_is_followed_once_a_round() {
    let (one, two, three) =
        (Fake::new(rows("main:1")).await, Fake::new(rows("main:1")).await, Fake::new(written("main:1")).await);
    // The first two name each other; the third, which nobody names, leads.
    let (of_one, of_two) = (one.name.clone(), two.name.clone());
    one.does(move |_| not_leader(Some(&of_two)));
    two.does(move |_| not_leader(Some(&of_one)));
    let client = client_of(&[&one, &two, &three], seeded());
    insert(&client).await.expect("the third takes it");
    assert_eq!([&one, &two, &three].map(|node| node.seen().len()), [1, 1, 1]);
}

#[tokio::test]
async fn a_retry_carries_the_same_id() {
    for failure in [
        Does::Reset,
        error(504, "08007", "whether the write was applied is not known"),
        error(500, "XX000", "internal error"),
    ] {
        let leader = Fake::new(failure.clone()).await;
        let follower = Fake::new(written("main:2")).await;
        let client = client_of(&[&leader, &follower], seeded());
        insert(&client).await.expect("the follower forwards it");
        assert_eq!((leader.seen().len(), follower.seen().len()), (1, 1), "{failure:?}");
        assert_eq!(ids(&leader.seen()), ids(&follower.seen()));
        assert_eq!(leader.seen()[0].body, follower.seen()[0].body);
    }
}

#[tokio::test]
async fn without_ids_an_unknown_outcome_ends_the_write() {
    let stalls = Does::Stall;
    for failure in [Does::Reset, stalls, error(504, "08007", "not known"), error(503, "57P01", "shutting down")] {
        let (leader, follower) = (Fake::new(failure.clone()).await, Fake::new(written("main:2")).await);
        let builder = seeded().request_ids(false).read_timeout(Duration::from_millis(100));
        let client = client_of(&[&leader, &follower], builder);
        let error = insert(&client).await.expect_err("not known");
        assert!(
            matches!(&error, Error::OutcomeUnknown { request_id: None, .. }) && !error.outcome_known(),
            "{failure:?}: {error}"
        );
        let text = error.to_string();
        assert!(text.starts_with("All nodes failed for write, last error: ") && text.ends_with("not known)"), "{text}");
        assert_eq!((leader.seen().len(), follower.seen().len()), (1, 0), "{failure:?}");
        assert_eq!(leader.seen()[0].header("cachesql-request-id"), None);
    }
}

#[tokio::test]
async fn without_ids_what_surely_was_not_applied_is_sent_elsewhere() {
    let (gone, follower) = (refusing().await, Fake::new(written("main:2")).await);
    let client = client_of(&[&gone, &follower], seeded().request_ids(false));
    insert(&client).await.expect("the follower forwards it");
    let (busy, follower) =
        (Fake::new(error(503, "53000", "too many writes are waiting")).await, Fake::new(written("main:2")).await);
    let client = client_of(&[&busy, &follower], seeded().request_ids(false));
    insert(&client).await.expect("the follower forwards it");
    assert_eq!((busy.seen().len(), follower.seen().len()), (1, 1));
}

#[tokio::test]
async fn a_kept_connection_that_broke_is_not_tried_again_without_an_id() {
    let leader = Fake::new(written("main:1")).await;
    let client = client_of(&[&leader], seeded().request_ids(false));
    insert(&client).await.expect("written");
    leader.does(|_| Does::Reset);
    assert!(matches!(insert(&client).await, Err(Error::OutcomeUnknown { .. })));
    assert_eq!(leader.seen().len(), 2);
}

#[tokio::test]
async fn a_refusal_is_the_callers_unless_an_earlier_try_is_in_doubt() {
    let duplicate = || error(409, "23505", "duplicate key");
    let (leader, follower) = (Fake::new(duplicate()).await, Fake::new(duplicate()).await);
    let client = client_of(&[&leader, &follower], seeded());
    let refused = insert(&client).await.expect_err("refused");
    assert!(refused.sqlstate() == Some("23505") && refused.outcome_known());
    assert_eq!(follower.seen().len(), 0);
    leader.does(|_| Does::Reset);
    let refused = insert(&client).await.expect_err("refused");
    assert!(refused.sqlstate() == Some("23505") && !refused.outcome_known());
}

#[tokio::test]
async fn all_nodes_down_is_said_in_the_originals_words() {
    let (one, two) = (refusing().await, refusing().await);
    let error = insert(&client_of(&[&one, &two], seeded())).await.expect_err("nobody is there");
    assert!(matches!(error, Error::WriteFailed { .. }) && error.outcome_known());
    let expected = format!("All nodes failed for write, last error: {}: cannot connect: ", two.url);
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn a_write_waits_for_an_election() {
    let (old, new) = (Fake::new(not_leader(None)).await, Fake::new(not_leader(None)).await);
    let client = client_of(&[&old, &new], seeded());
    let mut refusals = 2;
    new.does(move |_| {
        refusals -= 1;
        if refusals >= 0 { not_leader(None) } else { written("main:9") }
    });
    insert(&client).await.expect("the new leader takes it");
    assert_eq!(new.seen().len(), 3);
    assert_eq!(ids(&[old.seen(), new.seen()].concat()).len(), 1);
}

#[tokio::test]
async fn the_master_of_a_file_is_gone_and_its_members_know_who_leads() {
    let (gone, one, two) = (refusing().await, Fake::new(not_leader(None)).await, Fake::new(written("main:9")).await);
    let told = routes(Some(&two), 4, &[&one, &two]);
    one.tells(&told, "\"1\"");
    two.tells(&told, "\"1\"");
    let client = client_of(&[&gone, &one, &two], seeded());
    insert(&client).await.expect("the new leader takes it");
    assert_eq!((one.seen().len(), two.seen().len()), (0, 1), "the leader is asked for, and not guessed");
}

#[tokio::test]
async fn one_deadline_holds_for_a_write() {
    let nodes = [Fake::new(Does::Stall).await, Fake::new(Does::Stall).await];
    let client = client_of(&nodes.each_ref(), seeded().deadline(Duration::from_millis(300)));
    let began = Instant::now();
    let error = insert(&client).await.expect_err("nobody answers");
    assert!((290..900).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert!(matches!(error, Error::OutcomeUnknown { request_id: Some(_), .. }), "{error}");
}

#[tokio::test]
async fn who_asks_is_shown_and_is_no_secret_that_leaks() {
    let node = Fake::new(written("main:1")).await;
    let text =
        format!("cachesql.group.main.master={}\ncachesql.group.main.tables=T\ncachesql.token=s3cret\n", node.url);
    let client = open(&text, seeded());
    insert(&client).await.expect("written");
    assert_eq!(node.seen()[0].header("authorization"), Some("Bearer s3cret"));
    assert!(!format!("{client:?}").contains("s3cret"));
}
