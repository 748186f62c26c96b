//! One section of the file, read word by word: unknown words, wrong types and bad values are noted with their place, and
//! reading goes on, so that one run reports everything.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use cachesql_types::{DataType, Decimal, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::model::{Refresh, Secret};
use super::options::{Kind, OptionDefinition, Section};
use super::problem::{Findings, suggestion};
use super::units::{parse_duration, parse_size};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

type Entry<'t> = &'t Spanned<DeValue<'t>>;

pub(super) struct SectionReader<'t> {
    section: &'static Section,
    table: &'t DeTable<'t>,
    findings: &'t RefCell<Findings>,
    /// Where the section begins, for what is missing from it.
    pub(super) span: Range<usize>,
    /// How the section is called in messages: `[tables.KCA2]`.
    pub(super) title: String,
}

impl<'t> SectionReader<'t> {
    /// Begins to read a section; notes words that it does not know, and known ones that this version refuses.
    pub(super) fn open(
        section: &'static Section,
        title: String,
        span: Range<usize>,
        value: &'t DeValue<'t>,
        findings: &'t RefCell<Findings>,
    ) -> Option<SectionReader<'t>> {
        let Some(table) = value.as_table() else {
            findings.borrow_mut().add(span, format!("{title}: expected a section, found {}", describe(value)));
            return None;
        };
        let reader = SectionReader { section, table, findings, span, title };
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            match section.options.iter().find(|o| o.name == name) {
                None => reader.note(key.span(), reader.unknown(name)),
                Some(OptionDefinition { not_served: Some(why), .. }) => {
                    reader.note(key.span(), format!("`{name}`: this version does not serve {why}"));
                }
                Some(_) => {}
            }
        }
        Some(reader)
    }

    fn unknown(&self, name: &str) -> String {
        let known = self.section.options.iter().map(|o| o.name);
        let all: Vec<_> = known.clone().collect();
        let hint = suggestion(name, known);
        let hint = if hint.is_empty() { format!("; expected one of {}", all.join(", ")) } else { hint };
        format!("unknown key {name:?} in {}{hint}", self.title)
    }

    pub(super) fn note(&self, span: Range<usize>, message: impl Into<String>) {
        self.findings.borrow_mut().add(span, message);
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Where a word's key stands, or the section when it is not there.
    pub(super) fn place(&self, name: &str) -> Range<usize> {
        let key = self.table.keys().find(|k| k.get_ref().as_ref() == name);
        key.map_or_else(|| self.span.clone(), Spanned::span)
    }

    fn entry(&self, name: &str) -> Option<Entry<'t>> {
        self.table.iter().find(|(k, _)| k.get_ref().as_ref() == name).map(|(_, v)| v)
    }

    /// Reads a word with `read`; what it cannot read is noted with what was expected.
    fn take<T>(&self, name: &str, kind: &str, read: impl Fn(&'t DeValue<'t>) -> Option<T>) -> Option<At<T>> {
        let entry = self.entry(name)?;
        match read(entry.get_ref()) {
            Some(value) => Some(At { value, span: entry.span() }),
            None => {
                let found = describe(entry.get_ref());
                self.note(entry.span(), format!("`{name}`: expected {kind}, found {found}"));
                None
            }
        }
    }

    /// The definition says what is expected, so that documents and messages agree.
    fn kind(&self, name: &str) -> Kind {
        let definition = self.section.options.iter().find(|o| o.name == name);
        debug_assert!(definition.is_some(), "{name} is not defined in [{}]", self.section.word);
        definition.map_or(Kind::Text, |o| o.kind)
    }

    /// Notes that a word is missing.
    pub(super) fn missing(&self, name: &str) {
        let expected = self.kind(name).expected();
        self.note(self.span.clone(), format!("{} needs `{name}`: {expected}", self.title));
    }

    pub(super) fn text(&self, name: &str) -> Option<At<String>> {
        let kind = self.kind(name);
        self.take(name, &kind.expected(), |value| {
            let text = value.as_str().filter(|t| !t.is_empty())?;
            let allowed = match kind {
                Kind::Choice(words) => words.contains(&text),
                _ => true,
            };
            allowed.then(|| text.to_owned())
        })
    }

    pub(super) fn boolean(&self, name: &str) -> Option<At<bool>> {
        self.take(name, &self.kind(name).expected(), DeValue::as_bool)
    }

    pub(super) fn count(&self, name: &str) -> Option<At<u64>> {
        let read = |value: &DeValue<'_>| integer(value).and_then(|i| u64::try_from(i).ok()).filter(|n| *n >= 1);
        self.take(name, &self.kind(name).expected(), read)
    }

    pub(super) fn duration(&self, name: &str) -> Option<At<Duration>> {
        let read = |value: &DeValue<'_>| value.as_str().and_then(parse_duration).filter(|d| !d.is_zero());
        self.take(name, &self.kind(name).expected(), read)
    }

    pub(super) fn size(&self, name: &str) -> Option<At<u64>> {
        let read = |value: &DeValue<'_>| value.as_str().and_then(parse_size).filter(|n| *n > 0);
        self.take(name, &self.kind(name).expected(), read)
    }

    /// A host and a port.
    pub(super) fn address(&self, name: &str) -> Option<At<String>> {
        let read = |value: &DeValue<'_>| value.as_str().filter(|a| is_address(a)).map(str::to_owned);
        self.take(name, &self.kind(name).expected(), read)
    }

    pub(super) fn secret(&self, name: &str) -> Option<At<Secret>> {
        self.take(name, &self.kind(name).expected(), |value| {
            let table = value.as_table()?;
            let mut entries = table.iter();
            let (key, value) = entries.next().filter(|_| table.len() == 1)?;
            let text = value.get_ref().as_str().filter(|t| !t.is_empty())?.to_owned();
            match key.get_ref().as_ref() {
                "env" => Some(Secret::Environment(text)),
                "file" => Some(Secret::File(text.into())),
                _ => None,
            }
        })
    }

    pub(super) fn names(&self, name: &str) -> Option<At<Vec<String>>> {
        let read = |value: &DeValue<'_>| names_of(value).filter(|names| !names.is_empty());
        let names = self.take(name, &self.kind(name).expected(), read)?;
        self.refuse_repeats(name, &names.value, &names.span);
        Some(names)
    }

    /// Index columns: `"A"`, `"A+B"`, `["A", "B"]`.
    pub(super) fn indexes(&self, name: &str) -> Option<At<Vec<Vec<String>>>> {
        let indexes = self.take(name, &self.kind(name).expected(), |value| {
            let columns = |item: &DeValue<'_>| match item.as_str() {
                Some(text) => index_columns(text),
                None => names_of(item).filter(|names| !names.is_empty()),
            };
            value.as_array()?.iter().map(|item| columns(item.get_ref())).collect::<Option<Vec<_>>>()
        })?;
        for columns in &indexes.value {
            self.refuse_repeats(name, columns, &indexes.span);
        }
        let joined: Vec<_> = indexes.value.iter().map(|columns| columns.join("+")).collect();
        self.refuse_repeats(name, &joined, &indexes.span);
        Some(indexes)
    }

    fn refuse_repeats(&self, name: &str, items: &[String], span: &Range<usize>) {
        let repeated = items.iter().enumerate().find(|(i, item)| items.iter().take(*i).any(|other| other == *item));
        if let Some((_, item)) = repeated {
            self.note(span.clone(), format!("`{name}`: {item:?} is there twice"));
        }
    }

    pub(super) fn values(&self, name: &str) -> Option<At<Vec<Value>>> {
        let read = |value: &DeValue<'_>| {
            value.as_array()?.iter().map(|item| parameter(item.get_ref())).collect::<Option<Vec<_>>>()
        };
        self.take(name, &self.kind(name).expected(), read)
    }

    /// Columns and their types, in the order of the file.
    pub(super) fn columns(&self, name: &str) -> Option<At<Vec<(String, DataType)>>> {
        let table = self.take(name, &self.kind(name).expected(), DeValue::as_table)?;
        let mut columns = Vec::new();
        let mut entries: Vec<_> = table.value.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let column = key.get_ref().as_ref().to_owned();
            match value.get_ref().as_str().and_then(DataType::parse) {
                Some(data_type) => columns.push((column, data_type)),
                None => {
                    let found = describe(value.get_ref());
                    let types = "a type such as \"BIGINT\", \"TEXT\" or \"DECIMAL(10,2)\"";
                    self.note(value.span(), format!("`{name}`: column {column}: expected {types}, found {found}"));
                }
            }
        }
        Some(At { value: columns, span: table.span })
    }

    pub(super) fn refresh(&self, name: &str) -> Option<At<Refresh>> {
        self.take(name, &self.kind(name).expected(), |value| match value.as_str()? {
            "never" => Some(Refresh::Never),
            "follow" => Some(Refresh::Follow),
            text => parse_duration(text).filter(|d| !d.is_zero()).map(Refresh::Every),
        })
    }

    /// Checks a word by its kind alone, for sections that are read but not served.
    pub(super) fn check(&self, definition: &OptionDefinition) {
        let name = definition.name;
        match definition.kind {
            Kind::Text | Kind::Choice(_) | Kind::Path => drop(self.text(name)),
            Kind::Boolean => drop(self.boolean(name)),
            Kind::Count => drop(self.count(name)),
            Kind::Duration => drop(self.duration(name)),
            Kind::Size => drop(self.size(name)),
            Kind::Address => drop(self.address(name)),
            Kind::Secret => drop(self.secret(name)),
            Kind::Names => drop(self.names(name)),
            Kind::Indexes => drop(self.indexes(name)),
            Kind::Values => drop(self.values(name)),
            Kind::Columns => drop(self.columns(name)),
            Kind::Refresh => drop(self.refresh(name)),
            Kind::Loader => drop(self.take(name, &definition.kind.expected(), DeValue::as_table)),
        }
    }
}

/// The columns of an index written as text: `A`, or `A+B`.
pub(super) fn index_columns(text: &str) -> Option<Vec<String>> {
    let columns: Vec<_> = text.split('+').map(|part| part.trim().to_owned()).collect();
    columns.iter().all(|c| !c.is_empty()).then_some(columns)
}

/// True for `host:port` where the port is a number.
pub(super) fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let host_is_sound = !host.is_empty() && !host.contains([' ', '/', '@']);
        host_is_sound && port.parse::<u16>().is_ok()
    })
}

fn names_of(value: &DeValue<'_>) -> Option<Vec<String>> {
    let name = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().filter(|n| !n.is_empty()).map(str::to_owned);
    value.as_array()?.iter().map(name).collect()
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn parameter(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::text(text.as_ref())),
        DeValue::Boolean(b) => Some(Value::Boolean(*b)),
        DeValue::Integer(_) => integer(value).map(Value::BigInt),
        // A decimal keeps what was written; what is none (an exponent, nan) is a double.
        DeValue::Float(float) => match Decimal::parse(float.as_str()) {
            Some(decimal) => Some(Value::Decimal(decimal)),
            None => float.as_str().parse().ok().map(Value::Double),
        },
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// What was found, short enough for a message.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() <= 60 => format!("{:?}", text.as_ref()),
        DeValue::String(_) => "a long text".into(),
        DeValue::Integer(integer) => format!("the number {integer}"),
        DeValue::Float(float) => format!("the number {float}"),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(datetime) => format!("the date {datetime}"),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a section".into(),
    }
}
