//! Loads from real databases and files, with what arrives compared to what those say themselves.

#![allow(clippy::unwrap_used)]

mod arrow_files;
mod csv_files;
mod ndjson_files;
mod postgres_loads;
mod postgres_tls;
mod postgres_values;
mod reading;
mod sqlite;
