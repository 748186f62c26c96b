//! The routing client of CacheSQL: an application names a table, never a machine.

mod address;
mod breaker;
mod chance;
mod config;
mod error;
pub mod limits;
mod node;
mod policy;
mod pool;
mod routes;
mod rows;
mod session;
mod sql_tables;
mod sql_tokens;
mod statement;
mod topology;
mod typed;
mod wire;
