//! `load --create`: makes the table that a file's rows fit in.

use cachesql_origin::{CsvOptions, FileFormat, FileSource, Origin, SourceDescription, TableQuery, TableSource};
use hyper::Method;
use serde_json::json;

use crate::command_line::arguments::{LoadArguments, LoadFormat};
use crate::command_line::client::Client;
use crate::command_line::failure::Failure;

/// Reads the file for its columns and types, and makes the table.
pub(super) async fn table(client: &mut Client, arguments: &LoadArguments, format: LoadFormat) -> Result<(), Failure> {
    if arguments.source == "-" || arguments.source.contains("://") {
        return Err(Failure::Usage("--create reads the file twice, so that it must be a file on this machine".into()));
    }
    let format = match format {
        LoadFormat::Csv => FileFormat::Csv(CsvOptions::default()),
        LoadFormat::Ndjson => FileFormat::Ndjson,
    };
    let source = TableSource::File(FileSource { path: arguments.source.clone().into(), format });
    let query = TableQuery { table: arguments.table.clone(), source, types: Vec::new() };
    let description = Origin::files().describe(&query).await.map_err(|e| Failure::Failed(e.to_string()))?;
    let sql = statement(&arguments.table, &description, &arguments.key)?;
    client.ask_json(Method::POST, "/v1/sql", Some(&json!({ "sql": sql }))).await?;
    Ok(())
}

fn statement(table: &str, description: &SourceDescription, key: &[String]) -> Result<String, Failure> {
    let names = || description.columns.iter().map(|c| c.name.as_str());
    let mut key_columns = Vec::new();
    for wanted in key {
        let at = cachesql_types::resolve_name(names(), wanted).and_then(|at| description.columns.get(at));
        let column = at.ok_or_else(|| Failure::Usage(format!("--key: the file has no column {wanted:?}")))?;
        key_columns.push(quoted(&column.name));
    }
    let column = |c: &cachesql_types::Column| {
        let name = quoted(&c.name);
        let not_null = if key_columns.contains(&name) { " NOT NULL" } else { "" };
        format!("{name} {}{not_null}", c.data_type)
    };
    let mut parts: Vec<_> = description.columns.iter().map(column).collect();
    if !key_columns.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", key_columns.join(", ")));
    }
    Ok(format!("CREATE TABLE {} ({})", quoted(table), parts.join(", ")))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use cachesql_types::{Column, DataType};

    use super::*;

    #[test]
    fn the_table_has_the_files_columns() {
        let column = |name: &str, data_type| Column { name: name.into(), data_type, nullable: true };
        let description = SourceDescription {
            columns: vec![
                column("Id", DataType::BigInt),
                column("a \"b\"", DataType::Decimal { precision: 5, scale: 2 }),
            ],
            primary_key: None,
            estimate: None,
        };
        let sql = statement("t", &description, &["id".to_owned()]).expect("sound");
        assert_eq!(
            sql,
            "CREATE TABLE \"t\" (\"Id\" BIGINT NOT NULL, \"a \"\"b\"\"\" DECIMAL(5,2), PRIMARY KEY (\"Id\"))"
        );
        assert!(matches!(statement("t", &description, &["x".to_owned()]), Err(Failure::Usage(_))));
    }
}
