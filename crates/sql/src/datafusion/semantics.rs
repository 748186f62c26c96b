//! Where DataFusion's reading of an expression is not PostgreSQL's, it is put right here, before types are coerced.
//!
//! A quoted literal has no type of its own: it is read as what it stands beside, or as what it is cast to. Texts do not
//! compare with numbers. Floats compare with other numbers as doubles. Integer arithmetic fails rather than wraps.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, FieldRef};
use cachesql_types::{DataType, Value};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{
    InList, InSubquery, Placeholder, ScalarFunction, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr, TypePlanner,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, WindowFunctionDefinition, cast,
};
use sqlparser::ast::{self, BinaryOperator};

use super::decimals::decimal_arithmetic;
use super::doubles::{put_alternatives_right, put_union_right, recompute_schemas};
use super::functions::{Arithmetic, as_written, joined, text_to_uuid, uuid_to_text, widened};
use super::intervals::{comparable_intervals, interval_text, is_interval, is_length, with_parts};
use super::json::part_of;
use super::scalar::{plan_field, scalar_of, sql_type};
use super::temporal::dates_apart;
use crate::error::SqlError;

/// Plans operators as PostgreSQL does.
#[derive(Debug)]
pub(crate) struct PostgresOperators;

impl ExprPlanner for PostgresOperators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        if matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow) {
            return part_of(left, right, op == BinaryOperator::LongArrow, schema).map(PlannerResult::Planned);
        }
        if let Some(symbol) = refused(&op) {
            return Err(external(SqlError::NotSupported(format!("the operator {symbol}"))));
        }
        let (left, right) = (typed_by(left, &right, schema), right);
        let (right, left) = (typed_by(right, &left, schema), left);
        if let Some(operator) = comparison(&op) {
            let (left, right) = comparable_sides(left, operator, right, schema)?;
            let compared = BinaryExpr::new(Box::new(left), operator, Box::new(right));
            return Ok(PlannerResult::Planned(Expr::BinaryExpr(compared)));
        }
        if let Some(operation) = arithmetic(&op)
            && let Some(planned) = checked(operation, &left, &right, schema)?
        {
            return Ok(PlannerResult::Planned(planned));
        }
        if op == BinaryOperator::StringConcat
            && let (Some((left, left_kind)), Some((right, right_kind))) =
                (as_text(&left, schema), as_text(&right, schema))
            && (left_kind == Kind::Text || right_kind == Kind::Text)
        {
            return Ok(PlannerResult::Planned(joined(left, right)));
        }
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }

    fn plan_aggregate(&self, mut expr: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        expr.args = aggregated(expr.func.name(), expr.args);
        Ok(PlannerResult::Original(expr))
    }

    fn plan_window(&self, mut expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if let WindowFunctionDefinition::AggregateUDF(func) = &expr.func_def {
            expr.args = aggregated(func.name(), expr.args);
            return Ok(PlannerResult::Original(expr));
        }
        let number = match expr.func_def.name() {
            "row_number" | "rank" | "dense_rank" => ArrowType::Int64,
            "ntile" => ArrowType::Int32,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        // DataFusion counts without sign.
        Ok(PlannerResult::Planned(cast(window_function(expr), number)))
    }
}

fn window_function(raw: RawWindowExpr) -> Expr {
    let RawWindowExpr { func_def: fun, args, partition_by, order_by, window_frame, filter, null_treatment, distinct } =
        raw;
    let params = WindowFunctionParams { args, partition_by, order_by, window_frame, filter, null_treatment, distinct };
    Expr::from(WindowFunction { fun, params })
}

/// The arguments of an aggregate: widened for a sum, and told apart where they differ in a cast alone.
fn aggregated(function: &str, args: Vec<Expr>) -> Vec<Expr> {
    let casts = |arg: &Expr| arg.exists(|expr| Ok(matches!(expr, Expr::Cast(_)))).unwrap_or(false);
    let told_apart = |arg: Expr| match function {
        "sum" => widened(arg),
        // What has no column in it may have to be a literal.
        _ if casts(&arg) && arg.any_column_refs() => as_written(arg),
        _ => arg,
    };
    args.into_iter().map(told_apart).collect()
}

/// Knows types by the names that tables know them by.
#[derive(Debug)]
pub(crate) struct TableTypes;

impl TypePlanner for TableTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        Ok(DataType::parse(&sql_type.to_string()).map(|data_type| plan_field("", data_type)))
    }
}

fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

/// Operators on JSON and arrays that DataFusion would refuse when the rows are there already.
fn refused(op: &BinaryOperator) -> Option<String> {
    use BinaryOperator::{
        ArrowAt, AtArrow, AtAt, AtQuestion, HashArrow, HashLongArrow, HashMinus, PGCustomBinaryOperator,
    };
    match op {
        ArrowAt | AtArrow | AtAt | AtQuestion | HashArrow | HashLongArrow | HashMinus | PGCustomBinaryOperator(_) => {
            Some(op.to_string())
        }
        BinaryOperator::Custom(symbol) => Some(symbol.clone()),
        _ => None,
    }
}

fn arithmetic(op: &BinaryOperator) -> Option<Arithmetic> {
    Some(match op {
        BinaryOperator::Plus => Arithmetic::Add,
        BinaryOperator::Minus => Arithmetic::Subtract,
        BinaryOperator::Multiply => Arithmetic::Multiply,
        BinaryOperator::Divide => Arithmetic::Divide,
        // What `div(a, b)` has become.
        BinaryOperator::MyIntegerDivide => Arithmetic::WholeDivide,
        _ => return None,
    })
}

fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A parameter without a type takes that of the other side; a quoted literal is read as it.
fn typed_by(expr: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    if let Expr::Placeholder(Placeholder { id, field: None }) = &expr
        && !matches!(other, Expr::Placeholder(Placeholder { field: None, .. }))
        && let Ok((_, field)) = other.to_field(schema)
        && *field.data_type() != ArrowType::Null
    {
        let field = Arc::new(field.as_ref().clone().with_nullable(true));
        return Expr::Placeholder(Placeholder { id: id.clone(), field: Some(field) });
    }
    expr
}

pub(super) fn quoted(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => Some(text),
        _ => None,
    }
}

/// What kinds of values compare with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Boolean,
    Other,
}

fn kind(data_type: &ArrowType) -> Kind {
    match data_type {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => Kind::Text,
        ArrowType::Boolean => Kind::Boolean,
        ArrowType::Dictionary(_, values) => kind(values),
        other if other.is_numeric() => Kind::Number,
        _ => Kind::Other,
    }
}

/// The two sides of a comparison, made to compare as PostgreSQL compares them, or refused.
fn comparable_sides(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    if let Some(lengths) = comparable_intervals(&left, &right, schema) {
        return Ok(lengths);
    }
    let (Ok((_, left_field)), Ok((_, right_field))) = (left.to_field(schema), right.to_field(schema)) else {
        return Ok((left, right));
    };
    let (left_kind, right_kind) = (kind(left_field.data_type()), kind(right_field.data_type()));
    if left_kind != Kind::Text && quoted(&right).is_some() {
        let read = read_as(right, &left_field)?;
        return comparable_sides_of_kind(left, read, &left_field, &left_field);
    }
    if right_kind != Kind::Text && quoted(&left).is_some() {
        let read = read_as(left, &right_field)?;
        return comparable_sides_of_kind(read, right, &right_field, &right_field);
    }
    check_kinds(&left_field, &op.to_string(), &right_field)?;
    comparable_sides_of_kind(left, right, &left_field, &right_field)
}

/// An error when values of one field do not compare with those of the other.
fn check_kinds(left: &FieldRef, op: &str, right: &FieldRef) -> Result<()> {
    let null = |field: &FieldRef| *field.data_type() == ArrowType::Null;
    if kind(left.data_type()) != kind(right.data_type())
        && !null(left)
        && !null(right)
        && let (Some(a), Some(b)) = (sql_type(left), sql_type(right))
    {
        return Err(external(SqlError::no_operator(a, op, b)));
    }
    Ok(())
}

fn comparable_sides_of_kind(
    left: Expr,
    right: Expr,
    left_field: &FieldRef,
    right_field: &FieldRef,
) -> Result<(Expr, Expr)> {
    let (a, b) = (left_field.data_type(), right_field.data_type());
    if a.is_numeric() && b.is_numeric() && a != b && (a.is_floating() || b.is_floating()) {
        return Ok((as_double(left, a), as_double(right, b)));
    }
    Ok((left, right))
}

fn as_double(expr: Expr, data_type: &ArrowType) -> Expr {
    if *data_type == ArrowType::Float64 { expr } else { cast(expr, ArrowType::Float64) }
}

/// A quoted literal read as a field's type; other expressions, and types that are not ours, stay.
pub(super) fn read_as(expr: Expr, field: &FieldRef) -> Result<Expr> {
    let (Some(text), Some(data_type)) = (quoted(&expr), sql_type(field)) else { return Ok(expr) };
    if *field.data_type() == ArrowType::Null {
        return Ok(expr);
    }
    let value = Value::parse(text, data_type).map_err(|source| external(SqlError::Value { column: None, source }))?;
    Ok(Expr::Literal(scalar_of(&value, data_type).map_err(external)?, None))
}

/// Arithmetic that fails instead of wrapping or giving infinity; `None` leaves it to DataFusion.
fn checked(operation: Arithmetic, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (Ok(a), Ok(b)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(None) };
    let read = |expr: &Expr, other: &ArrowType| match quoted(expr) {
        Some(_) if other.is_numeric() => {
            read_as(expr.clone(), &Arc::new(arrow::datatypes::Field::new("", other.clone(), true)))
        }
        _ => Ok(expr.clone()),
    };
    let (left, right) = (read(left, &b)?, read(right, &a)?);
    let (Ok(a), Ok(b)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(None) };
    if let Some(planned) = dates_apart(operation, &left, &right, schema) {
        return Ok(Some(planned));
    }
    let floating = a.is_floating() || b.is_floating();
    if !floating && let Some(planned) = decimal_arithmetic(operation, (&left, &a), (&right, &b)) {
        return Ok(Some(planned));
    }
    if operation == Arithmetic::WholeDivide {
        return Err(external(SqlError::no_operator(DataType::Double, "div", DataType::Double)));
    }
    if a.is_numeric() && b.is_numeric() && floating && operation == Arithmetic::Divide {
        return Ok(Some(operation.of(as_double(left, &a), as_double(right, &b))));
    }
    if a.is_signed_integer() && b.is_signed_integer() && operation != Arithmetic::Divide {
        let wider = if a.primitive_width() >= b.primitive_width() { a.clone() } else { b.clone() };
        let widened = |expr: Expr, from: &ArrowType| if *from == wider { expr } else { cast(expr, wider.clone()) };
        return Ok(Some(operation.of(widened(left, &a), widened(right, &b))));
    }
    Ok(None)
}

/// A side of `||` as text, and the kind that it was of; `None` for what has no text, such as lists and bytes.
fn as_text(side: &Expr, schema: &DFSchema) -> Option<(Expr, Kind)> {
    let own = side.get_type(schema).ok()?;
    let text = match &own {
        _ if kind(&own) == Kind::Text => side.clone(),
        ArrowType::FixedSizeBinary(16) => uuid_to_text(side.clone()),
        interval if is_interval(interval) => interval_text(side.clone()),
        ArrowType::Boolean | ArrowType::Null => cast(side.clone(), ArrowType::Utf8View),
        _ if own.is_primitive() => cast(side.clone(), ArrowType::Utf8View),
        _ => return None,
    };
    Some((text, kind(&own)))
}

/// What operators' planning does not see: lists, ranges and casts.
pub(crate) fn put_right(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut retyped = false;
    let fixed = plan.transform_up_with_subqueries(|plan| {
        let plan = put_union_right(plan)?;
        retyped |= plan.transformed;
        let plan = plan.data;
        let schema = match plan.inputs().as_slice() {
            [] => plan.schema().as_ref().clone(),
            inputs => merge_schema(inputs),
        };
        let names = datafusion::logical_expr::expr_rewriter::NamePreserver::new(&plan);
        let mut changed = false;
        let fixed = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let fixed = expr.transform_up(|e| {
                let chosen = put_alternatives_right(e, &schema)?;
                retyped |= chosen.transformed;
                chosen.transform_data(|e| put_expr_right(e, &schema))
            })?;
            changed |= fixed.transformed;
            Ok(fixed.update_data(|e| name.restore(e)))
        })?;
        if changed { Ok(Transformed::yes(fixed.data.recompute_schema()?)) } else { Ok(Transformed::no(fixed.data)) }
    })?;
    if retyped { recompute_schemas(fixed.data) } else { Ok(fixed.data) }
}

/// A list with NULL in it is the list without, and unknown where that would decide otherwise. DataFusion loses the NULL
/// when it merges two lists over one column.
fn in_list(expr: Expr, mut list: Vec<Expr>, negated: bool) -> Expr {
    let given = list.len();
    list.retain(|item| !matches!(item, Expr::Literal(scalar, _) if scalar.is_null()));
    let has_null = list.len() < given;
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    if list.is_empty() {
        return unknown;
    }
    let found = Expr::InList(InList { expr: Box::new(expr), list, negated });
    match (has_null, negated) {
        (false, _) => found,
        (true, true) => found.and(unknown),
        (true, false) => found.or(unknown),
    }
}

/// IN with its sides made to compare.
fn comparable_list(InList { expr, list, negated }: InList, schema: &DFSchema) -> Result<Expr> {
    let mut fixed = Vec::with_capacity(list.len());
    let mut length = None;
    for item in list {
        // The left side is a copy each time; only the items change, unless all of them are doubles now.
        let (left, item) = comparable_sides(expr.as_ref().clone(), Operator::Eq, item, schema)?;
        length = Some(left).filter(is_length).or(length);
        fixed.push(item);
    }
    let floats = fixed.iter().any(|i| i.get_type(schema).is_ok_and(|t| t.is_floating()));
    let left = match expr.get_type(schema) {
        _ if let Some(length) = length => length,
        Ok(own) if floats && own.is_numeric() => as_double(*expr, &own),
        _ => *expr,
    };
    Ok(in_list(left, fixed, negated))
}

fn put_expr_right(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::InList(list) => Ok(Transformed::yes(comparable_list(list, schema)?)),
        // IS [NOT] DISTINCT FROM is no operator to the planner of operators.
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            right,
        }) => {
            let (left, right) = comparable_sides(*left, op, *right, schema)?;
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))))
        }
        Expr::Between(between) => {
            let (value, low) = comparable_sides(*between.expr, Operator::GtEq, *between.low, schema)?;
            let (value, high) = comparable_sides(value, Operator::LtEq, *between.high, schema)?;
            Ok(Transformed::yes(Expr::Between(datafusion::logical_expr::Between {
                expr: Box::new(value),
                negated: between.negated,
                low: Box::new(low),
                high: Box::new(high),
            })))
        }
        Expr::Cast(Cast { expr, field }) => {
            if quoted(&expr).is_some() {
                return Ok(Transformed::yes(read_as(*expr, &field)?));
            }
            let from = expr.get_type(schema).ok();
            let uuid = ArrowType::FixedSizeBinary(16);
            match (from, field.data_type()) {
                (Some(from), to) if from == uuid && kind(to) == Kind::Text => Ok(Transformed::yes(uuid_to_text(*expr))),
                (Some(from), to) if kind(&from) == Kind::Text && *to == uuid => {
                    Ok(Transformed::yes(text_to_uuid(*expr)))
                }
                (Some(from), to) if is_interval(&from) && kind(to) == Kind::Text => {
                    Ok(Transformed::yes(interval_text(*expr)))
                }
                _ => Ok(Transformed::no(Expr::Cast(Cast { expr, field }))),
            }
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            if let (Ok((_, own)), Some(other)) = (expr.to_field(schema), subquery.subquery.schema().fields().first())
                && quoted(&expr).is_none()
            {
                check_kinds(&own, "=", other)?;
            }
            Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        Expr::ScalarFunction(ScalarFunction { func, mut args }) if func.name() == "date_part" => {
            match args.pop() {
                Some(last) if last.get_type(schema).is_ok_and(|own| matches!(own, ArrowType::Duration(_))) => {
                    args.push(with_parts(last));
                }
                last => args.extend(last),
            }
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
        }
        other => Ok(Transformed::no(other)),
    }
}
