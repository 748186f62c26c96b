//! `\dt` and `\d`: what tables there are, and what one is made of.

use serde_json::Value;

use crate::command_line::render::{Grid, GridColumn};
use crate::config::units::show_size;

fn column(name: &str, is_number: bool) -> GridColumn {
    GridColumn { name: name.to_owned(), is_number }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn names(value: &Value, name: &str) -> String {
    items(value, name).filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// The list of tables.
pub(super) fn tables(tables: &[Value]) -> Grid {
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64);
    let row = |table: &Value| {
        vec![
            Some(text(table, "name").to_owned()),
            number(table, "rows").map(|n| n.to_string()),
            Some(names(table, "key")),
            number(table, "bytes").map(show_size),
        ]
    };
    Grid {
        columns: vec![column("table", false), column("rows", true), column("key", false), column("memory", true)],
        rows: tables.iter().map(row).collect(),
    }
}

/// The columns of a table, and a line about each of its indexes. `None` when there is no such table.
pub(super) fn table(tables: &[Value], name: &str) -> Option<(Grid, Vec<String>)> {
    let exact = tables.iter().find(|t| text(t, "name") == name);
    let table = exact.or_else(|| tables.iter().find(|t| text(t, "name").eq_ignore_ascii_case(name)))?;
    let row = |c: &Value| {
        let nullable = c.get("nullable").and_then(Value::as_bool).unwrap_or(true);
        let nullable = if nullable { "" } else { "not null" };
        vec![Some(text(c, "name").to_owned()), Some(text(c, "type").to_owned()), Some(nullable.to_owned())]
    };
    let grid = Grid {
        columns: vec![column("column", false), column("type", false), column("", false)],
        rows: items(table, "columns").map(row).collect(),
    };
    let mut lines = Vec::new();
    let key = names(table, "key");
    if !key.is_empty() {
        lines.push(format!("primary key ({key})"));
    }
    for index in items(table, "indexes") {
        let unique = index.get("unique").and_then(Value::as_bool).unwrap_or(false);
        lines.push(format!("{}index ({})", if unique { "unique " } else { "" }, names(index, "columns")));
    }
    Some((grid, lines))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_is_described() {
        let answer = [json!({"name": "KCA2", "rows": 3, "bytes": 2048, "key": ["AAC001"],
            "columns": [{"name": "AAC001", "type": "BIGINT", "nullable": false}, {"name": "AAC003", "type": "TEXT", "nullable": true}],
            "indexes": [{"name": "AAC003+AAC001", "columns": ["AAC003", "AAC001"], "unique": false}]})];
        let some = |t: &str| Some(t.to_owned());
        assert_eq!(tables(&answer).rows, [[some("KCA2"), some("3"), some("AAC001"), some("2.0 KiB")]]);
        let (grid, lines) = table(&answer, "kca2").expect("found without case");
        assert_eq!(grid.rows[0], [some("AAC001"), some("BIGINT"), some("not null")]);
        assert_eq!(lines, ["primary key (AAC001)", "index (AAC003, AAC001)"]);
        assert!(table(&answer, "x").is_none());
    }
}
