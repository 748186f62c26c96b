//! Why a statement is refused or fails, and the SQLSTATE of each: the one place that maps them.
//!
//! Codes are those of PostgreSQL's manual, appendix A.

use std::time::Duration;

use cachesql_table::Refusal;
use cachesql_types::{DataType, ValueError, counted};

/// Why a statement is refused or fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The text is not SQL.
    #[error("syntax error: {0}")]
    Syntax(String),
    /// More than one statement in a text that may hold one.
    #[error("one statement was expected and {statements} were given; send several as a batch")]
    Stacked {
        /// How many there are.
        statements: usize,
    },
    /// The text is too long, or nested too deeply.
    #[error("the statement is too complex: {what} is limited to {most}")]
    TooComplex {
        /// "its length in bytes", "the number of its tokens", "the depth of its nesting".
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// No such table.
    #[error("table {table:?} does not exist")]
    UnknownTable {
        /// As it was asked for.
        table: String,
    },
    /// A table that the statement names, and does not read from.
    #[error("table {table:?} is not in FROM")]
    NotInFrom {
        /// As it was asked for.
        table: String,
    },
    /// No such column.
    #[error("column {column:?} does not exist{}", in_table(.table))]
    UnknownColumn {
        /// The table, when one was named.
        table: Option<String>,
        /// As it was asked for.
        column: String,
    },
    /// No such index.
    #[error("index {index:?} does not exist")]
    UnknownIndex {
        /// As it was asked for.
        index: String,
    },
    /// A name that several tables have.
    #[error("column {column:?} is in more than one table; write table.column")]
    AmbiguousColumn {
        /// As it was asked for.
        column: String,
    },
    /// A table of that name is there already.
    #[error("table {table:?} already exists")]
    TableExists {
        /// The table.
        table: String,
    },
    /// An index of that name is there already.
    #[error("index {index:?} already exists")]
    IndexExists {
        /// The index.
        index: String,
    },
    /// A table or index that may not be defined so.
    #[error("{0}")]
    Definition(String),
    /// What neither path can do.
    #[error("not supported: {0}")]
    NotSupported(String),
    /// A value that does not become one of the type that is wanted.
    #[error("{}{source}", at_column(.column))]
    Value {
        /// The column that it was for, when there is one.
        column: Option<String>,
        /// What is wrong with it.
        source: ValueError,
    },
    /// Types that do not go together.
    #[error("{0}")]
    TypeMismatch(String),
    /// Operators or functions that do not exist for such operands.
    #[error("{0}")]
    UnknownFunction(String),
    /// Not as many parameters as the statement has.
    #[error("the statement has {} and {given} {} given", counted(*.expected, "parameter"), if *.given == 1 { "was" } else { "were" })]
    ParameterCount {
        /// How many it has.
        expected: usize,
        /// How many came.
        given: usize,
    },
    /// Parameters that are written in two ways, or numbered with gaps.
    #[error("{0}")]
    Parameters(String),
    /// A parameter whose type nothing tells.
    #[error("the type of parameter ${number} cannot be told; write a cast, as in ${number}::bigint")]
    UntypedParameter {
        /// Counted from 1.
        number: usize,
    },
    /// NULL in a column that may not hold it.
    #[error("column {column:?} of table {table:?} may not be NULL")]
    NotNull {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A key that is there already.
    #[error("duplicate key in table {table:?}: {key}")]
    DuplicateKey {
        /// The table.
        table: String,
        /// Columns and values.
        key: String,
    },
    /// One INSERT … ON CONFLICT DO UPDATE that would change a row twice.
    #[error("ON CONFLICT DO UPDATE cannot change a row of table {table:?} a second time")]
    ChangedTwice {
        /// The table.
        table: String,
    },
    /// A number that the result's type cannot hold.
    #[error("{0}")]
    OutOfRange(String),
    /// A division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A grouping that does not determine what is asked for.
    #[error("{0}")]
    Grouping(String),
    /// A scalar subquery that answered several rows.
    #[error("a subquery that is used as a value answered more than one row")]
    Cardinality,
    /// It took too long.
    #[error("the statement was stopped after {} ms (limits.statement_timeout)", .limit.as_millis())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It wanted too much memory.
    #[error("the statement wants more memory than it may have: {0}")]
    Memory(String),
    /// It answers or writes too many rows.
    #[error("the statement has more rows than the {most} that it may have ({word})")]
    TooManyRows {
        /// The limit.
        most: u64,
        /// What a configuration sets it by.
        word: &'static str,
    },
    /// The table changed its shape under a prepared statement, and its answer would have other columns.
    #[error("the table was redefined, and the prepared statement would answer other columns; prepare it again")]
    PlanChanged,
    /// What the rows refuse, for a reason that has no kind of its own here.
    #[error("{message}")]
    Refused {
        /// The SQLSTATE.
        sqlstate: &'static str,
        /// What is wrong.
        message: String,
    },
    /// A fault of ours.
    #[error("internal error: {0}")]
    Internal(String),
}

fn in_table(table: &Option<String>) -> String {
    table.as_ref().map(|t| format!(" in table {t:?}")).unwrap_or_default()
}

fn at_column(column: &Option<String>) -> String {
    column.as_ref().map(|c| format!("column {c:?}: ")).unwrap_or_default()
}

impl SqlError {
    /// A value that does not fit a column.
    pub fn value(column: &str, source: ValueError) -> SqlError {
        SqlError::Value { column: Some(column.to_owned()), source }
    }

    /// No operator of that name for two such types.
    pub fn no_operator(left: DataType, op: &str, right: DataType) -> SqlError {
        SqlError::UnknownFunction(format!("operator does not exist: {left} {op} {right}; a cast may help"))
    }

    /// What an operator gives is more than its type holds.
    pub(crate) fn result_out_of_range(op: &str) -> SqlError {
        SqlError::OutOfRange(format!("the result of {op} is out of range"))
    }

    /// The five characters that PostgreSQL's clients know the error by.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            SqlError::Syntax(_) | SqlError::Stacked { .. } => "42601",
            SqlError::TooComplex { .. } => "54001",
            SqlError::UnknownTable { .. } | SqlError::NotInFrom { .. } => "42P01",
            SqlError::UnknownColumn { .. } => "42703",
            SqlError::UnknownIndex { .. } => "42704",
            SqlError::AmbiguousColumn { .. } => "42702",
            SqlError::TableExists { .. } | SqlError::IndexExists { .. } => "42P07",
            SqlError::Definition(_) => "42P16",
            SqlError::NotSupported(_) | SqlError::PlanChanged => "0A000",
            SqlError::Value { source, .. } => value_sqlstate(source),
            SqlError::TypeMismatch(_) => "42804",
            SqlError::UnknownFunction(_) => "42883",
            SqlError::ParameterCount { .. } => "07001",
            SqlError::Parameters(_) => "42P02",
            SqlError::UntypedParameter { .. } => "42P18",
            SqlError::NotNull { .. } => "23502",
            SqlError::DuplicateKey { .. } => "23505",
            SqlError::ChangedTwice { .. } | SqlError::Cardinality => "21000",
            SqlError::OutOfRange(_) => "22003",
            SqlError::DivisionByZero => "22012",
            SqlError::Grouping(_) => "42803",
            SqlError::Timeout { .. } => "57014",
            SqlError::Memory(_) => "53200",
            SqlError::TooManyRows { .. } => "54000",
            SqlError::Refused { sqlstate, .. } => sqlstate,
            SqlError::Internal(_) => "XX000",
        }
    }
}

fn value_sqlstate(error: &ValueError) -> &'static str {
    match error {
        ValueError::Syntax { .. } => "22P02",
        ValueError::Range { .. } => "22003",
        ValueError::Type { .. } => "42804",
    }
}

impl SqlError {
    /// The error that a refusal of the tables is to the statement that caused it.
    pub fn of_refusal(refusal: &Refusal) -> SqlError {
        let other = |sqlstate| SqlError::Refused { sqlstate, message: refusal.to_string() };
        match refusal {
            Refusal::UnknownTable { table } => SqlError::UnknownTable { table: table.clone() },
            Refusal::TableExists { table } => SqlError::TableExists { table: table.clone() },
            Refusal::UnknownIndex { index, .. } => SqlError::UnknownIndex { index: index.clone() },
            Refusal::IndexExists { index, .. } => SqlError::IndexExists { index: index.clone() },
            Refusal::NotNull { table, column } => SqlError::NotNull { table: table.clone(), column: column.clone() },
            Refusal::DuplicateKey { table, index, columns, key } => {
                SqlError::DuplicateKey { table: table.clone(), key: format!("{columns} = {key} (index {index:?})") }
            }
            Refusal::Schema(error) => SqlError::Definition(error.to_string()),
            Refusal::Type { .. } => other("22003"),
            Refusal::TooManyRows { .. } => other("54000"),
            _ => other("XX000"),
        }
    }
}
