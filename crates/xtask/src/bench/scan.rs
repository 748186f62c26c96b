//! `scan`: queries of TPC-H, beside DuckDB and PostgreSQL.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::Bed;
use super::figures::{Comparison, Goal, Sample};
use super::http::Connection;
use super::node::Node;
use super::postgres::Postgres;
use super::report::Section;
use super::rows::copy_in;
use crate::data::target;
use crate::failure::{Context, Failure, Outcome};
use crate::steps::{output, run};
use crate::workspace::sorted_entries;

const SCALE: &str = "0.1";

/// A table: its columns as SQL types, and its key.
struct Table {
    name: &'static str,
    columns: &'static [(&'static str, &'static str)],
    key: &'static [&'static str],
}

/// TPC-H 3.0.1, section 1.4.
const TABLES: &[Table] = &[
    Table {
        name: "region",
        columns: &[("r_regionkey", "BIGINT"), ("r_name", "TEXT"), ("r_comment", "TEXT")],
        key: &["r_regionkey"],
    },
    Table {
        name: "nation",
        columns: &[("n_nationkey", "BIGINT"), ("n_name", "TEXT"), ("n_regionkey", "BIGINT"), ("n_comment", "TEXT")],
        key: &["n_nationkey"],
    },
    Table {
        name: "supplier",
        columns: &[
            ("s_suppkey", "BIGINT"),
            ("s_name", "TEXT"),
            ("s_address", "TEXT"),
            ("s_nationkey", "BIGINT"),
            ("s_phone", "TEXT"),
            ("s_acctbal", "DECIMAL(15,2)"),
            ("s_comment", "TEXT"),
        ],
        key: &["s_suppkey"],
    },
    Table {
        name: "part",
        columns: &[
            ("p_partkey", "BIGINT"),
            ("p_name", "TEXT"),
            ("p_mfgr", "TEXT"),
            ("p_brand", "TEXT"),
            ("p_type", "TEXT"),
            ("p_size", "INTEGER"),
            ("p_container", "TEXT"),
            ("p_retailprice", "DECIMAL(15,2)"),
            ("p_comment", "TEXT"),
        ],
        key: &["p_partkey"],
    },
    Table {
        name: "partsupp",
        columns: &[
            ("ps_partkey", "BIGINT"),
            ("ps_suppkey", "BIGINT"),
            ("ps_availqty", "INTEGER"),
            ("ps_supplycost", "DECIMAL(15,2)"),
            ("ps_comment", "TEXT"),
        ],
        key: &["ps_partkey", "ps_suppkey"],
    },
    Table {
        name: "customer",
        columns: &[
            ("c_custkey", "BIGINT"),
            ("c_name", "TEXT"),
            ("c_address", "TEXT"),
            ("c_nationkey", "BIGINT"),
            ("c_phone", "TEXT"),
            ("c_acctbal", "DECIMAL(15,2)"),
            ("c_mktsegment", "TEXT"),
            ("c_comment", "TEXT"),
        ],
        key: &["c_custkey"],
    },
    Table {
        name: "orders",
        columns: &[
            ("o_orderkey", "BIGINT"),
            ("o_custkey", "BIGINT"),
            ("o_orderstatus", "TEXT"),
            ("o_totalprice", "DECIMAL(15,2)"),
            ("o_orderdate", "DATE"),
            ("o_orderpriority", "TEXT"),
            ("o_clerk", "TEXT"),
            ("o_shippriority", "INTEGER"),
            ("o_comment", "TEXT"),
        ],
        key: &["o_orderkey"],
    },
    Table {
        name: "lineitem",
        columns: &[
            ("l_orderkey", "BIGINT"),
            ("l_partkey", "BIGINT"),
            ("l_suppkey", "BIGINT"),
            ("l_linenumber", "INTEGER"),
            ("l_quantity", "DECIMAL(15,2)"),
            ("l_extendedprice", "DECIMAL(15,2)"),
            ("l_discount", "DECIMAL(15,2)"),
            ("l_tax", "DECIMAL(15,2)"),
            ("l_returnflag", "TEXT"),
            ("l_linestatus", "TEXT"),
            ("l_shipdate", "DATE"),
            ("l_commitdate", "DATE"),
            ("l_receiptdate", "DATE"),
            ("l_shipinstruct", "TEXT"),
            ("l_shipmode", "TEXT"),
            ("l_comment", "TEXT"),
        ],
        key: &["l_orderkey", "l_linenumber"],
    },
];

impl Table {
    fn create_sql(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|(name, kind)| format!("{name} {kind} NOT NULL")).collect();
        format!("CREATE TABLE {} ({}, PRIMARY KEY ({}))", self.name, columns.join(", "), self.key.join(", "))
    }

    fn section(&self, folder: &Path) -> String {
        let file = folder.join(format!("{}.csv", self.name));
        let columns: Vec<String> = self.columns.iter().map(|(name, kind)| format!("{name} = \"{kind}\"\n")).collect();
        format!(
            "[tables.{}]\nfile = \"{}\"\nkey = {:?}\n[tables.{}.columns]\n{}\n",
            self.name,
            file.display(),
            self.key,
            self.name,
            columns.concat()
        )
    }
}

pub(crate) fn scan(bed: &Bed) -> Outcome<Section> {
    let folder = bed.work.join("tpch");
    output(bed.binary("bench-tpch").arg(&folder).arg(SCALE))?;
    let queries = queries(&bed.root)?;

    let postgres = Postgres::start(&bed.work)?;
    for table in TABLES {
        postgres.sql(&table.create_sql())?;
        copy_in(&postgres, table.name, &folder.join(format!("{}.csv", table.name)))?;
        postgres.sql(&format!("VACUUM ANALYZE {}", table.name))?;
    }
    let mut duck = Duck::start(bed, &folder)?;
    let tables: String = TABLES.iter().map(|table| table.section(&folder)).collect();
    let node = Node::start(bed, "tpch", &tables)?;
    let mut connection = Connection::open(&node.address)?;

    let to_duck = Goal::AtLeast { must: 0.3, aim: 0.8 };
    let to_postgres = Goal::AtLeast { must: 5.0, aim: 20.0 };
    let mut comparisons = Vec::new();
    for query in &queries {
        let mut beside_duck = Comparison::new(&query.name, "DuckDB", "ms", to_duck).of_times();
        let mut beside_postgres = Comparison::new(&query.name, "PostgreSQL", "ms", to_postgres).of_times();
        for round in 0..=bed.rounds {
            let started = Instant::now();
            let answer = connection.post_json("/v1/sql", &query.request())?;
            let ours = started.elapsed().as_secs_f64() * 1e3;
            let (theirs, duck_rows) = duck.ask(&query.sql)?;
            let third = psql_ms(&postgres, &query.sql)?;
            if round == 0 {
                check_rows(&query.name, &answer.body, duck_rows)?;
                continue;
            }
            beside_duck.push(Sample::of(ours), Sample::of(theirs));
            beside_postgres.push(Sample::of(ours), Sample::of(third));
        }
        comparisons.push(beside_duck);
        comparisons.push(beside_postgres);
    }
    Ok(Section {
        name: "scan",
        method: format!(
            "TPC-H at scale {SCALE}, all eight tables with their primary keys and no other index. Ours is `POST /v1/sql` and \
             its whole answer, as the client sees it; DuckDB runs in its own process over tables in memory, timed there \
             without a wire; PostgreSQL is psql's \\timing. The number of rows is compared in a first round that does \
             not count."
        ),
        versions: vec![format!("DuckDB {}", duck.version), postgres.version()],
        rounds: bed.rounds,
        comparisons,
    })
}

struct Query {
    name: String,
    sql: String,
}

impl Query {
    fn request(&self) -> String {
        serde_json::json!({ "sql": self.sql }).to_string()
    }
}

/// The queries of `bench/tpch`, one a file.
fn queries(root: &Path) -> Outcome<Vec<Query>> {
    let mut queries = Vec::new();
    for path in sorted_entries(&root.join("bench/tpch"))? {
        let text = fs::read_to_string(&path).context(|| path.display().to_string())?;
        let sql: String = text.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
        let name = path.file_stem().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        queries.push(Query { name, sql: sql.trim().trim_end_matches(';').to_owned() });
    }
    Ok(queries)
}

fn check_rows(name: &str, body: &[u8], expected: usize) -> Outcome<()> {
    let answer: serde_json::Value = serde_json::from_slice(body).context(|| name.to_owned())?;
    match answer["rows"].as_array().map(Vec::len) {
        Some(rows) if rows == expected => Ok(()),
        rows => Err(Failure::new(format!("{name}: {rows:?} rows, and DuckDB has {expected}"))),
    }
}

fn psql_ms(postgres: &Postgres, sql: &str) -> Outcome<f64> {
    let said = output(postgres.psql().args(["-A", "-t", "-c", "\\timing on", "-c", sql]))?;
    let time = said.lines().rev().find_map(|line| line.strip_prefix("Time: ")?.split_whitespace().next()?.parse().ok());
    time.ok_or_else(|| Failure::new("psql gave no time"))
}

/// DuckDB in a Python process of its own: a statement in, milliseconds and a count of rows out.
struct Duck {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    version: String,
}

impl Duck {
    fn start(bed: &Bed, folder: &Path) -> Outcome<Self> {
        let python = environment(&bed.root)?;
        let tables: Vec<serde_json::Value> = TABLES
            .iter()
            .map(|table| {
                let file = folder.join(format!("{}.csv", table.name));
                serde_json::json!({ "name": table.name, "create": table.create_sql(), "file": file })
            })
            .collect();
        let mut child = Command::new(python)
            .arg(bed.root.join("bench/duckdb_peer.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context(|| "python".to_owned())?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("python has no pipes"));
        };
        let mut duck = Self { child, input, output: BufReader::new(output), version: String::new() };
        let answer = duck.exchange(&serde_json::json!({ "tables": tables }))?;
        duck.version = answer["version"].as_str().unwrap_or("?").to_owned();
        Ok(duck)
    }

    fn ask(&mut self, sql: &str) -> Outcome<(f64, usize)> {
        let answer = self.exchange(&serde_json::json!({ "sql": sql }))?;
        match (answer["ms"].as_f64(), answer["rows"].as_u64()) {
            (Some(ms), Some(rows)) => Ok((ms, usize::try_from(rows).unwrap_or(usize::MAX))),
            _ => Err(Failure::new(format!("DuckDB: {answer}"))),
        }
    }

    fn exchange(&mut self, request: &serde_json::Value) -> Outcome<serde_json::Value> {
        writeln!(self.input, "{request}").context(|| "DuckDB".to_owned())?;
        let mut line = String::new();
        self.output.read_line(&mut line).context(|| "DuckDB".to_owned())?;
        serde_json::from_str(&line).context(|| format!("DuckDB said {line:?}"))
    }
}

impl Drop for Duck {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Python with DuckDB, in an environment below the target directory that later runs find again.
fn environment(root: &Path) -> Outcome<PathBuf> {
    let folder = target(root).join("bench-python");
    let python = folder.join("bin/python");
    let has_duck = |python: &Path| output(Command::new(python).args(["-c", "import duckdb"])).is_ok();
    if !has_duck(&python) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "duckdb"]))?;
    }
    Ok(python)
}
