//! Processes of a bench: started, waited for, their CPU time read, and ended whatever happens.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Context, Failure, Outcome};

/// Clock ticks a second in `/proc`; the kernel's ABI has it at 100 on every architecture in use.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process that ends with this value.
pub(crate) struct Server {
    name: String,
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Server {
    /// Starts a program and follows what it says on standard output and standard error.
    pub(crate) fn start(command: &mut Command) -> Outcome<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context(|| name.clone())?;
        let (sender, lines) = channel();
        let follow = |stream: Option<Box<dyn Read + Send>>, sender: std::sync::mpsc::Sender<String>| {
            thread::spawn(move || {
                for line in stream.into_iter().flat_map(|stream| BufReader::new(stream).lines().map_while(Result::ok)) {
                    if sender.send(line).is_err() {
                        // Nobody reads any more; the pipe must still be emptied.
                    }
                }
            });
        };
        follow(child.stdout.take().map(|stream| Box::new(stream) as _), sender.clone());
        follow(child.stderr.take().map(|stream| Box::new(stream) as _), sender);
        Ok(Self { name, child, lines, said: Vec::new() })
    }

    /// Waits for a line that contains `word` and returns it.
    pub(crate) fn wait_for(&mut self, word: &str, limit: Duration) -> Outcome<String> {
        let deadline = Instant::now() + limit;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(word) => return Ok(line),
                Ok(line) => self.said.push(line),
                Err(why) => {
                    let what = match why {
                        RecvTimeoutError::Timeout => format!("did not say `{word}` in {limit:?}"),
                        RecvTimeoutError::Disconnected => "ended".to_owned(),
                    };
                    let last = self.said.iter().rev().take(20).rev().cloned().collect::<Vec<_>>().join("\n  ");
                    return Err(Failure::new(format!("{} {what}; it said:\n  {last}", self.name)));
                }
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time so far, user and system.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of a process, and of its children that have ended; 0 when it is gone.
pub(crate) fn cpu_seconds(id: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    ticks(&stat).map_or(0.0, |ticks| ticks as f64 / TICKS_PER_SECOND)
}

/// CPU time of a process, its children that have ended, and those that run.
pub(crate) fn family_cpu_seconds(id: u32) -> f64 {
    let mut total = cpu_seconds(id);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        if parent == Some(id) {
            total += cpu_seconds(child);
        }
    }
    total
}

/// utime, stime, cutime and cstime: fields 14 to 17 of `/proc/PID/stat` (proc(5)); the name before may hold spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_past_a_name_with_spaces() {
        let stat = "12 (a (b) c) S 1 12 12 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 99 0 0";
        assert_eq!(ticks(stat), Some(127));
        assert_eq!(ticks("nothing"), None);
    }

    #[test]
    fn a_server_is_waited_for_and_ended() {
        let mut server =
            Server::start(Command::new("sh").args(["-c", "echo one; echo ready: x >&2; exec sleep 60"])).expect("sh");
        assert_eq!(server.wait_for("ready:", Duration::from_secs(5)).expect("a line"), "ready: x");
        let id = server.id();
        drop(server);
        assert!(fs::read_to_string(format!("/proc/{id}/stat")).is_err());
    }

    #[test]
    fn a_server_that_ends_says_why() {
        let mut server = Server::start(Command::new("sh").args(["-c", "echo broken; exit 1"])).expect("sh");
        let failure = server.wait_for("ready:", Duration::from_secs(5)).expect_err("it ended").to_string();
        assert!(failure.contains("broken"), "{failure}");
    }
}
