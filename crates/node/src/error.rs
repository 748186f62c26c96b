//! Why a node refuses or fails a request, and the SQLSTATE of each.
//!
//! Codes are those of PostgreSQL's manual, appendix A.

use std::time::Duration;

use cachesql_origin::OriginError;
use cachesql_sql::SqlError;
use cachesql_table::{ApplyError, Refusal};
use cachesql_types::{LogIndex, TokenError, ValueError, counted};

/// Why a request is refused or fails.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NodeError {
    /// No such table.
    #[error("table {table:?} does not exist")]
    UnknownTable {
        /// As it was asked for.
        table: String,
    },
    /// A configured table whose first load has not succeeded yet.
    #[error("table {table:?} is not loaded yet{}", failure.as_ref().map(|f| format!("; the last try failed: {f}")).unwrap_or_default())]
    NotLoaded {
        /// The table.
        table: String,
        /// Why the last try failed, when one has ended.
        failure: Option<String>,
    },
    /// No such column.
    #[error("column {column:?} does not exist in table {table:?}")]
    UnknownColumn {
        /// The table.
        table: String,
        /// As it was asked for.
        column: String,
    },
    /// A column that was given two values.
    #[error("column {column:?} of table {table:?} is given more than once")]
    RepeatedColumn {
        /// The table.
        table: String,
        /// As it was given.
        column: String,
    },
    /// A text that is not a value of its column's type.
    #[error("column {column:?} of table {table:?}: {source}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What is wrong with it.
        source: ValueError,
    },
    /// Not as many values as the index has columns.
    #[error("index {index:?} has {} and {given} {} given", counted(*.expected, "column"), if *.given == 1 { "value was" } else { "values were" })]
    ValueCount {
        /// As it was asked for.
        index: String,
        /// How many it has.
        expected: usize,
        /// How many came.
        given: usize,
    },
    /// The statement cannot be understood, planned or run.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The rows cannot be changed so.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The table was redefined between the reading of a request and its execution.
    #[error("table {table:?} was redefined meanwhile; ask again")]
    Redefined {
        /// The table.
        table: String,
    },
    /// The origin of a table failed.
    #[error("{}", origin_text(.table, .source))]
    Origin {
        /// The table.
        table: String,
        /// What went wrong; boxed, since it would make every answer as large as itself.
        source: Box<OriginError>,
    },
    /// The table has no configured source to load it from.
    #[error("table {table:?} has no source to load it from")]
    NoSource {
        /// The table.
        table: String,
    },
    /// The origin's columns are no longer those of the table; its rows stay as they are.
    #[error("table {table:?}: the origin's columns have changed: {change}; the rows loaded before are kept")]
    SchemaChanged {
        /// The table.
        table: String,
        /// Which columns, and how.
        change: String,
    },
    /// Rows that would not fit into the memory that the node may use.
    #[error(
        "{what} would need {needed_bytes} bytes more than are free: {used_bytes} of {limit_bytes} bytes are in use; nothing was changed"
    )]
    MemoryLimit {
        /// "the write", or the load of a table by name.
        what: String,
        /// Bytes that it lacks.
        needed_bytes: u64,
        /// Bytes in use.
        used_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The node has not seen yet what the token has.
    #[error("this node is at log index {have} and did not reach {wanted} within {} ms", .waited.as_millis())]
    TokenAhead {
        /// The token's index.
        wanted: LogIndex,
        /// The node's.
        have: LogIndex,
        /// How long it waited.
        waited: Duration,
    },
    /// A token of a group that this node does not serve.
    #[error("the token is of group {group:?}; this node serves group {serves:?}")]
    OtherGroup {
        /// The token's group.
        group: String,
        /// This node's.
        serves: String,
    },
    /// A text that is not a token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A text that is not a consistency level.
    #[error("unknown consistency {0:?}; it is any, session, bounded=250ms or linearizable")]
    Consistency(String),
    /// A request id that is empty or too long.
    #[error("a request id has 1 to {most} bytes; this one has {bytes}")]
    RequestId {
        /// How many it has.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// A request id that was used before, with another request.
    #[error("request id {id:?} was used before, for another request")]
    RequestIdReused {
        /// The id.
        id: String,
    },
    /// Too many statements in one batch.
    #[error("a batch of {statements} statements; at most {most} are allowed")]
    BatchTooLong {
        /// How many there are.
        statements: usize,
        /// The limit.
        most: usize,
    },
    /// A write whose operations take more than the log keeps as one.
    #[error(
        "the write takes {bytes} bytes of the log, and one write at most {most}; nothing was changed: write fewer rows at a time"
    )]
    WriteTooLarge {
        /// What it takes.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Too many requests of the kind are waiting.
    #[error("too many {what} are waiting; try again")]
    Busy {
        /// "writes", "loads".
        what: &'static str,
    },
    /// The node stopped accepting writes, because it can no longer tell that its state is right.
    #[error("this node has fenced itself and accepts no writes: {0}")]
    Fenced(String),
    /// Another member leads the group, or nobody that is known.
    #[error("this node does not lead group {group:?}{}", leader.as_ref().map_or_else(|| "; nobody does at present".to_owned(), |leader| format!("; {leader} does")))]
    NotLeader {
        /// The group.
        group: String,
        /// The name of the node that does.
        leader: Option<String>,
    },
    /// The leader changed while a write was on its way, and it was surely not applied.
    #[error("the group's leader changed meanwhile and the write was not applied; ask again")]
    Superseded,
    /// What became of a write cannot be said.
    #[error("whether the write was applied is not known; ask again with the same request id, or read what it wrote")]
    Unknown,
    /// The members of the group cannot be changed like that.
    #[error("members: {0}")]
    Members(String),
    /// This member does not have what the leader has, and did not get it in time.
    #[error("this node did not catch up with its group's leader within {} ms", .waited.as_millis())]
    Behind {
        /// How long it waited.
        waited: Duration,
    },
    /// What the group's leader said, of a request that was sent on to it.
    #[error("{message}")]
    OfLeader {
        /// The error's code.
        sqlstate: &'static str,
        /// The error's text.
        message: String,
    },
    /// The node is stopping.
    #[error("this node is shutting down")]
    Shutdown,
    /// A configuration that cannot be started.
    #[error("configuration: {0}")]
    Config(String),
    /// A fault of ours.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What an origin said, with the table's name where it did not give it itself.
fn origin_text(table: &str, source: &OriginError) -> String {
    let text = source.to_string();
    if text.starts_with("table ") { text } else { format!("table {table}: {text}") }
}

/// Codes that an error of the leader may have.
const SQLSTATES: [&str; 37] = [
    "07001", "08006", "08007", "0A000", "21000", "22003", "22012", "22023", "22P02", "23502", "23505", "25006",
    "40001", "42601", "42701", "42702", "42703", "42704", "42803", "42804", "42883", "42P01", "42P02", "42P07",
    "42P16", "42P18", "53000", "53200", "54000", "54001", "55000", "57014", "57P01", "57P03", "58000", "F0000",
    "XX000",
];

impl NodeError {
    /// An error that the leader answered, by its code and its text.
    pub(crate) fn of_leader(code: &str, message: String) -> NodeError {
        let sqlstate = SQLSTATES.into_iter().find(|known| *known == code).unwrap_or("XX000");
        NodeError::OfLeader { sqlstate, message }
    }

    /// The five characters that PostgreSQL's clients know the error by.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            NodeError::UnknownTable { .. } => "42P01",
            NodeError::NotLoaded { .. } => "57P03",
            NodeError::UnknownColumn { .. } => "42703",
            NodeError::RepeatedColumn { .. } => "42701",
            NodeError::Value { source, .. } => match source {
                ValueError::Syntax { .. } => "22P02",
                ValueError::Range { .. } => "22003",
                ValueError::Type { .. } => "42804",
            },
            NodeError::ValueCount { .. }
            | NodeError::OtherGroup { .. }
            | NodeError::Token(_)
            | NodeError::Consistency(_)
            | NodeError::RequestId { .. }
            | NodeError::RequestIdReused { .. } => "22023",
            NodeError::Sql(error) => error.sqlstate(),
            NodeError::Refused(refusal) => SqlError::of_refusal(refusal).sqlstate(),
            NodeError::Redefined { .. } => "40001",
            NodeError::Origin { source, .. } if matches!(**source, OriginError::Value { .. }) => "22003",
            NodeError::Origin { .. } => "08006",
            NodeError::NoSource { .. } | NodeError::SchemaChanged { .. } => "55000",
            NodeError::MemoryLimit { .. } => "53200",
            NodeError::TokenAhead { .. } => "57P03",
            NodeError::BatchTooLong { .. } | NodeError::WriteTooLarge { .. } => "54000",
            NodeError::Busy { .. } => "53000",
            NodeError::Fenced(_) => "58000",
            NodeError::NotLeader { .. } => "25006",
            NodeError::Superseded => "40001",
            NodeError::Unknown => "08007",
            NodeError::OfLeader { sqlstate, .. } => sqlstate,
            NodeError::Members(_) => "55000",
            NodeError::Behind { .. } => "57P03",
            NodeError::Shutdown => "57P01",
            NodeError::Config(_) => "F0000",
            NodeError::Internal(_) => "XX000",
        }
    }
}

/// Refusals are the same on every member and are answered; anything else stops the writer.
impl From<ApplyError> for NodeError {
    fn from(error: ApplyError) -> NodeError {
        match error {
            ApplyError::Refused(refusal) => NodeError::Refused(refusal),
            ApplyError::Fenced(reason) => NodeError::Fenced(reason),
        }
    }
}
