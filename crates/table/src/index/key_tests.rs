//! Keys order as values do.

use cachesql_types::Decimal;
use proptest::prelude::*;

use super::*;

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('汉'), any::<char>()], 0..6)
        .prop_map(|chars| Value::text(chars.into_iter().collect::<String>()))
}

fn doubles() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<f64>().prop_map(Value::Double),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        Just(Value::Double(-0.0)),
        Just(Value::Double(0.0)),
        Just(Value::Double(f64::NAN)),
        Just(Value::Double(-f64::NAN)),
        Just(Value::Double(f64::INFINITY)),
        Just(Value::Double(f64::NEG_INFINITY)),
    ]
}

fn decimals() -> impl Strategy<Value = Value> {
    (-(10_i128.pow(37))..10_i128.pow(37)).prop_map(|unscaled| Value::Decimal(Decimal { unscaled, scale: 4 }))
}

fn bytea() -> impl Strategy<Value = Value> {
    prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255), any::<u8>()], 0..6)
        .prop_map(|bytes| Value::Bytea(bytes.into()))
}

fn or_null(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop_oneof![1 => Just(Value::Null), 4 => values]
}

fn plain(value: &Value) -> Vec<u8> {
    let mut key = KeyBuffer::new();
    push_plain(&mut key, Cell::of_value(value));
    key.to_vec()
}

fn composite(values: &[Value]) -> Vec<u8> {
    let mut key = KeyBuffer::new();
    values.iter().for_each(|v| push_component(&mut key, Cell::of_value(v)));
    key.to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn doubles_order(a in doubles(), b in doubles()) {
        let (x, y) = (fixed_of(Cell::of_value(&a)), fixed_of(Cell::of_value(&b)));
        prop_assert_eq!(x.cmp(&y), a.total_cmp(&b));
    }

    #[test]
    fn single_columns_order(a in decimals(), b in decimals(), c in texts(), d in texts(), e in bytea(), f in bytea()) {
        prop_assert_eq!(plain(&a).cmp(&plain(&b)), a.total_cmp(&b));
        prop_assert_eq!(plain(&c).cmp(&plain(&d)), c.total_cmp(&d));
        prop_assert_eq!(plain(&e).cmp(&plain(&f)), e.total_cmp(&f));
    }

    #[test]
    fn numbers_are_found_however_they_are_spread(
        mut keys in prop::collection::vec((0_u32..64, 0_u64..4).prop_map(|(shift, low)| (1 << shift) | low), 0..200),
        steady in 0_u64..3, others in prop::collection::vec(any::<u64>(), 0..4), lied in any::<bool>(),
    ) {
        // Even spreads, powers of two, and the ends of what there is.
        keys.extend((0..steady * 100).map(|n| n * 7));
        keys.extend(others.iter().copied());
        keys.sort_unstable();
        keys.dedup();
        // Bounds that are true, and some that are not: they may cost time, and nothing else.
        let bounds = if lied { (Some(77), Some(5)) } else { (keys.first().copied(), keys.last().map(|k| k.saturating_add(1))) };
        for key in keys.iter().flat_map(|k| [k.saturating_sub(1), *k, k.saturating_add(1)]).chain([0, u64::MAX]) {
            for (least, greatest) in [(None, None), (bounds.0, None), (None, bounds.1), bounds] {
                let found = <u64 as Key>::search(&keys, |k| k, &key, (least.as_ref(), greatest.as_ref()));
                prop_assert_eq!(found, keys.binary_search(&key), "{} among {:?}", key, &keys);
            }
        }
    }

    #[test]
    fn several_columns_order_one_after_the_other(
        a in (or_null(texts()), or_null(bytea()), or_null(doubles()), or_null(decimals())),
        b in (or_null(texts()), or_null(bytea()), or_null(doubles()), or_null(decimals())),
    ) {
        let (a, b) = ([a.0, a.1, a.2, a.3], [b.0, b.1, b.2, b.3]);
        let wanted = a.iter().zip(&b).map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal);
        prop_assert_eq!(composite(&a).cmp(&composite(&b)), wanted);
    }

    /// Where a number of another type lies among the integers of a column.
    #[test]
    fn numbers_of_other_types_find_their_place(integer in -40_i32..40, unscaled in -400_i128..400, half in -80_i16..80) {
        let key = fixed_of(Cell::Integer(integer));
        for number in [
            Value::Decimal(Decimal { unscaled, scale: 1 }),
            Value::Double(f64::from(half) / 2.0),
            Value::BigInt(i64::from(half) << 40),
        ] {
            let Some(Place::Fixed { from, after }) = place(DataType::Integer, &number) else {
                return Err(TestCaseError::fail("a number has a place"));
            };
            let order = Value::Integer(integer).total_cmp(&number);
            prop_assert_eq!(from.is_none_or(|from| key < Some(from)), order == Ordering::Less);
            prop_assert_eq!(after.is_some_and(|after| key >= Some(after)), order == Ordering::Greater);
        }
    }
}

#[test]
fn what_does_not_compare_has_no_place() {
    assert!(place(DataType::Integer, &Value::text("1")).is_none());
    assert!(place(DataType::Text, &Value::Integer(1)).is_none());
    assert!(place(DataType::Integer, &Value::Null).is_none());
    assert!(place(DataType::Timestamp, &Value::Date(1)).is_none());
}
