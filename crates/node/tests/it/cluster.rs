//! Groups of several members, each a node of its own over TCP on this machine: what one acknowledges, all have.

use std::sync::Arc;
use std::time::Duration;

use cachesql_node::{
    ClusterConfig, ClusterSecret, Consistency, Failover, Filter, Node, NodeConfig, NodeError, OnConflict,
    RequestOptions, Statement, TableConfig, Write,
};
use cachesql_types::{Token, Value};
use tempfile::TempDir;
use testbed::Loopback;
use tokio::time::sleep;

use crate::fixture::{Place, empty, patiently, query, run, table, texts, write};

/// Time between two looks for what comes about by itself.
const LOOK: Duration = Duration::from_millis(20);

/// The nodes of one group, by the positions of their names.
struct Cluster {
    place: Place,
    folder: Option<TempDir>,
    names: Vec<&'static str>,
    addresses: Vec<String>,
    failover: Failover,
    tables: Vec<TableConfig>,
    nodes: Vec<Option<Arc<Node>>>,
    starts: u64,
    /// Held as long as nodes may start again.
    _network: Loopback,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl Cluster {
    /// So many members, with these tables; all of them are in, and vote if that is how they fail over.
    async fn of(members: usize, failover: Failover, tables: Vec<TableConfig>) -> Cluster {
        let mut cluster = Cluster::unstarted(members, failover, tables);
        for at in 0..members {
            cluster.start(at).await;
        }
        cluster.settled().await;
        cluster
    }

    fn unstarted(members: usize, failover: Failover, tables: Vec<TableConfig>) -> Cluster {
        let network = Loopback::new();
        let addresses = (0..members).map(|at| network.peer(at).to_string()).collect();
        let place =
            Place::new("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO people VALUES (1, '王');");
        let names = NAMES.into_iter().take(members).collect();
        let nodes = (0..members).map(|_| None).collect();
        Cluster { place, folder: None, names, addresses, failover, tables, nodes, starts: 0, _network: network }
    }

    /// Nodes started from now on keep what they acknowledge.
    fn keeping(mut self) -> Cluster {
        self.folder = Some(tempfile::tempdir().expect("temporary folder"));
        self
    }

    fn config(&mut self, at: usize) -> NodeConfig {
        self.starts += 1;
        let seed = self.starts * 1_000_003;
        let nodes = self.names.iter().zip(&self.addresses).map(|(n, a)| ((*n).to_owned(), a.clone()));
        let cluster = ClusterConfig {
            name: "test".into(),
            secret: ClusterSecret::new("sixteen bytes or more"),
            listen: self.addresses[at].clone(),
            nodes: nodes.collect(),
            members: self.names.iter().map(|name| (*name).to_owned()).collect(),
            leader: None,
            failover: self.failover,
            // Foretold by nobody who is here.
            randomness: Arc::new(move |bytes: &mut [u8]| {
                let hash = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), seed);
                bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = hash.rotate_left(i as u32).to_le_bytes()[0]);
            }),
        };
        NodeConfig {
            name: self.names[at].into(),
            group: "g".into(),
            seed,
            cluster: Some(cluster),
            data: self.folder.as_ref().map(|folder| folder.path().join(self.names[at])),
            ..self.place.config(self.tables.clone())
        }
    }

    async fn start(&mut self, at: usize) {
        let config = self.config(at);
        self.nodes[at] = Some(Node::start(config).await.expect("it starts"));
    }

    async fn stop(&mut self, at: usize) {
        let node = self.nodes[at].take().expect("it runs");
        patiently(node.shutdown()).await;
    }

    fn node(&self, at: usize) -> &Arc<Node> {
        self.nodes[at].as_ref().expect("it runs")
    }

    fn running(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter().flatten()
    }

    /// Waits until the members are who they should be, as all that run see it, and every table is there.
    async fn settled(&self) {
        let wanted = self.names.len();
        let voters = if self.failover == Failover::Automatic { wanted } else { 1 };
        patiently(async {
            for node in self.running() {
                let is_settled = || {
                    let status = node.group_status().expect("a member");
                    let votes = status.members.iter().filter(|member| member.votes).count();
                    (status.members.len(), votes) == (wanted, voters) && status.leader.is_some() && node.ready()
                };
                while !is_settled() {
                    sleep(LOOK).await;
                }
            }
        })
        .await;
    }

    /// The position of the node that leads, once those that run agree on one of them.
    async fn leader(&self) -> usize {
        patiently(async {
            loop {
                let told: Vec<_> = self.running().map(|node| node.group_status().and_then(|s| s.leader)).collect();
                let leading = self.nodes.iter().position(|node| {
                    node.as_ref().is_some_and(|node| node.group_status().is_some_and(|status| status.leads))
                });
                if let Some(at) = leading
                    && told.iter().all(|name| name.as_deref() == Some(self.names[at]))
                {
                    return at;
                }
                sleep(LOOK).await;
            }
        })
        .await
    }

    async fn follower(&self) -> usize {
        let leader = self.leader().await;
        (0..self.names.len()).find(|at| *at != leader && self.nodes[*at].is_some()).expect("another runs")
    }

    async fn shutdown(mut self) {
        for at in 0..self.nodes.len() {
            if self.nodes[at].is_some() {
                self.stop(at).await;
            }
        }
    }
}

fn at_least(token: &Token) -> RequestOptions {
    RequestOptions { consistency: Consistency::Session(Some(token.clone())), ..RequestOptions::default() }
}

fn with(consistency: Consistency) -> RequestOptions {
    RequestOptions { consistency, ..RequestOptions::default() }
}

fn named(id: &str) -> RequestOptions {
    RequestOptions { request_id: Some(id.into()), ..RequestOptions::default() }
}

async fn rows_with(node: &Node, sql: &str, options: &RequestOptions) -> Vec<String> {
    let answer = patiently(node.sql(Statement::new(sql), options)).await.expect("a query that works");
    texts(answer.rows.expect("rows")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_member_that_was_written_through_shows_what_was_written() {
    let cluster = Cluster::of(3, Failover::Automatic, vec![empty("t")]).await;
    let follower = cluster.node(cluster.follower().await).clone();
    assert_eq!(write(&follower, "INSERT INTO t VALUES (1, 'a'), (2, 'b')").await, 2);
    assert_eq!(query(&follower, "SELECT id, v FROM t ORDER BY id").await, ["1|a", "2|b"]);
    // RETURNING comes from the leader.
    let answer = run(&follower, "UPDATE t SET v = 'c' WHERE id = 1 RETURNING v").await.expect("a write");
    assert_eq!(answer.served_by.as_ref(), follower.name());
    assert_eq!(texts(answer.rows.expect("returning")).await, ["c"]);
    // A batch, a typed write, the original's, and everything else that changes rows.
    let batch = vec![Statement::new("INSERT INTO t VALUES (3, 'x')"), Statement::new("SELECT count(*) FROM t")];
    let mut answers = patiently(follower.batch(batch, &RequestOptions::default())).await.expect("a batch").answers;
    assert_eq!(texts(answers.pop().and_then(|a| a.rows).expect("rows")).await, ["3"]);
    let seen = follower.snapshot();
    let insert = Write::Insert {
        table: "t".into(),
        columns: vec![0, 1],
        rows: vec![vec![Value::BigInt(4), Value::text("y")]],
        on_conflict: OnConflict::Refuse,
        returning: true,
    };
    let written = patiently(follower.write(&seen, insert, &RequestOptions::default())).await.expect("a typed write");
    assert_eq!((written.affected, texts(written.returning.expect("asked for")).await), (1, vec!["4|y".to_owned()]));
    let delete = Write::Delete {
        table: "t".into(),
        filter: Some(Filter::Not(Box::new(Filter::equal(0, Value::BigInt(4))))),
        returning: false,
    };
    let written = patiently(follower.write(&seen, delete, &RequestOptions::default())).await.expect("a typed write");
    assert_eq!((written.affected, query(&follower, "SELECT id FROM t").await), (3, vec!["4".to_owned()]));
    let (original, others) = (follower.original(), [("v".to_owned(), "z".to_owned())]);
    patiently(original.insert("t", "id", "5", &others, &RequestOptions::default())).await.expect("inserted");
    assert_eq!(query(&follower, "SELECT v FROM t WHERE id = 5").await, ["z"]);
    patiently(follower.set_ttl("t", Some(Duration::from_secs(3_600)))).await.expect("set");
    patiently(follower.set_max_rows("t", Some(10))).await.expect("set");
    let retention = follower.snapshot().table("t").expect("there").retention();
    assert_eq!((retention.ttl_ms, retention.max_rows), (Some(3_600_000), Some(10)));
    assert_eq!(patiently(follower.clean("t")).await.expect("cleaned"), 0);
    assert_eq!(patiently(follower.compact("t")).await.expect("compacted"), 2);
    assert_eq!(patiently(follower.truncate("t")).await.expect("emptied"), 2);
    assert_eq!(query(&follower, "SELECT count(*) FROM t").await, ["0"]);
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_comes_to_hold_the_same() {
    let cluster = Cluster::of(3, Failover::Automatic, vec![empty("t"), table("people")]).await;
    let mut newest = None;
    for at in 0..3 {
        let node = cluster.node(at);
        let sql = format!("INSERT INTO t VALUES ({at}, 'of {}')", node.name());
        newest = Some(run(node, &sql).await.expect("a write").token);
    }
    run(cluster.node(1), "CREATE TABLE made (id BIGINT PRIMARY KEY)").await.expect("made");
    let token = run(cluster.node(2), "CREATE INDEX by_v ON t (v)").await.expect("an index").token;
    assert!(newest.expect("written").index < token.index);
    for at in 0..3 {
        let node = cluster.node(at);
        let options = at_least(&token);
        assert_eq!(rows_with(node, "SELECT id, v FROM t ORDER BY id", &options).await, ["0|of a", "1|of b", "2|of c"]);
        assert_eq!(rows_with(node, "SELECT id, name FROM people", &options).await, ["1|王"]);
        let snapshot = node.snapshot();
        assert_eq!(snapshot.table("t").map(|t| t.schema().indexes.len()), Some(1));
        assert!(snapshot.table("made").is_some());
    }
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_see_as_much_as_they_ask_for() {
    let cluster = Cluster::of(3, Failover::Automatic, vec![empty("t")]).await;
    let leader = cluster.node(cluster.leader().await).clone();
    let follower = cluster.node(cluster.follower().await).clone();
    for n in 0..50 {
        let token = run(&leader, &format!("INSERT INTO t VALUES ({n}, 'x')")).await.expect("a write").token;
        let wanted = [(n + 1).to_string()];
        assert_eq!(rows_with(&follower, "SELECT count(*) FROM t", &at_least(&token)).await, wanted);
        run(&leader, &format!("UPDATE t SET v = '{n}' WHERE id = 0")).await.expect("a write");
        let linearizable = with(Consistency::Linearizable);
        assert_eq!(rows_with(&follower, "SELECT v FROM t WHERE id = 0", &linearizable).await, [n.to_string()]);
    }
    // Operators see who leads, and how far each is.
    let measured = |node: &Node, what: &str| {
        let mut text = String::new();
        node.metrics_into(&mut text).expect("text");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cachesql_{what} ")).map(str::to_owned));
        line.and_then(|number| number.parse::<i64>().ok()).expect("a gauge")
    };
    assert_eq!((measured(&leader, "group_leads"), measured(&follower, "group_leads")), (1, 0));
    assert!(measured(&follower, "group_applied") >= measured(&follower, "snapshot_index"));
    assert!((0..60_000).contains(&measured(&follower, "rows_age_milliseconds")));
    // Nothing is newer than now: this is as strict.
    run(&leader, "UPDATE t SET v = 'newest' WHERE id = 0").await.expect("a write");
    let bounded = with(Consistency::Bounded(Duration::ZERO));
    assert_eq!(rows_with(&follower, "SELECT v FROM t WHERE id = 0", &bounded).await, ["newest"]);
    let age = follower.age().expect("it has asked");
    let lax = with(Consistency::Bounded(age + Duration::from_secs(60)));
    rows_with(&follower, "SELECT v FROM t WHERE id = 0", &lax).await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_the_same_through_every_member() {
    let cluster = Cluster::of(3, Failover::Automatic, vec![empty("t")]).await;
    write(cluster.node(0), "INSERT INTO t VALUES (1, 'a')").await;
    let wrong = ["INSERT INTO t VALUES (1, 'b')", "INSERT INTO missing VALUES (1)", "INSERT INTO t (nix) VALUES (1)"];
    for sql in wrong {
        let mut told = Vec::new();
        for at in 0..3 {
            let error = run(cluster.node(at), sql).await.expect_err("it cannot be done");
            told.push((error.sqlstate(), error.to_string()));
        }
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    }
    let error = patiently(cluster.node(cluster.follower().await).load("t")).await.expect_err("no source");
    assert_eq!(error.sqlstate(), "55000", "{error}");
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_applied_once_whoever_is_asked() {
    let cluster = Cluster::of(3, Failover::Automatic, vec![empty("t")]).await;
    let insert = || Statement::new("INSERT INTO t VALUES (1, 'a') RETURNING id");
    let first = patiently(cluster.node(0).sql(insert(), &named("once"))).await.expect("a new row");
    for at in [1, 2, 0] {
        let again = patiently(cluster.node(at).sql(insert(), &named("once"))).await.expect("the answer of then");
        assert_eq!((again.replayed, again.token, again.affected), (true, first.token.clone(), Some(1)));
    }
    // Also when another leads.
    let mut cluster = cluster;
    let leader = cluster.leader().await;
    cluster.stop(leader).await;
    let next = cluster.leader().await;
    let again = patiently(cluster.node(next).sql(insert(), &named("once"))).await.expect("the answer of then");
    assert!(again.replayed);
    assert_eq!(query(cluster.node(next), "SELECT count(*) FROM t").await, ["1"]);
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_member_takes_over_with_everything() {
    let mut cluster = Cluster::of(3, Failover::Automatic, vec![empty("t"), table("people")]).await;
    let leader = cluster.leader().await;
    let token = run(cluster.node(leader), "INSERT INTO t VALUES (1, 'a')").await.expect("a write").token;
    cluster.stop(leader).await;
    let next = cluster.leader().await;
    assert_ne!(next, leader);
    for at in (0..3).filter(|at| *at != leader) {
        assert_eq!(rows_with(cluster.node(at), "SELECT v FROM t", &at_least(&token)).await, ["a"]);
    }
    // The new leader serves writes and loads, also through the other one.
    let other = cluster.follower().await;
    write(cluster.node(other), "INSERT INTO t VALUES (2, 'b')").await;
    cluster.place.execute("INSERT INTO people VALUES (2, NULL)");
    let report = patiently(cluster.node(other).load("people")).await.expect("loaded");
    assert_eq!((report.rows, report.put), (2, 1));
    assert_eq!(query(cluster.node(other), "SELECT count(*) FROM people").await, ["2"]);
    // The one that was gone has lost its memory: it comes back as a new member, and gets all of it.
    cluster.start(leader).await;
    cluster.settled().await;
    let linearizable = with(Consistency::Linearizable);
    assert_eq!(rows_with(cluster.node(leader), "SELECT v FROM t ORDER BY id", &linearizable).await, ["a", "b"]);
    // With it there is a majority again when another goes.
    cluster.stop(other).await;
    write(cluster.node(leader), "INSERT INTO t VALUES (3, 'c')").await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_them_come_back_with_what_they_kept() {
    let mut cluster = Cluster::unstarted(3, Failover::Automatic, vec![empty("t")]).keeping();
    for at in 0..3 {
        cluster.start(at).await;
    }
    cluster.settled().await;
    write(cluster.node(1), "INSERT INTO t VALUES (1, 'a')").await;
    for at in 0..3 {
        cluster.stop(at).await;
    }
    for at in 0..3 {
        cluster.start(at).await;
    }
    cluster.settled().await;
    for at in 0..3 {
        let linearizable = with(Consistency::Linearizable);
        assert_eq!(rows_with(cluster.node(at), "SELECT v FROM t", &linearizable).await, ["a"]);
    }
    cluster.shutdown().await;
}

/// A founder that lost its disk finds a group that others are in, and joins that.
#[tokio::test(flavor = "multi_thread")]
async fn a_founder_without_its_disk_founds_nothing() {
    let mut cluster = Cluster::of(3, Failover::Automatic, vec![empty("t")]).await;
    write(cluster.node(0), "INSERT INTO t VALUES (1, 'a')").await;
    cluster.stop(0).await;
    let term = cluster.node(cluster.leader().await).group_status().expect("a member").term;
    cluster.start(0).await;
    cluster.settled().await;
    let linearizable = with(Consistency::Linearizable);
    assert_eq!(rows_with(cluster.node(0), "SELECT v FROM t", &linearizable).await, ["a"]);
    assert!(cluster.node(0).group_status().expect("a member").term >= term);
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_founded_until_every_member_was_heard() {
    let mut cluster = Cluster::unstarted(3, Failover::Automatic, vec![empty("t")]);
    cluster.start(0).await;
    cluster.start(1).await;
    let error = run(cluster.node(0), "INSERT INTO t VALUES (1, 'a')").await.expect_err("there is no group yet");
    assert_eq!(error.sqlstate(), "57P03", "{error}");
    let error = run(cluster.node(1), "CREATE TABLE u (id BIGINT)").await.expect_err("there is no group yet");
    assert!(matches!(error, NodeError::NotLeader { leader: None, .. }), "{error}");
    cluster.start(2).await;
    cluster.settled().await;
    write(cluster.node(1), "INSERT INTO t VALUES (1, 'a')").await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_says_who_leads_and_who_goes() {
    let mut cluster = Cluster::of(3, Failover::Automatic, vec![empty("t")]).await;
    let (old, next) = (cluster.leader().await, cluster.follower().await);
    let third = 3 - old - next;
    patiently(cluster.node(third).hand_over(NAMES[next])).await.expect("asked for through any member");
    patiently(async {
        while cluster.leader().await != next {
            sleep(LOOK).await;
        }
    })
    .await;
    write(cluster.node(old), "INSERT INTO t VALUES (1, 'a')").await;
    patiently(cluster.node(next).take_out(NAMES[third])).await.expect("taken out");
    let status = cluster.node(next).group_status().expect("a member");
    assert_eq!(status.members.iter().map(|m| m.node.as_str()).collect::<Vec<_>>().len(), 2);
    cluster.stop(third).await;
    write(cluster.node(old), "INSERT INTO t VALUES (2, 'b')").await;
    let error = patiently(cluster.node(next).take_out("nobody")).await.expect_err("not a member");
    assert_eq!(error.sqlstate(), "55000", "{error}");
    cluster.shutdown().await;
}

/// One votes, the others hold the same: without the one, what is there is read, and nothing is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_manual_group_waits_for_its_leader() {
    let mut cluster = Cluster::unstarted(2, Failover::Manual, vec![empty("t")]).keeping();
    cluster.start(0).await;
    cluster.start(1).await;
    cluster.settled().await;
    let token = run(cluster.node(1), "INSERT INTO t VALUES (1, 'a')").await.expect("a write").token;
    assert_eq!(cluster.leader().await, 0);
    cluster.stop(0).await;
    let error = run(cluster.node(1), "INSERT INTO t VALUES (2, 'b')").await.expect_err("nobody leads");
    assert!(matches!(error, NodeError::NotLeader { .. } | NodeError::Unknown), "{error}");
    let linearizable = with(Consistency::Linearizable);
    let refused = patiently(cluster.node(1).sql(Statement::new("SELECT v FROM t"), &linearizable)).await;
    assert!(refused.is_err(), "nobody can say that nothing newer was written");
    assert_eq!(rows_with(cluster.node(1), "SELECT v FROM t", &at_least(&token)).await, ["a"]);
    cluster.start(0).await;
    patiently(async {
        while run(cluster.node(1), "INSERT INTO t VALUES (3, 'c')").await.is_err() {
            sleep(LOOK).await;
        }
    })
    .await;
    // An operator has the other one lead.
    patiently(cluster.node(0).hand_over("b")).await.expect("asked");
    patiently(async {
        while cluster.leader().await != 1 {
            sleep(LOOK).await;
        }
    })
    .await;
    write(cluster.node(0), "INSERT INTO t VALUES (4, 'd')").await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_another_secret_or_name_is_no_member() {
    let mut cluster = Cluster::of(3, Failover::Automatic, vec![empty("t")]).await;
    let gone = cluster.follower().await;
    cluster.stop(gone).await;
    let mut stranger = cluster.config(gone);
    stranger.cluster.as_mut().expect("there").secret = ClusterSecret::new("another secret of bytes");
    let stranger = Node::start(stranger).await.expect("it starts, and waits");
    write(cluster.node(cluster.leader().await), "INSERT INTO t VALUES (1, 'a')").await;
    let error = run(&stranger, "CREATE TABLE u (id BIGINT)").await.expect_err("it is in no group");
    assert!(matches!(error, NodeError::NotLeader { leader: None, .. }), "{error}");
    assert!(stranger.group_status().expect("a status").members.is_empty());
    patiently(stranger.shutdown()).await;
    cluster.start(gone).await;
    cluster.settled().await;
    cluster.shutdown().await;
}
