//! Rows as structs, tuples and maps: what each type of column gives, and what does not fit.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::Error;
use crate::rows::{Rows, read_answer};

fn rows(columns: &[(&str, &str)], rows: &str) -> Rows {
    let columns: Vec<String> =
        columns.iter().map(|(name, data_type)| format!("{{\"name\":\"{name}\",\"type\":\"{data_type}\"}}")).collect();
    let body = format!("{{\"columns\":[{}],\"rows\":{rows}}}", columns.join(","));
    read_answer(body.as_bytes()).expect("sound")
}

fn misfit<T: serde::de::DeserializeOwned + std::fmt::Debug>(rows: &Rows) -> String {
    match rows.typed::<T>() {
        Err(Error::Row { row, message }) => format!("{row}: {message}"),
        other => panic!("expected a row that does not fit, found {other:?}"),
    }
}

#[derive(Debug, PartialEq, Deserialize)]
enum Colour {
    Red,
    Green,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Document {
    tags: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Person {
    aac001: i64,
    name: String,
    price: String,
    paid: Option<f64>,
    born: String,
    seen: String,
    colour: Colour,
    doc: Document,
    photo: Vec<u8>,
    #[serde(default)]
    absent: Option<u8>,
}

#[test]
fn a_struct_takes_columns_by_name() {
    let columns = [
        ("AAC001", "BIGINT"),
        ("name", "TEXT"),
        ("price", "DECIMAL(38,2)"),
        ("paid", "DECIMAL(10,2)"),
        ("born", "DATE"),
        ("seen", "TIMESTAMPTZ"),
        ("colour", "TEXT"),
        ("doc", "JSON"),
        ("photo", "BYTEA"),
        ("another", "BIGINT"),
    ];
    let row = r#"[[9007199254740993,"张三",123456789012345678901234567890123456.10,1.5,"1969-12-31","1970-01-01T00:00:00+00:00","Green",{"tags":["a","b"]},"\\x00ff",1]]"#;
    let people: Vec<Person> = rows(&columns, row).typed().expect("it fits");
    let expected = Person {
        aac001: 9_007_199_254_740_993,
        name: "张三".into(),
        price: "123456789012345678901234567890123456.10".into(),
        paid: Some(1.5),
        born: "1969-12-31".into(),
        seen: "1970-01-01T00:00:00+00:00".into(),
        colour: Colour::Green,
        doc: Document { tags: vec!["a".into(), "b".into()] },
        photo: vec![0, 255],
        absent: None,
    };
    assert_eq!(people, [expected]);
}

#[test]
fn tuples_and_maps_take_rows_too() {
    let two = rows(&[("a", "INTEGER"), ("b", "TEXT")], r#"[[1,"x"],[2,null]]"#);
    let tuples: Vec<(u8, Option<String>)> = two.typed().expect("they fit");
    assert_eq!(tuples, [(1, Some("x".into())), (2, None)]);
    let maps: Vec<BTreeMap<String, serde_json::Value>> = two.typed().expect("they fit");
    assert_eq!(maps[1], BTreeMap::from([("a".into(), 2.into()), ("b".into(), serde_json::Value::Null)]));
    assert_eq!(misfit::<(i64,)>(&two), "1: 2 columns, and 1 values are asked for");
}

#[test]
fn a_decimal_is_a_number_only_to_who_asks_for_one() {
    let decimals = rows(&[("a", "DECIMAL(20,2)")], "[[12.00],[12.50]]");
    assert_eq!(decimals.typed::<(f64,)>().expect("they fit"), [(12.0,), (12.5,)]);
    assert_eq!(decimals.row(0).expect("one").typed::<(u8,)>().expect("whole"), (12,));
    assert_eq!(misfit::<(i64,)>(&decimals), "2: column a: 12.50 is no integer");
    assert_eq!(decimals.typed::<(String,)>().expect("they fit")[1].0, "12.50");
    let large = rows(&[("a", "DECIMAL(38,0)")], "[[99999999999999999999]]");
    assert_eq!(large.typed::<(i128,)>().expect("it fits"), [(99_999_999_999_999_999_999,)]);
}

#[test]
fn what_does_not_fit_names_row_and_column() {
    #[derive(Debug, Deserialize)]
    struct Small {
        #[allow(dead_code)]
        n: u8,
    }
    let rows = rows(&[("N", "BIGINT")], "[[1],[300]]");
    assert_eq!(misfit::<Small>(&rows), "2: column N: invalid value: integer `300`, expected u8");
    assert_eq!(misfit::<(String,)>(&rows), "1: column N: invalid type: integer `1`, expected a string");
    let null = one_null();
    assert!(misfit::<Small>(&null).starts_with("1: column n: invalid type: "));
}

#[test]
fn a_name_that_fits_exactly_is_not_taken_by_one_that_differs_in_case() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Both {
        id: i64,
    }
    let rows = rows(&[("ID", "BIGINT"), ("id", "BIGINT")], "[[1,2]]");
    assert_eq!(rows.typed::<Both>().expect("it fits"), [Both { id: 2 }]);
}

fn one_null() -> Rows {
    rows(&[("n", "BIGINT")], "[[null]]")
}
