//! `embed-get`, `memory`: what an application sees that has the tables inside itself.

use super::Bed;
use super::figures::{Comparison, Goal, Sample};
use super::report::Section;
use crate::failure::{Failure, Outcome};
use crate::steps::output;

const ROWS: u64 = 1_000_000;

pub(crate) fn embed_get(bed: &Bed) -> Outcome<Section> {
    let goal = Goal::AtLeast { must: 0.2, aim: 0.5 };
    let mut comparison = Comparison::new("get by key", "hashbrown", "gets/s", goal);
    for round in 0..=bed.rounds {
        let file = bed.kca2(ROWS)?;
        let said = output(bed.binary("bench-embed").args(["get", &ROWS.to_string()]).arg(&file))?;
        let ours = field(&said, "gets_per_second")?;
        let theirs = field(&said_of(bed, "map")?, "gets_per_second")?;
        if round > 0 {
            comparison.push(Sample::of(ours), Sample::of(theirs));
        }
    }
    Ok(Section {
        name: "embed-get",
        method: format!(
            "`kca2`, {ROWS} rows, random keys, one thread, each side in a process of its own. Ours is a library's call: \
             the node's current snapshot, the typed read of the key, and every value of the row taken out into owned \
             values. Theirs is a hashbrown map from key to row (its own default hasher), and a clone of the row."
        ),
        versions: vec!["hashbrown as in Cargo.lock".to_owned()],
        rounds: bed.rounds,
        comparisons: vec![comparison],
    })
}

pub(crate) fn memory(bed: &Bed) -> Outcome<Section> {
    let goal = Goal::AtMost { must: 2.2, aim: 1.5 };
    let mut counted = Comparison::new("rows and three indexes, as accounted", "bare values", "B/row", goal);
    let mut resident = Comparison::new("the same, as the kernel counts it", "bare values", "B/row", goal);
    for _ in 0..bed.rounds {
        let said = said_of(bed, "memory")?;
        let raw = Sample::of(field(&said, "raw_bytes")? / ROWS as f64);
        counted.push(Sample::of(field(&said, "counted_bytes")? / ROWS as f64), raw);
        resident.push(Sample::of(field(&said, "resident_bytes")? / ROWS as f64), raw);
    }
    Ok(Section {
        name: "memory",
        method: format!(
            "`kca2`, {ROWS} rows loaded in batches, indexes on the key, the text of 5,000 values and the integer. Bare \
             values: 8 bytes for the key, the timestamp and the decimal, 4 for the integer, and the texts' own bytes. \
             The kernel's figure is the growth of resident memory from before the load to three seconds after it, with a \
             few allocations meanwhile, as a node has: the allocator gives back what the load needed when it is called."
        ),
        versions: vec!["the original CacheSQL held 948 B/row".to_owned()],
        rounds: bed.rounds,
        comparisons: vec![counted, resident],
    })
}

fn said_of(bed: &Bed, what: &str) -> Outcome<String> {
    output(bed.binary("bench-embed").args([what, &ROWS.to_string()]))
}

/// One `name value` line of what the program printed.
fn field(said: &str, name: &str) -> Outcome<f64> {
    said.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        .ok_or_else(|| Failure::new(format!("bench-embed gave no {name}:\n{said}")))
}
