//! Texts and values, against what PostgreSQL 15 reads and writes.

use super::*;
use proptest::prelude::*;

fn round_trip(text: &str, data_type: DataType) -> String {
    Value::parse(text, data_type).unwrap_or_else(|e| panic!("{text}: {e}")).to_text()
}

/// Each pair is `SELECT '<left>'::<type>` and what PostgreSQL 15 prints with `TimeZone = UTC`.
#[test]
fn text_is_written_as_postgresql_writes_it() {
    let decimal = DataType::Decimal { precision: 10, scale: 2 };
    let cases = [
        (DataType::Boolean, "yes", "t"),
        (DataType::BigInt, " -9223372036854775808 ", "-9223372036854775808"),
        (DataType::Double, "1e15", "1e+15"),
        (DataType::Double, "123456789012345", "123456789012345"),
        (DataType::Double, "0.0001", "0.0001"),
        (DataType::Double, "0.00001", "1e-05"),
        (DataType::Double, "1e300", "1e+300"),
        (DataType::Double, "-0", "-0"),
        (DataType::Double, "0.1", "0.1"),
        (DataType::Double, "-infinity", "-Infinity"),
        (DataType::Double, "nan", "NaN"),
        (DataType::Real, "1234567", "1.234567e+06"),
        (DataType::Real, "123456", "123456"),
        (DataType::Real, "0.1", "0.1"),
        (decimal, "12.3", "12.30"),
        (decimal, "-0.01", "-0.01"),
        (DataType::Date, "0044-03-15 BC", "0044-03-15 BC"),
        (DataType::Date, "5874897-12-31", "5874897-12-31"),
        (DataType::Date, "4714-11-24 BC", "4714-11-24 BC"),
        (DataType::Date, "-infinity", "-infinity"),
        (DataType::Time, "24:00", "24:00:00"),
        (DataType::Time, "04:05:06.7", "04:05:06.7"),
        (DataType::Timestamp, "1969-12-31T23:59:59.999999", "1969-12-31 23:59:59.999999"),
        (DataType::Timestamp, "2026-11-29T20:31:32Z", "2026-11-29 20:31:32"),
        (DataType::Timestamp, "294246-12-31 23:59:59.999999", "294246-12-31 23:59:59.999999"),
        (DataType::Timestamp, "4714-11-24 00:00:00 BC", "4714-11-24 00:00:00 BC"),
        (DataType::Timestamp, "2026-11-29", "2026-11-29 00:00:00"),
        (DataType::TimestampTz, "2026-11-29 20:31:32.50+08", "2026-11-29 12:31:32.5+00"),
        (DataType::TimestampTz, "2026-11-29 20:31:32-03:30", "2026-11-30 00:01:32+00"),
        (DataType::TimestampTz, "infinity", "infinity"),
        (DataType::Bytea, "\\x00FFab", "\\x00ffab"),
        (DataType::Bytea, "a\\\\\\001", "\\x615c01"),
        (DataType::Uuid, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (DataType::Text, " 007 ", " 007 "),
    ];
    for (data_type, text, expected) in cases {
        assert_eq!(round_trip(text, data_type), expected, "{data_type} {text}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_never_rounded() {
    let decimal = DataType::Decimal { precision: 4, scale: 2 };
    let cases = [
        (DataType::SmallInt, "32768"),
        (DataType::Integer, "2147483648"),
        (DataType::BigInt, "9223372036854775808"),
        (DataType::BigInt, "99999999999999999999999999999999999999999999"),
        (DataType::Double, "1e400"),
        (DataType::Real, "1e40"),
        (decimal, "1.234"),
        (decimal, "100"),
        (DataType::Date, "2023-02-29"),
        (DataType::Date, "0000-01-01 BC"),
        (DataType::Timestamp, "294276-12-31 23:59:59.999999"),
    ];
    for (data_type, text) in cases {
        let error = Value::parse(text, data_type).expect_err(text);
        assert!(matches!(error, ValueError::Range { .. }), "{data_type} {text}: {error}");
    }
}

#[test]
fn what_is_not_of_the_type_is_refused() {
    let cases = [
        (DataType::Boolean, "maybe"),
        (DataType::Integer, ""),
        (DataType::Integer, "1.5"),
        (DataType::Integer, "0x10"),
        (DataType::Double, "1,5"),
        (DataType::Decimal { precision: 4, scale: 2 }, "abc"),
        (DataType::Date, "29.11.2026"),
        (DataType::Date, "26-11-29"),
        (DataType::Date, "2026-11-29 10:00"),
        (DataType::Time, "25:00"),
        (DataType::Time, "10:61"),
        (DataType::Time, "10:00:00.1234567"),
        (DataType::Timestamp, "2026-11-29 10:00 nowhere"),
        (DataType::TimestampTz, "2026-11-29 10:00:00+99"),
        (DataType::Bytea, "\\xabc"),
        (DataType::Bytea, "\\9"),
        (DataType::Uuid, "a0eebc99"),
    ];
    for (data_type, text) in cases {
        let error = Value::parse(text, data_type).expect_err(text);
        assert!(matches!(error, ValueError::Syntax { .. }), "{data_type} {text}: {error}");
    }
}

#[test]
fn coercion_keeps_the_value_or_refuses() {
    let tenth = Value::Decimal(Decimal { unscaled: 10, scale: 2 });
    assert_eq!(Value::text("007").coerce(DataType::Text).expect("text").to_text(), "007");
    assert_eq!(Value::text("007").coerce(DataType::Integer).expect("number").to_text(), "7");
    assert_eq!(Value::Double(3.0).coerce(DataType::SmallInt).expect("whole").to_text(), "3");
    assert!(Value::Double(3.5).coerce(DataType::BigInt).is_err());
    assert!(Value::Double(9_223_372_036_854_775_808.0).coerce(DataType::BigInt).is_err());
    assert!(Value::BigInt(9_007_199_254_740_993).coerce(DataType::Double).is_err());
    assert!(Value::Integer(16_777_217).coerce(DataType::Real).is_err());
    assert_eq!(tenth.coerce(DataType::Decimal { precision: 3, scale: 1 }).expect("exact").to_text(), "0.1");
    assert!(Value::Integer(1).coerce(DataType::Text).is_err());
    assert!(Value::Boolean(true).coerce(DataType::Integer).is_err());
    assert!(Value::Null.coerce(DataType::Uuid).expect("null").is_null());
    assert_eq!(Value::Date(-1).coerce(DataType::Timestamp).expect("midnight").to_text(), "1969-12-31 00:00:00");
}

proptest! {
    #[test]
    fn doubles_read_back(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let mut text = Vec::new();
        write_double(&mut text, value);
        let back: f64 = std::str::from_utf8(&text).expect("ascii").parse().expect("a number");
        prop_assert!(back.to_bits() == bits || value.is_nan());
    }

    #[test]
    fn reals_read_back(bits in any::<u32>()) {
        let value = f32::from_bits(bits);
        let mut text = Vec::new();
        write_real(&mut text, value);
        let back: f32 = std::str::from_utf8(&text).expect("ascii").parse().expect("a number");
        prop_assert!(back.to_bits() == bits || value.is_nan());
    }

    #[test]
    fn timestamps_read_back(micros in -210_866_803_200_000_000_i64..9_223_371_331_200_000_000) {
        for data_type in [DataType::Timestamp, DataType::TimestampTz] {
            let value = Value::Timestamp(micros).coerce(data_type).expect("same instant");
            prop_assert_eq!(Value::parse(&value.to_text(), data_type).expect("own text"), value);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}", at in 0_usize..10) {
        let types = [
            DataType::Boolean, DataType::BigInt, DataType::Real, DataType::Decimal { precision: 38, scale: 10 }, DataType::Bytea,
            DataType::Date, DataType::Time, DataType::Timestamp, DataType::TimestampTz, DataType::Uuid,
        ];
        let _ = Value::parse(&text, types[at]);
    }

    #[test]
    fn no_near_date_panics(text in "[-+]?[0-9]{0,8}-[0-9]{0,3}-[0-9]{0,3}[T ]?[0-9:.]{0,20}[-+Z]?[0-9:]{0,8}( BC)?") {
        let _ = parse_timestamptz(&text);
        let _ = parse_date(&text);
    }
}
