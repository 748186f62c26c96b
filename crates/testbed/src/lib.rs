//! Servers that tests start for themselves, and that are gone with the test. For tests only.
//!
//! A server that is not installed is not skipped over: the test fails and says what to install.

mod postgres;

pub use postgres::{Postgres, PostgresOptions};
