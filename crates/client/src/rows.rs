//! Answers: rows whose values have the exact types of their columns.

use std::borrow::Cow;
use std::sync::Arc;

use cachesql_types::{DataType, Token, Value};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{Error, shortened};
use crate::typed::RowReader;

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its type; `None` for one that this version does not know, whose values come as TEXT or JSON.
    pub data_type: Option<DataType>,
}

/// The answer to a statement.
#[derive(Clone, Debug)]
pub struct Rows {
    columns: Arc<[ColumnInfo]>,
    rows: Vec<Row>,
    affected: Option<u64>,
    token: Option<Token>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    columns: Arc<[ColumnInfo]>,
    values: Box<[Value]>,
}

impl Rows {
    /// The columns, in the order of the values of each row.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Row> {
        self.rows.iter()
    }

    /// One of them, counted from 0.
    pub fn row(&self, at: usize) -> Option<&Row> {
        self.rows.get(at)
    }

    /// Rows that were written; `None` for a read.
    pub fn affected(&self) -> Option<u64> {
        self.affected
    }

    /// What the answer saw, or the place of the write in its group's log.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// The rows as values of a type of the caller's: a struct whose fields are called as the columns (exactly, or else
    /// without regard to case), a map, or a tuple in the order of the columns.
    ///
    /// Every value is exact: a DECIMAL becomes a number of the caller's only when it is asked for as one, and else its text,
    /// which decimal types read. Times are text as ISO 8601 writes it, a UUID is text, a JSON column is whatever its JSON
    /// holds, NULL is `None`.
    ///
    /// # Errors
    /// [`Error::Row`] for a row that does not fit, with its place from 1 and the column.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let read = |(at, row): (usize, &Row)| {
            row.typed().map_err(|error| match error {
                Error::Row { message, .. } => Error::Row { row: at + 1, message },
                other => other,
            })
        };
        self.rows.iter().enumerate().map(read).collect()
    }
}

impl IntoIterator for Rows {
    type Item = Row;
    type IntoIter = std::vec::IntoIter<Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a Row;
    type IntoIter = std::slice::Iter<'a, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

impl Row {
    /// The value of a column by its name, matched exactly, or else without regard to case; `None` when there is no such
    /// column.
    pub fn get(&self, column: &str) -> Option<&Value> {
        let names = self.columns.iter().map(|info| info.name.as_str());
        cachesql_types::resolve_name(names, column).and_then(|at| self.values.get(at))
    }

    /// The values, in the order of the columns.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The columns.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// The row as a value of a type of the caller's; see [`Rows::typed`].
    ///
    /// # Errors
    /// [`Error::Row`] when it does not fit.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(RowReader::new(&self.columns, &self.values))
            .map_err(|error| Error::Row { row: 1, message: error.to_string() })
    }
}

/// `{"columns","rows","affected","token"}`, with each cell as it was sent: no number is read before its type is known.
#[derive(Deserialize)]
struct Body<'a> {
    columns: Vec<ColumnBody>,
    #[serde(borrow)]
    rows: Vec<Vec<&'a RawValue>>,
    #[serde(default)]
    affected: Option<u64>,
    #[serde(default)]
    token: Option<String>,
}

#[derive(Deserialize)]
struct ColumnBody {
    name: String,
    #[serde(rename = "type")]
    data_type: String,
}

/// Reads the answer to one statement, or the last of a batch.
pub(crate) fn read_answer(body: &[u8]) -> Result<Rows, String> {
    let wrong = |error: serde_json::Error| format!("an answer that is not {{\"columns\",\"rows\"}}: {error}");
    let is_batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if !is_batch {
        return rows_of(serde_json::from_slice(body).map_err(wrong)?);
    }
    let mut parts: Vec<Body<'_>> = serde_json::from_slice(body).map_err(wrong)?;
    rows_of(parts.pop().ok_or("an answer to no statement")?)
}

fn rows_of(body: Body<'_>) -> Result<Rows, String> {
    let info = |column: ColumnBody| ColumnInfo { data_type: DataType::parse(&column.data_type), name: column.name };
    let columns: Arc<[ColumnInfo]> = body.columns.into_iter().map(info).collect();
    let mut rows = Vec::with_capacity(body.rows.len());
    for cells in body.rows {
        if cells.len() != columns.len() {
            return Err(format!("a row of {} values under {} columns", cells.len(), columns.len()));
        }
        let read = |(column, raw): (&ColumnInfo, &RawValue)| {
            value_of(column.data_type, raw.get()).map_err(|error| format!("column {}: {error}", column.name))
        };
        let values = columns.iter().zip(cells).map(read).collect::<Result<_, _>>()?;
        rows.push(Row { columns: columns.clone(), values });
    }
    let token = body.token.and_then(|token| token.parse().ok());
    Ok(Rows { columns, rows, affected: body.affected, token })
}

/// One cell: bare numbers and booleans, text and all that has no JSON of its own in quotation marks, JSON as it is.
fn value_of(data_type: Option<DataType>, raw: &str) -> Result<Value, String> {
    if raw == "null" {
        return Ok(Value::Null);
    }
    let quoted = raw.starts_with('"');
    let text: Cow<'_, str> = match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inside) if !inside.contains('\\') => Cow::Borrowed(inside),
        Some(_) => Cow::Owned(serde_json::from_str(raw).map_err(|error| error.to_string())?),
        None => Cow::Borrowed(raw),
    };
    match data_type {
        Some(DataType::Json) => Ok(Value::Json(Arc::from(raw))),
        Some(DataType::Text) if !quoted => Err(format!("{} is no text", shortened(raw))),
        Some(data_type) => Value::parse(&text, data_type).map_err(|error| error.to_string()),
        None if quoted => Ok(Value::Text(Arc::from(text))),
        None => Ok(Value::Json(Arc::from(raw))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_arrives_exact() {
        let body = r#"{"columns":[{"name":"b","type":"BOOLEAN"},{"name":"i","type":"BIGINT"},{"name":"d","type":"DECIMAL(38,2)"},
            {"name":"f","type":"DOUBLE"},{"name":"t","type":"TEXT"},{"name":"x","type":"BYTEA"},{"name":"day","type":"DATE"},
            {"name":"ts","type":"TIMESTAMP"},{"name":"u","type":"UUID"},{"name":"j","type":"JSON"},{"name":"js","type":"JSON"},{"name":"new","type":"INET"},
            {"name":"n","type":"BIGINT"}],
            "rows":[[true,-9223372036854775808,-170141183460469231731687303715884105.72,"NaN","a\"\u6c49","\\x00ff","1969-12-31",
            "1969-12-31T23:59:59.999999","00000000-0000-0000-0000-00000000002a",{"b": 1, "a":[1.10]},"a\u6c49","::1",null]],
            "token":"main:7"}"#;
        let rows = read_answer(body.as_bytes()).expect("sound");
        let row = rows.row(0).expect("one");
        let texts: Vec<String> = row.values().iter().map(Value::to_text).collect();
        let expected = [
            "t",
            "-9223372036854775808",
            "-170141183460469231731687303715884105.72",
            "NaN",
            "a\"汉",
            "\\x00ff",
            "1969-12-31",
            "1969-12-31 23:59:59.999999",
            "00000000-0000-0000-0000-00000000002a",
            "{\"b\": 1, \"a\":[1.10]}",
            "\"a\\u6c49\"",
            "::1",
            "",
        ];
        assert_eq!(texts, expected);
        assert!(matches!(row.get("I"), Some(Value::BigInt(i64::MIN))));
        assert!(matches!(row.get("d"), Some(Value::Decimal(d)) if d.scale == 2));
        assert!(row.get("n").is_some_and(Value::is_null) && row.get("none").is_none());
        assert_eq!(rows.token().map(ToString::to_string).as_deref(), Some("main:7"));
        assert_eq!(rows.affected(), None);
    }

    #[test]
    fn of_a_batch_the_last_answer_counts() {
        let body = r#"[{"columns":[],"rows":[],"affected":3,"token":"g:1"},{"columns":[],"rows":[],"affected":1,"token":"g:1"}]"#;
        assert_eq!(read_answer(body.as_bytes()).expect("sound").affected(), Some(1));
        assert!(read_answer(b"[]").is_err());
    }

    #[test]
    fn what_does_not_fit_its_column_is_refused_by_name() {
        let body = |rows: &str| format!("{{\"columns\":[{{\"name\":\"a\",\"type\":\"SMALLINT\"}}],\"rows\":{rows}}}");
        let error = |rows: &str| read_answer(body(rows).as_bytes()).expect_err(rows);
        assert_eq!(error("[[1,2]]"), "a row of 2 values under 1 columns");
        assert_eq!(error("[[70000]]"), "column a: value 70000 cannot be held exactly in type SMALLINT");
        assert!(error("[[1.5]]").starts_with("column a: "));
        assert!(error("[[").starts_with("an answer that is not"));
    }
}
