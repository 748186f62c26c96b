//! Writing operations.

use cachesql_types::{DataType, IndexDefinition, TableSchema, Value};

use super::{batch, flag, key_tag, operation_tag, type_tag, value_tag};
use crate::cell::Cell;
use crate::operation::{Operation, PutMode};
use crate::row::RowKey;

pub(super) fn number(out: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    loop {
        let low = u8::try_from(rest & 0x7F).unwrap_or(0);
        rest >>= 7;
        if rest == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

pub(super) fn count(out: &mut Vec<u8>, value: usize) {
    number(out, value as u64);
}

pub(super) fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    count(out, value.len());
    out.extend_from_slice(value);
}

pub(super) fn data_type(out: &mut Vec<u8>, value: DataType) {
    out.push(type_tag(value));
    if let DataType::Decimal { precision, scale } = value {
        out.extend_from_slice(&[precision, scale]);
    }
}

pub(super) fn cell(out: &mut Vec<u8>, value: Cell<'_>) {
    macro_rules! fixed {
        ($tag:ident, $bytes:expr) => {{
            out.push(value_tag::$tag);
            out.extend_from_slice(&$bytes)
        }};
    }
    match value {
        Cell::Null => out.push(value_tag::NULL),
        Cell::Boolean(false) => out.push(value_tag::FALSE),
        Cell::Boolean(true) => out.push(value_tag::TRUE),
        Cell::SmallInt(v) => fixed!(SMALLINT, v.to_le_bytes()),
        Cell::Integer(v) => fixed!(INTEGER, v.to_le_bytes()),
        Cell::BigInt(v) => fixed!(BIGINT, v.to_le_bytes()),
        Cell::Real(v) => fixed!(REAL, v.to_bits().to_le_bytes()),
        Cell::Double(v) => fixed!(DOUBLE, v.to_bits().to_le_bytes()),
        Cell::Decimal(v) => {
            fixed!(DECIMAL, v.unscaled.to_le_bytes());
            out.push(v.scale);
        }
        Cell::Date(v) => fixed!(DATE, v.to_le_bytes()),
        Cell::Time(v) => fixed!(TIME, v.to_le_bytes()),
        Cell::Timestamp(v) => fixed!(TIMESTAMP, v.to_le_bytes()),
        Cell::TimestampTz(v) => fixed!(TIMESTAMPTZ, v.to_le_bytes()),
        Cell::Uuid(v) => fixed!(UUID, v),
        Cell::Text(v) => {
            out.push(value_tag::TEXT);
            bytes(out, v.as_bytes());
        }
        Cell::Json(v) => {
            out.push(value_tag::JSON);
            bytes(out, v.as_bytes());
        }
        Cell::Bytea(v) => {
            out.push(value_tag::BYTEA);
            bytes(out, v);
        }
    }
}

/// Appends values, with their number: a count, and each as its type has it.
pub fn encode_values(out: &mut Vec<u8>, values: &[Value]) {
    row(out, values);
}

fn row(out: &mut Vec<u8>, values: &[Value]) {
    count(out, values.len());
    values.iter().for_each(|v| cell(out, Cell::of_value(v)));
}

fn positions(out: &mut Vec<u8>, columns: &[usize]) {
    count(out, columns.len());
    columns.iter().for_each(|c| count(out, *c));
}

fn index(out: &mut Vec<u8>, index: &IndexDefinition) {
    bytes(out, index.name.as_bytes());
    positions(out, &index.columns);
    out.push(if index.unique { flag::UNIQUE } else { 0 });
}

pub(super) fn schema(out: &mut Vec<u8>, schema: &TableSchema) {
    bytes(out, schema.name.as_bytes());
    count(out, schema.columns.len());
    for column in &schema.columns {
        bytes(out, column.name.as_bytes());
        data_type(out, column.data_type);
        out.push(if column.nullable { flag::NULLABLE } else { 0 });
    }
    positions(out, &schema.key);
    count(out, schema.indexes.len());
    schema.indexes.iter().for_each(|i| index(out, i));
}

fn key(out: &mut Vec<u8>, key: &RowKey) {
    match key {
        RowKey::Columns(values) => {
            out.push(key_tag::COLUMNS);
            row(out, values);
        }
        RowKey::Number(n) => {
            out.push(key_tag::NUMBER);
            number(out, *n);
        }
    }
}

pub(super) fn retention(out: &mut Vec<u8>, ttl_ms: Option<u64>, max_rows: Option<u64>) {
    out.push(ttl_ms.map_or(0, |_| flag::TTL) | max_rows.map_or(0, |_| flag::MAX_ROWS));
    ttl_ms.into_iter().chain(max_rows).for_each(|n| number(out, n));
}

fn tagged(out: &mut Vec<u8>, tag: u8, table: &str) {
    out.push(tag);
    bytes(out, table.as_bytes());
}

fn numbered(out: &mut Vec<u8>, tag: u8, load: u64) {
    out.push(tag);
    number(out, load);
}

pub(super) fn operation(out: &mut Vec<u8>, operation: &Operation) {
    match operation {
        Operation::CreateTable { schema: shape } => {
            out.push(operation_tag::CREATE_TABLE);
            schema(out, shape);
        }
        Operation::DropTable { table } => tagged(out, operation_tag::DROP_TABLE, table),
        Operation::CreateIndex { table, index: definition } => {
            tagged(out, operation_tag::CREATE_INDEX, table);
            index(out, definition);
        }
        Operation::DropIndex { table, index } => {
            tagged(out, operation_tag::DROP_INDEX, table);
            bytes(out, index.as_bytes());
        }
        Operation::Put { table, rows, mode } => {
            let tag = match mode {
                PutMode::Insert => operation_tag::PUT_INSERT,
                PutMode::Upsert => operation_tag::PUT_UPSERT,
            };
            tagged(out, tag, table);
            count(out, rows.len());
            rows.iter().for_each(|r| row(out, r));
        }
        Operation::Delete { table, keys } => {
            tagged(out, operation_tag::DELETE, table);
            count(out, keys.len());
            keys.iter().for_each(|k| key(out, k));
        }
        Operation::Truncate { table } => tagged(out, operation_tag::TRUNCATE, table),
        Operation::Compact { table } => tagged(out, operation_tag::COMPACT, table),
        Operation::SetRetention { table, ttl_ms, max_rows } => {
            tagged(out, operation_tag::SET_RETENTION, table);
            retention(out, *ttl_ms, *max_rows);
        }
        Operation::BeginLoad { schema: shape, load } => {
            numbered(out, operation_tag::BEGIN_LOAD, *load);
            schema(out, shape);
        }
        Operation::LoadRows { load, batch: rows } => {
            numbered(out, operation_tag::LOAD_ROWS, *load);
            batch::write(out, rows);
        }
        Operation::FinishLoad { load } => numbered(out, operation_tag::FINISH_LOAD, *load),
        Operation::AbandonLoad { load } => numbered(out, operation_tag::ABANDON_LOAD, *load),
    }
}
