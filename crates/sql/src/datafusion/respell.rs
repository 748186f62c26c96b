//! Names in errors, as the statement spells them: DataFusion was shown them folded.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cachesql_table::GroupSnapshot;
use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor, Visit,
    Visitor,
};

use super::names::Folding;
use crate::bind::object_name;
use crate::error::SqlError;

/// An error about the names of a query, with the names as they were written there; tables by their own names.
pub(super) fn respelt(error: SqlError, query: &Query, folding: &Folding, snapshot: &GroupSnapshot) -> SqlError {
    if !matches!(
        error,
        SqlError::UnknownColumn { .. }
            | SqlError::AmbiguousColumn { .. }
            | SqlError::UnknownTable { .. }
            | SqlError::NotInFrom { .. }
    ) {
        return error;
    }
    let mut written = Written { folding, snapshot, names: HashMap::new(), tables: HashMap::new() };
    let _ = query.visit(&mut written);
    let name = |folded: String| written.names.get(&folded).cloned().unwrap_or(folded);
    match error {
        SqlError::UnknownColumn { table, column } => {
            let table = table.map(|label| written.tables.get(&label).cloned().unwrap_or_else(|| name(label)));
            SqlError::UnknownColumn { table, column: name(column) }
        }
        SqlError::AmbiguousColumn { column } => SqlError::AmbiguousColumn { column: name(column) },
        SqlError::UnknownTable { table } => SqlError::UnknownTable { table: name(table) },
        SqlError::NotInFrom { table } => SqlError::NotInFrom { table: name(table) },
        other => other,
    }
}

/// Names that a query has, by what they are folded to.
struct Written<'a> {
    folding: &'a Folding,
    snapshot: &'a GroupSnapshot,
    names: HashMap<String, String>,
    /// Tables by the labels that stand for them in FROM.
    tables: HashMap<String, String>,
}

impl Written<'_> {
    fn note(&mut self, ident: &Ident) {
        self.names.entry(self.folding.fold(&ident.value)).or_insert_with(|| ident.value.clone());
    }

    fn note_all(&mut self, name: &ObjectName) {
        for part in &name.0 {
            if let ObjectNamePart::Identifier(ident) = part {
                self.note(ident);
            }
        }
        let folded: Vec<String> = name.0.iter().map(|part| self.folding.fold(&part.to_string())).collect();
        self.names.entry(folded.join(".")).or_insert_with(|| name.to_string());
    }

    fn note_alias(&mut self, alias: &TableAlias) {
        self.note(&alias.name);
        alias.columns.iter().for_each(|column| self.note(&column.name));
    }
}

impl Visitor for Written<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.note_all(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = factor
            && let Some(table) = object_name(name).and_then(|name| self.snapshot.table(name))
        {
            let label = alias.as_ref().map_or(table.schema().name.as_str(), |alias| alias.name.value.as_str());
            self.tables.entry(self.folding.fold(label)).or_insert_with(|| table.schema().name.clone());
        }
        if let TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } = factor
        {
            self.note_alias(alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        query.with.iter().flat_map(|with| &with.cte_tables).for_each(|cte| self.note_alias(&cte.alias));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &sqlparser::ast::Select) -> ControlFlow<()> {
        for join in select.from.iter().flat_map(|from| &from.joins) {
            if let JoinOperator::Join(on)
            | JoinOperator::Inner(on)
            | JoinOperator::Left(on)
            | JoinOperator::LeftOuter(on)
            | JoinOperator::Right(on)
            | JoinOperator::RightOuter(on)
            | JoinOperator::FullOuter(on) = &join.join_operator
                && let JoinConstraint::Using(columns) = on
            {
                columns.iter().for_each(|column| self.note_all(column));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.note(ident),
            Expr::CompoundIdentifier(path) => path.iter().for_each(|ident| self.note(ident)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
