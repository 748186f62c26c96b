//! Random operations on tables of several shapes, against the model, with snapshots held across them.

use std::ops::Bound;
use std::sync::Arc;

use arrow::array::RecordBatch;
use cachesql_table::{ApplyError, GroupSnapshot, ImageReader, IndexRange, Operation, PutMode, StagedRows};
use cachesql_types::{Column, DataType, Decimal, IndexDefinition, TableSchema, Value, arrow_schema};
use proptest::prelude::*;

use crate::arrays::batch_of;
use crate::model::{Key, Model};

/// splitmix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One of `spread` values of a type, the odd ones among them.
fn value(data_type: DataType, seed: u64, spread: u64) -> Value {
    let n = mix(seed) % spread;
    let i = i64::try_from(n).expect("small") - i64::try_from(spread / 2).expect("small");
    let small = i16::try_from(i % 30_000).expect("small");
    match data_type {
        DataType::Boolean => Value::Boolean(n.is_multiple_of(2)),
        DataType::SmallInt => Value::SmallInt(small),
        DataType::Integer => Value::Integer(if n == 3 { i32::MAX } else { i32::from(small) }),
        DataType::BigInt => Value::BigInt(i),
        DataType::Real => Value::Real([f32::NAN, f32::NEG_INFINITY, -0.0, 0.0, 1.5][(n % 5) as usize]),
        DataType::Double => match n {
            0 => Value::Double(f64::NAN),
            1 => Value::Double(f64::INFINITY),
            2 => Value::Double(-0.0),
            _ => Value::Double(f64::from(small) / 2.0),
        },
        DataType::Decimal { scale, .. } => Value::Decimal(Decimal { unscaled: i128::from(small), scale }),
        DataType::Text => match n {
            0 => Value::text(""),
            1 => Value::text("\0"),
            2 => Value::text("a\0b"),
            3 => Value::text("汉字"),
            _ => Value::text("ab".repeat((n % 20) as usize) + &n.to_string()),
        },
        DataType::Json => Value::Json(format!("{{\"n\":{n}}}").into()),
        DataType::Bytea => Value::Bytea(vec![0, u8::try_from(n % 256).expect("byte"), 0xFF].into()),
        DataType::Date => Value::Date(i32::from(small)),
        DataType::Time => Value::Time(i64::from(small) + 40_000),
        DataType::Timestamp => Value::Timestamp(i),
        DataType::TimestampTz => Value::TimestampTz(i),
        DataType::Uuid => Value::Uuid(u128::from(mix(n)).to_be_bytes()),
    }
}

fn row(schema: &TableSchema, seed: u64, spread: u64) -> Vec<Value> {
    let field = |(at, column): (usize, &Column)| {
        let seed = mix(seed ^ (at as u64) << 32);
        if column.nullable && seed.is_multiple_of(5) { Value::Null } else { value(column.data_type, seed, spread) }
    };
    schema.columns.iter().enumerate().map(field).collect()
}

fn column(name: &str, data_type: DataType, nullable: bool) -> Column {
    Column { name: name.into(), data_type, nullable }
}

fn index(name: &str, columns: &[usize], unique: bool) -> IndexDefinition {
    IndexDefinition { name: name.into(), columns: columns.to_vec(), unique }
}

fn schemas() -> Vec<TableSchema> {
    let decimal = DataType::Decimal { precision: 8, scale: 2 };
    vec![
        TableSchema {
            name: "by number".into(),
            columns: vec![
                column("id", DataType::BigInt, false),
                column("text", DataType::Text, true),
                column("integer", DataType::Integer, true),
                column("double", DataType::Double, true),
                column("decimal", decimal, true),
                column("day", DataType::Date, true),
            ],
            key: vec![0],
            indexes: vec![
                index("text", &[1], false),
                index("integer", &[2], false),
                index("integer+text", &[2, 1], false),
                index("decimal", &[4], false),
                index("double", &[3], false),
            ],
        },
        TableSchema {
            name: "by text and number".into(),
            columns: vec![
                column("flag", DataType::Boolean, true),
                column("text", DataType::Text, false),
                column("small", DataType::SmallInt, false),
                column("uuid", DataType::Uuid, true),
                column("bytes", DataType::Bytea, true),
                column("json", DataType::Json, true),
                column("real", DataType::Real, true),
            ],
            key: vec![1, 2],
            indexes: vec![
                index("flag", &[0], false),
                index("uuid+small", &[3, 2], true),
                index("bytes", &[4], false),
                index("real+flag", &[6, 0], false),
            ],
        },
        TableSchema {
            name: "without key".into(),
            columns: vec![
                column("at", DataType::Timestamp, true),
                column("zoned", DataType::TimestampTz, true),
                column("time", DataType::Time, true),
                column("decimal", decimal, false),
                column("text", DataType::Text, true),
            ],
            key: vec![],
            indexes: vec![index("at", &[0], false), index("decimal+time", &[3, 2], false), index("text", &[4], false)],
        },
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Put {
        seeds: Vec<u64>,
        mode: PutMode,
    },
    /// So many rows from consecutive seeds.
    PutMany {
        first: u64,
        count: u64,
    },
    Delete {
        seeds: Vec<u64>,
    },
    /// All rows but one in so many.
    DeleteMost {
        keep_every: usize,
    },
    Truncate,
    Compact,
    CreateIndex {
        columns: Vec<usize>,
        unique: bool,
    },
    DropIndex {
        which: usize,
    },
    Load {
        first: u64,
        count: u64,
        batches: u64,
    },
    Retain(bool),
    /// Goes on with what another member makes of the image.
    Restore,
    /// What turns the rows into others, applied.
    Refresh {
        first: u64,
        count: u64,
    },
}

fn steps(many: u64, length: usize) -> impl Strategy<Value = Vec<Step>> {
    let mode = prop_oneof![Just(PutMode::Insert), Just(PutMode::Upsert)];
    let seeds = || prop::collection::vec(0_u64..1_000, 1..6);
    let step = prop_oneof![
        6 => (seeds(), mode).prop_map(|(seeds, mode)| Step::Put { seeds, mode }),
        3 => (0_u64..100_000, many / 4..=many).prop_map(|(first, count)| Step::PutMany { first, count }),
        4 => seeds().prop_map(|seeds| Step::Delete { seeds }),
        1 => (2_usize..30).prop_map(|keep_every| Step::DeleteMost { keep_every }),
        1 => Just(Step::Truncate),
        1 => Just(Step::Compact),
        2 => (prop::collection::vec(0_usize..5, 1..3), any::<bool>())
            .prop_map(|(columns, unique)| Step::CreateIndex { columns, unique }),
        1 => (0_usize..6).prop_map(|which| Step::DropIndex { which }),
        2 => (0_u64..100_000, 0..=many, 1_u64..4)
            .prop_map(|(first, count, batches)| Step::Load { first, count, batches }),
        1 => any::<bool>().prop_map(Step::Retain),
        2 => Just(Step::Restore),
        1 => (0_u64..100_000, 0..=many).prop_map(|(first, count)| Step::Refresh { first, count }),
    ];
    prop::collection::vec(step, 1..length)
}

fn ranges(schema: &TableSchema, seed: u64, spread: u64) -> Vec<IndexRange> {
    let types = [DataType::Double, DataType::BigInt, DataType::Decimal { precision: 9, scale: 3 }, DataType::Text];
    let column_type = |n: u64| schema.columns[(n % schema.columns.len() as u64) as usize].data_type;
    let pick = |n: u64| match n % 3 {
        0 => value(types[(mix(n) % 4) as usize], n, spread),
        _ => value(column_type(mix(n)), n, spread),
    };
    let bound = |n: u64| match n % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(pick(mix(n))),
        _ => Bound::Excluded(pick(mix(n))),
    };
    (0..12)
        .map(|i| {
            let n = mix(seed + i * 1_000);
            let prefix = match n % 4 {
                0 => vec![if n.is_multiple_of(7) { Value::Null } else { pick(mix(n + 1)) }],
                1 if n % 8 == 1 => vec![pick(mix(n + 2)), pick(mix(n + 3))],
                _ => vec![],
            };
            IndexRange { prefix, lower: bound(mix(n + 4)), upper: bound(mix(n + 5)), nulls: n.is_multiple_of(3) }
        })
        .collect()
}

struct Pair {
    snapshot: GroupSnapshot,
    model: Model,
    spread: u64,
}

impl Pair {
    fn new(schema: TableSchema, spread: u64) -> Pair {
        let create = Operation::CreateTable { schema: schema.clone() };
        let snapshot = GroupSnapshot::empty().apply(GroupSnapshot::empty().index().next(), &[create]).expect("new").0;
        Pair { snapshot, model: Model::new(schema), spread }
    }

    fn table(&self) -> String {
        self.model.schema.name.clone()
    }

    /// Applies to both; the table refuses exactly what the model refuses. Sent through bytes, as a log does.
    fn both(&mut self, operations: &[Operation], model: Result<Model, crate::model::Refused>) {
        let decoded = Operation::decode(&Operation::encode(operations)).expect("own bytes");
        match (self.snapshot.apply(self.snapshot.index().next(), &decoded), model) {
            (Ok((snapshot, applied)), Ok(model)) => {
                assert_eq!(applied.len(), operations.len());
                (self.snapshot, self.model) = (snapshot, model);
            }
            (Err(ApplyError::Refused(_)), Err(_)) => {}
            (table, model) => panic!("{:?} but the model {:?}", table.map(|t| t.1), model.map(|m| m.rows.len())),
        }
    }

    fn row(&self, seed: u64) -> Vec<Value> {
        row(&self.model.schema, seed, self.spread)
    }

    fn batch(&self, rows: &[Vec<Value>]) -> RecordBatch {
        batch_of(&self.model.schema, rows)
    }

    fn keys(&self, seeds: &[u64]) -> Vec<Key> {
        let present: Vec<&Key> = self.model.rows.keys().collect();
        let some = |seed: &u64| match present.get((mix(*seed) % (present.len() as u64 + 1)) as usize) {
            Some(key) => Key::clone(key),
            None if self.model.schema.key.is_empty() => Key(vec![Value::BigInt(1 << 40)]),
            None => {
                let row = self.row(*seed);
                Key(self.model.schema.key.iter().map(|c| row[*c].clone()).collect())
            }
        };
        seeds.iter().map(some).collect()
    }

    fn delete(&mut self, keys: &[Key]) {
        let operation =
            Operation::Delete { table: self.table(), keys: keys.iter().map(|k| self.model.row_key(k)).collect() };
        self.both(&[operation], Ok(self.model.delete(keys)));
    }

    fn step(&mut self, step: &Step) {
        let table = self.table();
        match step {
            Step::Put { seeds, mode } => {
                let rows: Vec<Vec<Value>> = seeds.iter().map(|s| self.row(*s)).collect();
                let model = self.model.put(&rows, *mode);
                self.both(&[Operation::Put { table, rows, mode: *mode }], model);
            }
            Step::PutMany { first, count } => {
                let rows: Vec<Vec<Value>> = (*first..first + count).map(|s| self.row(s)).collect();
                let model = self.model.put(&rows, PutMode::Upsert);
                self.both(&[Operation::Put { table, rows, mode: PutMode::Upsert }], model);
            }
            Step::Delete { seeds } => self.delete(&self.keys(seeds)),
            Step::DeleteMost { keep_every } => {
                let keys = self.model.rows.keys().enumerate().filter(|(i, _)| i % keep_every != 0);
                let keys: Vec<Key> = keys.map(|(_, key)| key.clone()).collect();
                self.delete(&keys);
            }
            Step::Truncate => {
                let model = self.model.delete(&self.model.rows.keys().cloned().collect::<Vec<_>>());
                self.both(&[Operation::Truncate { table }], Ok(model));
            }
            Step::Compact => self.both(&[Operation::Compact { table }], Ok(self.model.clone())),
            Step::CreateIndex { columns, unique } => {
                let mut columns = columns.clone();
                columns.dedup();
                let name = format!("{columns:?}");
                let definition = IndexDefinition { name, columns, unique: *unique };
                let model = self.model.create_index(definition.clone());
                self.both(&[Operation::CreateIndex { table, index: definition }], model);
            }
            Step::DropIndex { which } => {
                let name = self.model.schema.indexes.get(*which).map_or("none".to_owned(), |i| i.name.clone());
                let model = self.model.drop_index(&name);
                self.both(&[Operation::DropIndex { table, index: name }], model);
            }
            Step::Load { first, count, batches } => self.load(*first, *count, *batches),
            Step::Retain(retain) => {
                let operation = Operation::SetRetention { table, ttl_ms: retain.then_some(1_000), max_rows: None };
                self.both(&[operation], Ok(self.model.clone()));
            }
            Step::Restore => self.restore(),
            Step::Refresh { first, count } => self.refresh(*first, *count),
        }
    }

    fn restore(&mut self) {
        let mut reader = ImageReader::new();
        self.snapshot.image().try_for_each(|piece| reader.push(&piece)).expect("own pieces");
        let restored = reader.finish().expect("all pieces");
        assert_eq!((restored.index(), restored.definitions()), (self.snapshot.index(), self.snapshot.definitions()));
        self.snapshot = restored;
    }

    fn load(&mut self, first: u64, count: u64, batches: u64) {
        let rows: Vec<Vec<Value>> = (first..first + count).map(|s| self.row(s)).collect();
        let mut operations = vec![Operation::BeginLoad { schema: self.model.schema.clone(), load: 7 }];
        let size = (rows.len() / usize::try_from(batches).expect("small")).max(1);
        operations.extend(rows.chunks(size).map(|rows| Operation::LoadRows { load: 7, batch: self.batch(rows) }));
        operations.push(Operation::FinishLoad { load: 7 });
        let model = self.model.load(&rows);
        self.both(&operations, model);
    }

    fn refresh(&mut self, first: u64, count: u64) {
        let rows: Vec<Vec<Value>> = (first..first + count).map(|s| self.row(s)).collect();
        let table = self.snapshot.table(&self.table()).expect("there").clone();
        let mut staged = StagedRows::new(table.schema().clone());
        staged.push(&self.batch(&rows)).expect("of the table's shape");
        let difference = table.difference(&staged);
        // The model numbers loaded rows anew; without key only the rows can be compared.
        match (self.model.schema.key.is_empty(), difference, self.model.load(&rows)) {
            (true, Ok(operations), model) => {
                let next = self.snapshot.index().next();
                let refreshed = match (self.snapshot.apply(next, &operations), model) {
                    (Ok((refreshed, _)), Ok(_)) => refreshed,
                    // An index that was added is unique, and the new rows are not.
                    (Err(_), Err(_)) => return,
                    (table, _) => panic!("{:?}", table.map(|t| t.1)),
                };
                let after = refreshed.table(&self.table()).expect("there");
                let mut found: Vec<String> =
                    after.rows().map(|id| format!("{:?}", after.row(id).expect("live").values())).collect();
                let mut wanted: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                found.sort();
                wanted.sort();
                assert_eq!(found, wanted);
                assert_eq!(after.difference(&staged), Ok(vec![]));
                assert_eq!(after.memory(), after.count_memory());
            }
            (false, Ok(operations), Ok(model)) => {
                self.both(&operations, Ok(model));
                let after = self.snapshot.table(&self.table()).expect("there");
                assert_eq!(after.difference(&staged), Ok(vec![]), "nothing is left to change");
            }
            (false, Err(_), model) => assert!(model.is_err(), "two rows of one key"),
            // A unique index is violated; applying notices.
            (false, Ok(operations), Err(refused)) => self.both(&operations, Err(refused)),
            (true, Err(refusal), _) => panic!("{refusal}"),
        }
    }

    fn verify(&self, seed: u64) {
        let table = self.snapshot.table(&self.table()).expect("there");
        self.model.verify(table, &ranges(&self.model.schema, seed, self.spread));
    }
}

fn run(schema: TableSchema, spread: u64, steps: &[Step], verify_every: usize) {
    let mut pair = Pair::new(schema, spread);
    let mut held: Vec<(GroupSnapshot, Model)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        pair.step(step);
        if number.is_multiple_of(verify_every) {
            pair.verify(number as u64);
        }
        if number.is_multiple_of(5) {
            held.push((pair.snapshot.clone(), pair.model.clone()));
        }
    }
    pair.verify(u64::MAX / 2);
    for (snapshot, model) in held {
        model.verify(snapshot.table(&model.schema.name).expect("there"), &[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn small_tables_do_as_the_model(which in 0_usize..3, spread in 6_u64..60, steps in steps(30, 40)) {
        run(schemas()[which].clone(), spread, &steps, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn tables_of_several_chunks_do_as_the_model(which in 0_usize..3, steps in steps(10_000, 12)) {
        run(schemas()[which].clone(), 30_000, &steps, 6);
    }
}

#[test]
fn the_arrow_schema_of_loads_is_that_of_the_types() {
    for schema in schemas() {
        assert_eq!(batch_of(&schema, &[]).schema(), Arc::new(arrow_schema(&schema)));
    }
}
