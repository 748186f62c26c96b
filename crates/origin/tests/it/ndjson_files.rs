//! Loads of NDJSON files: exact numbers, nested values, missing keys, broken lines.

use cachesql_origin::{Origin, OriginError, SourceDescription};
use cachesql_types::DataType;

use crate::reading::{Texts, file, load, rows, types};

async fn load_text(text: &[u8], given: &[(&str, DataType)]) -> Result<(SourceDescription, Texts), OriginError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.ndjson");
    std::fs::write(&path, text).unwrap();
    let mut query = file(&path);
    query.types = given.iter().map(|(name, data_type)| ((*name).to_owned(), *data_type)).collect();
    load(&Origin::files(), &query).await
}

#[tokio::test]
async fn columns_take_the_type_of_all_their_values() {
    let text = r#"{"id": 9223372036854775807, "amount": 1.50, "big": 1e300, "s": "汉字\n\"\\ 😀", "ok": true, "at": "2013-01-01T10:00:00Z", "nested": {"b": [1.50,  null]}, "mixed": 1}

        {"mixed": "1", "id": -1, "amount": 2, "late": "007", "s": "", "ok": null, "huge": 123456789012345678901234567890.12345}
"#;
    let (description, loaded) = load_text(text.as_bytes(), &[]).await.unwrap();
    let names: Vec<&str> = description.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["id", "amount", "big", "s", "ok", "at", "nested", "mixed", "late", "huge"]);
    assert_eq!(
        types(&description),
        [
            "BIGINT",
            "DECIMAL(18,2)",
            "DOUBLE",
            "TEXT",
            "BOOLEAN",
            "TIMESTAMPTZ",
            "JSON",
            "JSON",
            "TEXT",
            "DECIMAL(38,5)"
        ]
    );
    let first = [
        Some("9223372036854775807"),
        Some("1.50"),
        Some("1e+300"),
        Some("汉字\n\"\\ 😀"),
        Some("t"),
        Some("2013-01-01 10:00:00+00"),
        Some(r#"{"b": [1.50,  null]}"#),
        Some("1"),
        None,
        None,
    ];
    let second = [
        Some("-1"),
        Some("2.00"),
        None,
        Some(""),
        None,
        None,
        None,
        Some("\"1\""),
        Some("007"),
        Some("123456789012345678901234567890.12345"),
    ];
    assert_eq!(loaded, rows(&[&first, &second]));
}

#[tokio::test]
async fn given_types_are_taken_exactly_or_refused() {
    let given = [("a", DataType::Integer), ("b", DataType::Text), ("c", DataType::Json)];
    let (_, loaded) = load_text(br#"{"a": 1e3, "b": 1.50, "c": "x"}"#, &given).await.unwrap();
    assert_eq!(loaded, rows(&[&[Some("1000"), Some("1.50"), Some("\"x\"")]]));
    for (line, shown) in
        [(r#"{"a": 1.5}"#, "1.5"), (r#"{"a": true}"#, "true"), (r#"{"a": [1]}"#, "[1]"), (r#"{"a": "x"}"#, "x")]
    {
        let text = format!("{{\"a\": 1}}\n{line}\n");
        let error = load_text(text.as_bytes(), &[("a", DataType::Integer)]).await.unwrap_err().to_string();
        assert!(
            error.contains("column a") && error.contains("events.ndjson line 2") && error.contains(shown),
            "{error}"
        );
    }
}

#[tokio::test]
async fn broken_lines_are_refused_with_file_and_line() {
    let deep = format!("{{\"a\": 1}}\n{{\"a\": {}", "[".repeat(100_000));
    for text in [
        "{\"a\": 1}\n{\"a\": \n",
        "{\"a\": 1}\n[1]\n",
        "{\"a\": 1}\n{\"a\": 1} x\n",
        "{\"a\": 1}\n{\"\": 1}",
        deep.as_str(),
    ] {
        match load_text(text.as_bytes(), &[]).await.unwrap_err() {
            OriginError::File { path, line, .. } => {
                assert!(path.ends_with("events.ndjson") && line == Some(2), "{line:?}")
            }
            other => panic!("{other}"),
        }
    }
    let error = load_text(b"{\"a\": 1, \"a\": 2}", &[]).await.unwrap_err();
    assert!(error.to_string().contains("\"a\" is there twice"), "{error}");
    let error = load_text(br#"{"a": "\ud800"}"#, &[]).await.unwrap_err();
    assert!(error.to_string().contains("surrogate"), "{error}");
    assert!(load_text(b"\n\n", &[]).await.is_err());
}
