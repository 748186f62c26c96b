//! One behaviour at a time, by example.

use cachesql_table::{ApplyError, GroupSnapshot, IndexRange, Operation, PutMode, Refusal, RowKey};
use cachesql_types::{Column, DataType, IndexDefinition, LogIndex, TableSchema, Value, limits};

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

fn load_of(rows: &[Vec<Value>], load: u64) -> Vec<Operation> {
    let batch = crate::arrays::batch_of(&schema(), rows);
    vec![Operation::BeginLoad { schema: schema(), load }, Operation::LoadRows { load, batch }]
}

#[test]
fn a_load_makes_its_table_when_it_is_complete() {
    let begun = apply(&GroupSnapshot::empty(), &load_of(&[person(1, "Ann", 1)], 5)).expect("begin");
    assert!(begun.table("people").is_none(), "readers never see it empty");
    assert_eq!(begun.loads().collect::<Vec<_>>(), [(5, "people", 1)]);
    assert!(begun.memory().staged_bytes > 0);
    let finished = apply(&begun, &[Operation::FinishLoad { load: 5 }]).expect("finish");
    assert_eq!(ids(&finished, 1, &IndexRange::equal(&[Value::text("Ann")])), [1]);
    assert_eq!(finished.definitions(), finished.index());
    assert_eq!(finished.memory().staged_bytes, 0);
    let unknown = apply(&finished, &[Operation::FinishLoad { load: 5 }]).err();
    assert_eq!(unknown, Some(ApplyError::Refused(Refusal::UnknownLoad { load: 5 })));
}

/// The indexes of many rows are built side by side, and hold what they would hold otherwise.
#[test]
fn a_large_load_has_all_its_indexes() {
    let count = i64::try_from(limits::SIDE_BY_SIDE_ROWS).expect("a number") + 1_000;
    let rows = |twice: Option<i32>| -> Vec<Vec<Value>> {
        let badge = |id: i64| twice.filter(|_| id == count - 1).unwrap_or(i32::try_from(count - id).expect("small"));
        (0..count).map(|id| person(id, &format!("name {}", id % 7), badge(id))).collect()
    };
    let begun = apply(&GroupSnapshot::empty(), &load_of(&rows(None), 5)).expect("begin");
    let loaded = apply(&begun, &[Operation::FinishLoad { load: 5 }]).expect("finish");
    assert_eq!(ids(&loaded, 0, &IndexRange::equal(&[Value::BigInt(count - 2)])), [count - 2]);
    let fours: Vec<i64> = (0..count).filter(|id| id % 7 == 4).collect();
    assert_eq!(ids(&loaded, 1, &IndexRange::equal(&[Value::text("name 4")])), fours);
    let badges: Vec<i64> = (0..count).rev().collect();
    assert_eq!(ids(&loaded, 2, &IndexRange::all()), badges, "in the order of their badges");
    assert_eq!(loaded.table("people").map(|table| table.count_memory() == table.memory()), Some(true));

    let begun = apply(&GroupSnapshot::empty(), &load_of(&rows(Some(9)), 5)).expect("begin");
    let refused = apply(&begun, &[Operation::FinishLoad { load: 5 }]).err().expect("badge 9 twice");
    let ApplyError::Refused(Refusal::DuplicateKey { index, key, .. }) = refused else { panic!("{refused}") };
    assert_eq!((index.as_str(), key.as_str()), ("badge", "9"));
}

#[test]
fn a_load_that_is_refused_leaves_the_old_rows() {
    let begun = apply(&people(), &load_of(&[person(7, "Gus", 1), person(7, "Gus", 2)], 5)).expect("begin");
    let refused = apply(&begun, &[Operation::FinishLoad { load: 5 }]).err().expect("two rows of key 7");
    assert!(matches!(refused, ApplyError::Refused(Refusal::DuplicateKey { ref key, .. }) if key == "7"), "{refused}");
    assert_eq!(ids(&begun, 0, &IndexRange::all()), [1, 2, 3]);
    let mut other = schema();
    other.columns[1].data_type = DataType::Json;
    let refused = apply(&begun, &[Operation::BeginLoad { schema: other, load: 6 }]).err();
    assert!(matches!(refused, Some(ApplyError::Refused(Refusal::Batch { .. }))));
    let dropped = apply(&begun, &[Operation::DropTable { table: "people".into() }]).expect("drop");
    assert_eq!(dropped.loads().count(), 0, "a dropped table does not come back");
}

#[test]
fn rows_that_do_not_fit_are_refused_by_name() {
    let refusal = |row: Vec<Value>| match apply(&people(), &[put(vec![row], PutMode::Insert)]).err() {
        Some(ApplyError::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(vec![Value::BigInt(9)]), "table people: a row has 1 value, the table 3 columns");
    let null_key = vec![Value::Null, Value::Null, Value::Null];
    assert_eq!(refusal(null_key), "column \"id\" of table \"people\" may not be NULL");
    let wrong = vec![Value::BigInt(9), Value::text("x"), Value::text("seven")];
    assert_eq!(refusal(wrong), "table people: column badge of type INTEGER cannot hold seven");
    assert_eq!(
        refusal(person(3, "Cid", 99)),
        "duplicate key in table \"people\": id = 3 (index \"id\")",
        "the key is named"
    );
    let unknown = Operation::Truncate { table: "nobody".into() };
    assert_eq!(apply(&people(), &[unknown]).err().expect("refused").to_string(), "table \"nobody\" does not exist");
}

#[test]
fn rows_that_were_not_used_expire() {
    let retention = |ttl_ms, max_rows| Operation::SetRetention { table: "people".into(), ttl_ms, max_rows };
    let key = |id| RowKey::Columns(vec![Value::BigInt(id)]);
    let snapshot = apply(&people(), &[retention(Some(100), Some(2))]).expect("set");
    let table = snapshot.table("people").expect("there");
    assert_eq!(table.expired(1_000), [], "a new row is dated by the first sweep");
    assert_eq!(table.expired(1_099), []);
    table.touch(table.get(&[Value::BigInt(2)]).expect("Bob"), 1_090);
    assert_eq!(table.expired(1_100), [key(1), key(3)]);
    assert_eq!(table.over_limit(1_100), [key(1)], "the earliest of those unused longest");
    // A write is a use; so is a read through an earlier snapshot.
    let written = apply(&snapshot, &[put(vec![person(1, "Ann", 11)], PutMode::Upsert)]).expect("upsert");
    let after = written.table("people").expect("there");
    assert_eq!(after.over_limit(1_150), [key(3)]);
    table.touch(table.get(&[Value::BigInt(3)]).expect("Ann"), 1_160);
    assert_eq!(after.over_limit(1_170), [key(2)]);
    assert_eq!(after.expired(1_195), [key(2)]);
    let off = apply(&written, &[retention(None, None)]).expect("set");
    let table = off.table("people").expect("there");
    assert_eq!((table.expired(9_999), table.over_limit(9_999)), (vec![], vec![]));
    assert_eq!(table.memory().access_bytes, 0);
}

#[test]
fn a_table_without_key_numbers_its_rows() {
    let keyless = TableSchema { key: vec![], indexes: vec![], ..schema() };
    let create = Operation::CreateTable { schema: keyless };
    let rows = vec![person(1, "Ann", 1), person(1, "Ann", 1)];
    let snapshot = apply(&GroupSnapshot::empty(), &[create, put(rows, PutMode::Upsert)]).expect("twice the same");
    let table = snapshot.table("people").expect("there");
    assert_eq!(
        table.rows().filter_map(|id| table.row_key(id)).collect::<Vec<_>>(),
        [RowKey::Number(0), RowKey::Number(1)]
    );
    let delete = |keys| Operation::Delete { table: "people".into(), keys };
    let after = apply(&snapshot, &[delete(vec![RowKey::Number(0), RowKey::Number(9)])]).expect("delete");
    assert_eq!(after.table("people").expect("there").row_count(), 1);
    let wrong = apply(&snapshot, &[delete(vec![RowKey::Columns(vec![Value::BigInt(1)])])]).err();
    assert!(matches!(wrong, Some(ApplyError::Refused(Refusal::KeyShape { .. }))));
}
