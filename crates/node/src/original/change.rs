//! The original's insert, update and delete, as data, and planned in the writer's turn.

use cachesql_sql::{Engine, Filter, OnConflict, Write};
use cachesql_table::GroupSnapshot;
use cachesql_types::{TableSchema, Value};

use super::text::{column_value, equality};
use crate::bytes_of::{ReadError, put_list, put_text, take_byte, take_list, take_text};
use crate::core::{find_table, sql_error};
use crate::error::NodeError;
use crate::node::request_key;
use crate::outcome::Outcome;
use crate::remembered::RequestKey;
use crate::request::RequestOptions;
use crate::writer::Planned;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Insert,
    Update,
    Delete,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Insert => "insert",
            Kind::Update => "update",
            Kind::Delete => "delete",
        }
    }
}

/// In the order of their numbers on the wire, from 1. They never change.
const KINDS: [(u8, Kind); 3] = [(1, Kind::Insert), (2, Kind::Update), (3, Kind::Delete)];

/// One insert, update or delete, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    what: Kind,
    table: String,
    column: String,
    value: String,
    others: Vec<(String, String)>,
}

impl Change {
    pub(super) fn new(what: Kind, table: &str, column: &str, value: &str, others: &[(String, String)]) -> Change {
        Change { what, table: table.into(), column: column.into(), value: value.into(), others: others.to_vec() }
    }

    /// The table that it is for.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// Makes operations of it.
    pub(crate) fn plan(&self, engine: &Engine, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        match self.what {
            Kind::Insert => self.plan_insert(engine, newest),
            Kind::Update => self.plan_update(engine, newest),
            Kind::Delete => self.plan_delete(engine, newest),
        }
    }

    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        out.extend(KINDS.iter().filter(|(_, kind)| *kind == self.what).map(|(number, _)| *number));
        [&self.table, &self.column, &self.value].into_iter().for_each(|text| put_text(out, text));
        put_list(out, &self.others, |out, (column, value)| {
            put_text(out, column);
            put_text(out, value);
        });
    }

    pub(crate) fn read_from(rest: &mut &[u8]) -> Result<Change, ReadError> {
        let number = take_byte(rest)?;
        let what = KINDS.iter().find(|(known, _)| *known == number).ok_or(ReadError::Tag(number))?.1;
        let (table, column, value) = (take_text(rest)?, take_text(rest)?, take_text(rest)?);
        let others = take_list(rest, |rest| Ok((take_text(rest)?, take_text(rest)?)))?;
        Ok(Change { what, table, column, value, others })
    }

    /// The key that a retry is known by.
    pub(super) fn key(&self, options: &RequestOptions) -> Result<Option<RequestKey>, NodeError> {
        let Change { what, table, column, value, others } = self;
        request_key(options, || format!("{:?}", (what.word(), table, column, value, others)))
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

    fn plan_insert(&self, engine: &Engine, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
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

    fn plan_update(&self, engine: &Engine, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        let schema = find_table(newest, &self.table)?.schema().clone();
        let filter = equality(&schema, &self.column, &self.value)?;
        let set = self.assignments(&schema)?;
        if set.is_empty() {
            return Ok(Planned { operations: Vec::new(), outcomes: Some(vec![Outcome::written(0, None)]) });
        }
        let filter = Some(filter);
        plan_one(engine, newest, &Write::Update { table: schema.name.clone(), set, filter, returning: false })
    }

    fn plan_delete(&self, engine: &Engine, newest: &GroupSnapshot) -> Result<Planned, NodeError> {
        let schema = find_table(newest, &self.table)?.schema().clone();
        let filter = Some(equality(&schema, &self.column, &self.value)?);
        plan_one(engine, newest, &Write::Delete { table: schema.name.clone(), filter, returning: false })
    }
}

fn plan_one(engine: &Engine, newest: &GroupSnapshot, write: &Write) -> Result<Planned, NodeError> {
    let plan = engine.plan_typed_write(newest, write).map_err(sql_error)?;
    Ok(Planned { operations: plan.operations, outcomes: Some(vec![Outcome::written(plan.affected, None)]) })
}
