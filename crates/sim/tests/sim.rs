//! Runs of many seeds: nothing is wrong with them, the same seed gives the same run, and bugs that are planted are found.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs at once; a simulator has one thread.
const AT_ONCE: usize = 2;

fn run(seed: u64, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    command.arg(seed.to_string()).args(arguments).output().expect("the simulator runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs seeds, several at once, until one of them is as wanted: the first found, and what it said.
fn first_where(
    seeds: std::ops::Range<u64>,
    arguments: &[&str],
    wanted: impl Fn(&Output) -> bool + Sync,
) -> Option<(u64, String)> {
    let (next, found) = (AtomicU64::new(seeds.start), std::sync::Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while found.lock().expect("no panic").is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let output = run(seed, arguments);
                    if wanted(&output) {
                        *found.lock().expect("no panic") = Some((seed, text(&output)));
                    }
                }
            });
        }
    });
    found.into_inner().expect("no panic")
}

#[test]
fn nothing_is_wrong_with_many_seeds() {
    let found = first_where(0..60, &[], |output| !output.status.success());
    assert!(found.is_none(), "{found:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 1_000..1_004 {
        let (once, again) = (run(seed, &["--history"]), run(seed, &["--history"]));
        assert!(once.status.code().is_some_and(|code| code < 2), "{}", text(&once));
        assert!(text(&once) == text(&again), "seed {seed} gave two runs");
    }
}

/// A bug that is planted shows as something wrong in one of so many seeds.
fn is_found(bug: &str, within: u64) {
    let found = first_where(0..within, &["--bug", bug], |output| {
        output.status.code() == Some(1) && text(output).contains(": WRONG: ")
    });
    let (seed, said) = found.unwrap_or_else(|| panic!("{bug} is not found in {within} seeds"));
    println!("{bug} is found by seed {seed}: {}", said.chars().take(300).collect::<String>());
}

#[test]
fn entries_that_count_as_kept_before_they_are_on_disk_are_found() {
    is_found("AcknowledgedBeforeSync", 30);
}

#[test]
fn reads_that_ask_no_majority_are_found() {
    is_found("LinearizableWithoutMajority", 30);
}

#[test]
fn a_member_that_answers_before_it_shows_is_found() {
    is_found("ForwardedBeforeApplied", 30);
}

#[test]
fn entries_applied_after_another_than_they_were_planned_after_are_found() {
    is_found("AfterNotChecked", 60);
}

#[test]
fn requests_that_a_snapshot_forgets_are_found() {
    is_found("RequestIdsForgotten", 60);
}
