//! DataFusion's errors → ours.

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use super::messages::by_text;
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
        DataFusionError::NotImplemented(text) => Some(by_text(text)),
        _ => None,
    }
}

fn of_arrow(error: &ArrowError) -> Option<SqlError> {
    Some(match error {
        ArrowError::DivideByZero => SqlError::DivisionByZero,
        ArrowError::ArithmeticOverflow(text)
        | ArrowError::CastError(text)
        | ArrowError::ParseError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::InvalidArgumentError(text) => by_text(text),
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
        SchemaError::FieldNotFound { field, valid_fields } => {
            let known =
                |label: &str| valid_fields.iter().any(|f| f.relation.as_ref().is_some_and(|r| r.table() == label));
            let only = || {
                let mut tables = valid_fields.iter().map(|f| f.relation.as_ref().map(|r| r.table()));
                let first = tables.next().flatten()?;
                tables.all(|other| other == Some(first)).then_some(first)
            };
            match field.relation.as_ref().map(|r| r.table()) {
                Some(table) if !known(table) => SqlError::NotInFrom { table: table.to_owned() },
                table => SqlError::UnknownColumn {
                    table: table.or_else(only).map(str::to_owned),
                    column: field.name.clone(),
                },
            }
        }
        SchemaError::AmbiguousReference { field } => SqlError::AmbiguousColumn { column: field.name.clone() },
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            SqlError::AmbiguousColumn { column: name.clone() }
        }
    })
}
