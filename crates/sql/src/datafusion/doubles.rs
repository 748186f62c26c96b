//! Where a float and another number stand for one value, as the branches of a CASE do, the value is a float.
//!
//! PostgreSQL converts the other number; DataFusion would make both DECIMAL, and lose what a DECIMAL cannot hold.

use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, cast};

/// Functions whose arguments stand for one value.
const ALTERNATIVES: [&str; 4] = ["coalesce", "nullif", "greatest", "least"];

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
        Expr::Case(case) => {
            let values = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            let types: Vec<ArrowType> = values.filter_map(|value| value.get_type(schema).ok()).collect();
            let Some(float) = common_float(types.iter()) else { return Ok(Transformed::no(Expr::Case(case))) };
            let put = |value: Box<Expr>| match value.get_type(schema) {
                Ok(from) => Box::new(as_float(*value, &from, &float)),
                Err(_) => value,
            };
            let when_then_expr = case.when_then_expr.into_iter().map(|(when, then)| (when, put(then))).collect();
            let else_expr = case.else_expr.map(put);
            Ok(Transformed::yes(Expr::Case(Case { expr: case.expr, when_then_expr, else_expr })))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if ALTERNATIVES.contains(&func.name()) => {
            let types = args.iter().map(|a| a.get_type(schema)).collect::<Result<Vec<ArrowType>>>();
            let Some((types, float)) = types.ok().and_then(|t| common_float(t.iter()).map(|float| (t, float))) else {
                return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
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
    let floats: Vec<Option<ArrowType>> = (0..union.schema.fields().len())
        .map(|column| {
            let types: Vec<&ArrowType> =
                union.inputs.iter().filter_map(|i| Some(i.schema().fields().get(column)?.data_type())).collect();
            common_float(types.into_iter())
        })
        .collect();
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
