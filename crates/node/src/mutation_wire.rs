//! A change as bytes, from the member that was asked for it to the one that leads. These numbers never change.

use std::sync::Arc;

use cachesql_sql::{Comparison, Filter, OnConflict, Operand, Write};
use cachesql_types::limits;

use crate::bytes_of::{
    ReadError, put_count, put_flag, put_list, put_number, put_optional, put_tagged, put_text, put_values, take_byte,
    take_count, take_flag, take_list, take_number, take_optional, take_text, take_values,
};
use crate::mutation::{Mutation, Shape};
use crate::original::Change;
use crate::request::Statement;

const STATEMENTS: u8 = 1;
const TYPED: u8 = 2;
const ORIGINAL: u8 = 3;
const RETENTION: u8 = 4;
const TRUNCATE: u8 = 5;
const COMPACT: u8 = 6;

impl Mutation {
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Mutation::Statements(statements) => {
                out.push(STATEMENTS);
                put_list(out, statements, |out, Statement { sql, params }| {
                    put_text(out, sql);
                    put_values(out, params);
                });
            }
            Mutation::Typed(write, shape) => {
                out.push(TYPED);
                put_number(out, shape.mark());
                put_write(out, write);
            }
            Mutation::Original(change) => {
                out.push(ORIGINAL);
                change.write_to(out);
            }
            Mutation::Retention { table, ttl_ms, max_rows } => {
                out.push(RETENTION);
                put_text(out, table);
                for limit in [ttl_ms, max_rows] {
                    put_optional(out, *limit, |out, limit| put_optional(out, limit, put_number));
                }
            }
            Mutation::Truncate(table) => put_tagged(out, TRUNCATE, table),
            Mutation::Compact(table) => put_tagged(out, COMPACT, table),
        }
    }

    pub(crate) fn read_from(rest: &mut &[u8]) -> Result<Mutation, ReadError> {
        let limit = |rest: &mut &[u8]| take_optional(rest, |rest| take_optional(rest, take_number));
        Ok(match take_byte(rest)? {
            STATEMENTS => {
                let statement = |rest: &mut &[u8]| Ok(Statement { sql: take_text(rest)?, params: take_values(rest)? });
                Mutation::Statements(Arc::new(take_list(rest, statement)?))
            }
            TYPED => {
                let shape = Shape::Elsewhere(take_number(rest)?);
                Mutation::Typed(Arc::new(take_write(rest)?), shape)
            }
            ORIGINAL => Mutation::Original(Arc::new(Change::read_from(rest)?)),
            RETENTION => Mutation::Retention { table: take_text(rest)?, ttl_ms: limit(rest)?, max_rows: limit(rest)? },
            TRUNCATE => Mutation::Truncate(take_text(rest)?),
            COMPACT => Mutation::Compact(take_text(rest)?),
            unknown => return Err(ReadError::Tag(unknown)),
        })
    }
}

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const WRITE_TRUNCATE: u8 = 4;

fn put_write(out: &mut Vec<u8>, write: &Write) {
    match write {
        Write::Insert { table, columns, rows, on_conflict, returning } => {
            put_tagged(out, INSERT, table);
            put_columns(out, columns);
            put_list(out, rows, |out, row| put_values(out, row));
            put_conflict(out, on_conflict);
            put_flag(out, *returning);
        }
        Write::Update { table, set, filter, returning } => {
            put_tagged(out, UPDATE, table);
            put_list(out, set, |out, (column, value)| {
                put_count(out, *column);
                put_values(out, std::slice::from_ref(value));
            });
            put_optional(out, filter.as_ref(), put_filter);
            put_flag(out, *returning);
        }
        Write::Delete { table, filter, returning } => {
            put_tagged(out, DELETE, table);
            put_optional(out, filter.as_ref(), put_filter);
            put_flag(out, *returning);
        }
        Write::Truncate { table } => put_tagged(out, WRITE_TRUNCATE, table),
    }
}

fn take_write(rest: &mut &[u8]) -> Result<Write, ReadError> {
    let tag = take_byte(rest)?;
    let table = take_text(rest)?;
    let filter = |rest: &mut &[u8]| take_optional(rest, |rest| take_filter(rest, 0));
    Ok(match tag {
        INSERT => Write::Insert {
            table,
            columns: take_list(rest, take_count)?,
            rows: take_list(rest, take_values)?,
            on_conflict: take_conflict(rest)?,
            returning: take_flag(rest)?,
        },
        UPDATE => Write::Update {
            table,
            set: take_list(rest, |rest| Ok((take_count(rest)?, take_one_value(rest)?)))?,
            filter: filter(rest)?,
            returning: take_flag(rest)?,
        },
        DELETE => Write::Delete { table, filter: filter(rest)?, returning: take_flag(rest)? },
        WRITE_TRUNCATE => Write::Truncate { table },
        unknown => return Err(ReadError::Tag(unknown)),
    })
}

fn take_one_value(rest: &mut &[u8]) -> Result<cachesql_types::Value, ReadError> {
    match <[_; 1]>::try_from(take_values(rest)?) {
        Ok([value]) => Ok(value),
        Err(_) => Err(ReadError::Truncated),
    }
}

fn put_columns(out: &mut Vec<u8>, columns: &[usize]) {
    put_list(out, columns, |out, column| put_count(out, *column));
}

const REFUSE: u8 = 1;
const DO_NOTHING: u8 = 2;
const REPLACE: u8 = 3;

fn put_conflict(out: &mut Vec<u8>, conflict: &OnConflict) {
    let (tag, columns): (u8, &[usize]) = match conflict {
        OnConflict::Refuse => (REFUSE, &[]),
        OnConflict::DoNothing { columns } => (DO_NOTHING, columns),
        OnConflict::Replace { columns } => (REPLACE, columns),
    };
    out.push(tag);
    put_columns(out, columns);
}

fn take_conflict(rest: &mut &[u8]) -> Result<OnConflict, ReadError> {
    let tag = take_byte(rest)?;
    let columns = take_list(rest, take_count)?;
    match tag {
        REFUSE => Ok(OnConflict::Refuse),
        DO_NOTHING => Ok(OnConflict::DoNothing { columns }),
        REPLACE => Ok(OnConflict::Replace { columns }),
        unknown => Err(ReadError::Tag(unknown)),
    }
}

const AND: u8 = 1;
const OR: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const IN: u8 = 5;
const LIKE: u8 = 6;
const IS_NULL: u8 = 7;
const IS_BOOLEAN: u8 = 8;

/// In the order of their numbers, from 0.
const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

fn put_filter(out: &mut Vec<u8>, filter: &Filter) {
    match filter {
        Filter::And(parts) => {
            out.push(AND);
            put_list(out, parts, put_filter);
        }
        Filter::Or(parts) => {
            out.push(OR);
            put_list(out, parts, put_filter);
        }
        Filter::Not(inner) => {
            out.push(NOT);
            put_filter(out, inner);
        }
        Filter::Compare { column, op, operand } => {
            out.push(COMPARE);
            put_count(out, *column);
            let number = COMPARISONS.iter().position(|known| known == op).unwrap_or(COMPARISONS.len());
            out.push(u8::try_from(number).unwrap_or(u8::MAX));
            put_operand(out, operand);
        }
        Filter::In { column, operands } => {
            out.push(IN);
            put_count(out, *column);
            put_list(out, operands, put_operand);
        }
        Filter::Like { column, pattern, case_insensitive, escape } => {
            out.push(LIKE);
            put_count(out, *column);
            put_operand(out, pattern);
            put_flag(out, *case_insensitive);
            put_optional(out, *escape, |out, escape| put_number(out, u64::from(u32::from(escape))));
        }
        Filter::IsNull { column } => {
            out.push(IS_NULL);
            put_count(out, *column);
        }
        Filter::IsBoolean { column, value } => {
            out.push(IS_BOOLEAN);
            put_count(out, *column);
            put_flag(out, *value);
        }
    }
}

fn take_filter(rest: &mut &[u8], depth: usize) -> Result<Filter, ReadError> {
    if depth > limits::FORWARDED_FILTER_DEPTH {
        return Err(ReadError::TooDeep);
    }
    let parts = |rest: &mut &[u8]| take_list(rest, |rest| take_filter(rest, depth + 1));
    Ok(match take_byte(rest)? {
        AND => Filter::And(parts(rest)?),
        OR => Filter::Or(parts(rest)?),
        NOT => Filter::Not(Box::new(take_filter(rest, depth + 1)?)),
        COMPARE => {
            let column = take_count(rest)?;
            let number = take_byte(rest)?;
            let op = COMPARISONS.get(usize::from(number)).copied().ok_or(ReadError::Tag(number))?;
            Filter::Compare { column, op, operand: take_operand(rest)? }
        }
        IN => Filter::In { column: take_count(rest)?, operands: take_list(rest, take_operand)? },
        LIKE => Filter::Like {
            column: take_count(rest)?,
            pattern: take_operand(rest)?,
            case_insensitive: take_flag(rest)?,
            escape: take_optional(rest, take_character)?,
        },
        IS_NULL => Filter::IsNull { column: take_count(rest)? },
        IS_BOOLEAN => Filter::IsBoolean { column: take_count(rest)?, value: take_flag(rest)? },
        unknown => return Err(ReadError::Tag(unknown)),
    })
}

fn take_character(rest: &mut &[u8]) -> Result<char, ReadError> {
    let number = take_number(rest)?;
    u32::try_from(number).ok().and_then(char::from_u32).ok_or(ReadError::Text)
}

const VALUE: u8 = 1;
const PARAMETER: u8 = 2;

fn put_operand(out: &mut Vec<u8>, operand: &Operand) {
    match operand {
        Operand::Value(value) => {
            out.push(VALUE);
            put_values(out, std::slice::from_ref(value));
        }
        Operand::Parameter(number) => {
            out.push(PARAMETER);
            put_count(out, *number);
        }
    }
}

fn take_operand(rest: &mut &[u8]) -> Result<Operand, ReadError> {
    match take_byte(rest)? {
        VALUE => take_one_value(rest).map(Operand::Value),
        PARAMETER => take_count(rest).map(Operand::Parameter),
        unknown => Err(ReadError::Tag(unknown)),
    }
}

#[cfg(test)]
#[path = "mutation_wire_tests.rs"]
mod tests;
