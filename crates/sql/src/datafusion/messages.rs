//! What DataFusion and Arrow tell in words only: which error it is, in SQL's words.

use super::words::sql_words;
use crate::error::SqlError;

/// The error that a message is.
pub(super) fn by_text(text: &str) -> SqlError {
    let text = bare(text);
    of_types(text)
        .or_else(|| of_functions(text))
        .or_else(|| of_values(text))
        .or_else(|| of_clauses(text))
        .unwrap_or_else(|| of_the_rest(text))
}

/// A message without the words for the step that it is of.
fn bare(text: &str) -> &str {
    const STEPS: [&str; 8] = [
        "Error during planning: ",
        "Execution error: ",
        "External error: ",
        "Arrow error: ",
        "Compute error: ",
        "Invalid argument error: ",
        "Cast error: ",
        "Parser error: ",
    ];
    let mut text = text.trim();
    while let Some(rest) = STEPS.iter().find_map(|step| text.strip_prefix(step)) {
        text = rest;
    }
    text
}

/// What stands between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner)
}

fn refused(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
    SqlError::Refused { sqlstate, message: message.into() }
}

fn no_operator(operation: &str) -> SqlError {
    SqlError::UnknownFunction(format!("operator does not exist: {}; a cast may help", sql_words(operation)))
}

/// Operators between types that have none, conditions that are not BOOLEAN, casts that there are none of.
fn of_types(text: &str) -> Option<SqlError> {
    if let Some(operation) = between(text, "Cannot coerce arithmetic expression ", " to valid types")
        .or_else(|| between(text, "Cannot get result type for temporal operation ", ": "))
    {
        return Some(no_operator(operation));
    }
    if text.starts_with("Cannot infer common")
        && let Some((_, operation)) = text.lines().next()?.split_once(" operation ")
    {
        return Some(no_operator(operation));
    }
    if let Some((left, right)) =
        between(text, "common type to coerce ", " in LIKE").and_then(|sides| sides.split_once(" and "))
    {
        return Some(no_operator(&format!("{left} LIKE {right}")));
    }
    if let Some((left, right)) =
        between(text, "expr type ", " in SetComparison").and_then(|sides| sides.split_once(" can't cast to "))
    {
        return Some(no_operator(&format!("{left} = {right}")));
    }
    let mismatch = |message: String| Some(SqlError::TypeMismatch(sql_words(&message)));
    if text.starts_with("Unary operator '-'") {
        return mismatch("the operand of - is not a number".into());
    }
    if let Some((_, own)) = text.split_once("'NOT' requires a boolean expression, got ") {
        return mismatch(format!("the operand of NOT must be BOOLEAN, not {own}"));
    }
    if text.starts_with("Cannot create filter with non-boolean predicate")
        && let Some((_, own)) = text.rsplit_once("returning ")
    {
        return mismatch(format!("a condition must be BOOLEAN, not {own}"));
    }
    if let Some((from, to)) = text.strip_prefix("Cannot automatically convert ").and_then(|t| t.split_once(" to ")) {
        return mismatch(format!("{from} does not become {to} by itself; a cast may help"));
    }
    if let Some((_, types)) = text.split_once("Previous inputs were of type ")
        && let Some((a, rest)) = types.split_once(", but got incompatible type ")
    {
        let b = rest.split(" on column").next().unwrap_or(rest);
        return mismatch(format!("UNION types {a} and {b} do not go together; a cast may help"));
    }
    if let Some((from, to)) = text.strip_prefix("Unsupported CAST from ").and_then(|t| t.split_once(" to ")) {
        return Some(refused("42846", format!("{} cannot be cast to {}", sql_words(from), sql_words(to))));
    }
    None
}

/// Functions that there are none of, or none for such arguments.
fn of_functions(text: &str) -> Option<SqlError> {
    if let Some(name) = between(text, "Invalid function '", "'") {
        const OF_WINDOWS: [&str; 8] =
            ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];
        if OF_WINDOWS.contains(&name) {
            return Some(refused("42809", format!("window function {name} must have OVER")));
        }
        return Some(SqlError::UnknownFunction(format!("function {name} does not exist")));
    }
    if let Some(call) = between(text, "given name and argument types '", "'.") {
        let call = sql_words(call);
        return Some(SqlError::UnknownFunction(format!("function {call} does not exist; a cast may help")));
    }
    let of_no_such_arguments = ["failed to match any signature", "Failed to coerce arguments", "no window function"];
    if of_no_such_arguments.iter().any(|part| text.contains(part)) {
        let name = between(text, "'", "'").unwrap_or("of that name");
        return Some(SqlError::UnknownFunction(format!(
            "function {name} does not take such arguments; a cast may help"
        )));
    }
    None
}

/// Values that are not what they should be.
fn of_values(text: &str) -> Option<SqlError> {
    let says = |part: &str| text.contains(part);
    let quoted = |before: &str| between(text, before, "'");
    let syntax = |data_type: &str, value: &str| {
        let data_type = sql_words(data_type);
        Some(refused("22P02", format!("invalid input syntax for type {data_type}: {value:?}")))
    };
    if let Some(value) = quoted("Cannot cast string '").or_else(|| quoted("Cannot cast value '")) {
        return syntax(between(text, "to value of ", " type").unwrap_or("of that kind"), value);
    }
    if let Some(value) = quoted("Error parsing timestamp from '") {
        return syntax("TIMESTAMP", value);
    }
    if let Some(value) = between(text, "nvalid input syntax for type interval: \"", "\"") {
        return syntax("INTERVAL", value);
    }
    if let Some((value, data_type)) = text.strip_prefix("Can't cast value ").and_then(|t| t.split_once(" to type ")) {
        let data_type = sql_words(data_type);
        return Some(refused("22003", format!("value {value} cannot be held exactly in type {data_type}")));
    }
    if let Some((value, rest)) = text.split_once(" is too large to store in a Decimal128 of precision ") {
        let digits = rest.split('.').next().unwrap_or(rest);
        return Some(refused("22003", format!("value {value} has more digits than DECIMAL({digits}) holds")));
    }
    if let Some((_, operation)) = text.split_once("Overflow happened on: ") {
        let parts: Vec<&str> = operation.split(' ').collect();
        return Some(SqlError::result_out_of_range(match parts.as_slice() {
            [_, op, _] | [op, _] => op,
            _ => "an operator",
        }));
    }
    if let Some((_, call)) = text.split_once(" overflow on ") {
        return Some(SqlError::result_out_of_range(call.split('(').next().unwrap_or(call)));
    }
    if says("ivide by zero") {
        return Some(SqlError::DivisionByZero);
    }
    if says("square root of a negative number") {
        return Some(refused("2201F", "a negative number has no square root"));
    }
    if says("regex parse error") || says("Regular expression did not compile") {
        return Some(refused("2201B", "the regular expression is not one"));
    }
    if says("Unable to represent") && says("integer") {
        return Some(refused("22008", "the interval is out of range"));
    }
    if let Some(field) = quoted("Date part '").or_else(|| quoted("date_trunc granularity: '")) {
        return Some(refused("22023", format!("a date or time has no part {field:?} here")));
    }
    if says("verflow") || says("out of range") {
        return Some(SqlError::OutOfRange("a value is out of range".into()));
    }
    None
}

/// Clauses that do not go together.
fn of_clauses(text: &str) -> Option<SqlError> {
    let says = |part: &str| text.contains(part);
    if let Some(column) = between(text, "column \"", "\" must appear in the GROUP BY") {
        return Some(SqlError::Grouping(format!("column {column:?} must be in GROUP BY or in an aggregate function")));
    }
    if let Some((_, rest)) = text.split_once("clause references: ") {
        let column = rest.split(" must appear").next().unwrap_or(rest);
        return Some(SqlError::Grouping(format!("column {column:?} must be in GROUP BY or in an aggregate function")));
    }
    if says("Aggregate function calls cannot be nested") {
        return Some(SqlError::Grouping("aggregate functions cannot be nested".into()));
    }
    if says("Aggregate functions are not allowed in the WHERE") {
        return Some(SqlError::Grouping("aggregate functions are not allowed in WHERE; HAVING may have them".into()));
    }
    if says("logical expression WindowFunction") {
        return Some(refused("42P20", "window functions are not allowed there; a subquery may have them"));
    }
    if let Some(window) = between(text, "The window ", " is not defined") {
        return Some(refused("42704", format!("window {window:?} does not exist")));
    }
    if let Some(position) = between(text, "column with position ", " in SELECT") {
        return Some(refused("42P10", format!("GROUP BY position {position} is not in the SELECT list")));
    }
    if says("Order by column out of bounds") || says("Order by index starts at 1") {
        let position = between(text, "specified: ", ",").unwrap_or("0");
        return Some(refused("42P10", format!("ORDER BY position {position} is not in the SELECT list")));
    }
    if let Some(column) = between(text, "ORDER BY expressions ", " must appear in select list") {
        return Some(refused(
            "42P10",
            format!("with DISTINCT, what ORDER BY names must be in the SELECT list: {column}"),
        ));
    }
    if says("queries have different number of columns") {
        let operation = text.split(' ').next().unwrap_or_default();
        return Some(refused("42601", format!("the sides of {operation} must have as many columns as each other")));
    }
    if says("should only return one column") {
        return Some(refused("42601", "a subquery that is used as a value must answer one column"));
    }
    if says("Inconsistent data length across values list") {
        return Some(refused("42601", "the rows of VALUES must have as many values as each other"));
    }
    if let Some(name) = between(text, "WITH query name \"", "\"") {
        return Some(refused("42712", format!("WITH names {name:?} more than once")));
    }
    if says("names given as column alias") {
        return Some(refused("42P10", "as many columns must be named as there are"));
    }
    if let Some(table) = text.strip_prefix("Invalid qualifier ") {
        return Some(SqlError::NotInFrom { table: table.to_owned() });
    }
    if says("require unique expression names") {
        return Some(SqlError::NotSupported("two columns that are made alike; give one of them a name (AS)".into()));
    }
    for (clause, sqlstate) in [("LIMIT", "2201W"), ("OFFSET", "2201X")] {
        if says(&format!("{clause} must be")) {
            return Some(refused(sqlstate, format!("{clause} must not be negative")));
        }
        if says(&format!("Expected {clause} to be an integer")) {
            return Some(SqlError::TypeMismatch(format!("{clause} must be a whole number")));
        }
    }
    None
}

fn of_the_rest(text: &str) -> SqlError {
    let says = |part: &str| text.contains(part);
    if says("logical expression Exists") {
        return SqlError::NotSupported(
            "EXISTS as a value; it may stand in WHERE, and a count may stand in its place".into(),
        );
    }
    if says("more than one row") {
        return SqlError::Cardinality;
    }
    if says("Cannot access field") || says("Dot access") {
        return SqlError::NotSupported("fields of a value".into());
    }
    if says("field metadata differs") {
        return SqlError::NotSupported(
            "WITH RECURSIVE whose parts take a column from different places; a cast may help".into(),
        );
    }
    let message = text.lines().next().unwrap_or_default();
    if says("Internal error") || says("panicked") {
        return SqlError::Internal(message.to_owned());
    }
    // What a syntax tree looks like inside is nobody's business.
    let message = message.split(" { ").next().unwrap_or(message);
    if let Some(node) = message.strip_prefix("Unsupported ast node in sqltorel: ") {
        return SqlError::NotSupported(node.to_uppercase());
    }
    if let Some(name) = message.strip_prefix("Unsupported SQL unary operator ") {
        let symbol = match name {
            "BitwiseNot" => "~",
            "PGSquareRoot" => "|/",
            "PGCubeRoot" => "||/",
            "PGAbs" => "@",
            _ => "of that kind",
        };
        return SqlError::NotSupported(format!("the operator {symbol} before an operand"));
    }
    let message = message.replace("Unsupported SQL ", "");
    SqlError::NotSupported(sql_words(message.trim_end_matches('.')))
}
