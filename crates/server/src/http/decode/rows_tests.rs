//! Bodies of rows, against rows written by hand.

use cachesql_types::{Column, DataType, Decimal};
use proptest::prelude::*;

use super::*;

fn schema() -> TableSchema {
    let column = |name: &str, data_type| Column { name: name.into(), data_type, nullable: true };
    TableSchema {
        name: "t".into(),
        columns: vec![
            column("id", DataType::BigInt),
            column("name", DataType::Text),
            column("price", DataType::Decimal { precision: 20, scale: 2 }),
            column("doc", DataType::Json),
        ],
        key: vec![0],
        indexes: vec![],
    }
}

fn read(format: RowFormat, text: &str) -> Result<BodyRows, Failure> {
    read_rows(&schema(), format, text, None, MissingColumns::Refuse)
}

fn rows(columns: &[usize], rows: Vec<Vec<Value>>, single: bool) -> BodyRows {
    BodyRows { columns: columns.to_vec(), rows, single }
}

fn price(unscaled: i128) -> Value {
    Value::Decimal(Decimal { unscaled, scale: 2 })
}

#[test]
fn json_objects_and_arrays() {
    let one = read(RowFormat::Json, r#" {"id": 9007199254740993, "price": 123456789012345678.9, "doc": {"a":[1]}}"#);
    let expected = vec![
        Value::BigInt(9_007_199_254_740_993),
        price(12_345_678_901_234_567_890),
        Value::Json("{\"a\":[1]}".into()),
    ];
    assert_eq!(one, Ok(rows(&[0, 2, 3], vec![expected], true)));
    let many = read(RowFormat::Json, r#"[{"ID":1,"name":"a"},{"name":null,"ID":"2"}]"#);
    let expected = vec![vec![Value::BigInt(1), Value::text("a")], vec![Value::BigInt(2), Value::Null]];
    assert_eq!(many, Ok(rows(&[0, 1], expected, false)));
    assert_eq!(read(RowFormat::Json, "[]"), Ok(rows(&[], vec![], false)));
    assert_eq!(read(RowFormat::Json, "{}"), Ok(rows(&[], vec![vec![]], true)));
}

#[test]
fn lines_and_csv() {
    let lines = read(RowFormat::Lines, "{\"id\":1,\"name\":\"a\"}\r\n\n{\"id\":2,\"name\":\"b\"}");
    let expected = vec![vec![Value::BigInt(1), Value::text("a")], vec![Value::BigInt(2), Value::text("b")]];
    assert_eq!(lines, Ok(rows(&[0, 1], expected, false)));
    let csv = read(RowFormat::Csv, "name,id,price\r\n\"x,\"\"y\"\"\",1,1.5\r\n,2,\r\n\"\",3,\r\n");
    let expected = vec![
        vec![Value::text("x,\"y\""), Value::BigInt(1), price(150)],
        vec![Value::Null, Value::BigInt(2), Value::Null],
        vec![Value::text(""), Value::BigInt(3), Value::Null],
    ];
    assert_eq!(csv, Ok(rows(&[1, 0, 2], expected, false)));
    assert_eq!(read(RowFormat::Csv, ""), Ok(rows(&[], vec![], false)));
}

#[test]
fn members_that_only_some_rows_have() {
    let text = r#"[{"id":1},{"id":2,"name":"b"},{"name":"c"}]"#;
    assert_eq!(read(RowFormat::Json, text).expect_err("differ").message, "All object keys must match");
    let allowed = read_rows(&schema(), RowFormat::Json, text, None, MissingColumns::Null);
    let expected = vec![
        vec![Value::BigInt(1), Value::Null],
        vec![Value::BigInt(2), Value::text("b")],
        vec![Value::Null, Value::text("c")],
    ];
    assert_eq!(allowed, Ok(rows(&[0, 1], expected, false)));
    let only = read_rows(
        &schema(),
        RowFormat::Json,
        r#"[{"id":1,"junk":2},{"name":"b"}]"#,
        Some(vec![0]),
        MissingColumns::Refuse,
    );
    assert_eq!(only, Ok(rows(&[0], vec![vec![Value::BigInt(1)], vec![Value::Null]], false)));
}

#[test]
fn what_is_wrong_is_refused_by_code() {
    let cases = [
        (RowFormat::Json, "", "22P02"),
        (RowFormat::Json, "5", "22P02"),
        (RowFormat::Json, "[{\"id\":1}", "22P02"),
        (RowFormat::Json, "[{\"id\":1}] x", "22P02"),
        (RowFormat::Json, "{\"id\":1} {\"id\":2}", "22P02"),
        (RowFormat::Json, "[1]", "22P02"),
        (RowFormat::Json, "{\"id\":\"x\"}", "22P02"),
        (RowFormat::Json, "{\"id\":1e30}", "22003"),
        (RowFormat::Json, "{\"id\":true}", "42804"),
        (RowFormat::Json, "{\"price\":1.234}", "22003"),
        (RowFormat::Json, "{\"nothing\":1}", "42703"),
        (RowFormat::Lines, "{\"id\":1}\n[2]", "22P02"),
        (RowFormat::Csv, "id,nothing\n1,2", "42703"),
        (RowFormat::Csv, "id,id\n1,2", "42601"),
        (RowFormat::Csv, "id,name\n1", "22P04"),
        (RowFormat::Csv, "id,name\n1,\"x", "22P04"),
        (RowFormat::Csv, "id\nx", "22P02"),
        (RowFormat::Csv, "doc\n{broken", "22P02"),
    ];
    for (format, text, code) in cases {
        assert_eq!(read(format, text).expect_err(text).code, code, "{text}");
    }
    let deep = format!("{{\"doc\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(read(RowFormat::Json, &deep).expect_err("deep").code, "54001");
    let placed = read(RowFormat::Csv, "id,name\n1,a\nx,b\n").expect_err("third line");
    assert_eq!(placed.details.as_deref(), Some("line 3, column id"));
}

/// RFC 8259 leaves open what an object with two members of one name means; whichever was taken, the other would be lost.
#[test]
fn a_member_that_is_given_twice_is_named_with_its_row() {
    let cases = [
        (RowFormat::Json, r#"{"id":1,"name":"a","name":"b"}"#, "name", "row 1"),
        (RowFormat::Json, r#"[{"id":1,"name":"a"},{"id":2,"id":2}]"#, "id", "row 2"),
        (RowFormat::Json, r#"[{"id":1,"name":"a"},{"id":2,"name":null,"name":"b"}]"#, "name", "row 2"),
        (RowFormat::Json, r#"{"id":1,"ID":1}"#, "ID", "row 1"),
        (RowFormat::Json, r#"{"id":1,"\u0069d":1}"#, "id", "row 1"),
        (RowFormat::Lines, "{\"id\":1}\n\n{\"id\":2,\"id\":3}", "id", "line 3, row 2"),
    ];
    for (format, text, name, place) in cases {
        let failure = read(format, text).expect_err(text);
        assert_eq!((failure.status.as_u16(), failure.code.as_ref()), (400, "42601"), "{text}");
        assert_eq!(failure.message, format!("the member {name:?} is given twice"), "{text}");
        assert_eq!(failure.details.as_deref(), Some(place), "{text}");
    }
    let lenient = read_rows(&schema(), RowFormat::Json, cases[1].1, None, MissingColumns::Null);
    assert_eq!(lenient.expect_err("twice").details.as_deref(), Some("row 2"));
}

proptest! {
    #[test]
    fn no_body_panics(text in "[\\[{]?([\\[\\]{}\",:0-9\n\\\\]|id|name|doc){0,20}") {
        for format in [RowFormat::Json, RowFormat::Lines, RowFormat::Csv] {
            let _ = read(format, &text);
        }
    }
}
