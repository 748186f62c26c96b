//! Where several expressions stand for one value, as the branches of a CASE do, they have one type.
//!
//! A float beside another number makes it a float: PostgreSQL converts the other number; DataFusion would make both
//! DECIMAL, and lose what a DECIMAL cannot hold. Values that have no type in common are refused: DataFusion would make texts
//! or numbers of them.

use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, cast};

use super::semantics::{quoted, read_as};
use super::words::sql_words;
use crate::error::SqlError;

/// Functions whose arguments stand for one value.
const ALTERNATIVES: [&str; 4] = ["coalesce", "nullif", "greatest", "least"];

/// What becomes one type by itself.
fn family(data_type: &ArrowType) -> Option<u8> {
    Some(match data_type {
        ArrowType::Dictionary(_, values) => return family(values),
        other if other.is_numeric() => 0,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => 1,
        ArrowType::Boolean => 2,
        ArrowType::Date32 | ArrowType::Date64 | ArrowType::Timestamp(..) => 3,
        ArrowType::Time32(_) | ArrowType::Time64(_) => 4,
        ArrowType::Interval(_) | ArrowType::Duration(_) => 5,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView => 6,
        ArrowType::FixedSizeBinary(16) => 7,
        // NULL fits every type; of lists and rows DataFusion knows more.
        _ => return None,
    })
}

/// An error when values of these types cannot stand for one.
fn check_family<'a>(what: &str, types: impl Iterator<Item = &'a ArrowType>) -> Result<()> {
    let mut known = types.filter_map(|t| Some((family(t)?, t)));
    let Some((first, a)) = known.next() else { return Ok(()) };
    let Some((_, b)) = known.find(|(family, _)| *family != first) else { return Ok(()) };
    let message = format!("{what} types {a} and {b} do not go together; a cast may help");
    Err(DataFusionError::External(Box::new(SqlError::TypeMismatch(sql_words(&message)))))
}

/// Quoted literals are read as the type of what they stand beside.
fn read_quoted<'a>(values: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) -> Result<()> {
    let mut values: Vec<&mut Expr> = values.collect();
    let typed = values.iter().filter(|value| quoted(value).is_none());
    let fields = typed.filter_map(|value| value.to_field(schema).ok().map(|(_, field)| field));
    let Some(field) = fields.into_iter().find(|field| !field.data_type().is_null()) else { return Ok(()) };
    if family(field.data_type()) == family(&ArrowType::Utf8) {
        return Ok(());
    }
    for value in &mut values {
        if quoted(value).is_some() {
            **value = read_as(value.clone(), &field)?;
        }
    }
    Ok(())
}

/// The float that numbers of these types become together; `None` when they stay as they are.
fn common_float<'a>(types: impl Iterator<Item = &'a ArrowType> + Clone) -> Option<ArrowType> {
    let mixed = types.clone().any(|t| t.is_numeric() && !t.is_floating());
    let widest = types.filter(|t| t.is_floating()).max_by_key(|t| t.primitive_width())?;
    mixed.then(|| widest.clone())
}

fn as_float(expr: Expr, from: &ArrowType, float: &ArrowType) -> Expr {
    if from.is_numeric() && from != float { cast(expr, float.clone()) } else { expr }
}

/// A CASE, or one of the functions that choose among their arguments.
pub(super) fn put_alternatives_right(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Case(mut case) => {
            let thens = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            read_quoted(thens.chain(case.else_expr.iter_mut().map(Box::as_mut)), schema)?;
            let values = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            let types: Vec<ArrowType> = values.filter_map(|value| value.get_type(schema).ok()).collect();
            check_family("CASE", types.iter())?;
            let Some(float) = common_float(types.iter()) else { return Ok(Transformed::yes(Expr::Case(case))) };
            let put = |value: Box<Expr>| match value.get_type(schema) {
                Ok(from) => Box::new(as_float(*value, &from, &float)),
                Err(_) => value,
            };
            let when_then_expr = case.when_then_expr.into_iter().map(|(when, then)| (when, put(then))).collect();
            let else_expr = case.else_expr.map(put);
            Ok(Transformed::yes(Expr::Case(Case { expr: case.expr, when_then_expr, else_expr })))
        }
        Expr::ScalarFunction(ScalarFunction { func, mut args }) if ALTERNATIVES.contains(&func.name()) => {
            read_quoted(args.iter_mut(), schema)?;
            let types = args.iter().map(|a| a.get_type(schema)).collect::<Result<Vec<ArrowType>>>().unwrap_or_default();
            check_family(func.name(), types.iter())?;
            let Some(float) = common_float(types.iter()) else {
                return Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })));
            };
            let args = args.into_iter().zip(&types).map(|(arg, from)| as_float(arg, from, &float)).collect();
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The columns of a UNION.
pub(super) fn put_union_right(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = plan else { return Ok(Transformed::no(plan)) };
    let mut floats: Vec<Option<ArrowType>> = Vec::with_capacity(union.schema.fields().len());
    for column in 0..union.schema.fields().len() {
        let types: Vec<&ArrowType> =
            union.inputs.iter().filter_map(|i| Some(i.schema().fields().get(column)?.data_type())).collect();
        check_family("UNION", types.iter().copied())?;
        floats.push(common_float(types.into_iter()));
    }
    if floats.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.into_iter().map(|input| input_as_floats(input, &floats)).collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

fn input_as_floats(input: Arc<LogicalPlan>, floats: &[Option<ArrowType>]) -> Result<Arc<LogicalPlan>> {
    let columns: Vec<Expr> = input
        .schema()
        .iter()
        .zip(floats)
        .map(|((qualifier, field), float)| {
            let column = Expr::from((qualifier, field));
            match float {
                Some(float) if field.data_type() != float => {
                    as_float(column, field.data_type(), float).alias_qualified(qualifier.cloned(), field.name())
                }
                _ => column,
            }
        })
        .collect();
    Ok(Arc::new(LogicalPlanBuilder::new_from_arc(input).project(columns)?.build()?))
}

/// Types that changed below change above.
pub(super) fn recompute_schemas(plan: LogicalPlan) -> Result<LogicalPlan> {
    let recomputed = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Union(union) => {
            Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)))
        }
        other => Ok(Transformed::yes(other.recompute_schema()?)),
    })?;
    Ok(recomputed.data)
}
