//! Dates as PostgreSQL reckons with them: a date with an interval is a timestamp, with an integer a date; two dates are a
//! number of days apart.

use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};

use super::functions::Arithmetic;
use super::intervals::is_interval;

const TIMESTAMP: ArrowType = ArrowType::Timestamp(TimeUnit::Microsecond, None);

/// `+` and `-` where a date is among the operands, or timestamps with and without zone; `None` leaves it to DataFusion.
pub(super) fn dates_apart(operation: Arithmetic, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (a, b) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    let op = match operation {
        Arithmetic::Add => Operator::Plus,
        Arithmetic::Subtract => Operator::Minus,
        _ => return None,
    };
    let plain = |left, right| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    let stamp = |date: &Expr| cast(date.clone(), TIMESTAMP);
    let days = |expr: &Expr| cast(expr.clone(), ArrowType::Int32);
    match (&a, &b) {
        (ArrowType::Date32, other) if is_interval(other) => Some(plain(stamp(left), right.clone())),
        (other, ArrowType::Date32) if is_interval(other) && op == Operator::Plus => {
            Some(plain(left.clone(), stamp(right)))
        }
        (ArrowType::Date32, ArrowType::Date32) if op == Operator::Minus => Some(operation.of(days(left), days(right))),
        (ArrowType::Date32, other) if other.is_signed_integer() => {
            Some(cast(operation.of(days(left), days(right)), ArrowType::Date32))
        }
        (other, ArrowType::Date32) if other.is_signed_integer() && op == Operator::Plus => {
            Some(cast(operation.of(days(left), days(right)), ArrowType::Date32))
        }
        (ArrowType::Timestamp(_, zone), ArrowType::Timestamp(_, other)) if zone != other && op == Operator::Minus => {
            let utc = |expr: &Expr| cast(expr.clone(), ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
            Some(plain(utc(left), utc(right)))
        }
        _ => None,
    }
}
