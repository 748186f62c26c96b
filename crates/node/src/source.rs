//! From what an origin says of a table to the table's schema, and what has changed between two of them.

use cachesql_origin::SourceDescription;
use cachesql_table::{Operation, Retention, Table};
use cachesql_types::{IndexDefinition, TableSchema, resolve_name};

use crate::config::{TableConfig, TableSource};
use crate::error::NodeError;

/// The schema of a configured table whose source is described so.
pub(crate) fn schema_of(config: &TableConfig, description: &SourceDescription) -> Result<TableSchema, NodeError> {
    let mut schema = TableSchema {
        name: config.name.clone(),
        columns: description.columns.clone(),
        key: Vec::new(),
        indexes: Vec::new(),
    };
    schema.key = match (&config.key, &description.primary_key) {
        (configured, Some(known)) if configured.is_empty() => positions(&schema, known)?,
        (configured, _) => positions(&schema, configured)?,
    };
    for position in schema.key.clone() {
        if let Some(column) = schema.columns.get_mut(position) {
            column.nullable = false;
        }
    }
    for columns in &config.indexes {
        let columns = positions(&schema, columns)?;
        // The primary key is an index already, and one index twice helps nobody.
        if columns == schema.key || schema.indexes.iter().any(|index| index.columns == columns) {
            continue;
        }
        schema.indexes.push(IndexDefinition { name: index_name(&schema, &columns), columns, unique: false });
    }
    schema.check().map_err(|error| NodeError::Config(error.to_string()))?;
    Ok(schema)
}

/// What makes a configured table that has no source.
pub(crate) fn empty_table(config: &TableConfig) -> Result<Vec<Operation>, NodeError> {
    let TableSource::Empty { columns } = &config.source else { return Ok(Vec::new()) };
    let description = SourceDescription { columns: columns.clone(), primary_key: None, estimate: None };
    let schema = schema_of(config, &description)?;
    Ok([Operation::CreateTable { schema }].into_iter().chain(retention_of(config)).collect())
}

/// What sets the retention that a table is configured with.
pub(crate) fn retention_of(config: &TableConfig) -> Option<Operation> {
    let ttl_ms = config.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let max_rows = config.max_rows;
    let set = ttl_ms.is_some() || max_rows.is_some();
    set.then(|| Operation::SetRetention { table: config.name.clone(), ttl_ms, max_rows })
}

/// What makes of a table that was kept over a stop what is configured now: indexes that are new, and a retention that is another.
/// Indexes and a retention that are not configured may be somebody's own, and stay.
pub(crate) fn reconciled(kept: &Table, config: &TableConfig) -> Result<Vec<Operation>, NodeError> {
    let schema = kept.schema();
    let mut operations = Vec::new();
    let mut known: Vec<Vec<usize>> = schema.indexes.iter().map(|index| index.columns.clone()).collect();
    known.push(schema.key.clone());
    for columns in &config.indexes {
        let columns = positions(schema, columns)?;
        if known.contains(&columns) {
            continue;
        }
        known.push(columns.clone());
        let index = IndexDefinition { name: index_name(schema, &columns), columns, unique: false };
        operations.push(Operation::CreateIndex { table: schema.name.clone(), index });
    }
    operations.extend(retention_of(config).filter(|set| {
        let Retention { ttl_ms, max_rows } = kept.retention();
        *set != Operation::SetRetention { table: config.name.clone(), ttl_ms, max_rows }
    }));
    Ok(operations)
}

fn positions(schema: &TableSchema, names: &[String]) -> Result<Vec<usize>, NodeError> {
    let position = |name: &String| {
        let unknown = || NodeError::UnknownColumn { table: schema.name.clone(), column: name.clone() };
        schema.column(name).ok_or_else(unknown)
    };
    names.iter().map(position).collect()
}

/// The name that the original gives an index: its columns, joined by `+`.
pub(crate) fn index_name(schema: &TableSchema, columns: &[usize]) -> String {
    let names: Vec<&str> = columns.iter().filter_map(|c| schema.columns.get(*c)).map(|c| c.name.as_str()).collect();
    names.join("+")
}

/// How the columns or the key of a source differ from those of the table that was made from it; `None` when they do not.
/// Whether a column may be NULL is not compared: a NULL where the table has none is refused by its own name.
pub(crate) fn change_between(table: &TableSchema, source: &TableSchema) -> Option<String> {
    let mut changes = Vec::new();
    for column in &table.columns {
        let now = resolve_name(source.columns.iter().map(|c| c.name.as_str()), &column.name);
        match now.and_then(|position| source.columns.get(position)) {
            None => changes.push(format!("column {} is gone", column.name)),
            Some(now) if now.data_type != column.data_type => {
                changes.push(format!("column {} was {} and is {}", column.name, column.data_type, now.data_type));
            }
            Some(_) => {}
        }
    }
    for column in &source.columns {
        if table.column(&column.name).is_none() {
            changes.push(format!("column {} is new", column.name));
        }
    }
    if changes.is_empty() && !table.columns.iter().map(|c| &c.name).eq(source.columns.iter().map(|c| &c.name)) {
        changes.push("the columns come in another order".into());
    }
    if changes.is_empty() && table.key != source.key {
        let key = |schema: &TableSchema| match schema.key.is_empty() {
            true => "none".to_owned(),
            false => index_name(schema, &schema.key),
        };
        changes.push(format!("the primary key was {} and is {}", key(table), key(source)));
    }
    (!changes.is_empty()).then(|| changes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachesql_types::{Column, DataType};

    fn column(name: &str, data_type: DataType) -> Column {
        Column { name: name.into(), data_type, nullable: true }
    }

    fn description() -> SourceDescription {
        SourceDescription {
            columns: vec![
                column("id", DataType::BigInt),
                column("Name", DataType::Text),
                column("age", DataType::Integer),
            ],
            primary_key: Some(vec!["id".into()]),
            estimate: None,
        }
    }

    fn config() -> TableConfig {
        TableConfig::new("people", TableSource::Empty { columns: Vec::new() })
    }

    #[test]
    fn the_configured_key_goes_before_the_known_one() {
        let known = schema_of(&config(), &description()).expect("sound");
        assert_eq!(known.key, vec![0]);
        assert!(!known.columns[0].nullable);
        let configured = TableConfig { key: vec!["NAME".into()], ..config() };
        assert_eq!(schema_of(&configured, &description()).expect("sound").key, vec![1]);
        let without = SourceDescription { primary_key: None, ..description() };
        assert_eq!(schema_of(&config(), &without).expect("sound").key, Vec::<usize>::new());
    }

    #[test]
    fn indexes_are_named_by_their_columns() {
        let indexes =
            vec![vec!["name".into()], vec!["NAME".into(), "age".into()], vec!["id".into()], vec!["Name".into()]];
        let schema = schema_of(&TableConfig { indexes, ..config() }, &description()).expect("sound");
        // The third is the primary key and the fourth is the first again.
        let names: Vec<&str> = schema.indexes.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["Name", "Name+age"]);
    }

    #[test]
    fn columns_that_do_not_exist_are_named() {
        let config = TableConfig { indexes: vec![vec!["salary".into()]], ..config() };
        let refused = schema_of(&config, &description()).expect_err("unknown column");
        assert!(matches!(refused, NodeError::UnknownColumn { column, .. } if column == "salary"));
    }

    #[test]
    fn changes_are_named() {
        let before = schema_of(&config(), &description()).expect("sound");
        let change = |columns: Vec<Column>, key: Option<Vec<String>>| {
            let description = SourceDescription { columns, primary_key: key, estimate: None };
            change_between(&before, &schema_of(&config(), &description).expect("sound"))
        };
        let [id, name, age] =
            [column("id", DataType::BigInt), column("Name", DataType::Text), column("age", DataType::Integer)];
        let key = Some(vec!["id".to_owned()]);
        assert_eq!(change(vec![id.clone(), name.clone(), age.clone()], key.clone()), None);
        assert_eq!(
            change(vec![id.clone(), column("age", DataType::Text), column("city", DataType::Text)], key.clone())
                .as_deref(),
            Some("column Name is gone, column age was INTEGER and is TEXT, column city is new")
        );
        assert_eq!(
            change(vec![id.clone(), age.clone(), name.clone()], key).as_deref(),
            Some("the columns come in another order")
        );
        assert_eq!(change(vec![id, name, age], None).as_deref(), Some("the primary key was id and is none"));
    }
}
