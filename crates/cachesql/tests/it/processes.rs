//! The nodes of a cluster, each a process of its own, with a way between each two that a test can cut.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use testbed::Loopback;

use crate::http::{self, Reply};
use crate::proxy::Proxy;
use crate::running::cachesql;

/// Longer than anything here takes, so that what hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two looks for what comes about by itself.
const LOOK: Duration = Duration::from_millis(20);
/// Longer than a node takes to say that it does not know.
const ASK_WAIT: Duration = Duration::from_secs(10);

/// Figures of the fault matrix hold on machines that have time for them: they are checked where they are asked for.
pub(crate) fn must_be_quick(what: &str, took: Duration, most: Duration) {
    eprintln!("{what}: {} ms", took.as_millis());
    if std::env::var_os("CACHESQL_FAULT_TIMES").is_some() {
        assert!(took <= most, "{what} took {took:?}, more than {most:?}");
    }
}

/// The nodes of one group, or of several.
pub(crate) struct Nodes {
    pub(crate) folder: TempDir,
    pub(crate) names: Vec<String>,
    /// Where each answers HTTP.
    pub(crate) http: Vec<SocketAddr>,
    files: Vec<PathBuf>,
    children: Vec<Option<Child>>,
    /// The way from each node to each other one; none where the nodes reach each other directly.
    ways: Vec<Vec<Option<Proxy>>>,
    /// Held as long as the nodes may start again.
    network: Loopback,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// What the group of [`Nodes::group`] holds.
const TABLES: &str = "[tables.written]\ncolumns = { id = \"BIGINT\", v = \"TEXT\" }\nkey = [\"id\"]\n\
                      [tables.counters]\ncolumns = { id = \"BIGINT\", n = \"BIGINT\" }\nkey = [\"id\"]\n";

impl Nodes {
    /// A group of so many members that keep what they acknowledge, all of them in; `more` is added to each node's file.
    pub(crate) fn group(members: usize, more: &str) -> Nodes {
        let network = Loopback::new();
        let http: Vec<SocketAddr> = (0..members).map(|at| network.http(at)).collect();
        let peers: Vec<SocketAddr> = (0..members).map(|at| network.peer(at)).collect();
        let way = |from: usize, to: usize| (from != to).then(|| Proxy::to(&peers[to].to_string()));
        let ways: Vec<Vec<Option<Proxy>>> =
            (0..members).map(|from| (0..members).map(|to| way(from, to)).collect()).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let names: Vec<String> = NAMES[..members].iter().map(|name| (*name).to_owned()).collect();
        let mut files = Vec::new();
        for from in 0..members {
            let mut text = String::new();
            for to in 0..members {
                let peer = ways[from][to].as_ref().map_or(peers[to], |way| way.address);
                let (name, http) = (&names[to], http[to]);
                text.push_str(&format!(
                    "[nodes.{name}]\nhttp = \"{http}\"\npeer = \"{peer}\"\ndata = \"data/{name}\"\n"
                ));
            }
            let members: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            text.push_str(&format!("[groups.main]\nmembers = [{}]\n{TABLES}{more}", members.join(", ")));
            let file = folder.path().join(format!("{}.toml", names[from]));
            std::fs::write(&file, text).expect("written");
            files.push(file);
        }
        let mut nodes = Nodes { folder, names, http, files, children: Vec::new(), ways, network };
        nodes.children.resize_with(members, || None);
        nodes.start_all();
        nodes
    }

    /// The nodes of a file that all of them read, by their names; each has the addresses of its position.
    pub(crate) fn of_file(folder: TempDir, file: PathBuf, names: Vec<String>, network: Loopback) -> Nodes {
        let http: Vec<SocketAddr> = (0..names.len()).map(|at| network.http(at)).collect();
        let files = vec![file; names.len()];
        let (children, ways) = (Vec::new(), Vec::new());
        let mut nodes = Nodes { folder, names, http, files, children, ways, network };
        nodes.children.resize_with(nodes.names.len(), || None);
        nodes.start_all();
        nodes
    }

    fn start_all(&mut self) {
        for at in 0..self.names.len() {
            self.start(at);
        }
        for at in 0..self.names.len() {
            self.wait_ready(at);
        }
        self.wait_members();
    }

    /// Starts one more node of the file that all of them read; its position.
    pub(crate) fn add(&mut self, name: &str) -> usize {
        let at = self.names.len();
        self.names.push(name.to_owned());
        self.http.push(self.network.http(at));
        self.files.push(self.files[0].clone());
        self.children.push(None);
        self.start(at);
        at
    }

    pub(crate) fn start(&mut self, at: usize) {
        let log = File::options().create(true).append(true).open(self.log(at)).expect("a log");
        let mut command = cachesql(self.folder.path());
        command.arg("serve").arg(&self.files[at]).args(["--node", &self.names[at], "--log", "info"]);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().expect("the binary starts");
        self.children[at] = Some(child);
    }

    fn log(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("{}.log", self.names[at].replace(':', "-")))
    }

    /// The last of what a node said, for a message.
    fn said(&self, at: usize) -> String {
        let said = std::fs::read_to_string(self.log(at)).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    pub(crate) fn runs(&self, at: usize) -> bool {
        self.children[at].is_some()
    }

    /// Sends a signal by name, as `kill` knows it.
    pub(crate) fn signal(&self, at: usize, name: &str) {
        let pid = self.children[at].as_ref().expect("it runs").id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill runs");
        assert!(status.success());
    }

    /// Ends a process as a loss of power would, for the process.
    pub(crate) fn kill(&mut self, at: usize) {
        let mut child = self.children[at].take().expect("it runs");
        child.kill().expect("killed");
        child.wait().expect("waited");
    }

    /// Has a node stop by itself.
    pub(crate) fn stop(&mut self, at: usize) {
        self.signal(at, "TERM");
        let deadline = Instant::now() + PATIENCE;
        while self.children[at].as_mut().expect("it runs").try_wait().expect("waited").is_none() {
            assert!(Instant::now() < deadline, "{} does not stop: {}", self.names[at], self.said(at));
            thread::sleep(LOOK);
        }
        self.children[at] = None;
    }

    /// Cuts a node off from all others, or lets it back: what it sends, what it hears, or both.
    pub(crate) fn cut(&self, at: usize, sends: bool, hears: bool) {
        for other in (0..self.names.len()).filter(|other| *other != at) {
            self.way(at, other).hold(sends, hears);
            self.way(other, at).hold(hears, sends);
        }
    }

    /// Cuts two nodes off from each other, or lets them back.
    pub(crate) fn part(&self, one: usize, other: usize, parted: bool) {
        self.way(one, other).hold(parted, parted);
        self.way(other, one).hold(parted, parted);
    }

    fn way(&self, from: usize, to: usize) -> &Proxy {
        self.ways[from][to].as_ref().expect("two nodes")
    }

    /// Sends a request; nothing where the node is gone before it answers, or takes too long.
    pub(crate) fn request(&self, at: usize, method: &str, path: &str, headers: &str, body: &str) -> Option<Reply> {
        http::request(&self.http[at].to_string(), Some(ASK_WAIT), method, path, headers, body)
    }

    /// Runs a statement.
    pub(crate) fn sql(&self, at: usize, sql: &str, headers: &str) -> Option<Reply> {
        http::run_sql(&self.http[at].to_string(), Some(ASK_WAIT), sql, headers)
    }

    /// Runs a statement that works.
    pub(crate) fn done(&self, at: usize, sql: &str) -> Value {
        let reply = self.sql(at, sql, "").unwrap_or_else(|| panic!("{sql}: no answer\n{}", self.said(at)));
        assert_eq!(reply.status, 200, "{sql}: {}", reply.body);
        reply.json()
    }

    /// How a node sees the cluster.
    pub(crate) fn cluster(&self, at: usize) -> Option<Value> {
        self.request(at, "GET", "/v1/cluster", "", "").filter(|reply| reply.status == 200).map(|reply| reply.json())
    }

    pub(crate) fn wait_ready(&self, at: usize) {
        let what = format!("{} is ready", self.names[at]);
        self.wait(&what, || self.request(at, "GET", "/readyz", "", "").is_some_and(|reply| reply.status == 200));
    }

    /// Waits until something holds.
    pub(crate) fn wait(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            if Instant::now() > deadline {
                let said: Vec<String> = (0..self.names.len()).map(|at| self.said(at)).collect();
                panic!("not in time: {what}; the nodes said: {}", said.join("\n--\n"));
            }
            thread::sleep(LOOK);
        }
    }

    /// Waits until every member is in, and those that should vote do, as every node that runs says.
    pub(crate) fn wait_members(&self) {
        let settled = |at: usize| {
            let Some(cluster) = self.cluster(at) else { return false };
            cluster["groups"].as_array().expect("groups").iter().all(|group| {
                let members = group["members"].as_array().expect("members");
                let is_member = members.iter().any(|member| member["node"] == self.names[at].as_str());
                // Of other groups it only tells what is configured.
                if !is_member {
                    return true;
                }
                let roles: Vec<&str> = members.iter().filter_map(|member| member["role"].as_str()).collect();
                let elects = group["failover"] == "automatic";
                let leads = roles.iter().filter(|role| **role == "leader").count() == 1;
                let wanted = if self.ways.is_empty() { members.len() } else { self.names.len() };
                leads && roles.len() == wanted && (!elects || !roles.contains(&"learner"))
            })
        };
        for at in (0..self.names.len()).filter(|at| self.runs(*at)) {
            self.wait(&format!("{} sees all members", self.names[at]), || settled(at));
        }
    }

    /// The node that leads the first group, as the nodes among these say that run.
    pub(crate) fn leader(&self, among: &[usize]) -> usize {
        let told = || {
            let names: BTreeSet<String> = among
                .iter()
                .filter_map(|at| {
                    Some(self.cluster(*at)?["groups"][0]["leader"].as_str().unwrap_or("nobody").to_owned())
                })
                .collect();
            let name = (names.len() == 1).then(|| names.into_iter().next()).flatten()?;
            let at = self.names.iter().position(|known| *known == name)?;
            among.contains(&at).then_some(at)
        };
        self.wait("one leads", || told().is_some());
        told().expect("one leads")
    }

    /// The ids of the rows of `written`, as a node shows them at least as new as everything acknowledged.
    pub(crate) fn written(&self, at: usize) -> BTreeSet<u64> {
        let read = || {
            let reply = self.sql(at, "SELECT id FROM written", "Cachesql-Consistency: linearizable\r\n")?;
            (reply.status == 200).then(|| reply.json())
        };
        self.wait(&format!("{} answers", self.names[at]), || read().is_some());
        let rows = read().expect("it answered just now");
        rows["rows"].as_array().expect("rows").iter().map(|row| row[0].as_u64().expect("an id")).collect()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            // Already gone where the test ended it.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writers, each of which writes row after row through the nodes in turn, until they are told to stop.
pub(crate) struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

/// What writers know.
#[derive(Default)]
pub(crate) struct Seen {
    /// Rows that were acknowledged, and when.
    pub(crate) acknowledged: Vec<(u64, Instant)>,
    /// Rows whose writers do not know.
    pub(crate) unknown: BTreeSet<u64>,
    /// What was refused: the row, and why.
    pub(crate) refused: Vec<(u64, String)>,
}

static NEXT_ROW: AtomicU64 = AtomicU64::new(1);

impl Writers {
    /// So many writers, each through these nodes in turn.
    pub(crate) fn start(nodes: &Nodes, writers: usize, through: &[usize]) -> Writers {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Seen>>::default());
        let threads = (0..writers).map(|writer| {
            let addresses: Vec<SocketAddr> = through.iter().map(|at| nodes.http[*at]).collect();
            let (stop, seen) = (stop.clone(), seen.clone());
            thread::spawn(move || {
                for turn in writer.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    write_one(addresses[turn % addresses.len()], &seen);
                }
            })
        });
        let threads = threads.collect();
        Writers { stop, threads, seen }
    }

    /// Waits until so many more rows were acknowledged; how long that took.
    pub(crate) fn go_on(&self, rows: usize) -> Duration {
        let before = self.acknowledged();
        self.wait(|seen| seen.acknowledged.len() >= before + rows)
    }

    /// Waits until a row was acknowledged that nobody had begun to write before; how long that took.
    pub(crate) fn resume(&self) -> Duration {
        let first = NEXT_ROW.load(Ordering::Relaxed);
        self.wait(|seen| seen.acknowledged.iter().any(|(row, _)| *row >= first))
    }

    fn wait(&self, holds: impl Fn(&Seen) -> bool) -> Duration {
        let began = Instant::now();
        loop {
            let seen = self.seen.lock().expect("no panic");
            if holds(&seen) {
                return began.elapsed();
            }
            assert!(began.elapsed() < PATIENCE, "writes do not go on: {:?}", seen.refused.last());
            drop(seen);
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn acknowledged(&self) -> usize {
        self.seen.lock().expect("no panic").acknowledged.len()
    }

    /// Has them stop, and gives what they know.
    pub(crate) fn end(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        std::mem::take(&mut *self.seen.lock().expect("no panic"))
    }
}

fn write_one(to: SocketAddr, seen: &Mutex<Seen>) {
    let row = NEXT_ROW.fetch_add(1, Ordering::Relaxed);
    let reply =
        http::run_sql(&to.to_string(), Some(ASK_WAIT), &format!("INSERT INTO written VALUES ({row}, 'row {row}')"), "");
    let mut seen = seen.lock().expect("no panic");
    match reply {
        Some(reply) if reply.status == 200 => seen.acknowledged.push((row, Instant::now())),
        Some(reply) if reply.status == 504 => drop(seen.unknown.insert(row)),
        Some(reply) => seen.refused.push((row, format!("{} {}", reply.status, reply.body))),
        None => drop(seen.unknown.insert(row)),
    }
}

impl Seen {
    /// The longest time between two acknowledged rows.
    pub(crate) fn longest_pause(&self) -> Duration {
        let mut times: Vec<Instant> = self.acknowledged.iter().map(|(_, at)| *at).collect();
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }

    /// That every row is there that was acknowledged, and none that was refused, on every node that runs.
    pub(crate) fn check(&self, nodes: &Nodes) {
        assert!(!self.acknowledged.is_empty(), "nothing was written");
        for at in (0..nodes.names.len()).filter(|at| nodes.runs(*at)) {
            let there = nodes.written(at);
            let lost: Vec<u64> =
                self.acknowledged.iter().map(|(row, _)| *row).filter(|row| !there.contains(row)).collect();
            assert!(lost.is_empty(), "{} has lost {lost:?}", nodes.names[at]);
            let extra: Vec<&(u64, String)> = self.refused.iter().filter(|(row, _)| there.contains(row)).collect();
            assert!(extra.is_empty(), "{} has what was refused: {extra:?}", nodes.names[at]);
        }
    }
}
