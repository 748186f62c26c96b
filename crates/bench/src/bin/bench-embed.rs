//! `bench-embed memory|table|map ROWS`, `bench-embed get ROWS FILE`: `kca2` inside a process. Prints `name value` lines.
//!
//! - `get`: what an application calls that has a node inside itself: the newest snapshot, a typed read by key, and every value
//!   of the row taken out; FILE holds the rows as CSV;
//! - `memory`: bytes that the rows and three indexes take, as accounted and as the kernel sees it, beside the bare values;
//! - `table`: gets by key from a table's snapshot, every value of the row taken out;
//! - `map`: the same from a hash map, the row cloned.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cachesql_bench::{kca2, process};
use cachesql_node::{
    Comparison, FileFormat, FileSource, Filter, Node, NodeConfig, Operand, Select, TableConfig, TableSource,
};
use cachesql_table::{GroupSnapshot, Operation};
use cachesql_types::limits::LOAD_BATCH_ROWS;
use cachesql_types::{LogIndex, Value};
use hashbrown::HashMap;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How long gets are counted, after as long a warm-up.
const MEASURED: Duration = Duration::from_secs(2);
/// How long after a load its memory is counted.
const SETTLED: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows = arguments.get(1).and_then(|rows| rows.parse::<u64>().ok()).unwrap_or(0);
    let outcome = match arguments.first().map(String::as_str) {
        Some("memory") if rows > 0 => memory(rows),
        Some("get") if rows > 0 => get(rows, arguments.get(2).map(Path::new).unwrap_or(Path::new("kca2.csv"))),
        Some("table") if rows > 0 => table(rows),
        Some("map") if rows > 0 => map(rows),
        _ => {
            eprintln!("usage: bench-embed memory|table|map ROWS, bench-embed get ROWS FILE");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-embed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn memory(rows: u64) -> Outcome<()> {
    let before = process::resident_bytes();
    let snapshot = load(rows)?;
    settle();
    let after = process::resident_bytes();
    let used = snapshot.memory();
    let raw: usize = (1..=rows).map(|key| kca2::row(key).raw_bytes()).sum();
    println!("rows_bytes {}\nindex_bytes {}", used.rows_bytes, used.index_bytes);
    println!("counted_bytes {}\nresident_bytes {}\nraw_bytes {raw}", used.total(), after.saturating_sub(before));
    Ok(())
}

/// Lets the allocator give back what the load no longer needs: it does so some time later, and when it is called.
fn settle() {
    let until = Instant::now() + SETTLED;
    while Instant::now() < until {
        for size in [64, 1 << 12, 1 << 16, 1 << 20] {
            black_box(Vec::<u8>::with_capacity(size));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn get(rows: u64, file: &Path) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let node = runtime.block_on(start(file))?;
    let by_key = Select {
        table: "kca2".to_owned(),
        filter: Some(Filter::Compare { column: 0, op: Comparison::Equal, operand: Operand::Parameter(0) }),
        ..Select::default()
    };
    let columns = kca2::COLUMNS.len();
    measure(rows, |key| {
        let found =
            node.select(&node.snapshot(), &by_key, &[Value::BigInt(key)]).ok().filter(|found| found.len() == 1)?;
        let row = found.row(0);
        Some((0..columns).map(|column| row.cell(column).to_value()).collect::<Vec<Value>>())
    })?;
    runtime.block_on(node.shutdown());
    Ok(())
}

async fn start(file: &Path) -> Outcome<Arc<Node>> {
    let format = FileFormat::of_path(file).ok_or("a file of unknown format")?;
    let source = TableSource::File(FileSource { path: file.to_owned(), format });
    let schema = kca2::schema();
    let mut table = TableConfig::new(schema.name, source);
    table.key = vec!["aac001".to_owned()];
    table.indexes = schema.indexes.iter().map(|index| vec![index.name.clone()]).collect();
    table.types = schema.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let mut config = NodeConfig::new(16 << 30);
    config.tables.push(table);
    let node = Node::start(config).await?;
    node.wait_ready().await;
    Ok(node)
}

fn table(rows: u64) -> Outcome<()> {
    let snapshot = load(rows)?;
    let columns = kca2::COLUMNS.len();
    measure(rows, |key| {
        let table = snapshot.table("kca2")?;
        let row = table.row(table.get(&[Value::BigInt(key)])?)?;
        Some((0..columns).map(|column| row.value(column)).collect::<Vec<Value>>())
    })
}

fn map(rows: u64) -> Outcome<()> {
    let map: HashMap<i64, kca2::Row> = (1..=rows).map(|key| (key as i64, kca2::row(key))).collect();
    measure(rows, |key| map.get(&key).cloned())
}

/// The table, loaded as a node does it.
fn load(rows: u64) -> Outcome<GroupSnapshot> {
    let mut index = 0;
    let mut snapshot = GroupSnapshot::empty();
    let mut apply = |operation: Operation| -> Outcome<GroupSnapshot> {
        index += 1;
        snapshot = snapshot.apply(LogIndex(index), &[operation])?.0;
        Ok(snapshot.clone())
    };
    apply(Operation::BeginLoad { load: 1, schema: kca2::schema() })?;
    let step = LOAD_BATCH_ROWS as u64;
    for first in (1..=rows).step_by(LOAD_BATCH_ROWS) {
        let count = step.min(rows - first + 1);
        apply(Operation::LoadRows { load: 1, batch: kca2::batch(first, count)? })?;
    }
    apply(Operation::FinishLoad { load: 1 })
}

/// Counts gets of random keys, and prints how many there were in a second.
fn measure<T>(rows: u64, get: impl Fn(i64) -> Option<T>) -> Outcome<()> {
    const KEYS: usize = 1 << 20;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut keys = Vec::with_capacity(KEYS);
    for _ in 0..KEYS {
        // xorshift64 (Marsaglia: Xorshift RNGs, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        keys.push((state % rows) as i64 + 1);
    }
    let mut rate = 0.0;
    // The first pass warms up.
    for _ in 0..2 {
        let started = Instant::now();
        let mut done = 0_u64;
        for some in keys.chunks(KEYS / 64).cycle() {
            for key in some {
                if black_box(get(black_box(*key))).is_none() {
                    return Err(format!("key {key} is not there").into());
                }
            }
            done += some.len() as u64;
            if started.elapsed() > MEASURED {
                break;
            }
        }
        rate = done as f64 / started.elapsed().as_secs_f64();
    }
    println!("gets_per_second {rate}");
    Ok(())
}
