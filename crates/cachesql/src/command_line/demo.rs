//! `cachesql demo`: the topology of the original's description on this machine. Five nodes, each a process; a master and two
//! slaves hold two tables of the sample data, a master and a slave a third one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hyper::Method;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::arguments::{DemoArguments, NodeArguments};
use super::client::{Client, Target};
use super::failure::Failure;
use super::sample::Sample;
use super::stop::Stop;

/// Time that the nodes are given until all of them serve.
const START_WAIT: Duration = Duration::from_secs(60);
/// Time between two looks whether they do.
const LOOK: Duration = Duration::from_millis(100);
/// Time that they are given to stop.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// Groups: name, nodes, tables.
const GROUPS: [(&str, u16, &str); 2] = [("insurance", 3, "KCA2,KCA3"), ("finance", 2, "KCA4")];

/// The tables' queries.
const TABLES: &str = "db.url=jdbc:sqlite:sample.db
cache.table.KCA2.sql=SELECT * FROM KCA2
cache.table.KCA2.indexes=AAC003,AAB004+AAC003
cache.table.KCA3.sql=SELECT * FROM KCA3
cache.table.KCA3.indexes=AAC001,AKC515
cache.table.KCA4.sql=SELECT * FROM KCA4
";

pub(super) async fn run(arguments: DemoArguments) -> Result<(), Failure> {
    // Listened for before the first node is there, so that none is left behind.
    let stop = Stop::on_signals(false)?;
    let sample = Sample::unpack()?;
    let (file, nodes) = write_configuration(&sample, arguments.port)?;
    let mut demo = Demo { file, nodes: Vec::new() };
    for node in nodes {
        demo.start(node)?;
    }
    let outcome = tokio::select! {
        outcome = demo.show() => outcome,
        () = stop.requested() => Ok(()),
    };
    eprintln!("stopping {} nodes", demo.nodes.len());
    demo.stop().await;
    outcome
}

/// Writes what the nodes are started with, as the original's routing client reads it; the names of the nodes.
fn write_configuration(sample: &Sample, port: u16) -> Result<(PathBuf, Vec<String>), Failure> {
    let (mut text, mut nodes, mut next) = (String::new(), Vec::new(), port);
    for (group, members, tables) in GROUPS {
        let urls: Vec<String> =
            (0..members).map(|at| format!("http://127.0.0.1:{}", next.saturating_add(at))).collect();
        next = next.saturating_add(members);
        let (master, slaves) =
            urls.split_first().map(|(first, rest)| (first.as_str(), rest.join(","))).unwrap_or_default();
        text.push_str(&format!("cachesql.group.{group}.master={master}\n"));
        text.push_str(&format!("cachesql.group.{group}.slaves={slaves}\ncachesql.group.{group}.tables={tables}\n"));
        nodes.extend(urls.iter().map(|url| url.trim_start_matches("http://").to_owned()));
    }
    text.push_str(TABLES);
    let file = sample.folder().join("cachesql.properties");
    std::fs::write(&file, text).map_err(|e| Failure::Failed(format!("{}: {e}", file.display())))?;
    Ok((file, nodes))
}

async fn is_ready(client: &mut Client) -> bool {
    let answer = client.ask(Method::GET, "/readyz", &[], bytes::Bytes::new()).await;
    answer.is_ok_and(|answer| answer.status.is_success())
}

struct Demo {
    file: PathBuf,
    nodes: Vec<DemoNode>,
}

/// A node, which is a process; it stops when its standard input ends, and so with this one.
struct DemoNode {
    name: String,
    log: PathBuf,
    process: Child,
    /// False once it was noticed that it is gone.
    runs: bool,
}

impl Demo {
    fn start(&mut self, name: String) -> Result<(), Failure> {
        let failed = |e: std::io::Error| Failure::Failed(format!("node {name} cannot be started: {e}"));
        let log = self.folder().join(format!("{}.log", name.replace(':', "-")));
        let process = Command::new(std::env::current_exe().map_err(failed)?)
            .arg("serve")
            .arg(&self.file)
            .args(["--node", &name, "--with-parent"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(failed)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        self.nodes.push(DemoNode { name, log, process, runs: true });
        Ok(())
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }

    /// Waits until all serve, says how to ask them, and then of those that end.
    async fn show(&mut self) -> Result<(), Failure> {
        self.wait_until_ready().await?;
        let mut first = 0;
        for (group, members, tables) in GROUPS {
            let nodes = self.nodes.iter().skip(first).take(usize::from(members));
            let described: Vec<String> =
                nodes.map(|n| format!("{} (process {})", n.name, n.process.id().unwrap_or_default())).collect();
            eprintln!("group {group} with tables {tables}: {}", described.join(", "));
            first += usize::from(members);
        }
        let name = |at: usize| self.nodes.get(at).map_or("", |node| node.name.as_str());
        let (one, two) = (name(0), name(1));
        eprintln!("\nAsk any of them, for instance:");
        eprintln!("  curl 'http://{two}/rest/KCA2?AAC001=eq.12345&select=AAC001,AAC003'");
        eprintln!("  cachesql sql --url http://{two} \"UPDATE KCA2 SET AAC003 = '李四' WHERE AAC001 = 12345\"");
        eprintln!("  cachesql cluster --url http://{one}");
        eprintln!("Kill one (kill -9 PROCESS), and start it again:");
        eprintln!("  cachesql serve {} --node {one}", self.file.display());
        eprintln!("Ctrl-C stops all of them.");
        loop {
            sleep(LOOK).await;
            for node in self.nodes.iter_mut().filter(|node| node.runs) {
                if let Ok(Some(status)) = node.process.try_wait() {
                    node.runs = false;
                    eprintln!("node {} is gone: {status}", node.name);
                }
            }
        }
    }

    async fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + START_WAIT;
        for node in &mut self.nodes {
            let url = format!("http://{}", node.name);
            let mut client = Client::new(Target::new(&NodeArguments { url, token_file: None })?);
            while !is_ready(&mut client).await {
                let gone = node.process.try_wait().ok().flatten();
                if gone.is_some() || Instant::now() > deadline {
                    let said = std::fs::read_to_string(&node.log).unwrap_or_default();
                    let said = said.trim_end();
                    return Err(Failure::Failed(format!("node {} does not come up: {said}", node.name)));
                }
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Has all nodes stop, and waits for them; what does not stop is killed.
    async fn stop(&mut self) {
        for node in &mut self.nodes {
            drop(node.process.stdin.take());
        }
        let deadline = Instant::now() + STOP_WAIT;
        for node in &mut self.nodes {
            let left = deadline.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, node.process.wait()).await.is_err() {
                // It may have ended just now.
                let _ = node.process.kill().await;
            }
        }
    }
}
