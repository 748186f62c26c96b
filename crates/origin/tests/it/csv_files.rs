//! Loads of CSV files: types from values, NULL beside the empty string, broken files by line.

use cachesql_origin::{CsvOptions, FileFormat, Origin, OriginError, SourceDescription};
use cachesql_types::DataType;

use crate::reading::{Texts, file, file_of, load, rows, types};

async fn load_text(text: &[u8], options: CsvOptions) -> Result<(SourceDescription, Texts), OriginError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.csv");
    std::fs::write(&path, text).unwrap();
    load(&Origin::files(), &file_of(&path, FileFormat::Csv(options))).await
}

#[tokio::test]
async fn columns_take_the_type_of_all_their_values() {
    let text = "\u{feff}id,code,price,ratio,ok,day,at,zoned,note\r\n\
        1,007,1.50,10.357019999999999,true,2013-01-01,2013-01-01 10:00:00,2013-01-01T10:00:00Z,\"a \"\"quoted\"\", 汉字😀\r\nsecond line\"\r\n\
        -5,1,2,8,false,1969-12-31,2013-01-01T10:00:00.5,2013-01-01 10:00:00+02,\"\"\r\n\
        ,,,,,,,,\r\n";
    let (description, loaded) = load_text(text.as_bytes(), CsvOptions::default()).await.unwrap();
    assert_eq!(
        types(&description),
        ["BIGINT", "TEXT", "DECIMAL(18,2)", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TEXT"]
    );
    let first = [
        "1",
        "007",
        "1.50",
        "10.357019999999999",
        "t",
        "2013-01-01",
        "2013-01-01 10:00:00",
        "2013-01-01 10:00:00+00",
        "a \"quoted\", 汉字😀\r\nsecond line",
    ];
    let second = ["-5", "1", "2.00", "8", "f", "1969-12-31", "2013-01-01 10:00:00.5", "2013-01-01 08:00:00+00", ""];
    assert_eq!(loaded, rows(&[&first.map(Some), &second.map(Some), &[None; 9]]));
    assert_eq!(description.estimate.unwrap().rows, 3);
}

/// PostgreSQL writes booleans as `t` and `f` (COPY … CSV), and so does this program's own CSV.
#[tokio::test]
async fn booleans_come_as_postgres_exports_them() {
    let text = b"id,active,initial,answer\n1,t,T,t\n2,f,x,y\n3,,f,f\n4,\"t\",t,t\n";
    let (description, loaded) = load_text(text, CsvOptions::default()).await.unwrap();
    assert_eq!(types(&description), ["BIGINT", "BOOLEAN", "TEXT", "TEXT"]);
    let active: Vec<_> = loaded.iter().map(|row| row[1].as_deref()).collect();
    assert_eq!(active, [Some("t"), Some("f"), None, Some("t")]);
    assert_eq!(loaded[0][2].as_deref(), Some("T"), "text stays as it was written");
}

#[tokio::test]
async fn null_is_what_the_options_say() {
    let text = b"a;b\nNA;1\n\"NA\";\n\"\";2\n";
    let options = CsvOptions { delimiter: b';', null_text: Some("NA".into()) };
    let (description, loaded) = load_text(text, options).await.unwrap();
    assert_eq!(types(&description), ["TEXT", "BIGINT"]);
    assert_eq!(loaded, rows(&[&[None, Some("1")], &[Some("NA"), None], &[Some(""), Some("2")]]));
    let options = CsvOptions { delimiter: b';', null_text: None };
    let (_, loaded) = load_text(text, options).await.unwrap();
    assert_eq!(loaded[0], [Some("NA".to_owned()), Some("1".to_owned())]);
}

#[tokio::test]
async fn empty_lines_count_in_a_file_of_one_column_only() {
    let (_, loaded) = load_text(b"a\n1\n\n2\n", CsvOptions::default()).await.unwrap();
    assert_eq!(loaded, rows(&[&[Some("1")], &[None], &[Some("2")]]));
    let (_, loaded) = load_text(b"a,b\n1,2\n\n3,4", CsvOptions::default()).await.unwrap();
    assert_eq!(loaded.len(), 2);
    let (description, loaded) = load_text(b"a,b\n", CsvOptions::default()).await.unwrap();
    assert_eq!((types(&description).len(), loaded.len()), (2, 0));
}

#[tokio::test]
async fn broken_files_are_refused_with_file_and_line() {
    for (text, line, reason) in [
        (&b"a,b\n1,2\n3\n"[..], Some(3), "1 fields"),
        (b"a,b\n1,2\n3,4,5\n", Some(3), "3 fields"),
        (b"a,b\n1,\"x\n", Some(2), "does not end"),
        (b"a,b\n1,\"x\"y\n", Some(2), "closing quote"),
        (b"", Some(1), "header"),
        (b"a,\xff\n", Some(1), "UTF-8"),
    ] {
        match load_text(text, CsvOptions::default()).await.unwrap_err() {
            OriginError::File { path, line: at, reason: why, .. } => {
                assert!(path.ends_with("people.csv") && at == line && why.contains(reason), "{at:?} {why}");
            }
            other => panic!("{other}"),
        }
    }
    for text in [&b"a,a\n"[..], b"a,,c\n"] {
        assert!(matches!(load_text(text, CsvOptions::default()).await, Err(OriginError::Columns { .. })));
    }
    let error = load(&Origin::files(), &file("/nowhere/people.csv".as_ref())).await.unwrap_err();
    assert!(matches!(&error, OriginError::File { path, .. } if path == "/nowhere/people.csv"), "{error}");
}

#[tokio::test]
async fn given_types_count_and_their_errors_name_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.csv");
    std::fs::write(&path, "id,when\n1,2026-01-01\n\"two\nlines\",x\n").unwrap();
    let mut given = file(&path);
    given.types = vec![("ID".into(), DataType::Integer), ("when".into(), DataType::Text)];
    let error = load(&Origin::files(), &given).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("column id") && text.contains("people.csv line 3") && text.contains("two\\nlines"), "{text}");
    std::fs::write(&path, b"id,when\n1,ok\n2,\xff\n").unwrap();
    let text = load(&Origin::files(), &given).await.unwrap_err().to_string();
    assert!(text.contains("column when") && text.contains("line 3") && text.contains("UTF-8"), "{text}");
    std::fs::write(&path, format!("id,when\n{}", "1,2026-01-01\n".repeat(100_000))).unwrap();
    let described = Origin::files().describe(&given).await.unwrap();
    // Sampled, since no value is needed to know the types.
    let estimate = described.estimate.unwrap();
    assert!((90_000..=110_000).contains(&estimate.rows), "{estimate:?}");
    let mut required = described.columns.clone();
    required[0].nullable = false;
    std::fs::write(&path, "id,when\n1,a\n,b\n").unwrap();
    let mut stream = Origin::files().load(&given, &required).await.unwrap();
    let error = stream.next().await.unwrap().unwrap_err().to_string();
    assert!(error.contains("column id") && error.contains("line 3") && error.contains("NULL"), "{error}");
}
