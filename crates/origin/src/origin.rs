//! An origin: the one handle through which rows are described and loaded, whatever stands behind it.

use std::sync::Arc;

use cachesql_types::Column;

use crate::error::OriginError;
use crate::secret::Secret;
use crate::source::{SourceDescription, TableQuery, TableSource};
use crate::stream::BatchStream;
use crate::url::{OriginUrl, UrlKind};
use crate::{file, postgres, sqlite};

/// How to reach an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginConfig {
    /// Where it is.
    pub url: OriginUrl,
    /// The user, instead of the URL's.
    pub user: Option<String>,
    /// The password, instead of the URL's.
    pub password: Option<Secret>,
}

/// An origin that rows can be loaded from. A clone is the same origin. Nothing is connected until it is used; each call
/// makes its own connection and closes it, so that an origin that went away and came back is just there again.
#[derive(Clone, Debug)]
pub struct Origin {
    config: Option<Arc<OriginConfig>>,
}

impl Origin {
    /// Opens an origin. Refused are kinds that are not served; nothing is connected yet.
    pub fn new(config: OriginConfig) -> Result<Origin, OriginError> {
        if config.url.kind == UrlKind::MySql {
            return Err(OriginError::Unsupported {
                kind: "MySQL or MariaDB".to_owned(),
                advice: "it is not served yet; use PostgreSQL, SQLite, CSV, NDJSON or Arrow files".to_owned(),
            });
        }
        Ok(Origin { config: Some(Arc::new(config)) })
    }

    /// The origin of tables that name a file and no origin.
    pub fn files() -> Origin {
        Origin { config: None }
    }

    /// The origin's URL without its secrets; `files` for the one that has none.
    pub fn name(&self) -> String {
        self.config.as_ref().map_or_else(|| "files".to_owned(), |config| config.url.to_string())
    }

    /// Says what a table's source will bring: columns, key, roughly how much. A file is read whole for that, since its
    /// values say what types it has.
    pub async fn describe(&self, query: &TableQuery) -> Result<SourceDescription, OriginError> {
        match &query.source {
            TableSource::File(source) => file::describe(query, source).await,
            TableSource::Query { sql, params } => {
                let config = self.database(query)?;
                match &config.url.kind {
                    UrlKind::Postgres(url) => postgres::describe(config, url, query, sql, params).await,
                    UrlKind::Sqlite(location) => sqlite::describe(config, location, query, sql, params).await,
                    UrlKind::File(_) | UrlKind::MySql => Err(no_queries(query)),
                }
            }
        }
    }

    /// Starts a load. `columns` are those of a description, perhaps with other types; each value becomes exactly that type
    /// or the load fails, naming it. What is wrong at once (connection, query, columns) is the error of this call; what
    /// goes wrong later comes through the stream.
    pub async fn load(&self, query: &TableQuery, columns: &[Column]) -> Result<BatchStream, OriginError> {
        match &query.source {
            TableSource::File(source) => file::load(query, source, columns).await,
            TableSource::Query { sql, params } => {
                let config = self.database(query)?;
                match &config.url.kind {
                    UrlKind::Postgres(url) => postgres::load(config, url, query, sql, params, columns).await,
                    UrlKind::Sqlite(location) => sqlite::load(config, location, query, sql, params, columns).await,
                    UrlKind::File(_) | UrlKind::MySql => Err(no_queries(query)),
                }
            }
        }
    }

    fn database(&self, query: &TableQuery) -> Result<&OriginConfig, OriginError> {
        self.config.as_deref().ok_or_else(|| no_queries(query))
    }
}

fn no_queries(query: &TableQuery) -> OriginError {
    OriginError::Unsupported {
        kind: "a query on a file".to_owned(),
        advice: format!("table {} needs a database as its origin, or a file without a query", query.table),
    }
}
