//! Which nodes a read asks, and when it gives up.

use std::time::{Duration, Instant};

use cachesql_client::{Client, Error, Policy};

use crate::fake::{Does, Fake, client_of, cluster_of, error, not_leader, open, refusing, rows, seeded};

async fn three() -> [Fake; 3] {
    [Fake::new(rows("main:1")).await, Fake::new(rows("main:1")).await, Fake::new(rows("main:1")).await]
}

async fn get(client: &Client) -> Result<usize, Error> {
    client.get("T", "a", 1).await.map(|rows| rows.len())
}

#[tokio::test]
async fn seed_asks_the_leader_half_the_time_and_followers_alike() {
    let [leader, one, two] = three().await;
    let client = client_of(&[&leader, &one, &two], seeded());
    for _ in 0..600 {
        assert_eq!(get(&client).await.expect("answered"), 1);
    }
    let counts = [&leader, &one, &two].map(|node| node.seen().len());
    assert_eq!(counts.iter().sum::<usize>(), 600);
    // Binomial with n = 600: five standard deviations are 61 for a half, 53 for a quarter.
    assert!((239..=361).contains(&counts[0]), "{counts:?}");
    assert!((97..=203).contains(&counts[1]) && (97..=203).contains(&counts[2]), "{counts:?}");
}

#[tokio::test]
async fn leader_asks_the_leader_alone() {
    let [leader, one, two] = three().await;
    let client = client_of(&[&leader, &one, &two], seeded().policy(Policy::Leader));
    for _ in 0..20 {
        get(&client).await.expect("answered");
    }
    assert_eq!([&leader, &one, &two].map(|node| node.seen().len()), [20, 0, 0]);
}

#[tokio::test]
async fn a_node_that_fails_is_passed_over_at_once() {
    let html = Does::Answer { status: 502, headers: vec![("x", "y".into())], body: "<html>Bad Gateway".into() };
    let not_whole = Does::Answer { status: 200, headers: vec![("content-length", "999".into())], body: "{".into() };
    let failures =
        [Does::Reset, html, not_whole, error(503, "57P01", "shutting down"), error(503, "53200", "no memory")];
    for does in failures {
        let [leader, follower] = [Fake::new(does.clone()).await, Fake::new(rows("main:1")).await];
        let client = client_of(&[&leader, &follower], seeded().policy(Policy::Leader));
        assert_eq!(get(&client).await.expect("answered"), 1, "{does:?}");
        // A connection that was never used before is not tried twice.
        assert_eq!((leader.seen().len(), follower.seen().len()), (1, 1), "{does:?}");
    }
    let [gone, follower] = [refusing().await, Fake::new(rows("main:1")).await];
    let client = client_of(&[&gone, &follower], seeded().policy(Policy::Leader));
    assert_eq!(get(&client).await.expect("answered"), 1);
}

#[tokio::test]
async fn all_nodes_down_is_said_in_the_originals_words() {
    let (one, two) = (refusing().await, refusing().await);
    let client = client_of(&[&one, &two], seeded().policy(Policy::Leader));
    let error = get(&client).await.expect_err("nobody is there").to_string();
    let expected = format!("All nodes failed, last error: {}: cannot connect: ", two.url);
    assert!(error.starts_with(&expected), "{error}");
}

#[tokio::test]
async fn one_deadline_holds_over_all_tries() {
    let nodes: Vec<Fake> = three().await.into_iter().chain(three().await).collect();
    let builder =
        seeded().policy(Policy::Uniform).deadline(Duration::from_millis(300)).read_timeout(Duration::from_millis(140));
    let client = client_of(&nodes.iter().collect::<Vec<_>>(), builder);
    // With a connection to each, nothing but the clock keeps a request from leaving.
    while nodes.iter().any(|node| node.connections() == 0) {
        get(&client).await.expect("answered");
    }
    let before: usize = nodes.iter().map(|node| node.seen().len()).sum();
    nodes.iter().for_each(|node| node.does(|_| Does::Stall));
    let began = Instant::now();
    let error = get(&client).await.expect_err("nobody answers");
    let took = began.elapsed();
    // Two tries of 140 ms, and a third of what is left.
    assert!((280..900).contains(&took.as_millis()), "{took:?}");
    assert!(matches!(&error, Error::AllFailed { last } if last.contains("no answer within")), "{error}");
    assert_eq!(nodes.iter().map(|node| node.seen().len()).sum::<usize>() - before, 3);
}

#[tokio::test]
async fn a_node_is_left_out_after_three_failures_and_probed_later() {
    let [leader, follower] = [Fake::new(Does::Reset).await, Fake::new(rows("main:1")).await];
    let client = client_of(&[&leader, &follower], seeded().policy(Policy::Leader));
    for _ in 0..10 {
        get(&client).await.expect("the follower answers");
    }
    assert_eq!(leader.seen().len(), 3, "left out");
    leader.does(|_| rows("main:1"));
    // Half a second, and up to a quarter of it by chance. The clock stands still but for this step.
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(626)).await;
    tokio::time::resume();
    for _ in 0..5 {
        get(&client).await.expect("answered");
    }
    assert_eq!((leader.seen().len(), follower.seen().len()), (8, 10), "the probe succeeded, and it is asked again");
}

#[tokio::test]
async fn nodes_that_are_left_out_are_asked_when_nobody_else_answers() {
    let only = Fake::new(Does::Reset).await;
    let client = client_of(&[&only], seeded());
    for _ in 0..4 {
        get(&client).await.expect_err("it resets");
    }
    only.does(|_| rows("main:1"));
    assert_eq!(get(&client).await.expect("trying is better than failing"), 1);
}

#[tokio::test]
async fn a_node_that_is_behind_is_passed_over_and_the_leader_comes_last_but_surely() {
    let behind = || error(503, "57P03", "this node did not reach 7");
    let followers = [Fake::new(behind()).await, Fake::new(behind()).await, Fake::new(behind()).await];
    let leader = Fake::new(rows("main:7")).await;
    let mut nodes = vec![&leader];
    nodes.extend(&followers);
    // Whoever comes first, followers that were not asked yet come before the leader.
    for seed in 0..12 {
        let client = client_of(&nodes, Client::builder().policy(Policy::Uniform).seed(seed));
        assert_eq!(get(&client).await.expect("the leader has it"), 1);
    }
    assert_eq!(leader.seen().len(), 12);
    let asked: usize = followers.iter().map(|node| node.seen().len()).sum();
    assert_eq!(asked % 3, 0, "as soon as one follower is behind, all are asked before the leader");
    assert!(asked >= 3);
    // Being behind is no fault: they are not left out.
    let client = client_of(&nodes, seeded().policy(Policy::Leader));
    leader.does(move |_| error(503, "57P03", "not loaded yet"));
    for _ in 0..4 {
        get(&client).await.expect_err("all are behind");
    }
    assert!(followers.iter().all(|node| node.seen().len() >= 4));
}

#[tokio::test]
async fn a_refusal_is_the_callers_and_ends_the_read() {
    let [leader, follower] =
        [Fake::new(error(400, "42703", "column T.a does not exist")).await, Fake::new(rows("main:1")).await];
    let client = client_of(&[&leader, &follower], seeded().policy(Policy::Leader));
    let refused = get(&client).await.expect_err("refused");
    assert_eq!(
        (refused.sqlstate(), refused.to_string().as_str()),
        (Some("42703"), "column T.a does not exist (42703)")
    );
    assert!(matches!(&refused, Error::Refused(refusal) if refusal.status == 400 && refusal.node == leader.url));
    assert_eq!(follower.seen().len(), 0);
}

#[tokio::test]
async fn a_reader_that_must_lead_names_who_does() {
    let [one, two, leader] = three().await;
    let name = leader.name.clone();
    one.does(move |_| not_leader(Some(&name)));
    let client = client_of(&[&one, &two, &leader], seeded().policy(Policy::Leader));
    assert_eq!(get(&client).await.expect("answered"), 1);
    assert_eq!([&one, &two, &leader].map(|node| node.seen().len()), [1, 0, 1]);
}

#[tokio::test]
async fn an_unknown_table_and_no_groups_are_said_in_the_originals_words() {
    let node = Fake::new(rows("main:1")).await;
    let client = client_of(&[&node], seeded());
    let unknown = client.get("KCA9", "a", 1).await.expect_err("no group has it");
    assert_eq!(unknown.to_string(), "No group configured for table: KCA9");
    let empty = open("# nothing\n", seeded());
    assert_eq!(empty.get("T", "a", 1).await.expect_err("none").to_string(), "No groups configured");
    assert_eq!(empty.query("SELECT 1").await.expect_err("none").to_string(), "No groups configured");
    assert!(node.seen().is_empty());
}

#[tokio::test]
async fn a_connection_that_the_node_closed_is_no_failure() {
    let node = Fake::new(rows("main:1")).await;
    let client = client_of(&[&node], seeded());
    for _ in 0..3 {
        get(&client).await.expect("answered");
    }
    assert_eq!(node.connections(), 1, "it is kept");
    // Each answer is followed by the end of its connection, seen or unseen by the next call.
    node.does(|_| {
        let Does::Answer { status, mut headers, body } = rows("main:1") else { unreachable!() };
        headers.push(("connection", "close".into()));
        Does::Answer { status, headers, body }
    });
    for _ in 0..20 {
        get(&client).await.expect("answered");
    }
    assert_eq!(node.seen().len(), 23);
}

#[tokio::test]
async fn a_call_that_is_given_up_keeps_no_connection() {
    for silence in [Does::Stall, Does::Half] {
        let node = Fake::new(silence).await;
        let client = client_of(&[&node], seeded().deadline(Duration::from_millis(50)));
        let began = Instant::now();
        get(&client).await.expect_err("it says no more");
        assert!(began.elapsed() < Duration::from_secs(2));
        crate::fake::eventually("the connection is closed", || node.connections() == 0).await;
    }
}

#[tokio::test]
async fn a_table_that_moved_is_found_in_its_new_group_with_one_redirect() {
    let [old, new, _] = three().await;
    let nodes = [&old, &new];
    old.tells(&cluster_of(&nodes, &[("g", Some(&old), 1, &[&old], "T"), ("h", Some(&new), 1, &[&new], "U")]), "\"1\"");
    let client = seeded().connect(&old.url).await.expect("connected");
    get(&client).await.expect("answered");
    // The node has forgotten the table before the client hears of it.
    tokio::time::sleep(cachesql_client::limits::ROUTES_PAUSE).await;
    old.does(|_| error(404, "42P01", "table T does not exist"));
    let moved = cluster_of(&nodes, &[("g", Some(&old), 1, &[&old], "V"), ("h", Some(&new), 1, &[&new], "T")]);
    new.tells(&moved, "\"2\"");
    old.tells(&moved, "\"2\"");
    assert_eq!(get(&client).await.expect("the new group answers"), 1);
    assert!(old.seen().len() <= 2 && new.seen().len() == 1);
}
