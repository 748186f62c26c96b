//! CacheSQL.
