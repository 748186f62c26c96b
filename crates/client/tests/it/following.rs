//! Routes that nodes tell: at the beginning, when they change, and when a table is not known.

use std::time::Duration;

use cachesql_client::{Client, Error, Policy};

use crate::fake::{Fake, cluster_of, error, eventually, not_leader, refusing, routes, rows, seeded, written};

#[tokio::test]
async fn any_node_tells_the_routes() {
    let (leader, follower) = (Fake::new(rows("main:1")).await, Fake::new(rows("main:1")).await);
    follower.tells(&routes(Some(&leader), 3, &[&leader, &follower]), "\"1\"");
    let gone = refusing().await;
    let client =
        seeded().policy(Policy::Leader).connect(&format!("{}, {}", gone.url, follower.url)).await.expect("connected");
    client.get("t", "a", 1).await.expect("names match without case");
    assert_eq!((leader.seen().len(), follower.seen().len()), (1, 0));
    let error = seeded().connect(&gone.url).await.expect_err("nobody is there").to_string();
    assert!(error.starts_with(&format!("All nodes failed, last error: {}: cannot connect", gone.url)), "{error}");
    assert!(matches!(seeded().connect("localhost:80").await, Err(Error::Usage(_))));
    assert!(matches!(seeded().connect(" , ").await, Err(Error::Usage(_))));
}

/// No call fails, and none is needed, for the change to be known.
#[tokio::test]
async fn a_change_is_known_when_a_node_tells_it() {
    let (old, new) = (Fake::new(written("main:1")).await, Fake::new(written("main:2")).await);
    let both = [&old, &new];
    for node in both {
        node.tells(&routes(Some(&old), 1, &both), "\"1\"");
    }
    let client = seeded().connect(&old.url).await.expect("connected");
    client.delete("T", "a", 1).await.expect("written");
    // Whichever node is followed has been asked to hold its answer.
    eventually("a held question", || old.asked_for_routes() + new.asked_for_routes() >= 3).await;
    for node in both {
        node.tells(&routes(Some(&new), 2, &both), "\"2\"");
    }
    eventually("a question after the change", || old.asked_for_routes() + new.asked_for_routes() >= 4).await;
    client.delete("T", "a", 1).await.expect("written");
    assert_eq!((old.seen().len(), new.seen().len()), (1, 1), "no detour over the old leader");
}

#[tokio::test]
async fn routes_that_do_not_change_are_asked_for_once() {
    let node = Fake::new(rows("main:1")).await;
    node.tells(&routes(Some(&node), 1, &[&node]), "\"1\"");
    let client = seeded().connect(&node.url).await.expect("connected");
    eventually("a held question", || node.asked_for_routes() >= 3).await;
    for _ in 0..50 {
        client.get("T", "a", 1).await.expect("answered");
    }
    // To connect, to learn the mark, and the one that is held.
    let questions = node.questions();
    let asked: Vec<_> = questions.iter().map(|seen| (seen.path.as_str(), seen.header("if-none-match"))).collect();
    assert_eq!(asked, [("/v1/cluster", None), ("/v1/cluster", None), ("/v1/cluster?wait=30s", Some("\"1\""))]);
}

#[tokio::test]
async fn following_ends_with_the_last_clone() {
    let node = Fake::new(rows("main:1")).await;
    node.tells(&routes(Some(&node), 1, &[&node]), "\"1\"");
    let client = seeded().connect(&node.url).await.expect("connected");
    let clone = client.clone();
    drop(client);
    eventually("a held question", || node.asked_for_routes() >= 3).await;
    clone.get("T", "a", 1).await.expect("answered");
    assert!(node.connections() > 0);
    drop(clone);
    eventually("no connection", || node.connections() == 0).await;
}

#[tokio::test]
async fn a_table_that_is_not_known_is_asked_for_at_once() {
    let node = Fake::new(rows("main:1")).await;
    node.tells(&routes(Some(&node), 1, &[&node]), "\"1\"");
    let client = seeded().connect(&node.url).await.expect("connected");
    // Calls share what was asked for a moment ago.
    tokio::time::sleep(cachesql_client::limits::ROUTES_PAUSE).await;
    assert!(matches!(client.get("U", "a", 1).await, Err(Error::NoGroup { table }) if table == "U"));
    tokio::time::sleep(cachesql_client::limits::ROUTES_PAUSE).await;
    let more =
        cluster_of(&[&node], &[("main", Some(&node), 1, &[&node], "T"), ("other", Some(&node), 1, &[&node], "U")]);
    node.tells(&more, "\"2\"");
    client.get("U", "a", 1).await.expect("found");
    client.get("T", "a", 1).await.expect("and the other is still there");
}

#[tokio::test]
async fn a_leader_that_only_the_routes_know_is_found_after_not_leader() {
    let (old, new) = (Fake::new(written("main:1")).await, Fake::new(written("main:2")).await);
    let both = [&old, &new];
    for node in both {
        node.tells(&routes(Some(&old), 1, &both), "\"1\"");
    }
    let client = seeded().connect(&old.url).await.expect("connected");
    tokio::time::sleep(cachesql_client::limits::ROUTES_PAUSE).await;
    // A third node, of which the first routes know nothing, leads: it is named, and must be looked up.
    let third = Fake::new(written("main:3")).await;
    let name = third.name.clone();
    old.does(move |_| not_leader(Some(&name)));
    let all = [&old, &new, &third];
    for node in both {
        node.tells(&routes(Some(&third), 2, &all), "\"2\"");
    }
    client.delete("T", "a", 1).await.expect("written");
    assert!(old.seen().len() <= 1);
    assert_eq!((new.seen().len(), third.seen().len()), (0, 1));
}

#[tokio::test]
async fn a_member_that_is_gone_is_no_longer_asked() {
    let (leader, follower) = (Fake::new(rows("main:1")).await, Fake::new(rows("main:1")).await);
    leader.tells(&routes(Some(&leader), 1, &[&leader, &follower]), "\"1\"");
    let client = seeded().policy(Policy::Uniform).connect(&leader.url).await.expect("connected");
    tokio::time::sleep(Duration::from_millis(300)).await;
    leader.tells(&routes(Some(&leader), 1, &[&leader]), "\"2\"");
    follower.tells(&routes(Some(&leader), 1, &[&leader]), "\"2\"");
    let mut before = 0;
    let until = std::time::Instant::now() + Duration::from_secs(10);
    // Twenty reads that all go to the one that is left: by chance this is one in a million.
    while before < 20 {
        assert!(std::time::Instant::now() < until, "it is still asked");
        let asked = follower.seen().len();
        client.get("T", "a", 1).await.expect("answered");
        before = if follower.seen().len() == asked { before + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Each has its own deadline, though they share one question and what came of it.
#[tokio::test]
async fn calls_that_wait_for_the_routes_end_by_their_deadlines() {
    let node = Fake::new(rows("main:1")).await;
    node.tells(&routes(Some(&node), 1, &[&node]), "\"1\"");
    let client = seeded().deadline(Duration::from_millis(300)).connect(&node.url).await.expect("connected");
    eventually("a held question", || node.asked_for_routes() >= 3).await;
    node.falls_silent();
    let unknown = |client: Client| tokio::spawn(async move { client.get("U", "a", 1).await });
    let began = std::time::Instant::now();
    let mut calls: Vec<_> = (0..8).map(|_| unknown(client.clone())).collect();
    tokio::time::sleep(Duration::from_millis(150)).await;
    calls.push(unknown(client.clone()));
    for call in calls {
        assert!(matches!(call.await.expect("no panic"), Err(Error::NoGroup { .. })));
    }
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!(node.asked_for_routes(), 4, "one question for all of them");
}

/// The read is in the middle of its nodes when the routes turn out to be others.
#[tokio::test]
async fn a_read_that_nobody_answered_asks_the_members_of_newer_routes() {
    let (old, new) = (Fake::new(rows("main:1")).await, Fake::new(rows("main:1")).await);
    old.tells(&routes(Some(&old), 1, &[&old]), "\"1\"");
    let client = seeded().connect(&old.url).await.expect("connected");
    tokio::time::sleep(cachesql_client::limits::ROUTES_PAUSE).await;
    old.does(|_| error(503, "57P01", "shutting down"));
    old.tells(&routes(Some(&new), 2, &[&new]), "\"2\"");
    client.get("T", "a", 1).await.expect("the new member answers");
    assert!(old.seen().len() <= 1 && new.seen().len() == 1);
}

#[tokio::test]
async fn a_write_to_a_table_that_moved_goes_to_its_new_group() {
    let (old, new) = (Fake::new(written("g:1")).await, Fake::new(written("h:1")).await);
    let nodes = [&old, &new];
    old.tells(&cluster_of(&nodes, &[("g", Some(&old), 1, &[&old], "T"), ("h", Some(&new), 1, &[&new], "U")]), "\"1\"");
    let client = seeded().connect(&old.url).await.expect("connected");
    tokio::time::sleep(cachesql_client::limits::ROUTES_PAUSE).await;
    old.does(|_| error(404, "42P01", "table T does not exist"));
    let moved = cluster_of(&nodes, &[("g", Some(&old), 1, &[&old], "V"), ("h", Some(&new), 1, &[&new], "T")]);
    new.tells(&moved, "\"2\"");
    old.tells(&moved, "\"2\"");
    let done = client.delete("T", "a", 1).await.expect("the new group takes it");
    assert_eq!(done.token.expect("one").group, "h");
    assert!(old.seen().len() <= 1 && new.seen().len() == 1);
}
