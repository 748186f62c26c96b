//! Conditions: `column=eq.value`, `not.`, `in.(…)`, `and=(…)`, `or=(…)`, as PostgREST writes them, bound to a table's columns.

use std::borrow::Cow;

use cachesql_node::{Comparison, Filter, Operand};
use cachesql_types::{DataType, Decimal, TableSchema, Value, ValueError, limits};
use hyper::StatusCode;

use super::scanner::{Scanner, shortened};
use crate::http::failure::Failure;
use crate::http::status;

/// Where a condition stands: its value ends with the parameter, or before the next `,` or `)`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Parameter,
    Group,
}

/// Reads the condition of one column, `eq.5` or `not.in.(1,2)`.
pub(crate) fn condition(schema: &TableSchema, column: &str, text: &str) -> Result<Filter, Failure> {
    let column = column_of(schema, column)?;
    let mut scanner = Scanner::new(text);
    let filter = operation(schema, column, &mut scanner, Place::Parameter)?;
    if scanner.at_end() { Ok(filter) } else { Err(scanner.unexpected("the end of the condition")) }
}

/// Reads a group of conditions, `(a.eq.1,or(b.lt.2,c.is.null))`, of which all or any must hold.
pub(crate) fn group(schema: &TableSchema, name: &str, text: &str) -> Result<Filter, Failure> {
    let mut scanner = Scanner::new(text);
    let (negated, any) = match name {
        "and" => (false, false),
        "or" => (false, true),
        "not.and" => (true, false),
        _ => (true, true),
    };
    let filter = members(schema, &mut scanner, any, 1)?;
    if !scanner.at_end() {
        return Err(scanner.unexpected("the end of the group"));
    }
    Ok(negate_if(negated, filter))
}

/// Position of a column whose name may stand in double quotes.
pub(crate) fn column_of(schema: &TableSchema, name: &str) -> Result<usize, Failure> {
    let bare = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')).unwrap_or(name);
    if let Some(column) = schema.column(bare) {
        return Ok(column);
    }
    if bare.contains("->") {
        return Err(Failure::unsupported("paths into JSON columns are not supported").with_details(shortened(name)));
    }
    Err(Failure::unknown_column(&schema.name, bare))
}

fn negate_if(negated: bool, filter: Filter) -> Filter {
    if negated { Filter::Not(Box::new(filter)) } else { filter }
}

fn members(schema: &TableSchema, scanner: &mut Scanner<'_>, any: bool, depth: usize) -> Result<Filter, Failure> {
    if depth > limits::REST_FILTER_DEPTH {
        let message = format!("conditions are nested more than {} deep", limits::REST_FILTER_DEPTH);
        return Err(Failure::new(StatusCode::BAD_REQUEST, "54001", message));
    }
    scanner.expect("(")?;
    let mut filters = Vec::new();
    loop {
        filters.push(member(schema, scanner, depth)?);
        if scanner.take(")") {
            break;
        }
        scanner.expect(",")?;
    }
    Ok(if any { Filter::Or(filters) } else { Filter::And(filters) })
}

fn member(schema: &TableSchema, scanner: &mut Scanner<'_>, depth: usize) -> Result<Filter, Failure> {
    let mut ahead = *scanner;
    let negated = ahead.take("not.");
    for (word, any) in [("and", false), ("or", true)] {
        let mut inside = ahead;
        if inside.take(word) && inside.rest().starts_with('(') {
            *scanner = inside;
            return Ok(negate_if(negated, members(schema, scanner, any, depth + 1)?));
        }
    }
    let name = scanner.quoted_or_until(&['.', ',', ')', '('])?;
    let column = column_of(schema, &name)?;
    scanner.expect(".")?;
    operation(schema, column, scanner, Place::Group)
}

fn operation(schema: &TableSchema, column: usize, scanner: &mut Scanner<'_>, place: Place) -> Result<Filter, Failure> {
    let negated = scanner.take("not.");
    let operator = scanner.until(&['.', '(', ',', ')']);
    let filter = match operator {
        "eq" => compare(schema, column, Comparison::Equal, scanner, place)?,
        "neq" => compare(schema, column, Comparison::NotEqual, scanner, place)?,
        "gt" => compare(schema, column, Comparison::Greater, scanner, place)?,
        "gte" => compare(schema, column, Comparison::GreaterOrEqual, scanner, place)?,
        "lt" => compare(schema, column, Comparison::Less, scanner, place)?,
        "lte" => compare(schema, column, Comparison::LessOrEqual, scanner, place)?,
        "like" | "ilike" => like(schema, column, operator == "ilike", scanner, place)?,
        "in" => one_of(schema, column, scanner)?,
        "is" => is(schema, column, scanner, place)?,
        "isdistinct" => {
            let differs = compare(schema, column, Comparison::NotEqual, scanner, place)?;
            Filter::Or(vec![differs, Filter::IsNull { column }])
        }
        _ => return Err(unknown_operator(operator)),
    };
    Ok(negate_if(negated, filter))
}

fn unknown_operator(operator: &str) -> Failure {
    let other = ["match", "imatch", "fts", "plfts", "phfts", "wfts", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj"];
    let failure = if other.contains(&operator) {
        Failure::unsupported(format!("the operator {operator} is not supported"))
    } else {
        Failure::syntax(format!("unknown operator {:?}", shortened(operator)))
    };
    failure.with_hint(
        "operators are eq, neq, gt, gte, lt, lte, like, ilike, in, is, isdistinct, each after not. if need be",
    )
}

fn value_text<'a>(scanner: &mut Scanner<'a>, place: Place) -> Result<Cow<'a, str>, Failure> {
    scanner.expect(".")?;
    match place {
        Place::Parameter => Ok(Cow::Borrowed(scanner.take_rest())),
        Place::Group => scanner.quoted_or_until(&[',', ')']),
    }
}

fn compare(
    schema: &TableSchema,
    column: usize,
    op: Comparison,
    scanner: &mut Scanner<'_>,
    place: Place,
) -> Result<Filter, Failure> {
    let text = value_text(scanner, place)?;
    Ok(Filter::Compare { column, op, operand: Operand::Value(value_of(schema, column, &text)?) })
}

fn one_of(schema: &TableSchema, column: usize, scanner: &mut Scanner<'_>) -> Result<Filter, Failure> {
    scanner.expect(".")?;
    scanner.expect("(")?;
    let mut operands = Vec::new();
    if !scanner.take(")") {
        loop {
            let text = scanner.quoted_or_until(&[',', ')'])?;
            operands.push(Operand::Value(value_of(schema, column, &text)?));
            if scanner.take(")") {
                break;
            }
            scanner.expect(",")?;
        }
    }
    Ok(Filter::In { column, operands })
}

fn like(
    schema: &TableSchema,
    column: usize,
    case_insensitive: bool,
    scanner: &mut Scanner<'_>,
    place: Place,
) -> Result<Filter, Failure> {
    let pattern = value_text(scanner, place)?.replace('*', "%");
    let Some((name, data_type)) = named(schema, column) else { return Err(Failure::internal()) };
    if !matches!(data_type, DataType::Text | DataType::Json) {
        let message = format!("column {name} is of type {data_type}; patterns are for text");
        return Err(Failure::new(StatusCode::BAD_REQUEST, "42804", message));
    }
    let pattern = Operand::Value(Value::text(pattern));
    Ok(Filter::Like { column, pattern, case_insensitive, escape: Some('\\') })
}

fn is(schema: &TableSchema, column: usize, scanner: &mut Scanner<'_>, place: Place) -> Result<Filter, Failure> {
    let text = value_text(scanner, place)?;
    let Some((name, data_type)) = named(schema, column) else { return Err(Failure::internal()) };
    let word = text.to_ascii_lowercase();
    if matches!(word.as_str(), "true" | "false" | "unknown") && data_type != DataType::Boolean {
        let message = format!("column {name} is of type {data_type}; is.{word} is for BOOLEAN");
        return Err(Failure::new(StatusCode::BAD_REQUEST, "42804", message));
    }
    Ok(match word.as_str() {
        "null" | "unknown" => Filter::IsNull { column },
        "not_null" => Filter::Not(Box::new(Filter::IsNull { column })),
        "true" => Filter::IsBoolean { column, value: true },
        "false" => Filter::IsBoolean { column, value: false },
        _ => {
            return Err(Failure::syntax(format!("is.{} is not known", shortened(&text)))
                .with_hint("is. takes null, not_null, true, false, unknown"));
        }
    })
}

fn named(schema: &TableSchema, column: usize) -> Option<(&str, DataType)> {
    schema.columns.get(column).map(|c| (c.name.as_str(), c.data_type))
}

/// Reads a value to compare a column with. Numbers compare by value, so one that the column's own type cannot hold is a
/// number all the same: `smallint=lt.100000` is true of every row.
fn value_of(schema: &TableSchema, column: usize, text: &str) -> Result<Value, Failure> {
    let Some((name, data_type)) = named(schema, column) else { return Err(Failure::internal()) };
    let error = match Value::parse(text, data_type) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let wider = match (data_type, &error) {
        (DataType::Decimal { .. }, _)
        | (DataType::SmallInt | DataType::Integer | DataType::BigInt, ValueError::Range { .. }) => {
            Decimal::parse(text.trim()).map(Value::Decimal)
        }
        _ => None,
    };
    wider.ok_or_else(|| status::of_value(name, &error))
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
