//! The fault matrix with real processes. Those that take long are run by `cargo xtask faults`, which runs all of them, and holds them
//! to their times.

use std::time::{Duration, Instant};

use crate::processes::{Nodes, Writers, must_be_quick};

/// Rows that are enough to say that writes go on.
const SOME: usize = 20;
const LINEARIZABLE: &str = "Cachesql-Consistency: linearizable\r\n";

fn others(nodes: &Nodes, than: usize) -> Vec<usize> {
    (0..nodes.names.len()).filter(|at| *at != than).collect()
}

/// Row 1: writes resume, nothing is lost, and reads on the others never stop.
#[test]
fn row_01_the_leader_is_killed() {
    let mut nodes = Nodes::group(3, "");
    let leader = nodes.leader(&[0, 1, 2]);
    let left = others(&nodes, leader);
    let writers = Writers::start(&nodes, 4, &left);
    writers.go_on(SOME);
    nodes.kill(leader);
    let killed = Instant::now();
    for at in &left {
        let reply = nodes.sql(*at, "SELECT count(*) FROM written", "").expect("it answers");
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    writers.resume();
    must_be_quick("writes resume after the leader is killed", killed.elapsed(), Duration::from_secs(2));
    writers.go_on(SOME);
    let seen = writers.end();
    seen.check(&nodes);
    nodes.start(leader);
    nodes.wait_ready(leader);
    seen.check(&nodes);
}

/// Row 1, as the closing figure asks for it: twenty times.
#[test]
#[ignore = "long: cargo xtask faults"]
fn row_01_the_leader_is_killed_twenty_times() {
    let mut nodes = Nodes::group(3, "");
    let mut pauses = Vec::new();
    for _ in 0..20 {
        let leader = nodes.leader(&[0, 1, 2]);
        let writers = Writers::start(&nodes, 4, &others(&nodes, leader));
        writers.go_on(SOME);
        nodes.kill(leader);
        let killed = Instant::now();
        writers.resume();
        pauses.push(killed.elapsed());
        writers.go_on(SOME);
        let seen = writers.end();
        seen.check(&nodes);
        nodes.start(leader);
        nodes.wait_ready(leader);
        nodes.wait_members();
        seen.check(&nodes);
    }
    pauses.sort_unstable();
    eprintln!("pauses: {pauses:?}");
    must_be_quick("median until writes resume, of 20 kills", pauses[pauses.len() / 2], Duration::from_secs(2));
}

/// Row 2: no write fails.
#[test]
fn row_02_a_follower_is_killed() {
    let mut nodes = Nodes::group(3, "");
    let leader = nodes.leader(&[0, 1, 2]);
    let gone = others(&nodes, leader)[0];
    let writers = Writers::start(&nodes, 4, &others(&nodes, gone));
    writers.go_on(SOME);
    nodes.kill(gone);
    writers.go_on(10 * SOME);
    let seen = writers.end();
    assert!(seen.refused.is_empty() && seen.unknown.is_empty(), "{:?} {:?}", seen.refused, seen.unknown);
    seen.check(&nodes);
}

/// Row 3: writes fail with a clear error, and what is there is read at level `any` only, with its age.
#[test]
fn row_03_a_majority_is_killed() {
    let mut nodes = Nodes::group(3, "");
    nodes.done(0, "INSERT INTO written VALUES (0, 'before')");
    for (round, left) in [nodes.leader(&[0, 1, 2]), 0].into_iter().enumerate() {
        let gone = others(&nodes, left);
        gone.iter().for_each(|at| nodes.kill(*at));
        let began = Instant::now();
        let insert = format!("INSERT INTO written VALUES (-{round}1, 'x')");
        let refused = nodes.sql(left, &insert, "").expect("it answers");
        must_be_quick("a write without a majority fails", began.elapsed(), Duration::from_secs(3));
        // Where it was on its way already, it is not known what becomes of it.
        assert!(matches!(refused.status, 421 | 504), "{} {}", refused.status, refused.body);
        let refused = nodes.sql(left, "SELECT id FROM written", LINEARIZABLE).expect("it answers");
        assert!(matches!(refused.status, 421 | 503 | 504), "{} {}", refused.status, refused.body);
        let read = nodes.request(left, "GET", "/rest/written?id=eq.0", "", "").expect("it answers");
        assert_eq!((read.status, read.body.as_str()), (200, r#"[{"id":0,"v":"before"}]"#));
        // Where nobody has ever confirmed that it is the newest, it says nothing.
        let age = read.header("age").map(|age| age.parse::<u64>().expect("seconds"));
        assert!(age.is_none_or(|age| age >= 1), "nobody can confirm that it is the newest: {age:?}");
        gone.iter().for_each(|at| nodes.start(*at));
        gone.iter().for_each(|at| nodes.wait_ready(*at));
        nodes.leader(&[0, 1, 2]);
    }
}

/// Row 4: nothing is lost.
#[test]
fn row_04_all_are_killed() {
    let mut nodes = Nodes::group(3, "");
    let writers = Writers::start(&nodes, 4, &[0, 1, 2]);
    writers.go_on(5 * SOME);
    (0..3).for_each(|at| nodes.kill(at));
    let seen = writers.end();
    let began = Instant::now();
    (0..3).for_each(|at| nodes.start(at));
    (0..3).for_each(|at| nodes.wait_ready(at));
    eprintln!("all are ready again: {} ms", began.elapsed().as_millis());
    seen.check(&nodes);
    nodes.done(1, "INSERT INTO written VALUES (0, 'after')");
}

/// Row 5: it is another member now, which learns everything and then votes.
#[test]
fn row_05_a_voter_loses_its_disk() {
    let mut nodes = Nodes::group(3, "");
    let writers = Writers::start(&nodes, 2, &[0, 1, 2]);
    writers.go_on(SOME);
    let lost = others(&nodes, nodes.leader(&[0, 1, 2]))[0];
    nodes.kill(lost);
    std::fs::remove_dir_all(nodes.folder.path().join("data").join(&nodes.names[lost])).expect("removed");
    nodes.start(lost);
    nodes.wait_ready(lost);
    nodes.wait_members();
    let seen = writers.end();
    seen.check(&nodes);
    // It counts again: without another one there is a majority with it.
    let leader = nodes.leader(&[0, 1, 2]);
    let third = others(&nodes, leader).into_iter().find(|at| *at != lost).unwrap_or(leader);
    nodes.kill(third);
    nodes.wait("the two that are left go on", || {
        nodes.sql(lost, "UPDATE counters SET n = 1", "").is_some_and(|reply| reply.status == 200)
    });
}

/// Row 6: a leader that stood still acknowledges nothing that the others do not know, and does not read what is old as the newest.
#[test]
fn row_06_the_leader_stands_still() {
    let nodes = Nodes::group(3, "");
    nodes.done(0, "INSERT INTO counters VALUES (1, 0)");
    let leader = nodes.leader(&[0, 1, 2]);
    let left = others(&nodes, leader);
    nodes.signal(leader, "STOP");
    nodes.wait("another one leads", || {
        nodes.sql(left[0], "UPDATE counters SET n = 1 WHERE id = 1", "").is_some_and(|reply| reply.status == 200)
    });
    nodes.signal(leader, "CONT");
    let read = nodes.sql(leader, "SELECT n FROM counters WHERE id = 1", LINEARIZABLE);
    if let Some(read) = read.filter(|read| read.status == 200) {
        assert_eq!(read.json()["rows"][0][0], 1, "it read the past as the newest");
    }
    nodes.wait("it follows", || {
        nodes.sql(leader, "UPDATE counters SET n = n + 1 WHERE id = 1", "").is_some_and(|reply| reply.status == 200)
    });
    for at in 0..3 {
        let read = nodes.sql(at, "SELECT n FROM counters WHERE id = 1", LINEARIZABLE).expect("it answers");
        let count = read.json()["rows"][0][0].as_u64().expect("a number");
        assert!(count >= 2, "{}: {count}", nodes.names[at]);
    }
}

/// Row 7: it catches up, and does not make the leader grow meanwhile.
#[test]
#[ignore = "long: cargo xtask faults"]
fn row_07_a_follower_stands_still_for_a_minute() {
    let nodes = Nodes::group(3, "");
    let leader = nodes.leader(&[0, 1, 2]);
    let still = others(&nodes, leader)[0];
    let writers = Writers::start(&nodes, 4, &others(&nodes, still));
    writers.go_on(SOME);
    nodes.signal(still, "STOP");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        writers.go_on(SOME);
    }
    nodes.signal(still, "CONT");
    let seen = writers.end();
    let resumed = Instant::now();
    nodes.written(still);
    must_be_quick("a follower catches up", resumed.elapsed(), Duration::from_secs(30));
    seen.check(&nodes);
}

/// Row 8: the majority goes on, and the one that is cut off acknowledges nothing.
#[test]
fn row_08_the_leader_is_cut_off() {
    let nodes = Nodes::group(3, "");
    let leader = nodes.leader(&[0, 1, 2]);
    let left = others(&nodes, leader);
    let writers = Writers::start(&nodes, 4, &left);
    writers.go_on(SOME);
    nodes.cut(leader, true, true);
    let cut = Instant::now();
    let alone = Writers::start(&nodes, 1, &[leader]);
    writers.resume();
    must_be_quick("the majority goes on", cut.elapsed(), Duration::from_secs(2));
    writers.go_on(SOME);
    assert!(alone.end().acknowledged.is_empty(), "it acknowledged what no majority has");
    let refused = nodes.sql(leader, "SELECT id FROM written", LINEARIZABLE).expect("it answers");
    assert_ne!(refused.status, 200, "it cannot know that nothing is newer");
    let seen = writers.end();
    nodes.cut(leader, false, false);
    seen.check(&nodes);
}

/// Row 9: what the leader sends does not arrive, what others send does.
#[test]
fn row_09_the_leader_is_not_heard() {
    let nodes = Nodes::group(3, "");
    let leader = nodes.leader(&[0, 1, 2]);
    let left = others(&nodes, leader);
    let writers = Writers::start(&nodes, 4, &left);
    writers.go_on(SOME);
    nodes.cut(leader, true, false);
    let cut = Instant::now();
    writers.resume();
    must_be_quick("one of the others leads", cut.elapsed(), Duration::from_secs(5));
    writers.go_on(SOME);
    let seen = writers.end();
    nodes.cut(leader, false, false);
    seen.check(&nodes);
}

/// Row 10: two nodes do not reach each other, the third reaches both: one leads, and terms do not climb.
#[test]
#[ignore = "long: cargo xtask faults"]
fn row_10_one_node_sees_both_halves() {
    let nodes = Nodes::group(3, "");
    let leader = nodes.leader(&[0, 1, 2]);
    let left = others(&nodes, leader);
    nodes.part(leader, left[0], true);
    let writers = Writers::start(&nodes, 4, &[leader, left[1]]);
    writers.go_on(SOME);
    let term = |at: usize| nodes.cluster(at).map_or(0, |cluster| cluster["groups"][0]["term"].as_u64().unwrap_or(0));
    let before = term(left[1]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        writers.go_on(SOME);
    }
    assert!(term(left[1]) <= before + 2, "terms climb: {before}, {}", term(left[1]));
    let seen = writers.end();
    nodes.part(leader, left[0], false);
    seen.check(&nodes);
}

/// Row 11: links that come and go.
#[test]
#[ignore = "long: cargo xtask faults"]
fn row_11_links_flap() {
    let nodes = Nodes::group(3, "");
    let writers = Writers::start(&nodes, 4, &[0, 1, 2]);
    writers.go_on(SOME);
    let began = Instant::now();
    for second in 0..60 {
        let (at, parted) = (second / 2 % 3, second % 2 == 0);
        nodes.part(at, (at + 1) % 3, parted);
        while began.elapsed() < Duration::from_secs(second as u64 + 1) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    (0..3).for_each(|at| nodes.part(at, (at + 1) % 3, false));
    writers.go_on(SOME);
    writers.end().check(&nodes);
}

/// Row 15: a connection of which nothing is heard any more is given up, and the others go on.
#[test]
#[ignore = "long: cargo xtask faults"]
fn row_15_a_connection_is_half_open() {
    let nodes = Nodes::group(3, "");
    let leader = nodes.leader(&[0, 1, 2]);
    let silent = others(&nodes, leader)[0];
    nodes.cut(silent, true, true);
    let began = Instant::now();
    nodes.wait("its age tells", || {
        let read = nodes.request(silent, "GET", "/rest/written?limit=1", "", "").expect("it answers");
        read.header("age").and_then(|age| age.parse::<u64>().ok()).is_none_or(|age| age >= 4)
    });
    let refused = nodes.sql(silent, "INSERT INTO written VALUES (-1, 'x')", "").expect("it answers");
    assert!(matches!(refused.status, 421 | 504), "{} {}", refused.status, refused.body);
    must_be_quick("a silent connection is noticed", began.elapsed(), Duration::from_secs(9));
    nodes.cut(silent, false, false);
    nodes.wait("it is back", || {
        nodes.sql(silent, "INSERT INTO written VALUES (-2, 'x')", "").is_some_and(|reply| reply.status == 200)
    });
}

/// Row 20: rot is noticed; the node refuses to go on with it, and gets everything anew once it is taken away.
#[test]
fn row_20_a_bit_of_the_log_flips() {
    let mut nodes = Nodes::group(3, "");
    let writers = Writers::start(&nodes, 2, &[0, 1, 2]);
    writers.go_on(5 * SOME);
    let rotten = others(&nodes, nodes.leader(&[0, 1, 2]))[0];
    nodes.kill(rotten);
    let folder = nodes.folder.path().join("data").join(&nodes.names[rotten]);
    let group = folder.join("group-main");
    let logs = std::fs::read_dir(&group).expect("a folder").filter_map(|entry| Some(entry.ok()?.path()));
    let log = logs.filter(|path| path.extension().is_some_and(|e| e == "log")).min().expect("a log");
    let mut bytes = std::fs::read(&log).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).expect("written");
    nodes.start(rotten);
    nodes.wait("it refuses", || nodes.request(rotten, "GET", "/healthz", "", "").is_none());
    nodes.kill(rotten);
    std::fs::remove_dir_all(&folder).expect("removed");
    nodes.start(rotten);
    nodes.wait_ready(rotten);
    nodes.wait_members();
    let seen = writers.end();
    seen.check(&nodes);
}

/// Row 25: every node is restarted in turn.
#[test]
fn row_25_a_rolling_restart() {
    let mut nodes = Nodes::group(3, "");
    let writers = Writers::start(&nodes, 4, &[0, 1, 2]);
    writers.go_on(SOME);
    for at in 0..3 {
        nodes.stop(at);
        writers.go_on(SOME);
        nodes.start(at);
        nodes.wait_ready(at);
        nodes.wait("it is no follower behind", || nodes.written(at).len() > SOME);
    }
    let seen = writers.end();
    seen.check(&nodes);
    must_be_quick("longest pause of writes in a rolling restart", seen.longest_pause(), Duration::from_secs(2));
}
