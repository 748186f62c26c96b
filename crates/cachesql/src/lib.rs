//! CacheSQL: hot tables of a database, held in memory, answered by key, by range and by SQL.
//!
//! This library is the face for applications that open a node inside themselves; the binary of the same name serves it over
//! HTTP. A node is described by a configuration file, as the binary's are, or in code:
//!
//! ```
//! use cachesql::{Node, Table, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("people.csv");
//! std::fs::write(&file, "id,name,city\n1,Ada,London\n2,Blaise,Paris\n3,Emmy,Erlangen\n")?;
//!
//! let node = Node::builder()
//!     .table(Table::from_file("people", &file)?.key(["id"]).index(["city"]))
//!     .start()
//!     .await?;
//! node.wait_ready().await;
//!
//! let rows = node.query("SELECT name FROM people WHERE city = $1", vec![Value::text("Paris")]).await?;
//! assert_eq!(rows, [vec![Value::text("Blaise")]]);
//! node.shutdown().await;
//! # Ok(())
//! # })
//! # }
//! ```

pub mod command_line;
pub mod config;
mod embed;
mod machine;
mod presence;
mod start;

pub use cachesql_node::{
    Consistency, LoadPhase, LoadReport, NodeError, RequestOptions, Rows, SqlAnswer, Statement, TableLoad, WriteAnswer,
};
pub use cachesql_server::{HttpConfig, HttpDoor};
pub use cachesql_types::{Column, DataType, Token, Value};
pub use embed::{EmbedError, Node, NodeBuilder, Table};
pub use start::{http_config, node_config};
