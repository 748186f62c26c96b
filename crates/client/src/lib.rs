//! The routing client of CacheSQL: an application names a table, never a machine.
//!
//! Table → group → node comes from a file ([`Client::open`]) or from any node of the cluster ([`Client::connect`]). Reads are
//! spread over the members of a group by a [`Policy`], writes go to its leader; a node that fails is passed over at once, and
//! left out for a while after it failed three times in a row. One deadline holds for a whole call, whatever nodes do.
//!
//! ```no_run
//! use cachesql_client::{Client, Value};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! struct Person {
//!     aac001: i64,
//!     aac003: Option<String>,
//! }
//!
//! # async fn example() -> Result<(), cachesql_client::Error> {
//! let client = Client::open("cachesql.properties")?; // or Client::connect("http://any-node:8080").await?
//! client.insert("KCA2", "AAC001", 99999, &Person { aac001: 99999, aac003: Some("张三".into()) }).await?;
//! let people: Vec<Person> = client.get("KCA2", "AAC001", 99999).await?.typed()?;
//! for row in client.query_with("SELECT * FROM KCA2 WHERE AAC003 = $1", &[Value::from("张三")]).await? {
//!     println!("{:?} {:?}", row.get("AAC001"), people);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - **Session.** The newest token of each group is kept, and sent with the next read, so that this client sees what it wrote
//!   and never sees less than before, whichever node answers; [`Consistency`] has other levels.
//! - **Repeats.** Each write carries an id of its own that the group applies once, so that it can be sent again when it is not
//!   known what became of it. Without ids ([`Builder::request_ids`]) it is not: [`Error::OutcomeUnknown`] says so.
//! - **Exact values.** Numbers never pass through a double: [`Value`] has the type of the column, and a DECIMAL becomes a float
//!   only for who asks for one ([`Rows::typed`]).
//! - **Routes** that came from a node are followed: a change is known within moments, a "not leader, X is" at once.
//!
//! The life of a read: `Client::get` finds the group of the table, `routes`; orders its members, `policy`; asks one after the
//! other, `read`, each over a kept connection, `wire` and `pool`; and reads the answer, `rows`. A write goes through `write`
//! instead.

mod address;
mod breaker;
mod builder;
mod chance;
mod client;
mod config;
mod core;
mod error;
mod follow;
pub mod limits;
mod node;
mod policy;
mod pool;
mod read;
mod routes;
mod rows;
mod session;
mod sql_tables;
mod sql_tokens;
mod statement;
mod topology;
mod typed;
mod wire;
mod write;

pub use builder::Builder;
pub use cachesql_types::{DataType, Decimal, LogIndex, Token, Value};
pub use client::{Client, Written};
pub use config::{ConfigError, Consistency, Problem};
pub use error::{Error, Refusal};
pub use policy::Policy;
pub use rows::{ColumnInfo, Row, Rows};
