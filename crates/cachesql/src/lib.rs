//! CacheSQL: hot tables of a database, held in memory, answered by key, by range and by SQL.

pub mod config;
