//! Operations survive their bytes; other bytes are refused.
#![allow(clippy::expect_used)]

use std::sync::Arc;

use arrow::array::RecordBatch;
use cachesql_types::{Column, DataType, Decimal, IndexDefinition, TableSchema, Value, arrow_schema};
use proptest::prelude::*;

use super::*;
use crate::operation::PutMode;
use crate::row::RowKey;
use crate::rows::build::{Layout, array_of};

/// A column of every type.
fn schema() -> TableSchema {
    let types = [
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::Real,
        DataType::Double,
        DataType::Decimal { precision: 38, scale: 3 },
        DataType::Text,
        DataType::Bytea,
        DataType::Date,
        DataType::Time,
        DataType::Timestamp,
        DataType::TimestampTz,
        DataType::Uuid,
        DataType::Json,
    ];
    let column = |data_type: &DataType| Column { name: format!("{data_type}"), data_type: *data_type, nullable: true };
    TableSchema {
        name: "表 \"t\"".into(),
        columns: types.iter().map(column).collect(),
        key: vec![],
        indexes: vec![IndexDefinition { name: "i".into(), columns: vec![300, 2], unique: true }],
    }
}

/// A value of every type, the extremes among them.
fn row() -> Vec<Value> {
    vec![
        Value::Boolean(true),
        Value::SmallInt(i16::MIN),
        Value::Integer(i32::MIN),
        Value::BigInt(i64::MAX),
        Value::Real(-0.0),
        Value::Double(f64::NEG_INFINITY),
        Value::Decimal(Decimal { unscaled: -(10_i128.pow(38) - 1), scale: 3 }),
        Value::text("it's \0 汉字 😀"),
        Value::Bytea([0_u8, 255].as_slice().into()),
        Value::Date(i32::MAX),
        Value::Time(86_400_000_000),
        Value::Timestamp(i64::MIN),
        Value::TimestampTz(-1),
        Value::Uuid([7; 16]),
        Value::Json("{}".into()),
    ]
}

fn batch(rows: &[Vec<Value>]) -> RecordBatch {
    let schema = schema();
    let arrays = schema.columns.iter().enumerate().map(|(c, column)| {
        let cells = rows.iter().map(|r| r.get(c).map_or(Cell::Null, Cell::of_value));
        array_of(column.data_type, Layout::Plain, cells)
    });
    RecordBatch::try_new(Arc::new(arrow_schema(&schema)), arrays.collect()).expect("columns fit")
}

fn every_operation() -> Vec<Operation> {
    let table = || "t".to_owned();
    let nulls = vec![Value::Null; 15];
    vec![
        Operation::CreateTable { schema: schema() },
        Operation::DropTable { table: table() },
        Operation::CreateIndex {
            table: table(),
            index: IndexDefinition { name: "a+b".into(), columns: vec![0, 1], unique: false },
        },
        Operation::DropIndex { table: table(), index: String::new() },
        Operation::Put { table: table(), rows: vec![row(), nulls.clone(), vec![]], mode: PutMode::Insert },
        Operation::Put { table: table(), rows: vec![], mode: PutMode::Upsert },
        Operation::Delete {
            table: table(),
            keys: vec![RowKey::Number(u64::MAX), RowKey::Number(0), RowKey::Columns(row())],
        },
        Operation::Truncate { table: table() },
        Operation::Compact { table: table() },
        Operation::SetRetention { table: table(), ttl_ms: Some(127), max_rows: None },
        Operation::SetRetention { table: table(), ttl_ms: None, max_rows: Some(128) },
        Operation::BeginLoad { schema: schema(), load: 1 },
        Operation::LoadRows { load: 1, batch: batch(&[row(), nulls, row()]) },
        Operation::LoadRows { load: 1, batch: batch(&[]) },
        // Rows from the middle of a larger batch, at an offset that is not a whole byte.
        Operation::LoadRows { load: 1, batch: batch(&vec![row(); 20]).slice(3, 10) },
        Operation::FinishLoad { load: 300 },
        Operation::AbandonLoad { load: u64::MAX },
    ]
}

#[test]
fn every_operation_survives_its_bytes() {
    let operations = every_operation();
    let bytes = Operation::encode(&operations);
    let decoded = Operation::decode(&bytes).expect("own bytes");
    assert_eq!(decoded, operations);
    // `==` of values does not tell -0.0 from 0.0; their bytes do.
    assert_eq!(Operation::encode(&decoded), bytes);
}

#[test]
fn batches_of_other_layouts_arrive_in_the_plain_one() {
    let plain = batch(&[row(), vec![Value::Null; 15]]);
    let texts = arrow::compute::cast(plain.column(7), &arrow::datatypes::DataType::Utf8View).expect("text");
    let field = arrow::datatypes::Field::new("TEXT", texts.data_type().clone(), true);
    let views = RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(vec![field])), vec![texts]).expect("text");
    let decoded = Operation::decode(&Operation::encode(&[Operation::LoadRows { load: 1, batch: views }]));
    let wanted = plain.project(&[7]).expect("text");
    assert_eq!(decoded, Ok(vec![Operation::LoadRows { load: 1, batch: wanted }]));
}

/// The format as it is on other members and on disk: version, count, then tag and content.
#[test]
fn tags_never_change() {
    let bytes = |operation: Operation| Operation::encode(&[operation]);
    let put = |mode| Operation::Put { table: "t".into(), rows: vec![vec![Value::Null, Value::SmallInt(258)]], mode };
    assert_eq!(bytes(put(PutMode::Insert)), [1, 1, 5, 1, b't', 1, 2, 0, 3, 2, 1]);
    assert_eq!(bytes(put(PutMode::Upsert)), [1, 1, 6, 1, b't', 1, 2, 0, 3, 2, 1]);
    assert_eq!(bytes(Operation::DropTable { table: "t".into() }), [1, 1, 2, 1, b't']);
    assert_eq!(bytes(Operation::DropIndex { table: "t".into(), index: "i".into() }), [1, 1, 4, 1, b't', 1, b'i']);
    assert_eq!(bytes(Operation::Truncate { table: "t".into() }), [1, 1, 8, 1, b't']);
    assert_eq!(bytes(Operation::Compact { table: "t".into() }), [1, 1, 9, 1, b't']);
    assert_eq!(bytes(Operation::FinishLoad { load: 300 }), [1, 1, 13, 0xAC, 2]);
    assert_eq!(bytes(Operation::AbandonLoad { load: 1 }), [1, 1, 14, 1]);
    let retention = Operation::SetRetention { table: "t".into(), ttl_ms: Some(1), max_rows: Some(2) };
    assert_eq!(bytes(retention), [1, 1, 10, 1, b't', 3, 1, 2]);
    let keys = vec![RowKey::Columns(vec![Value::Boolean(true)]), RowKey::Number(5)];
    assert_eq!(bytes(Operation::Delete { table: "t".into(), keys }), [1, 1, 7, 1, b't', 2, 1, 1, 2, 2, 5]);
    let index = IndexDefinition { name: "i".into(), columns: vec![4], unique: true };
    let create = Operation::CreateIndex { table: "t".into(), index };
    assert_eq!(bytes(create), [1, 1, 3, 1, b't', 1, b'i', 1, 4, 1]);
    let tags: Vec<u8> = row().iter().flat_map(|v| first_byte(|out| write::cell(out, Cell::of_value(v)))).collect();
    assert_eq!(tags, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    let types = schema().columns.into_iter().flat_map(|c| first_byte(|out| write::data_type(out, c.data_type)));
    assert_eq!(types.collect::<Vec<u8>>(), [17, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
}

fn first_byte(write: impl Fn(&mut Vec<u8>)) -> Option<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out.first().copied()
}

#[test]
fn what_is_cut_off_or_appended_is_refused() {
    let mut bytes = Operation::encode(&every_operation());
    for length in 0..bytes.len() {
        let cut = bytes.get(..length).expect("shorter");
        assert!(Operation::decode(cut).is_err(), "{length} bytes of {}", bytes.len());
    }
    bytes.push(0);
    assert_eq!(Operation::decode(&bytes), Err(DecodeError::Trailing { bytes: 1 }));
}

#[test]
fn a_flipped_bit_is_refused_or_means_something_else() {
    for operation in every_operation() {
        let bytes = Operation::encode(&[operation]);
        for place in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[place / 8] ^= 1 << (place % 8);
            if let Ok(operations) = Operation::decode(&flipped) {
                let again = Operation::decode(&Operation::encode(&operations));
                assert_eq!(again.map(|o| o.len()), Ok(operations.len()));
            }
        }
    }
}

#[test]
fn lengths_beyond_the_input_are_refused_before_anything_is_allocated() {
    let huge = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
    let with = |start: &[u8]| Operation::decode(&[start, &huge].concat());
    assert_eq!(with(&[1]), Err(DecodeError::Truncated), "operations");
    assert_eq!(with(&[1, 1, 2]), Err(DecodeError::Truncated), "a name");
    assert_eq!(with(&[1, 1, 5, 1, b't']), Err(DecodeError::Truncated), "rows");
    assert_eq!(with(&[1, 1, 5, 1, b't', 1]), Err(DecodeError::Truncated), "values");
    let rows = [&[1, 1, 12, 1][..], &huge, &[1, 1, b'c', 3, 0, 0]].concat();
    assert_eq!(Operation::decode(&rows), Err(DecodeError::Truncated), "rows of a batch");
    let bits = [&[1, 1, 12, 1][..], &huge, &[1, 1, b'c', 17, 1, 1]].concat();
    assert_eq!(Operation::decode(&bits), Err(DecodeError::Truncated), "bits of a batch");
    assert_eq!(Operation::decode(&[2, 0]), Err(DecodeError::Version { version: 2 }));
    assert!(matches!(Operation::decode(&[1, 0x80, 0]), Err(DecodeError::Malformed { .. })), "a padded number");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Operation::decode(&bytes);
        let batch: Vec<u8> = [1, 1, 12, 1].into_iter().chain(bytes).collect();
        let _ = Operation::decode(&batch);
    }

    #[test]
    fn overwritten_bytes_never_panic(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = Operation::encode(&every_operation());
        for (place, byte) in places {
            let length = bytes.len();
            bytes[place.index(length)] = byte;
        }
        let _ = Operation::decode(&bytes);
    }

    #[test]
    fn texts_and_numbers_survive(text in ".*", number in any::<u64>(), double in any::<u64>(), unscaled in -(10_i128.pow(37))..10_i128.pow(37)) {
        let double = f64::from_bits(double);
        let values = vec![Value::text(text.as_str()), Value::Double(double), Value::Decimal(Decimal { unscaled, scale: 5 })];
        let operations = vec![
            Operation::Put { table: text, rows: vec![values], mode: PutMode::Insert },
            Operation::AbandonLoad { load: number },
        ];
        let bytes = Operation::encode(&operations);
        let decoded = Operation::decode(&bytes).expect("own bytes");
        prop_assert_eq!(&decoded, &operations);
        prop_assert_eq!(Operation::encode(&decoded), bytes);
    }
}
