//! A node in a process of its own, for as long as the test needs it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::http;

/// Time after which a node that did not come up, or did not go down, fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running node. It is stopped, and its folder removed, when this is dropped.
pub(crate) struct Running {
    child: Child,
    said: Receiver<String>,
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    /// Where it was started.
    pub(crate) folder: TempDir,
}

/// The binary, with nothing of the test's surroundings in its way.
pub(crate) fn cachesql(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cachesql"));
    // What it leaves behind when it is killed goes with the folder.
    command.current_dir(folder).env("HOME", folder).env("TMPDIR", folder).stdin(Stdio::null());
    for name in ["CACHESQL_URL", "CACHESQL_NODE", "CACHESQL_TOKEN", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}

impl Running {
    /// A node on the bundled sample data.
    pub(crate) fn sample() -> Running {
        let folder = tempfile::tempdir().expect("a folder");
        Running::start(folder, &["serve"])
    }

    /// A node on this `cachesql.toml`. Relative paths in it are relative to the folder.
    pub(crate) fn with_configuration(toml: &str) -> Running {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("cachesql.toml"), toml).expect("written");
        Running::start(folder, &["serve", "cachesql.toml"])
    }

    /// A node started in a folder with these arguments, on a free port. Returns when it is ready.
    pub(crate) fn start(folder: TempDir, arguments: &[&str]) -> Running {
        let mut running = Running::start_without_waiting(folder, arguments);
        let ready = running.wait_for("ready: ");
        running.url = ready.trim_start_matches("ready: ").trim_end_matches('/').to_owned();
        running
    }

    /// The same, for one that will not be ready.
    pub(crate) fn start_without_waiting(folder: TempDir, arguments: &[&str]) -> Running {
        let mut command = cachesql(folder.path());
        command.args(arguments).args(["--http", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the binary starts");
        let stderr = child.stderr.take().expect("piped");
        let (tell, said) = channel();
        // Ends with the process, which closes its end.
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Running { child, said, url: String::new(), folder }
    }

    /// Waits until the node says a line with this in it, and gives the line.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        loop {
            match self.said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => heard.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("no {part:?} in time; it said: {heard:#?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {part:?}; it said: {heard:#?}"),
            }
        }
    }

    /// A command of the binary that asks this node.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cachesql(self.folder.path());
        command.args(arguments).env("CACHESQL_URL", &self.url);
        command
    }

    /// Sends a request, and gives the status and the body.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let reply = http::request(self.address(), None, method, path, headers, body).expect("the node answers");
        (reply.status, reply.body)
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Runs a statement; panics with what the node says unless it succeeds.
    pub(crate) fn sql(&self, sql: &str) -> Value {
        let reply = http::run_sql(self.address(), None, sql, "").expect("the node answers");
        assert_eq!(reply.status, 200, "{sql}: {}", reply.body);
        reply.json()
    }

    /// Sends a signal by name, as `kill` knows it.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill runs");
        assert!(status.success());
    }

    /// Ends the process as a loss of power would, for the process, and gives its folder.
    pub(crate) fn killed(mut self) -> TempDir {
        self.signal("KILL");
        self.ended();
        std::mem::replace(&mut self.folder, tempfile::tempdir().expect("a folder"))
    }

    /// Waits until the process has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        // Its last words end when it does.
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().expect("waited"),
                Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone where the test stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
