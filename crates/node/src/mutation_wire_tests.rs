//! Changes as bytes: what is read is what was written, and nothing that is wrong is read.

use cachesql_types::{Decimal, Value};
use proptest::prelude::*;

use super::*;

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i64>().prop_map(Value::BigInt),
        // NaN is not equal to itself, and would fail the comparison of what is read.
        any::<i32>().prop_map(|n| Value::Double(f64::from(n) / 3.0)),
        (any::<i64>(), 0_u8..10).prop_map(|(n, scale)| Value::Decimal(Decimal { unscaled: n.into(), scale })),
        ".{0,12}".prop_map(|text: String| Value::text(text)),
        any::<[u8; 16]>().prop_map(Value::Uuid),
    ]
}

fn operands() -> impl Strategy<Value = Operand> {
    prop_oneof![values().prop_map(Operand::Value), (0_usize..9).prop_map(Operand::Parameter)]
}

fn filters() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        (0_usize..9, prop::sample::select(&COMPARISONS[..]), operands())
            .prop_map(|(column, op, operand)| Filter::Compare { column, op, operand }),
        (0_usize..9, prop::collection::vec(operands(), 0..4))
            .prop_map(|(column, operands)| Filter::In { column, operands }),
        (0_usize..9, operands(), any::<bool>(), any::<Option<char>>()).prop_map(
            |(column, pattern, case_insensitive, escape)| Filter::Like { column, pattern, case_insensitive, escape }
        ),
        (0_usize..9).prop_map(|column| Filter::IsNull { column }),
        (0_usize..9, any::<bool>()).prop_map(|(column, value)| Filter::IsBoolean { column, value }),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Or),
            inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

fn writes() -> impl Strategy<Value = Write> {
    let columns = || prop::collection::vec(0_usize..9, 0..4);
    let conflicts = prop_oneof![
        Just(OnConflict::Refuse),
        columns().prop_map(|columns| OnConflict::DoNothing { columns }),
        columns().prop_map(|columns| OnConflict::Replace { columns }),
    ];
    let rows = prop::collection::vec(prop::collection::vec(values(), 0..4), 0..4);
    let set = prop::collection::vec((0_usize..9, values()), 0..4);
    let filter = || prop::option::of(filters());
    prop_oneof![
        ("[a-zé]{1,9}", columns(), rows, conflicts, any::<bool>()).prop_map(
            |(table, columns, rows, on_conflict, returning)| Write::Insert {
                table,
                columns,
                rows,
                on_conflict,
                returning
            }
        ),
        ("[a-z]{1,9}", set, filter(), any::<bool>()).prop_map(|(table, set, filter, returning)| Write::Update {
            table,
            set,
            filter,
            returning
        }),
        ("[a-z]{1,9}", filter(), any::<bool>()).prop_map(|(table, filter, returning)| Write::Delete {
            table,
            filter,
            returning
        }),
        "[a-z]{1,9}".prop_map(|table| Write::Truncate { table }),
    ]
}

fn encoded(mutation: &Mutation) -> Vec<u8> {
    let mut out = Vec::new();
    mutation.write_to(&mut out);
    out
}

proptest! {
    #[test]
    fn a_typed_write_is_read_as_it_was(write in writes(), mark in any::<u64>()) {
        let bytes = encoded(&Mutation::Typed(Arc::new(write.clone()), Shape::Elsewhere(mark)));
        let mut rest = &bytes[..];
        let read = Mutation::read_from(&mut rest).expect("what was written");
        let Mutation::Typed(found, shape) = read else { panic!("another kind") };
        prop_assert_eq!((&*found, shape.mark(), rest.len()), (&write, mark, 0));
        // Cut short anywhere, it is refused.
        for length in 0..bytes.len() {
            prop_assert!(Mutation::read_from(&mut &bytes[..length]).is_err(), "{} of {} bytes", length, bytes.len());
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..8) {
        let _ = Mutation::read_from(&mut &[&[kind], &*bytes].concat()[..]);
    }
}

#[test]
fn the_other_changes_are_read_as_they_were() {
    let statement =
        Statement { sql: "INSERT INTO t VALUES ($1)".into(), params: vec![Value::text("汉"), Value::Null] };
    let changes = [
        Mutation::Statements(Arc::new(vec![statement.clone(), Statement::new("DELETE FROM t")])),
        Mutation::Retention { table: "t".into(), ttl_ms: Some(None), max_rows: Some(Some(7)) },
        Mutation::Retention { table: "t".into(), ttl_ms: None, max_rows: Some(None) },
        Mutation::Truncate("t".into()),
        Mutation::Compact("t".into()),
    ];
    for change in changes {
        let bytes = encoded(&change);
        let read = Mutation::read_from(&mut &bytes[..]).expect("what was written");
        assert_eq!(format!("{read:?}"), format!("{change:?}"));
    }
}

#[test]
fn a_filter_that_is_nested_too_deeply_is_refused() {
    let write = Write::Delete { table: "t".into(), filter: Some(Filter::IsNull { column: 0 }), returning: false };
    let flat = encoded(&Mutation::Typed(Arc::new(write), Shape::Elsewhere(0)));
    let at = flat.iter().rposition(|byte| *byte == IS_NULL).expect("the filter's tag");
    let nested = |depth: usize| [&flat[..at], &vec![NOT; depth], &flat[at..]].concat();
    assert!(Mutation::read_from(&mut &nested(limits::FORWARDED_FILTER_DEPTH)[..]).is_ok());
    for depth in [limits::FORWARDED_FILTER_DEPTH + 1, 1_000_000] {
        let refused = Mutation::read_from(&mut &nested(depth)[..]);
        assert!(matches!(refused, Err(ReadError::TooDeep)), "{depth}");
    }
}

#[test]
fn the_numbers_are_those_that_are_written_down() {
    let first = |mutation: Mutation| encoded(&mutation)[0];
    let typed = Mutation::Typed(Arc::new(Write::Truncate { table: "t".into() }), Shape::Elsewhere(0));
    assert_eq!(first(Mutation::Statements(Arc::default())), 1);
    assert_eq!(first(typed), 2);
    assert_eq!(first(Mutation::Retention { table: "t".into(), ttl_ms: None, max_rows: None }), 4);
    assert_eq!(first(Mutation::Truncate("t".into())), 5);
    assert_eq!(first(Mutation::Compact("t".into())), 6);
}
