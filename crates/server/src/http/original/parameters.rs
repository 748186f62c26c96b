//! Parameters of a call: those that have a meaning, and for writes the columns.

use std::borrow::Cow;

use cachesql_types::limits;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use smallvec::SmallVec;

use crate::http::call::Call;
use crate::http::failure::Failure;
use crate::http::parameters::pairs;
use crate::http::request_body::RequestBody;

/// The names and values of one call, each name once.
pub(super) struct OriginalParameters<'a> {
    pairs: SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>,
}

impl<'a> OriginalParameters<'a> {
    /// Reads the query string and the form. A name that comes twice is refused, in one or over both.
    pub(super) fn read(query: &'a str, form: Option<&'a str>) -> Result<OriginalParameters<'a>, Failure> {
        let mut read: SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]> = SmallVec::new();
        for text in [Some(query), form].into_iter().flatten() {
            for pair in pairs(text) {
                let (name, value) = pair?;
                if read.iter().any(|(known, _)| *known == name) {
                    return Err(refused(format!("Repeated parameter: {}", shortened(&name))));
                }
                read.push((name, value));
            }
        }
        Ok(OriginalParameters { pairs: read })
    }

    /// A parameter that may be empty, as a value may.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_ref())
    }

    /// A parameter that must have a text.
    pub(super) fn named(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// The table.
    pub(super) fn table(&self) -> Result<&str, Failure> {
        let table = self.named("table").ok_or_else(|| missing("table"))?;
        if table.len() > limits::MAX_NAME_BYTES {
            return Err(not_found(table));
        }
        Ok(table)
    }

    /// The column and the value that a call compares.
    pub(super) fn column_and_value(&self) -> Result<(&str, &str), Failure> {
        match (self.named("column"), self.given("value")) {
            (Some(column), Some(value)) => Ok((column, value)),
            _ => Err(missing("column/value")),
        }
    }

    /// Everything but some names, which are those that the call itself reads.
    pub(super) fn others(&self, but: &[&str]) -> Vec<(String, String)> {
        let others = self.pairs.iter().filter(|(name, _)| !but.contains(&name.as_ref()));
        others.map(|(name, value)| (name.clone().into_owned(), value.clone().into_owned())).collect()
    }
}

/// `Missing …`
pub(super) fn missing(what: &str) -> Failure {
    refused(format!("Missing {what}"))
}

/// A request that is refused with 400 and a text.
pub(super) fn refused(message: impl Into<String>) -> Failure {
    Failure::bad_request(message)
}

/// `Table not found: …`
pub(super) fn not_found(table: &str) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "42P01", format!("Table not found: {}", shortened(table)))
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The body of a POST, which is a form when it says nothing else; `None` when there is none.
pub(super) async fn read_form(call: &mut Call<'_>) -> Result<Option<RequestBody>, Failure> {
    let media_type = call.headers().get(CONTENT_TYPE).map(|v| v.to_str().unwrap_or("?").to_ascii_lowercase());
    let is_form =
        media_type.as_deref().is_none_or(|m| m.starts_with("application/x-www-form-urlencoded") || m.is_empty());
    if is_form {
        return call.read_body().await.map(Some);
    }
    if !call.has_body() {
        return Ok(None);
    }
    Err(Failure::media_type("Unsupported Media Type: forms are application/x-www-form-urlencoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_once_from_query_and_form() {
        let read = OriginalParameters::read("table=t&column=c", Some("value=&x=1%2B1")).expect("good");
        assert_eq!(read.table(), Ok("t"));
        assert_eq!(read.column_and_value(), Ok(("c", "")));
        assert_eq!(read.others(&["table", "column", "value"]), [("x".to_owned(), "1+1".to_owned())]);
        let repeated = OriginalParameters::read("table=t", Some("table=u")).err().expect("twice");
        assert_eq!((repeated.status.as_u16(), repeated.message.as_str()), (400, "Repeated parameter: table"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let read = OriginalParameters::read("table=t&column=&value=1", None).expect("good");
        assert_eq!(read.column_and_value().expect_err("no column").message, "Missing column/value");
        let read = OriginalParameters::read("", None).expect("good");
        assert_eq!(read.table().expect_err("no table").message, "Missing table");
    }
}
