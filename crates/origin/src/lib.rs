//! Where rows come from: PostgreSQL, SQLite, and CSV, NDJSON and Arrow files.
//!
//! An [`Origin`] describes a table's source ([`Origin::describe`]) and loads it ([`Origin::load`]) as a stream of record
//! batches in the layout of `cachesql_types::arrow_schema`. Values arrive exactly or not at all: what a type cannot hold
//! fails the load with an [`OriginError`] that names table, column and value. Values are bound to queries, never put into
//! their text. Secrets show in no message.

mod batch;
mod columns;
mod convert;
mod error;
mod file;
mod origin;
mod postgres;
mod secret;
mod source;
mod sqlite;
mod stream;
mod url;

pub use error::OriginError;
pub use origin::{Origin, OriginConfig};
pub use secret::Secret;
pub use source::{CsvOptions, Estimate, FileFormat, FileSource, SourceDescription, TableQuery, TableSource};
pub use stream::BatchStream;
pub use url::OriginUrl;
