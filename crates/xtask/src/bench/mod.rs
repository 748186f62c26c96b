//! `cargo xtask bench`: CacheSQL beside its peers, in one run, on one machine.
//!
//! Every bench here starts its servers, takes rounds in turns, and returns a [`report::Section`]. Servers, load
//! generators and in-process measurements are separate processes; the data sets come from `crates/bench`.

mod figures;
mod http;
mod in_process;
mod load;
mod node;
mod postgres;
mod process;
mod report;
mod restart;
mod rows;
mod scan;
mod write;
mod wrk;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data::target;
use crate::failure::{Context, Failure, Outcome};
use crate::setup;
use crate::steps::{cargo, output, run as run_command};
use report::Section;

struct Bench {
    name: &'static str,
    what: &'static str,
    run: fn(&Bed) -> Outcome<Section>,
}

const BENCHES: &[Bench] = &[
    Bench { name: "http-row", what: "one row by key over HTTP, beside bare hyper", run: rows::http_row },
    Bench { name: "http-row-pg", what: "the same, beside PostgreSQL", run: rows::http_row_postgres },
    Bench { name: "embed-get", what: "get by key in the process, beside a hash map", run: in_process::embed_get },
    Bench { name: "scan", what: "TPC-H, beside DuckDB and PostgreSQL", run: scan::scan },
    Bench { name: "load", what: "a table from PostgreSQL, beside COPY", run: load::load },
    Bench { name: "memory", what: "bytes a row, beside the bare values", run: in_process::memory },
    Bench { name: "restart", what: "a killed node serves again, beside reading its files", run: restart::restart },
    Bench { name: "write", what: "rows a second of three nodes, beside etcd", run: write::write_rate },
    Bench {
        name: "write-visible",
        what: "until followers show a write, beside a round trip",
        run: write::write_visible,
    },
    Bench { name: "growth", what: "one row by key, from 10 thousand rows to 10 million", run: rows::growth },
];

const LEAST_ROUNDS: usize = 5;

/// What all benches of one run share.
struct Bed {
    root: PathBuf,
    /// Where the release build is.
    binaries: PathBuf,
    /// Temporary files of this run.
    work: PathBuf,
    rounds: usize,
    /// Length of one round of a load generator.
    seconds: u64,
}

impl Bed {
    fn binary(&self, name: &str) -> Command {
        Command::new(self.binaries.join(name))
    }

    /// The file with that many rows of `kca2`, written once a run.
    fn kca2(&self, rows: u64) -> Outcome<PathBuf> {
        let path = self.work.join(format!("kca2-{rows}.csv"));
        if !path.exists() {
            let file = fs::File::create(&path).context(|| path.display().to_string())?;
            let status = self.binary("bench-kca2").arg(rows.to_string()).stdout(file).status();
            if !status.context(|| "bench-kca2".to_owned())?.success() {
                return Err(Failure::new("bench-kca2 failed"));
            }
        }
        Ok(path)
    }
}

/// The folder of a run, removed at its end.
struct Work(PathBuf);

impl Drop for Work {
    fn drop(&mut self) {
        // Nothing more can be done about a folder that cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn run(root: &Path, arguments: &[&str]) -> Outcome<()> {
    let mut chosen: Vec<&Bench> = Vec::new();
    let mut rounds = LEAST_ROUNDS;
    let mut seconds = 5;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut count = |of: &str| -> Outcome<u64> {
            words
                .next()
                .and_then(|count| count.parse().ok())
                .ok_or_else(|| Failure::new(format!("{of} wants a number")))
        };
        match *word {
            "--list" => {
                BENCHES.iter().for_each(|bench| println!("{:<12} {}", bench.name, bench.what));
                return Ok(());
            }
            "--rounds" => rounds = usize::try_from(count("--rounds")?).unwrap_or(LEAST_ROUNDS),
            "--seconds" => seconds = count("--seconds")?.max(1),
            name => match BENCHES.iter().find(|bench| bench.name == name) {
                Some(bench) => chosen.push(bench),
                None => {
                    return Err(Failure::new(format!("no such bench: {name}; `cargo xtask bench --list` names them")));
                }
            },
        }
    }
    if chosen.is_empty() {
        chosen = BENCHES.iter().collect();
    }
    setup::for_benches()?;
    run_command(&mut cargo(root, &["build", "--release", "--locked", "-p", "cachesql", "-p", "bench"]))?;

    let work = Work(std::env::temp_dir().join(format!("cachesql-bench-{}", std::process::id())));
    fs::create_dir_all(&work.0).context(|| work.0.display().to_string())?;
    // A PostgreSQL that root starts runs as another user, and must get to its folder.
    fs::set_permissions(&work.0, fs::Permissions::from_mode(0o755)).context(|| work.0.display().to_string())?;
    let bed =
        Bed { root: root.to_path_buf(), binaries: target(root).join("release"), work: work.0.clone(), rounds, seconds };
    run_chosen(&bed, &chosen)
}

/// Runs them all, also after one has failed, and says in the end which did.
fn run_chosen(bed: &Bed, chosen: &[&Bench]) -> Outcome<()> {
    let order: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
    let mut failed = Vec::new();
    let mut missed = 0;
    for bench in chosen {
        println!("\n=== {}: {}", bench.name, bench.what);
        match (bench.run)(bed) {
            Ok(section) => {
                println!("{}\n{}", figures::table(&section.comparisons), section.method);
                missed += figures::missed(&section.comparisons);
                if bed.rounds >= LEAST_ROUNDS {
                    report::write(&bed.root, &section, &order)?;
                } else {
                    println!("(fewer than {LEAST_ROUNDS} rounds: not written to bench/results.md)");
                }
            }
            Err(failure) => {
                println!("{failure}");
                failed.push(bench.name);
            }
        }
    }
    if failed.is_empty() {
        println!("\n{} benches, {missed} goals missed", chosen.len());
        Ok(())
    } else {
        Err(Failure::new(format!("benches that could not be measured: {}", failed.join(", "))))
    }
}

/// First line of what a program says of its version.
fn version(command: &mut Command) -> String {
    output(command).ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_else(|| "unknown".to_owned())
}
