//! Conditions, against the meaning that PostgREST's documentation gives them.

use cachesql_types::Column;
use proptest::prelude::*;

use super::*;

fn schema() -> TableSchema {
    let column = |name: &str, data_type| Column { name: name.into(), data_type, nullable: true };
    TableSchema {
        name: "t".into(),
        columns: vec![
            column("id", DataType::Integer),
            column("name", DataType::Text),
            column("ok", DataType::Boolean),
            column("price", DataType::Decimal { precision: 10, scale: 2 }),
            column("a.b", DataType::Text),
        ],
        key: vec![],
        indexes: vec![],
    }
}

fn text(value: &str) -> Operand {
    Operand::Value(Value::text(value))
}

fn int(value: i32) -> Operand {
    Operand::Value(Value::Integer(value))
}

fn cmp(column: usize, op: Comparison, operand: Operand) -> Filter {
    Filter::Compare { column, op, operand }
}

fn not(filter: Filter) -> Filter {
    Filter::Not(Box::new(filter))
}

fn like(pattern: &str, case_insensitive: bool) -> Filter {
    Filter::Like { column: 1, pattern: text(pattern), case_insensitive, escape: Some('\\') }
}

#[test]
fn conditions_of_one_column() {
    use Comparison::*;
    let cases = [
        ("id", "eq.5", cmp(0, Equal, int(5))),
        ("ID", "neq.-5", cmp(0, NotEqual, int(-5))),
        ("id", "gt.1", cmp(0, Greater, int(1))),
        ("id", "gte.1", cmp(0, GreaterOrEqual, int(1))),
        ("id", "lt.1", cmp(0, Less, int(1))),
        ("id", "lte.1", cmp(0, LessOrEqual, int(1))),
        ("id", "not.eq.5", not(cmp(0, Equal, int(5)))),
        ("id", "is.null", Filter::IsNull { column: 0 }),
        ("id", "not.is.NULL", not(Filter::IsNull { column: 0 })),
        ("id", "is.not_null", not(Filter::IsNull { column: 0 })),
        ("ok", "is.true", Filter::IsBoolean { column: 2, value: true }),
        ("ok", "is.false", Filter::IsBoolean { column: 2, value: false }),
        ("ok", "is.unknown", Filter::IsNull { column: 2 }),
        ("id", "in.(1,2)", Filter::In { column: 0, operands: vec![int(1), int(2)] }),
        ("id", "in.()", Filter::In { column: 0, operands: vec![] }),
        (
            "name",
            r#"in.("a,b",c d,"(\")")"#,
            Filter::In { column: 1, operands: vec![text("a,b"), text("c d"), text("(\")")] },
        ),
        ("name", "not.in.(x)", not(Filter::In { column: 1, operands: vec![text("x")] })),
        ("name", "like.A*%", like("A%%", false)),
        ("name", "ilike.*a", like("%a", true)),
        // At the end of a parameter nothing needs quotes, and quotes are part of the value.
        ("name", "eq.a,b)", cmp(1, Equal, text("a,b)"))),
        ("name", "eq.\"q\"", cmp(1, Equal, text("\"q\""))),
        ("name", "eq.", cmp(1, Equal, text(""))),
        ("name", "eq.007", cmp(1, Equal, text("007"))),
        ("name", "eq.eq.x", cmp(1, Equal, text("eq.x"))),
        ("\"a.b\"", "eq.x", cmp(4, Equal, text("x"))),
        ("a.b", "eq.x", cmp(4, Equal, text("x"))),
        ("name", "isdistinct.x", Filter::Or(vec![cmp(1, NotEqual, text("x")), Filter::IsNull { column: 1 }])),
        // Numbers that the column's type does not hold are numbers.
        ("id", "lt.3000000000", cmp(0, Less, Operand::Value(Value::BigInt(3_000_000_000)))),
        ("price", "eq.1.234", cmp(3, Equal, Operand::Value(Value::Decimal(Decimal { unscaled: 1234, scale: 3 })))),
    ];
    for (column, condition_text, expected) in cases {
        assert_eq!(condition(&schema(), column, condition_text), Ok(expected), "{column}={condition_text}");
    }
}

#[test]
fn groups_nest() {
    use Comparison::*;
    let id = |n| cmp(0, Equal, int(n));
    let cases = [
        ("and", "(id.eq.1,name.eq.x)", Filter::And(vec![id(1), cmp(1, Equal, text("x"))])),
        ("or", "(id.eq.1,id.not.eq.2)", Filter::Or(vec![id(1), not(id(2))])),
        ("not.and", "(id.eq.1)", not(Filter::And(vec![id(1)]))),
        ("not.or", "(id.eq.1)", not(Filter::Or(vec![id(1)]))),
        (
            "or",
            "(id.eq.1,not.and(id.eq.2,or(id.eq.3,name.in.(a,\"b)\"))))",
            Filter::Or(vec![
                id(1),
                not(Filter::And(vec![
                    id(2),
                    Filter::Or(vec![id(3), Filter::In { column: 1, operands: vec![text("a"), text("b)")] }]),
                ])),
            ]),
        ),
        (
            "and",
            "(name.eq.\"a,b\",\"a.b\".is.null)",
            Filter::And(vec![cmp(1, Equal, text("a,b")), Filter::IsNull { column: 4 }]),
        ),
    ];
    for (name, group_text, expected) in cases {
        assert_eq!(group(&schema(), name, group_text), Ok(expected), "{name}={group_text}");
    }
}

#[test]
fn what_is_wrong_is_refused_by_code() {
    let codes = [
        ("id", "5", "42601"),
        ("id", "eq", "42601"),
        ("id", "equals.5", "42601"),
        ("id", "", "42601"),
        ("id", "eq.abc", "22P02"),
        ("id", "eq.1.5", "22P02"),
        ("id", "in.1,2", "42601"),
        ("id", "in.(1,2", "42601"),
        ("id", "in.(1,2)x", "42601"),
        ("id", "in.(1,x)", "22P02"),
        ("name", "in.(\"open)", "42601"),
        ("id", "is.5", "42601"),
        ("id", "is.true", "42804"),
        ("id", "like.5*", "42804"),
        ("name", "fts.x", "0A000"),
        ("name", "like(any).{a,b}", "42601"),
        ("nothing", "eq.1", "42703"),
        ("name->>x", "eq.1", "0A000"),
    ];
    for (column, text, code) in codes {
        assert_eq!(condition(&schema(), column, text).expect_err(text).code, code, "{column}={text}");
    }
    for (text, code) in [
        ("", "42601"),
        ("()", "42703"),
        ("(id.eq.1", "42601"),
        ("(id.eq.1)x", "42601"),
        ("(id)", "42601"),
        ("(id.eq.1,)", "42703"),
    ] {
        assert_eq!(group(&schema(), "or", text).expect_err(text).code, code, "{text}");
    }
    let deep = format!("{}id.eq.1{}", "(and".repeat(10_000), ")".repeat(10_000));
    assert_eq!(group(&schema(), "and", &deep).expect_err("deep").code, "54001");
}

proptest! {
    #[test]
    fn no_text_panics(text in "(not\\.)?(eq|in|is|like|or|and)?[.(),\"\\\\a1é*]{0,30}") {
        let _ = condition(&schema(), "name", &text);
        let _ = group(&schema(), "or", &text);
    }

    #[test]
    fn quoted_items_come_back(items in proptest::collection::vec("\\PC{0,8}", 1..5)) {
        let quoted: Vec<String> = items.iter().map(|i| format!("\"{}\"", i.replace('\\', "\\\\").replace('"', "\\\""))).collect();
        let read = condition(&schema(), "name", &format!("in.({})", quoted.join(","))).expect("well formed");
        let operands = items.iter().map(|i| text(i)).collect();
        prop_assert_eq!(read, Filter::In { column: 1, operands });
    }
}
