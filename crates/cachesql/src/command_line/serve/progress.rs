//! How far loading is: a bar for each table on a terminal, a line every second elsewhere; and what will be needed, against
//! the memory limit, before it is loaded.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use cachesql_node::{LoadPhase, TableLoad};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};
use unicode_width::UnicodeWidthStr;

use crate::command_line::terminal;
use crate::config::units::{show_count, show_size};

/// The most that a table's name takes of a bar's line.
const MOST_NAME_CELLS: usize = 30;

/// Watches the loads until every table was loaded once.
pub(super) async fn show_until_loaded(mut loads: watch::Receiver<Vec<TableLoad>>, memory_bytes: u64) {
    let mut view = View::new(memory_bytes);
    let mut every_second: Interval = interval(Duration::from_secs(1));
    every_second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    every_second.reset();
    loop {
        let state = loads.borrow_and_update().clone();
        view.changed(&state);
        if state.iter().all(|load| load.loaded_once) {
            view.finish();
            return;
        }
        tokio::select! {
            changed = loads.changed() => {
                if changed.is_err() {
                    view.finish();
                    return;
                }
            }
            _ = every_second.tick() => view.second_passed(&state),
        }
    }
}

/// What was said of a table so far.
#[derive(Default)]
struct Said {
    estimate: bool,
    loaded: bool,
    failed_attempts: u32,
}

struct View {
    memory_bytes: u64,
    estimated_bytes: u64,
    said: BTreeMap<String, Said>,
    bars: Option<Bars>,
}

impl View {
    fn new(memory_bytes: u64) -> View {
        let bars = std::io::stderr().is_terminal().then(Bars::default);
        View { memory_bytes, estimated_bytes: 0, said: BTreeMap::new(), bars }
    }

    fn changed(&mut self, loads: &[TableLoad]) {
        if let Some(bars) = &mut self.bars {
            bars.name_width = name_width(loads.iter().map(|load| load.table.as_str()));
        }
        for load in loads {
            self.estimate(load);
            self.outcome(load);
            if let Some(bars) = &mut self.bars {
                bars.update(load);
            }
        }
    }

    fn estimate(&mut self, load: &TableLoad) {
        let said = self.said.entry(load.table.clone()).or_default();
        let Some(estimate) = load.estimate.filter(|_| !said.estimate) else { return };
        said.estimate = true;
        self.estimated_bytes = self.estimated_bytes.saturating_add(estimate.bytes);
        let (rows, size) = (show_count(estimate.rows, "row"), show_size(estimate.bytes));
        let (all, limit) = (show_size(self.estimated_bytes), show_size(self.memory_bytes));
        self.line(&format!("{}: about {rows}, {size}; with the tables before it {all} of {limit}", load.table));
    }

    fn outcome(&mut self, load: &TableLoad) {
        let said = self.said.entry(load.table.clone()).or_default();
        if load.phase == LoadPhase::Loaded && !said.loaded {
            said.loaded = true;
            if tracing::enabled!(target: "cachesql_node", tracing::Level::INFO) {
                // The log says the same.
                return;
            }
            let (rows, seconds) = (show_count(load.rows, "row"), load.took.as_secs_f64());
            self.line(&format!("{}: loaded {rows} in {seconds:.1} s", load.table));
        } else if load.phase == LoadPhase::Failed && load.attempts > said.failed_attempts {
            said.failed_attempts = load.attempts;
            if tracing::enabled!(target: "cachesql_node", tracing::Level::WARN) {
                return;
            }
            let why = load.error.as_deref().unwrap_or("no reason was given");
            self.line(&format!("{}: not loaded (attempt {}): {why}", load.table, load.attempts));
        }
    }

    fn second_passed(&self, loads: &[TableLoad]) {
        if self.bars.is_some() {
            return;
        }
        for load in loads.iter().filter(|l| l.phase == LoadPhase::Loading) {
            if load.rows == 0 {
                eprintln!("{}: waiting for its first rows", load.table);
                continue;
            }
            let share =
                load.estimate.filter(|e| e.rows > 0).map(|e| format!(" (about {} %)", share(load.rows, e.rows)));
            eprintln!("{}: {}{}", load.table, show_count(load.rows, "row"), share.unwrap_or_default());
        }
    }

    fn line(&self, text: &str) {
        match &self.bars {
            // Printed above the bars, which would else be torn.
            Some(_) if terminal::bars().println(text).is_ok() => {}
            _ => eprintln!("{text}"),
        }
    }

    fn finish(&self) {
        if self.bars.is_some() {
            let _ = terminal::bars().clear();
        }
    }
}

/// An estimate can be too low: 99 is the most before the end.
fn share(rows: u64, estimate: u64) -> u64 {
    (rows.saturating_mul(100) / estimate.max(1)).min(99)
}

/// A bar for each table that is loading.
#[derive(Default)]
struct Bars {
    of_table: BTreeMap<String, ProgressBar>,
    /// Cells that names take, so that bars stand below each other.
    name_width: usize,
}

impl Bars {
    fn update(&mut self, load: &TableLoad) {
        if load.phase != LoadPhase::Loading {
            if let Some(bar) = self.of_table.remove(&load.table) {
                bar.finish_and_clear();
            }
            return;
        }
        let width = self.name_width;
        let bar = self.of_table.entry(load.table.clone()).or_insert_with(|| {
            let bar = terminal::bars().add(ProgressBar::no_length());
            set_template(&bar, &format!("{{prefix:{width}!}} {{spinner}} {{msg}}"));
            // A file is read whole for its types before the first row is counted.
            bar.set_message("waiting for its first rows");
            bar.set_prefix(load.table.clone());
            bar
        });
        if let Some(estimate) = load.estimate.filter(|_| bar.length().is_none()) {
            bar.set_length(estimate.rows);
            set_template(bar, &format!("{{prefix:{width}!}} {{bar:30}} {{percent:>3}} %  {{msg}}"));
        }
        if load.rows > 0 {
            let noun = if load.rows == 1 { "row" } else { "rows" };
            bar.set_message(format!("{} {noun}", HumanCount(load.rows)));
        }
        bar.set_position(load.rows);
    }
}

/// Cells of the widest name, up to a limit from which on names are cut.
fn name_width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(UnicodeWidthStr::width).max().unwrap_or(0).min(MOST_NAME_CELLS)
}

fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_as_much_as_the_widest() {
        assert_eq!(name_width(["KCA2", "参保人员", "t"].into_iter()), 8);
        assert_eq!(name_width([&*"x".repeat(99)].into_iter()), MOST_NAME_CELLS);
    }

    #[test]
    fn a_share_never_says_that_it_is_done() {
        assert_eq!((share(0, 100), share(50, 100), share(500, 100), share(1, 0)), (0, 50, 99, 99));
    }
}
