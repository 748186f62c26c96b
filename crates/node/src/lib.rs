//! One running member of a group: its tables, the one writer, loading and refreshing, and what callers ask of it.
//!
//! `node` is where requests arrive. Reads go from there to the engine, on the newest snapshot (`core`). Changes are data
//! (`mutation`, `command`), so that they can go to the member that leads (`dispatch`, `replica`); there they go to `writer`, which
//! plans them in turn and hands them to the `log`, from which every member applies them (`state`). The member that leads also keeps the
//! tables (`office`): they come in through `refresher` (when) and `load` (how), from `origins`; rows that are too old or too many leave
//! through `retention`.

mod bytes_of;
mod clock;
mod command;
mod config;
mod configured;
mod core;
mod counters;
mod dispatch;
mod entry;
mod error;
mod flight;
mod load;
mod log;
mod memory;
mod mutation;
mod mutation_wire;
mod node;
mod office;
mod original;
mod origins;
mod outcome;
mod progress;
mod refresher;
mod reload;
mod remembered;
mod replica;
mod request;
mod retention;
mod sharded;
mod source;
mod start;
mod state;
mod status;
mod tasks;
mod writer;

pub use cachesql_origin::{CsvOptions, Estimate, FileFormat, FileSource, OriginConfig, OriginError, OriginUrl, Secret};
pub use cachesql_sql::Path as ExplanationPath;
pub use cachesql_sql::{
    Amount, ColumnInfo, Comparison, DirectRow, DirectRows, EngineLimits, Explanation, Filter, OnConflict, Operand,
    OrderBy, Prepared, Projection, RowStream, Rows, Select, SqlError, StatementKind, Write,
};
pub use cachesql_table::{Cell, GroupSnapshot, Index, IndexRange, Refusal, Table};
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    ClusterConfig, ClusterSecret, Failover, NamedOrigin, NodeConfig, Refresh, RouteGroup, RouteNode, Routes,
    TableConfig, TableSource,
};
pub use counters::Counters;
pub use entry::{Answered, Entry, EntryError, Packed, Place};
pub use error::NodeError;
pub use log::{Lead, LocalLog, Log, Settled, Submitted};
pub use memory::{MemoryReport, TableMemoryReport};
pub use node::Node;
pub use original::{
    Original, OriginalHealth, OriginalMetrics, OriginalRead, OriginalRows, TableDetail, TableListing, TableStats,
};
pub use reload::{Reloaded, Reread};
pub use remembered::RequestKey;
pub use replica::MembersChange;
pub use request::{
    BatchAnswer, Consistency, LoadPhase, LoadReport, RequestOptions, SqlAnswer, Statement, TableLoad, WriteAnswer,
};
pub use sharded::{Sharded, ShardedCounter};
pub use state::State;
pub use status::{GroupStatus, MemberStatus};
