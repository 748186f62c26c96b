//! DataFusion's errors → ours.

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use crate::error::SqlError;

/// Our kind of a DataFusion error. An error of ours that went through DataFusion comes out as it was.
pub(crate) fn of_datafusion(error: DataFusionError) -> SqlError {
    // Contexts name DataFusion's own steps; what went wrong is at the root.
    let text = error.find_root().strip_backtrace();
    kind(&error).unwrap_or_else(|| by_text(&text))
}

fn kind(error: &DataFusionError) -> Option<SqlError> {
    match error {
        DataFusionError::External(inner) => {
            inner.downcast_ref::<SqlError>().cloned().or_else(|| inner.downcast_ref::<ArrowError>().and_then(of_arrow))
        }
        DataFusionError::Context(_, inner) => kind(inner),
        DataFusionError::Diagnostic(_, inner) => kind(inner),
        DataFusionError::Shared(inner) => kind(inner),
        DataFusionError::Collection(errors) => errors.iter().find_map(kind),
        DataFusionError::ArrowError(inner, _) => of_arrow(inner),
        DataFusionError::SchemaError(inner, _) => of_schema(inner),
        DataFusionError::ResourcesExhausted(_) => {
            Some(SqlError::Memory("its joins, groups and sorts are bounded by limits.statement_memory".to_owned()))
        }
        DataFusionError::NotImplemented(text) => Some(SqlError::NotSupported(first_line(text))),
        _ => None,
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn of_arrow(error: &ArrowError) -> Option<SqlError> {
    Some(match error {
        ArrowError::DivideByZero => SqlError::DivisionByZero,
        ArrowError::ArithmeticOverflow(text) => SqlError::OutOfRange(format!("value out of range: {text}")),
        ArrowError::CastError(text) | ArrowError::ParseError(text) => {
            SqlError::Refused { sqlstate: "22P02", message: first_line(text) }
        }
        ArrowError::ExternalError(inner) => {
            return inner
                .downcast_ref::<SqlError>()
                .cloned()
                .or_else(|| inner.downcast_ref::<DataFusionError>().and_then(kind));
        }
        ArrowError::MemoryError(text) => SqlError::Memory(text.clone()),
        _ => return None,
    })
}

fn of_schema(error: &SchemaError) -> Option<SqlError> {
    Some(match error {
        SchemaError::FieldNotFound { field, .. } => SqlError::UnknownColumn {
            table: field.relation.as_ref().map(|r| r.table().to_owned()),
            column: field.name.clone(),
        },
        SchemaError::AmbiguousReference { field } => SqlError::AmbiguousColumn { column: field.name.clone() },
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            SqlError::AmbiguousColumn { column: name.clone() }
        }
    })
}

/// What DataFusion tells in words only.
fn by_text(text: &str) -> SqlError {
    let message = first_line(text.strip_prefix("Error during planning: ").unwrap_or(text));
    let says = |part: &str| text.contains(part);
    let unknown =
        ["Invalid function", "no window function", "No function matches", "does not support", "Failed to coerce"];
    if unknown.iter().any(|part| says(part)) {
        SqlError::UnknownFunction(message)
    } else if says("Cannot infer common") || says("Cannot coerce") || says("cannot be evaluated because") {
        SqlError::TypeMismatch(message)
    } else if says("LIMIT must be") {
        SqlError::Refused { sqlstate: "2201W", message: "LIMIT must not be negative".into() }
    } else if says("OFFSET must be") {
        SqlError::Refused { sqlstate: "2201X", message: "OFFSET must not be negative".into() }
    } else if says("logical expression Exists") {
        SqlError::NotSupported("EXISTS as a value; it may stand in WHERE, and a count may stand in its place".into())
    } else if says("GROUP BY") {
        SqlError::Grouping(message)
    } else if says("more than one row") {
        SqlError::Cardinality
    } else if says("Divide by zero") || says("divide by zero") {
        SqlError::DivisionByZero
    } else if says("verflow") || says("out of range") {
        SqlError::OutOfRange(message)
    } else if says("Internal error") || says("panicked") {
        SqlError::Internal(message)
    } else {
        SqlError::NotSupported(message)
    }
}
