//! Why rows could not be fetched: one enum that a caller can match on, and that names what a person has to look at.

use cachesql_types::DataType;

/// Why an origin could not be used, or a load broke off. No variant carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// A URL that cannot be read.
    #[error("origin URL {url}: {reason}")]
    Url {
        /// The URL without its secrets.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A kind of origin that is not served.
    #[error("{kind} is not served as an origin: {advice}")]
    Unsupported {
        /// The kind, by name.
        kind: String,
        /// What is served, or what to do.
        advice: String,
    },
    /// The origin could not be reached, or refused the connection before it knew who asks.
    #[error("origin {origin}: cannot connect: {reason}")]
    Connect {
        /// The origin's URL without its secrets.
        origin: String,
        /// What the system or the origin said.
        reason: String,
    },
    /// The origin refused the user or the password.
    #[error("origin {origin}: authentication failed: {reason}")]
    Authentication {
        /// The origin's URL without its secrets.
        origin: String,
        /// What the origin said.
        reason: String,
    },
    /// No TLS, or a certificate that is not trusted.
    #[error("origin {origin}: TLS: {reason}")]
    Tls {
        /// The origin's URL without its secrets.
        origin: String,
        /// What went wrong.
        reason: String,
    },
    /// The connection ended while rows were fetched.
    #[error("table {table}: the connection to the origin was lost: {reason}")]
    Lost {
        /// The table that was loaded.
        table: String,
        /// What the system said.
        reason: String,
    },
    /// The origin refused the query.
    #[error("table {table}: the origin refused the query: {message}{}", sqlstate.as_ref().map(|s| format!(" (SQLSTATE {s})")).unwrap_or_default())]
    Query {
        /// The table that was loaded.
        table: String,
        /// The five characters, where the origin speaks SQLSTATE.
        sqlstate: Option<String>,
        /// What the origin said.
        message: String,
    },
    /// The number of bound values is not the number of parameters.
    #[error("table {table}: the query has {expected} parameters, and {given} values are given")]
    Parameters {
        /// The table.
        table: String,
        /// How many the query has.
        expected: usize,
        /// How many values there are.
        given: usize,
    },
    /// A column of a type that tables cannot hold.
    #[error("table {table}: column {column} is of type {type_name}, which tables do not hold: {advice}")]
    Type {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The type as the origin names it.
        type_name: String,
        /// What to do.
        advice: String,
    },
    /// A value that the column's type cannot hold exactly.
    #[error("table {table}: column {column}: value {value} ({place}) cannot be held in type {data_type}: {reason}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The value, cut to a readable length.
        value: String,
        /// The column's type.
        data_type: DataType,
        /// Where: `row 17`, or `people.csv line 18`.
        place: Box<str>,
        /// Why not.
        reason: String,
    },
    /// Columns that are asked for and the source does not have, or names that repeat.
    #[error("table {table}: {reason}")]
    Columns {
        /// The table.
        table: String,
        /// What is wrong.
        reason: String,
    },
    /// A file that cannot be opened, read, or is not in its format.
    #[error("table {table}: file {path}{}: {reason}", line.map(|l| format!(" line {l}")).unwrap_or_default())]
    File {
        /// The table.
        table: String,
        /// The file.
        path: String,
        /// The line, counted from 1, where there is one.
        line: Option<u64>,
        /// What is wrong.
        reason: String,
    },
    /// The load ended before its source did, for a reason inside this process.
    #[error("table {table}: the load broke off: {reason}")]
    Broken {
        /// The table.
        table: String,
        /// What happened.
        reason: String,
    },
}

impl OriginError {
    /// True when the same call may succeed later without anybody changing anything: the origin was away, or is starting.
    pub fn is_transient(&self) -> bool {
        match self {
            OriginError::Connect { .. } | OriginError::Lost { .. } => true,
            // Connection exceptions, lack of resources, operator intervention, serialisation failures.
            OriginError::Query { sqlstate: Some(state), .. } => {
                ["08", "53", "57", "40"].iter().any(|class| state.starts_with(class))
            }
            _ => false,
        }
    }
}

/// A value as an error shows it: cut to a readable length, quoted, so that it cannot be taken for the message.
pub(crate) fn shown(value: &str) -> String {
    const MOST: usize = 100;
    let cut: String = value.chars().take(MOST).collect();
    if cut.len() < value.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

/// An error and all that caused it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}
