//! WHERE → `Filter`: conditions on columns of one table, compared with literals and parameters.

use cachesql_types::{DataType, Value};
use sqlparser::ast::{BinaryOperator, Expr};

use super::Unfit;
use super::operand::bind_operand;
use super::parameters::ParameterTypes;
use super::scope::{ColumnPlace, Scope};
use crate::error::SqlError;
use crate::plan::{Comparison, Filter, Operand};

/// Binds a condition whose columns are all of one table, and says which; `None` when it names no column at all.
pub(crate) fn bind_predicate(
    expr: &Expr,
    scope: &Scope,
    parameters: &mut ParameterTypes,
) -> Result<(Option<usize>, Filter), Unfit> {
    let mut binder = Binder { scope, parameters, table: None };
    let filter = binder.predicate(expr)?;
    Ok((binder.table, filter))
}

struct Binder<'a> {
    scope: &'a Scope,
    parameters: &'a mut ParameterTypes,
    table: Option<usize>,
}

impl Binder<'_> {
    fn predicate(&mut self, expr: &Expr) -> Result<Filter, Unfit> {
        match expr {
            Expr::Nested(inner) => self.predicate(inner),
            Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Not, expr } => Ok(not(self.predicate(expr)?)),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                Ok(joined(self.predicate(left)?, self.predicate(right)?, true))
            }
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                Ok(joined(self.predicate(left)?, self.predicate(right)?, false))
            }
            Expr::BinaryOp { left, op, right } => self.comparison(left, comparison(op)?, right),
            Expr::Between { expr, negated, low, high } => {
                let low = self.comparison(expr, Comparison::GreaterOrEqual, low)?;
                let high = self.comparison(expr, Comparison::LessOrEqual, high)?;
                Ok(negate_if(*negated, Filter::And(vec![low, high])))
            }
            Expr::InList { expr, list, negated } => {
                let (column, data_type, name) = self.column(expr)?;
                let operands = list
                    .iter()
                    .map(|item| bind_operand(item, data_type, &name, "=", self.parameters))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(negate_if(*negated, Filter::In { column, operands }))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                let (column, data_type, name) = self.column(expr)?;
                if !matches!(data_type, DataType::Text | DataType::Json) {
                    return Err(SqlError::no_operator(data_type, "LIKE", DataType::Text).into());
                }
                let pattern = bind_operand(pattern, DataType::Text, &name, "LIKE", self.parameters)?;
                Ok(negate_if(*negated, Filter::Like { column, pattern, case_insensitive: false, escape: Some('\\') }))
            }
            Expr::IsNull(inner) => Ok(Filter::IsNull { column: self.column(inner)?.0 }),
            Expr::IsNotNull(inner) => Ok(not(Filter::IsNull { column: self.column(inner)?.0 })),
            Expr::IsTrue(inner) => self.is_boolean(inner, true),
            Expr::IsFalse(inner) => self.is_boolean(inner, false),
            Expr::IsNotTrue(inner) => Ok(not(self.is_boolean(inner, true)?)),
            Expr::IsNotFalse(inner) => Ok(not(self.is_boolean(inner, false)?)),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let (column, data_type, _) = self.column(expr)?;
                if data_type != DataType::Boolean {
                    let message = format!("a condition must be BOOLEAN, not {data_type}");
                    return Err(SqlError::TypeMismatch(message).into());
                }
                Ok(Filter::equal(column, Value::Boolean(true)))
            }
            _ => Err(Unfit::Shape),
        }
    }

    fn is_boolean(&mut self, expr: &Expr, value: bool) -> Result<Filter, Unfit> {
        let (column, data_type, _) = self.column(expr)?;
        if data_type == DataType::Boolean { Ok(Filter::IsBoolean { column, value }) } else { Err(Unfit::Shape) }
    }

    fn comparison(&mut self, left: &Expr, op: Comparison, right: &Expr) -> Result<Filter, Unfit> {
        let (column, op, operand) = if is_column(left) { (left, op, right) } else { (right, op.flipped(), left) };
        if is_column(operand) {
            return Err(Unfit::Shape);
        }
        let (column, data_type, name) = self.column(column)?;
        let operand = bind_operand(operand, data_type, &name, op.symbol(), self.parameters)?;
        Ok(Filter::Compare { column, op, operand })
    }

    fn column(&mut self, expr: &Expr) -> Result<(usize, DataType, String), Unfit> {
        let place = column_place(expr, self.scope)?;
        let data_type = self.scope.data_type(place).ok_or(Unfit::Shape)?;
        let (table, column) = place;
        if *self.table.get_or_insert(table) != table {
            return Err(Unfit::Shape);
        }
        let schema = self.scope.tables.get(table).map(|t| t.table.schema());
        let name = schema.and_then(|s| s.columns.get(column)).map(|c| c.name.clone()).unwrap_or_default();
        Ok((column, data_type, name))
    }
}

/// The column that an expression is, when it is one.
pub(super) fn column_place(expr: &Expr, scope: &Scope) -> Result<ColumnPlace, Unfit> {
    match expr {
        Expr::Nested(inner) => column_place(inner, scope),
        Expr::Identifier(ident) => scope.column(std::slice::from_ref(ident)),
        Expr::CompoundIdentifier(path) => scope.column(path),
        _ => Err(Unfit::Shape),
    }
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_column(inner),
        _ => matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
    }
}

fn not(filter: Filter) -> Filter {
    Filter::Not(Box::new(filter))
}

fn negate_if(negated: bool, filter: Filter) -> Filter {
    if negated { not(filter) } else { filter }
}

/// Joins two conditions, keeping chains flat: `a = 1 OR a = 2` on one column becomes `a IN (1, 2)`.
fn joined(left: Filter, right: Filter, and: bool) -> Filter {
    if !and
        && let (Some((a, mut values)), Some((b, more))) = (as_in(&left), as_in(&right))
        && a == b
    {
        values.extend(more);
        return Filter::In { column: a, operands: values };
    }
    let mut parts = Vec::new();
    for side in [left, right] {
        match (side, and) {
            (Filter::And(inner), true) | (Filter::Or(inner), false) => parts.extend(inner),
            (other, _) => parts.push(other),
        }
    }
    if and { Filter::And(parts) } else { Filter::Or(parts) }
}

fn as_in(filter: &Filter) -> Option<(usize, Vec<Operand>)> {
    match filter {
        Filter::Compare { column, op: Comparison::Equal, operand } => Some((*column, vec![operand.clone()])),
        Filter::In { column, operands } => Some((*column, operands.clone())),
        _ => None,
    }
}

fn comparison(op: &BinaryOperator) -> Result<Comparison, Unfit> {
    Ok(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return Err(Unfit::Shape),
    })
}
