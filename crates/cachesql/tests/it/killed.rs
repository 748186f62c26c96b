//! Nodes that are killed in the middle of their work, and start again in the same folder.

use std::collections::BTreeSet;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http;
use crate::running::{Running, cachesql};

const CONFIGURATION: &str = "[nodes.local]\nhttp = \"127.0.0.1:0\"\ndata = \"data\"\n";
const SERVE: [&str; 2] = ["serve", "cachesql.toml"];
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a statement; the status, or nothing where the node was gone before it answered.
fn ask(url: &str, sql: &str, request_id: Option<&str>) -> Option<u16> {
    let id = request_id.map(|id| format!("Cachesql-Request-Id: {id}\r\n")).unwrap_or_default();
    http::run_sql(url.trim_start_matches("http://"), None, sql, &id).map(|reply| reply.status)
}

/// What one writer knows when its node is gone.
struct Written {
    /// Rows that were acknowledged.
    rows: BTreeSet<u64>,
    /// How often its counter was counted up, by requests that were acknowledged.
    counted: u64,
    /// The row that it was writing, of which it does not know.
    open_row: Option<u64>,
    /// The count that it was at, of which it does not know.
    open_count: Option<String>,
}

/// Writes rows and counts, one after the other, until the node is gone.
fn write_on(url: String, writer: u64, first: u64, acknowledged: &'static AtomicU64) -> JoinHandle<Written> {
    std::thread::spawn(move || {
        let mut written = Written { rows: BTreeSet::new(), counted: 0, open_row: None, open_count: None };
        for n in first.. {
            let insert = format!("INSERT INTO written VALUES ({writer}, {n})");
            match ask(&url, &insert, None) {
                Some(status) => assert_eq!(status, 200, "{insert}"),
                None => {
                    written.open_row = Some(n);
                    return written;
                }
            }
            written.rows.insert(n);
            let id = format!("{writer}-{n}");
            match ask(&url, &count(writer), Some(&id)) {
                Some(status) => assert_eq!(status, 200, "count {id}"),
                None => {
                    written.open_count = Some(id);
                    return written;
                }
            }
            written.counted += 1;
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        written
    })
}

fn count(writer: u64) -> String {
    format!("UPDATE counters SET n = n + 1 WHERE writer = {writer}")
}

fn numbers(answer: &Value) -> BTreeSet<u64> {
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter().map(|row| row[0].as_u64().expect("a number")).collect()
}

#[test]
fn what_was_acknowledged_is_there_after_every_kill() {
    static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);
    const WRITERS: u64 = 4;
    let mut node = Running::with_configuration(CONFIGURATION);
    node.sql("CREATE TABLE written (writer BIGINT, n BIGINT, PRIMARY KEY (writer, n))");
    node.sql("CREATE TABLE counters (writer BIGINT PRIMARY KEY, n BIGINT)");
    for writer in 0..WRITERS {
        node.sql(&format!("INSERT INTO counters VALUES ({writer}, 0)"));
    }
    let mut counted = [0; WRITERS as usize];
    for round in 0..3 {
        let before = ACKNOWLEDGED.load(Ordering::Relaxed);
        let first = round * 1_000_000;
        let writers: Vec<_> = (0..WRITERS).map(|w| write_on(node.url.clone(), w, first, &ACKNOWLEDGED)).collect();
        let deadline = Instant::now() + PATIENCE;
        while ACKNOWLEDGED.load(Ordering::Relaxed) < before + 100 {
            assert!(Instant::now() < deadline, "writes do not go on");
            std::thread::yield_now();
        }
        node = Running::start(node.killed(), &SERVE);
        for (writer, outcome) in (0..WRITERS).zip(writers) {
            let Written { rows, counted: more, open_row, open_count } = outcome.join().expect("no panic");
            let there = numbers(&node.sql(&format!("SELECT n FROM written WHERE writer = {writer} AND n >= {first}")));
            let missing: Vec<_> = rows.difference(&there).collect();
            assert!(missing.is_empty(), "writer {writer} has lost {missing:?}");
            let not_asked_for: Vec<_> = there.iter().filter(|n| !rows.contains(n) && open_row != Some(**n)).collect();
            assert!(not_asked_for.is_empty(), "writer {writer} never wrote {not_asked_for:?}");
            // What is not known is asked again, and counts once in all.
            counted[writer as usize] += more;
            if let Some(id) = open_count {
                assert_eq!(ask(&node.url, &count(writer), Some(&id)), Some(200));
                counted[writer as usize] += 1;
            }
            let found = numbers(&node.sql(&format!("SELECT n FROM counters WHERE writer = {writer}")));
            assert_eq!(found, [counted[writer as usize]].into(), "the counter of writer {writer}");
        }
    }
}

/// The newest file of the log.
fn last_segment(folder: &Path) -> PathBuf {
    let group = folder.join("data").join("group-main");
    let names = std::fs::read_dir(&group).expect("the group's folder").filter_map(|entry| Some(entry.ok()?.path()));
    names.filter(|path| path.extension().is_some_and(|e| e == "log")).max().expect("a log")
}

#[test]
fn a_torn_end_of_the_log_is_cut_off_and_rot_in_it_is_refused_by_name() {
    let node = Running::with_configuration(CONFIGURATION);
    node.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)");
    for id in 0..20 {
        node.sql(&format!("INSERT INTO t VALUES ({id}, 'a text that is told from others {id}')"));
    }
    let folder = node.killed();
    let segment = last_segment(folder.path());
    let mut file = std::fs::OpenOptions::new().append(true).open(&segment).expect("there");
    file.write_all(&[1, 2, 3, 4, 5]).expect("written");
    drop(file);
    let node = Running::start(folder, &SERVE);
    assert_eq!(node.sql("SELECT count(*) FROM t")["rows"], json!([[20]]));
    let folder = node.killed();

    let segment = last_segment(folder.path());
    let mut bytes = std::fs::read(&segment).expect("readable");
    let text = b"told from others 7";
    let at = bytes.windows(text.len()).position(|window| window == text).expect("it is in the log");
    bytes[at] ^= 1;
    let mut file = std::fs::OpenOptions::new().write(true).open(&segment).expect("there");
    file.seek(SeekFrom::Start(0)).expect("its beginning");
    file.write_all(&bytes).expect("written");
    drop(file);
    let mut serve = cachesql(folder.path());
    let refused = serve.args(SERVE).args(["--http", "127.0.0.1:0"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    let name = segment.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(said.contains("data folder") && said.contains(name), "{said}");
}
