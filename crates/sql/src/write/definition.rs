//! CREATE and DROP of tables and indexes → operations.

use cachesql_table::{GroupSnapshot, Operation, Table};
use cachesql_types::{Column, DataType, IndexDefinition, SchemaError, TableSchema};
use sqlparser::ast::{
    ColumnDef, ColumnOption, CreateIndex, CreateTable, CreateTableOptions, Expr, Ident, IndexColumn, ObjectName,
    ObjectType, Statement, TableConstraint,
};

use super::WritePlan;
use crate::bind::object_name;
use crate::error::SqlError;

/// Plans a definition against a snapshot. Nothing to do, as IF EXISTS allows, is a plan without operations.
pub(crate) fn plan_definition(statement: &Statement, snapshot: &GroupSnapshot) -> Result<WritePlan, SqlError> {
    let operations = match statement {
        Statement::CreateTable(create) => create_table(create, snapshot)?,
        Statement::CreateIndex(create) => create_index(create, snapshot)?,
        Statement::Drop { object_type: ObjectType::Table, if_exists, names, .. } => {
            drop_tables(names, *if_exists, snapshot)?
        }
        Statement::Drop { object_type: ObjectType::Index, if_exists, names, table, .. } => {
            drop_indexes(names, table.as_ref(), *if_exists, snapshot)?
        }
        _ => return Err(SqlError::NotSupported("such a definition".into())),
    };
    Ok(WritePlan { operations, affected: 0, returning: None })
}

fn own_name(name: &ObjectName) -> Result<&str, SqlError> {
    object_name(name).ok_or_else(|| SqlError::NotSupported(format!("a schema other than public, as in {name}")))
}

fn unsupported(table: &str, what: &str) -> SqlError {
    SqlError::NotSupported(format!("{what} in CREATE TABLE {table}"))
}

fn create_table(create: &CreateTable, snapshot: &GroupSnapshot) -> Result<Vec<Operation>, SqlError> {
    let name = own_name(&create.name)?;
    if let Some(table) = snapshot.table(name) {
        let exists = SqlError::TableExists { table: table.schema().name.clone() };
        return if create.if_not_exists { Ok(Vec::new()) } else { Err(exists) };
    }
    let odd = create.or_replace
        || create.temporary
        || create.external
        || create.query.is_some()
        || create.like.is_some()
        || create.clone.is_some()
        || create.inherits.is_some()
        || create.partition_by.is_some()
        || create.partition_of.is_some()
        || create.on_commit.is_some()
        || !matches!(create.table_options, CreateTableOptions::None);
    if odd {
        return Err(SqlError::NotSupported("CREATE TABLE with more than columns and keys".into()));
    }
    let mut schema = TableSchema { name: name.to_owned(), columns: Vec::new(), key: Vec::new(), indexes: Vec::new() };
    for definition in &create.columns {
        add_column(&mut schema, definition)?;
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = index_columns(&schema, &key.columns)?;
                set_key(&mut schema, columns)?;
            }
            TableConstraint::Unique(unique) => {
                let columns = index_columns(&schema, &unique.columns)?;
                add_unique(&mut schema, columns, unique.name.as_ref());
            }
            _ => return Err(unsupported(name, "such a constraint; PRIMARY KEY and UNIQUE are supported, others")),
        }
    }
    schema.check().map_err(|e: SchemaError| SqlError::Definition(e.to_string()))?;
    Ok(vec![Operation::CreateTable { schema }])
}

fn add_column(schema: &mut TableSchema, definition: &ColumnDef) -> Result<(), SqlError> {
    let column = &definition.name.value;
    let written = definition.data_type.to_string();
    let data_type = DataType::parse(&written)
        .ok_or_else(|| SqlError::NotSupported(format!("column {column:?} of type {written}")))?;
    let position = schema.columns.len();
    schema.columns.push(Column { name: column.clone(), data_type, nullable: true });
    for option in &definition.options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => {
                if let Some(column) = schema.columns.get_mut(position) {
                    column.nullable = false;
                }
            }
            ColumnOption::PrimaryKey(_) => set_key(schema, vec![position])?,
            ColumnOption::Unique(_) => add_unique(schema, vec![position], option.name.as_ref()),
            ColumnOption::Comment(_) => {}
            ColumnOption::Default(Expr::Value(value)) if value.value == sqlparser::ast::Value::Null => {}
            ColumnOption::Default(_) => return Err(unsupported(&schema.name, "a DEFAULT other than NULL")),
            other => return Err(unsupported(&schema.name, &other.to_string())),
        }
    }
    Ok(())
}

fn set_key(schema: &mut TableSchema, columns: Vec<usize>) -> Result<(), SqlError> {
    if !schema.key.is_empty() {
        return Err(SqlError::Definition(format!("table {:?} has two primary keys", schema.name)));
    }
    for column in &columns {
        if let Some(column) = schema.columns.get_mut(*column) {
            column.nullable = false;
        }
    }
    schema.key = columns;
    Ok(())
}

fn add_unique(schema: &mut TableSchema, columns: Vec<usize>, name: Option<&Ident>) {
    let name = name.map_or_else(|| generated_name(schema, &columns, "key"), |n| n.value.clone());
    schema.indexes.push(IndexDefinition { name, columns, unique: true });
}

/// PostgreSQL's way to name what has no name: table, columns, kind.
fn generated_name(schema: &TableSchema, columns: &[usize], kind: &str) -> String {
    let names: Vec<&str> = columns.iter().filter_map(|c| schema.columns.get(*c)).map(|c| c.name.as_str()).collect();
    let base = format!("{}_{}_{kind}", schema.name, names.join("_"));
    let taken = |name: &str| schema.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name));
    if !taken(&base) {
        return base;
    }
    (1_u32..).map(|n| format!("{base}{n}")).find(|name| !taken(name)).unwrap_or(base)
}

fn index_columns(schema: &TableSchema, columns: &[IndexColumn]) -> Result<Vec<usize>, SqlError> {
    let position = |column: &IndexColumn| match &column.column.expr {
        Expr::Identifier(ident) if column.operator_class.is_none() => schema
            .column(&ident.value)
            .ok_or_else(|| SqlError::UnknownColumn { table: Some(schema.name.clone()), column: ident.value.clone() }),
        _ => Err(SqlError::NotSupported("an index over an expression".into())),
    };
    columns.iter().map(position).collect()
}

fn table_of<'a>(name: &ObjectName, snapshot: &'a GroupSnapshot) -> Result<&'a Table, SqlError> {
    let wanted = own_name(name)?;
    let table = snapshot.table(wanted).map(|t| t.as_ref());
    table.ok_or_else(|| SqlError::UnknownTable { table: wanted.to_owned() })
}

fn create_index(create: &CreateIndex, snapshot: &GroupSnapshot) -> Result<Vec<Operation>, SqlError> {
    let table = table_of(&create.table_name, snapshot)?;
    let schema = table.schema();
    let odd = create.predicate.is_some()
        || !create.include.is_empty()
        || create.nulls_distinct == Some(false)
        || !create.with.is_empty()
        || !create.alter_options.is_empty();
    if odd {
        return Err(SqlError::NotSupported("CREATE INDEX with more than columns".into()));
    }
    let columns = index_columns(schema, &create.columns)?;
    let name = match &create.name {
        Some(name) => own_name(name)?.to_owned(),
        None => generated_name(schema, &columns, "idx"),
    };
    if schema.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(&name)) {
        return if create.if_not_exists { Ok(Vec::new()) } else { Err(SqlError::IndexExists { index: name }) };
    }
    let index = IndexDefinition { name, columns, unique: create.unique };
    let mut after = schema.as_ref().clone();
    after.indexes.push(index.clone());
    after.check().map_err(|e| SqlError::Definition(e.to_string()))?;
    Ok(vec![Operation::CreateIndex { table: schema.name.clone(), index }])
}

fn drop_tables(names: &[ObjectName], if_exists: bool, snapshot: &GroupSnapshot) -> Result<Vec<Operation>, SqlError> {
    let mut operations: Vec<Operation> = Vec::new();
    for name in names {
        match table_of(name, snapshot) {
            Ok(table) => {
                let drop = Operation::DropTable { table: table.schema().name.clone() };
                if !operations.contains(&drop) {
                    operations.push(drop);
                }
            }
            Err(SqlError::UnknownTable { .. }) if if_exists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(operations)
}

fn drop_indexes(
    names: &[ObjectName],
    table: Option<&ObjectName>,
    if_exists: bool,
    snapshot: &GroupSnapshot,
) -> Result<Vec<Operation>, SqlError> {
    let only = table.map(|name| table_of(name, snapshot)).transpose()?.map(|t| t.schema().name.clone());
    let mut operations = Vec::new();
    for name in names {
        let wanted = own_name(name)?;
        let tables = snapshot.tables().map(|t| t.schema()).filter(|s| only.as_ref().is_none_or(|o| *o == s.name));
        let found: Vec<(String, String)> = tables
            .filter_map(|schema| {
                let names = schema.indexes.iter().map(|i| i.name.as_str());
                let at = cachesql_types::resolve_name(names, wanted)?;
                Some((schema.name.clone(), schema.indexes.get(at)?.name.clone()))
            })
            .collect();
        match found.as_slice() {
            [] if if_exists => {}
            [] => return Err(SqlError::UnknownIndex { index: wanted.to_owned() }),
            [(table, index)] => {
                operations.push(Operation::DropIndex { table: table.clone(), index: index.clone() });
            }
            _ => {
                let message = format!("several tables have an index {wanted:?}; write DROP INDEX … ON table");
                return Err(SqlError::Definition(message));
            }
        }
    }
    Ok(operations)
}
