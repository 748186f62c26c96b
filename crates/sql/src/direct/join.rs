//! Index nested-loop joins: the rows of one table, and for each of them the rows of the next by an index.

use std::ops::Bound;
use std::sync::Arc;

use cachesql_table::{IndexRange, RowId, Table};
use cachesql_types::{TableSchema, Value};

use super::access::{Class, Key, key_of};
use super::compile::{CompiledSelect, check_columns, count_column, named, split};
use super::execute::{Budget, Outcome, amount, choose, collect, holds, is_large, tests};
use super::rows::DirectRows;
use super::sort::compare_key;
use super::test::{Test, column_of, resolve};
use crate::answer::ColumnInfo;
use crate::error::SqlError;
use crate::plan::{Amount, Comparison, Filter, JoinEquality, JoinSelect, Operand, OrderBy, Select};

/// Rows that a join tries before it leaves the statement to DataFusion.
const JOIN_ROWS: u64 = 100_000;

/// A `JoinSelect` made ready: which table comes first, and by which index each next one is entered.
#[derive(Clone, Debug)]
pub(crate) struct CompiledJoin {
    /// The tables' schemas, in FROM's order.
    pub(crate) schemas: Vec<Arc<TableSchema>>,
    /// The table that is read first.
    pub(crate) first: usize,
    pub(crate) start: CompiledSelect,
    /// The others, in the order in which they are entered.
    pub(crate) steps: Vec<Step>,
    order: Vec<(usize, OrderBy)>,
    limit: Option<Amount>,
    offset: Option<Amount>,
    count: bool,
    pub(crate) columns: Arc<[ColumnInfo]>,
    projection: Arc<[(usize, usize)]>,
}

/// How one more table is entered.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) table: usize,
    pub(crate) index: usize,
    key: Vec<KeyPart>,
    /// Conditions on this table alone.
    conjuncts: Vec<Filter>,
    /// Columns of this table, and what they must be equal to among the tables before it.
    equalities: Vec<(usize, (usize, usize))>,
}

#[derive(Clone, Debug)]
enum KeyPart {
    Given(Operand),
    Joined((usize, usize)),
}

impl CompiledJoin {
    /// Makes a join ready; `None` when some table can be entered by no index.
    pub(crate) fn new(tables: &[Arc<Table>], join: &JoinSelect) -> Result<Option<CompiledJoin>, SqlError> {
        let mut conjuncts = Vec::new();
        for (table, part) in tables.iter().zip(&join.tables) {
            let mut own = Vec::new();
            if let Some(filter) = &part.filter {
                check_columns(filter, table.schema())?;
                split(filter, &mut own);
            }
            conjuncts.push(own);
        }
        let mut starts = Vec::new();
        for (at, (table, part)) in tables.iter().zip(&join.tables).enumerate() {
            let select = Select { filter: part.filter.clone(), ..Select::default() };
            let start = CompiledSelect::new(table, &select)?;
            let class = start.accesses.first().map(|a| a.class);
            starts.push((class.is_none(), class.unwrap_or(Class::Order), table.row_count(), at, start));
        }
        starts.sort_by_key(|(none, class, rows, at, _)| (*none, *class, *rows, *at));
        for (_, _, _, first, start) in starts {
            if let Some(steps) = steps_from(first, tables, &conjuncts, &join.equalities) {
                return CompiledJoin::assemble(tables, join, first, start, steps).map(Some);
            }
        }
        Ok(None)
    }

    fn assemble(
        tables: &[Arc<Table>],
        join: &JoinSelect,
        first: usize,
        start: CompiledSelect,
        steps: Vec<Step>,
    ) -> Result<CompiledJoin, SqlError> {
        let schemas: Vec<_> = tables.iter().map(|t| t.schema().clone()).collect();
        let gone = || SqlError::Internal("a table of a join is gone".into());
        let mut columns = Vec::new();
        let mut projection = Vec::new();
        for (at, part) in &join.columns {
            columns.push(named(part, schemas.get(*at).ok_or_else(gone)?)?);
            projection.push((*at, part.column));
        }
        if join.count {
            columns.push(count_column());
        }
        for (at, key) in &join.order {
            column_of(schemas.get(*at).ok_or_else(gone)?, key.column)?;
        }
        Ok(CompiledJoin {
            schemas,
            first,
            start,
            steps,
            order: join.order.clone(),
            limit: join.limit,
            offset: join.offset,
            count: join.count,
            columns: columns.into(),
            projection: projection.into(),
        })
    }
}

/// Enters the other tables one after another, each by an index whose leading columns are known by then.
fn steps_from(
    first: usize,
    tables: &[Arc<Table>],
    conjuncts: &[Vec<Filter>],
    equalities: &[JoinEquality],
) -> Option<Vec<Step>> {
    let mut entered = vec![first];
    let mut steps = Vec::new();
    while entered.len() < tables.len() {
        let waiting = (0..tables.len()).filter(|at| !entered.contains(at));
        let candidates = waiting.filter_map(|at| step_into(at, &entered, tables, conjuncts, equalities));
        let (_, step) = candidates.min_by_key(|(cost, _)| *cost)?;
        entered.push(step.table);
        steps.push(step);
    }
    Some(steps)
}

/// The best index to enter a table by, and the rows that an entry finds on average.
fn step_into(
    at: usize,
    entered: &[usize],
    tables: &[Arc<Table>],
    conjuncts: &[Vec<Filter>],
    equalities: &[JoinEquality],
) -> Option<(u64, Step)> {
    let table = tables.get(at)?;
    let own = conjuncts.get(at)?;
    let towards = |e: &JoinEquality| match (e.left, e.right) {
        ((left, column), other) if left == at && entered.contains(&other.0) => Some((column, other)),
        (other, (right, column)) if right == at && entered.contains(&other.0) => Some((column, other)),
        _ => None,
    };
    let joined: Vec<(usize, (usize, usize))> = equalities.iter().filter_map(towards).collect();
    let mut best: Option<(u64, Step)> = None;
    for (position, index) in table.indexes().iter().enumerate() {
        let mut key = Vec::new();
        let mut uses_join = false;
        for column in &index.definition().columns {
            if let Some((_, other)) = joined.iter().find(|(c, _)| c == column) {
                key.push(KeyPart::Joined(*other));
                uses_join = true;
            } else if let Some(operand) = given(own, *column) {
                key.push(KeyPart::Given(operand.clone()));
            } else {
                break;
            }
        }
        if !uses_join {
            continue;
        }
        let whole = key.len() == index.definition().columns.len();
        let groups = if whole { index.distinct_keys() } else { index.distinct_keys() / 2 };
        let rows = table.row_count() / groups.max(1);
        if best.as_ref().is_none_or(|(fewest, _)| rows < *fewest) {
            let step = Step { table: at, index: position, key, conjuncts: own.clone(), equalities: joined.clone() };
            best = Some((rows, step));
        }
    }
    best
}

fn given(conjuncts: &[Filter], wanted: usize) -> Option<&Operand> {
    conjuncts.iter().find_map(|filter| match filter {
        Filter::Compare { column, op: Comparison::Equal, operand } if *column == wanted => Some(operand),
        _ => None,
    })
}

/// One execution of a join.
struct Run<'a> {
    plan: &'a CompiledJoin,
    tables: &'a [Arc<Table>],
    parameters: &'a [Value],
    /// Per step, the conditions filled in.
    tests: Vec<smallvec::SmallVec<[Test; 2]>>,
    /// The row of each table at hand, in FROM's order.
    current: Vec<RowId>,
    found: Vec<RowId>,
    rows: u64,
    tried: u64,
    /// Stop after so many rows.
    enough: u64,
}

enum Walk {
    On,
    Enough,
    HandOver,
}

/// Answers a join over the tables as they are in one snapshot, in FROM's order.
pub(crate) fn run_join(
    plan: &CompiledJoin,
    tables: &Arc<[Arc<Table>]>,
    parameters: &[Value],
    budget: &mut Budget,
) -> Result<Outcome, SqlError> {
    budget.weigh(plan.start.conjuncts.iter().chain(plan.steps.iter().flat_map(|step| &step.conjuncts)));
    let limit = amount(plan.limit, parameters, "LIMIT", "2201W")?;
    let offset = amount(plan.offset, parameters, "OFFSET", "2201X")?.unwrap_or(0);
    let Some(first) = tables.get(plan.first) else { return Ok(Outcome::HandOver) };
    let way = choose(&plan.start, first, parameters, None)?;
    if budget.may_hand_over() && is_large(&plan.start, first, &way, None) {
        return Ok(Outcome::HandOver);
    }
    let outer = collect(&plan.start, first, parameters, &way, (0, None), budget)?;
    let in_any_order = plan.order.is_empty() && !plan.count;
    let enough = limit.filter(|_| in_any_order).map_or(u64::MAX, |l| l.saturating_add(offset));
    let filled = plan.steps.iter().map(|step| {
        let schema = plan.schemas.get(step.table).ok_or_else(|| SqlError::Internal("a schema is gone".into()))?;
        tests(&step.conjuncts, schema, parameters)
    });
    let mut run = Run {
        plan,
        tables,
        parameters,
        tests: filled.collect::<Result<_, _>>()?,
        current: vec![RowId(0); tables.len()],
        found: Vec::new(),
        rows: 0,
        tried: 0,
        enough,
    };
    for id in outer {
        if run.enough == 0 {
            break;
        }
        if let Some(slot) = run.current.get_mut(plan.first) {
            *slot = id;
        }
        match run.enter(0, budget)? {
            Walk::On => {}
            Walk::Enough => break,
            Walk::HandOver => return Ok(Outcome::HandOver),
        }
    }
    if plan.count {
        let rows = i64::try_from(run.rows).map_err(|_| SqlError::OutOfRange("the count is out of range".into()))?;
        let shown = offset == 0 && limit != Some(0);
        return Ok(Outcome::Rows(DirectRows::count(plan.columns.clone(), shown.then_some(rows))));
    }
    let ids = ordered(plan, tables, run.found, offset, limit);
    Ok(Outcome::Rows(DirectRows::of_join(tables.clone(), ids, plan.columns.clone(), plan.projection.clone())))
}

impl Run<'_> {
    /// Enters the table of a step with the rows at hand, and those behind it. Its depth is the number of tables.
    fn enter(&mut self, step: usize, budget: &mut Budget) -> Result<Walk, SqlError> {
        let plan = self.plan;
        let tables = self.tables;
        let Some(way) = plan.steps.get(step) else {
            self.rows += 1;
            if !plan.count {
                self.found.extend_from_slice(&self.current);
                budget.holds(self.found.len())?;
            }
            return Ok(if self.rows >= self.enough { Walk::Enough } else { Walk::On });
        };
        let Some(table) = tables.get(way.table) else { return Ok(Walk::On) };
        let Some(index) = table.indexes().get(way.index) else { return Ok(Walk::On) };
        let Some(prefix) = self.key(way)? else { return Ok(Walk::On) };
        let range = IndexRange { prefix, lower: Bound::Unbounded, upper: Bound::Unbounded, nulls: true };
        for id in index.select(&range) {
            budget.tried()?;
            self.tried += 1;
            if self.tried > JOIN_ROWS && budget.may_hand_over() {
                return Ok(Walk::HandOver);
            }
            let tests = self.tests.get(step).map(|t| t.as_slice()).unwrap_or_default();
            if !holds(table, id, tests) || !self.joins(table, id, way) {
                continue;
            }
            if let Some(slot) = self.current.get_mut(way.table) {
                *slot = id;
            }
            match self.enter(step + 1, budget)? {
                Walk::On => {}
                stop => return Ok(stop),
            }
        }
        Ok(Walk::On)
    }

    /// The key to enter by; `None` when no row can have it.
    fn key(&self, step: &Step) -> Result<Option<Vec<Value>>, SqlError> {
        let Some(schema) = self.plan.schemas.get(step.table) else { return Ok(None) };
        let Some(index) = self.tables.get(step.table).and_then(|t| t.indexes().get(step.index)) else {
            return Ok(None);
        };
        let mut key = Vec::with_capacity(step.key.len());
        for (part, column) in step.key.iter().zip(&index.definition().columns) {
            let column = column_of(schema, *column)?;
            let value = match part {
                KeyPart::Given(operand) => resolve(operand, column, "=", self.parameters)?,
                KeyPart::Joined(place) => self.value(*place),
            };
            if value.is_null() {
                return Ok(None);
            }
            match key_of(value, column.data_type) {
                Key::Is(value) => key.push(value),
                Key::Never => return Ok(None),
                // Only columns of one type are joined, and a double given for a BIGINT key is the one case left:
                // shorten the key there, as every condition is tried on each row besides.
                Key::Unusable => break,
            }
        }
        Ok(Some(key))
    }

    fn value(&self, (table, column): (usize, usize)) -> Value {
        let row = self.tables.get(table).zip(self.current.get(table)).and_then(|(t, id)| t.row(*id));
        row.map_or(Value::Null, |row| row.value(column))
    }

    /// Whether all equalities with the tables before hold.
    fn joins(&self, table: &Table, id: RowId, step: &Step) -> bool {
        // The usual case: the one equality is the first column of the key, and so holds.
        if step.equalities.len() == 1 && matches!(step.key.first(), Some(KeyPart::Joined(_))) {
            return true;
        }
        let Some(row) = table.row(id) else { return false };
        step.equalities.iter().all(|(column, other)| {
            self.value(*other).compare(&row.value(*column)).is_some_and(std::cmp::Ordering::is_eq)
        })
    }
}

/// Orders rows of several tables, and cuts them.
fn ordered(plan: &CompiledJoin, tables: &[Arc<Table>], ids: Vec<RowId>, offset: u64, limit: Option<u64>) -> Vec<RowId> {
    let width = tables.len().max(1);
    let mut rows: Vec<&[RowId]> = ids.chunks_exact(width).collect();
    if !plan.order.is_empty() {
        rows.sort_by(|a, b| {
            let by = |(at, key): &(usize, OrderBy)| {
                let table = tables.get(*at)?;
                let left = table.row(*a.get(*at)?)?;
                let right = table.row(*b.get(*at)?)?;
                Some(compare_key(key, left.cell(key.column), right.cell(key.column)))
            };
            let decided = plan.order.iter().filter_map(by).find(|o| o.is_ne());
            decided.unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let take = limit.map_or(usize::MAX, |l| usize::try_from(l).unwrap_or(usize::MAX));
    rows.into_iter().skip(skip).take(take).flatten().copied().collect()
}
