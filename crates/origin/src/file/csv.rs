//! Tables from CSV files: columns from the header, types from the values, and rows.

use std::fs::File;
use std::io::BufReader;

use cachesql_types::{Column, DataType, Value, limits, resolve_name};

use crate::batch::{BatchBuilder, check_names, reason_of, value_error, with_given_types};
use crate::columns::Values;
use crate::error::OriginError;
use crate::file::TableFile;
use crate::file::csv_reader::{CsvFault, CsvReader, Record};
use crate::file::infer::TextSeen;
use crate::source::{CsvOptions, Estimate, SourceDescription};
use crate::stream::{BatchSender, abandoned};

/// The records behind the header.
struct Table<'f> {
    file: &'f TableFile,
    reader: CsvReader<BufReader<File>>,
    names: Vec<String>,
    record: Record,
    null_text: Option<Vec<u8>>,
}

impl<'f> Table<'f> {
    fn open(file: &'f TableFile, options: &CsvOptions) -> Result<Table<'f>, OriginError> {
        if matches!(options.delimiter, b'"' | b'\r' | b'\n') {
            return Err(file.fault(None, "the delimiter cannot be a quote or the end of a line"));
        }
        let mut reader = CsvReader::new(file.open()?, options.delimiter);
        let mut record = Record::default();
        if !reader.read(&mut record).map_err(|fault| named(file, fault))? || record.is_blank() {
            return Err(file.fault(Some(1), "there is no header row"));
        }
        let names = record
            .fields()
            .map(|(name, _)| {
                String::from_utf8(name.to_vec()).map_err(|_| file.fault(Some(1), "the header is not UTF-8"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        check_names(&file.table, names.iter().map(String::as_str))?;
        let null_text = options.null_text.as_ref().map(|text| text.as_bytes().to_vec());
        Ok(Table { file, reader, names, record, null_text })
    }

    /// Reads the next record, of as many fields as the header has. Empty lines are not records, unless there is but one
    /// column: then they are its NULLs.
    fn read(&mut self) -> Result<bool, OriginError> {
        loop {
            if !self.reader.read(&mut self.record).map_err(|fault| named(self.file, fault))? {
                return Ok(false);
            }
            if self.record.len() == self.names.len() {
                return Ok(true);
            }
            if !self.record.is_blank() {
                let reason = format!("there are {} fields; the header has {}", self.record.len(), self.names.len());
                return Err(self.file.fault(Some(self.record.line()), reason));
            }
        }
    }

    /// The fields of the record; `None` is NULL.
    fn fields(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.record.fields().map(|(field, quoted)| {
            let null = !quoted && (field.is_empty() || self.null_text.as_deref() == Some(field));
            if null { None } else { Some(field) }
        })
    }
}

fn named(file: &TableFile, fault: CsvFault) -> OriginError {
    match fault {
        CsvFault::Read(error) => file.fault(None, error.to_string()),
        CsvFault::Malformed { line, reason } => file.fault(Some(line), reason),
    }
}

/// Reads the header, and the values of the columns whose types are not given.
pub(super) fn describe(
    file: &TableFile,
    options: &CsvOptions,
    types: &[(String, DataType)],
) -> Result<SourceDescription, OriginError> {
    let mut table = Table::open(file, options)?;
    let given = |name: &String| resolve_name(types.iter().map(|(n, _)| n.as_str()), name).is_some();
    let wanted: Vec<bool> = table.names.iter().map(|name| !given(name)).collect();
    let whole = wanted.contains(&true);
    let mut seen = vec![TextSeen::default(); table.names.len()];
    let (mut rows, mut bytes, mut ended) = (0_u64, 0_u64, false);
    while whole || rows < limits::ESTIMATE_SAMPLE_ROWS {
        if !table.read()? {
            ended = true;
            break;
        }
        rows += 1;
        bytes += table.record.bytes() as u64;
        for ((field, seen), wanted) in table.fields().zip(&mut seen).zip(&wanted) {
            if let (Some(field), true) = (field, wanted) {
                match std::str::from_utf8(field) {
                    Ok(text) => seen.add(text),
                    // The load will say where.
                    Err(_) => seen.add_other(),
                }
            }
        }
    }
    let columns = table.names.iter().zip(&seen);
    let columns = columns
        .map(|(name, seen)| Column { name: name.clone(), data_type: seen.data_type(), nullable: true })
        .collect();
    let columns = with_given_types(&file.table, columns, types)?;
    let sampled = Estimate { rows, bytes };
    let estimate = if ended { sampled } else { file.extrapolated(sampled, table.names.len())? };
    Ok(SourceDescription { columns, primary_key: None, estimate: Some(estimate) })
}

/// Reads the records into batches.
pub(super) fn load(
    file: &TableFile,
    options: &CsvOptions,
    columns: &[Column],
    sender: &BatchSender,
) -> Result<(), OriginError> {
    let mut table = Table::open(file, options)?;
    if !table.names.iter().eq(columns.iter().map(|c| &c.name)) {
        return Err(file.fault(Some(1), "the header has other columns than when the file was described"));
    }
    let mut batch = BatchBuilder::new(&file.table, columns);
    while table.read()? {
        let line = table.record.line();
        for ((field, builder), column) in table.fields().zip(&mut batch.builders).zip(columns) {
            let Some(field) = field else {
                if !column.nullable {
                    let reason = "the column may not hold NULL";
                    return Err(value_error(&file.table, column, "", file.place(line), reason));
                }
                builder.push_null();
                continue;
            };
            let refused = |reason| {
                let value = String::from_utf8_lossy(field);
                value_error(&file.table, column, &value, file.place(line), reason)
            };
            let text = std::str::from_utf8(field).map_err(|_| refused("it is not UTF-8"))?;
            // The two commonest types without a detour through `Value`.
            match &mut builder.values {
                Values::Text(values) => {
                    values.push(field);
                    builder.mark_value();
                    continue;
                }
                Values::BigInt(values) => {
                    if let Ok(number) = text.parse() {
                        values.push(number);
                        builder.mark_value();
                        continue;
                    }
                }
                _ => {}
            }
            let value = Value::parse(text, column.data_type).map_err(|error| refused(reason_of(&error)))?;
            if !builder.push(&value) {
                return Err(refused("values of its type are not converted"));
            }
        }
        batch.end_row(table.record.bytes());
        if batch.is_full() {
            sender.blocking_send(batch.take()?).map_err(|_| abandoned(&file.table))?;
        }
    }
    if !batch.is_empty() {
        sender.blocking_send(batch.take()?).map_err(|_| abandoned(&file.table))?;
    }
    Ok(())
}
