//! Loads of Arrow IPC files and streams, compressed or not, in layouts that tables load and in others.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date64Array, DictionaryArray, Float64Array, Int8Array, Int32Array, LargeStringArray, ListArray,
    RecordBatch, StringArray, StringViewArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{Int8Type, Int32Type};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use cachesql_origin::{Origin, OriginError};

use crate::reading::{file, load, rows, types};

fn batch() -> RecordBatch {
    let dictionary: DictionaryArray<Int8Type> = vec![Some("x"), None].into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("tiny", Arc::new(Int8Array::from(vec![Some(-128), None]))),
        ("whole", Arc::new(Int32Array::from(vec![Some(i32::MIN), None]))),
        ("huge", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
        ("double", Arc::new(Float64Array::from(vec![Some(f64::NAN), None]))),
        ("text", Arc::new(StringArray::from(vec![Some("汉字😀"), None]))),
        ("large", Arc::new(LargeStringArray::from(vec![Some(""), None]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("a text longer than twelve"), None]))),
        ("repeated", Arc::new(dictionary)),
        ("millis", Arc::new(TimestampMillisecondArray::from(vec![Some(1_500), None]))),
        ("nanos", Arc::new(TimestampNanosecondArray::from(vec![Some(1_000), None]).with_timezone("+02:00"))),
        ("day", Arc::new(Date64Array::from(vec![Some(86_400_000), None]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn write_file(path: &Path, batch: &RecordBatch, compression: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let output = std::fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new_with_options(output, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

#[tokio::test]
async fn both_formats_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.arrow");
    let first = [
        "-128",
        "-2147483648",
        "18446744073709551615",
        "NaN",
        "汉字😀",
        "",
        "a text longer than twelve",
        "x",
        "1970-01-01 00:00:01.5",
        "1970-01-01 00:00:00.000001+00",
        "1970-01-02",
    ];
    let expected = rows(&[&first.map(Some), &[None; 11]]);
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        write_file(&path, &batch(), compression);
        let (description, loaded) = load(&Origin::files(), &file(&path)).await.unwrap();
        assert_eq!(
            types(&description),
            [
                "SMALLINT",
                "INTEGER",
                "DECIMAL(20,0)",
                "DOUBLE",
                "TEXT",
                "TEXT",
                "TEXT",
                "TEXT",
                "TIMESTAMP",
                "TIMESTAMPTZ",
                "DATE"
            ]
        );
        assert_eq!(loaded, expected);
    }
    let mut writer = StreamWriter::try_new(std::fs::File::create(&path).unwrap(), &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    let (description, loaded) = load(&Origin::files(), &file(&path)).await.unwrap();
    assert_eq!(loaded, [expected.clone(), expected].concat());
    assert_eq!(description.estimate.unwrap().rows, 4);
}

#[tokio::test]
async fn large_batches_are_cut() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.feather");
    let many: ArrayRef = Arc::new(Int32Array::from_iter_values(0..150_000));
    write_file(&path, &RecordBatch::try_from_iter([("n", many)]).unwrap(), None);
    let (description, loaded) = load(&Origin::files(), &file(&path)).await.unwrap();
    assert_eq!(loaded.len(), 150_000);
    assert_eq!(loaded[149_999][0].as_deref(), Some("149999"));
    assert_eq!(description.estimate.unwrap().rows, 150_000);
}

#[tokio::test]
async fn what_would_be_lost_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.arrow");
    let one = |name: &str, array: ArrayRef| RecordBatch::try_from_iter([(name, array)]).unwrap();
    write_file(&path, &one("at", Arc::new(TimestampNanosecondArray::from(vec![1_000, 1_001]))), None);
    let error = load(&Origin::files(), &file(&path)).await.unwrap_err().to_string();
    assert!(error.contains("column at") && error.contains("row 2") && error.contains("00.000001001"), "{error}");
    write_file(&path, &one("at", Arc::new(TimestampMillisecondArray::from(vec![i64::MAX]))), None);
    let error = load(&Origin::files(), &file(&path)).await.unwrap_err();
    assert!(matches!(&error, OriginError::Value { column, .. } if column == "at"), "{error}");
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)])]);
    write_file(&path, &one("list", Arc::new(lists)), None);
    let error = load(&Origin::files(), &file(&path)).await.unwrap_err();
    assert!(matches!(&error, OriginError::Type { column, .. } if column == "list"), "{error}");
}

#[tokio::test]
async fn broken_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.arrow");
    write_file(&path, &batch(), None);
    let sound = std::fs::read(&path).unwrap();
    for broken in [&sound[..sound.len() / 2], b"", b"ARROW1\0\0", b"nonsense", &[0xff; 1_000]] {
        std::fs::write(&path, broken).unwrap();
        let error = load(&Origin::files(), &file(&path)).await.unwrap_err();
        assert!(matches!(&error, OriginError::File { path, .. } if path.ends_with("a.arrow")), "{error}");
    }
}

#[tokio::test]
async fn damaged_files_are_refused_in_bounded_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.arrow");
    write_file(&path, &batch(), None);
    let file_format = std::fs::read(&path).unwrap();
    let mut stream_format = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream_format, &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    drop(writer);
    // One damaged byte after the other: lengths, offsets, types, marks, values. Rows may differ then; a file that cannot be
    // read must be an error about that file, before memory was asked for by a length in it.
    for sound in [file_format, stream_format] {
        for at in (0..sound.len()).step_by(3) {
            let mut damaged = sound.clone();
            damaged[at] ^= 0xff;
            std::fs::write(&path, &damaged).unwrap();
            if let Err(error) = load(&Origin::files(), &file(&path)).await {
                assert!(!matches!(error, OriginError::Broken { .. }), "byte {at}: {error}");
            }
        }
    }
}
