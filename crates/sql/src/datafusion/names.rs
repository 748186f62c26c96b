//! Names in a statement that goes to DataFusion.
//!
//! DataFusion finds names by their exact spelling. Tables are therefore shown to it with lower-case names, and every
//! name in the statement is lowered likewise. Where a snapshot has tables, or a table columns, that differ in case alone,
//! those whose spelling is not the lower-case one keep it, here and in the statement. The spelling that a caller sees is
//! put back from the columns' metadata and the statement's aliases.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use cachesql_table::GroupSnapshot;
use cachesql_types::{Decimal, TableSchema};
use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableAlias, TableFactor, Value, ValueWithSpan, VisitMut,
    VisitorMut, WindowType, visit_expressions_mut, visit_relations,
};

use super::exists::{count_in_order, count_in_select};
use crate::bind::object_name;

/// Key of the field metadata that holds the spelling of a column.
pub(crate) const SPELLING_METADATA: &str = "cachesql.name";

/// What the names of repeated columns begin with.
pub(crate) const REPEATED: &str = "__column_";

/// Which spellings are kept, and which were met.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    kept: HashSet<String>,
    /// Lower-case alias → the spelling it was first written in.
    spellings: HashMap<String, String>,
    /// The tables that the statement may mean, as their schemas name them.
    pub(crate) tables: BTreeSet<String>,
}

impl Folding {
    /// Looks at the tables that a statement names.
    pub(crate) fn new(statement: &Statement, snapshot: &GroupSnapshot) -> Folding {
        let mut folding = Folding::default();
        let _ = visit_relations(statement, |name: &ObjectName| {
            if let Some(table) = object_name(name).and_then(|name| snapshot.table(name)) {
                folding.tables.insert(table.schema().name.clone());
                keep_colliding(table.schema().columns.iter().map(|c| c.name.as_str()), &mut folding.kept);
            }
            ControlFlow::<()>::Continue(())
        });
        keep_colliding(snapshot.tables().map(|t| t.schema().name.as_str()), &mut folding.kept);
        folding
    }

    /// The name as DataFusion sees it.
    pub(crate) fn fold(&self, name: &str) -> String {
        if self.kept.contains(name) { name.to_owned() } else { name.to_ascii_lowercase() }
    }

    /// The columns of a table as DataFusion sees them.
    pub(crate) fn column_names(&self, schema: &TableSchema) -> Vec<String> {
        schema.columns.iter().map(|c| self.fold(&c.name)).collect()
    }

    /// The spelling of an alias.
    pub(crate) fn spelling(&self, folded: &str) -> Option<&str> {
        self.spellings.get(folded).map(String::as_str)
    }

    /// Lowers every name in a statement, and gives repeated columns of a SELECT names of their own, as DataFusion wants.
    pub(crate) fn apply(&mut self, statement: &mut Statement) {
        let _ = statement.visit(&mut Folder { folding: self });
    }

    fn lower(&self, ident: &mut Ident) {
        ident.value = self.fold(&ident.value);
    }

    fn lower_alias(&mut self, ident: &mut Ident) {
        let folded = self.fold(&ident.value);
        self.spellings.entry(folded.clone()).or_insert_with(|| ident.value.clone());
        ident.value = folded;
    }

    fn lower_table_alias(&mut self, alias: &mut TableAlias) {
        self.lower(&mut alias.name);
        for column in &mut alias.columns {
            self.lower_alias(&mut column.name);
        }
    }

    fn lower_object(&self, name: &mut ObjectName) {
        // There is one schema, and it is left out.
        if name.0.len() > 1 && object_name(name).is_some() {
            name.0 = name.0.pop().into_iter().collect();
        }
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(ident) = part {
                self.lower(ident);
            }
        }
    }
}

/// Of names that differ in case alone, one is shown in lower case and the others stay as they are.
fn keep_colliding<'a>(names: impl Iterator<Item = &'a str>, kept: &mut HashSet<String>) {
    let mut by_folding: HashMap<String, Vec<&str>> = HashMap::new();
    for name in names {
        by_folding.entry(name.to_ascii_lowercase()).or_default().push(name);
    }
    for (folded, names) in by_folding {
        if names.len() > 1 {
            let lowered = names.iter().position(|n| *n == folded).unwrap_or(0);
            kept.extend(names.iter().enumerate().filter(|(i, _)| *i != lowered).map(|(_, n)| (*n).to_owned()));
        }
    }
}

struct Folder<'a> {
    folding: &'a mut Folding,
}

impl VisitorMut for Folder<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        self.folding.lower_object(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.folding.lower_table_alias(&mut cte.alias);
        }
        count_in_order(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        count_in_select(select);
        for item in &mut select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => self.folding.lower_alias(alias),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    self.folding.lower_object(name);
                }
                _ => {}
            }
        }
        for window in &mut select.named_window {
            self.folding.lower(&mut window.0);
        }
        let joins = select.from.iter_mut().flat_map(|from| &mut from.joins);
        joins.for_each(|join| self.lower_using(&mut join.join_operator));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        name_repeated(&mut select.projection);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::TableFunction { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => self.folding.lower_table_alias(alias),
            TableFactor::NestedJoin { table_with_joins, alias } => {
                if let Some(alias) = alias {
                    self.folding.lower_table_alias(alias);
                }
                for join in &mut table_with_joins.joins {
                    self.lower_using(&mut join.join_operator);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.folding.lower(ident),
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
                if let Some(plain) = plain_number(digits) {
                    *expr = plain;
                }
            }
            Expr::CompoundIdentifier(path) => {
                // A column may be written with its schema: `public.t.c`.
                if path.len() == 3 && path.first().is_some_and(|s| s.value.eq_ignore_ascii_case("public")) {
                    path.remove(0);
                }
                path.iter_mut().for_each(|ident| self.folding.lower(ident));
            }
            Expr::Function(function) => {
                if let Some(operator) = as_operator(function) {
                    *expr = operator;
                    return ControlFlow::Continue(());
                }
                for part in &mut function.name.0 {
                    if let ObjectNamePart::Identifier(ident) = part {
                        ident.value = ident.value.to_ascii_lowercase();
                    }
                }
                match &mut function.over {
                    Some(WindowType::NamedWindow(name)) => self.folding.lower(name),
                    Some(WindowType::WindowSpec(spec)) => {
                        if let Some(name) = &mut spec.window_name {
                            self.folding.lower(name);
                        }
                    }
                    None => {}
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Folder<'_> {
    fn lower_using(&self, operator: &mut JoinOperator) {
        let constraint = match operator {
            JoinOperator::Join(c)
            | JoinOperator::Inner(c)
            | JoinOperator::Left(c)
            | JoinOperator::LeftOuter(c)
            | JoinOperator::Right(c)
            | JoinOperator::RightOuter(c)
            | JoinOperator::FullOuter(c) => c,
            _ => return,
        };
        if let JoinConstraint::Using(columns) = constraint {
            columns.iter_mut().for_each(|name| self.folding.lower_object(name));
        }
    }
}

/// `mod` and `div`, which are operators by other names.
fn as_operator(function: &Function) -> Option<Expr> {
    let op = match function.name.to_string().to_ascii_lowercase().as_str() {
        "mod" => BinaryOperator::Modulo,
        "div" => BinaryOperator::MyIntegerDivide,
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(left)), FunctionArg::Unnamed(FunctionArgExpr::Expr(right))] =
        list.args.as_slice()
    else {
        return None;
    };
    let side = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    Some(Expr::Nested(Box::new(Expr::BinaryOp { left: side(left), op, right: side(right) })))
}

/// A number whose digits DataFusion would not read as the direct path does: decimals are written without exponent, and what
/// no decimal holds is a double.
fn plain_number(digits: &str) -> Option<Expr> {
    let reads_alike = digits.len() <= 18 && !digits.contains(['e', 'E']);
    if reads_alike || digits.parse::<i64>().is_ok() {
        return None;
    }
    if let Some(decimal) = Decimal::parse(digits) {
        return Some(Expr::value(Value::Number(decimal.to_string(), false)));
    }
    Some(Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::value(Value::SingleQuotedString(digits.to_owned()))),
        data_type: DataType::DoublePrecision,
        array: false,
        format: None,
    })
}

/// DataFusion refuses two columns of one name in a SELECT; SQL does not mind.
fn name_repeated(items: &mut [SelectItem]) {
    let has_wildcard = items.iter().any(|i| matches!(i, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut seen = HashSet::new();
    let mut bare = HashSet::new();
    let mut qualified_names = HashSet::new();
    for (position, item) in items.iter_mut().enumerate() {
        let repeated = match item {
            SelectItem::UnnamedExpr(expr) => {
                let again = !seen.insert(without_casts(expr));
                let hidden = last_name(expr).is_some_and(|(name, qualified)| {
                    let other = if qualified { &bare } else { &qualified_names };
                    let hidden = other.contains(&name);
                    if qualified {
                        qualified_names.insert(name)
                    } else {
                        bare.insert(name)
                    };
                    hidden
                });
                again || hidden || (has_wildcard && last_name(expr).is_some())
            }
            SelectItem::ExprWithAlias { alias, .. } => !seen.insert(alias.value.clone()),
            _ => false,
        };
        if repeated {
            let alias = Ident::new(format!("{REPEATED}{position}"));
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
                SelectItem::ExprWithAlias { alias: given, .. } => *given = alias,
                _ => {}
            }
        }
    }
}

/// An expression as DataFusion names it: casts are no part of the name, nor are parentheses.
fn without_casts(expr: &Expr) -> String {
    let mut bare = expr.clone();
    let _ = visit_expressions_mut(&mut bare, |expr| {
        while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = inner.as_ref().clone();
        }
        ControlFlow::<()>::Continue(())
    });
    bare.to_string()
}

/// The last part of a column's name, and whether a table stands before it. `a.id` and `b.id` do not collide; `a.id` and
/// `id` may.
fn last_name(expr: &Expr) -> Option<(String, bool)> {
    match expr {
        Expr::Identifier(ident) => Some((ident.value.clone(), false)),
        Expr::CompoundIdentifier(path) => path.last().map(|ident| (ident.value.clone(), true)),
        _ => None,
    }
}

/// What a statement calls a column of its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ItemName {
    /// By an alias, or by what it is.
    Given(String),
    /// By the name of a column, in the spelling of the statement.
    Column(String),
    /// Not at all: it is one of a wildcard's.
    Unnamed,
}

/// What SQL calls each column of an answer, from the statement as it was written.
pub(crate) fn item_names(query: &Query, width: usize) -> Vec<ItemName> {
    let items = leftmost_items(&query.body).unwrap_or_default();
    let is_wildcard = |i: &SelectItem| matches!(i, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let before = items.iter().position(is_wildcard).unwrap_or(items.len());
    let after = items.iter().rev().position(is_wildcard).unwrap_or(0);
    let mut names = vec![ItemName::Unnamed; width];
    for (name, item) in names.iter_mut().zip(items.iter().take(before)) {
        *name = item_name(item);
    }
    for (name, item) in names.iter_mut().rev().zip(items.iter().rev().take(after)) {
        *name = item_name(item);
    }
    names
}

fn leftmost_items(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        SetExpr::Query(query) => leftmost_items(&query.body),
        SetExpr::SetOperation { left, .. } => leftmost_items(left),
        _ => None,
    }
}

fn item_name(item: &SelectItem) -> ItemName {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => ItemName::Given(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) => expr_name(expr),
        _ => ItemName::Unnamed,
    }
}

/// PostgreSQL's name for a column that has no alias.
fn expr_name(expr: &Expr) -> ItemName {
    let column = |expr: &Expr| last_name(expr).map(|(name, _)| ItemName::Column(name));
    let fixed = match expr {
        Expr::Nested(inner) => return expr_name(inner),
        Expr::Cast { expr, data_type, .. } => {
            let own = || ItemName::Given(data_type.to_string().to_ascii_lowercase());
            return column(expr).unwrap_or_else(own);
        }
        Expr::Function(function) => match function.name.0.last() {
            Some(ObjectNamePart::Identifier(name)) => return ItemName::Given(name.value.to_ascii_lowercase()),
            _ => "?column?",
        },
        Expr::Case { .. } => "case",
        Expr::Exists { .. } => "exists",
        Expr::Extract { .. } => "extract",
        Expr::Substring { .. } => "substring",
        Expr::Trim { .. } => "btrim",
        Expr::Position { .. } => "position",
        Expr::Ceil { .. } => "ceil",
        Expr::Floor { .. } => "floor",
        Expr::Subquery(query) => match leftmost_items(&query.body) {
            Some([item]) => return item_name(item),
            _ => "?column?",
        },
        other => return column(other).unwrap_or_else(|| ItemName::Given("?column?".to_owned())),
    };
    ItemName::Given(fixed.to_owned())
}
