//! The query string of `/rest/{table}`: what to select, from which rows, in which order, how many.

use std::borrow::Cow;

use cachesql_node::{Filter, OrderBy, Projection};
use cachesql_types::TableSchema;

use super::filter;
use super::scanner::{Scanner, shortened};
use crate::http::failure::Failure;
use crate::http::parameters::pairs;

/// A query string, bound to a table.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RestQuery {
    /// `select=`; empty means every column.
    pub(crate) columns: Vec<Projection>,
    /// For each of `columns`, whether it was cast to text (`::text`).
    pub(crate) as_text: Vec<bool>,
    /// All conditions; all of them must hold.
    pub(crate) filters: Vec<Filter>,
    /// `order=`.
    pub(crate) order: Vec<OrderBy>,
    /// `limit=`.
    pub(crate) limit: Option<u64>,
    /// `offset=`.
    pub(crate) offset: u64,
    /// `columns=`: which members of a body are read.
    pub(crate) body_columns: Option<Vec<usize>>,
    /// `on_conflict=`.
    pub(crate) on_conflict: Option<Vec<usize>>,
}

impl RestQuery {
    /// Reads a query string.
    pub(crate) fn parse(schema: &TableSchema, text: &str) -> Result<RestQuery, Failure> {
        let mut query = RestQuery::default();
        let mut seen = [false; 6];
        for pair in pairs(text) {
            let (name, value) = pair?;
            let mut once = |at: usize| {
                let known = seen.get_mut(at).is_none_or(|seen| std::mem::replace(seen, true));
                if known { Err(Failure::syntax(format!("the parameter {name} is given twice"))) } else { Ok(()) }
            };
            match name.as_ref() {
                "select" => {
                    once(0)?;
                    query.select(schema, &value)?;
                }
                "order" => {
                    once(1)?;
                    query.order = order(schema, &value)?;
                }
                "limit" => {
                    once(2)?;
                    query.limit = Some(amount(&name, &value)?);
                }
                "offset" => {
                    once(3)?;
                    query.offset = amount(&name, &value)?;
                }
                "columns" => {
                    once(4)?;
                    query.body_columns = Some(names(schema, &value)?);
                }
                "on_conflict" => {
                    once(5)?;
                    query.on_conflict = Some(names(schema, &value)?);
                }
                "and" | "or" | "not.and" | "not.or" => query.filters.push(filter::group(schema, &name, &value)?),
                _ => query.filters.push(filter::condition(schema, &name, &value)?),
            }
        }
        Ok(query)
    }

    /// The conditions as one; `None` when there are none.
    pub(crate) fn filter(&mut self) -> Option<Filter> {
        match self.filters.len() {
            0 | 1 => self.filters.pop(),
            _ => Some(Filter::And(std::mem::take(&mut self.filters))),
        }
    }

    fn select(&mut self, schema: &TableSchema, text: &str) -> Result<(), Failure> {
        if matches!(text, "" | "*") {
            return Ok(());
        }
        let mut scanner = Scanner::new(text);
        loop {
            self.select_item(schema, &mut scanner)?;
            if scanner.at_end() {
                return Ok(());
            }
            scanner.expect(",")?;
        }
    }

    /// Reads `*`, or `[alias:]column[::text]`.
    fn select_item(&mut self, schema: &TableSchema, scanner: &mut Scanner<'_>) -> Result<(), Failure> {
        if scanner.take("*") {
            let all = (0..schema.columns.len()).map(Projection::of);
            self.as_text.extend(all.clone().map(|_| false));
            self.columns.extend(all);
            return Ok(());
        }
        let stops = [':', ',', '(', ')', '!'];
        let mut name: Cow<'_, str> = scanner.quoted_or_until(&stops)?;
        let mut alias = None;
        if !scanner.rest().starts_with("::") && scanner.take(":") {
            alias = Some(name.into_owned());
            name = scanner.quoted_or_until(&stops)?;
        }
        if scanner.rest().starts_with(['(', '!', ')']) || name.starts_with("...") {
            return Err(Failure::unsupported("other tables and aggregates cannot be embedded in select")
                .with_details(shortened(scanner.rest()))
                .with_hint("POST /v1/sql answers joins and aggregates"));
        }
        let column = filter::column_of(schema, &name)?;
        let as_text = scanner.take("::");
        if as_text {
            let cast = scanner.until(&[',', ':']);
            if !matches!(cast, "text" | "varchar") {
                return Err(Failure::unsupported(format!("the cast ::{} is not supported", shortened(cast)))
                    .with_hint("::text is; POST /v1/sql has the others"));
            }
        }
        self.columns.push(Projection { column, name: alias });
        self.as_text.push(as_text);
        Ok(())
    }
}

/// Reads `a.desc.nullslast,b`.
fn order(schema: &TableSchema, text: &str) -> Result<Vec<OrderBy>, Failure> {
    let mut scanner = Scanner::new(text);
    let mut order = Vec::new();
    loop {
        let item = scanner.quoted_or_until(&[',', '.'])?;
        let mut item = OrderBy { column: filter::column_of(schema, &item)?, descending: false, nulls_first: None };
        while scanner.take(".") {
            match scanner.until(&['.', ',']) {
                "asc" => item.descending = false,
                "desc" => item.descending = true,
                "nullsfirst" => item.nulls_first = Some(true),
                "nullslast" => item.nulls_first = Some(false),
                other => {
                    return Err(Failure::syntax(format!("unknown direction {:?} in order", shortened(other)))
                        .with_hint("directions are asc, desc, nullsfirst, nullslast"));
                }
            }
        }
        order.push(item);
        if scanner.at_end() {
            return Ok(order);
        }
        scanner.expect(",")?;
    }
}

/// Reads a list of columns.
fn names(schema: &TableSchema, text: &str) -> Result<Vec<usize>, Failure> {
    let mut scanner = Scanner::new(text);
    let mut columns = Vec::new();
    loop {
        let name = scanner.quoted_or_until(&[','])?;
        let column = filter::column_of(schema, &name)?;
        if columns.contains(&column) {
            return Err(Failure::syntax(format!("the column {} is named twice", shortened(&name))));
        }
        columns.push(column);
        if scanner.at_end() {
            return Ok(columns);
        }
        scanner.expect(",")?;
    }
}

fn amount(name: &str, text: &str) -> Result<u64, Failure> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| Failure::value(format!("{name} must be a number of rows, not {:?}", shortened(text))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachesql_node::Comparison;
    use cachesql_types::{Column, DataType, Value};
    use proptest::prelude::*;

    fn schema() -> TableSchema {
        let column = |name: &str, data_type| Column { name: name.into(), data_type, nullable: true };
        TableSchema {
            name: "t".into(),
            columns: vec![
                column("id", DataType::BigInt),
                column("name", DataType::Text),
                column("order", DataType::Text),
            ],
            key: vec![0],
            indexes: vec![],
        }
    }

    fn parse(text: &str) -> Result<RestQuery, Failure> {
        RestQuery::parse(&schema(), text)
    }

    #[test]
    fn everything_at_once() {
        let read = parse("id=gte.1&id=lt.9&select=n:name,id::text&order=name.desc.nullslast,id&limit=10&offset=5")
            .expect("good");
        let id = |op, value| Filter::compare(0, op, Value::BigInt(value));
        assert_eq!(read.filters, [id(Comparison::GreaterOrEqual, 1), id(Comparison::Less, 9)]);
        assert_eq!(read.columns, [Projection { column: 1, name: Some("n".into()) }, Projection::of(0)]);
        assert_eq!(read.as_text, [false, true]);
        let by = |column, descending, nulls_first| OrderBy { column, descending, nulls_first };
        assert_eq!(read.order, [by(1, true, Some(false)), by(0, false, None)]);
        assert_eq!((read.limit, read.offset), (Some(10), 5));
    }

    #[test]
    fn stars_and_quotes() {
        assert_eq!(parse("select=*").expect("good").columns, []);
        assert_eq!(parse("select=*,x:id").expect("good").columns.len(), 4);
        assert_eq!(parse("%22order%22=eq.x").expect("good").filters.len(), 1);
        assert_eq!(parse("columns=id,%22order%22&on_conflict=id").expect("good").body_columns, Some(vec![0, 2]));
    }

    #[test]
    fn what_is_wrong_is_refused_by_code() {
        let cases = [
            ("limit=-1", "22P02"),
            ("limit=", "22P02"),
            ("limit=%2B5", "22P02"),
            ("limit=99999999999999999999", "22P02"),
            ("offset=x", "22P02"),
            ("limit=1&limit=2", "42601"),
            ("select=id&select=name", "42601"),
            ("select=id,", "42703"),
            ("select=nothing", "42703"),
            ("select=*,other(*)", "0A000"),
            ("select=id.sum()", "0A000"),
            ("select=id::int", "0A000"),
            ("select=count()", "0A000"),
            ("order=id.up", "42601"),
            ("order=", "42703"),
            ("order=nothing", "42703"),
            ("columns=id,id", "42601"),
            ("on_conflict=nothing", "42703"),
            ("nothing=eq.1", "42703"),
            ("id=%zz", "08P01"),
            ("name=eq.%ff", "22021"),
        ];
        for (text, code) in cases {
            assert_eq!(parse(text).expect_err(text).code, code, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(select|order|limit|columns|id)?=[a-z.,:*()\"&=%0-9é]{0,40}") {
            let _ = parse(&text);
        }
    }
}
