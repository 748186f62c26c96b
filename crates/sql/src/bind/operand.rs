//! The other side of a comparison: literals and parameters, typed by the column they stand beside.

use cachesql_types::{DataType, Decimal, Value};
use sqlparser::ast::{self, Expr, UnaryOperator};

use super::Unfit;
use super::parameters::{ParameterTypes, comparable};
use crate::error::SqlError;
use crate::parse::parameter_position;
use crate::plan::Operand;

/// A literal as it was written, before a column types it.
enum Literal {
    /// Quoted, and so of no type yet.
    Unknown(String),
    Typed(Value),
    Parameter(usize),
}

/// A literal or a parameter beside a column of a type; `op` is for the error.
pub(crate) fn bind_operand(
    expr: &Expr,
    column_type: DataType,
    column_name: &str,
    op: &str,
    parameters: &mut ParameterTypes,
) -> Result<Operand, Unfit> {
    let value = match literal(expr)? {
        Literal::Parameter(position) => {
            let data_type = parameters.expect(position, column_type)?;
            if !comparable(column_type, data_type) {
                let clash = SqlError::no_operator(column_type, op, data_type);
                return Err(if parameters.is_given(position) { clash.into() } else { Unfit::Shape });
            }
            return Ok(Operand::Parameter(position));
        }
        Literal::Unknown(text) => {
            let read = Value::parse(&text, column_type);
            return Ok(Operand::Value(read.map_err(|e| SqlError::value(column_name, e))?));
        }
        Literal::Typed(value) => value,
    };
    match value.data_type() {
        None => Ok(Operand::Value(value)),
        Some(data_type) if comparable(column_type, data_type) => Ok(Operand::Value(value)),
        // PostgreSQL widens the date to a timestamp: that is a comparison the direct path does not make.
        Some(DataType::Timestamp | DataType::TimestampTz) if column_type == DataType::Date => Err(Unfit::Shape),
        Some(data_type) => Err(SqlError::no_operator(column_type, op, data_type).into()),
    }
}

/// The value of a literal that stands alone, as in VALUES; quoted ones are read as the type. `None` when it is no literal.
pub(crate) fn literal_value(expr: &Expr, data_type: DataType) -> Result<Option<Operand>, cachesql_types::ValueError> {
    match literal(expr) {
        Ok(Literal::Unknown(text)) => Value::parse(&text, data_type).map(|v| Some(Operand::Value(v))),
        Ok(Literal::Typed(value)) => Ok(Some(Operand::Value(value))),
        Ok(Literal::Parameter(position)) => Ok(Some(Operand::Parameter(position))),
        Err(_) => Ok(None),
    }
}

fn literal(expr: &Expr) -> Result<Literal, Unfit> {
    match expr {
        Expr::Nested(inner) => literal(inner),
        Expr::Value(value) => plain(&value.value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => match &value.value {
                ast::Value::Number(digits, _) => number(&format!("-{digits}")),
                _ => Err(Unfit::Shape),
            },
            _ => Err(Unfit::Shape),
        },
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => match &**expr {
            Expr::Value(value) if matches!(value.value, ast::Value::Number(..)) => plain(&value.value),
            _ => Err(Unfit::Shape),
        },
        Expr::TypedString(typed) => match &typed.value.value {
            ast::Value::SingleQuotedString(text) => cast_text(text, &typed.data_type),
            _ => Err(Unfit::Shape),
        },
        Expr::Cast {
            kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
            expr,
            data_type,
            array: false,
            format: None,
        } => match literal(expr)? {
            Literal::Unknown(text) => cast_text(&text, data_type),
            _ => Err(Unfit::Shape),
        },
        _ => Err(Unfit::Shape),
    }
}

fn plain(value: &ast::Value) -> Result<Literal, Unfit> {
    Ok(match value {
        ast::Value::SingleQuotedString(text)
        | ast::Value::EscapedStringLiteral(text)
        | ast::Value::UnicodeStringLiteral(text)
        | ast::Value::NationalStringLiteral(text) => Literal::Unknown(text.clone()),
        ast::Value::DollarQuotedString(text) => Literal::Unknown(text.value.clone()),
        ast::Value::Number(digits, _) => return number(digits),
        ast::Value::Boolean(value) => Literal::Typed(Value::Boolean(*value)),
        ast::Value::Null => Literal::Typed(Value::Null),
        ast::Value::Placeholder(name) => Literal::Parameter(parameter_position(name)?),
        _ => return Err(Unfit::Shape),
    })
}

/// A number is an integer when it fits one, else an exact decimal, else a double.
fn number(digits: &str) -> Result<Literal, Unfit> {
    if let Ok(integer) = digits.parse::<i64>() {
        return Ok(Literal::Typed(Value::BigInt(integer)));
    }
    if let Some(decimal) = Decimal::parse(digits) {
        return Ok(Literal::Typed(Value::Decimal(decimal)));
    }
    let double = digits.parse::<f64>().ok().filter(|d| d.is_finite());
    double.map(|d| Literal::Typed(Value::Double(d))).ok_or(Unfit::Shape)
}

fn cast_text(text: &str, data_type: &ast::DataType) -> Result<Literal, Unfit> {
    let data_type = DataType::parse(&data_type.to_string()).ok_or(Unfit::Shape)?;
    let value = Value::parse(text, data_type).map_err(|source| SqlError::Value { column: None, source })?;
    Ok(Literal::Typed(value))
}
