//! What a query on PostgreSQL will bring: columns, key, and roughly how much.

use cachesql_types::{Column, Value};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use crate::batch::{check_names, with_given_types};
use crate::error::OriginError;
use crate::origin::OriginConfig;
use crate::postgres::PostgresUrl;
use crate::postgres::connect::{Session, query_error};
use crate::postgres::params::{Bound, numbered};
use crate::postgres::plan::Plan;
use crate::postgres::types::{WireType, wire_type};
use crate::source::{SourceDescription, TableQuery, without_end};

/// A transaction in which a description and a load see one state, and can change nothing.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A query that the server has understood.
pub(crate) struct Prepared {
    pub(crate) statement: Statement,
    /// The text that was prepared, with numbered parameters.
    pub(crate) sql: String,
    pub(crate) wire: Vec<WireType>,
}

impl Prepared {
    /// Prepares the query; every column must be of a type that can be held.
    pub(crate) async fn new(
        client: &Client,
        table: &str,
        sql: &str,
        params: &[Value],
    ) -> Result<Prepared, OriginError> {
        let given = params.len();
        let wrong_count = |expected| OriginError::Parameters { table: table.to_owned(), expected, given };
        let sql = numbered(without_end(sql), given).map_err(wrong_count)?;
        let statement = client.prepare(&sql).await.map_err(|error| query_error(table, &error))?;
        if statement.params().len() != given {
            return Err(wrong_count(statement.params().len()));
        }
        if statement.columns().is_empty() {
            let reason = "its query returns no columns".to_owned();
            return Err(OriginError::Columns { table: table.to_owned(), reason });
        }
        check_names(table, statement.columns().iter().map(|c| c.name()))?;
        let wire = statement
            .columns()
            .iter()
            .map(|column| {
                wire_type(column.type_(), column.type_modifier()).map_err(|advice| OriginError::Type {
                    table: table.to_owned(),
                    column: column.name().to_owned(),
                    type_name: column.type_().name().to_owned(),
                    advice: advice.to_owned(),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Prepared { statement, sql, wire })
    }

    /// The columns as the server describes them; each may hold NULL.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let described = self.statement.columns().iter().zip(&self.wire);
        described
            .map(|(column, wire)| Column { name: column.name().to_owned(), data_type: wire.data_type, nullable: true })
            .collect()
    }
}

/// Describes what the query will bring.
pub(crate) async fn describe(
    config: &OriginConfig,
    url: &PostgresUrl,
    query: &TableQuery,
    sql: &str,
    params: &[Value],
) -> Result<SourceDescription, OriginError> {
    let session = Session::open(config, url).await?;
    let described = describe_on(&session.client, query, sql, params).await;
    session.roll_back().await;
    described
}

async fn describe_on(
    client: &Client,
    query: &TableQuery,
    sql: &str,
    params: &[Value],
) -> Result<SourceDescription, OriginError> {
    let table = query.table.as_str();
    client.batch_execute(BEGIN).await.map_err(|error| query_error(table, &error))?;
    let prepared = Prepared::new(client, table, sql, params).await?;
    let plan = explain(client, &prepared.sql, params).await.map_err(|error| query_error(table, &error))?;
    let mut columns = prepared.columns();
    let mut primary_key = None;
    if plan.as_ref().is_some_and(Plan::is_single_scan) {
        let facts = relation_facts(client, &prepared.statement).await.map_err(|error| query_error(table, &error))?;
        if let Some(facts) = facts {
            for (column, not_null) in columns.iter_mut().zip(&facts.not_null) {
                column.nullable = !not_null;
            }
            primary_key = facts.primary_key;
        }
    }
    let columns = with_given_types(table, columns, &query.types)?;
    Ok(SourceDescription { columns, primary_key, estimate: plan.as_ref().map(Plan::estimate) })
}

/// The server's plan; `None` for what it does not plan.
async fn explain(client: &Client, sql: &str, params: &[Value]) -> Result<Option<Plan>, tokio_postgres::Error> {
    // A savepoint, since a statement that cannot be explained would end the transaction.
    client.batch_execute("SAVEPOINT explained").await?;
    let bound: Vec<Bound<'_>> = params.iter().map(Bound).collect();
    let references: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|b| b as &(dyn ToSql + Sync)).collect();
    let rows = client.query(&format!("EXPLAIN (FORMAT JSON)\n{sql}"), &references).await;
    match rows {
        Ok(rows) => {
            let text = rows.first().and_then(|row| row.try_get::<_, JsonText>(0).ok());
            Ok(text.and_then(|JsonText(json)| Plan::parse(&json)))
        }
        Err(error) if error.as_db_error().is_some() => {
            client.batch_execute("ROLLBACK TO SAVEPOINT explained").await?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A JSON column's text.
struct JsonText(String);

impl<'a> tokio_postgres::types::FromSql<'a> for JsonText {
    fn from_sql(
        _: &tokio_postgres::types::Type,
        raw: &'a [u8],
    ) -> Result<JsonText, Box<dyn std::error::Error + Sync + Send>> {
        Ok(JsonText(std::str::from_utf8(raw)?.to_owned()))
    }

    fn accepts(column: &tokio_postgres::types::Type) -> bool {
        *column == tokio_postgres::types::Type::JSON
    }
}

/// What the catalog says of the one table that a query scans.
struct RelationFacts {
    /// For each column of the query, whether the table forbids NULL in it.
    not_null: Vec<bool>,
    /// Names that the query gives the columns of the table's primary key, when all are there.
    primary_key: Option<Vec<String>>,
}

/// Looks up the table whose columns the query returns. `None` when they are of several tables, or of none.
async fn relation_facts(
    client: &Client,
    statement: &Statement,
) -> Result<Option<RelationFacts>, tokio_postgres::Error> {
    let mut tables: Vec<u32> = statement.columns().iter().filter_map(|c| c.table_oid()).collect();
    tables.sort_unstable();
    tables.dedup();
    let [relation] = tables.as_slice() else { return Ok(None) };
    let attributes = client
        .query(
            "SELECT a.attnum, a.attnotnull, coalesce(array_position(i.indkey::int2[], a.attnum), -1)
             FROM pg_catalog.pg_attribute a
             LEFT JOIN pg_catalog.pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
             WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped",
            &[relation],
        )
        .await?;
    let mut key = Vec::new();
    let mut not_null_attributes = Vec::new();
    for row in &attributes {
        let (attribute, not_null, position): (i16, bool, i32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if not_null {
            not_null_attributes.push(attribute);
        }
        if position >= 0 {
            key.push((position, attribute));
        }
    }
    key.sort_unstable();
    let columns = statement.columns();
    let not_null = columns.iter().map(|c| c.column_id().is_some_and(|id| not_null_attributes.contains(&id))).collect();
    let name_of =
        |attribute: i16| columns.iter().find(|c| c.column_id() == Some(attribute)).map(|c| c.name().to_owned());
    let names: Option<Vec<String>> = key.iter().map(|(_, attribute)| name_of(*attribute)).collect();
    Ok(Some(RelationFacts { not_null, primary_key: names.filter(|names| !names.is_empty()) }))
}
