//! Nodes over a SQLite origin in a temporary folder, and rows as plain texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cachesql_node::{
    Cell, ColumnInfo, DirectRows, FileFormat, FileSource, LoadPhase, NamedOrigin, Node, NodeConfig, NodeError,
    OriginConfig, OriginUrl, RequestOptions, Rows, SqlAnswer, Statement, TableConfig, TableSource,
};
use cachesql_types::{Column, DataType};
use futures::StreamExt as _;

/// Longer than anything here takes, so that what hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Memory that is no limit to these tests.
pub(crate) const PLENTY: u64 = 1 << 32;

/// A folder with a SQLite database in it.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    /// A database made by these statements.
    pub(crate) fn new(sql: &str) -> Place {
        let place = Place(tempfile::tempdir().expect("temporary folder"));
        place.execute(sql);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs statements on the database.
    pub(crate) fn execute(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.path("origin.db")).expect("open the database");
        connection.execute_batch(sql).expect("run statements on the database");
    }

    /// The configuration of a node over the database, with these tables.
    pub(crate) fn config(&self, tables: Vec<TableConfig>) -> NodeConfig {
        let url = OriginUrl::parse(&format!("sqlite:{}", self.path("origin.db").display())).expect("sound URL");
        let origin = NamedOrigin { name: "db".into(), config: OriginConfig { url, user: None, password: None } };
        NodeConfig { origins: vec![origin], tables, ..NodeConfig::new(PLENTY) }
    }

    /// A table of a CSV file.
    pub(crate) fn csv(&self, name: &str, content: &str) -> TableConfig {
        let path = self.path(&format!("{name}.csv"));
        std::fs::write(&path, content).expect("write the file");
        let format = FileFormat::of_path(&path).expect("CSV");
        TableConfig::new(name, TableSource::File(FileSource { path, format }))
    }
}

/// A table that is all of the origin's table of the same name.
pub(crate) fn table(name: &str) -> TableConfig {
    queried(name, &format!("SELECT * FROM {name}"))
}

/// A table that is a query.
pub(crate) fn queried(name: &str, sql: &str) -> TableConfig {
    TableConfig::new(name, TableSource::Query { origin: "db".into(), sql: sql.into(), params: Vec::new() })
}

/// A table without a source: `id BIGINT` as its key, and `v TEXT`.
pub(crate) fn empty(name: &str) -> TableConfig {
    let column = |name: &str, data_type| Column { name: name.into(), data_type, nullable: true };
    let columns = vec![column("id", DataType::BigInt), column("v", DataType::Text)];
    TableConfig { key: vec!["id".into()], ..TableConfig::new(name, TableSource::Empty { columns }) }
}

/// A node with everything loaded.
pub(crate) async fn started(config: NodeConfig) -> Arc<Node> {
    let node = Node::start(config).await.expect("a configuration that starts");
    patiently(node.wait_ready()).await;
    node
}

/// Waits, but not for ever.
pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it does not hang")
}

/// Waits until a table's load has failed, and says why.
pub(crate) async fn failure_of(node: &Node, table: &str) -> String {
    let mut loads = node.loads();
    let failed = |load: &cachesql_node::TableLoad| load.table == table && load.phase == LoadPhase::Failed;
    let loads = patiently(loads.wait_for(|loads| loads.iter().any(failed))).await.expect("the node lives");
    loads.iter().find(|l| failed(l)).and_then(|l| l.error.clone()).expect("an error")
}

/// Runs a statement.
pub(crate) async fn run(node: &Node, sql: &str) -> Result<SqlAnswer, NodeError> {
    patiently(node.sql(Statement::new(sql), &RequestOptions::default())).await
}

/// Runs a write; how many rows it wrote.
pub(crate) async fn write(node: &Node, sql: &str) -> u64 {
    run(node, sql).await.expect("a write that works").affected.expect("a write")
}

/// Runs a query; its rows, each a text: values separated by `|`, NULL as `~`.
pub(crate) async fn query(node: &Node, sql: &str) -> Vec<String> {
    let answer = run(node, sql).await.expect("a query that works");
    texts(answer.rows.expect("rows")).await
}

pub(crate) async fn texts(rows: Rows) -> Vec<String> {
    let columns = rows.columns().to_vec();
    let mut stream = match rows {
        Rows::Direct(direct) => return direct_texts(&direct),
        Rows::Stream(stream) => stream,
    };
    let mut texts = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch.expect("rows");
        for row in 0..batch.num_rows() {
            let cell = |(at, column): (usize, &ColumnInfo)| Cell::of_array(batch.column(at), column.data_type, row);
            texts.push(joined(columns.iter().enumerate().map(cell)));
        }
    }
    texts
}

pub(crate) fn direct_texts(rows: &DirectRows) -> Vec<String> {
    let width = rows.columns().len();
    (0..rows.len())
        .map(|at| {
            let row = rows.row(at);
            joined((0..width).map(|column| row.cell(column)))
        })
        .collect()
}

fn joined<'a>(cells: impl Iterator<Item = Cell<'a>>) -> String {
    let text = |cell: Cell<'_>| if cell.is_null() { "~".to_owned() } else { cell.to_value().to_text() };
    cells.map(text).collect::<Vec<_>>().join("|")
}
