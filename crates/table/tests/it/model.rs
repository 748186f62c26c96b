//! The model that tables are compared with: a map from row key to row, everything else found by looking at all of it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use cachesql_table::{Index, IndexRange, PutMode, RowId, RowKey, Table};
use cachesql_types::{IndexDefinition, TableSchema, Value};

/// Row keys, or index keys, in the order of their columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) Vec<Value>);

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        let pairs = self.0.iter().zip(&other.0);
        let columns = pairs.map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne());
        columns.unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) schema: TableSchema,
    pub(crate) rows: BTreeMap<Key, Vec<Value>>,
    next_number: i64,
}

/// The write is refused.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused;

impl Model {
    pub(crate) fn new(schema: TableSchema) -> Model {
        Model { schema, rows: BTreeMap::new(), next_number: 0 }
    }

    fn key(&self, row: &[Value]) -> Key {
        Key(self.schema.key.iter().map(|c| row[*c].clone()).collect())
    }

    pub(crate) fn row_key(&self, key: &Key) -> RowKey {
        match (self.schema.key.is_empty(), key.0.as_slice()) {
            (true, [Value::BigInt(number)]) => RowKey::Number(u64::try_from(*number).expect("a number")),
            _ => RowKey::Columns(key.0.clone()),
        }
    }

    fn checked(self) -> Result<Model, Refused> {
        for index in self.schema.indexes.iter().filter(|i| i.unique) {
            let mut seen = BTreeSet::new();
            for row in self.rows.values() {
                let key: Vec<Value> = index.columns.iter().map(|c| row[*c].clone()).collect();
                if !key.iter().any(Value::is_null) && !seen.insert(Key(key)) {
                    return Err(Refused);
                }
            }
        }
        Ok(self)
    }

    pub(crate) fn put(&self, rows: &[Vec<Value>], mode: PutMode) -> Result<Model, Refused> {
        let mut next = self.clone();
        for row in rows {
            let key = if self.schema.key.is_empty() {
                next.next_number += 1;
                Key(vec![Value::BigInt(next.next_number - 1)])
            } else {
                next.key(row)
            };
            if next.rows.insert(key, row.clone()).is_some() && mode == PutMode::Insert {
                return Err(Refused);
            }
        }
        next.checked()
    }

    pub(crate) fn delete(&self, keys: &[Key]) -> Model {
        let mut next = self.clone();
        keys.iter().for_each(|key| {
            next.rows.remove(key);
        });
        next
    }

    pub(crate) fn load(&self, rows: &[Vec<Value>]) -> Result<Model, Refused> {
        let empty = Model { rows: BTreeMap::new(), ..self.clone() };
        empty.put(rows, PutMode::Insert)
    }

    pub(crate) fn create_index(&self, index: IndexDefinition) -> Result<Model, Refused> {
        if self.schema.indexes.iter().any(|i| i.name == index.name) {
            return Err(Refused);
        }
        let mut next = self.clone();
        next.schema.indexes.push(index);
        next.checked()
    }

    pub(crate) fn drop_index(&self, name: &str) -> Result<Model, Refused> {
        let mut next = self.clone();
        next.schema.indexes.retain(|i| i.name != name);
        if next.schema.indexes.len() == self.schema.indexes.len() { Err(Refused) } else { Ok(next) }
    }

    /// Everything that readers can ask of a table, against the model.
    pub(crate) fn verify(&self, table: &Table, ranges: &[IndexRange]) {
        assert_eq!(**table.schema(), self.schema);
        assert_eq!(table.row_count(), self.rows.len() as u64);
        for (key, row) in &self.rows {
            let id = table.find(&self.row_key(key)).unwrap_or_else(|| panic!("{key:?} is not found"));
            same(&table.row(id).expect("live").values(), row);
            assert_eq!(table.row_key(id), Some(self.row_key(key)));
        }
        self.verify_scans(table);
        assert_eq!(table.indexes().len(), self.schema.indexes.len() + usize::from(!self.schema.key.is_empty()));
        for index in table.indexes() {
            self.verify_index(table, index, &IndexRange::all());
            ranges.iter().for_each(|range| self.verify_index(table, index, range));
        }
        assert_eq!(table.memory(), table.count_memory());
    }

    fn verify_scans(&self, table: &Table) {
        let ids: Vec<RowId> = table.rows().collect();
        let mut place = 0;
        for chunk in 0..table.chunk_count() {
            let Some(batch) = table.scan_chunk(chunk, None) else { continue };
            assert_eq!(batch.schema(), *table.arrow_schema());
            for offset in 0..batch.num_rows() {
                let row = table.row(ids[place]).expect("live");
                for (column, shape) in self.schema.columns.iter().enumerate() {
                    let cell = cachesql_table::Cell::of_array(batch.column(column), shape.data_type, offset);
                    same(&[cell.to_value()], &[row.value(column)]);
                }
                place += 1;
            }
        }
        assert_eq!(place, ids.len());
        assert_eq!(ids.len(), self.rows.len());
    }

    fn verify_index(&self, table: &Table, index: &Index, range: &IndexRange) {
        let columns = &index.definition().columns;
        if range.prefix.len() > columns.len() {
            assert_eq!(index.select(range).count(), 0);
            return;
        }
        let wanted: BTreeSet<&Key> =
            self.rows.iter().filter(|(_, row)| matches(columns, row, range)).map(|(key, _)| key).collect();
        let ids: Vec<RowId> = index.select(range).collect();
        let found: BTreeSet<Key> = ids.iter().map(|id| as_key(&table.row_key(*id).expect("live"))).collect();
        assert_eq!(found.iter().collect::<BTreeSet<_>>(), wanted, "index {:?} {range:?}", index.definition());
        assert_eq!(ids.len(), wanted.len(), "no row twice");
        assert_eq!(index.count(range), wanted.len() as u64, "count of {:?} {range:?}", index.definition());
        let key = |id: &RowId| Key(columns.iter().map(|c| table.row(*id).expect("live").value(*c)).collect());
        for pair in ids.windows(2) {
            let order = key(&pair[0]).cmp(&key(&pair[1])).then(pair[0].cmp(&pair[1]));
            assert_eq!(order, Ordering::Less, "index {:?} is in order", index.definition());
        }
        let mut backwards: Vec<RowId> = index.select(range).rev().collect();
        backwards.reverse();
        assert_eq!(backwards, ids);
        // From both ends at once.
        let (mut rows, mut front, mut back) = (index.select(range), Vec::new(), Vec::new());
        while let Some(id) = rows.next() {
            front.push(id);
            back.extend(rows.next_back());
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front, ids);
        if range.prefix.is_empty() && range.nulls && range.lower == Bound::Unbounded && range.upper == Bound::Unbounded
        {
            let distinct: BTreeSet<Key> = ids.iter().map(key).collect();
            let with_null = ids.iter().map(key).filter(|k| k.0.iter().any(Value::is_null)).count();
            let without = distinct.iter().filter(|k| !k.0.iter().any(Value::is_null)).count();
            let expected = if index.definition().unique { without + with_null } else { distinct.len() };
            assert_eq!(index.distinct_keys(), expected as u64);
            assert_eq!(index.rows(), self.rows.len() as u64);
        }
    }
}

pub(crate) fn as_key(key: &RowKey) -> Key {
    match key {
        RowKey::Columns(values) => Key(values.clone()),
        RowKey::Number(number) => Key(vec![Value::BigInt(i64::try_from(*number).expect("small"))]),
    }
}

/// `==` of values takes 1 and 1.0 for the same, and 0.0 and -0.0; a table must not.
fn same(a: &[Value], b: &[Value]) {
    let identical = |(a, b): (&Value, &Value)| match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (Value::Decimal(a), Value::Decimal(b)) => (a.unscaled, a.scale) == (b.unscaled, b.scale),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && a == b,
    };
    assert!(a.len() == b.len() && a.iter().zip(b).all(identical), "{a:?} is not {b:?}");
}

fn matches(columns: &[usize], row: &[Value], range: &IndexRange) -> bool {
    let equal = |(column, wanted): (&usize, &Value)| {
        let value = &row[*column];
        if wanted.is_null() { value.is_null() } else { value.compare(wanted) == Some(Ordering::Equal) }
    };
    if !columns.iter().zip(&range.prefix).all(equal) {
        return false;
    }
    let Some(next) = columns.get(range.prefix.len()).map(|c| &row[*c]) else { return true };
    if next.is_null() {
        return range.nulls;
    }
    let lower = match &range.lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => next.compare(bound).is_some_and(Ordering::is_ge),
        Bound::Excluded(bound) => next.compare(bound).is_some_and(Ordering::is_gt),
    };
    let upper = match &range.upper {
        Bound::Unbounded => true,
        Bound::Included(bound) => next.compare(bound).is_some_and(Ordering::is_le),
        Bound::Excluded(bound) => next.compare(bound).is_some_and(Ordering::is_lt),
    };
    lower && upper
}
