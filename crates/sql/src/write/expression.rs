//! Expressions over one row, as SET, VALUES and RETURNING have them: literals, parameters, columns, arithmetic, `||`,
//! COALESCE, casts. Others are DataFusion's.

use cachesql_types::{DataType, Decimal, Value};
use sqlparser::ast::{self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator};

use crate::bind::{ParameterTypes, Scope, Unfit, literal_value};
use crate::error::SqlError;
use crate::plan::Operand;

/// An expression, bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Value(Value),
    Parameter(usize),
    /// A column of the row.
    Column(usize),
    /// A column of the row that an INSERT would have inserted.
    Excluded(usize),
    Negate(Box<Scalar>),
    Binary(Operation, Box<Scalar>, Box<Scalar>),
    Coalesce(Vec<Scalar>),
    Cast(Box<Scalar>, DataType),
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Concatenate,
}

/// The rows that an expression is worked out over.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) row: &'a [Value],
    pub(crate) excluded: &'a [Value],
    pub(crate) parameters: &'a [Value],
}

/// Binds an expression that gives a value for a column of type `wanted`. Columns are those of the scope's only table;
/// `excluded` allows `EXCLUDED.column`.
pub(crate) fn bind_scalar(
    expr: &Expr,
    scope: &Scope,
    excluded: bool,
    wanted: DataType,
    parameters: &mut ParameterTypes,
) -> Result<Scalar, Unfit> {
    let value_error = |source| SqlError::Value { column: None, source };
    match literal_value(expr, wanted).map_err(value_error)? {
        Some(Operand::Value(value)) => return Ok(Scalar::Value(value)),
        Some(Operand::Parameter(position)) => {
            parameters.expect(position, wanted)?;
            return Ok(Scalar::Parameter(position));
        }
        None => {}
    }
    let mut bind = |expr: &Expr, wanted| bind_scalar(expr, scope, excluded, wanted, parameters);
    match expr {
        Expr::Nested(inner) => bind(inner, wanted),
        Expr::Identifier(_) => column(expr, scope),
        Expr::CompoundIdentifier(path) => match path.as_slice() {
            [table, name] if excluded && table.value.eq_ignore_ascii_case("excluded") => {
                let schema = scope.tables.first().map(|t| t.table.schema()).ok_or(Unfit::Shape)?;
                schema.column(&name.value).map(Scalar::Excluded).ok_or_else(|| {
                    SqlError::UnknownColumn { table: Some("excluded".into()), column: name.value.clone() }.into()
                })
            }
            _ => column(expr, scope),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Ok(Scalar::Negate(Box::new(bind(expr, wanted)?))),
        Expr::BinaryOp { left, op, right } => {
            let operation = operation(op)?;
            let wanted = match operation {
                Operation::Concatenate => DataType::Text,
                _ if wanted.is_numeric() => wanted,
                // Arithmetic on dates is DataFusion's.
                _ => return Err(Unfit::Shape),
            };
            Ok(Scalar::Binary(operation, Box::new(bind(left, wanted)?), Box::new(bind(right, wanted)?)))
        }
        Expr::Cast {
            kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
            expr,
            data_type,
            array: false,
            format: None,
        } => {
            let to = DataType::parse(&data_type.to_string()).ok_or(Unfit::Shape)?;
            Ok(Scalar::Cast(Box::new(bind(expr, to)?), to))
        }
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("coalesce") => {
            let FunctionArguments::List(list) = &function.args else { return Err(Unfit::Shape) };
            let plain = function.over.is_none() && function.filter.is_none() && list.clauses.is_empty();
            if !plain || list.args.is_empty() {
                return Err(Unfit::Shape);
            }
            let argument = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => bind(expr, wanted),
                _ => Err(Unfit::Shape),
            };
            list.args.iter().map(argument).collect::<Result<_, _>>().map(Scalar::Coalesce)
        }
        _ => Err(Unfit::Shape),
    }
}

fn column(expr: &Expr, scope: &Scope) -> Result<Scalar, Unfit> {
    let path = match expr {
        Expr::Identifier(ident) => std::slice::from_ref(ident),
        Expr::CompoundIdentifier(path) => path.as_slice(),
        _ => return Err(Unfit::Shape),
    };
    scope.column(path).map(|(_, column)| Scalar::Column(column))
}

fn operation(op: &BinaryOperator) -> Result<Operation, Unfit> {
    Ok(match op {
        BinaryOperator::Plus => Operation::Add,
        BinaryOperator::Minus => Operation::Subtract,
        BinaryOperator::Multiply => Operation::Multiply,
        BinaryOperator::Divide => Operation::Divide,
        BinaryOperator::Modulo => Operation::Modulo,
        BinaryOperator::StringConcat => Operation::Concatenate,
        _ => return Err(Unfit::Shape),
    })
}

impl Scalar {
    /// Works the expression out.
    pub(crate) fn of(&self, rows: Rows<'_>) -> Result<Value, SqlError> {
        Ok(match self {
            Scalar::Value(value) => value.clone(),
            Scalar::Parameter(position) => rows.parameters.get(*position).cloned().unwrap_or(Value::Null),
            Scalar::Column(column) => rows.row.get(*column).cloned().unwrap_or(Value::Null),
            Scalar::Excluded(column) => rows.excluded.get(*column).cloned().unwrap_or(Value::Null),
            Scalar::Negate(inner) => calculate(Operation::Subtract, &Value::SmallInt(0), &inner.of(rows)?)?,
            Scalar::Binary(operation, left, right) => calculate(*operation, &left.of(rows)?, &right.of(rows)?)?,
            Scalar::Coalesce(options) => {
                for option in options {
                    let value = option.of(rows)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Value::Null
            }
            Scalar::Cast(inner, to) => {
                let value = inner.of(rows)?;
                match (&value, to) {
                    (Value::Null, _) => Value::Null,
                    (_, DataType::Text) => Value::text(value.to_text()),
                    _ => value.coerce(*to).map_err(|source| SqlError::Value { column: None, source })?,
                }
            }
        })
    }

    /// The type of the expression, when it is a plain column or cast; else what its value turns out to have.
    pub(crate) fn fixed_type(&self, columns: &[cachesql_types::Column]) -> Option<DataType> {
        match self {
            Scalar::Column(column) => columns.get(*column).map(|c| c.data_type),
            Scalar::Cast(_, to) => Some(*to),
            Scalar::Value(value) => value.data_type(),
            Scalar::Binary(Operation::Concatenate, ..) => Some(DataType::Text),
            _ => None,
        }
    }
}

fn out_of_range(operation: Operation) -> SqlError {
    SqlError::result_out_of_range(symbol(operation))
}

fn symbol(operation: Operation) -> &'static str {
    match operation {
        Operation::Add => "+",
        Operation::Subtract => "-",
        Operation::Multiply => "*",
        Operation::Divide => "/",
        Operation::Modulo => "%",
        Operation::Concatenate => "||",
    }
}

/// One operator on two values; NULL when either is. Integers and decimals are exact.
fn calculate(operation: Operation, left: &Value, right: &Value) -> Result<Value, SqlError> {
    let (Some(a), Some(b)) = (left.data_type(), right.data_type()) else { return Ok(Value::Null) };
    if operation == Operation::Concatenate {
        return Ok(Value::text(format!("{}{}", left.to_text(), right.to_text())));
    }
    if !a.is_numeric() || !b.is_numeric() {
        return Err(SqlError::no_operator(a, symbol(operation), b));
    }
    if let (Some(x), Some(y)) = (left.as_i64(), right.as_i64()) {
        return integers(operation, x, y).map(Value::BigInt);
    }
    match (decimal(left), decimal(right)) {
        (Some(x), Some(y)) => decimals(operation, x, y).map(Value::Decimal),
        _ => doubles(operation, double(left), double(right)).map(Value::Double),
    }
}

fn integers(operation: Operation, a: i64, b: i64) -> Result<i64, SqlError> {
    let result = match operation {
        Operation::Add => a.checked_add(b),
        Operation::Subtract => a.checked_sub(b),
        Operation::Multiply => a.checked_mul(b),
        Operation::Divide | Operation::Modulo if b == 0 => return Err(SqlError::DivisionByZero),
        Operation::Divide => a.checked_div(b),
        Operation::Modulo => Some(a.checked_rem(b).unwrap_or(0)),
        Operation::Concatenate => None,
    };
    result.ok_or_else(|| out_of_range(operation))
}

fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Decimal(decimal) => Some(*decimal),
        _ => value.as_i64().map(Decimal::from),
    }
}

fn decimals(operation: Operation, a: Decimal, b: Decimal) -> Result<Decimal, SqlError> {
    let scale = a.scale.max(b.scale);
    let aligned = || Some((a.rescale(scale)?.unscaled, b.rescale(scale)?.unscaled));
    let fits = |d: Decimal| (d.digits() <= u32::from(DataType::MAX_PRECISION)).then_some(d);
    let result = match operation {
        Operation::Add => aligned().and_then(|(x, y)| x.checked_add(y)).map(|unscaled| Decimal { unscaled, scale }),
        Operation::Subtract => {
            aligned().and_then(|(x, y)| x.checked_sub(y)).map(|unscaled| Decimal { unscaled, scale })
        }
        Operation::Multiply => a.unscaled.checked_mul(b.unscaled).and_then(|unscaled| {
            let scale = a.scale.checked_add(b.scale).filter(|s| *s <= DataType::MAX_PRECISION)?;
            Some(Decimal { unscaled, scale })
        }),
        Operation::Divide | Operation::Modulo if b.unscaled == 0 => return Err(SqlError::DivisionByZero),
        Operation::Modulo => aligned().map(|(x, y)| Decimal { unscaled: x.checked_rem(y).unwrap_or(0), scale }),
        Operation::Divide => {
            let exact = quotient(a, b);
            return exact.ok_or_else(|| {
                SqlError::NotSupported("a division of decimals whose result is not exact; cast to DOUBLE".into())
            });
        }
        Operation::Concatenate => None,
    };
    result.and_then(fits).ok_or_else(|| out_of_range(operation))
}

/// The quotient, when some number of digits holds it exactly.
fn quotient(a: Decimal, b: Decimal) -> Option<Decimal> {
    (0..=DataType::MAX_PRECISION).find_map(|scale| {
        // a / 10^sa / (b / 10^sb) = q / 10^scale
        let shift = i32::from(scale) + i32::from(b.scale) - i32::from(a.scale);
        let power = 10_i128.checked_pow(shift.unsigned_abs())?;
        let (numerator, denominator) = if shift >= 0 {
            (a.unscaled.checked_mul(power)?, b.unscaled)
        } else {
            (a.unscaled, b.unscaled.checked_mul(power)?)
        };
        let exact = numerator.checked_rem(denominator)? == 0;
        exact.then(|| Decimal { unscaled: numerator / denominator, scale })
    })
}

fn double(value: &Value) -> f64 {
    match value {
        Value::Real(v) => f64::from(*v),
        Value::Double(v) => *v,
        Value::Decimal(d) => d.to_f64(),
        #[allow(clippy::cast_precision_loss)] // As PostgreSQL makes a double of an integer.
        _ => value.as_i64().map_or(f64::NAN, |v| v as f64),
    }
}

fn doubles(operation: Operation, a: f64, b: f64) -> Result<f64, SqlError> {
    let result = match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide | Operation::Modulo if b == 0.0 => return Err(SqlError::DivisionByZero),
        Operation::Divide => a / b,
        Operation::Modulo => a % b,
        Operation::Concatenate => f64::NAN,
    };
    if result.is_infinite() && a.is_finite() && b.is_finite() { Err(out_of_range(operation)) } else { Ok(result) }
}
