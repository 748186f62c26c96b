//! Runs one seed: `sim SEED [--bug NAME] [--history]`. It says what was wrong, and ends with 1 if anything was.
//!
//! A process runs one seed only, so that the randomness that libraries draw from the process follows from it too.

use std::process::ExitCode;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sim::PlantedBug;

const USAGE: &str = "usage: sim SEED [--bug NAME] [--history]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match read(&arguments) {
        Ok((seed, shows)) => run(seed, shows),
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The seed, and whether the history is wanted.
fn read(arguments: &[String]) -> Result<(u64, bool), String> {
    let (mut seed, mut shows) = (None, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--history" => shows = true,
            "--bug" => {
                let name = words.next().ok_or("--bug: which one?")?;
                let bug = PlantedBug::ALL.into_iter().find(|bug| format!("{bug:?}") == *name);
                bug.ok_or_else(|| format!("no such bug: {name}; there are {:?}", PlantedBug::ALL))?.plant();
            }
            number => seed = Some(number.parse().map_err(|_| format!("not a seed: {number}"))?),
        }
    }
    Ok((seed.ok_or("no seed")?, shows))
}

fn run(seed: u64, shows: bool) -> ExitCode {
    mad_turmoil::rand::set_rng(StdRng::seed_from_u64(seed));
    let _clocks = mad_turmoil::time::SimClocksGuard::init();
    if let Ok(filter) = std::env::var("SIM_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).without_time().with_writer(std::io::stderr).init();
    }
    let report = sim::run(seed);
    if shows {
        print!("{}", report.history.text());
    }
    for wrong in &report.wrong {
        eprintln!("seed {seed}: WRONG: {wrong}");
    }
    let (operations, fingerprint) = (report.history.operations.len(), report.history.fingerprint());
    let seconds = report.simulated.as_secs_f64();
    println!("seed {seed}: {operations} operations in {seconds:.1} simulated seconds, fingerprint {fingerprint:016x}");
    if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
