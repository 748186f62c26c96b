//! The original's insert, update and delete, planned in the writer's turn.

use cachesql_sql::{Engine, Filter, OnConflict, Write};
use cachesql_table::GroupSnapshot;
use cachesql_types::{TableSchema, Value};

use super::text::{column_value, equality};
use crate::core::{find_table, sql_error};
use crate::error::NodeError;
use crate::node::request_key;
use crate::outcome::Outcome;
use crate::remembered::RequestKey;
use crate::request::RequestOptions;
use crate::writer::Planned;

/// One insert, update or delete, as it was sent.
pub(super) struct Change {
    what: &'static str,
    table: String,
    column: String,
    value: String,
    others: Vec<(String, String)>,
}

impl Change {
    pub(super) fn new(
        what: &'static str,
        table: &str,
        column: &str,
        value: &str,
        others: &[(String, String)],
    ) -> Change {
        Change { what, table: table.into(), column: column.into(), value: value.into(), others: others.to_vec() }
    }

    /// The table that it is for.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// The key that a retry is known by.
    pub(super) fn key(&self, options: &RequestOptions) -> Result<Option<RequestKey>, NodeError> {
        let Change { what, table, column, value, others } = self;
        request_key(options, || format!("{:?}", (what, table, column, value, others)))
    }

    /// Positions and values of the columns to set. A column that comes twice is refused.
    fn assignments(&self, schema: &TableSchema) -> Result<Vec<(usize, Value)>, NodeError> {
        let mut set: Vec<(usize, Value)> = Vec::with_capacity(self.others.len());
        for (name, text) in &self.others {
            let (position, value) = column_value(schema, name, text)?;
            if set.iter().any(|(earlier, _)| *earlier == position) {
                return Err(NodeError::RepeatedColumn { table: schema.name.clone(), column: name.clone() });
            }
            set.push((position, value));
        }
        Ok(set)
    }

    pub(super) fn plan_insert(&self, engine: &Engine, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        let schema = find_table(newest, &self.table)?.schema().clone();
        let (position, value) = column_value(&schema, &self.column, &self.value)?;
        let mut given = self.assignments(&schema)?;
        match given.iter().find(|(column, _)| *column == position) {
            None => given.push((position, value.clone())),
            Some((_, same)) if *same == value => {}
            Some(_) => {
                return Err(NodeError::RepeatedColumn { table: schema.name.clone(), column: self.column.clone() });
            }
        }
        let remove = Write::Delete {
            table: schema.name.clone(),
            filter: Some(Filter::equal(position, value)),
            returning: false,
        };
        let removed = engine.plan_typed_write(newest, &remove).map_err(sql_error)?;
        // The new row is checked against what is left once the old ones are gone.
        let left = match removed.operations.is_empty() {
            true => newest.clone(),
            false => newest.apply(newest.index().next(), &removed.operations)?.0,
        };
        let (columns, row): (Vec<usize>, Vec<Value>) = given.into_iter().unzip();
        let put = Write::Insert {
            table: schema.name.clone(),
            columns,
            rows: vec![row],
            on_conflict: OnConflict::Refuse,
            returning: false,
        };
        let put = engine.plan_typed_write(&left, &put).map_err(sql_error)?;
        let operations = removed.operations.into_iter().chain(put.operations).collect();
        Ok(Planned { operations, outcomes: Some(vec![Outcome::written(put.affected, None)]) })
    }

    pub(super) fn plan_update(&self, engine: &Engine, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        let schema = find_table(newest, &self.table)?.schema().clone();
        let filter = equality(&schema, &self.column, &self.value)?;
        let set = self.assignments(&schema)?;
        if set.is_empty() {
            return Ok(Planned { operations: Vec::new(), outcomes: Some(vec![Outcome::written(0, None)]) });
        }
        let filter = Some(filter);
        plan_one(engine, newest, &Write::Update { table: schema.name.clone(), set, filter, returning: false })
    }

    pub(super) fn plan_delete(&self, engine: &Engine, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        let schema = find_table(newest, &self.table)?.schema().clone();
        let filter = Some(equality(&schema, &self.column, &self.value)?);
        plan_one(engine, newest, &Write::Delete { table: schema.name.clone(), filter, returning: false })
    }
}

fn plan_one(engine: &Engine, newest: &GroupSnapshot, write: &Write) -> Result<Planned, NodeError> {
    let plan = engine.plan_typed_write(newest, write).map_err(sql_error)?;
    Ok(Planned { operations: plan.operations, outcomes: Some(vec![Outcome::written(plan.affected, None)]) })
}
