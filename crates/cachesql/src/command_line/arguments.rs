//! The commands and their options, as clap reads them. Their help is their only description: `docs/command-line.md` is made
//! from it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::options;

/// The heading of options that every command has, below those that are its own.
const LOGGING: &str = "Logging";

/// Serves hot tables from memory, by key, by range and by SQL.
#[derive(Debug, Parser)]
#[command(name = "cachesql", version, propagate_version = true, after_long_help = super::failure::EXIT_CODES)]
pub struct Arguments {
    /// What is logged, in the syntax of RUST_LOG: `warn`, `info`, `cachesql_node=debug,warn`.
    #[arg(
        long,
        global = true,
        env = "RUST_LOG",
        value_name = "LEVELS",
        default_value = "warn",
        hide_env_values = true,
        help_heading = LOGGING
    )]
    pub log: String,

    /// Logs are JSON objects, one a line.
    #[arg(long, global = true, help_heading = LOGGING)]
    pub log_json: bool,

    /// Without a command: `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Starts a node.
    Serve(ServeArguments),
    /// Runs SQL on a running node: a statement, a file, what comes through a pipe, or a shell.
    Sql(SqlArguments),
    /// Loads a file into a table of a running node.
    Load(LoadArguments),
    /// Shows a cluster's groups and how their nodes are doing, or changes who leads and who belongs.
    Cluster(ClusterArguments),
    /// Runs a cluster of five nodes on this machine with sample data, until Ctrl-C.
    Demo(DemoArguments),
    /// Checks a configuration file: says everything that is wrong with it, with line and column.
    ///
    /// Also warns of files that cannot be read, and of environment variables of secrets that are not set here. A secret's file
    /// that cannot be read counts as wrong: no node would start. Databases are not asked.
    Check(CheckArguments),
    /// Puts load on a running node, and reports rate and latency.
    Bench(BenchArguments),
    /// Prints a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// `serve`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_long_help = crate::config::reference::summary())]
pub struct ServeArguments {
    /// The configuration: a `cachesql.toml`, or the original server's `config.properties`. Without it, `cachesql.toml` of the
    /// current folder; where there is none, bundled sample data is served.
    pub file: Option<PathBuf>,

    /// Which of the file's nodes to start; not needed when there is only one.
    #[arg(long, env = "CACHESQL_NODE", hide_env_values = true, value_name = "NAME")]
    pub node: Option<String>,

    #[arg(long, value_name = "ADDRESS", help = override_help("http"))]
    pub http: Option<String>,

    #[arg(long, value_name = "SIZE", value_parser = size, help = override_help("memory"))]
    pub memory: Option<u64>,

    #[arg(long, help = override_help("insecure"))]
    pub insecure: bool,

    /// Stops when standard input ends: so does a node whose parent is gone.
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

/// The help of an option that stands for a word of the file.
fn override_help(word: &str) -> String {
    let about = options::find("nodes", word).map_or("", |o| o.about);
    format!("{about} [instead of the file's `{word}`]")
}

fn size(text: &str) -> Result<u64, String> {
    let expected = || options::Kind::Size.expected();
    crate::config::units::parse_size(text).filter(|s| *s > 0).ok_or_else(|| format!("expected {}", expected()))
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    let expected = || options::Kind::Duration.expected();
    crate::config::units::parse_duration(text)
        .filter(|d| !d.is_zero())
        .ok_or_else(|| format!("expected {}", expected()))
}

/// Which node is asked.
#[derive(Clone, Debug, Args)]
pub struct NodeArguments {
    /// The node's HTTP address.
    #[arg(
        long,
        env = "CACHESQL_URL",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    pub url: String,

    /// A file with the token that the node asks for. Or put the token into CACHESQL_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// `sql`.
#[derive(Debug, Args)]
pub struct SqlArguments {
    /// The statement; several with `;` between them run one after the other. Without it, a shell on a terminal, else what
    /// comes through the pipe.
    pub statement: Option<String>,

    #[command(flatten)]
    pub node: NodeArguments,

    /// Runs the statements of a file; `-` is standard input.
    #[arg(long, short, value_name = "FILE", conflicts_with = "statement")]
    pub file: Option<PathBuf>,

    /// Prints rows as JSON objects, one a line; for a write `{"affected":N}`.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Prints rows as CSV with a header line.
    #[arg(long)]
    pub csv: bool,

    /// How recent what is read must be: `any`, `session`, `linearizable` or `bounded=250ms`.
    #[arg(long, value_name = "LEVEL", default_value = "session")]
    pub consistency: String,
}

/// `load`.
#[derive(Debug, Args)]
pub struct LoadArguments {
    /// The table. It must exist, unless --create is given.
    pub table: String,

    /// The file, or an http:// URL of one; `-` is standard input.
    pub source: String,

    #[command(flatten)]
    pub node: NodeArguments,

    /// What the file is; without it, its ending tells.
    #[arg(long, value_enum)]
    pub format: Option<LoadFormat>,

    /// Rows whose primary key is there already replace the ones that have it; without this they are refused.
    #[arg(long)]
    pub upsert: bool,

    /// Makes the table, with the columns and types that the file shows. Needs a file on this machine.
    #[arg(long)]
    pub create: bool,

    /// Columns of the primary key of the table that --create makes, with commas between.
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS", requires = "create")]
    pub key: Vec<String>,

    /// Rows of one request. Each request is written whole or not at all.
    #[arg(long, value_name = "ROWS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub batch: u32,

    /// Prints the outcome as a JSON object.
    #[arg(long)]
    pub json: bool,
}

/// What a file that is loaded is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadFormat {
    /// RFC 4180 with a header line.
    Csv,
    /// One JSON object a line.
    Ndjson,
}

/// `cluster`.
#[derive(Debug, Args)]
pub struct ClusterArguments {
    #[command(flatten)]
    pub node: NodeArguments,

    /// Prints the answer as a JSON object.
    #[arg(long, global = true)]
    pub json: bool,

    /// Without a command: `status`.
    #[command(subcommand)]
    pub command: Option<ClusterCommand>,
}

/// What is done with a cluster.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Asks every node how it is doing: its role, how far its log is and how much it lacks, whether it answers.
    Status,
    /// Has another node lead the group of the node that is asked.
    Transfer {
        /// The node that is to lead.
        node: String,
    },
    /// Takes a node out of the group of the node that is asked. What it keeps stays on its disk.
    Leave {
        /// The node that is to go.
        node: String,
    },
    /// Has every node read its configuration file again, without a restart: tables, nodes and members.
    Reload,
}

/// `demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// The HTTP port of the first node; the others take those behind it.
    #[arg(long, value_name = "PORT", default_value_t = 8081, value_parser = clap::value_parser!(u16).range(1024..=50_000))]
    pub port: u16,
}

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The configuration file.
    pub file: PathBuf,

    /// Prints the outcome as a JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(flatten)]
    pub node: NodeArguments,

    /// The table that rows are read from; without it, the largest one that has a primary key.
    #[arg(long)]
    pub table: Option<String>,

    /// The column that rows are asked for by; without it, the first column of the primary key.
    #[arg(long)]
    pub column: Option<String>,

    /// Which interface is asked.
    #[arg(long, value_enum, default_value_t = BenchDoor::Rest)]
    pub door: BenchDoor,

    /// A statement for --door sql; `$1` stands for a value of the column.
    #[arg(long, value_name = "SQL")]
    pub statement: Option<String>,

    /// Connections, each with one request under way.
    #[arg(long, short, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,

    /// How long.
    #[arg(long, short, default_value = "10s", value_parser = duration)]
    pub duration: std::time::Duration,

    /// Prints the outcome as a JSON object.
    #[arg(long)]
    pub json: bool,
}

/// An interface that `bench` can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchDoor {
    /// `GET /rest/TABLE?COLUMN=eq.VALUE`.
    Rest,
    /// `GET /cache/get?table=…&column=…&value=…`, as the original's clients ask.
    Cache,
    /// `POST /v1/sql` with one parameter.
    Sql,
}
