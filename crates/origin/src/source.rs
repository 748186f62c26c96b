//! What a table's rows come from, and what can be said about it before they come.

use std::path::PathBuf;

use cachesql_types::{Column, DataType, Value};

/// Where one table's rows come from.
#[derive(Clone, Debug, PartialEq)]
pub struct TableQuery {
    /// The table's name, for errors.
    pub table: String,
    /// Query or file.
    pub source: TableSource,
    /// Types that are given, by column name (exact, else without regard to case). The other columns get the origin's type,
    /// or for files the type that their values show.
    pub types: Vec<(String, DataType)>,
}

/// A query on a database, or a file.
#[derive(Clone, Debug, PartialEq)]
pub enum TableSource {
    /// A query with values for its parameters, in order. They are bound, never put into the text.
    Query {
        /// One statement; parameters are `$1`, `$2`, … or `?` in order.
        sql: String,
        /// Their values.
        params: Vec<Value>,
    },
    /// A file.
    File(FileSource),
}

/// A file of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSource {
    /// Where it is.
    pub path: PathBuf,
    /// Its format.
    pub format: FileFormat,
}

/// How rows are written in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// RFC 4180 with a header row.
    Csv(CsvOptions),
    /// One JSON object a line.
    Ndjson,
    /// Arrow IPC, the file or the stream format: its first bytes tell which.
    Arrow,
}

/// What may differ between CSV files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// Between two fields; a single byte other than a quote or the end of a line.
    pub delimiter: u8,
    /// An unquoted text that means NULL, beside the empty field.
    pub null_text: Option<String>,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions { delimiter: b',', null_text: None }
    }
}

impl FileFormat {
    /// The format that a name's ending says: `.csv`, `.tsv`, `.ndjson`, `.jsonl`, `.arrow`, `.arrows`, `.feather`, in any
    /// case. `None` for any other.
    pub fn of_path(path: &std::path::Path) -> Option<FileFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "csv" => FileFormat::Csv(CsvOptions::default()),
            "tsv" => FileFormat::Csv(CsvOptions { delimiter: b'\t', ..CsvOptions::default() }),
            "ndjson" | "jsonl" => FileFormat::Ndjson,
            "arrow" | "arrows" | "feather" | "ipc" => FileFormat::Arrow,
            _ => return None,
        })
    }
}

/// What is known of a source before its rows are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDescription {
    /// Its columns, in order, with the types that a load will deliver.
    pub columns: Vec<Column>,
    /// Names of the columns of the primary key, in key order, when the source is one table's rows and all of the key is
    /// among the columns. `None` when that cannot be known.
    pub primary_key: Option<Vec<String>>,
    /// How much will come.
    pub estimate: Option<Estimate>,
}

/// How much a load will bring, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Rows.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

/// A query without what may follow a statement and means nothing: blanks and semicolons.
pub(crate) fn without_end(sql: &str) -> &str {
    sql.trim().trim_end_matches(|c: char| c == ';' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_behind_a_query_mean_nothing() {
        assert_eq!(without_end(" SELECT ';' ; \n;"), "SELECT ';'");
    }
}
