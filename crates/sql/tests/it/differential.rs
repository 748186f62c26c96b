//! Random statements over random rows: the direct path says what DataFusion says, and what SQLite says where SQLite has
//! the same values.

use cachesql_sql::Rows;
use cachesql_types::Value;
use rusqlite::types::ValueRef;

use crate::fixture::{Node, text_of};

/// A small generator of numbers: the same seed gives the same test (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Columns, and literals that their values and the statements' are made of. `SQLITE` marks what SQLite holds alike.
struct ColumnKind {
    name: &'static str,
    definition: &'static str,
    literals: &'static [&'static str],
    sqlite: bool,
}

const COLUMNS: &[ColumnKind] = &[
    ColumnKind {
        name: "a",
        definition: "INTEGER",
        literals: &["0", "1", "2", "3", "-1", "2147483647", "-2147483648", "7", "NULL"],
        sqlite: true,
    },
    ColumnKind {
        name: "b",
        definition: "TEXT",
        literals: &["''", "'a'", "'ab'", "'abc'", "'B'", "'汉字'", "'汉'", "'é'", "'😀'", "'a''b'", "'%'", "NULL"],
        sqlite: true,
    },
    ColumnKind {
        name: "c",
        definition: "DOUBLE",
        literals: &["0", "0.5", "-0.5", "1", "1e300", "-1e300", "1e-300", "2", "NULL"],
        sqlite: true,
    },
    ColumnKind {
        name: "d",
        definition: "DECIMAL(10,2)",
        literals: &["0.00", "1.00", "1.5", "-1.25", "99999999.99", "-99999999.99", "2", "NULL"],
        sqlite: false,
    },
    ColumnKind {
        name: "f",
        definition: "DOUBLE",
        literals: &["'NaN'", "'Infinity'", "'-Infinity'", "0", "'-0'", "1", "NULL"],
        sqlite: false,
    },
    ColumnKind {
        name: "g",
        definition: "BIGINT",
        literals: &[
            "9223372036854775807",
            "-9223372036854775808",
            "9007199254740993",
            "9007199254740992",
            "5",
            "1",
            "NULL",
        ],
        sqlite: true,
    },
    ColumnKind {
        name: "h",
        definition: "TIMESTAMP",
        literals: &["'1969-12-31 23:59:59.999999'", "'2024-02-29 12:00:00'", "'1970-01-01 00:00:00'", "NULL"],
        sqlite: false,
    },
    ColumnKind { name: "k", definition: "BOOLEAN", literals: &["true", "false", "NULL"], sqlite: false },
    ColumnKind { name: "r", definition: "REAL", literals: &["0.5", "1", "0.1", "-3", "NULL"], sqlite: false },
];

const INDEXES: &[&str] = &["a", "b", "a, b", "c", "d", "g, a", "f", "h, k", "b, a, c", "r"];

struct Case {
    node: Node,
    sqlite: rusqlite::Connection,
    random: Random,
}

fn columns(sqlite: bool) -> Vec<&'static ColumnKind> {
    COLUMNS.iter().filter(|c| c.sqlite || !sqlite).collect()
}

impl Case {
    async fn new(seed: u64) -> Case {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut node = Node::new();
        let sqlite = rusqlite::Connection::open_in_memory().expect("SQLite");
        sqlite.execute_batch("PRAGMA case_sensitive_like = ON").expect("pragma");
        for table in ["t", "u"] {
            let definitions: Vec<String> = COLUMNS.iter().map(|c| format!("{} {}", c.name, c.definition)).collect();
            node.run(&[&format!("CREATE TABLE {table} (id BIGINT PRIMARY KEY, {})", definitions.join(", "))]).await;
            for (at, index) in INDEXES.iter().enumerate() {
                if random.one_in(2) {
                    node.run(&[&format!("CREATE INDEX i{at} ON {table} ({index})")]).await;
                }
            }
            let own = columns(true);
            let affinity = |d: &str| match d {
                "TEXT" => "TEXT",
                "DOUBLE" => "REAL",
                _ => "INTEGER",
            };
            let definitions: Vec<String> =
                own.iter().map(|c| format!("{} {}", c.name, affinity(c.definition))).collect();
            let create = format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, {})", definitions.join(", "));
            sqlite.execute_batch(&create).expect("creates");
            for id in 0..random.below(60) {
                let row: Vec<&str> = COLUMNS.iter().map(|c| random.pick(c.literals)).collect();
                node.run(&[&format!("INSERT INTO {table} VALUES ({id}, {})", row.join(", "))]).await;
                let shared = COLUMNS.iter().zip(&row).filter(|(c, _)| c.sqlite).map(|(_, v)| *v).collect::<Vec<_>>();
                sqlite
                    .execute(&format!("INSERT INTO {table} VALUES ({id}, {})", shared.join(", ")), [])
                    .expect("inserts");
            }
            if random.one_in(2) {
                let gone = format!("DELETE FROM {table} WHERE a = {}", random.below(4));
                node.run(&[&gone]).await;
                sqlite.execute(&gone, []).expect("deletes");
            }
        }
        Case { node, sqlite, random }
    }

    /// A condition on columns of a table.
    fn condition(&mut self, table: &str, sqlite: bool, depth: usize) -> String {
        let kinds = columns(sqlite);
        if depth > 0 && self.random.one_in(2) {
            let (left, right) = (self.condition(table, sqlite, depth - 1), self.condition(table, sqlite, depth - 1));
            return match self.random.below(5) {
                0 | 1 => format!("({left} AND {right})"),
                2 | 3 => format!("({left} OR {right})"),
                _ => format!("NOT ({left})"),
            };
        }
        let kind = kinds[self.random.below(kinds.len())];
        let column = format!("{table}.{}", kind.name);
        let literal = self.random.pick(kind.literals);
        // Doubles beside decimals and the other way round, integers beside fractions.
        let literal = if ["a", "c", "d", "g"].contains(&kind.name) && self.random.one_in(6) {
            self.random.pick(&["0.5", "1.0", "1.50", "3", "2147483648"])
        } else {
            literal
        };
        match self.random.below(10) {
            0 => format!("{column} IS NULL"),
            1 => format!("{column} IS NOT NULL"),
            2 => format!(
                "{column} IN ({literal}, {}, {})",
                self.random.pick(kind.literals),
                self.random.pick(kind.literals)
            ),
            3 => format!("{column} NOT IN ({literal}, {})", self.random.pick(kind.literals)),
            4 => format!("{column} BETWEEN {literal} AND {}", self.random.pick(kind.literals)),
            5 if kind.name == "b" => {
                let pattern = self.random.pick(&["a%", "%b", "汉%", "_", "a_c", "%", "", "a%c", "%''%", "B"]);
                format!("{column} {}LIKE '{pattern}'", self.random.pick(&["", "NOT "]))
            }
            _ => format!("{column} {} {literal}", self.random.pick(&["=", "=", "=", "<", ">", "<=", ">=", "<>"])),
        }
    }

    /// ORDER BY that leaves no doubt, LIMIT and OFFSET.
    fn tail(&mut self, tables: &[&str], sqlite: bool) -> String {
        let mut keys = Vec::new();
        for _ in 0..self.random.below(3) {
            let kinds = columns(sqlite);
            let kind = kinds[self.random.below(kinds.len())];
            let table = tables[self.random.below(tables.len())];
            // SQLite puts NULLs first: it is told what PostgreSQL does by itself.
            let direction =
                self.random.pick(&["ASC NULLS LAST", "DESC NULLS FIRST", "ASC NULLS FIRST", "DESC NULLS LAST"]);
            keys.push(format!("{table}.{} {direction}", kind.name));
        }
        keys.extend(tables.iter().map(|t| format!("{t}.id")));
        let mut tail = format!(" ORDER BY {}", keys.join(", "));
        if self.random.one_in(2) {
            tail.push_str(&format!(" LIMIT {}", self.random.below(12)));
            if self.random.one_in(2) {
                tail.push_str(&format!(" OFFSET {}", self.random.below(6)));
            }
        }
        tail
    }

    /// SELECT items, FROM, and the rest.
    fn statement(&mut self, sqlite: bool) -> (String, String, String) {
        let depth = self.random.below(3);
        let all = |table: &str| {
            let names = columns(sqlite);
            names.iter().map(|c| format!("{table}.{}", c.name)).collect::<Vec<_>>().join(", ")
        };
        if self.random.one_in(3) {
            let on =
                self.random.pick(&["t.id = u.id", "t.a = u.a", "t.b = u.b", "t.g = u.id", "u.a = t.a AND u.b = t.b"]);
            let condition = self.condition("t", sqlite, depth);
            let other =
                if self.random.one_in(2) { format!(" AND {}", self.condition("u", sqlite, 1)) } else { String::new() };
            if self.random.one_in(4) {
                return ("count(*)".into(), "t JOIN u ON ".to_owned() + on, format!(" WHERE {condition}{other}"));
            }
            let tail = self.tail(&["t", "u"], sqlite);
            let items = format!("t.id, u.id, {}", all("u"));
            return (items, "t JOIN u ON ".to_owned() + on, format!(" WHERE {condition}{other}{tail}"));
        }
        let condition = self.condition("t", sqlite, depth);
        let condition = if self.random.one_in(8) { String::new() } else { format!(" WHERE {condition}") };
        if self.random.one_in(5) {
            return ("count(*)".into(), "t".into(), condition);
        }
        let tail = self.tail(&["t"], sqlite);
        (format!("t.id, {}", all("t")), "t".into(), condition + &tail)
    }

    fn of_sqlite(&self, sql: &str) -> Vec<String> {
        let mut statement = self.sqlite.prepare(sql).unwrap_or_else(|e| panic!("SQLite: {sql}: {e}"));
        let width = statement.column_count();
        let rows = statement.query_map([], |row| {
            let field = |at| match row.get_ref(at)? {
                ValueRef::Null => Ok("NULL".to_owned()),
                ValueRef::Integer(v) => Ok(v.to_string()),
                ValueRef::Real(v) => Ok(Value::Double(v).to_text()),
                ValueRef::Text(text) => Ok(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(_) => Err(rusqlite::Error::InvalidQuery),
            };
            Ok((0..width).map(field).collect::<Result<Vec<_>, _>>()?.join("|"))
        });
        rows.expect("runs").map(|r| r.expect("row")).collect()
    }
}

async fn compare(seed: u64, statements: usize) -> usize {
    let mut case = Case::new(seed).await;
    let mut direct_count = 0;
    for number in 0..statements {
        let sqlite = number % 2 == 0;
        let (items, from, rest) = case.statement(sqlite);
        let direct = format!("SELECT {items} FROM {from}{rest}");
        let other = format!(
            "WITH tt AS (SELECT * FROM t), uu AS (SELECT * FROM u) SELECT {items} FROM {}{rest}",
            from.replace("t JOIN u", "tt AS t JOIN uu AS u").replace("\"t\"", "tt"),
        );
        let other = if from == "t" { other.replacen(" FROM t ", " FROM tt AS t ", 1) } else { other };
        let prepared = case.node.engine.prepare(&case.node.snapshot, &direct, &[]);
        let prepared = prepared.unwrap_or_else(|e| panic!("seed {seed}: {direct}: {e}"));
        let rows = case.node.engine.query(&case.node.snapshot, &prepared, &[]).await;
        let rows = rows.unwrap_or_else(|e| panic!("seed {seed}: {direct}: {e}"));
        direct_count += usize::from(matches!(rows, Rows::Direct(_)));
        let rows = text_of(rows).await.unwrap_or_else(|e| panic!("seed {seed}: {direct}: {e}"));
        let datafusion = case.node.ask(&other, &[]).await.unwrap_or_else(|e| panic!("seed {seed}: {other}: {e}"));
        assert_eq!(plain(&rows), plain(&datafusion), "seed {seed}, direct path and DataFusion: {direct}");
        if sqlite {
            assert_eq!(rows, case.of_sqlite(&direct), "seed {seed}, direct path and SQLite: {direct}");
        }
    }
    direct_count
}

/// DataFusion's path answers one zero.
fn plain(rows: &[String]) -> Vec<String> {
    rows.iter()
        .map(|row| row.split('|').map(|f| if f == "-0" { "0" } else { f }).collect::<Vec<_>>().join("|"))
        .collect()
}

#[tokio::test]
async fn both_paths_and_sqlite_agree() {
    let mut direct = 0;
    for seed in 1..=12 {
        direct += compare(seed, 30).await;
    }
    // Most of what is made here has a shape of the direct path: if not, nothing was compared.
    assert!(direct > 250, "{direct} of 360 on the direct path");
}
