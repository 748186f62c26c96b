//! Steps of a long command: each is announced, timed, and listed at the end, whether all went well or not.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::failure::{Context, Failure, Outcome};

/// Time after which tests that say nothing count as hanging. A test is named when it has ended, so that this is more than
/// the longest one takes on a slow machine.
const TEST_SILENCE: Duration = Duration::from_secs(600);

pub(crate) struct Steps {
    title: &'static str,
    started: Instant,
    done: Vec<(String, Duration, Result<String, String>)>,
}

impl Steps {
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, started: Instant::now(), done: Vec::new() }
    }

    /// Runs one step. What it returns is a word for the summary.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome<String>) -> Outcome<()> {
        println!("\n=== {name}");
        let started = Instant::now();
        let outcome = work();
        let took = started.elapsed();
        match outcome {
            Ok(word) => {
                println!("=== {name}: ok, {}", seconds(took));
                self.done.push((name.to_owned(), took, Ok(word)));
                Ok(())
            }
            Err(failure) => {
                println!("=== {name}: FAILED, {}", seconds(took));
                self.done.push((name.to_owned(), took, Err(failure.to_string())));
                Err(Failure::new(format!("{}: step `{name}` failed", self.title)))
            }
        }
    }
}

impl Drop for Steps {
    /// The closing summary, also when a step failed.
    fn drop(&mut self) {
        println!("\n=== {} ===", self.title);
        for (name, took, outcome) in &self.done {
            match outcome {
                Ok(word) => println!("  ok      {name:<8} {:>9}  {word}", seconds(*took)),
                Err(why) => println!("  FAILED  {name:<8} {:>9}  {why}", seconds(*took)),
            }
        }
        let failed = self.done.iter().any(|(_, _, outcome)| outcome.is_err());
        let verdict = if failed { "FAILED" } else { "all passed" };
        println!("{}: {verdict} in {}", self.title, seconds(self.started.elapsed()));
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

/// The cargo that runs this xtask, in the workspace.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    // `cargo run` tells xtask about its own package; that is no news for other builds.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command to its end with its output shown.
pub(crate) fn run(command: &mut Command) -> Outcome<()> {
    println!("$ {}", line(command));
    let status = command.status().context(|| line(command))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{status}: {}", line(command)))) }
}

/// Runs a command to its end and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stdin(Stdio::null()).output().context(|| line(command))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("{}: {}: {}", line(command), output.status, said.trim())))
    }
}

/// Sums of the lines `test result: …`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    binaries: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    fn read(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.binaries += 1;
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else { continue };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    fn text(&self) -> String {
        let Self { binaries, passed, failed, ignored } = self;
        format!("{passed} tests passed, {failed} failed, {ignored} ignored, in {binaries} binaries")
    }
}

/// Runs `cargo test` with its output shown, and sums up its results. When nothing is heard of it for too long it is ended.
pub(crate) fn run_tests(command: &mut Command) -> Outcome<String> {
    run_tests_within(command, TEST_SILENCE)
}

fn run_tests_within(command: &mut Command, silence: Duration) -> Outcome<String> {
    println!("$ {}", line(command));
    let mut child = command.stdout(Stdio::piped()).spawn().context(|| line(command))?;
    let mut tally = Tally::default();
    let (sender, lines) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // It ends when the last process that holds the pipe does.
        std::thread::spawn(move || {
            BufReader::new(stdout).split(b'\n').try_for_each(|line| sender.send(line).map_err(drop))
        });
    }
    loop {
        match lines.recv_timeout(silence) {
            Ok(output_line) => {
                let output_line = output_line.context(|| line(command))?;
                let text = String::from_utf8_lossy(&output_line);
                println!("{text}");
                tally.read(&text);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                child.kill().context(|| line(command))?;
                child.wait().context(|| line(command))?;
                let seconds = silence.as_secs();
                return Err(Failure::new(format!("a test hangs: no word for {seconds} s, after {}", tally.text())));
            }
        }
    }
    let status = child.wait().context(|| line(command))?;
    println!("{}", tally.text());
    if status.success() { Ok(tally.text()) } else { Err(Failure::new(tally.text())) }
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_are_summed() {
        let mut tally = Tally::default();
        tally.read("running 3 tests");
        tally.read("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        tally
            .read("test result: FAILED. 12 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.50s");
        assert_eq!(tally, Tally { binaries: 2, passed: 15, failed: 2, ignored: 1 });
    }

    #[test]
    fn a_command_that_fails_is_a_failure() {
        assert!(run(&mut Command::new("true")).is_ok());
        assert!(run(&mut Command::new("false")).is_err());
        assert!(run(&mut Command::new("/no/such/program")).is_err());
        assert!(
            output(Command::new("sh").args(["-c", "echo why >&2; exit 3"]))
                .is_err_and(|e| e.to_string().contains("why"))
        );
        let mut hanging = Command::new("sh");
        hanging.args(["-c", "echo 'test result: ok. 4 passed; 0 failed; 0 ignored'; exec sleep 60"]);
        let ended = run_tests_within(&mut hanging, Duration::from_millis(300));
        assert!(ended.is_err_and(|e| e.to_string().contains("hangs") && e.to_string().contains("4 tests passed")));
        let mut tests = Command::new("sh");
        tests.args(["-c", "echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101"]);
        assert!(run_tests(&mut tests).is_err_and(|e| e.to_string().contains("1 failed")));
    }
}
