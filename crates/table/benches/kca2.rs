//! Memory and speed of a table of the kind that CacheSQL is made for: a million rows of eight columns, indexes on the key, on
//! a text of 5,000 values and on an integer of 90. Run by `cargo bench -p cachesql-table`; the number of rows may be given.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::cast_precision_loss, clippy::cast_possible_truncation)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::DataType as ArrowType;
use cachesql_table::{GroupSnapshot, IndexRange, Operation, PutMode};
use cachesql_types::{Column, DataType, Decimal, IndexDefinition, TableSchema, Value, arrow_schema};

const BATCH_ROWS: u64 = 65_536;
const VALUES: u64 = 5_000;
const AGES: u64 = 90;

/// splitmix64: the same rows in every run.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn schema() -> TableSchema {
    let column = |name: &str, data_type, nullable| Column { name: name.into(), data_type, nullable };
    let index = |column: usize, name: &str| IndexDefinition { name: name.into(), columns: vec![column], unique: false };
    TableSchema {
        name: "kca2".into(),
        columns: vec![
            column("aac001", DataType::BigInt, false),
            column("aac002", DataType::Text, true),
            column("aac003", DataType::Text, true),
            column("aac004", DataType::Text, true),
            column("aab004", DataType::Text, true),
            column("aae001", DataType::Integer, true),
            column("aae036", DataType::Timestamp, true),
            column("aic020", DataType::Decimal { precision: 12, scale: 2 }, true),
        ],
        key: vec![0],
        indexes: vec![index(4, "aab004"), index(5, "aae001")],
    }
}

fn row(id: u64) -> Vec<Value> {
    let random = mix(id);
    vec![
        Value::BigInt(id as i64),
        Value::text(format!("{:018}", random % 1_000_000_000_000_000_000)),
        Value::text(format!("name{:06}", mix(random) % 800_000)),
        Value::text(if random & 1 == 0 { "1" } else { "2" }),
        Value::text(format!("COMPANY-{:05}", mix(random + 1) % VALUES)),
        Value::Integer((mix(random + 2) % AGES) as i32),
        Value::Timestamp(1_600_000_000_000_000 + (mix(random + 3) % 100_000_000_000_000) as i64),
        Value::Decimal(Decimal { unscaled: i128::from(mix(random + 4) % 10_000_000), scale: 2 }),
    ]
}

/// Rows as an origin sends them, and the bytes of their columns: fixed widths, and texts without any offsets.
fn batch(first: u64, rows: u64) -> (RecordBatch, usize) {
    let rows: Vec<Vec<Value>> = (first..first + rows).map(row).collect();
    let texts = |c: usize| -> ArrayRef { Arc::new(rows.iter().map(|r| r[c].as_str()).collect::<StringArray>()) };
    let decimals = rows.iter().map(|r| if let Value::Decimal(d) = r[7] { Some(d.unscaled) } else { None });
    let times = rows.iter().map(|r| if let Value::Timestamp(t) = r[6] { Some(t) } else { None });
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|r| r[0].as_i64()).collect::<Int64Array>()),
        texts(1),
        texts(2),
        texts(3),
        texts(4),
        Arc::new(
            rows.iter().map(|r| if let Value::Integer(v) = r[5] { Some(v) } else { None }).collect::<Int32Array>(),
        ),
        Arc::new(times.collect::<TimestampMicrosecondArray>()),
        Arc::new(decimals.collect::<Decimal128Array>().with_data_type(ArrowType::Decimal128(12, 2))),
    ];
    let text_bytes: usize = rows.iter().flatten().filter_map(|v| v.as_str().map(str::len)).sum();
    let raw = text_bytes + rows.len() * (8 + 4 + 8 + 16);
    (RecordBatch::try_new(Arc::new(arrow_schema(&schema())), columns).expect("columns fit"), raw)
}

/// Time that this thread was on a processor: figures must not depend on what else the machine does.
#[derive(Clone, Copy)]
struct Cpu(u64);

impl Cpu {
    fn now() -> Cpu {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
        Cpu(text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
    }

    fn elapsed(self) -> Duration {
        Duration::from_nanos(Cpu::now().0 - self.0)
    }
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn report(name: &str, elapsed: Duration, count: u64) {
    println!("{name:<44} {:>10.0} ns", elapsed.as_nanos() as f64 / count as f64);
}

fn main() {
    let rows = std::env::args().filter_map(|a| a.parse::<u64>().ok()).next().unwrap_or(1_000_000);
    let batches: Vec<(RecordBatch, usize)> =
        (0..rows.div_ceil(BATCH_ROWS)).map(|b| batch(b * BATCH_ROWS, BATCH_ROWS.min(rows - b * BATCH_ROWS))).collect();
    let raw: usize = batches.iter().map(|b| b.1).sum();
    let before = resident_bytes();
    let started = Cpu::now();
    let mut snapshot = GroupSnapshot::empty();
    let mut apply = |snapshot: &mut GroupSnapshot, operations: &[Operation]| {
        *snapshot = snapshot.apply(snapshot.index().next(), operations).expect("applies").0;
    };
    let begin = Operation::BeginLoad { schema: schema(), load: 1 };
    apply(&mut snapshot, &[begin]);
    for (batch, _) in &batches {
        apply(&mut snapshot, &[Operation::LoadRows { load: 1, batch: batch.clone() }]);
    }
    let staged = started.elapsed();
    apply(&mut snapshot, &[Operation::FinishLoad { load: 1 }]);
    println!("load of {rows} rows: {:?}, of it indexes {:?}", started.elapsed(), started.elapsed() - staged);
    println!("resident: {:.1} bytes a row", (resident_bytes() - before) as f64 / rows as f64);
    memory(&snapshot, raw, rows);
    reads(&snapshot, rows);
    scans(&snapshot);
    writes(&mut snapshot, rows, &mut apply);
    memory(&snapshot, raw, rows);
}

fn memory(snapshot: &GroupSnapshot, raw: usize, rows: u64) {
    let memory = snapshot.memory();
    let total = memory.total() as usize;
    let per_row = |bytes: usize| bytes as f64 / rows as f64;
    println!(
        "memory: {:.1} bytes a row (rows {:.1}, indexes {:.1}), raw {:.1}: {:.2} of raw",
        per_row(total),
        per_row(memory.rows_bytes),
        per_row(memory.index_bytes),
        per_row(raw),
        total as f64 / raw as f64
    );
    let table = snapshot.table("kca2").expect("there");
    for index in table.indexes() {
        println!("  index {:<10} {:.1} bytes a row", index.definition().name, per_row(index.bytes()));
    }
}

fn reads(snapshot: &GroupSnapshot, rows: u64) {
    const COUNT: u64 = 1_000_000;
    let table = snapshot.table("kca2").expect("there");
    let started = Cpu::now();
    for n in 0..COUNT {
        let id = table.get(&[Value::BigInt((mix(n) % rows) as i64)]).expect("present");
        black_box(table.row(id).expect("live").values());
    }
    report("get by key, copy of the row", started.elapsed(), COUNT);
    // What a program would write for itself: a hash map of rows. Texts are copied, as they are above.
    let map: HashMap<i64, Vec<Value>> = (0..rows).map(|id| (id as i64, row(id))).collect();
    let copy = |value: &Value| match value {
        Value::Text(text) => Value::text(&**text),
        other => other.clone(),
    };
    let started = Cpu::now();
    for n in 0..COUNT {
        let row = &map[&((mix(n) % rows) as i64)];
        black_box(row.iter().map(copy).collect::<Vec<Value>>());
    }
    report("  the same of a hash map", started.elapsed(), COUNT);
    drop(map);
    let started = Cpu::now();
    for n in 0..COUNT {
        black_box(table.get(&[Value::BigInt((mix(n) % rows) as i64)]));
    }
    report("get by key", started.elapsed(), COUNT);
    let index = &table.indexes()[1];
    let ranges: Vec<IndexRange> =
        (0..VALUES).map(|n| IndexRange::equal(&[Value::text(format!("COMPANY-{n:05}"))])).collect();
    let started = Cpu::now();
    let mut found = 0;
    for n in 0..COUNT {
        found += u64::from(index.select(&ranges[(mix(n) % VALUES) as usize]).next().is_some());
    }
    report("first row of one of 5,000 texts", started.elapsed(), found.max(1));
    let started = Cpu::now();
    let found: usize = ranges.iter().map(|range| index.select(range).count()).sum();
    report("each row of one of 5,000 texts", started.elapsed(), found as u64);
    let started = Cpu::now();
    let counted: u64 = ranges.iter().map(|range| index.count(range)).sum();
    report("count of one of 5,000 texts", started.elapsed(), VALUES);
    assert_eq!(counted, found as u64);
    let started = Cpu::now();
    let all = table.indexes()[2].select(&IndexRange::all()).count();
    report("each row of 90 integers, in order", started.elapsed(), all as u64);
}

fn scans(snapshot: &GroupSnapshot) {
    let table = snapshot.table("kca2").expect("there");
    let scan = |projection: &[usize]| {
        let started = Cpu::now();
        let rows: usize =
            (0..table.chunk_count()).filter_map(|c| table.scan_chunk(c, Some(projection))).map(|b| b.num_rows()).sum();
        (started.elapsed(), rows as u64)
    };
    for (name, projection) in [("a number", [0]), ("a text", [1]), ("a text of few values", [3]), ("5,000 texts", [4])]
    {
        let (elapsed, rows) = scan(&projection);
        report(&format!("scan of {name}, per row"), elapsed, rows);
    }
}

fn writes(snapshot: &mut GroupSnapshot, rows: u64, apply: &mut impl FnMut(&mut GroupSnapshot, &[Operation])) {
    const COUNT: u64 = 50_000;
    let changed = |n: u64| {
        let mut values = row(mix(n) % rows);
        values[5] = Value::Integer((n % AGES) as i32);
        values[7] = Value::Decimal(Decimal { unscaled: i128::from(n), scale: 2 });
        values
    };
    let put = |rows: Vec<Vec<Value>>| [Operation::Put { table: "kca2".into(), rows, mode: PutMode::Upsert }];
    let operations: Vec<[Operation; 1]> = (0..COUNT).map(|n| put(vec![changed(n)])).collect();
    let started = Cpu::now();
    for operation in &operations {
        apply(snapshot, operation);
    }
    report("upsert of one row", started.elapsed(), COUNT);
    let operation = put((COUNT..COUNT * 2).map(changed).collect());
    let started = Cpu::now();
    apply(snapshot, &operation);
    report("upsert of a row of many", started.elapsed(), COUNT);
    let encoded = Operation::encode(&operation);
    let started = Cpu::now();
    black_box(Operation::decode(&encoded).expect("own bytes"));
    report("decoding a row of many", started.elapsed(), COUNT);
}
