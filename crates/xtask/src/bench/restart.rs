//! `restart`: a node that was killed serves its rows again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Bed;
use super::figures::{Comparison, Goal, Sample};
use super::node::Node;
use super::report::Section;
use crate::failure::{Context, Failure, Outcome};

const ROWS: u64 = 1_000_000;

pub(crate) fn restart(bed: &Bed) -> Outcome<Section> {
    let folder = bed.work.join("kept");
    // Killed as soon as all is acknowledged.
    drop(Node::keeping_kca2(bed, ROWS, &folder)?);
    let goal = Goal::AtMost { must: 5.0, aim: 2.0 };
    let mut comparison = Comparison::new("start of a node until it is ready", "reading its files", "s", goal);
    for round in 0..=bed.rounds {
        let files = files_in(&folder)?;
        forget(&files)?;
        let node = Node::keeping_kca2(bed, ROWS, &folder)?;
        let ours = Sample::of(node.ready_after.as_secs_f64());
        drop(node);
        let files = files_in(&folder)?;
        forget(&files)?;
        let started = Instant::now();
        let read = Command::new("cat").args(&files).stdout(Stdio::null()).status();
        if !read.context(|| "cat".to_owned())?.success() {
            return Err(Failure::new("the files of the node cannot be read"));
        }
        let theirs = Sample::of(started.elapsed().as_secs_f64());
        if round > 0 {
            comparison.push(ours, theirs);
        }
    }
    let mut bytes = 0;
    for file in files_in(&folder)? {
        bytes += fs::metadata(&file).context(|| file.display().to_string())?.len();
    }
    Ok(Section {
        name: "restart",
        method: format!(
            "`kca2`, {ROWS} rows with three indexes, in a data folder of {} MB. Ours is the time from the start of `cachesql serve`, \
             after SIGKILL, until it says that it is ready. Theirs is `cat` of the same files to /dev/null. Before each the \
             system is told to forget what it holds of the files.",
            bytes / 1_000_000
        ),
        versions: Vec::new(),
        rounds: bed.rounds,
        comparisons: vec![comparison],
    })
}

fn files_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).context(|| folder.display().to_string())? {
        let path = entry.context(|| folder.display().to_string())?.path();
        if path.is_dir() { files.extend(files_in(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

/// Has the system drop what it holds of files in memory.
fn forget(files: &[PathBuf]) -> Outcome<()> {
    for file in files {
        let mut drop_it = Command::new("dd");
        drop_it.arg(format!("if={}", file.display())).args(["iflag=nocache", "count=0"]);
        let status = drop_it.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !status.context(|| "dd".to_owned())?.success() {
            return Err(Failure::new(format!("{} cannot be dropped from memory", file.display())));
        }
    }
    Ok(())
}
