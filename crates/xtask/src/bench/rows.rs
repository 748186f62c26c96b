//! `http-row`, `http-row-pg`, `growth`: one row by key.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::figures::{Comparison, Goal};
use super::http::Connection;
use super::node::{KCA2_INDEXES_SQL, KCA2_SQL, Node};
use super::postgres::Postgres;
use super::process::Server;
use super::report::Section;
use super::wrk::{self, CONNECTIONS, Load};
use super::{Bed, version};
use crate::failure::{Context, Failure, Outcome};

const ROWS: u64 = 1_000_000;
/// The two ways to ask for a row, up to the key.
const PATHS: [(&str, &str); 2] =
    [("/rest", "/rest/kca2?aac001=eq."), ("/cache/get", "/cache/get?table=kca2&column=aac001&value=")];

pub(crate) fn http_row(bed: &Bed) -> Outcome<Section> {
    let node = Node::with_kca2(bed, ROWS)?;
    let goal = Goal::AtLeast { must: 0.7, aim: 0.9 };
    let mut comparisons = Vec::new();
    for (name, path) in PATHS {
        let bare = Bare::like(bed, &node, path)?;
        let mut comparison = Comparison::new(name, "bare hyper", "req/s", goal);
        for round in 0..=bed.rounds {
            let load = |address| Load { address, path, keys: ROWS, seconds: bed.seconds };
            let ours = wrk::run(&load(&node.address), &bed.work, &|| node.cpu_seconds())?;
            let theirs = wrk::run(&load(&bare.address), &bed.work, &|| bare.server.cpu_seconds())?;
            // The first round warms both up.
            if round > 0 {
                comparison.push(ours, theirs);
            }
        }
        comparisons.push(comparison);
    }
    Ok(Section {
        name: "http-row",
        method: format!(
            "`kca2`, {ROWS} rows. wrk with 1 thread and {CONNECTIONS} connections asks for 20,000 random keys in turn; the bare \
             server (`bench-bare`: the same hyper, runtime, allocator and build profile) answers each with the same \
             headers and body, those of one row."
        ),
        versions: vec![version(Command::new("dpkg-query").args(["-W", "-f", "wrk ${Version}\n", "wrk"]))],
        rounds: bed.rounds,
        comparisons,
    })
}

/// The bare server, set up to answer as the node does.
struct Bare {
    server: Server,
    address: String,
}

impl Bare {
    fn like(bed: &Bed, node: &Node, path: &str) -> Outcome<Self> {
        let answer = Connection::open(&node.address)?.get(&format!("{path}{}", ROWS / 2))?;
        let mut file = String::new();
        for (name, value) in &answer.headers {
            // hyper writes these itself.
            if !["date", "content-length", "connection", "transfer-encoding"].contains(&&*name.to_lowercase()) {
                file.push_str(&format!("{name}: {value}\n"));
            }
        }
        let file = [if file.is_empty() { b"\n" } else { file.as_bytes() }, b"\n", &answer.body].concat();
        let at = bed.work.join("answer");
        fs::write(&at, file).context(|| at.display().to_string())?;
        let mut server = Server::start(bed.binary("bench-bare").arg(&at))?;
        let address = server.wait_for("127.0.0.1:", Duration::from_secs(10))?;
        Ok(Self { server, address })
    }
}

pub(crate) fn http_row_postgres(bed: &Bed) -> Outcome<Section> {
    let postgres = postgres_with_kca2(bed, ROWS)?;
    let script = bed.work.join("row.pgbench");
    fs::write(&script, format!("\\set id random(1, {ROWS})\nSELECT * FROM kca2 WHERE aac001 = :id;\n"))
        .context(|| script.display().to_string())?;
    // The same connections as ours; and beside it the count that suits PostgreSQL best, which runs a process for each.
    let mut best = (0.0, CONNECTIONS);
    for connections in [4, 16, CONNECTIONS] {
        let rate = postgres.pgbench(&script, connections, 3)?.value;
        if rate > best.0 {
            best = (rate, connections);
        }
    }
    let node = Node::with_kca2(bed, ROWS)?;
    let goal = Goal::AtLeast { must: 2.0, aim: 3.0 };
    let counts = if best.1 == CONNECTIONS { vec![CONNECTIONS] } else { vec![CONNECTIONS, best.1] };
    let mut comparisons: Vec<Comparison> = Vec::new();
    for (name, _) in PATHS {
        for connections in &counts {
            let beside = format!("PostgreSQL, {connections} connections");
            comparisons.push(Comparison::new(name, beside, "req/s", goal));
        }
    }
    for round in 0..=bed.rounds {
        let mut rows = comparisons.iter_mut();
        for (_, path) in PATHS {
            for connections in &counts {
                let load = Load { address: &node.address, path, keys: ROWS, seconds: bed.seconds };
                let ours = wrk::run(&load, &bed.work, &|| node.cpu_seconds())?;
                let theirs = postgres.pgbench(&script, *connections, bed.seconds)?;
                if let (true, Some(row)) = (round > 0, rows.next()) {
                    row.push(ours, theirs);
                }
            }
        }
    }
    Ok(Section {
        name: "http-row-pg",
        method: format!(
            "As `http-row`, and pgbench with prepared statements and 1 thread over TCP: with {CONNECTIONS} connections, as ours \
             has, and with {}, the count of 4, 16 and {CONNECTIONS} that suits it best. shared_buffers holds the whole table, \
             which is vacuumed and analysed.",
            best.1
        ),
        versions: vec![postgres.version()],
        rounds: bed.rounds,
        comparisons,
    })
}

pub(crate) fn postgres_with_kca2(bed: &Bed, rows: u64) -> Outcome<Postgres> {
    let file = bed.kca2(rows)?;
    let postgres = Postgres::start(&bed.work)?;
    postgres.sql(KCA2_SQL)?;
    copy_in(&postgres, "kca2", &file)?;
    postgres.sql(KCA2_INDEXES_SQL)?;
    // psql sends one -c as one transaction, in which VACUUM is refused.
    postgres.sql("VACUUM ANALYZE kca2")?;
    Ok(postgres)
}

pub(crate) fn copy_in(postgres: &Postgres, table: &str, file: &Path) -> Outcome<()> {
    let input = fs::File::open(file).context(|| file.display().to_string())?;
    let copy = format!("COPY {table} FROM STDIN (FORMAT csv, HEADER)");
    let status = postgres.psql().args(["-c", &copy]).stdin(input).stdout(Stdio::null()).status();
    if status.context(|| "psql".to_owned())?.success() { Ok(()) } else { Err(Failure::new(format!("{copy} failed"))) }
}

pub(crate) fn growth(bed: &Bed) -> Outcome<Section> {
    const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
    let mut nodes = Vec::new();
    for rows in SIZES {
        nodes.push((rows, Node::with_kca2(bed, rows)?));
    }
    let goal = Goal::AtMost { must: 1.5, aim: 1.5 };
    let mut comparisons = Vec::new();
    for rows in SIZES.iter().skip(1) {
        for (name, _) in PATHS {
            let work = format!("{name}, {rows} rows");
            // Time of one request, the smallest table's below ours.
            comparisons.push(Comparison::new(work, "10000 rows", "µs/req", goal));
        }
    }
    for round in 0..=bed.rounds {
        let mut smallest = Vec::new();
        let mut at = 0;
        for (rows, node) in &nodes {
            for (which, (_, path)) in PATHS.iter().enumerate() {
                let load = Load { address: &node.address, path, keys: *rows, seconds: bed.seconds };
                let mut sample = wrk::run(&load, &bed.work, &|| node.cpu_seconds())?;
                sample.value = 1e6 / sample.value;
                match smallest.get(which) {
                    Some(first) if *rows > SIZES[0] => {
                        if let (true, Some(comparison)) = (round > 0, comparisons.get_mut(at)) {
                            comparison.push(sample, *first);
                        }
                        at += 1;
                    }
                    _ => smallest.push(sample),
                }
            }
        }
    }
    Ok(Section {
        name: "growth",
        method: "As `http-row`, over nodes that hold 10 thousand to 10 million rows of `kca2`; the ratio is the time of one \
                 request to that with the smallest table."
            .to_owned(),
        versions: Vec::new(),
        rounds: bed.rounds,
        comparisons,
    })
}
