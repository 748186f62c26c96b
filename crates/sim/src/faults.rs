//! What is done to a cluster while clients work, as a seed has it; and how all of it is mended.

use std::time::Duration;

use cachesql_group::disk::{Crash, MemoryDisk};
use rand::RngExt as _;
use rand::rngs::SmallRng;
use turmoil::Sim;

use crate::cluster::{Asked, Cluster};

/// How long messages take on a link that is well.
pub(crate) const LATENCY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// What will be undone, or done next.
#[derive(Clone, Debug)]
enum Later {
    /// A node that is down starts.
    Start(String),
    /// Messages that are lost between these come through again.
    Repair(String, String),
    /// Messages that are held between these are let go.
    Release(String, String),
    /// A link is as quick as the others.
    Quicken(String, String),
    /// A node that was taken out comes back, as a new one.
    ComeBack(String),
}

/// What is broken, and what will be.
pub(crate) struct Faults {
    cluster: Cluster,
    random: SmallRng,
    /// With the simulated time at which each is due.
    later: Vec<(Duration, Later)>,
    next: Duration,
    /// True while something is wrong with the network: one thing at a time.
    network: bool,
    log: Vec<(u64, String)>,
}

impl Faults {
    pub(crate) fn new(cluster: Cluster, random: SmallRng) -> Faults {
        Faults { cluster, random, later: Vec::new(), next: Duration::ZERO, network: false, log: Vec::new() }
    }

    /// What was done, with its simulated milliseconds.
    pub(crate) fn into_log(self) -> Vec<(u64, String)> {
        self.log
    }

    fn note(&mut self, sim: &Sim, what: String) {
        self.log.push((u64::try_from(sim.elapsed().as_millis()).unwrap_or(u64::MAX), what));
    }

    /// Does what is due, and once in a while something new.
    pub(crate) fn happen(&mut self, sim: &mut Sim) {
        let now = sim.elapsed();
        self.undo(sim, |due| due <= now);
        if now >= self.next {
            if self.next > Duration::ZERO {
                self.break_something(sim);
            }
            self.next = now + Duration::from_millis(self.random.random_range(200..2_500));
        }
    }

    /// Mends all that is broken.
    pub(crate) fn mend(&mut self, sim: &mut Sim) {
        self.undo(sim, |_| true);
    }

    fn undo(&mut self, sim: &mut Sim, is_due: impl Fn(Duration) -> bool) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.later).into_iter().partition(|(at, _)| is_due(*at));
        self.later = later;
        for (_, what) in due {
            self.note(sim, format!("{what:?}"));
            match what {
                Later::Start(node) => sim.bounce(node),
                Later::Repair(from, to) => sim.repair(from, to),
                Later::Release(from, to) => sim.release(from, to),
                Later::Quicken(from, to) => sim.set_link_latency(from, to, LATENCY.0),
                Later::ComeBack(node) => {
                    self.crash(sim, &node, |_| MemoryDisk::default());
                    sim.bounce(node);
                }
            }
        }
        self.network = self.later.iter().any(|(_, what)| !matches!(what, Later::Start(_) | Later::ComeBack(_)));
    }

    fn after(&mut self, sim: &Sim, ms: std::ops::Range<u64>, what: Later) {
        let pause = self.random.random_range(ms);
        self.later.push((sim.elapsed() + Duration::from_millis(pause), what));
    }

    fn any_node(&mut self) -> String {
        let names = self.cluster.names();
        let at = self.random.random_range(0..names.len());
        names.get(at).cloned().unwrap_or_default()
    }

    fn break_something(&mut self, sim: &mut Sim) {
        let node = self.any_node();
        match self.random.random_range(0..100) {
            0..25 => self.crash_one(sim, &node),
            25..33 => self.crash_all(sim),
            33..43 => self.lose_disk(sim, &node),
            43..50 => self.take_out(sim, &node),
            50..62 => {
                // Whom it asks is whoever.
                let asked = self.any_node();
                self.note(sim, format!("{asked} is asked to have {node} lead"));
                drop(self.cluster.ask(&asked, Asked::HandOver(node)));
            }
            _ if self.network => {}
            62..76 => self.cut_off(sim, &node),
            76..86 => {
                let other = self.other_than(&node);
                self.note(sim, format!("nothing from {node} reaches {other}"));
                sim.partition_oneway(node.clone(), other.clone());
                self.after(sim, 300..6_000, Later::Repair(node, other));
            }
            86..93 => {
                let other = self.other_than(&node);
                self.note(sim, format!("what is between {node} and {other} is held"));
                sim.hold(node.clone(), other.clone());
                self.after(sim, 100..2_000, Later::Release(node, other));
            }
            _ => {
                let (other, ms) = (self.other_than(&node), self.random.random_range(50..400));
                self.note(sim, format!("between {node} and {other} everything takes {ms} ms"));
                sim.set_link_latency(node.clone(), other.clone(), Duration::from_millis(ms));
                self.after(sim, 500..4_000, Later::Quicken(node, other));
            }
        }
        self.network = self.later.iter().any(|(_, what)| !matches!(what, Later::Start(_) | Later::ComeBack(_)));
    }

    fn other_than(&mut self, node: &str) -> String {
        loop {
            let other = self.any_node();
            if other != node {
                return other;
            }
        }
    }

    /// A node, and perhaps one more with it, hears nothing of the others, and they nothing of it.
    fn cut_off(&mut self, sim: &mut Sim, node: &str) {
        let mut inside = vec![node.to_owned()];
        if self.cluster.names().len() > 3 && self.random.random_ratio(1, 2) {
            inside.push(self.other_than(node));
        }
        self.note(sim, format!("{inside:?} cut off"));
        let pause = self.random.random_range(300..7_000);
        let until = sim.elapsed() + Duration::from_millis(pause);
        for other in self.cluster.names().to_vec() {
            for one in inside.iter().filter(|_| !inside.contains(&other)) {
                sim.partition(one.clone(), other.clone());
                self.later.push((until, Later::Repair(one.clone(), other.clone())));
            }
        }
    }

    fn crash(&mut self, sim: &mut Sim, node: &str, found: impl FnOnce(&MemoryDisk) -> MemoryDisk) {
        sim.crash(node);
        self.cluster.crashed(node, found);
    }

    fn any_crash(&mut self) -> Crash {
        match self.random.random_range(0..4) {
            0 => Crash::Lost,
            1 => Crash::Kept,
            2 => Crash::Torn(self.random.random_range(0..300)),
            _ => Crash::Hole(self.random.random_range(0..2)),
        }
    }

    fn crash_one(&mut self, sim: &mut Sim, node: &str) {
        if !self.cluster.is_up(node) {
            return;
        }
        let crash = self.any_crash();
        self.note(sim, format!("{node} crashes: {crash:?}"));
        self.crash(sim, node, |disk| disk.crash(crash));
        self.after(sim, 50..4_000, Later::Start(node.to_owned()));
    }

    fn crash_all(&mut self, sim: &mut Sim) {
        for node in self.cluster.names().to_vec() {
            self.crash_one(sim, &node);
        }
    }

    /// Only where all vote and have everything: a group survives as many lost disks as it has votes beyond a majority.
    fn lose_disk(&mut self, sim: &mut Sim, node: &str) {
        if !self.cluster.is_settled() || !self.later.is_empty() {
            return;
        }
        self.note(sim, format!("{node} crashes and loses its disk"));
        self.crash(sim, node, |_| MemoryDisk::default());
        self.after(sim, 50..3_000, Later::Start(node.to_owned()));
    }

    /// Takes a member out; it comes back later with an empty disk.
    fn take_out(&mut self, sim: &mut Sim, node: &str) {
        if !self.cluster.is_settled() || !self.later.is_empty() {
            return;
        }
        let asked = self.any_node();
        self.note(sim, format!("{asked} is asked to take {node} out"));
        drop(self.cluster.ask(&asked, Asked::TakeOut(node.to_owned())));
        self.after(sim, 500..4_000, Later::ComeBack(node.to_owned()));
    }
}
