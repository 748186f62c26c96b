//! A CacheSQL node of a bench: `cachesql serve` over a configuration written here.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Bed;
use super::process::Server;
use crate::failure::{Context, Failure, Outcome};

/// Time that a node has to load its tables.
const READY: Duration = Duration::from_secs(300);

pub(crate) struct Node {
    server: Server,
    pub(crate) address: String,
    /// From the start of the process until all tables were loaded.
    pub(crate) ready_after: Duration,
}

impl Node {
    /// `tables` is the part of `cachesql.toml` that says what is loaded.
    pub(crate) fn start(bed: &Bed, name: &str, tables: &str) -> Outcome<Self> {
        Self::start_with(bed, name, "", tables)
    }

    /// The same with more words in the node's own section, each on a line.
    fn start_with(bed: &Bed, name: &str, words: &str, tables: &str) -> Outcome<Self> {
        let file = bed.work.join(format!("{name}.toml"));
        let text = format!("[nodes.local]\nhttp = \"127.0.0.1:0\"\nmemory = \"16GiB\"\n{words}\n{tables}");
        fs::write(&file, text).context(|| file.display().to_string())?;
        let started = Instant::now();
        let mut server = Server::start(bed.binary("cachesql").arg("serve").arg(&file).current_dir(&bed.work))?;
        let line = server.wait_for("ready: http://", READY)?;
        let ready_after = started.elapsed();
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split(['/', ' ']).next());
        let address = address.ok_or_else(|| Failure::new(format!("no address in: {line}")))?.to_owned();
        Ok(Self { server, address, ready_after })
    }

    /// A node with that many rows of `kca2`, from a file.
    pub(crate) fn with_kca2(bed: &Bed, rows: u64) -> Outcome<Self> {
        Self::start(bed, &format!("kca2-{rows}"), &kca2_of_file(bed, rows)?)
    }

    /// The same, which keeps them in a folder; what is there from before is not loaded again.
    pub(crate) fn keeping_kca2(bed: &Bed, rows: u64, folder: &Path) -> Outcome<Self> {
        let words = format!("data = \"{}\"\n", folder.display());
        Self::start_with(bed, &format!("kca2-{rows}-kept"), &words, &kca2_of_file(bed, rows)?)
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.server.cpu_seconds()
    }
}

fn kca2_of_file(bed: &Bed, rows: u64) -> Outcome<String> {
    let file = bed.kca2(rows)?;
    Ok(format!("[tables.kca2]\nfile = \"{}\"\n{KCA2}\n[tables.kca2.columns]\n{KCA2_COLUMNS}", file.display()))
}

/// Key and indexes of `kca2`.
pub(crate) const KCA2: &str = "key = [\"aac001\"]\nindexes = [\"aab004\", \"akc023\"]\n";

const KCA2_COLUMNS: &str = "aac001 = \"BIGINT\"\naac002 = \"TEXT\"\naac003 = \"TEXT\"\naac004 = \"TEXT\"\naab004 = \"TEXT\"\n\
    akc023 = \"INTEGER\"\naae036 = \"TIMESTAMP\"\nakc264 = \"DECIMAL(12,2)\"\n";

/// `kca2` as PostgreSQL creates it, before its rows are there.
pub(crate) const KCA2_SQL: &str = "CREATE TABLE kca2 (aac001 BIGINT NOT NULL, aac002 TEXT, aac003 TEXT, aac004 TEXT, aab004 TEXT, \
    akc023 INTEGER, aae036 TIMESTAMP, akc264 NUMERIC(12,2))";

/// What PostgreSQL adds when they are.
pub(crate) const KCA2_INDEXES_SQL: &str = "ALTER TABLE kca2 ADD PRIMARY KEY (aac001); CREATE INDEX ON kca2 (aab004); \
    CREATE INDEX ON kca2 (akc023)";
