//! Servers that tests start for themselves, and that are gone with the test; and addresses for them. For tests only.
//!
//! A server that is not installed is not skipped over: the test fails and says what to install.

mod loopback;
mod postgres;

pub use loopback::Loopback;
pub use postgres::{Postgres, PostgresOptions};
