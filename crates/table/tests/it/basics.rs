//! One behaviour at a time, by example.

use cachesql_table::{ApplyError, GroupSnapshot, IndexRange, Operation, PutMode, Refusal, RowKey};
use cachesql_types::{Column, DataType, IndexDefinition, LogIndex, TableSchema, Value};

fn schema() -> TableSchema {
    let column = |name: &str, data_type, nullable| Column { name: name.into(), data_type, nullable };
    TableSchema {
        name: "people".into(),
        columns: vec![
            column("id", DataType::BigInt, false),
            column("name", DataType::Text, true),
            column("badge", DataType::Integer, true),
        ],
        key: vec![0],
        indexes: vec![
            IndexDefinition { name: "name".into(), columns: vec![1], unique: false },
            IndexDefinition { name: "badge".into(), columns: vec![2], unique: true },
        ],
    }
}

fn person(id: i64, name: &str, badge: i32) -> Vec<Value> {
    vec![Value::BigInt(id), Value::text(name), Value::Integer(badge)]
}

fn put(rows: Vec<Vec<Value>>, mode: PutMode) -> Operation {
    Operation::Put { table: "people".into(), rows, mode }
}

fn apply(snapshot: &GroupSnapshot, operations: &[Operation]) -> Result<GroupSnapshot, ApplyError> {
    snapshot.apply(snapshot.index().next(), operations).map(|(next, _)| next)
}

fn people() -> GroupSnapshot {
    let created = apply(&GroupSnapshot::empty(), &[Operation::CreateTable { schema: schema() }]).expect("create");
    let rows = vec![person(1, "Ann", 10), person(2, "Bob", 20), person(3, "Ann", 30)];
    apply(&created, &[put(rows, PutMode::Insert)]).expect("insert")
}

fn ids(snapshot: &GroupSnapshot, index: usize, range: &IndexRange) -> Vec<i64> {
    let table = snapshot.table("PEOPLE").expect("any case");
    let rows = table.indexes()[index].select(range);
    rows.map(|id| table.row(id).expect("live").value(0).as_i64().expect("id")).collect()
}

#[test]
fn rows_are_found_by_key_and_by_index() {
    let snapshot = people();
    let table = snapshot.table("people").expect("there");
    let id = table.get(&[Value::BigInt(2)]).expect("Bob");
    assert_eq!(table.row(id).expect("live").values(), person(2, "Bob", 20));
    assert_eq!(table.row_key(id), Some(RowKey::Columns(vec![Value::BigInt(2)])));
    assert!(table.get(&[Value::BigInt(4)]).is_none());
    assert_eq!(ids(&snapshot, 1, &IndexRange::equal(&[Value::text("Ann")])), [1, 3]);
    assert_eq!(table.memory(), table.count_memory());
}

#[test]
fn a_refused_write_changes_nothing() {
    let before = people();
    let operations =
        [put(vec![person(4, "Dan", 40)], PutMode::Insert), put(vec![person(5, "Eve", 40)], PutMode::Insert)];
    let refused = apply(&before, &operations).err().expect("badge 40 twice");
    let expected = Refusal::DuplicateKey {
        table: "people".into(),
        index: "badge".into(),
        columns: "badge".into(),
        key: "40".into(),
    };
    assert_eq!(refused, ApplyError::Refused(expected));
    let after = apply(&before, &[put(vec![person(6, "Fay", 40)], PutMode::Insert)]).expect("40 is free");
    assert_eq!(ids(&after, 0, &IndexRange::all()), [1, 2, 3, 6]);
    assert_eq!(ids(&before, 0, &IndexRange::all()), [1, 2, 3]);
}

#[test]
fn rows_may_exchange_unique_keys_in_one_write() {
    let swapped = apply(&people(), &[put(vec![person(1, "Ann", 20), person(2, "Bob", 10)], PutMode::Upsert)]);
    let swapped = swapped.expect("permutation");
    assert_eq!(ids(&swapped, 2, &IndexRange::all()), [2, 1, 3]);
    let key = |id| RowKey::Columns(vec![Value::BigInt(id)]);
    let delete = Operation::Delete { table: "people".into(), keys: vec![key(1), key(2)] };
    let again = apply(&swapped, &[delete, put(vec![person(2, "Ann", 10), person(1, "Bob", 20)], PutMode::Insert)]);
    assert_eq!(ids(&again.expect("delete, then put"), 2, &IndexRange::all()), [2, 1, 3]);
}

#[test]
fn the_last_row_of_a_key_wins_within_an_upsert() {
    let rows = vec![person(9, "first", 90), person(8, "other", 91), person(9, "last", 92)];
    let (after, applied) = people().apply(LogIndex(9), &[put(rows, PutMode::Upsert)]).expect("upsert");
    assert_eq!(applied[0].rows, 2);
    assert_eq!(ids(&after, 1, &IndexRange::equal(&[Value::text("first")])), [0_i64; 0]);
    assert_eq!(ids(&after, 1, &IndexRange::equal(&[Value::text("last")])), [9]);
}

#[test]
fn a_log_index_that_does_not_grow_stops_the_member() {
    let snapshot = people();
    assert!(matches!(snapshot.apply(snapshot.index(), &[]), Err(ApplyError::Fenced(_))));
}
