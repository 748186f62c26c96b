//! One run, from its seed.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use turmoil::Sim;

use crate::check;
use crate::clients::{Desk, Phase, work};
use crate::cluster::Cluster;
use crate::faults::{Faults, LATENCY};
use crate::history::History;

/// Simulated time from one turn of a host to its next.
const TICK: Duration = Duration::from_millis(5);
/// Simulated time in which a group founds itself.
const FOUNDING: Duration = Duration::from_secs(60);
/// Simulated time in which a group is well again, once everything is mended.
const MENDING: Duration = Duration::from_secs(120);
/// Where clients are.
const CLIENTS: &str = "clients";

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was wrong, in words; empty when nothing was.
    pub wrong: Vec<String>,
    /// What happened.
    pub history: History,
    /// How long it was, in simulated time.
    pub simulated: Duration,
}

/// Runs a cluster through faults, and checks what came of it.
pub fn run(seed: u64) -> Report {
    let mut random = SmallRng::seed_from_u64(seed);
    let members = if random.random_ratio(1, 5) { 5 } else { 3 };
    let cluster = Cluster::new(members, seed);
    let desk = Desk::new(cluster.clone(), seed);
    let mut sim = turmoil::Builder::new()
        .rng_seed(random.random())
        .tick_duration(TICK)
        .min_message_latency(LATENCY.0)
        .max_message_latency(LATENCY.1)
        .tcp_capacity(4_096)
        .simulation_duration(Duration::from_secs(3_600))
        .epoch(SystemTime::UNIX_EPOCH)
        .enable_random_order()
        .build();
    for name in cluster.names() {
        let (cluster, name) = (cluster.clone(), name.clone());
        sim.host(name.clone(), move || cluster.clone().live(name.clone()));
    }
    sim.client(CLIENTS, work(desk.clone()));
    let mut faults = Faults::new(cluster.clone(), SmallRng::seed_from_u64(random.random()));
    let mut wrong = Vec::new();
    if let Err(why) = go_through(&mut sim, &desk, &mut faults, random.random_range(4_000..14_000)) {
        wrong.push(why);
    }
    let simulated = sim.elapsed();
    // Hosts are dropped inside their world.
    for name in cluster.names() {
        sim.crash(name.clone());
    }
    let mut history = desk.history.take();
    history.faults = faults.into_log();
    wrong.extend(all_checks(&desk, &history));
    Report { wrong, history, simulated }
}

fn go_through(sim: &mut Sim, desk: &Rc<Desk>, faults: &mut Faults, work_ms: u64) -> Result<(), String> {
    let cluster = &desk.cluster;
    until(sim, FOUNDING, |_| cluster.is_settled()).map_err(|why| format!("founding: {why}{}", cluster.told()))?;
    desk.phase.set(Phase::Working);
    let end = sim.elapsed() + Duration::from_millis(work_ms);
    while sim.elapsed() < end {
        step(sim)?;
        well(cluster)?;
        faults.happen(sim);
    }
    desk.phase.set(Phase::Mending);
    faults.mend(sim);
    until(sim, MENDING, |_| cluster.is_settled()).map_err(|why| format!("mending: {why}{}", cluster.told()))?;
    well(cluster)?;
    desk.phase.set(Phase::Quiet);
    until(sim, MENDING, |is_finished| is_finished).map_err(|why| format!("the last look: {why}{}", cluster.told()))
}

fn well(cluster: &Cluster) -> Result<(), String> {
    cluster.broken().or_else(|| cluster.stopped()).map_or(Ok(()), Err)
}

fn step(sim: &mut Sim) -> Result<bool, String> {
    sim.step().map_err(|error| error.to_string())
}

/// Goes on until something is so, for so much simulated time at the most.
fn until(sim: &mut Sim, most: Duration, is_so: impl Fn(bool) -> bool) -> Result<(), String> {
    let end = sim.elapsed() + most;
    while sim.elapsed() < end {
        if is_so(step(sim)?) {
            return Ok(());
        }
    }
    Err(format!("not done after {most:?}"))
}

fn all_checks(desk: &Desk, history: &History) -> Vec<String> {
    let operations = &history.operations;
    let mut found = vec![check::not_linearizable(operations), check::not_monotonic(operations)];
    let members = desk.members.borrow();
    found.push(check::unequal(&members));
    if let Some(first) = members.first() {
        let table = |at: usize| first.rows.get(at).into_iter().flatten();
        let total = table(1).find_map(|row| row.strip_prefix("1|")?.parse().ok()).unwrap_or(0);
        found.push(check::not_once(operations, total));
        let ledger: BTreeSet<i64> = table(2).filter_map(|row| row.parse().ok()).collect();
        found.push(check::lost_writes(operations, &ledger));
    }
    found.into_iter().filter_map(Result::err).collect()
}
