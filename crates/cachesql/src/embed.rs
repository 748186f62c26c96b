//! A node inside an application.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cachesql_node::{
    Cell, FileFormat, FileSource, NamedOrigin, NodeConfig, NodeError, OriginConfig, OriginError, RequestOptions, Rows,
    Secret, Statement, TableConfig, TableSource,
};
use cachesql_origin::OriginUrl;
use cachesql_types::{Column, DataType, Value};

use crate::config::{self, ConfigError};
use crate::start::node_config;

/// Why a node could not be described or started.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The configuration file is wrong.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// An origin or file is not served.
    #[error(transparent)]
    Origin(Box<OriginError>),
    /// The node refused what it was started with.
    #[error(transparent)]
    Node(Box<NodeError>),
    /// A file whose ending does not tell what it is.
    #[error("{0}: its ending does not tell whether it is CSV, NDJSON or Arrow")]
    UnknownFormat(String),
}

// Boxed by hand: an error that large would make every Result as large.
impl From<OriginError> for EmbedError {
    fn from(error: OriginError) -> EmbedError {
        EmbedError::Origin(Box::new(error))
    }
}

impl From<NodeError> for EmbedError {
    fn from(error: NodeError) -> EmbedError {
        EmbedError::Node(Box::new(error))
    }
}

/// A node in this process. A clone is the same node. What it can be asked for is the node's own interface, which this
/// dereferences to; stop it with [`cachesql_node::Node::shutdown`].
#[derive(Clone)]
pub struct Node(Arc<cachesql_node::Node>);

impl Node {
    /// Begins to describe a node.
    pub fn builder() -> NodeBuilder {
        let config = NodeConfig::new(crate::machine::memory_bytes() / 4 * 3);
        NodeBuilder { config: NodeConfig { seed: crate::machine::random(), ..config } }
    }

    /// Starts a node as a configuration file describes it; `name` says which of its nodes, and may be left out when there is
    /// only one. Its doors are not opened: see [`cachesql_server::HttpDoor`] for that.
    pub async fn from_file(file: impl AsRef<Path>, name: Option<&str>) -> Result<Node, EmbedError> {
        let configuration = config::read_file(file.as_ref())?;
        let node = configuration.node(name).map_err(ConfigError::Unusable)?;
        let config = node_config(&configuration, node)?;
        Ok(Node(cachesql_node::Node::start(config).await?))
    }

    /// The node itself, to be handed to a door.
    pub fn inner(&self) -> &Arc<cachesql_node::Node> {
        &self.0
    }

    /// Runs a statement, and gives its rows whole: one list of values a row, in the order of the columns. Large answers are
    /// better read as a stream, from [`cachesql_node::Node::sql`].
    pub async fn query(&self, sql: &str, params: Vec<Value>) -> Result<Vec<Vec<Value>>, NodeError> {
        let statement = Statement { sql: sql.to_owned(), params };
        let answer = self.0.sql(statement, &RequestOptions::default()).await?;
        match answer.rows {
            Some(rows) => values_of(rows).await,
            None => Ok(Vec::new()),
        }
    }
}

async fn values_of(rows: Rows) -> Result<Vec<Vec<Value>>, NodeError> {
    match rows {
        Rows::Direct(rows) => {
            let width = rows.columns().len();
            Ok(rows.iter().map(|row| (0..width).map(|column| row.cell(column).to_value()).collect()).collect())
        }
        Rows::Stream(rows) => {
            let columns = rows.shared_columns();
            let mut values = Vec::new();
            for batch in rows.collect().await.map_err(NodeError::Sql)? {
                for row in 0..batch.num_rows() {
                    let cells = batch.columns().iter().zip(columns.iter());
                    let cells =
                        cells.map(|(array, column)| Cell::of_array(array.as_ref(), column.data_type, row).to_value());
                    values.push(cells.collect());
                }
            }
            Ok(values)
        }
    }
}

impl Deref for Node {
    type Target = cachesql_node::Node;

    fn deref(&self) -> &cachesql_node::Node {
        &self.0
    }
}

/// Describes a node in code.
#[derive(Debug)]
pub struct NodeBuilder {
    config: NodeConfig,
}

impl NodeBuilder {
    /// The most that tables may take, in bytes; three quarters of the machine's memory when this is not called.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> NodeBuilder {
        self.config.memory_bytes = bytes;
        self
    }

    /// The folder of its log and snapshots: what it acknowledged is there when it is started again in the same folder. Without one
    /// it keeps nothing.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> NodeBuilder {
        self.config.data = Some(folder.into());
        self
    }

    /// Names an origin: `postgres://…`, `sqlite:PATH`, or a JDBC URL of either.
    pub fn origin(self, name: impl Into<String>, url: &str) -> Result<NodeBuilder, EmbedError> {
        self.origin_with_password(name, url, None)
    }

    /// Names an origin whose password is not in the URL.
    pub fn origin_with_password(
        mut self,
        name: impl Into<String>,
        url: &str,
        password: Option<String>,
    ) -> Result<NodeBuilder, EmbedError> {
        let config = OriginConfig { url: OriginUrl::parse(url)?, user: None, password: password.map(Secret::new) };
        self.config.origins.push(NamedOrigin { name: name.into(), config });
        Ok(self)
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> NodeBuilder {
        self.config.tables.push(table.0);
        self
    }

    /// Starts the node; its tables are loaded behind it.
    pub async fn start(self) -> Result<Node, EmbedError> {
        Ok(Node(cachesql_node::Node::start(self.config).await?))
    }
}

/// Describes a table in code.
#[derive(Clone, Debug)]
pub struct Table(TableConfig);

impl Table {
    /// A table of the rows that a query on an origin gives; `params` are bound to `$1` and so on, or `?`.
    pub fn from_query(
        name: impl Into<String>,
        origin: impl Into<String>,
        sql: impl Into<String>,
        params: Vec<Value>,
    ) -> Table {
        Table(TableConfig::new(name, TableSource::Query { origin: origin.into(), sql: sql.into(), params }))
    }

    /// A table of the rows of a CSV, NDJSON or Arrow IPC file; its ending tells which.
    pub fn from_file(name: impl Into<String>, path: impl AsRef<Path>) -> Result<Table, EmbedError> {
        let path = path.as_ref().to_owned();
        let format = FileFormat::of_path(&path).ok_or_else(|| EmbedError::UnknownFormat(path.display().to_string()))?;
        Ok(Table(TableConfig::new(name, TableSource::File(FileSource { path, format }))))
    }

    /// A table that begins empty.
    pub fn empty(name: impl Into<String>, columns: Vec<Column>) -> Table {
        Table(TableConfig::new(name, TableSource::Empty { columns }))
    }

    /// The columns of its primary key.
    #[must_use]
    pub fn key<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Table {
        self.0.key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an index over columns.
    #[must_use]
    pub fn index<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Table {
        self.0.indexes.push(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Says the type of a column, where the origin's is not the one that is wanted.
    #[must_use]
    pub fn column_type(mut self, column: impl Into<String>, data_type: DataType) -> Table {
        self.0.types.push((column.into(), data_type));
        self
    }

    /// Asks the source again and again, that long after the last time ended.
    #[must_use]
    pub fn refresh_every(mut self, interval: Duration) -> Table {
        self.0.refresh = cachesql_node::Refresh::Every(interval);
        self
    }

    /// Removes rows that were not read or written for that long.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Table {
        self.0.ttl = Some(ttl);
        self
    }

    /// Removes the least recently used rows beyond so many.
    #[must_use]
    pub fn max_rows(mut self, rows: u64) -> Table {
        self.0.max_rows = Some(rows);
        self
    }
}
