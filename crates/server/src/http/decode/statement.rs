//! The body of `POST /v1/sql`.

use std::borrow::Cow;

use cachesql_node::Statement;
use cachesql_types::{DataType, Value, limits};
use hyper::StatusCode;

use super::json::{check_depth, natural_value, string_of, typed_value};
use super::walk::Walker;
use crate::http::failure::Failure;
use crate::http::status;

/// One statement, or several that are applied together or not at all.
pub(crate) enum StatementsBody {
    /// An object.
    One(StatementBody),
    /// An array of objects.
    Batch(Vec<StatementBody>),
}

/// A statement and how it is to be answered.
pub(crate) struct StatementBody {
    /// The statement with its parameters.
    pub(crate) statement: Statement,
    /// `consistency`, as the header has it.
    pub(crate) consistency: Option<String>,
    /// `token`, as the header has it.
    pub(crate) token: Option<String>,
    /// `"numbers": "string"`.
    pub(crate) numbers_as_strings: bool,
}

/// Reads a body.
pub(crate) fn read_statements(text: &str) -> Result<StatementsBody, Failure> {
    check_depth(text)?;
    let mut walker = Walker::new(text);
    if walker.peek() != Some(b'[') {
        let one = read(&mut walker)?;
        walker.end()?;
        return Ok(StatementsBody::One(one));
    }
    let mut batch = Vec::new();
    walker.array(|walker| {
        if batch.len() == limits::MAX_BATCH_STATEMENTS {
            return Err(batch_size(format!("more than {}", limits::MAX_BATCH_STATEMENTS)));
        }
        batch.push(read(walker)?);
        Ok(())
    })?;
    walker.end()?;
    if batch.is_empty() {
        return Err(batch_size("none".to_owned()));
    }
    Ok(StatementsBody::Batch(batch))
}

fn batch_size(has: String) -> Failure {
    let message = format!("a batch has 1 to {} statements; this one has {has}", limits::MAX_BATCH_STATEMENTS);
    Failure::new(StatusCode::BAD_REQUEST, "54000", message)
}

/// The members of one statement, as they are written.
#[derive(Default)]
struct Written<'a> {
    sql: Option<String>,
    params: Vec<&'a str>,
    types: Vec<Option<String>>,
    consistency: Option<String>,
    token: Option<String>,
    numbers_as_strings: bool,
}

fn read(walker: &mut Walker<'_>) -> Result<StatementBody, Failure> {
    let mut written = Written::default();
    let mut seen: Vec<String> = Vec::new();
    walker.object(|name, raw| {
        if seen.iter().any(|known| *known == name) {
            return Err(refused(format!("the member {name:?} is given twice")));
        }
        match name.as_ref() {
            "sql" => written.sql = Some(text_member("sql", raw)?),
            "params" => written.params = elements("params", raw)?,
            "types" => {
                let names = elements("types", raw)?.into_iter().map(|raw| match raw {
                    "null" => Ok(None),
                    raw => text_member("types", raw).map(Some),
                });
                written.types = names.collect::<Result<_, _>>()?;
            }
            "consistency" => written.consistency = optional_text("consistency", raw)?,
            "token" => written.token = optional_text("token", raw)?,
            "numbers" => {
                written.numbers_as_strings = match raw {
                    "\"string\"" => true,
                    "\"number\"" => false,
                    _ => return Err(refused("numbers must be \"number\" or \"string\"")),
                }
            }
            _ => {
                let shown: String = name.chars().take(60).collect();
                return Err(refused(format!("unknown member {shown:?}"))
                    .with_hint("a statement has sql, params, types, consistency, token, numbers"));
            }
        }
        seen.push(name.into_owned());
        Ok(())
    })?;
    finish(written)
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::value(message)
}

fn text_member(name: &str, raw: &str) -> Result<String, Failure> {
    string_of(raw).map(Cow::into_owned).ok_or_else(|| refused(format!("{name} must be a string")))
}

fn optional_text(name: &str, raw: &str) -> Result<Option<String>, Failure> {
    if raw == "null" {
        return Ok(None);
    }
    text_member(name, raw).map(Some)
}

fn elements<'a>(name: &str, raw: &'a str) -> Result<Vec<&'a str>, Failure> {
    if raw == "null" {
        return Ok(Vec::new());
    }
    if !raw.starts_with('[') {
        return Err(refused(format!("{name} must be an array")));
    }
    let mut elements = Vec::new();
    Walker::new(raw).array(|walker| {
        elements.push(walker.value()?);
        Ok(())
    })?;
    Ok(elements)
}

fn finish(written: Written<'_>) -> Result<StatementBody, Failure> {
    let sql = written.sql.ok_or_else(|| refused("the member \"sql\" is missing"))?;
    if written.params.len() > limits::MAX_PARAMETERS || written.types.len() > written.params.len() {
        let message = format!("params has {} values and types {} names", written.params.len(), written.types.len());
        return Err(Failure::new(StatusCode::BAD_REQUEST, "08P01", message));
    }
    let mut params = Vec::with_capacity(written.params.len());
    for (at, raw) in written.params.iter().enumerate() {
        let named = written.types.get(at).and_then(Option::as_deref);
        params.push(parameter(at, raw, named)?);
    }
    Ok(StatementBody {
        statement: Statement { sql, params },
        consistency: written.consistency,
        token: written.token,
        numbers_as_strings: written.numbers_as_strings,
    })
}

fn parameter(at: usize, raw: &str, named: Option<&str>) -> Result<Value, Failure> {
    let value = match named {
        None => natural_value(raw),
        Some(name) => {
            let data_type = DataType::parse(name).ok_or_else(|| {
                let shown: String = name.chars().take(60).collect();
                Failure::new(StatusCode::BAD_REQUEST, "42704", format!("type {shown:?} does not exist"))
            })?;
            typed_value(raw, data_type)
        }
    };
    value.map_err(|error| status::of_value("", &error).with_details(format!("parameter ${}", at + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_statement_and_a_batch() {
        let text = r#"{"sql":"SELECT $1, \"a\"","params":[9007199254740993,"x",null,1.50],"types":[null,"uuid"],"numbers":"string"}"#;
        assert_eq!(read_statements(text).err().expect("x is no uuid").details.as_deref(), Some("parameter $2"));
        let Ok(StatementsBody::One(one)) = read_statements(&text.replace(",\"types\":[null,\"uuid\"]", "")) else {
            panic!("one")
        };
        assert_eq!(one.statement.sql, "SELECT $1, \"a\"");
        let texts: Vec<String> = one.statement.params.iter().map(Value::to_text).collect();
        assert_eq!(texts, ["9007199254740993", "x", "", "1.50"]);
        assert!(one.numbers_as_strings);
        let Ok(StatementsBody::Batch(batch)) = read_statements(r#" [{"sql":"a"},{"sql":"b","params":[]}]"#) else {
            panic!("batch")
        };
        assert_eq!(batch.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_refused_by_code() {
        let cases = [
            ("", "22P02"),
            ("{}", "22P02"),
            ("[]", "54000"),
            ("{\"sql\":5}", "22P02"),
            ("{\"sql\":\"a\",\"parms\":[]}", "22P02"),
            ("{\"sql\":\"a\",\"sql\":\"b\"}", "22P02"),
            ("{\"sql\":\"a\",\"params\":{}}", "22P02"),
            ("{\"sql\":\"a\",\"params\":[1],\"types\":[\"money\"]}", "42704"),
            ("{\"sql\":\"a\",\"params\":[],\"types\":[\"int\"]}", "08P01"),
            ("{\"sql\":\"a\"} x", "22P02"),
            ("{\"sql\":\"a\",\"numbers\":\"float\"}", "22P02"),
        ];
        for (text, code) in cases {
            assert_eq!(read_statements(text).err().expect(text).code, code, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_body_panics(text in "[\\[{]?([\\[\\]{}\",:0-9]|\"sql\":|\"params\":){0,20}") {
            let _ = read_statements(&text);
        }
    }
}
