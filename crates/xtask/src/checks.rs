//! `cargo xtask test`: every check and test, in the order in which they fail soonest.
//!
//! Artefacts are shared: clippy and doc use the same metadata of the dependencies, and tests are built once, with the
//! flags that a plain `cargo test --workspace` has.

use std::path::Path;
use std::process::Command;

use crate::data;
use crate::deny;
use crate::failure::Outcome;
use crate::floors;
use crate::left_behind::Watch;
use crate::setup;
use crate::steps::{Steps, cargo, run, run_tests};

pub(crate) fn everything(root: &Path) -> Outcome<()> {
    let mut steps = Steps::new("cargo xtask test");
    let mut flights = None;
    steps.step("set-up", || {
        setup::for_tests()?;
        flights = Some(data::flights(root)?);
        Ok(String::new())
    })?;
    steps.step("fmt", || run(&mut cargo(root, &["fmt", "--all", "--", "--check"])).map(|()| String::new()))?;
    steps.step("floors", || floors::report(root).map(|()| String::new()))?;
    steps.step("deny", || deny::report(root).map(|()| String::new()))?;
    steps.step("clippy", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        run(&mut cargo(root, &arguments)).map(|()| String::new())
    })?;
    steps.step("doc", || {
        let arguments = ["doc", "--workspace", "--no-deps", "--locked"];
        run(cargo(root, &arguments).env("RUSTDOCFLAGS", "-D warnings")).map(|()| String::new())
    })?;
    steps.step("build", || {
        run(&mut cargo(root, &["test", "--workspace", "--locked", "--no-run"])).map(|()| String::new())
    })?;
    steps.step("test", || {
        let watch = Watch::start()?;
        let mut command = cargo(root, &["test", "--workspace", "--locked", "--no-fail-fast"]);
        if let Some(folder) = &flights {
            command.env("CACHESQL_FLIGHTS", folder);
        }
        let tested = run_tests(watch.mark(&mut command));
        // A test that left something behind fails too, and what it left is removed either way.
        let clean = watch.finish();
        tested.and_then(|word| clean.map(|()| word))
    })
}

/// The fault matrix with real processes: also the rows that take long, one at a time, held to their times.
pub(crate) fn faults(root: &Path, rounds: u32) -> Outcome<()> {
    let mut steps = Steps::new("cargo xtask faults");
    let filter = ["faults::", "--include-ignored", "--nocapture", "--test-threads", "1"];
    // As the tests are built elsewhere, so that nothing is built twice.
    let arguments = [&["test", "--workspace", "--locked", "--test", "it", "--"][..], &filter].concat();
    for round in 1..=rounds {
        steps.step(&format!("round {round}"), || {
            let watch = Watch::start()?;
            let mut command = cargo(root, &arguments);
            let tested = run_tests(watch.mark(command.env("CACHESQL_FAULT_TIMES", "1")));
            let clean = watch.finish();
            tested.and_then(|word| clean.map(|()| word))
        })?;
    }
    Ok(())
}

/// The tests that compare these documents with the program write them first.
pub(crate) fn docs(root: &Path) -> Outcome<()> {
    let mut command = cargo(root, &["test", "--package", "cachesql", "--lib", "--locked", "documents_are_current"]);
    run(command.env("CACHESQL_WRITE_DOCS", "1"))
}

/// The inner loop. `rest` is `-p CRATE` any number of times.
pub(crate) fn quick(root: &Path, rest: &[&str]) -> Outcome<()> {
    let scope: &[&str] = if rest.is_empty() { &["--workspace"] } else { rest };
    let scoped =
        |before: &[&'static str], after: &[&'static str]| -> Command { cargo(root, &[before, scope, after].concat()) };
    let mut steps = Steps::new("cargo xtask test --quick");
    steps.step("fmt", || run(&mut cargo(root, &["fmt", "--all", "--", "--check"])).map(|()| String::new()))?;
    steps.step("floors", || floors::report(root).map(|()| String::new()))?;
    steps.step("clippy", || {
        run(&mut scoped(&["clippy"], &["--all-targets", "--locked", "--", "-D", "warnings"])).map(|()| String::new())
    })?;
    steps.step("test", || run_tests(&mut scoped(&["test"], &["--lib", "--bins", "--locked", "--no-fail-fast"])))
}
