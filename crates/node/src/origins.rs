//! The configured origins, and what one table asks of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use cachesql_origin::{BatchStream, Origin, OriginError, SourceDescription, TableQuery};
use cachesql_types::Column;

use crate::config::{NamedOrigin, TableConfig, TableSource};
use crate::error::NodeError;

/// Where one table's rows come from.
pub(crate) struct TableOrigin {
    origin: Arc<Origin>,
    query: TableQuery,
}

impl TableOrigin {
    /// What is known of the rows before they come.
    pub(crate) async fn describe(&self) -> Result<SourceDescription, OriginError> {
        self.origin.describe(&self.query).await
    }

    /// The rows, each value as the type that its column has here.
    pub(crate) async fn load(&self, columns: &[Column]) -> Result<BatchStream, OriginError> {
        self.origin.load(&self.query, columns).await
    }
}

/// The origins by name.
pub(crate) struct Origins(BTreeMap<String, Arc<Origin>>);

impl Origins {
    /// Opens no connection yet.
    pub(crate) fn new(configured: &[NamedOrigin]) -> Result<Origins, NodeError> {
        let mut origins = BTreeMap::new();
        for named in configured {
            let origin = Origin::new(named.config.clone())
                .map_err(|error| NodeError::Config(format!("origin {:?}: {error}", named.name)))?;
            if origins.insert(named.name.clone(), Arc::new(origin)).is_some() {
                return Err(NodeError::Config(format!("there are two origins named {:?}", named.name)));
            }
        }
        Ok(Origins(origins))
    }

    /// Where a table's rows come from; `None` for a table that has no source.
    pub(crate) fn of_table(&self, table: &TableConfig) -> Result<Option<TableOrigin>, NodeError> {
        let (origin, source) = match &table.source {
            TableSource::Empty { .. } => return Ok(None),
            TableSource::File(file) => (Arc::new(Origin::files()), cachesql_origin::TableSource::File(file.clone())),
            TableSource::Query { origin: name, sql, params } => {
                let unknown =
                    || NodeError::Config(format!("table {:?}: there is no origin named {name:?}", table.name));
                let origin = self.0.get(name).ok_or_else(unknown)?.clone();
                (origin, cachesql_origin::TableSource::Query { sql: sql.clone(), params: params.clone() })
            }
        };
        let query = TableQuery { table: table.name.clone(), source, types: table.types.clone() };
        Ok(Some(TableOrigin { origin, query }))
    }
}
