//! Answering a ready plan: choose a way in, walk it, try what is left on each row, order, cut.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cachesql_table::{Index, IndexRange, RowId, Table};
use cachesql_types::{TableSchema, Value};
use smallvec::SmallVec;

use super::access::{Access, Class, FoundKey, Order, Ranges};
use super::compile::CompiledSelect;
use super::rows::{DirectRows, RowList};
use super::sort::sort_rows;
use super::test::Test;
use crate::error::SqlError;
use crate::limits::EngineLimits;
use crate::plan::{Amount, Filter, Select};

/// Rows that the direct path tries one by one before it leaves a statement to DataFusion, which tries them by the chunk.
const SCAN_ROWS: u64 = 16_384;
/// Rows that it fetches by an index before it does.
const FETCH_ROWS: u64 = 262_144;
/// Rows between two looks at the clock.
const ROWS_PER_CLOCK: u32 = 1_024;

/// What a statement has used of its limits.
pub(crate) struct Budget {
    limits: EngineLimits,
    writes: bool,
    may_hand_over: bool,
    started: Option<Instant>,
    until_clock: u32,
    /// What a row counts for.
    weight: u32,
}

impl Budget {
    /// A read's. `may_hand_over` says whether DataFusion stands behind it.
    pub(crate) fn read(limits: &EngineLimits, may_hand_over: bool) -> Budget {
        Budget { limits: *limits, writes: false, may_hand_over, started: None, until_clock: ROWS_PER_CLOCK, weight: 1 }
    }

    /// A write's.
    pub(crate) fn write(limits: &EngineLimits) -> Budget {
        Budget { writes: true, ..Budget::read(limits, false) }
    }

    /// Says what each row is compared with.
    pub(crate) fn weigh<'f>(&mut self, conditions: impl IntoIterator<Item = &'f Filter>) {
        let comparisons = conditions.into_iter().map(Filter::comparisons).sum::<usize>();
        self.weight = u32::try_from(comparisons).unwrap_or(u32::MAX).max(1);
    }

    /// One more row was tried. The clock is read now and then only: a point read never reads it.
    #[inline]
    pub(crate) fn tried(&mut self) -> Result<(), SqlError> {
        self.until_clock = self.until_clock.saturating_sub(self.weight);
        if self.until_clock == 0 { self.look_at_clock() } else { Ok(()) }
    }

    fn look_at_clock(&mut self) -> Result<(), SqlError> {
        self.until_clock = ROWS_PER_CLOCK;
        let started = *self.started.get_or_insert_with(Instant::now);
        let limit: Duration = self.limits.timeout;
        if started.elapsed() > limit { Err(SqlError::Timeout { limit }) } else { Ok(()) }
    }

    /// So many ids are held.
    #[inline]
    pub(crate) fn holds(&self, ids: usize) -> Result<(), SqlError> {
        if self.writes && ids > self.limits.write_rows {
            return Err(self.limits.too_many_to_write());
        }
        if !self.writes && ids as u64 > self.limits.rows {
            return Err(self.limits.too_many_to_answer());
        }
        if ids.saturating_mul(size_of::<RowId>()) > self.limits.memory_bytes {
            return Err(SqlError::Memory(format!("{ids} rows of its answer (limits.statement_memory)")));
        }
        Ok(())
    }

    pub(crate) fn may_hand_over(&self) -> bool {
        self.may_hand_over
    }
}

/// How an execution ended.
pub(crate) enum Outcome {
    /// With rows.
    Rows(DirectRows),
    /// There are too many rows to try one by one: DataFusion does better.
    HandOver,
}

/// The way in that was chosen.
pub(crate) enum Way<'a> {
    Nothing,
    /// The one row that a unique key has.
    Row {
        access: &'a Access,
        id: RowId,
    },
    Index {
        access: &'a Access,
        ranges: SmallVec<[IndexRange; 1]>,
        rows: u64,
    },
    Scan,
}

/// Answers a plan over the table as it is in one snapshot.
pub(crate) fn run_select(
    plan: &CompiledSelect,
    table: &Arc<Table>,
    parameters: &[Value],
    budget: &mut Budget,
) -> Result<Outcome, SqlError> {
    budget.weigh(&plan.conjuncts);
    let limit = amount(plan.limit, parameters, "LIMIT", "2201W")?;
    let offset = amount(plan.offset, parameters, "OFFSET", "2201X")?.unwrap_or(0);
    let way = choose(plan, table, parameters, limit.map(|l| l.saturating_add(offset)))?;
    if budget.may_hand_over && is_large(plan, table, &way, limit) {
        return Ok(Outcome::HandOver);
    }
    if plan.count {
        let rows = count(plan, table, parameters, &way, budget)?;
        let shown = offset == 0 && limit != Some(0);
        return Ok(Outcome::Rows(DirectRows::count(plan.columns.clone(), shown.then_some(rows))));
    }
    let served = match &way {
        Way::Index { access, .. } => plan.order.is_empty() || access.order != Order::Unserved,
        Way::Nothing | Way::Row { .. } => true,
        Way::Scan => plan.order.is_empty(),
    };
    let ids = if served {
        collect(plan, table, parameters, &way, (offset, limit), budget)?
    } else {
        let mut ids = collect(plan, table, parameters, &way, (0, None), budget)?;
        sort_rows(table, &plan.order, &mut ids, offset, limit);
        ids
    };
    Ok(Outcome::Rows(DirectRows::of_table(table.clone(), ids, plan.columns.clone(), plan.projection.clone())))
}

/// The rows for which a filter is true, for a write.
pub(crate) fn matching_rows(
    table: &Arc<Table>,
    filter: Option<&Filter>,
    parameters: &[Value],
    budget: &mut Budget,
) -> Result<RowList, SqlError> {
    let select = Select { filter: filter.cloned(), ..Select::default() };
    let plan = CompiledSelect::new(table, &select)?;
    budget.weigh(&plan.conjuncts);
    let way = choose(&plan, table, parameters, None)?;
    collect(&plan, table, parameters, &way, (0, None), budget)
}

/// The number that LIMIT or OFFSET says.
pub(crate) fn amount(
    amount: Option<Amount>,
    parameters: &[Value],
    clause: &str,
    sqlstate: &'static str,
) -> Result<Option<u64>, SqlError> {
    let position = match amount {
        None => return Ok(None),
        Some(Amount::Rows(rows)) => return Ok(Some(rows)),
        Some(Amount::Parameter(position)) => position,
    };
    match parameters.get(position) {
        Some(Value::Null) => Ok(None),
        Some(value) => {
            let rows = value.as_i64().ok_or_else(|| SqlError::TypeMismatch(format!("{clause} must be an integer")))?;
            let negative = |_| SqlError::Refused { sqlstate, message: format!("{clause} must not be negative") };
            u64::try_from(rows).map(Some).map_err(negative)
        }
        None => Err(SqlError::ParameterCount { expected: position + 1, given: parameters.len() }),
    }
}

/// Picks the way in: a unique key, else the fewest rows; an index in the wanted order when that visits fewer.
pub(crate) fn choose<'a>(
    plan: &'a CompiledSelect,
    table: &Table,
    parameters: &[Value],
    wanted: Option<u64>,
) -> Result<Way<'a>, SqlError> {
    let mut best: Option<(&Access, SmallVec<[IndexRange; 1]>, u64)> = None;
    let mut ordered = None;
    for access in &plan.accesses {
        if access.class == Class::UniqueEquality {
            match one_row(plan, access, table, parameters)? {
                Some(way) => return Ok(way),
                None => continue,
            }
        }
        if access.class == Class::Order {
            ordered = ordered.or(Some(access));
            continue;
        }
        let ranges = match access.ranges(&plan.schema, parameters)? {
            Ranges::Empty => return Ok(Way::Nothing),
            Ranges::Unusable => continue,
            Ranges::One(range) => SmallVec::from([range]),
            Ranges::Several(ranges) => SmallVec::from_vec(ranges),
        };
        let Some(index) = table.indexes().get(access.index) else { continue };
        // A range is not even counted when something is given exactly: it would rarely be narrower.
        if access.class > Class::In && best.as_ref().is_some_and(|(b, ..)| b.class <= Class::In) {
            continue;
        }
        let rows = ranges.iter().map(|range| index.count(range)).sum::<u64>();
        let better = best.as_ref().is_none_or(|(b, _, fewest)| {
            rows < *fewest || (rows == *fewest && b.order == Order::Unserved && access.order != Order::Unserved)
        });
        if better {
            best = Some((access, ranges, rows));
        }
    }
    let walk = |access: &'a Access| Way::Index {
        access,
        ranges: SmallVec::from([IndexRange::all()]),
        rows: table.row_count(),
    };
    let Some((access, ranges, rows)) = best else { return Ok(ordered.map_or(Way::Scan, walk)) };
    if let Some(ordered) = ordered
        && access.order == Order::Unserved
        && let Some(wanted) = wanted
    {
        // Walking in order finds a match every (all / rows) rows, and stops when it has as many as are wanted.
        let visits = u128::from(wanted) * u128::from(table.row_count());
        if visits < u128::from(rows) * u128::from(rows) {
            return Ok(walk(ordered));
        }
    }
    Ok(Way::Index { access, ranges, rows })
}

/// The row of a unique key; `None` when its values are no keys.
fn one_row<'a>(
    plan: &CompiledSelect,
    access: &'a Access,
    table: &Table,
    parameters: &[Value],
) -> Result<Option<Way<'a>>, SqlError> {
    let index = index_of(table, access)?;
    Ok(match access.key(&plan.schema, parameters)? {
        FoundKey::Is(key) => Some(index.find(&key).map_or(Way::Nothing, |id| Way::Row { access, id })),
        FoundKey::Never => Some(Way::Nothing),
        FoundKey::Unusable => None,
    })
}

/// Whether DataFusion would be the better one.
pub(crate) fn is_large(plan: &CompiledSelect, table: &Table, way: &Way<'_>, limit: Option<u64>) -> bool {
    let few_wanted = limit.is_some_and(|l| l <= SCAN_ROWS);
    match way {
        Way::Nothing | Way::Row { .. } => false,
        Way::Scan if plan.conjuncts.is_empty() && (plan.count || (plan.order.is_empty() && few_wanted)) => false,
        Way::Scan => table.row_count() > SCAN_ROWS,
        Way::Index { access, rows, .. } => {
            let stops_early = few_wanted && (plan.order.is_empty() || access.order != Order::Unserved);
            let counted = plan.count && access.residual.is_empty();
            *rows > FETCH_ROWS && !stops_early && !counted
        }
    }
}

fn count(
    plan: &CompiledSelect,
    table: &Table,
    parameters: &[Value],
    way: &Way<'_>,
    budget: &mut Budget,
) -> Result<i64, SqlError> {
    let rows = match way {
        Way::Nothing => 0,
        Way::Scan if plan.conjuncts.is_empty() => table.row_count(),
        Way::Index { access, ranges, .. } if access.residual.is_empty() => {
            let index = index_of(table, access)?;
            ranges.iter().map(|range| index.count(range)).sum()
        }
        _ => {
            let mut rows = 0_u64;
            visit(plan, table, parameters, way, budget, |_, _| {
                rows += 1;
                Ok(true)
            })?;
            rows
        }
    };
    i64::try_from(rows).map_err(|_| SqlError::OutOfRange("the count is out of range".into()))
}

fn index_of<'t>(table: &'t Table, access: &Access) -> Result<&'t Index, SqlError> {
    let index = table.indexes().get(access.index);
    index.ok_or_else(|| SqlError::Internal(format!("index {} of table {}", access.index, table.schema().name)))
}

/// Collects ids from `offset` on, at most `limit`.
pub(crate) fn collect(
    plan: &CompiledSelect,
    table: &Table,
    parameters: &[Value],
    way: &Way<'_>,
    (offset, limit): (u64, Option<u64>),
    budget: &mut Budget,
) -> Result<RowList, SqlError> {
    let mut ids = RowList::new();
    let most = limit.map_or(usize::MAX, |l| usize::try_from(l).unwrap_or(usize::MAX));
    if most == 0 {
        return Ok(ids);
    }
    let mut skip = offset;
    visit(plan, table, parameters, way, budget, |id, budget| {
        if skip > 0 {
            skip -= 1;
            return Ok(true);
        }
        ids.push(id);
        budget.holds(ids.len())?;
        Ok(ids.len() < most)
    })?;
    Ok(ids)
}

/// Calls `each` for every row that matches, until it says stop.
fn visit(
    plan: &CompiledSelect,
    table: &Table,
    parameters: &[Value],
    way: &Way<'_>,
    budget: &mut Budget,
    mut each: impl FnMut(RowId, &mut Budget) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    match way {
        Way::Nothing => Ok(()),
        Way::Row { access, id } => {
            let tests = tests(&access.residual, &plan.schema, parameters)?;
            walk(table, std::iter::once(*id), &tests, budget, &mut each).map(|_| ())
        }
        Way::Scan => {
            let tests = tests(&plan.conjuncts, &plan.schema, parameters)?;
            walk(table, table.rows(), &tests, budget, &mut each).map(|_| ())
        }
        Way::Index { access, ranges, .. } => {
            let tests = tests(&access.residual, &plan.schema, parameters)?;
            let index = index_of(table, access)?;
            for range in ranges {
                let ids = index.select(range);
                let go_on = match access.order {
                    Order::Descending => walk(table, ids.rev(), &tests, budget, &mut each)?,
                    Order::Ascending | Order::Unserved => walk(table, ids, &tests, budget, &mut each)?,
                };
                if !go_on {
                    break;
                }
            }
            Ok(())
        }
    }
}

/// Fills in the conditions.
pub(crate) fn tests(
    filters: &[Filter],
    schema: &TableSchema,
    parameters: &[Value],
) -> Result<SmallVec<[Test; 2]>, SqlError> {
    filters.iter().map(|f| Test::new(f, schema, parameters)).collect()
}

fn walk(
    table: &Table,
    ids: impl Iterator<Item = RowId>,
    tests: &[Test],
    budget: &mut Budget,
    each: &mut impl FnMut(RowId, &mut Budget) -> Result<bool, SqlError>,
) -> Result<bool, SqlError> {
    for id in ids {
        budget.tried()?;
        if (tests.is_empty() || holds(table, id, tests)) && !each(id, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether every condition is true of a row.
pub(crate) fn holds(table: &Table, id: RowId, tests: &[Test]) -> bool {
    table.row(id).is_some_and(|row| tests.iter().all(|test| test.of(&row) == Some(true)))
}

/// Among rows of a table, an index is worth its detours when it finds fewer than one in so many.
const SELECTIVE: u64 = 16;

/// For a scan of DataFusion's: the rows that an index finds, when they are few; all that match are among them.
pub(crate) fn selective_rows(plan: &CompiledSelect, table: &Arc<Table>) -> Result<Option<Vec<RowId>>, SqlError> {
    match choose(plan, table, &[], None)? {
        Way::Nothing => Ok(Some(Vec::new())),
        Way::Row { id, .. } => Ok(Some(vec![id])),
        Way::Scan => Ok(None),
        Way::Index { rows, .. } if rows > 1 && rows > table.row_count() / SELECTIVE => Ok(None),
        Way::Index { access, ranges, .. } => {
            let index = index_of(table, access)?;
            Ok(Some(ranges.iter().flat_map(|range| index.select(range)).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Operand;

    /// Rows that may be tried until the clock is read.
    fn rows_until_clock(conditions: &[Filter]) -> Option<u32> {
        let mut budget = Budget::read(&EngineLimits::default(), false);
        budget.weigh(conditions);
        (1..=2 * ROWS_PER_CLOCK).find(|_| {
            budget.tried().expect("there is time");
            budget.started.is_some()
        })
    }

    #[test]
    fn a_row_counts_once_for_each_comparison_with_it() {
        let equal = Filter::equal(0, Value::BigInt(1));
        let one_of = |values: usize| Filter::In { column: 0, operands: vec![Operand::Value(Value::BigInt(1)); values] };
        assert_eq!(rows_until_clock(&[]), Some(ROWS_PER_CLOCK));
        assert_eq!(rows_until_clock(std::slice::from_ref(&equal)), Some(ROWS_PER_CLOCK));
        assert_eq!(rows_until_clock(&[equal.clone(), equal.clone()]), Some(ROWS_PER_CLOCK / 2));
        assert_eq!(rows_until_clock(&[Filter::Not(Box::new(one_of(512)))]), Some(ROWS_PER_CLOCK / 512));
        assert_eq!(rows_until_clock(&[Filter::Or(vec![equal; 16])]), Some(ROWS_PER_CLOCK / 16));
        // No number of comparisons is lost, however large.
        assert_eq!(rows_until_clock(&[one_of(65_535)]), Some(1));
    }
}
