//! A row as any type that serde can make: columns are fields, and each value gives itself in the form that is asked for.

use std::fmt;

use cachesql_types::{Value, write_timestamp, write_timestamptz};
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::rows::ColumnInfo;

/// Why a value does not fit.
#[derive(Debug)]
pub(crate) struct Misfit(String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Misfit {
        Misfit(message.to_string())
    }
}

/// Reads one row.
pub(crate) struct RowReader<'a> {
    columns: &'a [ColumnInfo],
    values: &'a [Value],
    /// Names of the struct's fields; empty when there is none.
    fields: &'static [&'static str],
    at: usize,
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(columns: &'a [ColumnInfo], values: &'a [Value]) -> RowReader<'a> {
        RowReader { columns, values, fields: &[], at: 0 }
    }

    /// A column's name as the struct spells it: databases fold names, so that they may differ in case.
    fn field_of(&self, column: &'a str) -> &'a str {
        let exact = self.fields.contains(&column)
            || self
                .columns
                .iter()
                .any(|other| self.fields.contains(&other.name.as_str()) && other.name.eq_ignore_ascii_case(column));
        let folded = self.fields.iter().find(|field| field.eq_ignore_ascii_case(column));
        match folded {
            Some(field) if !exact => field,
            _ => column,
        }
    }

    fn value<T>(&mut self, read: impl FnOnce(&'a Value) -> Result<T, Misfit>) -> Result<Option<T>, Misfit> {
        let (Some(column), Some(value)) = (self.columns.get(self.at), self.values.get(self.at)) else {
            return Ok(None);
        };
        self.at += 1;
        read(value).map(Some).map_err(|error| Misfit(format!("column {}: {error}", column.name)))
    }
}

impl<'de> Deserializer<'de> for RowReader<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_map(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Misfit> {
        if length != self.values.len() {
            return Err(Misfit(format!("{} columns, and {length} values are asked for", self.values.len())));
        }
        visitor.visit_seq(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.fields = fields;
        visitor.visit_map(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct map enum
        identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for RowReader<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some(column) = self.columns.get(self.at) else { return Ok(None) };
        let name: StrDeserializer<'_, Misfit> = self.field_of(&column.name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        self.value(|value| seed.deserialize(ValueReader(value)))?
            .ok_or_else(|| Misfit("a column without a value".into()))
    }
}

impl<'de> SeqAccess<'de> for RowReader<'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        self.value(|value| seed.deserialize(ValueReader(value)))
    }
}

/// Reads one value.
struct ValueReader<'a>(&'a Value);

impl<'de> ValueReader<'de> {
    /// Its text; times with the `T` of ISO 8601, which is what libraries of times read.
    fn text(&self) -> String {
        let mut out = Vec::new();
        match self.0 {
            Value::Timestamp(micros) => write_timestamp(&mut out, *micros, b'T'),
            Value::TimestampTz(micros) => write_timestamptz(&mut out, *micros, b'T'),
            other => other.write_text(&mut out),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// JSON gives itself as whatever it holds.
    fn json(text: &'de str) -> serde_json::Deserializer<serde_json::de::StrRead<'de>> {
        serde_json::Deserializer::from_str(text)
    }

    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            // A DECIMAL without a fraction is an integer to who asks for one.
            Value::Decimal(decimal) => match decimal.rescale(0) {
                Some(whole) => match i64::try_from(whole.unscaled) {
                    Ok(integer) => visitor.visit_i64(integer),
                    Err(_) => visitor.visit_i128(whole.unscaled),
                },
                None => Err(Misfit(format!("{decimal} is no integer"))),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn float<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Decimal(decimal) => visitor.visit_f64(decimal.to_f64()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            // Numbers and booleans are no text; the rest has no form of its own in Rust.
            Value::Null
            | Value::Boolean(_)
            | Value::SmallInt(_)
            | Value::Integer(_)
            | Value::BigInt(_)
            | Value::Real(_)
            | Value::Double(_) => self.deserialize_any(visitor),
            _ => visitor.visit_string(self.text()),
        }
    }
}

/// An error of the JSON inside a column.
fn json_misfit(error: serde_json::Error) -> Misfit {
    Misfit(format!("its JSON: {error}"))
}

impl<'de> Deserializer<'de> for ValueReader<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::SmallInt(value) => visitor.visit_i16(*value),
            Value::Integer(value) => visitor.visit_i32(*value),
            Value::BigInt(value) => visitor.visit_i64(*value),
            Value::Real(value) => visitor.visit_f32(*value),
            Value::Double(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Bytea(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::Json(text) => Self::json(text).deserialize_any(visitor).map_err(json_misfit),
            Value::Decimal(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::Timestamp(_)
            | Value::TimestampTz(_)
            | Value::Uuid(_) => visitor.visit_string(self.text()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Bytea(bytes) => visitor.visit_seq(de::value::SeqDeserializer::new(bytes.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Json(text) => Self::json(text).deserialize_struct(name, fields, visitor).map_err(json_misfit),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Json(text) => Self::json(text).deserialize_enum(name, variants, visitor).map_err(json_misfit),
            Value::Text(text) => {
                let text: StrDeserializer<'_, Misfit> = (&**text).into_deserializer();
                text.deserialize_enum(name, variants, visitor)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.integer(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.float(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.float(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.string(visitor)
    }

    forward_to_deserialize_any! {
        bool char bytes byte_buf unit unit_struct tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
#[path = "typed_tests.rs"]
mod tests;
