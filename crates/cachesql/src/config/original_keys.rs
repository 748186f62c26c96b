//! Every key of the original's files, defined once: what it does here, or why it does nothing.

/// A key of the original, and what becomes of it here.
#[derive(Debug)]
pub struct OriginalKey {
    /// The key; `<T>` and `<G>` stand for a table and a group.
    pub key: &'static str,
    /// What it does here; when `meaningless` is set, why it does nothing.
    pub about: &'static str,
    /// True for keys that are accepted, reported and otherwise ignored.
    pub meaningless: bool,
}

const fn honoured(key: &'static str, about: &'static str) -> OriginalKey {
    OriginalKey { key, about, meaningless: false }
}

const fn meaningless(key: &'static str, about: &'static str) -> OriginalKey {
    OriginalKey { key, about, meaningless: true }
}

const THREADS: &str = "Requests are not bound to threads here.";
const BUFFERS: &str = "Buffers size themselves here.";
const OWN_LOG: &str = "Replication looks after itself here: nodes are told of each other by `cachesql.group.<G>`.";

/// Every key that is understood.
pub static KEYS: &[OriginalKey] = &[
    honoured("server.mode", "`all` answers HTTP; `embed` answers nothing, so that `serve` refuses it."),
    honoured(
        "server.port",
        "The HTTP port, on 127.0.0.1; 8080 when it is left out. `--http 0.0.0.0:8080` opens it wider.",
    ),
    honoured(
        "server.role",
        "`standalone`. `master` and `slave` are refused: the nodes of a group are named by `cachesql.group.<G>.master` and `.slaves`, in one file for all of them.",
    ),
    honoured("server.http.maxEntitySize", "Bytes of a request's body."),
    honoured("db.url", "The JDBC URL that tables are loaded from: PostgreSQL or SQLite. Others are refused by name."),
    honoured("db.username", "Who connects."),
    honoured("db.password", "The password."),
    honoured(
        "cache.refreshInterval",
        "Milliseconds after which every table is refreshed, again and again; 0 is never.",
    ),
    honoured("cache.table.<T>.sql", "The query of a table; equal to the table's name, the table begins empty."),
    honoured("cache.table.<T>.indexes", "Its indexes, with commas between; `A+B` is composite."),
    honoured("cache.table.<T>.params", "Values of the query's `?`, with commas between."),
    honoured(
        "cache.table.<T>.columns",
        "Columns of a table that begins empty, with commas between. They are text; a type may follow: `id BIGINT, name`.",
    ),
    honoured(
        "cachesql.group.<G>.master",
        "The URL of the node that leads the group first. A node is called by the host:port of its URL.",
    ),
    honoured(
        "cachesql.group.<G>.slaves",
        "The URLs of its other nodes. With two or more, one of them takes over when the leader is gone.",
    ),
    honoured("cachesql.group.<G>.tables", "The group's tables."),
    honoured(
        "cachesql.data",
        "The folder in which nodes of groups of several keep what they acknowledged, each in a folder of its own; \
         `cachesql-data` beside the file when it is left out.",
    ),
    honoured(
        "cachesql.secret",
        "What nodes show each other, at least 16 bytes; or the environment variable CACHESQL_SECRET. Needed where they are on \
         several machines.",
    ),
    honoured(
        "cachesql.insecure",
        "`true` lets nodes answer without a token beyond their machine. Without it, that is refused.",
    ),
    meaningless("db.driver", "The URL tells which database it is."),
    meaningless("db.pool.maxActive", "A load takes one connection, and closes it."),
    meaningless("db.pool.timeout", "A load takes one connection, and closes it."),
    meaningless("server.threads", THREADS),
    meaningless("server.http.engine", "There is one engine."),
    meaningless("server.http.threads", THREADS),
    meaningless("server.http.ioThreads", THREADS),
    meaningless("server.http.workerThreads", THREADS),
    meaningless("server.http.backlog", BUFFERS),
    meaningless("server.http.bufferSize", BUFFERS),
    meaningless("server.master.url", OWN_LOG),
    meaningless("server.slaves", OWN_LOG),
    meaningless("server.sync.port", OWN_LOG),
    meaningless("server.oplog.capacity", OWN_LOG),
    meaningless("server.heartbeat.interval", OWN_LOG),
    meaningless("server.heartbeat.timeout", OWN_LOG),
    meaningless("server.pending.capacity", OWN_LOG),
    meaningless("server.pending.flush.interval", OWN_LOG),
    meaningless("cachesql.connectTimeout", "It is the routing client's."),
    meaningless("cachesql.readTimeout", "It is the routing client's."),
];

/// Families whose keys the original grew over time: all of a family are known, and without meaning here.
pub(super) const MEANINGLESS_FAMILIES: [&str; 5] =
    ["server.http.", "server.oplog.", "server.heartbeat.", "server.pending.", "db.pool."];
