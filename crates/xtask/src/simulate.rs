//! Seeds of the simulator, each in a process of its own, as many at once as there are cores.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::failure::{Context, Failure, Outcome};
use crate::steps;

/// Runs so many seeds from a first one on, and says which of them found something and how to run one again.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Outcome<()> {
    let (first, seeds) = read(arguments)?;
    // With the features that tests are built with, so that nothing is built twice.
    let mut build = steps::cargo(root, &["build", "--workspace", "--bin", "sim", "--message-format", "json"]);
    let told = steps::output(build.stderr(Stdio::inherit()))?;
    let program = executable(&told).ok_or_else(|| Failure::new("cargo names no executable of `sim`"))?;
    let cores = std::thread::available_parallelism().context(|| "cores".to_owned())?.get();
    let (next, wrong, began) = (AtomicU64::new(first), Mutex::new(Vec::new()), Instant::now());
    let end = first.saturating_add(seeds);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    if let Err(failure) = steps::output(Command::new(&program).arg(seed.to_string())) {
                        println!("{failure}");
                        wrong.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(seed);
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    wrong.sort_unstable();
    let took = began.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds from {first} on in {took:.0} s, {:.1} a second; {} found something",
        seeds as f64 / took,
        wrong.len()
    );
    match wrong.first() {
        None => Ok(()),
        Some(seed) => Err(Failure::new(format!(
            "seeds {wrong:?} found something. One again, with all that happened: {program} {seed} --history"
        ))),
    }
}

fn read(arguments: &[&str]) -> Outcome<(u64, u64)> {
    let (mut first, mut seeds) = (0, 500);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let number = words.next().and_then(|number| number.parse().ok());
        match (*word, number) {
            ("--seeds", Some(number)) => seeds = number,
            ("--first", Some(number)) => first = number,
            _ => return Err(Failure::new(format!("sim: {word}: expected --seeds N or --first S"))),
        }
    }
    Ok((first, seeds))
}

/// The executable of the last artifact that cargo says has one.
fn executable(messages: &str) -> Option<String> {
    let of = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(message.get("executable")?.as_str()?.to_owned())
    };
    messages.lines().filter_map(of).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_500_seeds_from_0() {
        assert_eq!(read(&[]).ok(), Some((0, 500)));
        assert_eq!(read(&["--first", "7", "--seeds", "20"]).ok(), Some((7, 20)));
        assert!(read(&["--seeds"]).is_err() && read(&["7"]).is_err() && read(&["--seeds", "x"]).is_err());
    }

    #[test]
    fn the_executable_is_the_last_one_named() {
        let messages =
            "{\"reason\":\"a\",\"executable\":null}\n{\"executable\":\"/x/sim\"}\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(executable(messages), Some("/x/sim".to_owned()));
    }
}
