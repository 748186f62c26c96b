//! What is sent to `/v1/sql`: statements with their values beside them, as JSON that loses nothing.

use bytes::Bytes;
use cachesql_types::Value;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::error::Error;

/// A comparison of a column with a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    Equal,
    Less,
    More,
}

/// One statement and its parameters.
#[derive(Debug)]
pub(crate) struct Statement {
    sql: String,
    params: Vec<Json>,
    /// For each parameter the type that its JSON does not tell; empty when none needs it.
    types: Vec<Option<String>>,
}

impl Statement {
    /// A caller's statement. Its values keep their types.
    pub(crate) fn of_sql(sql: &str, values: &[Value]) -> Result<Statement, Error> {
        let params = values.iter().map(natural).collect::<Result<_, _>>()?;
        let types: Vec<Option<String>> = values.iter().map(type_to_tell).collect();
        let types = if types.iter().all(Option::is_none) { Vec::new() } else { types };
        Ok(Statement { sql: sql.to_owned(), params, types })
    }

    /// A statement made here. Its values go as texts, which the node reads as what their columns hold: the column decides,
    /// so that 12345 finds the text "12345" too.
    fn made(sql: String, params: Vec<Json>) -> Statement {
        Statement { sql, params, types: Vec::new() }
    }

    /// Rows where a column compares so with a value.
    pub(crate) fn compare(
        table: &str,
        column: &str,
        comparison: Comparison,
        value: &Value,
    ) -> Result<Statement, Error> {
        let operator = match comparison {
            Comparison::Equal => "=",
            Comparison::Less => "<",
            Comparison::More => ">",
        };
        let sql = format!("SELECT * FROM {} WHERE {} {operator} $1", quoted(table)?, quoted(column)?);
        Ok(Statement::made(sql, vec![as_text(value)]))
    }

    /// Rows where a column is between two values, both included.
    pub(crate) fn range(table: &str, column: &str, from: &Value, to: &Value) -> Result<Statement, Error> {
        let (table, column) = (quoted(table)?, quoted(column)?);
        let sql = format!("SELECT * FROM {table} WHERE {column} >= $1 AND {column} <= $2");
        Ok(Statement::made(sql, vec![as_text(from), as_text(to)]))
    }

    /// Rows that equal values in the columns of an index, `A+B`.
    pub(crate) fn composite(table: &str, index: &str, values: &[Value]) -> Result<Statement, Error> {
        let columns: Vec<&str> = index.split('+').map(str::trim).collect();
        if columns.len() != values.len() {
            let message =
                format!("index {index:?} has {} columns, and {} values were given", columns.len(), values.len());
            return Err(Error::Usage(message));
        }
        let equal = |(at, column): (usize, &&str)| quoted(column).map(|column| format!("{column} = ${}", at + 1));
        let terms = columns.iter().enumerate().map(equal).collect::<Result<Vec<_>, _>>()?;
        let sql = format!("SELECT * FROM {} WHERE {}", quoted(table)?, terms.join(" AND "));
        Ok(Statement::made(sql, values.iter().map(as_text).collect()))
    }

    /// Removes the rows where a column equals a value.
    pub(crate) fn delete(table: &str, column: &str, value: &Value) -> Result<Statement, Error> {
        let sql = format!("DELETE FROM {} WHERE {} = $1", quoted(table)?, quoted(column)?);
        Ok(Statement::made(sql, vec![as_text(value)]))
    }

    /// Puts one row: the column has the value, and the data are its other columns.
    pub(crate) fn insert(table: &str, column: &str, value: &Value, data: &Data) -> Result<Statement, Error> {
        let (mut columns, mut params) = (vec![quoted(column)?], vec![as_text(value)]);
        for (name, cell) in data.others(column, value)? {
            columns.push(quoted(name)?);
            params.push(cell.clone());
        }
        let places: Vec<String> = (1..=params.len()).map(|at| format!("${at}")).collect();
        let sql = format!("INSERT INTO {} ({}) VALUES ({})", quoted(table)?, columns.join(", "), places.join(", "));
        Ok(Statement::made(sql, params))
    }

    /// Sets columns in the rows where a column equals a value; `None` when the data names no column.
    pub(crate) fn update(table: &str, column: &str, value: &Value, data: &Data) -> Result<Option<Statement>, Error> {
        let (mut sets, mut params) = (Vec::new(), vec![as_text(value)]);
        for (name, cell) in &data.0 {
            params.push(cell.clone());
            sets.push(format!("{} = ${}", quoted(name)?, params.len()));
        }
        let sql = format!("UPDATE {} SET {} WHERE {} = $1", quoted(table)?, sets.join(", "), quoted(column)?);
        Ok((!sets.is_empty()).then(|| Statement::made(sql, params)))
    }

    fn json(self) -> Json {
        let mut members = Map::new();
        members.insert("sql".into(), self.sql.into());
        members.insert("params".into(), self.params.into());
        if !self.types.is_empty() {
            members.insert("types".into(), self.types.into());
        }
        Json::Object(members)
    }

    /// The body that asks for this statement.
    pub(crate) fn body(self) -> Bytes {
        Bytes::from(self.json().to_string())
    }

    /// The body that asks for several, all or none.
    pub(crate) fn batch(statements: impl IntoIterator<Item = Statement>) -> Bytes {
        Bytes::from(Json::Array(statements.into_iter().map(Statement::json).collect()).to_string())
    }
}

/// The columns of a write, by name: texts, as the column decides what they mean, or null.
#[derive(Debug)]
pub(crate) struct Data(Map<String, Json>);

impl Data {
    /// Takes what serializes to an object, or to nothing at all.
    pub(crate) fn of(data: &(impl Serialize + ?Sized)) -> Result<Data, Error> {
        let json = serde_json::to_value(data).map_err(|error| Error::Usage(format!("data: {error}")))?;
        let members = match json {
            Json::Object(members) => members,
            Json::Null => Map::new(),
            _ => return Err(Error::Usage("data: expected an object of columns and values".into())),
        };
        let text = |value: Json| match value {
            Json::Null | Json::String(_) => value,
            // What is nested is the text of a JSON column.
            other => Json::String(other.to_string()),
        };
        Ok(Data(members.into_iter().map(|(name, value)| (name, text(value))).collect()))
    }

    /// The columns beside the one that is given apart. Data may repeat that one, with the same value.
    fn others(&self, column: &str, value: &Value) -> Result<Vec<(&str, &Json)>, Error> {
        let given = as_text(value);
        let mut others = Vec::new();
        for (name, cell) in &self.0 {
            if !name.eq_ignore_ascii_case(column) {
                others.push((name.as_str(), cell));
            } else if *cell != given {
                return Err(Error::Usage(format!("data: column {name} is given two values")));
            }
        }
        Ok(others)
    }
}

/// A name in quotation marks.
fn quoted(name: &str) -> Result<String, Error> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::Usage(format!("{name:?} is no name")));
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

fn as_text(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Boolean(value) => Json::String(value.to_string()),
        other => Json::String(other.to_text()),
    }
}

/// A value in the JSON that is natural to it. Numbers are written digit by digit, so that no double stands between.
fn natural(value: &Value) -> Result<Json, Error> {
    let number =
        |text: String| text.parse().map(Json::Number).map_err(|_| Error::Usage(format!("{text} is no number")));
    match value {
        Value::Null => Ok(Json::Null),
        Value::Boolean(value) => Ok(Json::Bool(*value)),
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Decimal(_) => number(value.to_text()),
        _ => Ok(Json::String(value.to_text())),
    }
}

/// The type of a parameter whose JSON is a string and that is no text.
fn type_to_tell(value: &Value) -> Option<String> {
    let told = match value {
        Value::Null
        | Value::Boolean(_)
        | Value::SmallInt(_)
        | Value::Integer(_)
        | Value::BigInt(_)
        | Value::Decimal(_)
        | Value::Text(_) => None,
        // JSON in a string would be a JSON string; as text it is read when a column wants it.
        Value::Json(_) => None,
        other => other.data_type(),
    };
    told.map(|data_type| data_type.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachesql_types::Decimal;

    fn text(body: Bytes) -> String {
        String::from_utf8(body.to_vec()).expect("UTF-8")
    }

    #[test]
    fn reads_are_written_with_quoted_names_and_values_beside() {
        let value = Value::from("it's");
        let get = Statement::compare("T\"1", "a b", Comparison::Equal, &value).expect("sound");
        let expected = r#"{"params":["it's"],"sql":"SELECT * FROM \"T\"\"1\" WHERE \"a b\" = $1"}"#;
        assert_eq!(text(get.body()), expected);
        let range = Statement::range("T", "a", &Value::from(1), &Value::from(true)).expect("sound");
        assert_eq!(
            text(range.body()),
            r#"{"params":["1","true"],"sql":"SELECT * FROM \"T\" WHERE \"a\" >= $1 AND \"a\" <= $2"}"#
        );
        let composite = Statement::composite("T", "A+B", &[Value::from("x,y"), Value::Null]).expect("sound");
        assert_eq!(
            text(composite.body()),
            r#"{"params":["x,y",null],"sql":"SELECT * FROM \"T\" WHERE \"A\" = $1 AND \"B\" = $2"}"#
        );
        assert!(matches!(Statement::composite("T", "A+B", &[Value::Null]), Err(Error::Usage(_))));
        assert!(matches!(Statement::delete("", "a", &value), Err(Error::Usage(_))));
    }

    #[test]
    fn writes_say_null_and_keep_numbers_exact() {
        let data =
            Data::of(&serde_json::json!({"n": 9_007_199_254_740_993_i64, "z": null, "doc": {"k": [1]}, "ok": false}))
                .expect("an object");
        let insert = Statement::insert("T", "id", &Value::from(7), &data).expect("sound");
        let expected = r#"{"params":["7","{\"k\":[1]}","9007199254740993","false",null],"sql":"INSERT INTO \"T\" (\"id\", \"doc\", \"n\", \"ok\", \"z\") VALUES ($1, $2, $3, $4, $5)"}"#;
        assert_eq!(text(insert.body()), expected);
        let update = Statement::update("T", "id", &Value::from(7), &data).expect("sound").expect("columns");
        assert!(
            text(update.body()).contains(r#"SET \"doc\" = $2, \"n\" = $3, \"ok\" = $4, \"z\" = $5 WHERE \"id\" = $1"#)
        );
        assert!(
            Statement::update("T", "id", &Value::from(7), &Data::of(&()).expect("nothing")).expect("sound").is_none()
        );
    }

    #[test]
    fn data_is_an_object_that_does_not_contradict() {
        assert!(matches!(Data::of(&[1]), Err(Error::Usage(_))));
        let data = Data::of(&serde_json::json!({"ID": 7})).expect("an object");
        assert!(Statement::insert("T", "id", &Value::from(7), &data).is_ok());
        assert!(matches!(Statement::insert("T", "id", &Value::from(8), &data), Err(Error::Usage(_))));
    }

    #[test]
    fn values_of_a_callers_statement_keep_their_types() {
        let values = [
            Value::from(9_007_199_254_740_993_i64),
            Value::Decimal(Decimal::parse("123456789012345678901234567890.10").expect("a number")),
            Value::from(0.1),
            Value::Date(0),
            Value::from("x"),
            Value::Null,
        ];
        let body = text(Statement::of_sql("SELECT $1", &values).expect("sound").body());
        let expected = r#"{"params":[9007199254740993,123456789012345678901234567890.10,"0.1","1970-01-01","x",null],"sql":"SELECT $1","types":[null,null,"DOUBLE","DATE",null,null]}"#;
        assert_eq!(body, expected);
        assert!(!text(Statement::of_sql("SELECT 1", &[]).expect("sound").body()).contains("types"));
    }
}
