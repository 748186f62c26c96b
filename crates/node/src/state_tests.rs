//! What entries make of a state, in whatever order they come, and what it is after it was written out.

use cachesql_table::{Operation, PutMode};
use cachesql_types::{Column, DataType, TableSchema, Value};

use super::*;
use crate::config::NodeConfig;
use crate::entry::{Packed, join};

fn state() -> State {
    State::new(Arc::new(Core::new(&NodeConfig::new(1 << 30))))
}

fn place(run: u64, step: u64) -> Place {
    Place { run, step }
}

fn entry(place: Place, after: Place, operations: Vec<Operation>) -> Entry {
    Entry { place, after, answered: None, operations: Arc::new(operations) }
}

fn create() -> Operation {
    let columns = vec![Column { name: "id".into(), data_type: DataType::BigInt, nullable: false }];
    Operation::CreateTable { schema: TableSchema { name: "t".into(), columns, key: vec![0], indexes: Vec::new() } }
}

fn put(id: i64) -> Operation {
    Operation::Put { table: "t".into(), rows: vec![vec![Value::BigInt(id)]], mode: PutMode::Insert }
}

fn ids(state: &State) -> Vec<i64> {
    let snapshot = state.core.snapshot();
    let Some(table) = snapshot.table("t") else { return Vec::new() };
    table.rows().filter_map(|id| table.row(id)?.value(0).as_i64()).collect()
}

fn apply(state: &State, index: u64, entry: &Entry) -> Result<bool, Fence> {
    state.apply(index, &entry.encode().into()).map(|outcome| was_applied(&outcome))
}

/// A table with a row, made by the first write of run 1.
fn with_a_row() -> State {
    let state = state();
    assert_eq!(apply(&state, 3, &entry(place(1, 1), Place::default(), vec![create(), put(1)])), Ok(true));
    state
}

#[test]
fn a_write_planned_before_another_came_does_nothing() {
    let state = with_a_row();
    for after in [Place::default(), place(1, 2), place(2, 1)] {
        assert_eq!(apply(&state, 5, &entry(place(1, 2), after, vec![put(2)])), Ok(false), "after {after:?}");
    }
    assert_eq!((ids(&state), state.index()), (vec![1], LogIndex(3)));
    // Positions of the log may be taken by what is no write.
    assert_eq!(apply(&state, 9, &entry(place(2, 1), place(1, 1), vec![put(2)])), Ok(true));
    assert_eq!((ids(&state), state.index()), (vec![1, 2], LogIndex(9)));
}

fn together(entries: Vec<Entry>) -> Bytes {
    let packed = |entry: Entry| Packed { bytes: entry.encode().into(), entry };
    join(&entries.into_iter().map(packed).collect::<Vec<_>>())
}

#[test]
fn writes_that_were_proposed_together_are_applied_together_or_not_at_all() {
    let (state, last) = (with_a_row(), place(1, 1));
    let next = |after: Place| {
        [2_u64, 3, 4].map(|step| {
            let before = if step == 2 { after } else { place(1, step - 1) };
            let key = RequestKey::new(&step.to_string(), "insert").expect("sound id");
            let answered = Some(Answered { key, outcomes: Bytes::new() });
            Entry { answered, ..entry(place(1, step), before, vec![put(i64::try_from(step).expect("small"))]) }
        })
    };
    let superseded = state.apply(4, &together(next(place(7, 7)).into())).expect("sound");
    assert!(!was_applied(&superseded));
    assert_eq!((ids(&state), state.index()), (vec![1], LogIndex(3)));
    let published = state.core.published();
    assert!(was_applied(&state.apply(5, &together(next(last).into())).expect("sound")));
    assert_eq!((ids(&state), state.index(), state.newest().1), (vec![1, 2, 3, 4], LogIndex(5), place(1, 4)));
    assert_eq!(*published.borrow(), LogIndex(5));
    for step in [2, 3, 4] {
        let key = RequestKey::new(&step.to_string(), "insert").expect("sound id");
        assert_eq!(state.remembered(&key).expect("the same request").expect("remembered").index, LogIndex(5));
    }
    // What the proposer rehearsed of them is not applied again, whatever the bytes say.
    let proposer = with_a_row();
    let mut rows = proposer.core.snapshot();
    // Its own positions are lower than the one that they get.
    for entry in next(last) {
        rows = rows.apply(rows.index().next(), &entry.operations).expect("new keys").0;
        proposer.expect(Rehearsed { place: entry.place, snapshot: rows.clone(), answered: entry.answered });
    }
    let wrong = next(last).map(|known| Entry { operations: Arc::new(vec![put(1)]), ..known });
    assert!(was_applied(&proposer.apply(8, &together(wrong.into())).expect("as rehearsed")));
    assert_eq!((ids(&proposer), proposer.index()), (vec![1, 2, 3, 4], LogIndex(8)));
}

#[test]
fn a_proposal_that_is_none_is_a_fence_and_readers_see_none_of_it() {
    let state = with_a_row();
    let [second, third] = [2, 3].map(|step| entry(place(1, step), place(1, step - 1), vec![put(7)]));
    let whole = together(vec![second.clone(), third]);
    for cut in 1..whole.len() {
        assert!(state.apply(4, &whole.slice(..cut)).is_err(), "cut at {cut}");
    }
    let elsewhere = entry(place(1, 3), place(5, 5), vec![put(8)]);
    let refused = with_a_row().apply(4, &together(vec![second, elsewhere])).expect_err("not planned in turn");
    assert!(refused.0.contains("not planned in turn"), "{refused}");
    // The third has the second's key.
    let refused = state.apply(4, &whole).expect_err("the key is there");
    assert!(refused.0.starts_with("log index 4: "), "{refused}");
    assert_eq!((ids(&state), state.index()), (vec![1], LogIndex(3)));
}

#[test]
fn what_the_proposer_has_rehearsed_is_not_applied_again() {
    let state = with_a_row();
    let (newest, last) = state.newest();
    let lost = newest.apply(LogIndex(4), &[put(7)]).expect("a new key").0;
    let next = newest.apply(LogIndex(4), &[put(2)]).expect("a new key").0;
    state.expect(Rehearsed { place: place(2, 1), snapshot: lost, answered: None });
    state.expect(Rehearsed { place: place(3, 1), snapshot: next, answered: None });
    // Operations that could not be applied are not looked at.
    let mut bytes = entry(place(3, 1), last, vec![put(1)]).encode();
    bytes.pop();
    let outcome = state.apply(6, &bytes.into()).expect("as rehearsed");
    assert!(was_applied(&outcome));
    assert_eq!((ids(&state), state.index()), (vec![1, 2], LogIndex(6)));
    assert!(state.inner.lock().rehearsed.is_empty());
}

#[test]
fn what_cannot_be_applied_is_a_fence() {
    let state = with_a_row();
    let refused = apply(&state, 4, &entry(place(1, 2), place(1, 1), vec![put(1)])).expect_err("the key is there");
    assert!(refused.0.starts_with("log index 4: "), "{refused}");
    for bytes in [&b""[..], b"\x09", b"\x01abc"] {
        assert!(state.apply(4, &Bytes::copy_from_slice(bytes)).is_err());
    }
    assert_eq!((ids(&state), state.index()), (vec![1], LogIndex(3)));
}

#[test]
fn a_state_that_was_written_out_goes_on_elsewhere() {
    let state = with_a_row();
    let key = |id: &str| RequestKey::new(id, "insert").expect("sound id");
    let outcomes = Bytes::from_static(b"outcomes");
    let answered = |id: &str| Some(Answered { key: key(id), outcomes: outcomes.clone() });
    for (step, id) in [(2, "a"), (3, "b")] {
        let entry = Entry { answered: answered(id), ..entry(place(1, step), place(1, step - 1), vec![]) };
        assert_eq!(apply(&state, step + 10, &entry), Ok(true));
    }
    let mut bytes = Vec::new();
    state.capture().write(&mut bytes).expect("memory takes it");

    let other = self::state();
    other.restore(&mut &*bytes).expect("its own bytes");
    assert_eq!((ids(&other), other.newest().1, other.index()), (vec![1], place(1, 3), LogIndex(13)));
    let remembered = other.remembered(&key("a")).expect("the same request").expect("remembered");
    assert_eq!((remembered.index, remembered.outcomes), (LogIndex(12), outcomes));
    let next = entry(place(1, 4), place(1, 3), vec![put(2)]);
    assert_eq!((apply(&state, 20, &next), apply(&other, 20, &next)), (Ok(true), Ok(true)));
    assert_eq!(ids(&other), ids(&state));

    for cut in (0..bytes.len()).step_by(7) {
        let fresh = self::state();
        assert!(fresh.restore(&mut bytes.get(..cut).expect("within")).is_err(), "cut at {cut}");
        assert_eq!(fresh.newest().1, Place::default());
    }
}
