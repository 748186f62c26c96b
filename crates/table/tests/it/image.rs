//! Snapshots written out and read again.

use cachesql_table::{GroupSnapshot, ImageError, ImageReader, Operation, PutMode};
use cachesql_types::{Column, DataType, TableSchema, Value};

use crate::arrays::batch_of;

fn schema(name: &str, key: &[usize]) -> TableSchema {
    let column = |name: &str, data_type| Column { name: name.into(), data_type, nullable: true };
    let mut columns = vec![column("id", DataType::BigInt), column("text", DataType::Text)];
    key.iter().for_each(|at| columns[*at].nullable = false);
    TableSchema { name: name.into(), columns, key: key.to_vec(), indexes: vec![] }
}

fn rows(ids: std::ops::Range<i64>) -> Vec<Vec<Value>> {
    ids.map(|id| vec![Value::BigInt(id), Value::text(id.to_string())]).collect()
}

fn applied(snapshot: &GroupSnapshot, operations: &[Operation]) -> GroupSnapshot {
    snapshot.apply(snapshot.index().next(), operations).expect("operations that fit").0
}

/// Two tables, one of them without primary key and with retention, and a load under way.
fn everything() -> GroupSnapshot {
    let put = |table: &str| Operation::Put { table: table.into(), rows: rows(0..9_000), mode: PutMode::Insert };
    applied(
        &GroupSnapshot::empty(),
        &[
            Operation::CreateTable { schema: schema("keyed", &[0]) },
            Operation::CreateTable { schema: schema("loose", &[]) },
            Operation::SetRetention { table: "loose".into(), ttl_ms: Some(7), max_rows: Some(1 << 40) },
            put("keyed"),
            put("loose"),
            Operation::BeginLoad { schema: schema("keyed", &[0]), load: 3 },
            Operation::LoadRows { load: 3, batch: batch_of(&schema("keyed", &[0]), &rows(0..10_000)) },
            Operation::BeginLoad { schema: schema("new", &[0]), load: 4 },
        ],
    )
}

fn read(pieces: &[Vec<u8>]) -> Result<GroupSnapshot, ImageError> {
    let mut reader = ImageReader::new();
    pieces.iter().try_for_each(|piece| reader.push(piece))?;
    reader.finish()
}

#[test]
fn retention_and_loads_go_on() {
    let before = everything();
    let after = read(&before.image().collect::<Vec<_>>()).expect("own pieces");
    assert_eq!(after.loads().collect::<Vec<_>>(), [(3, "keyed", 10_000), (4, "new", 0)]);
    assert_eq!(after.table("loose").map(|t| t.retention()), before.table("loose").map(|t| t.retention()));
    // The next row of the table without a key has the number that it would have had.
    let put = Operation::Put { table: "loose".into(), rows: rows(0..1), mode: PutMode::Insert };
    for snapshot in [&before, &after] {
        let next = applied(snapshot, std::slice::from_ref(&put));
        let table = next.table("loose").expect("there");
        assert_eq!(table.row_key(table.rows().last().expect("rows")), Some(cachesql_table::RowKey::Number(9_000)));
    }
    let finished = applied(&after, &[Operation::FinishLoad { load: 3 }, Operation::FinishLoad { load: 4 }]);
    let counts: Vec<u64> = finished.tables().map(|t| t.row_count()).collect();
    assert_eq!(counts, [10_000, 9_000, 0]);
}

#[test]
fn pieces_that_are_missing_cut_or_out_of_order_are_refused() {
    let pieces: Vec<Vec<u8>> = everything().image().collect();
    assert!(read(&pieces).is_ok());
    assert!(matches!(read(&[]), Err(ImageError::Order(_))));
    for at in 0..pieces.len() {
        let mut swapped = pieces.clone();
        let last = swapped.len() - 1;
        swapped.swap(at, last);
        assert!(at == last || read(&swapped).is_err(), "piece {at} at the end");
        let mut cut = pieces.clone();
        cut[at].pop();
        assert!(read(&cut).is_err(), "piece {at} without its last byte");
        let mut longer = pieces.clone();
        longer[at].push(0);
        assert!(read(&longer).is_err(), "piece {at} with a byte more");
        let mut doubled = pieces.clone();
        doubled.insert(at, pieces[at].clone());
        // Rows that come twice are not told from rows that are there twice, but for their keys and numbers.
        let is_staged = (7..9).contains(&at);
        assert!(is_staged || read(&doubled).is_err(), "piece {at} twice");
    }
}

#[test]
fn bytes_that_are_wrong_never_panic() {
    let pieces: Vec<Vec<u8>> = everything().image().collect();
    let mut state = 7_u64;
    for _ in 0..2_000 {
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % below
        };
        let mut broken = pieces.clone();
        let at = random(broken.len());
        // The heads, where lengths and tags are.
        let byte = random(broken[at].len().min(64));
        broken[at][byte] ^= 1 << random(8);
        // What is still in order is taken, whatever it says; all else is an error.
        let _ = read(&broken);
    }
}
