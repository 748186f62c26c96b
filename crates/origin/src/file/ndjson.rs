//! Tables from NDJSON files: a JSON object a line. Numbers keep every digit, nested values and mixtures stay JSON as they
//! were written, and a key that a line does not have is NULL.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use cachesql_types::{Column, DataType, Decimal, Value, limits};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::batch::{BatchBuilder, reason_of, value_error, with_given_types};
use crate::error::OriginError;
use crate::file::TableFile;
use crate::file::infer::TextSeen;
use crate::source::{Estimate, SourceDescription};
use crate::stream::{BatchSender, abandoned};

const NOT_CONVERTED: &str = "values of its type are not converted";

/// One object, in the order of its keys.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The lines of a file, with their numbers.
struct Lines<'f> {
    file: &'f TableFile,
    input: BufReader<File>,
    text: Vec<u8>,
    number: u64,
}

impl<'f> Lines<'f> {
    fn open(file: &'f TableFile) -> Result<Lines<'f>, OriginError> {
        let mut input = file.open()?;
        let start = input.fill_buf().map_err(|error| file.fault(None, error.to_string()))?;
        if start.starts_with(b"\xef\xbb\xbf") {
            input.consume(3);
        }
        Ok(Lines { file, input, text: Vec::new(), number: 0 })
    }

    /// Moves to the next line that is not blank; false at the end.
    fn advance(&mut self) -> Result<bool, OriginError> {
        loop {
            self.text.clear();
            self.number += 1;
            let mut limited = (&mut self.input).take(limits::MAX_FIELD_BYTES as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.text);
            let length = read.map_err(|error| self.file.fault(Some(self.number), error.to_string()))?;
            if length == 0 {
                return Ok(false);
            }
            if length > limits::MAX_FIELD_BYTES {
                return Err(self.file.fault(Some(self.number), "the line is longer than 64 MiB"));
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn object(&self) -> Result<Object<'_>, OriginError> {
        let fault = |reason: String| self.file.fault(Some(self.number), reason);
        let text = std::str::from_utf8(&self.text).map_err(|_| fault("it is not UTF-8".to_owned()))?;
        serde_json::from_str(text).map_err(|error| {
            // The parser counts lines within what it was given, which is one line.
            let message = error.to_string();
            let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
            fault(format!("{reason} (at character {})", error.column()))
        })
    }
}

/// What a JSON value is, by its text.
enum Kind<'a> {
    Null,
    Boolean,
    Number(&'a str),
    Text(Cow<'a, str>),
    // A string with half of a surrogate pair: no text.
    Broken,
    Nested,
}

fn kind_of(raw: &RawValue) -> Kind<'_> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'n') => Kind::Null,
        Some(b't' | b'f') => Kind::Boolean,
        Some(b'"') => unescaped(text).map_or(Kind::Broken, Kind::Text),
        Some(b'[' | b'{') => Kind::Nested,
        _ => Kind::Number(text),
    }
}

/// The text that a JSON string stands for.
fn unescaped(literal: &str) -> Option<Cow<'_, str>> {
    let inner = literal.get(1..literal.len().saturating_sub(1))?;
    if inner.contains('\\') { serde_json::from_str(literal).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// What the values of a column have shown.
#[derive(Default)]
struct Seen {
    booleans: bool,
    numbers: Option<TextSeen>,
    texts: Option<TextSeen>,
    nested: bool,
}

impl Seen {
    fn add(&mut self, raw: &RawValue) {
        match kind_of(raw) {
            Kind::Null => {}
            Kind::Boolean => self.booleans = true,
            Kind::Nested => self.nested = true,
            Kind::Number(text) => {
                let seen = self.numbers.get_or_insert_default();
                if !seen.add_number(text) {
                    seen.add_other();
                }
            }
            Kind::Broken => self.texts.get_or_insert_default().add_other(),
            Kind::Text(text) => {
                let seen = self.texts.get_or_insert_default();
                if !seen.add_time(&text) {
                    seen.add_other();
                }
            }
        }
    }

    fn data_type(&self) -> DataType {
        match (self.booleans, &self.numbers, &self.texts, self.nested) {
            (false, None, None, false) => DataType::Text,
            (true, None, None, false) => DataType::Boolean,
            (false, None, Some(texts), false) => texts.data_type(),
            (false, Some(numbers), None, false) => match numbers.data_type() {
                // Numbers that no number type holds all of: as JSON they keep their digits.
                DataType::Text => DataType::Json,
                number => number,
            },
            _ => DataType::Json,
        }
    }
}

/// Reads the whole file: its keys are its columns, in the order in which they first appear.
pub(super) fn describe(file: &TableFile, types: &[(String, DataType)]) -> Result<SourceDescription, OriginError> {
    let mut lines = Lines::open(file)?;
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut columns: Vec<(String, Seen)> = Vec::new();
    let mut estimate = Estimate { rows: 0, bytes: 0 };
    while lines.advance()? {
        estimate.rows += 1;
        for (key, raw) in lines.object()?.0 {
            let place = match places.get(key.as_ref()) {
                Some(place) => *place,
                None => {
                    if columns.len() == limits::MAX_COLUMNS || key.is_empty() {
                        let reason = format!("it has an empty key, or more than {} keys", limits::MAX_COLUMNS);
                        return Err(file.fault(Some(lines.number), reason));
                    }
                    places.insert(key.clone().into_owned(), columns.len());
                    columns.push((key.into_owned(), Seen::default()));
                    columns.len() - 1
                }
            };
            if let Some((_, seen)) = columns.get_mut(place) {
                seen.add(raw);
            }
            estimate.bytes += raw.get().len() as u64;
        }
    }
    if columns.is_empty() {
        return Err(file.fault(None, "there is no object with a key in it"));
    }
    let described = columns.into_iter();
    let columns = described.map(|(name, seen)| Column { name, data_type: seen.data_type(), nullable: true }).collect();
    let columns = with_given_types(&file.table, columns, types)?;
    Ok(SourceDescription { columns, primary_key: None, estimate: Some(estimate) })
}

/// Reads the lines into batches.
pub(super) fn load(file: &TableFile, columns: &[Column], sender: &BatchSender) -> Result<(), OriginError> {
    let mut lines = Lines::open(file)?;
    let mut batch = BatchBuilder::new(&file.table, columns);
    while lines.advance()? {
        let members = members_by_column(&lines, columns)?;
        for ((raw, builder), column) in members.into_iter().zip(&mut batch.builders).zip(columns) {
            let text = raw.map_or("NULL", RawValue::get);
            let refused = |reason| value_error(&file.table, column, text, file.place(lines.number), reason);
            let value = raw.map_or(Ok(Value::Null), |raw| value_of(raw, column.data_type)).map_err(refused)?;
            if value.is_null() && !column.nullable {
                return Err(refused("the column may not hold NULL"));
            }
            if !builder.push(&value) {
                return Err(refused(NOT_CONVERTED));
            }
        }
        batch.end_row(lines.text.len());
        if batch.is_full() {
            sender.blocking_send(batch.take()?).map_err(|_| abandoned(&file.table))?;
        }
    }
    if !batch.is_empty() {
        sender.blocking_send(batch.take()?).map_err(|_| abandoned(&file.table))?;
    }
    Ok(())
}

/// The line's values in the order of the columns. A key that is no column, or comes twice, is an error.
fn members_by_column<'l>(lines: &'l Lines<'_>, columns: &[Column]) -> Result<Vec<Option<&'l RawValue>>, OriginError> {
    let mut members = vec![None; columns.len()];
    let fault = |reason: String| lines.file.fault(Some(lines.number), reason);
    for (at, (key, raw)) in lines.object()?.0.into_iter().enumerate() {
        // Lines mostly have their keys in one order.
        let same = columns.get(at).filter(|column| column.name == key).map(|_| at);
        let place = same.or_else(|| columns.iter().position(|column| column.name == key));
        match place.and_then(|place| members.get_mut(place)) {
            None => return Err(fault(format!("the key {key:?} was not there when the file was described"))),
            Some(Some(_)) => return Err(fault(format!("the key {key:?} is there twice"))),
            Some(empty) => *empty = Some(raw),
        }
    }
    Ok(members)
}

/// A JSON value as a value of a column's type. `Err` is the reason why it is none.
fn value_of(raw: &RawValue, data_type: DataType) -> Result<Value, &'static str> {
    let kind = kind_of(raw);
    match (kind, data_type) {
        (Kind::Null, _) => Ok(Value::Null),
        (Kind::Broken, _) => Err("it holds half of a surrogate pair, which is no character"),
        (_, DataType::Json) => Ok(Value::Json(raw.get().into())),
        (Kind::Text(text), _) => Value::parse(&text, data_type).map_err(|error| reason_of(&error)),
        // As TEXT anything is asked for as it was written.
        (_, DataType::Text) => Ok(Value::text(raw.get())),
        (Kind::Boolean, DataType::Boolean) => Ok(Value::Boolean(raw.get() == "true")),
        (Kind::Number(text), _) if data_type.is_numeric() => number_of(text, data_type),
        _ => Err(NOT_CONVERTED),
    }
}

/// A number as a value of a number type. `1.0` and `1e3` are whole numbers too.
fn number_of(text: &str, data_type: DataType) -> Result<Value, &'static str> {
    let parsed = Value::parse(text, data_type);
    if parsed.is_err()
        && data_type.is_integer()
        && let Some(decimal) = Decimal::parse(text)
    {
        return Value::Decimal(decimal).coerce(data_type).map_err(|error| reason_of(&error));
    }
    parsed.map_err(|error| reason_of(&error))
}
