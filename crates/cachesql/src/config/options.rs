//! Every word of `cachesql.toml`, defined once: what it takes, what it is when it is left out, what it does. The checks of the
//! reader, the help of the command line, the annotated sample and `docs/configuration.md` all come from here.

use std::time::Duration;

use cachesql_types::limits;

/// A section of the file.
#[derive(Debug)]
pub struct Section {
    /// Its first word: `nodes` of `[nodes.a]`.
    pub word: &'static str,
    /// The name that follows, in the sample; `None` for a section that is there once.
    pub named: Option<&'static str>,
    /// What it is.
    pub about: &'static str,
    /// Its words.
    pub options: &'static [OptionDefinition],
}

/// One word of a section.
#[derive(Debug)]
pub struct OptionDefinition {
    /// The word.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is when it is left out.
    pub default: Default,
    /// A value, as TOML writes it, for the sample.
    pub example: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Why this version refuses the word, when it does: what it is for is not served yet.
    pub not_served: Option<&'static str>,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// true or false.
    Boolean,
    /// A whole number from 1.
    Count,
    /// `"10m"`.
    Duration,
    /// `"8GiB"`.
    Size,
    /// `"127.0.0.1:8080"`.
    Address,
    /// A file or folder, relative to the configuration file.
    Path,
    /// `{ env = "NAME" }` or `{ file = "PATH" }`.
    Secret,
    /// A list of names.
    Names,
    /// A list of columns or lists of columns.
    Indexes,
    /// A list of texts, numbers and booleans.
    Values,
    /// Columns and their types.
    Columns,
    /// `"never"`, `"follow"` or a duration.
    Refresh,
    /// A loader of a cache.
    Loader,
}

impl Kind {
    /// What was expected, for a message.
    pub fn expected(self) -> String {
        match self {
            Kind::Text => "text in quotes".into(),
            Kind::Choice(words) => {
                let quoted: Vec<_> = words.iter().map(|w| format!("{w:?}")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Kind::Boolean => "true or false".into(),
            Kind::Count => "a whole number from 1".into(),
            Kind::Duration => "a duration such as \"10m\", \"1h30m\" or \"250ms\" (units ms, s, m, h, d)".into(),
            Kind::Size => "a size such as \"64MiB\" or \"8GiB\" (units B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)".into(),
            Kind::Address => "an address such as \"127.0.0.1:8080\"".into(),
            Kind::Path => "a path in quotes".into(),
            Kind::Secret => "{ env = \"NAME\" } or { file = \"PATH\" }".into(),
            Kind::Names => "a list of names such as [\"A\", \"B\"]".into(),
            Kind::Indexes => "a list of columns, or of lists of columns, such as [\"A\", [\"B\", \"C\"]]".into(),
            Kind::Values => "a list of texts, numbers and booleans such as [202604, \"x\"]".into(),
            Kind::Columns => "columns and their types such as { A = \"BIGINT\", B = \"DECIMAL(10,2)\" }".into(),
            Kind::Refresh => "\"never\", \"follow\", or an interval such as \"10m\"".into(),
            Kind::Loader => {
                "{ origin = \"…\", query = \"…\" }, { url = \"…\" } or { table = \"…\", column = \"…\" }".into()
            }
        }
    }
}

/// What an option is when it is left out.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// It must be there.
    Required,
    /// Nothing, or what the text says.
    None(&'static str),
    /// A duration.
    Duration(Duration),
    /// Bytes.
    Size(u64),
    /// A number.
    Count(u64),
}

impl Default {
    /// The default in words.
    pub fn text(self) -> String {
        match self {
            Default::Required => "required".into(),
            Default::None(text) => text.into(),
            Default::Duration(duration) => format!("{:?}", super::units::write_duration(duration)),
            Default::Size(bytes) => format!("{:?}", super::units::write_size(bytes)),
            Default::Count(count) => count.to_string(),
        }
    }
}

const fn option(
    name: &'static str,
    kind: Kind,
    default: Default,
    example: &'static str,
    about: &'static str,
) -> OptionDefinition {
    OptionDefinition { name, kind, default, example, about, not_served: None }
}

const fn later(
    name: &'static str,
    kind: Kind,
    example: &'static str,
    about: &'static str,
    why: &'static str,
) -> OptionDefinition {
    OptionDefinition { name, kind, default: Default::None(""), example, about, not_served: Some(why) }
}

/// The address that a node answers HTTP on when nothing is said.
pub const DEFAULT_HTTP: &str = "127.0.0.1:8080";

/// The name of the only node of a file without `[nodes]`.
pub const DEFAULT_NODE: &str = "local";

/// All sections, in the order in which a file is best written.
pub static SECTIONS: &[Section] = &[NODES, ACCESS, LIMITS, CLUSTER, GROUPS, ORIGINS, TABLES, CACHES];

/// The section of that first word.
pub fn section(word: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|s| s.word == word)
}

/// The definition of a word; `None` for one that does not exist.
pub fn find(section_word: &str, name: &str) -> Option<&'static OptionDefinition> {
    section(section_word)?.options.iter().find(|o| o.name == name)
}

const NODES: Section = Section {
    word: "nodes",
    named: Some("a"),
    about: "A process that serves. A file may leave this out: then there is one node, named local, that answers HTTP on \
            127.0.0.1:8080. With several nodes, --node or CACHESQL_NODE says which one is started.",
    options: &[
        option(
            "http",
            Kind::Address,
            Default::None("not opened; \"127.0.0.1:8080\" in a file without [nodes]"),
            "\"127.0.0.1:8080\"",
            "Where it answers HTTP. Port 0 takes any free port.",
        ),
        option(
            "memory",
            Kind::Size,
            Default::None("three quarters of the machine's memory"),
            "\"8GiB\"",
            "The most that tables may take. A load that would pass it is refused, and the old rows stay.",
        ),
        option(
            "insecure",
            Kind::Boolean,
            Default::None("false"),
            "false",
            "Lets it answer without a token beyond this machine, and on it under any host name. Without it, that is refused.",
        ),
        later(
            "pg",
            Kind::Address,
            "\"127.0.0.1:5433\"",
            "Where it speaks PostgreSQL's protocol.",
            "the PostgreSQL door",
        ),
        later("resp", Kind::Address, "\"127.0.0.1:6380\"", "Where it speaks Redis' protocol.", "the RESP door"),
        option(
            "peer",
            Kind::Address,
            Default::None("not opened; required in a group of several members"),
            "\"127.0.0.1:8079\"",
            "Where the other nodes of its group reach it.",
        ),
        option(
            "data",
            Kind::Path,
            Default::None("nothing is kept over a restart"),
            "\"data/a\"",
            "The folder of its log and snapshots: what it acknowledged is there after a restart, and tables are not loaded again. \
             Relative to this file.",
        ),
    ],
};

const ACCESS: Section = Section {
    word: "access",
    named: None,
    about: "Who may ask.",
    options: &[option(
        "token",
        Kind::Secret,
        Default::None("anyone on this machine may ask"),
        "{ env = \"CACHESQL_TOKEN\" }",
        "What HTTP requests must show: `Authorization: Bearer TOKEN`, or as the password of Basic authentication.",
    )],
};

const LIMITS: Section = Section {
    word: "limits",
    named: None,
    about: "What one request may take. Beyond a limit it gets an error that names the limit; an answer is never cut.",
    options: &[
        option(
            "statement_timeout",
            Kind::Duration,
            Default::Duration(limits::STATEMENT_TIMEOUT),
            "\"30s\"",
            "Time of one statement.",
        ),
        option(
            "statement_memory",
            Kind::Size,
            Default::Size(limits::STATEMENT_MEMORY_BYTES as u64),
            "\"512MiB\"",
            "Memory of one statement, beside the tables.",
        ),
        option(
            "statement_rows",
            Kind::Count,
            Default::Count(limits::STATEMENT_ROWS),
            "100_000_000",
            "Rows that one statement may answer.",
        ),
        option(
            "statement_write_rows",
            Kind::Count,
            Default::Count(limits::STATEMENT_WRITE_ROWS as u64),
            "10_000_000",
            "Rows that one statement may write.",
        ),
        option(
            "http_body",
            Kind::Size,
            Default::Size(limits::HTTP_BODY_BYTES as u64),
            "\"64MiB\"",
            "Size of the body of an HTTP request.",
        ),
    ],
};

const CLUSTER: Section = Section {
    word: "cluster",
    named: None,
    about: "What the nodes share.",
    options: &[
        option(
            "name",
            Kind::Text,
            Default::None("\"cachesql\""),
            "\"shop\"",
            "Its name. Nodes of a cluster of another name are refused.",
        ),
        option(
            "secret",
            Kind::Secret,
            Default::None("none, where all nodes reach each other on this machine; required elsewhere"),
            "{ env = \"CACHESQL_SECRET\" }",
            "What nodes show to each other: at least 16 bytes, the same for all.",
        ),
    ],
};

const GROUPS: Section = Section {
    word: "groups",
    named: Some("main"),
    about: "The nodes that hold the same tables. A file may leave this out: then there is one group, of all nodes. \
            In this version a node is in one group. Names are ASCII without spaces.",
    options: &[
        option(
            "members",
            Kind::Names,
            Default::Required,
            "[\"a\"]",
            "Its nodes. The first one founds the group, unless `leader` names another.",
        ),
        option(
            "leader",
            Kind::Text,
            Default::None("the first member"),
            "\"a\"",
            "The node that leads first, and with failover = \"manual\" until an operator says otherwise.",
        ),
        option(
            "failover",
            Kind::Choice(&["automatic", "manual"]),
            Default::None("\"automatic\" with three members or more; \"manual\" with two, or where a leader is named"),
            "\"automatic\"",
            "Whether the members elect a new leader when the last one is gone, or an operator appoints one. With \"manual\" only the \
             leader's disk has to keep a write for it to be acknowledged.",
        ),
    ],
};

const ORIGINS: Section = Section {
    word: "origins",
    named: Some("hr"),
    about: "A database that tables are loaded from.",
    options: &[
        option(
            "url",
            Kind::Text,
            Default::Required,
            "\"postgres://reader@db.internal/hr\"",
            "postgres://…, sqlite:PATH, or a JDBC URL of either. A relative path of SQLite is relative to this file.",
        ),
        option("user", Kind::Text, Default::None("the URL's"), "\"reader\"", "Who connects."),
        option(
            "password",
            Kind::Secret,
            Default::None("the URL's"),
            "{ env = \"HR_PASSWORD\" }",
            "The password. It never shows in logs or errors.",
        ),
    ],
};

const TABLES: Section = Section {
    word: "tables",
    named: Some("KCA2"),
    about: "A table that is held in memory. Its rows come from `origin` and `query`, or from `file`; a table with neither begins \
            empty, and then needs `columns`.",
    options: &[
        option("origin", Kind::Text, Default::None("none"), "\"hr\"", "The origin that the query is for."),
        option(
            "query",
            Kind::Text,
            Default::None("none"),
            "\"SELECT * FROM KCA2 WHERE MONTH = $1\"",
            "What is loaded, in the origin's own SQL. `$1` and `?` stand for `params`.",
        ),
        option(
            "params",
            Kind::Values,
            Default::None("none"),
            "[202604]",
            "Values of the query's parameters, in order.",
        ),
        option(
            "file",
            Kind::Path,
            Default::None("none"),
            "\"kca2.csv\"",
            "A CSV, NDJSON or Arrow IPC file that is loaded.",
        ),
        option(
            "format",
            Kind::Choice(&["csv", "ndjson", "arrow"]),
            Default::None("told by the file's ending: .csv .tsv .ndjson .jsonl .arrow"),
            "\"csv\"",
            "What the file is.",
        ),
        option(
            "null",
            Kind::Text,
            Default::None("an empty field without quotes"),
            "\"NA\"",
            "What stands for NULL in a CSV file, besides an empty field without quotes.",
        ),
        option(
            "delimiter",
            Kind::Text,
            Default::None("\",\"; a tab for .tsv"),
            "\";\"",
            "The one character between the fields of a CSV file.",
        ),
        option(
            "key",
            Kind::Names,
            Default::None("the origin's primary key where it has one, else none"),
            "[\"AAC001\"]",
            "The primary key: no two rows have the same, and it may not be NULL.",
        ),
        option(
            "indexes",
            Kind::Indexes,
            Default::None("none"),
            "[\"AAB004\", [\"AAB004\", \"AAC002\"]]",
            "Columns that are asked for by equality, range, prefix or order. \"A+B\" is the same as [\"A\", \"B\"].",
        ),
        option(
            "columns",
            Kind::Columns,
            Default::None("the origin's types"),
            "{ AAE019 = \"DECIMAL(12,2)\" }",
            "Types of columns where the origin's are not the ones that are wanted. For a table that begins empty: all its columns.",
        ),
        option(
            "refresh",
            Kind::Refresh,
            Default::None("\"never\""),
            "\"10m\"",
            "How often the source is asked again. Only the difference is written, while readers go on. \"follow\" (changes \
             as they commit) is not served by this version.",
        ),
        option(
            "ttl",
            Kind::Duration,
            Default::None("for ever"),
            "\"1h\"",
            "Rows that were not read or written for that long are removed.",
        ),
        option(
            "max_rows",
            Kind::Count,
            Default::None("no limit"),
            "1_000_000",
            "Beyond so many rows, the least recently used ones go.",
        ),
        option("group", Kind::Text, Default::None("the only group"), "\"main\"", "The group that holds it."),
    ],
};

const CACHES: Section = Section {
    word: "caches",
    named: Some("scores"),
    about: "A keyed cache. Not served by this version: a file with such a section is refused.",
    options: &[
        option("budget", Kind::Size, Default::None("\"64MiB\""), "\"64MiB\"", "Memory of its entries."),
        option("ttl", Kind::Duration, Default::None("for ever"), "\"5m\"", "How long a value is fresh."),
        option(
            "negative_ttl",
            Kind::Duration,
            Default::None("\"1s\""),
            "\"1s\"",
            "How long \"not found\" is believed.",
        ),
        option(
            "stale_while_revalidate",
            Kind::Duration,
            Default::None("not at all"),
            "\"30s\"",
            "How long an old value is served while a new one is fetched.",
        ),
        option(
            "stale_if_error",
            Kind::Duration,
            Default::None("not at all"),
            "\"1h\"",
            "How long an old value is served while the loader fails.",
        ),
        option(
            "loader",
            Kind::Loader,
            Default::None("none"),
            "{ origin = \"hr\", query = \"SELECT score FROM scores WHERE name = $1\" }",
            "What fetches a value that is not there.",
        ),
    ],
};
