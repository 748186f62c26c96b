//! Snapshots to ask, and answers as text.

use std::time::Duration;

use cachesql_sql::{Engine, EngineLimits, Rows, SqlError, WritePlan};
use cachesql_table::{Cell, GroupSnapshot};
use cachesql_types::Value;

/// A node in small: an engine, and the snapshot that its writes go to.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) snapshot: GroupSnapshot,
}

impl Node {
    /// An empty one, that gives statements all the time they need on a machine that is busy.
    pub(crate) fn new() -> Node {
        Node::with(EngineLimits { timeout: Duration::from_secs(600), ..EngineLimits::default() })
    }

    /// An empty one with other limits.
    pub(crate) fn with(limits: EngineLimits) -> Node {
        Node { engine: Engine::new(limits), snapshot: GroupSnapshot::empty() }
    }

    /// One whose statements are stopped after a short time.
    pub(crate) fn hurried(timeout: Duration) -> Node {
        Node::with(EngineLimits { timeout, ..EngineLimits::default() })
    }

    /// Applies a write; `Err` is what a client would see.
    pub(crate) async fn write(&mut self, sql: &str, parameters: &[Value]) -> Result<WritePlan, SqlError> {
        let prepared = self.engine.prepare(&self.snapshot, sql, &[])?;
        let plan = self.engine.plan_write(&self.snapshot, &prepared, parameters).await?;
        let next = self.snapshot.index().next();
        match self.snapshot.apply(next, &plan.operations) {
            Ok((snapshot, _)) => self.snapshot = snapshot,
            Err(cachesql_table::ApplyError::Refused(refusal)) => return Err(SqlError::of_refusal(&refusal)),
            Err(error) => panic!("{error}"),
        }
        Ok(plan)
    }

    /// Applies writes that must succeed.
    pub(crate) async fn run(&mut self, statements: &[&str]) {
        for sql in statements {
            if let Err(error) = self.write(sql, &[]).await {
                panic!("{sql}: {error}");
            }
        }
    }

    /// Rows as text, fields separated by `|`, NULL as `NULL`.
    pub(crate) async fn ask(&self, sql: &str, parameters: &[Value]) -> Result<Vec<String>, SqlError> {
        let prepared = self.engine.prepare(&self.snapshot, sql, &[])?;
        let rows = self.engine.query(&self.snapshot, &prepared, parameters).await?;
        assert_eq!(rows.columns(), prepared.columns(), "{sql}: columns promised and given");
        text_of(rows).await
    }

    /// The same, which must succeed.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<String> {
        match self.ask(sql, &[]).await {
            Ok(rows) => rows,
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    /// The SQLSTATE that a read fails with.
    pub(crate) async fn failure(&self, sql: &str) -> &'static str {
        match self.ask(sql, &[]).await {
            Ok(rows) => panic!("{sql}: answered {} rows", rows.len()),
            Err(error) => error.sqlstate(),
        }
    }
}

/// An answer as text.
pub(crate) async fn text_of(rows: Rows) -> Result<Vec<String>, SqlError> {
    match rows {
        Rows::Direct(rows) => {
            let width = rows.columns().len();
            Ok(rows.iter().map(|row| line((0..width).map(|c| cell_text(row.cell(c))))).collect())
        }
        Rows::Stream(stream) => {
            let columns = stream.shared_columns();
            let mut lines = Vec::new();
            for batch in stream.collect().await? {
                for at in 0..batch.num_rows() {
                    let cells = columns.iter().zip(batch.columns());
                    lines.push(line(cells.map(|(c, array)| cell_text(Cell::of_array(array, c.data_type, at)))));
                }
            }
            Ok(lines)
        }
    }
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.collect::<Vec<_>>().join("|")
}

fn cell_text(cell: Cell<'_>) -> String {
    match cell.to_value() {
        Value::Null => "NULL".into(),
        value => value.to_text(),
    }
}

/// Two tables of an insurance: persons (key `AAC001`), and their payments.
pub(crate) async fn insurance() -> Node {
    let mut node = Node::new();
    node.run(&[
        "CREATE TABLE KCA2 (AAC001 BIGINT PRIMARY KEY, AAC002 TEXT, AAB004 TEXT, AGE INTEGER, PAID DECIMAL(10,2), SINCE TIMESTAMP)",
        "CREATE INDEX \"AAB004\" ON KCA2 (AAB004)",
        "CREATE INDEX \"AAB004+AGE\" ON KCA2 (AAB004, AGE)",
        "CREATE INDEX \"AGE\" ON KCA2 (AGE)",
        "CREATE TABLE payments (id INTEGER PRIMARY KEY, person BIGINT, amount DECIMAL(8,2), note TEXT)",
        "CREATE INDEX person ON payments (person)",
        "INSERT INTO KCA2 VALUES (1, 'Li', '北京', 30, 10.50, '2020-01-01 00:00:00'), (2, 'Wang', '上海', 41, 0.00, NULL), \
         (3, 'O''Neil', '北京', NULL, NULL, '1969-12-31 23:59:59'), (4, '', '深圳', 30, 99999999.99, NULL), \
         (5, NULL, NULL, 17, -1.25, '2021-06-01 12:30:00.5')",
        "INSERT INTO payments VALUES (10, 1, 5.00, 'a'), (11, 1, 7.25, NULL), (12, 2, 1.00, 'b'), (13, 9, 3.00, 'lost'), \
         (14, NULL, 2.00, 'none')",
    ])
    .await;
    node
}
