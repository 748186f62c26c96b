//! The nouns that every part of CacheSQL shares: values and their types, table schemas, log positions,
//! limits. No input or output, no clock, no randomness, no heavy dependency: the client imports this too.

#[cfg(feature = "arrow")]
mod arrow_layout;
mod calendar;
mod counted;
mod data_type;
mod decimal;
pub mod limits;
mod log_index;
pub mod properties;
mod schema;
mod value;
mod value_from;
mod value_text;

#[cfg(feature = "arrow")]
pub use arrow_layout::{TYPE_METADATA, arrow_field, arrow_schema, arrow_type, data_type_of};
pub use calendar::{MICROS_PER_DAY, civil_from_days, days_from_civil};
pub use counted::counted;
pub use data_type::DataType;
pub use decimal::Decimal;
pub use log_index::{LogIndex, Token, TokenError};
pub use schema::{Column, IndexDefinition, SchemaError, TableSchema, resolve_name};
pub use value::Value;
pub use value_text::{
    ValueError, parse_bytea, parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_uuid, write_bytea,
    write_date, write_double, write_real, write_time, write_timestamp, write_timestamptz, write_uuid,
};
