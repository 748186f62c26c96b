//! What HTTP says for each error: the one place that maps them. The status follows from the SQLSTATE, as in PostgREST where
//! it has an opinion.

use cachesql_node::{NodeError, SqlError};
use cachesql_types::ValueError;
use hyper::StatusCode;

use super::failure::{Failure, FailureHeader};
use super::parameters::EncodingError;

/// Characters of a message.
const MESSAGE_CHARS: usize = 500;

/// The status for an SQLSTATE.
pub(crate) fn of_sqlstate(code: &str) -> StatusCode {
    match code {
        "42P01" | "42883" => return StatusCode::NOT_FOUND,
        "42501" => return StatusCode::FORBIDDEN,
        // A statement that is too complex, a batch that is too long, too many rows: the caller's to change.
        "54000" | "54001" | "21000" => return StatusCode::BAD_REQUEST,
        "08007" | "57014" => return StatusCode::GATEWAY_TIMEOUT,
        "08006" => return StatusCode::BAD_GATEWAY,
        "08P01" => return StatusCode::BAD_REQUEST,
        "0A000" => return StatusCode::BAD_REQUEST,
        _ => {}
    }
    match code.get(..2).unwrap_or_default() {
        "08" | "53" | "57" => StatusCode::SERVICE_UNAVAILABLE,
        "23" => match code {
            "23503" | "23505" => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        },
        "28" => StatusCode::UNAUTHORIZED,
        "40" | "55" => StatusCode::CONFLICT,
        "25" | "58" | "F0" | "XX" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// A statement's error.
pub(crate) fn of_sql(error: &SqlError) -> Failure {
    if let SqlError::Internal(cause) = error {
        tracing::error!(%cause, "a statement failed by a fault of this program");
        return Failure::internal();
    }
    let code = error.sqlstate();
    let failure = Failure::new(of_sqlstate(code), code, shortened(error.to_string()));
    match error {
        SqlError::Stacked { .. } => failure.with_hint("a batch is a JSON array of statements"),
        SqlError::Timeout { .. } => failure.with_hint("an index, a narrower filter or a LIMIT makes it shorter"),
        _ => failure,
    }
}

/// A node's error.
pub(crate) fn of_node(error: &NodeError) -> Failure {
    let code = error.sqlstate();
    match error {
        NodeError::Sql(error) => of_sql(error),
        NodeError::Internal(cause) => {
            tracing::error!(%cause, "a request failed by a fault of this program");
            Failure::internal()
        }
        NodeError::NotLoaded { .. } => Failure::new(of_sqlstate(code), code, shortened(error.to_string()))
            .with_hint("GET /readyz says how far it is"),
        NodeError::RequestIdReused { .. } => Failure::new(StatusCode::CONFLICT, code, error.to_string()),
        NodeError::Fenced(_) => Failure::new(StatusCode::SERVICE_UNAVAILABLE, code, error.to_string()),
        NodeError::NotLeader { leader, .. } => {
            let failure = Failure::new(StatusCode::MISDIRECTED_REQUEST, code, error.to_string());
            let header = leader.clone().map(|leader| Box::new(FailureHeader::Leader(leader)));
            Failure { header, ..failure }
        }
        NodeError::OfLeader { sqlstate: "40001" | "53000", .. }
        | NodeError::Redefined { .. }
        | NodeError::Superseded
        | NodeError::Busy { .. } => Failure::new(of_sqlstate(code), code, shortened(error.to_string()))
            .with_hint("the same request may succeed when it is sent again"),
        _ => Failure::new(of_sqlstate(code), code, shortened(error.to_string())),
    }
}

/// A message that quotes a long statement is cut.
fn shortened(message: String) -> String {
    match message.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

/// A text that is not a value of its column's type.
pub(crate) fn of_value(column: &str, error: &ValueError) -> Failure {
    let code = match error {
        ValueError::Syntax { .. } => "22P02",
        ValueError::Range { .. } => "22003",
        ValueError::Type { .. } => "42804",
    };
    Failure::new(StatusCode::BAD_REQUEST, code, error.to_string()).with_details(format!("column {column}"))
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Failure {
        of_node(&error)
    }
}

impl From<EncodingError> for Failure {
    fn from(error: EncodingError) -> Failure {
        let code = if error == EncodingError::Utf8 { "22021" } else { "08P01" };
        Failure::new(StatusCode::BAD_REQUEST, code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_follow_from_the_code() {
        let cases = [
            ("42P01", 404),
            ("42703", 400),
            ("22P02", 400),
            ("23505", 409),
            ("23502", 400),
            ("42601", 400),
            ("54001", 400),
            ("53200", 503),
            ("57014", 504),
            ("57P03", 503),
            ("40001", 409),
            ("28000", 401),
            ("XX000", 500),
            ("58000", 500),
            ("", 400),
        ];
        for (code, status) in cases {
            assert_eq!(of_sqlstate(code).as_u16(), status, "{code}");
        }
    }
}
