//! `write` and `write-visible`: a group of three nodes that keep what they acknowledge, beside etcd's.

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::figures::{Comparison, Goal, Sample};
use super::process::Server;
use super::report::Section;
use super::{Bed, version};
use crate::failure::{Context, Failure, Outcome};
use crate::steps::output;

const WRITERS: u64 = 64;
/// Rows whose way to the followers is timed in one round.
const SEEN_ROWS: u64 = 500;
/// Time that three nodes have until each is in.
const READY: Duration = Duration::from_secs(60);

/// Three servers, and where each is asked; the first one leads.
struct Three {
    servers: Vec<Server>,
    addresses: Vec<String>,
}

impl Three {
    fn cpu_seconds(&self) -> f64 {
        self.servers.iter().map(Server::cpu_seconds).sum()
    }
}

/// So many ports of this machine that are free.
fn free_ports(count: usize) -> Outcome<Vec<u16>> {
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").context(|| "a free port".to_owned()))
        .collect::<Outcome<_>>()?;
    held.iter().map(|l| l.local_addr().map(|a| a.port()).context(|| "a free port".to_owned())).collect()
}

fn nodes(bed: &Bed, name: &str) -> Outcome<Three> {
    let folder = bed.work.join(name);
    fs::create_dir_all(&folder).context(|| folder.display().to_string())?;
    let ports = free_ports(6)?;
    let mut text = String::new();
    for ((node, http), peer) in ["a", "b", "c"].iter().zip(&ports).zip(&ports[3..]) {
        text.push_str(&format!(
            "[nodes.{node}]\nhttp = \"127.0.0.1:{http}\"\npeer = \"127.0.0.1:{peer}\"\ndata = \"{node}\"\n"
        ));
    }
    text.push_str(
        "[groups.main]\nmembers = [\"a\", \"b\", \"c\"]\n[tables.written]\ncolumns = { id = \"BIGINT\", v = \"TEXT\" }\nkey = [\"id\"]\n",
    );
    let file = folder.join("cachesql.toml");
    fs::write(&file, text).context(|| file.display().to_string())?;
    let mut servers = Vec::new();
    for node in ["a", "b", "c"] {
        let mut command = bed.binary("cachesql");
        servers.push(Server::start(command.arg("serve").arg(&file).args(["--node", node]))?);
    }
    for server in &mut servers {
        server.wait_for("ready: http://", READY)?;
    }
    let three = Three { servers, addresses: ports[..3].iter().map(|port| format!("127.0.0.1:{port}")).collect() };
    wait_for_voters(bed, &three)?;
    Ok(three)
}

/// Waits until all three vote.
fn wait_for_voters(bed: &Bed, three: &Three) -> Outcome<()> {
    let began = Instant::now();
    loop {
        let url = format!("http://{}", three.addresses.first().map_or("", String::as_str));
        let shown = output(bed.binary("cachesql").args(["cluster", "--url", &url]))?;
        if shown.contains("│ leader ") && shown.matches("│ follower ").count() == 2 {
            return Ok(());
        }
        if began.elapsed() > READY {
            return Err(Failure::new(format!("three nodes do not become a group: {shown}")));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn etcds(bed: &Bed) -> Outcome<Three> {
    let folder = bed.work.join("etcd");
    let ports = free_ports(6)?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let (clients, peers) = ports.split_at(3);
    let cluster: Vec<String> =
        ["a", "b", "c"].iter().zip(peers).map(|(name, port)| format!("{name}={}", url(*port))).collect();
    let mut servers = Vec::new();
    for ((name, client), peer) in ["a", "b", "c"].iter().zip(clients).zip(peers) {
        let mut command = Command::new("etcd");
        command.args(["--name", name, "--data-dir"]).arg(folder.join(name));
        command.args(["--listen-client-urls", &url(*client), "--advertise-client-urls", &url(*client)]);
        command.args(["--listen-peer-urls", &url(*peer), "--initial-advertise-peer-urls", &url(*peer)]);
        command.args(["--initial-cluster", &cluster.join(","), "--initial-cluster-token", "bench"]);
        command.args(["--log-level", "warn", "--logger", "zap"]);
        servers.push(Server::start(&mut command)?);
    }
    let addresses: Vec<String> = clients.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let began = Instant::now();
    // It says nothing at this level: it is there when a write works.
    while write(bed, "etcd", addresses.first().map_or("", String::as_str), 1, 1).is_err() {
        if began.elapsed() > READY {
            return Err(Failure::new("etcd does not come up"));
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(Three { servers, addresses })
}

/// Writes a second.
fn write(bed: &Bed, kind: &str, address: &str, writers: u64, seconds: u64) -> Outcome<f64> {
    let said = output(bed.binary("bench-write").args([kind, address, &writers.to_string(), &seconds.to_string()]))?;
    said.trim().parse().map_err(|_| Failure::new(format!("bench-write said {said:?}")))
}

fn timed(bed: &Bed, kind: &str, three: &Three) -> Outcome<Sample> {
    let address = three.addresses.first().map_or("", String::as_str);
    let before = three.cpu_seconds();
    let rate = write(bed, kind, address, WRITERS, bed.seconds)?;
    let cpu = three.cpu_seconds() - before;
    let writes = rate * bed.seconds as f64;
    Ok(Sample { value: rate, cpu_us: Some(cpu * 1e6 / writes.max(1.0)) })
}

pub(crate) fn write_rate(bed: &Bed) -> Outcome<Section> {
    let (ours, theirs) = (nodes(bed, "write")?, etcds(bed)?);
    let goal = Goal::AtLeast { must: 3.0, aim: 10.0 };
    let mut comparison = Comparison::new(format!("rows, {WRITERS} writers, one row each"), "etcd", "/s", goal);
    for round in 0..=bed.rounds {
        let (ours, theirs) = (timed(bed, "rows", &ours)?, timed(bed, "etcd", &theirs)?);
        if round > 0 {
            comparison.push(ours, theirs);
        }
    }
    Ok(Section {
        name: "write",
        method: format!(
            "Three nodes on one disk, each with its log synced before it acknowledges. {WRITERS} writers write to the first node \
             (`POST /rest/…`, one row of a BIGINT key and 64 bytes of text; etcd: `KV/Put` over gRPC, eight streams a connection), rounds \
             of {} s in turns. CPU is that of all three nodes.",
            bed.seconds
        ),
        versions: vec![version(Command::new("etcd").arg("--version"))],
        rounds: bed.rounds,
        comparisons: vec![comparison],
    })
}

pub(crate) fn write_visible(bed: &Bed) -> Outcome<Section> {
    let three = nodes(bed, "visible")?;
    let [leader, followers @ ..] = &*three.addresses else { return Err(Failure::new("no nodes")) };
    let goal = Goal::AtMost { must: 5.0, aim: 2.0 };
    let work = "acknowledged until seen on both followers, p99";
    let mut comparison = Comparison::new(work, "the same row from the leader and back, p99", "µs", goal);
    for round in 0..=bed.rounds {
        let said =
            output(bed.binary("bench-write").args(["visible", leader, &followers.join(","), &SEEN_ROWS.to_string()]))?;
        let mut numbers = said.split_whitespace().filter_map(|number| number.parse::<f64>().ok());
        let (Some(ours), Some(theirs)) = (numbers.next(), numbers.next()) else {
            return Err(Failure::new(format!("bench-write said {said:?}")));
        };
        if round > 0 {
            comparison.push(Sample::of(ours), Sample::of(theirs));
        }
    }
    Ok(Section {
        name: "write-visible",
        method: format!(
            "Three nodes as in `write`. {SEEN_ROWS} rows a round, one after the other: each is written through the leader, and from its \
             answer on both followers are asked for it over HTTP until they have it; then the leader is asked for it once, which is the \
             round trip."
        ),
        versions: Vec::new(),
        rounds: bed.rounds,
        comparisons: vec![comparison],
    })
}
