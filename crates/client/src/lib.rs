//! The routing client of CacheSQL: an application names a table, never a machine.

mod address;
mod config;
pub mod limits;
mod policy;
mod chance;
mod node;
mod breaker;
mod pool;
mod error;
