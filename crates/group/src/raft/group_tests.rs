//! Members agree, whoever is gone. Time is paused: it passes when nobody has anything to do.
#![allow(clippy::expect_used)]

use std::collections::{HashMap, HashSet};

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use crate::disk::{Crash, MemoryDisk};
use crate::raft::testing::Words;
use crate::transport::{TransportError, Urgency};

type Here = Group<MemoryDisk, Words>;

/// Members that reach each other, unless somebody cuts a way.
#[derive(Default)]
struct Net {
    members: Mutex<HashMap<String, Arc<Here>>>,
    /// Who cannot reach whom.
    cut: Mutex<HashSet<(String, String)>>,
}

/// The net, as one member sees it.
struct From(Arc<Net>, String);

impl Transport for From {
    fn ask<'a>(
        &'a self,
        member: &'a str,
        _: Urgency,
        bytes: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<Bytes, TransportError>> {
        let way = (self.1.clone(), member.to_owned());
        let back = (way.1.clone(), way.0.clone());
        async move {
            let gone = || TransportError::Unreachable(format!("{member} is gone"));
            let to = self.0.members.lock().get(member).cloned().ok_or_else(gone)?;
            if self.0.cut.lock().contains(&way) {
                return Err(gone());
            }
            let answer = tokio::time::timeout(deadline, to.answer(&bytes)).await;
            if self.0.cut.lock().contains(&back) {
                return Err(TransportError::NoAnswer("cut on the way back".into()));
            }
            let answer = answer.map_err(|_| TransportError::NoAnswer("too late".into()))?;
            answer.map_err(|error| TransportError::NoAnswer(error.to_string()))
        }
        .boxed()
    }
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

struct Cluster {
    net: Arc<Net>,
    disks: Vec<MemoryDisk>,
}

fn config(number: u64) -> GroupConfig {
    GroupConfig {
        name: "g".into(),
        number,
        heartbeat: Duration::from_millis(100),
        election: (Duration::from_millis(300), Duration::from_millis(600)),
        snapshot_after: 1_000,
        kept_entries: 10,
        drive: Drive::Inline,
    }
}

impl Cluster {
    /// So many voters, founded.
    async fn of(voters: usize) -> Cluster {
        let mut cluster = Cluster { net: Arc::default(), disks: Vec::new() };
        for at in 0..voters {
            cluster.disks.push(MemoryDisk::default());
            cluster.start(at).await;
        }
        let members = (0..voters).map(|at| (at as u64 + 1, NAMES[at].to_owned())).collect();
        cluster.member(0).found(members).await.expect("founded");
        cluster.leader(0..voters).await;
        cluster
    }

    async fn start(&mut self, at: usize) {
        self.start_as(at, at as u64 + 1).await;
    }

    async fn start_as(&mut self, at: usize, number: u64) {
        let name = NAMES[at].to_owned();
        let transport = Arc::new(From(self.net.clone(), name.clone()));
        let disk = self.disks[at].clone();
        let group = Group::start(config(number), disk, Arc::default(), transport).await.expect("started");
        self.net.members.lock().insert(name, Arc::new(group));
    }

    fn member(&self, at: usize) -> Arc<Here> {
        self.net.members.lock().get(NAMES[at]).expect("there").clone()
    }

    /// Ends a member as a loss of power would, and leaves its disk as that would.
    async fn kill(&mut self, at: usize) {
        let disk = self.disks[at].crash(Crash::Lost);
        let gone = self.net.members.lock().remove(NAMES[at]).expect("there");
        // Whatever it writes from now on is lost.
        self.disks[at] = disk;
        gone.stop().await;
    }

    /// Cuts a member off from all others, or lets it back.
    fn isolate(&self, at: usize, isolated: bool) {
        let mut cut = self.net.cut.lock();
        for other in NAMES.iter().filter(|other| **other != NAMES[at]) {
            for way in [(NAMES[at], *other), (*other, NAMES[at])] {
                let way = (way.0.to_owned(), way.1.to_owned());
                if isolated {
                    cut.insert(way)
                } else {
                    cut.remove(&way)
                };
            }
        }
    }

    /// The one of these that leads and is confirmed to.
    async fn leader(&self, among: impl Iterator<Item = usize> + Clone) -> usize {
        for _ in 0..1_000 {
            for at in among.clone() {
                let member = self.member(at);
                let confirmed = tokio::time::timeout(Duration::from_secs(1), member.confirm()).await;
                if matches!(confirmed, Ok(Ok(_))) {
                    return at;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("nobody leads");
    }

    /// Waits until these members have applied what one of them has, and compares.
    async fn assert_same(&self, among: impl Iterator<Item = usize> + Clone) {
        let leader = self.leader(among.clone()).await;
        let applied = self.member(leader).status().applied;
        let wanted = self.member(leader).machine().0.read().clone();
        for at in among {
            let member = self.member(at);
            let there = member.wait_until(|status| status.applied >= applied);
            tokio::time::timeout(Duration::from_secs(60), there).await.expect("it catches up");
            assert_eq!(*member.machine().0.read(), wanted, "{}", NAMES[at]);
        }
    }
}

async fn propose(member: &Here, text: &str) -> Result<(u64, Bytes), ProposeError> {
    let proposing = member.propose(Bytes::from(text.to_owned()));
    tokio::time::timeout(Duration::from_secs(5), proposing).await.unwrap_or(Err(ProposeError::Unknown))
}

fn texts(member: &Here) -> Vec<String> {
    member.machine().0.read().iter().map(|(_, word)| String::from_utf8_lossy(word).into_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_proposed_is_applied_by_all_in_one_order() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader(0..3).await;
    let member = cluster.member(leader);
    let proposals = (0..50).map(|n| {
        let member = member.clone();
        async move { propose(&member, &format!("word {n}")).await.expect("agreed") }
    });
    let answered = futures::future::join_all(proposals).await;
    // The machine answers how many words there are: each was applied once, and its index is that of its word.
    let counts: HashSet<Bytes> = answered.iter().map(|(_, outcome)| outcome.clone()).collect();
    assert_eq!(counts, (1..=50).map(|n| Bytes::from(n.to_string())).collect());
    for (n, (index, _)) in answered.iter().enumerate() {
        assert!(member.machine().0.read().contains(&(*index, Bytes::from(format!("word {n}")))));
    }
    cluster.assert_same(0..3).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_says_who_leads() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader(0..3).await;
    let follower = (leader + 1) % 3;
    cluster.member(follower).wait_until(|status| status.leader.is_some()).await;
    let wanted = ProposeError::NotLeader { leader: Some(NAMES[leader].to_owned()) };
    assert_eq!(propose(&cluster.member(follower), "word").await, Err(wanted.clone()));
    assert_eq!(cluster.member(follower).confirm().await, Err(wanted));
    assert!(cluster.member(0).found([(1, "a".to_owned())].into()).await.is_err(), "a group is founded once");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_killed_nothing_acknowledged_is_lost() {
    let mut cluster = Cluster::of(3).await;
    let mut acknowledged = Vec::new();
    for round in 0..6 {
        let leader = cluster.leader(0..3).await;
        for n in 0..5 {
            let word = format!("{round}.{n}");
            propose(&cluster.member(leader), &word).await.expect("agreed");
            acknowledged.push(word);
        }
        // The leader, or one of the others.
        let victim = (leader + round % 3) % 3;
        cluster.kill(victim).await;
        let others = (0..3).filter(|at| *at != victim);
        let leader = cluster.leader(others.clone()).await;
        let word = format!("{round}.without {}", NAMES[victim]);
        propose(&cluster.member(leader), &word).await.expect("two of three agree");
        acknowledged.push(word);
        cluster.start(victim).await;
        cluster.assert_same(0..3).await;
        assert_eq!(texts(&cluster.member(victim)), acknowledged);
    }
    // All at once.
    for at in 0..3 {
        cluster.kill(at).await;
    }
    for at in 0..3 {
        cluster.start(at).await;
    }
    cluster.assert_same(0..3).await;
    assert_eq!(texts(&cluster.member(0)), acknowledged);
}

/// What its log has beyond its snapshot it has to apply first: it was agreed on.
#[tokio::test(start_paused = true)]
async fn a_leader_that_comes_back_answers_with_all_that_it_acknowledged() {
    let mut cluster = Cluster::of(3).await;
    let leader = cluster.leader(0..3).await;
    propose(&cluster.member(leader), "first").await.expect("agreed");
    cluster.member(leader).make_snapshot().await.expect("asked for");
    cluster.member(leader).wait_until(|status| status.snapshot.is_some()).await;
    let (last, _) = propose(&cluster.member(leader), "last").await.expect("agreed");
    for at in 0..3 {
        cluster.kill(at).await;
    }
    for at in 0..3 {
        cluster.start(at).await;
    }
    // Whoever is the first to say that it leads.
    let index = loop {
        let confirmed = tokio::time::timeout(Duration::from_secs(1), cluster.member(leader).confirm()).await;
        if let Ok(Ok(index)) = confirmed {
            break index;
        }
        let others = (0..3).filter(|at| *at != leader);
        if others.clone().any(|at| cluster.member(at).status().leads) {
            break cluster.member(cluster.leader(others).await).confirm().await.expect("it leads");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert!(index >= last, "{index} is less than {last}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_acknowledges_nothing() {
    let cluster = Cluster::of(3).await;
    let old = cluster.leader(0..3).await;
    propose(&cluster.member(old), "before").await.expect("agreed");
    cluster.isolate(old, true);
    assert!(propose(&cluster.member(old), "alone").await.is_err());
    assert!(cluster.member(old).confirm().await.is_err(), "nor does it say that what it has is the newest");
    let others = (0..3).filter(|at| *at != old);
    let new = cluster.leader(others).await;
    propose(&cluster.member(new), "together").await.expect("two of three agree");
    cluster.isolate(old, false);
    cluster.assert_same(0..3).await;
    assert_eq!(texts(&cluster.member(old)), ["before", "together"]);
}

#[tokio::test(start_paused = true)]
async fn two_of_three_gone_means_that_nothing_is_agreed_on() {
    let mut cluster = Cluster::of(3).await;
    let leader = cluster.leader(0..3).await;
    for at in (0..3).filter(|at| *at != leader) {
        cluster.kill(at).await;
    }
    assert!(propose(&cluster.member(leader), "alone").await.is_err());
    assert_eq!(texts(&cluster.member(leader)), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_new_member_gets_a_snapshot_and_then_votes() {
    let mut cluster = Cluster::of(1).await;
    let founder = cluster.member(0);
    // More than one piece.
    let long = "x".repeat(700_000);
    for _ in 0..5 {
        propose(&founder, &long).await.expect("agreed");
    }
    for n in 0..30 {
        propose(&founder, &n.to_string()).await.expect("agreed");
    }
    founder.make_snapshot().await.expect("asked for");
    founder.wait_until(|status| status.snapshot.is_some()).await;
    cluster.disks.push(MemoryDisk::default());
    cluster.start(1).await;
    founder.add_learner(2, "b").await.expect("taken in");
    cluster.assert_same(0..2).await;
    assert!(cluster.member(1).status().snapshot.is_some(), "the first entries were no longer there to be sent");
    assert_eq!(founder.status().learners, ["b".to_owned()].into());
    founder.set_voters([1, 2].into(), true).await.expect("both vote");
    assert_eq!(founder.status().voters, ["a".to_owned(), "b".to_owned()].into());
    cluster.kill(1).await;
    assert!(propose(&founder, "alone").await.is_err(), "one of two is no majority");
    cluster.start(1).await;
    cluster.assert_same(0..2).await;
}

/// What a member promised before it lost its disk, nobody knows: so nobody answers for it, and it is a new member.
#[tokio::test(start_paused = true)]
async fn a_member_that_lost_its_disk_is_another_one() {
    let mut cluster = Cluster::of(3).await;
    let at = cluster.leader(0..3).await;
    let (lost, other) = ((at + 1) % 3, (at + 2) % 3);
    let leader = cluster.member(at);
    propose(&leader, "before").await.expect("agreed");
    cluster.kill(lost).await;
    cluster.disks[lost] = MemoryDisk::default();
    cluster.start_as(lost, 9).await;
    let (old, new) = (lost as u64 + 1, cluster.member(lost));
    let vote = Ask::Vote(openraft::raft::VoteRequest::new(Vote::new(50, at as u64 + 1), None));
    let refused = new.answer(&vote.encode(old)).await;
    assert!(matches!(refused, Err(AnswerError::OtherMember { asked, found: 9 }) if asked == old), "{refused:?}");
    assert!(!new.is_founded().await.expect("it runs"), "it has no part in the group under its old number");

    leader.add_learner(9, NAMES[lost]).await.expect("taken in");
    leader.wait_until(|status| status.members.iter().any(|m| m.number == 9 && m.matched == status.last)).await;
    leader.promote(9, [old].into()).await.expect("it votes in the place of the old one");
    let members = leader.status().members;
    let mut found: Vec<(u64, bool)> = members.iter().map(|member| (member.number, member.votes)).collect();
    found.sort_unstable();
    let mut expected = [(at as u64 + 1, true), (other as u64 + 1, true), (9, true)];
    expected.sort_unstable();
    assert_eq!(found, expected);
    // It counts: with it and the leader there is a majority.
    cluster.kill(other).await;
    propose(&leader, "after").await.expect("two of three agree");
    cluster.assert_same([at, lost].into_iter()).await;
}

#[tokio::test(start_paused = true)]
async fn members_can_be_taken_out() {
    let cluster = Cluster::of(3).await;
    let at = cluster.leader(0..3).await;
    let leader = cluster.member(at);
    let gone = [(at as u64 + 1) % 3 + 1].into();
    leader.remove(gone).await.expect("taken out");
    assert_eq!(leader.status().members.len(), 2);
    propose(&leader, "word").await.expect("the two that are left agree");
}

#[tokio::test(start_paused = true)]
async fn leadership_is_handed_over() {
    let cluster = Cluster::of(3).await;
    let old = cluster.leader(0..3).await;
    let new = (old + 1) % 3;
    cluster.member(old).hand_over(new as u64 + 1).await.expect("asked");
    cluster.member(new).wait_until(|status| status.leads).await;
    assert_eq!(cluster.leader(0..3).await, new);
    propose(&cluster.member(new), "word").await.expect("agreed");
    cluster.assert_same(0..3).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_applied_stops_the_member() {
    let cluster = Cluster::of(1).await;
    let member = cluster.member(0);
    propose(&member, "word").await.expect("agreed");
    // It is agreed on, and stays in the log: what other members make of it, this one does not know.
    assert_eq!(propose(&member, "fence").await, Err(ProposeError::Unknown));
    member.wait_until(|status| status.stopped.is_some()).await;
    assert!(matches!(propose(&member, "word").await, Err(ProposeError::Stopped(_))));
    assert_eq!(texts(&member), ["word"]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fails_stops_the_member_and_not_the_group() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader(0..3).await;
    propose(&cluster.member(leader), "before").await.expect("agreed");
    cluster.disks[leader].fail_after(0);
    let failed = propose(&cluster.member(leader), "while it fails").await;
    cluster.member(leader).wait_until(|status| status.stopped.is_some()).await;
    let others = (0..3).filter(|at| *at != leader);
    let new = cluster.leader(others.clone()).await;
    propose(&cluster.member(new), "after").await.expect("two of three agree");
    cluster.assert_same(others).await;
    let found = texts(&cluster.member(new));
    assert_eq!((found.first().map(String::as_str), found.last().map(String::as_str)), (Some("before"), Some("after")));
    // Whether the others had it already is not known; that it was not acknowledged is.
    assert!(failed.is_err() || found.contains(&"while it fails".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_question_is_refused() {
    let cluster = Cluster::of(1).await;
    for bytes in [&b""[..], b"\x00", b"\xff\xff", b"\x01", b"\x04short"] {
        let bytes = [&1_u64.to_le_bytes(), bytes].concat();
        let refused = cluster.member(0).answer(&Bytes::from(bytes.clone())).await;
        assert!(matches!(refused, Err(AnswerError::Question(_))), "{bytes:?}");
    }
    propose(&cluster.member(0), "word").await.expect("it goes on");
}
