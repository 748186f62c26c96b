//! Tables from Arrow IPC files and streams. Layouts that tables do not load are cast to those that they do; where a cast
//! could lose something, it is taken back and compared.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::reader::{FileReader, StreamReader};
use cachesql_types::{Column, DataType, arrow_type, data_type_of, limits};

use crate::batch::{batch_of, check_names, row_place, schema_of, value_error, with_given_types};
use crate::convert::converted;
use crate::error::OriginError;
use crate::file::TableFile;
use crate::file::arrow_lengths::checked_rows;
use crate::source::{Estimate, SourceDescription};
use crate::stream::{BatchSender, abandoned};

/// What a file in the file format begins with; a stream does not.
pub(super) const FILE_MAGIC: &[u8] = b"ARROW1";

/// Batches of either format.
enum Batches {
    File(FileReader<BufReader<File>>),
    Stream(StreamReader<BufReader<File>>),
}

impl Batches {
    /// Opens the file, whose lengths must be sound, and tells its rows.
    fn open(file: &TableFile) -> Result<(Batches, u64), OriginError> {
        let broken = |reason: String| file.fault(None, format!("it cannot be read as Arrow IPC: {reason}"));
        let mut input = file.open()?;
        let start = input.fill_buf().map_err(|error| broken(error.to_string()))?;
        let is_file = start.starts_with(FILE_MAGIC);
        let rows = checked_rows(&mut input, is_file).map_err(broken)?;
        input.seek(SeekFrom::Start(0)).map_err(|error| broken(error.to_string()))?;
        let batches = guarded(file, || {
            if is_file {
                FileReader::try_new(input, None).map(Batches::File)
            } else {
                StreamReader::try_new(input, None).map(Batches::Stream)
            }
        })?;
        Ok((batches, rows))
    }

    fn schema(&self) -> SchemaRef {
        match self {
            Batches::File(reader) => reader.schema(),
            Batches::Stream(reader) => reader.schema(),
        }
    }

    fn next(&mut self, file: &TableFile) -> Result<Option<RecordBatch>, OriginError> {
        guarded(file, || {
            let batch = match self {
                Batches::File(reader) => reader.next(),
                Batches::Stream(reader) => reader.next(),
            };
            batch.transpose()
        })
    }
}

/// Runs the reader. Where its input is damaged in a way that it does not look for, it panics; that must stay an error about
/// this file. Nothing of the reader is used afterwards.
fn guarded<T>(file: &TableFile, read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, OriginError> {
    match panic::catch_unwind(AssertUnwindSafe(read)) {
        Ok(outcome) => outcome.map_err(|error| not_arrow(file, &error)),
        Err(_) => Err(file.fault(None, "it cannot be read as Arrow IPC: it is damaged")),
    }
}

fn not_arrow(file: &TableFile, error: &ArrowError) -> OriginError {
    file.fault(None, format!("it cannot be read as Arrow IPC: {error}"))
}

/// The columns as the file's schema names them.
fn natural_columns(file: &TableFile, schema: &SchemaRef) -> Result<Vec<Column>, OriginError> {
    check_names(&file.table, schema.fields().iter().map(|f| f.name().as_str()))?;
    let fields = schema.fields().iter();
    fields
        .map(|field| match data_type_of(field) {
            Some(data_type) => Ok(Column { name: field.name().clone(), data_type, nullable: field.is_nullable() }),
            None => Err(OriginError::Type {
                table: file.table.clone(),
                column: field.name().clone(),
                type_name: field.data_type().to_string(),
                advice: "write it as text, or leave it out of the file".to_owned(),
            }),
        })
        .collect()
}

/// Reads the schema, and how many rows there are.
pub(super) fn describe(file: &TableFile, types: &[(String, DataType)]) -> Result<SourceDescription, OriginError> {
    let (batches, rows) = Batches::open(file)?;
    let columns = natural_columns(file, &batches.schema())?;
    if columns.is_empty() {
        return Err(file.fault(None, "it has no columns"));
    }
    let columns = with_given_types(&file.table, columns, types)?;
    let bytes = std::fs::metadata(&file.path).map_err(|error| file.fault(None, error.to_string()))?.len();
    Ok(SourceDescription { columns, primary_key: None, estimate: Some(Estimate { rows, bytes }) })
}

/// Hands the file's batches on, cut to size and cast.
pub(super) fn load(file: &TableFile, columns: &[Column], sender: &BatchSender) -> Result<(), OriginError> {
    let (mut batches, _) = Batches::open(file)?;
    let natural = natural_columns(file, &batches.schema())?;
    if !natural.iter().map(|c| &c.name).eq(columns.iter().map(|c| &c.name)) {
        return Err(file.fault(None, "it has other columns than when it was described"));
    }
    let schema = schema_of(columns);
    let mut rows_before = 0_u64;
    while let Some(batch) = batches.next(file)? {
        let mut start = 0;
        while start < batch.num_rows() {
            let length = limits::LOAD_BATCH_ROWS.min(batch.num_rows() - start);
            let part = batch.slice(start, length);
            let mut arrays = Vec::with_capacity(columns.len());
            for ((array, natural), column) in part.columns().iter().zip(&natural).zip(columns) {
                let array = canonical(file, column, array, natural.data_type, rows_before)?;
                arrays.push(converted(&file.table, column, &array, natural.data_type, rows_before)?);
            }
            let part = batch_of(&file.table, columns, &schema, arrays, length, rows_before)?;
            sender.blocking_send(part).map_err(|_| abandoned(&file.table))?;
            rows_before += length as u64;
            start += length;
        }
    }
    Ok(())
}

/// The array in the layout that tables load for its type.
fn canonical(
    file: &TableFile,
    column: &Column,
    array: &ArrayRef,
    data_type: DataType,
    rows_before: u64,
) -> Result<ArrayRef, OriginError> {
    let wanted = arrow_type(data_type);
    if *array.data_type() == wanted {
        return Ok(array.clone());
    }
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let failed = |error: ArrowError| OriginError::Value {
        table: file.table.clone(),
        column: column.name.clone(),
        value: format!("of type {}", array.data_type()),
        data_type,
        place: format!("{} from row {}", file.path.display(), rows_before + 1).into(),
        reason: error.to_string(),
    };
    let cast = cast_with_options(array, &wanted, &exact).map_err(failed)?;
    if !may_lose(array.data_type()) {
        return Ok(cast);
    }
    let back = cast_with_options(&cast, array.data_type(), &exact).map_err(failed)?;
    if back.to_data() == array.to_data() {
        return Ok(cast);
    }
    let differs = |row: &usize| back.slice(*row, 1).to_data() != array.slice(*row, 1).to_data();
    let row = (0..array.len()).find(differs).unwrap_or(0);
    let value = arrow::util::display::array_value_to_string(array, row).unwrap_or_default();
    let place = format!("{} {}", file.path.display(), row_place(rows_before, row));
    Err(value_error(&file.table, column, &value, place, "it is finer than the type holds"))
}

/// Types finer than those that tables hold: nanoseconds, and days counted in milliseconds.
fn may_lose(from: &ArrowType) -> bool {
    use arrow::datatypes::TimeUnit::Nanosecond;
    match from {
        ArrowType::Timestamp(Nanosecond, _) | ArrowType::Time64(Nanosecond) | ArrowType::Date64 => true,
        ArrowType::Dictionary(_, values) => may_lose(values),
        _ => false,
    }
}
