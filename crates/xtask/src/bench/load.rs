//! `load`: a table from PostgreSQL into memory, with its indexes.

use std::process::Stdio;
use std::time::Instant;

use super::Bed;
use super::figures::{Comparison, Goal, Sample};
use super::node::{KCA2, Node};
use super::report::Section;
use super::rows::postgres_with_kca2;
use crate::failure::{Context, Failure, Outcome};

const ROWS: u64 = 1_000_000;

pub(crate) fn load(bed: &Bed) -> Outcome<Section> {
    let postgres = postgres_with_kca2(bed, ROWS)?;
    let tables = format!(
        "[origins.bench]\nurl = \"{}\"\n\n[tables.kca2]\norigin = \"bench\"\nquery = \"SELECT * FROM kca2\"\n{KCA2}",
        postgres.url()
    );
    let goal = Goal::AtLeast { must: 0.4, aim: 0.8 };
    let mut comparison =
        Comparison::new("start of a node until it is ready", "COPY to /dev/null", "s", goal).of_times();
    for round in 0..=bed.rounds {
        let node = Node::start(bed, "load", &tables)?;
        let ours = Sample::of(node.ready_after.as_secs_f64());
        drop(node);
        let started = Instant::now();
        let copy = "COPY (SELECT * FROM kca2) TO STDOUT (FORMAT binary)";
        let status = postgres.psql().args(["-c", copy]).stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !status.context(|| "psql".to_owned())?.success() {
            return Err(Failure::new(format!("{copy} failed")));
        }
        let theirs = Sample::of(started.elapsed().as_secs_f64());
        if round > 0 {
            comparison.push(ours, theirs);
        }
    }
    Ok(Section {
        name: "load",
        method: format!(
            "`kca2`, {ROWS} rows, from PostgreSQL on this machine over TCP. Ours is the time from the start of `cachesql serve` \
             until it says that it is ready, with indexes on the key, the text of 5,000 values and the integer. Theirs \
             is psql, from its start, with its output to /dev/null."
        ),
        versions: vec![postgres.version()],
        rounds: bed.rounds,
        comparisons: vec![comparison],
    })
}
