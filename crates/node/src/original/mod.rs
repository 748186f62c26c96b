//! The original CacheSQL's operations: tables, columns and values by name and text, as its clients send them.
//!
//! The column's type decides what a text means. A number with a leading zero is a text, and equals no value of a number
//! column.

mod change;
mod read;
mod report;
mod text;

use std::sync::Arc;
use std::time::Duration;

use cachesql_sql::{Comparison, DirectRows, Select, SqlError, StatementKind};
use cachesql_table::{GroupSnapshot, Table};

use crate::config::TableSource;
use crate::core::find_table;
use crate::error::NodeError;
use crate::mutation::Mutation;
use crate::node::Node;
use crate::request::{LoadPhase, RequestOptions, SqlAnswer, Statement, WriteAnswer};
use crate::source::index_name;
pub(crate) use change::Change;
use change::Kind;
use read::filter_of;
pub use read::{OriginalRead, OriginalRows};
pub use report::{OriginalHealth, OriginalMetrics, TableDetail, TableListing, TableStats};

/// The original's operations on a node.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    node: &'a Node,
}

impl<'a> Original<'a> {
    pub(crate) fn new(node: &'a Node) -> Original<'a> {
        Original { node }
    }

    /// Rows where the column equals the value.
    pub fn get(&self, table: &str, column: &str, value: &str) -> Result<DirectRows, NodeError> {
        self.newest(table, OriginalRows::Compare { column, op: Comparison::Equal, value })
    }

    /// Rows where the column is less than the value.
    pub fn less(&self, table: &str, column: &str, value: &str) -> Result<DirectRows, NodeError> {
        self.newest(table, OriginalRows::Compare { column, op: Comparison::Less, value })
    }

    /// Rows where the column is more than the value.
    pub fn more(&self, table: &str, column: &str, value: &str) -> Result<DirectRows, NodeError> {
        self.newest(table, OriginalRows::Compare { column, op: Comparison::Greater, value })
    }

    /// Rows where the column is between two values, both included.
    pub fn range(&self, table: &str, column: &str, from: &str, to: &str) -> Result<DirectRows, NodeError> {
        self.newest(table, OriginalRows::Range { column, from, to })
    }

    /// Rows that are equal in all columns of an index. `index` is an index's name, or columns joined by `+`; `values` are
    /// as many, separated by commas.
    pub fn composite(&self, table: &str, index: &str, values: &str) -> Result<DirectRows, NodeError> {
        self.newest(table, OriginalRows::Composite { index, values })
    }

    fn newest(&self, table: &str, rows: OriginalRows<&str>) -> Result<DirectRows, NodeError> {
        self.node.read_now(|snapshot| self.read(snapshot, &OriginalRead { table, rows }))
    }

    /// Rows of a snapshot.
    pub fn read<T: AsRef<str>>(
        &self,
        snapshot: &GroupSnapshot,
        read: &OriginalRead<T>,
    ) -> Result<DirectRows, NodeError> {
        let table = read.table.as_ref();
        let outcome = find_table(snapshot, table).and_then(|found| Ok((found, filter_of(found.schema(), &read.rows)?)));
        let (found, filter) = self.node.core.counted(outcome)?;
        let select = Select { table: table.to_owned(), filter: Some(filter), ..Select::default() };
        self.node.select_from(found, &select, &[])
    }

    /// Answers a query. It only reads: what changes rows goes another way, so that a link that is followed changes nothing.
    pub async fn query(&self, sql: &str, options: &RequestOptions) -> Result<SqlAnswer, NodeError> {
        let prepared = self.node.prepare(&self.node.snapshot(), sql, &[])?;
        if !matches!(prepared.kind(), StatementKind::Read | StatementKind::Explain) {
            let refused = SqlError::NotSupported("this call answers queries only".into());
            return self.node.core.counted(Err(refused.into()));
        }
        self.node.sql(Statement::new(sql), options).await
    }

    /// Puts one row: the column has the value, `others` are its other columns, the rest is NULL. Rows that had that value
    /// in that column before are replaced by it.
    pub async fn insert(
        &self,
        table: &str,
        column: &str,
        value: &str,
        others: &[(String, String)],
        options: &RequestOptions,
    ) -> Result<WriteAnswer, NodeError> {
        self.change(Change::new(Kind::Insert, table, column, value, others), options).await
    }

    /// Sets `others` in the rows where the column equals the value.
    pub async fn update(
        &self,
        table: &str,
        column: &str,
        value: &str,
        others: &[(String, String)],
        options: &RequestOptions,
    ) -> Result<WriteAnswer, NodeError> {
        self.change(Change::new(Kind::Update, table, column, value, others), options).await
    }

    /// Removes the rows where the column equals the value. `others` say nothing here.
    pub async fn delete(
        &self,
        table: &str,
        column: &str,
        value: &str,
        options: &RequestOptions,
    ) -> Result<WriteAnswer, NodeError> {
        self.change(Change::new(Kind::Delete, table, column, value, &[]), options).await
    }

    async fn change(&self, change: Change, options: &RequestOptions) -> Result<WriteAnswer, NodeError> {
        let key = change.key(options)?;
        self.node.core.counted(self.node.mutate_one(Mutation::Original(Arc::new(change)), key).await)
    }

    /// Sets how long rows may be left alone; 0 milliseconds for as long as they like.
    pub async fn ttl(&self, table: &str, ms: u64) -> Result<(), NodeError> {
        let ttl = (ms > 0).then(|| Duration::from_millis(ms));
        self.node.set_ttl(table, ttl).await.map(drop)
    }

    /// Sets how many rows a table keeps; 0 for as many as come.
    pub async fn max_size(&self, table: &str, size: u64) -> Result<(), NodeError> {
        self.node.set_max_rows(table, (size > 0).then_some(size)).await.map(drop)
    }

    /// What there is to say of one table.
    pub fn stats(&self, table: &str) -> Result<TableStats, NodeError> {
        let table = self.node.core.counted(self.node.core.table(table))?;
        let retention = table.retention();
        Ok(TableStats {
            table: table.schema().name.clone(),
            total_rows: table.stored_rows(),
            active_rows: table.row_count(),
            ttl_ms: retention.ttl_ms.unwrap_or(0),
            max_size: retention.max_rows.unwrap_or(0),
            indexes: index_names(&table),
        })
    }

    /// The tables and what they are loaded by: configured ones first, then those that were created here.
    pub fn list(&self) -> Vec<TableListing> {
        let configured = &self.node.configured.load().tables;
        let mut listing: Vec<TableListing> = configured
            .iter()
            .map(|table| TableListing {
                name: table.name.clone(),
                sql: match &table.source {
                    TableSource::Query { sql, .. } => sql.clone(),
                    TableSource::File(file) => file.path.display().to_string(),
                    TableSource::Empty { .. } => table.name.clone(),
                },
            })
            .collect();
        for table in self.node.snapshot().tables() {
            let name = &table.schema().name;
            if !configured.iter().any(|c| c.name.eq_ignore_ascii_case(name)) {
                listing.push(TableListing { name: name.clone(), sql: name.clone() });
            }
        }
        listing
    }

    /// Memory and tables. All sizes are bytes.
    pub fn metrics(&self) -> OriginalMetrics {
        let snapshot = self.node.snapshot();
        let memory_used = snapshot.memory().total();
        let memory_max = self.node.core.memory_bytes;
        let tables_detail: Vec<TableDetail> = snapshot
            .tables()
            .map(|table| TableDetail {
                name: table.schema().name.clone(),
                rows: table.row_count(),
                capacity: table.stored_rows(),
                indexes: index_names(table),
            })
            .collect();
        OriginalMetrics {
            tables: tables_detail.len(),
            memory_used,
            memory_total: memory_max,
            memory_max,
            memory_free: memory_max.saturating_sub(memory_used),
            threads: self.node.core.threads,
            tables_detail,
        }
    }

    /// Whether there is memory left.
    pub fn health(&self) -> OriginalHealth {
        const MIB: u64 = 1 << 20;
        let snapshot = self.node.snapshot();
        let memory_used = snapshot.memory().total();
        let memory_max = self.node.core.memory_bytes;
        let loads = self.node.loads();
        let pool_active = loads.borrow().iter().filter(|load| load.phase == LoadPhase::Loading).count();
        OriginalHealth {
            // From nine tenths of the limit on the node warns.
            up: memory_used.saturating_mul(10) < memory_max.saturating_mul(9),
            tables: snapshot.tables().count(),
            memory_used_mib: memory_used / MIB,
            memory_max_mib: memory_max / MIB,
            pool_active,
            // Connections to origins are opened for a load and closed after it.
            pool_idle: 0,
        }
    }
}

/// The names of a table's indexes; the primary key goes by its columns.
fn index_names(table: &Arc<Table>) -> Vec<String> {
    let schema = table.schema();
    let key = (!schema.key.is_empty()).then(|| index_name(schema, &schema.key));
    key.into_iter().chain(schema.indexes.iter().map(|index| index.name.clone())).collect()
}
