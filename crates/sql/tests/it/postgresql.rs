//! Answers of PostgreSQL 15, written down as it gave them (`psql -At`, time zone UTC), beside those of the engine.

use cachesql_types::DataType;

use crate::fixture::Node;

/// A table of each type, as the answers below were given for it.
async fn typed() -> Node {
    let mut node = Node::new();
    node.run(&[
        "CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, tm TIME, n DECIMAL(10,2), \
         m DECIMAL(38,10), b BIGINT, s TEXT, j JSON)",
        "INSERT INTO t VALUES (1, '2020-01-31', '2020-01-31 10:20:30.5', '2020-01-31 10:20:30.5Z', '10:20:30', 10.00, 3, \
         7, 'abc', '{\"a\": {\"b\":  1, \"c\": [1, 2, \"x\"]}, \"n\": null, \"s\": \"q\\\"\\u00e9\"}')",
        "INSERT INTO t VALUES (2, '2021-03-01', '2021-03-01 00:00:00', '2021-03-01 00:00:00Z', '23:59:59', -7.25, \
         12345678901234567890.0123456789, -7, '12', '[1, 2.50, {\"k\": true}]')",
    ])
    .await;
    node
}

async fn check(node: &Node, cases: &[(&str, &[&str])]) {
    for (sql, expected) in cases {
        assert_eq!(node.rows(sql).await, *expected, "{sql}");
    }
}

/// The types of a statement's columns.
fn types(node: &Node, sql: &str) -> Vec<DataType> {
    let prepared = node.engine.prepare(&node.snapshot, sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
    prepared.columns().iter().map(|c| c.data_type).collect()
}

#[tokio::test]
async fn decimals_divide_and_multiply_as_postgresql_s() {
    let node = typed().await;
    check(
        &node,
        &[
            ("SELECT 1.0/3", &["0.33333333333333333333"]),
            ("SELECT 2/3.0", &["0.66666666666666666667"]),
            ("SELECT -2/3.0", &["-0.66666666666666666667"]),
            ("SELECT (1.0/3)*3", &["0.99999999999999999999"]),
            ("SELECT -7.5 % 2, mod(7,3), mod(-7,3), mod(7.5,2)", &["-1.5|1|-1|1.5"]),
            ("SELECT div(7,2), div(-7,2), div(7.5,2), div(n, 3) FROM t WHERE id = 1", &["3|-3|3|3"]),
            ("SELECT sign(-5), sign(2.5), sign(-2.5::double precision), sign(0)", &["-1|1|-1|0"]),
            ("SELECT 99999999999999999999999999999999999999", &["99999999999999999999999999999999999999"]),
            (
                "SELECT 18446744073709551615, 18446744073709551615 + 1, 9223372036854775808 * 2, -9223372036854775808",
                &["18446744073709551615|18446744073709551616|18446744073709551616|-9223372036854775808"],
            ),
        ],
    )
    .await;
    // PostgreSQL's number of digits goes by the values; the digits that both have are the same, and the last is rounded.
    for (sql, postgresql) in [
        ("SELECT 10.0/3", "3.3333333333333333"),
        ("SELECT 1000000.0/7", "142857.142857142857"),
        ("SELECT 100.0*1/3", "33.3333333333333333"),
        ("SELECT n/7.5 FROM t WHERE id = 2", "-0.96666666666666666667"),
        ("SELECT n/7.5 FROM t WHERE id = 1", "1.3333333333333333"),
        ("SELECT m/n FROM t WHERE id = 2", "-1702852262239250743.4499787143"),
        ("SELECT b/n FROM t WHERE id = 2", "0.96551724137931034483"),
        ("SELECT sum(n)/count(*) FROM t", "1.37500000000000000000"),
        ("SELECT (1.0/3)*(1.0/3)", "0.1111111111111111111088888888888888888889"),
    ] {
        let own = node.rows(sql).await.concat();
        let shared = own.len().min(postgresql.len()) - 1;
        assert_eq!(own[..shared], postgresql[..shared], "{sql}: {own}");
        let behind = own.split_once('.').expect("a fraction").1.len();
        assert!(behind >= 16, "{sql}: {own}");
    }
}

#[tokio::test]
async fn numbers_that_no_decimal_holds_are_refused() {
    let mut node = typed().await;
    for sql in [
        "SELECT 999999999999999999999999999999999999999",
        "SELECT 1.12345678901234567890123456789012345678901",
        "SELECT id FROM t WHERE id = 999999999999999999999999999999999999999",
        "SELECT id FROM t WHERE n < -0.123456789012345678901234567890123456789",
        "SELECT 99999999999999999999999999999999999999 * 10",
        "SELECT m / 0.0000000000000001 FROM t",
    ] {
        let found = match node.engine.prepare(&node.snapshot, sql, &[]) {
            Err(error) => error.sqlstate(),
            Ok(_) => node.failure(sql).await,
        };
        assert_eq!(found, "22003", "{sql}");
    }
    let insert = "INSERT INTO t (id, m) VALUES (9, 999999999999999999999999999999999999999)";
    assert_eq!(node.write(insert, &[]).await.expect_err("too long").sqlstate(), "22003");
}

#[tokio::test]
async fn one_moment_holds_throughout_a_statement() {
    let node = typed().await;
    check(
        &node,
        &[
            ("SELECT now() = current_timestamp, now()::date = current_date", &["t|t"]),
            ("SELECT transaction_timestamp() = now(), statement_timestamp() = now()", &["t|t"]),
            ("SELECT localtimestamp = now()::timestamp, localtime = localtimestamp::time", &["t|t"]),
            ("SELECT count(DISTINCT now()) FROM t, t AS u", &["1"]),
            ("SELECT now() > tz, now() > ts, now() - tz > interval '1 day' FROM t WHERE id = 1", &["t|t|t"]),
        ],
    )
    .await;
    let clocks = "SELECT now(), current_timestamp, localtimestamp, current_date, localtime";
    let own = [DataType::TimestampTz, DataType::TimestampTz, DataType::Timestamp, DataType::Date, DataType::Time];
    assert_eq!(types(&node, clocks), own);
    let now = node.rows("SELECT now()").await.concat();
    assert!(now.ends_with("+00"), "{now}");
}

#[tokio::test]
async fn counts_and_ranks_are_integers() {
    let node = typed().await;
    let windows = "SELECT row_number() OVER w, rank() OVER w, dense_rank() OVER w, count(*) OVER w, ntile(2) OVER w, \
                   row_number() OVER w + 1 FROM t WINDOW w AS (ORDER BY id)";
    let big = DataType::BigInt;
    assert_eq!(types(&node, windows), [big, big, big, big, DataType::Integer, big]);
    assert_eq!(node.rows(windows).await, ["1|1|1|1|1|2", "2|2|2|2|2|3"]);
    let numbered = "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id DESC) AS r FROM t) x WHERE r = 1";
    assert_eq!(node.rows(numbered).await, ["2"]);
}

#[tokio::test]
async fn dates_and_intervals_reckon_as_postgresql_s() {
    let node = typed().await;
    let sums = "SELECT d + interval '1 day', d - interval '1 month', interval '1 day' + d FROM t ORDER BY id";
    assert_eq!(types(&node, sums), [DataType::Timestamp; 3]);
    let days = "SELECT d + 1, d - 1, 1 + d, d - date '2020-01-01' FROM t ORDER BY id";
    assert_eq!(types(&node, days), [DataType::Date, DataType::Date, DataType::Date, DataType::Integer]);
    check(
        &node,
        &[
            (
                sums,
                &[
                    "2020-02-01 00:00:00|2019-12-31 00:00:00|2020-02-01 00:00:00",
                    "2021-03-02 00:00:00|2021-02-01 00:00:00|2021-03-02 00:00:00",
                ],
            ),
            (days, &["2020-02-01|2020-01-30|2020-02-01|30", "2021-03-02|2021-02-28|2021-03-02|425"]),
            ("SELECT date '2020-01-31' + interval '1 month'", &["2020-02-29 00:00:00"]),
            (
                "SELECT ts - timestamp '2020-01-01' > interval '1 day', ts - timestamp '2020-01-01' > interval '24 hours', \
                 ts - timestamp '2020-01-30 10:20:30.5' = interval '1 day' FROM t ORDER BY id",
                &["t|t|t", "t|t|f"],
            ),
            (
                "SELECT interval '1 month' > interval '29 days', interval '30 days' = interval '1 month', \
                 interval '24 hours' = interval '1 day', interval '25 hours' BETWEEN '1 day' AND '2 days', \
                 interval '48 hours' IN ('1 day', '2 days')",
                &["t|t|t|t|t"],
            ),
            (
                "SELECT extract(day from ts - timestamp '2020-01-01'), extract(hour from ts - timestamp '2020-01-01') \
                 FROM t ORDER BY id",
                &["30|10", "425|0"],
            ),
            ("SELECT (ts - timestamp '2020-01-01')::text FROM t ORDER BY id", &["30 days 10:20:30.5", "425 days"]),
            ("SELECT (timestamp '2020-01-01' - ts)::text FROM t WHERE id = 1", &["-30 days -10:20:30.5"]),
            ("SELECT (interval '1 year 2 months -3 days 4 hours')::text", &["1 year 2 mons -3 days +04:00:00"]),
            ("SELECT interval '1 day' || 'x', (tz - tz) || '' FROM t WHERE id = 1", &["1 dayx|00:00:00"]),
            (
                "SELECT ts + interval '1 day', tz + interval '1 month', d + tm FROM t ORDER BY id",
                &[
                    "2020-02-01 10:20:30.5|2020-02-29 10:20:30.5+00|2020-01-31 10:20:30",
                    "2021-03-02 00:00:00|2021-04-01 00:00:00+00|2021-03-01 23:59:59",
                ],
            ),
        ],
    )
    .await;
    assert_eq!(
        node.engine.prepare(&node.snapshot, "SELECT ts - ts FROM t", &[]).expect_err("INTERVAL").sqlstate(),
        "0A000"
    );
}

#[tokio::test]
async fn parts_of_json_are_as_they_were_written() {
    let node = typed().await;
    check(
        &node,
        &[
            (
                "SELECT j->'a', j->>'a', j->'a'->'b', j->'a'->>'c', j->>'s', j->'n', j->>'n', j->0, j->-1, j->1 FROM t \
                 ORDER BY id",
                &[
                    "{\"b\":  1, \"c\": [1, 2, \"x\"]}|{\"b\":  1, \"c\": [1, 2, \"x\"]}|1|[1, 2, \"x\"]|q\"é|null|NULL|NULL|NULL|NULL",
                    "NULL|NULL|NULL|NULL|NULL|NULL|NULL|1|{\"k\": true}|2.50",
                ],
            ),
            ("SELECT id FROM t WHERE j->'a'->>'b' = '1'", &["1"]),
            ("SELECT (j->>1)::decimal(5,2) FROM t WHERE id = 2", &["2.50"]),
            ("SELECT '{\"a\":1,\"a\":2}'::json->'a'", &["2"]),
            ("SELECT '\"x\"'::json->'a', '[1]'::json->'0', '[]'::json->0, '{}'::json->''", &["NULL|NULL|NULL|NULL"]),
        ],
    )
    .await;
    assert_eq!(types(&node, "SELECT j->'a', j->>'a' FROM t"), [DataType::Json, DataType::Text]);
    assert_eq!(
        node.ask("SELECT j->>$1 FROM t WHERE id = 1", &[cachesql_types::Value::text("s")]).await.expect("text"),
        ["q\"é"]
    );
    for (sql, sqlstate) in [
        ("SELECT '{\"a\":'::json->'a'", "22P02"),
        ("SELECT '[1] x'::json->0", "22P02"),
        ("SELECT '{\"a\" 1}'::json->'a'", "22P02"),
        ("SELECT s->'a' FROM t", "42883"),
        ("SELECT j->1.5 FROM t", "42883"),
        ("SELECT j #> '{a,b}' FROM t", "0A000"),
    ] {
        let found = match node.engine.prepare(&node.snapshot, sql, &[]) {
            Err(error) => error.sqlstate(),
            Ok(_) => node.failure(sql).await,
        };
        assert_eq!(found, sqlstate, "{sql}");
    }
}

/// Statements that are wrong, with PostgreSQL's codes and our words for it.
const WRONG: &[(&str, &str, &str)] = &[
    ("SELECT Zz FROM t", "42703", "column \"Zz\" does not exist in table \"t\""),
    ("SELECT id + Zz FROM T a", "42703", "column \"Zz\" does not exist in table \"t\""),
    ("SELECT a.Zz FROM t a", "42703", "column \"Zz\" does not exist in table \"t\""),
    ("SELECT a.Zz + 1 FROM t a", "42703", "column \"Zz\" does not exist in table \"t\""),
    ("SELECT Q.id + 1 FROM t", "42P01", "table \"Q\" is not in FROM"),
    ("SELECT u.* FROM t", "42P01", "table \"u\" is not in FROM"),
    ("SELECT 1 + ID FROM t, u", "42702", "column \"ID\" is in more than one table; write table.column"),
    ("SELECT count(*) FROM Missing", "42P01", "table \"Missing\" does not exist"),
    ("SELECT s + 1 FROM t", "42883", "operator does not exist: TEXT + BIGINT; a cast may help"),
    ("SELECT d * 2 FROM t", "42883", "operator does not exist: DATE * BIGINT; a cast may help"),
    ("SELECT ts + 1 FROM t", "42883", "operator does not exist: TIMESTAMP + BIGINT; a cast may help"),
    ("SELECT d + d FROM t", "42883", "operator does not exist: DATE + DATE; a cast may help"),
    ("SELECT id LIKE 'a' FROM t", "42883", "operator does not exist: INTEGER LIKE TEXT; a cast may help"),
    ("SELECT upper(id) FROM t", "42883", "function upper(INTEGER) does not exist; a cast may help"),
    ("SELECT upper(s, s) FROM t", "42883", "function upper(TEXT, TEXT) does not exist; a cast may help"),
    ("SELECT age(ts, ts) FROM t", "42883", "function age does not exist"),
    ("SELECT format('%s', 1)", "42883", "function format does not exist"),
    ("SELECT arrow_typeof(1)", "42883", "function arrow_typeof does not exist"),
    ("SELECT NOT id FROM t", "42804", "the operand of NOT must be BOOLEAN, not INTEGER"),
    ("SELECT id FROM t WHERE id + 1", "42804", "a condition must be BOOLEAN, not BIGINT"),
    ("SELECT id FROM t WHERE id", "42804", "a condition must be BOOLEAN, not INTEGER"),
    ("SELECT s::int FROM t", "22P02", "invalid input syntax for type INTEGER: \"abc\""),
    ("SELECT s::date FROM t", "22P02", "invalid input syntax for type DATE: \"abc\""),
    ("SELECT s::timestamp FROM t", "22P02", "invalid input syntax for type TIMESTAMP: \"abc\""),
    ("SELECT 70000::smallint", "22003", "value 70000 cannot be held exactly in type SMALLINT"),
    ("SELECT 12345.678::decimal(5,2)", "22003", "value 12345.68 has more digits than DECIMAL(5) holds"),
    ("SELECT 9223372036854775807 + 1", "22003", "the result of + is out of range"),
    ("SELECT - (-9223372036854775808)", "22003", "the result of - is out of range"),
    ("SELECT 1 / 0", "22012", "division by zero"),
    ("SELECT 1.5 % 0", "22012", "division by zero"),
    ("SELECT s, sum(b) FROM t GROUP BY id", "42803", "column \"t.s\" must be in GROUP BY or in an aggregate function"),
    (
        "SELECT id FROM t WHERE sum(id) > 1",
        "42803",
        "aggregate functions are not allowed in WHERE; HAVING may have them",
    ),
    ("SELECT sum(sum(id)) FROM t", "42803", "aggregate functions cannot be nested"),
    ("SELECT s FROM t ORDER BY 2", "42P10", "ORDER BY position 2 is not in the SELECT list"),
    ("SELECT s FROM t GROUP BY 2", "42P10", "GROUP BY position 2 is not in the SELECT list"),
    (
        "SELECT id FROM t UNION SELECT id, s FROM t",
        "42601",
        "the sides of UNION must have as many columns as each other",
    ),
    (
        "SELECT id FROM t UNION SELECT s FROM t",
        "42804",
        "UNION types INTEGER and TEXT do not go together; a cast may help",
    ),
    (
        "SELECT id FROM t UNION SELECT d FROM t",
        "42804",
        "UNION types INTEGER and DATE do not go together; a cast may help",
    ),
    (
        "SELECT CASE WHEN id = 1 THEN 1 ELSE s END FROM t",
        "42804",
        "CASE types BIGINT and TEXT do not go together; a cast may help",
    ),
    ("SELECT CASE WHEN id = 1 THEN 1 ELSE 'x' END FROM t", "22P02", "invalid input syntax for type BIGINT: \"x\""),
    ("SELECT coalesce(1, s) FROM t", "42804", "coalesce types BIGINT and TEXT do not go together; a cast may help"),
    (
        "SELECT id FROM t WHERE id IN (SELECT d FROM t)",
        "42883",
        "operator does not exist: INTEGER = DATE; a cast may help",
    ),
    ("SELECT (SELECT id FROM t)", "21000", "a subquery that is used as a value answered more than one row"),
    ("SELECT (SELECT id, s FROM t)", "42601", "a subquery that is used as a value must answer one column"),
    ("SELECT * FROM (VALUES (1, 2), (3)) v", "42601", "the rows of VALUES must have as many values as each other"),
    (
        "SELECT id FROM t WHERE row_number() OVER () = 1",
        "42P20",
        "window functions are not allowed there; a subquery may have them",
    ),
    ("SELECT sum(id) OVER w FROM t", "42704", "window \"w\" does not exist"),
    ("SELECT row_number() FROM t", "42809", "window function row_number must have OVER"),
    ("SELECT s COLLATE \"C\" FROM t", "0A000", "not supported: COLLATE"),
    ("SELECT @ id FROM t", "0A000", "not supported: the operator @ before an operand"),
    (
        "SELECT ts - ts FROM t",
        "0A000",
        "not supported: a result of type INTERVAL (column \"?column?\"); a cast to TEXT helps",
    ),
    ("SELECT array_agg(s) FROM t", "0A000", "not supported: a result of type ARRAY (column \"array_agg\")"),
    ("SELECT sqrt(-1)", "2201F", "a negative number has no square root"),
    ("SELECT extract(foo FROM ts) FROM t", "22023", "a date or time has no part \"foo\" here"),
    ("SELECT id INTO v FROM t", "0A000", "not supported: SELECT INTO"),
    ("SELECT $1 + 1", "07001", "the statement has 1 parameter and 0 were given"),
];

/// The codes are PostgreSQL's; the words are ours, and no word of what is inside is among them.
#[tokio::test]
async fn what_is_wrong_is_told_in_words_of_sql() {
    let mut node = typed().await;
    node.run(&["CREATE TABLE u (id INTEGER PRIMARY KEY, x TEXT)"]).await;
    for (sql, sqlstate, message) in WRONG {
        let error = node.ask(sql, &[]).await.expect_err(sql);
        assert_eq!((error.sqlstate(), error.to_string().as_str()), (*sqlstate, *message), "{sql}");
    }
    let twice = "INSERT INTO t (id) VALUES (1)";
    let duplicate = node.write(twice, &[]).await.expect_err("is there already");
    assert_eq!(duplicate.to_string(), "duplicate key in table \"t\": id = 1 (index \"id\")");
    let short = node.write("INSERT INTO t (id, s) VALUES (1)", &[]).await.expect_err("too few");
    assert_eq!(short.to_string(), "syntax error: INSERT names 2 columns and gives 1 value");
}

/// What a statement's columns are said to be, its rows are.
#[tokio::test]
async fn columns_have_the_types_that_rows_have() {
    let node = typed().await;
    for (sql, expected) in [
        ("SELECT id FROM t UNION SELECT b FROM t", DataType::BigInt),
        ("SELECT b FROM t UNION ALL SELECT id FROM t", DataType::BigInt),
        ("SELECT d FROM t UNION SELECT ts FROM t", DataType::Timestamp),
        ("SELECT CASE WHEN id = 1 THEN id ELSE b END FROM t", DataType::BigInt),
        ("SELECT coalesce(NULL, id) FROM t", DataType::Integer),
    ] {
        assert_eq!(types(&node, sql), [expected], "{sql}");
        node.rows(sql).await;
    }
    let prepared = node.engine.prepare(&node.snapshot, "SELECT * FROM (SELECT 1, count(*), max(id) FROM t) x", &[]);
    let names: Vec<String> = prepared.expect("prepares").columns().iter().map(|c| c.name.clone()).collect();
    assert_eq!(names, ["?column?", "count", "max"]);
}
