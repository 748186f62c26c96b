//! Layouts, against texts written by hand.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use super::*;

fn columns() -> Arc<[ColumnInfo]> {
    let column = |name: &str, data_type| ColumnInfo { name: name.into(), data_type };
    Arc::from([column("id", DataType::BigInt), column("say \"hi\"", DataType::Text)])
}

fn batch() -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a,b"), Some(""), None]));
    RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("t", texts, true)]).expect("batch")
}

fn encoded(layout: Layout) -> String {
    let mut encoder = RowEncoder::new(&columns(), layout, JsonStyle::default());
    let mut out = Vec::new();
    encoder.begin(&mut out);
    let at = encoder.batch(&mut out, &batch(), 0, usize::MAX);
    assert_eq!(at, 3);
    encoder.end(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn each_layout_is_as_its_format_says() {
    let objects = r#"[{"id":1,"say \"hi\"":"a,b"},{"id":null,"say \"hi\"":""},{"id":3,"say \"hi\"":null}]"#;
    assert_eq!(encoded(Layout::Objects), objects);
    assert_eq!(encoded(Layout::Arrays), r#"[[1,"a,b"],[null,""],[3,null]]"#);
    let lines = objects.trim_matches(['[', ']']).replace("},{", "}\n{") + "\n";
    assert_eq!(encoded(Layout::Lines), lines);
    assert_eq!(encoded(Layout::Csv), "id,\"say \"\"hi\"\"\"\n1,\"a,b\"\n,\"\"\n3,\n");
}

#[test]
fn rows_stop_at_the_size_that_is_asked_for() {
    let mut encoder = RowEncoder::new(&columns(), Layout::Arrays, JsonStyle::default());
    let mut out = Vec::new();
    encoder.begin(&mut out);
    let at = encoder.batch(&mut out, &batch(), 0, 5);
    assert_eq!((at, out.as_slice()), (1, b"[[1,\"a,b\"]".as_slice()));
    let at = encoder.batch(&mut out, &batch(), at, usize::MAX);
    encoder.end(&mut out);
    assert_eq!((at, out.as_slice()), (3, br#"[[1,"a,b"],[null,""],[3,null]]"#.as_slice()));
}

#[test]
fn no_rows_are_an_empty_list() {
    let mut encoder = RowEncoder::new(&columns(), Layout::Objects, JsonStyle::default());
    let mut out = Vec::new();
    encoder.begin(&mut out);
    encoder.end(&mut out);
    assert_eq!(out, b"[]");
}
