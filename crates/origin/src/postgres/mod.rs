//! Rows from PostgreSQL.
//!
//! The life of a load: connect; in one read-only transaction prepare the query, which gives the columns and locks their
//! tables against change; run it as binary COPY, or through a portal when values are bound, since COPY takes none; decode
//! into columns; hand batches to the reader; commit. When the reader leaves, the statement is cancelled at the server.

mod binding;
mod connect;
mod decode;
mod describe;
mod load;
mod numeric;
mod params;
mod plan;
mod tls;
mod types;
mod url;

pub(crate) use describe::describe;
pub(crate) use load::load;
pub(crate) use url::PostgresUrl;
#[cfg(test)]
pub(crate) use url::{Host, HostPort, TlsMode};
