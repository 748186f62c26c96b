//! `->` and `->>` on JSON: a field of an object, or an element of an array, as it was written.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::{DataType as ArrowType, FieldRef, Int64Type};
use cachesql_types::{DataType, ValueError};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility, cast,
};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::bounded::{charge, text_bytes};
use super::scalar::{plan_field, sql_type};
use crate::error::SqlError;

/// `document -> part`, or `document ->> part`.
pub(super) fn part_of(document: Expr, part: Expr, as_text: bool, schema: &DFSchema) -> Result<Expr> {
    let (_, left) = document.to_field(schema)?;
    let (_, right) = part.to_field(schema)?;
    let op = if as_text { "->>" } else { "->" };
    let (a, b) = (sql_type(&left).unwrap_or(DataType::Text), sql_type(&right).unwrap_or(DataType::Text));
    let part = match right.data_type() {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => {
            cast(part, ArrowType::Utf8View)
        }
        other if other.is_signed_integer() => cast(part, ArrowType::Int64),
        _ => return Err(external(SqlError::no_operator(a, op, b))),
    };
    if a != DataType::Json {
        return Err(external(SqlError::no_operator(a, op, b)));
    }
    let signature = Signature::new(TypeSignature::Any(2), Volatility::Immutable);
    Ok(ScalarUDF::new_from_impl(Part { as_text, signature }).call(vec![document, part]))
}

fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Part {
    as_text: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &str {
        if self.as_text { "->>" } else { "->" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8View)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(plan_field(self.name(), if self.as_text { DataType::Text } else { DataType::Json }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [document, part] = args.args.as_slice() else { return exec_err!("{} takes two operands", self.name()) };
        let constant = matches!((document, part), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        charge(self.name(), text_bytes(document, rows)?)?;
        let documents = arrow::compute::cast(&*document.to_array(rows)?, &ArrowType::Utf8View)?;
        let parts = part.to_array(rows)?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for (at, document) in documents.as_string_view().iter().enumerate() {
            let Some(document) = document.filter(|_| parts.is_valid(at)) else {
                out.append_null();
                continue;
            };
            let found = match parts.data_type() {
                ArrowType::Int64 => element(document, parts.as_primitive::<Int64Type>().value(at)),
                _ => field(document, parts.as_string_view().value(at)),
            };
            let found = found
                .and_then(|raw| if self.as_text { raw.map_or(Some(None), plain) } else { Some(raw.map(Into::into)) });
            out.append_option(found.ok_or_else(|| not_json(document))?.as_deref());
        }
        let array: ArrayRef = Arc::new(out.finish());
        if constant {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
        } else {
            Ok(ColumnarValue::Array(array))
        }
    }
}

fn not_json(document: &str) -> DataFusionError {
    let text = document.chars().take(100).collect();
    external(SqlError::Value { column: None, source: ValueError::Syntax { data_type: DataType::Json, text } })
}

/// A text as it is without its quotes; NULL for null; what else there is as it was written.
fn plain(raw: &str) -> Option<Option<String>> {
    match raw.as_bytes().first()? {
        b'"' => serde_json::from_str(raw).ok().map(Some),
        b'n' => Some(None),
        _ => Some(Some(raw.to_owned())),
    }
}

/// A text that is read from its front.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// The character that comes next, white space aside.
    fn next(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.as_bytes().first().copied()
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        let found = self.next()?;
        self.rest = self.rest.get(1..)?;
        (found == expected).then_some(())
    }

    /// A value, and how it is written.
    fn value<T: DeserializeOwned>(&mut self) -> Option<(T, &'a str)> {
        self.next()?;
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<T>();
        let value = values.next()?.ok()?;
        let (raw, rest) = self.rest.split_at_checked(values.byte_offset())?;
        self.rest = rest;
        Some((value, raw))
    }

    /// Goes over what stands between brackets; `None` when the text is not JSON.
    fn each(&mut self, close: u8, mut item: impl FnMut(&mut Reader<'a>) -> Option<()>) -> Option<()> {
        self.rest = self.rest.get(1..)?;
        if self.next()? != close {
            item(self)?;
            while self.next()? == b',' {
                self.take(b',')?;
                item(self)?;
            }
        }
        self.take(close)?;
        self.next().is_none().then_some(())
    }
}

/// A field of an object: the last of that name, as in PostgreSQL. `None` when the text is not JSON.
fn field<'a>(document: &'a str, name: &str) -> Option<Option<&'a str>> {
    let mut reader = Reader { rest: document };
    if reader.next()? != b'{' {
        return scalar_or_array(document);
    }
    let mut found = None;
    reader.each(b'}', |reader| {
        let (key, _) = reader.value::<String>()?;
        reader.take(b':')?;
        let (_, raw) = reader.value::<IgnoredAny>()?;
        if key == name {
            found = Some(raw);
        }
        Some(())
    })?;
    Some(found)
}

/// An element of an array, counted from 0, or from the end by negative numbers. `None` when the text is not JSON.
fn element(document: &str, at: i64) -> Option<Option<&str>> {
    let mut reader = Reader { rest: document };
    if reader.next()? != b'[' {
        return scalar_or_array(document);
    }
    let mut elements = Vec::new();
    reader.each(b']', |reader| {
        elements.push(reader.value::<IgnoredAny>()?.1);
        Some(())
    })?;
    let back = usize::try_from(at.unsigned_abs()).ok()?;
    let position = if at < 0 { elements.len().checked_sub(back) } else { Some(back) };
    Some(position.and_then(|p| elements.get(p).copied()))
}

/// What has no such part, if it is JSON at all.
fn scalar_or_array(document: &str) -> Option<Option<&str>> {
    serde_json::from_str::<IgnoredAny>(document).ok().map(|_| None)
}
