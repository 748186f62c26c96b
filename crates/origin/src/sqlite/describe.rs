//! What a query on SQLite will bring: columns, key, and roughly how much.

use cachesql_types::{Column, DataType, Value, limits};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Rows, Statement};

use crate::batch::{check_names, with_given_types};
use crate::error::OriginError;
use crate::origin::OriginConfig;
use crate::source::{Estimate, SourceDescription, TableQuery, without_end};
use crate::sqlite::types::{Seen, declared_type, stored_bytes};
use crate::sqlite::{Stop, StopOnDrop, on_thread, open, prepare, query_error};
use crate::url::SqliteLocation;

/// Describes what the query will bring. Reads all rows when some column's type is only known from its values.
pub(crate) async fn describe(
    config: &OriginConfig,
    location: &SqliteLocation,
    query: &TableQuery,
    sql: &str,
    params: &[Value],
) -> Result<SourceDescription, OriginError> {
    let (config, location, owned_query) = (config.clone(), location.clone(), query.clone());
    let (sql, params) = (sql.to_owned(), params.to_vec());
    // Reading everything may take long; when nobody waits for the answer any more, it stops.
    let stop = Stop::default();
    let _stop = StopOnDrop(stop.clone());
    let work = move || describe_in(&open(&config, &location, &stop)?, &owned_query, &sql, &params);
    on_thread(&query.table, work).await
}

fn describe_in(
    connection: &Connection,
    query: &TableQuery,
    sql: &str,
    params: &[Value],
) -> Result<SourceDescription, OriginError> {
    let table = query.table.as_str();
    let failed = |error: rusqlite::Error| query_error(table, &error);
    let mut statement = prepare(connection, table, sql, params)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    check_names(table, names.iter().map(String::as_str))?;
    let given = |name: &String| {
        let mut types = query.types.iter();
        types.find(|(column, _)| column.eq_ignore_ascii_case(name)).map(|(_, data_type)| *data_type)
    };
    let declared: Vec<Option<DataType>> = statement.columns().map(|c| declared_type(c.decl_type())).collect();
    let types: Vec<Option<DataType>> = names.iter().zip(declared).map(|(name, d)| given(name).or(d)).collect();
    let facts = single_table(connection, &statement, sql, params).map_err(failed)?;
    let all = types.iter().any(Option::is_none);
    let survey =
        survey(&mut statement.raw_query(), names.len(), if all { u64::MAX } else { limits::ESTIMATE_SAMPLE_ROWS })
            .map_err(failed)?;
    // A query that cannot be put in parentheses, since a comment follows its semicolon, goes without an estimate.
    let rows = if survey.ended { Some(survey.rows) } else { count(connection, table, sql, params).ok() };
    let mut columns = Vec::with_capacity(names.len());
    for ((name, data_type), seen) in names.iter().zip(types).zip(&survey.seen) {
        let data_type = data_type.map_or_else(|| seen.data_type(), Ok).map_err(|mixture| OriginError::Type {
            table: table.to_owned(),
            column: name.clone(),
            type_name: mixture.to_owned(),
            advice: "cast it in the query: CAST(column AS TEXT)".to_owned(),
        })?;
        columns.push(Column { name: name.clone(), data_type, nullable: true });
    }
    let mut primary_key = None;
    if let Some(facts) = facts {
        for (column, not_null) in columns.iter_mut().zip(facts.not_null) {
            column.nullable = !not_null;
        }
        primary_key = facts.primary_key;
    }
    let columns = with_given_types(table, columns, &query.types)?;
    Ok(SourceDescription { columns, primary_key, estimate: rows.map(|rows| survey.estimate(rows)) })
}

/// What reading some or all rows has shown.
struct Survey {
    seen: Vec<Seen>,
    rows: u64,
    bytes: u64,
    /// Whether there were no more rows.
    ended: bool,
}

impl Survey {
    fn estimate(&self, rows: u64) -> Estimate {
        let bytes = u128::from(self.bytes) * u128::from(rows) / u128::from(self.rows.max(1));
        Estimate { rows, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
    }
}

fn survey(rows: &mut Rows<'_>, columns: usize, most: u64) -> rusqlite::Result<Survey> {
    let mut survey = Survey { seen: vec![Seen::default(); columns], rows: 0, bytes: 0, ended: false };
    while survey.rows < most {
        let Some(row) = rows.next()? else {
            survey.ended = true;
            break;
        };
        for (at, seen) in survey.seen.iter_mut().enumerate() {
            let value: ValueRef<'_> = row.get_ref(at)?;
            seen.add(value);
            survey.bytes += stored_bytes(value) as u64;
        }
        survey.rows += 1;
    }
    Ok(survey)
}

fn count(connection: &Connection, table: &str, sql: &str, params: &[Value]) -> Result<u64, OriginError> {
    let failed = |error: rusqlite::Error| query_error(table, &error);
    let counted = format!("SELECT count(*) FROM ({}\n)", without_end(sql));
    let mut statement = prepare(connection, table, &counted, params)?;
    let mut rows = statement.raw_query();
    let count: i64 = match rows.next().map_err(failed)? {
        Some(row) => row.get(0).map_err(failed)?,
        None => 0,
    };
    Ok(u64::try_from(count).unwrap_or(0))
}

/// What the schema says of the one table that a query scans.
struct TableFacts {
    not_null: Vec<bool>,
    primary_key: Option<Vec<String>>,
}

/// Looks the table up whose rows the query returns, each at most once. `None` when there is no such table.
fn single_table(
    connection: &Connection,
    statement: &Statement<'_>,
    sql: &str,
    params: &[Value],
) -> rusqlite::Result<Option<TableFacts>> {
    let metadata: Vec<_> = statement.columns_with_metadata().collect();
    let mut tables: Vec<(&str, &str)> =
        metadata.iter().filter_map(|c| Some((c.database_name()?, c.table_name()?))).collect();
    tables.sort_unstable();
    tables.dedup();
    let [(database, table)] = tables.as_slice() else { return Ok(None) };
    if !is_single_scan(connection, sql, params)? {
        return Ok(None);
    }
    let mut info = connection.prepare(
        "SELECT i.name, i.\"notnull\", i.pk, upper(i.type), t.wr
         FROM pragma_table_info(?1, ?2) i, pragma_table_list(?1) t WHERE t.schema = ?2",
    )?;
    let mut rows = info.query([table, database])?;
    let mut columns: Vec<(String, bool, i64)> = Vec::new();
    let (mut row_id_type, mut without_row_id) = (true, false);
    while let Some(row) = rows.next()? {
        let (name, not_null, position): (String, bool, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let declared: String = row.get(3)?;
        without_row_id = row.get(4)?;
        row_id_type &= position == 0 || declared == "INTEGER";
        columns.push((name, not_null, position));
    }
    let mut key: Vec<&(String, bool, i64)> = columns.iter().filter(|(_, _, position)| *position > 0).collect();
    key.sort_by_key(|(_, _, position)| *position);
    // A key column may hold NULL in SQLite, unless it is the row id or the table has none.
    let key_not_null = without_row_id || (key.len() == 1 && row_id_type);
    let is_not_null = |(_, not_null, position): &(String, bool, i64)| *not_null || (*position > 0 && key_not_null);
    let find = |name: &str| columns.iter().find(|(column, _, _)| column == name);
    let not_null = metadata.iter().map(|c| c.origin_name().and_then(find).is_some_and(is_not_null)).collect();
    let output_of = |name: &str| metadata.iter().find(|c| c.origin_name() == Some(name)).map(|c| c.name().to_owned());
    let names: Option<Vec<String>> =
        key.iter().map(|column| if is_not_null(column) { output_of(&column.0) } else { None }).collect();
    Ok(Some(TableFacts { not_null, primary_key: names.filter(|names| !names.is_empty()) }))
}

/// Whether the plan is one scan or search of one table, and at most a sort: then each row comes at most once.
fn is_single_scan(connection: &Connection, sql: &str, params: &[Value]) -> rusqlite::Result<bool> {
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    // The values are not needed to plan.
    let _ = params;
    let mut rows = plan.raw_query();
    let mut scans = 0;
    while let Some(row) = rows.next()? {
        let step: String = row.get(3)?;
        match step.as_str() {
            "USE TEMP B-TREE FOR ORDER BY" => {}
            step if step.starts_with("SCAN ") || step.starts_with("SEARCH ") => scans += 1,
            _ => return Ok(false),
        }
    }
    Ok(scans == 1)
}
