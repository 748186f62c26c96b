//! Which tables a statement names, and whether it writes: past comments, texts, quoted names, subqueries, common table
//! expressions, and functions whose arguments have a FROM. It does not judge the statement; a node does.

use std::collections::HashSet;

use crate::sql_tokens::{Token, tokens};

/// What a statement is about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StatementTables {
    /// In the order in which they are first named; as they are written, without a schema.
    pub(crate) tables: Vec<String>,
    /// True unless it is surely a read: what is not known is taken for a write, and so is not sent twice without an id.
    pub(crate) writes: bool,
    /// True for CREATE, which names a table that is not there yet.
    pub(crate) creates: bool,
}

impl StatementTables {
    /// Reads a statement.
    pub(crate) fn of(sql: &str) -> StatementTables {
        let mut reader = Reader { levels: vec![Level::default()], ..Reader::default() };
        let tokens = tokens(sql);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                Token::Mark('(') => reader.open(),
                Token::Mark(')') => reader.close(),
                Token::Mark(mark) => reader.mark(*mark),
                Token::Constant => reader.last.clear(),
                Token::Name { name, quoted } => at += reader.name(name, *quoted, tokens.get(at..).unwrap_or_default()),
            }
        }
        let reads = matches!(reader.verb.as_str(), "SELECT" | "VALUES" | "EXPLAIN" | "SHOW");
        StatementTables { writes: reader.changes || !reads, creates: reader.verb == "CREATE", tables: reader.tables }
    }
}

/// Words that end the tables after FROM, or stand where the next one would.
const END_OF_TABLES: [&str; 18] = [
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "WINDOW",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "FOR",
    "QUALIFY",
    "SELECT",
    "VALUES",
    "SET",
    "RETURNING",
    "WITH",
];

/// Words that begin a change.
const CHANGES: [&str; 4] = ["INSERT", "UPSERT", "UPDATE", "DELETE"];

/// Words that may stand between the one that announces a table and its name.
const BEFORE_NAME: [&str; 6] = ["ONLY", "LATERAL", "TABLE", "IF", "NOT", "EXISTS"];

/// Schemas that every node has, whatever its group.
const CATALOGS: [&str; 2] = ["information_schema", "pg_catalog"];

/// What the next name is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Expects {
    #[default]
    Nothing,
    /// A table to read, unless parentheses follow, which make it a function.
    Source,
    /// A table to write, whose columns may follow in parentheses.
    Target,
}

/// What is between two parentheses.
#[derive(Default)]
struct Level {
    begun: bool,
    /// A word was seen after which FROM begins tables, and is no function's word.
    query: bool,
    in_from: bool,
    expects: Expects,
    in_with: bool,
    /// Names of common table expressions, in lower case.
    expressions: HashSet<String>,
    /// The expression that ends with this level; visible after it.
    defines: Option<String>,
}

#[derive(Default)]
struct Reader {
    levels: Vec<Level>,
    /// The name that stands before `AS (` in a WITH.
    defined: Option<String>,
    recursive: bool,
    /// The token before: a word in upper case, a mark, or nothing.
    last: String,
    /// The statement's first word, or the first one behind its WITH.
    verb: String,
    changes: bool,
    tables: Vec<String>,
}

impl Reader {
    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let top = self.levels.len() - 1;
        // The list was filled above.
        #[allow(clippy::indexing_slicing)]
        &mut self.levels[top]
    }

    fn open(&mut self) {
        let defined = self.defined.clone().filter(|_| matches!(self.last.as_str(), "AS" | "MATERIALIZED"));
        let recursive = self.recursive;
        let outer = self.level();
        let mut inner = Level::default();
        if outer.expects == Expects::Source {
            // In the place of a table: a subquery, or joins in parentheses.
            (inner.in_from, inner.expects) = (true, Expects::Source);
            outer.expects = Expects::Nothing;
        }
        if outer.in_with
            && let Some(name) = defined
        {
            if recursive {
                outer.expressions.insert(name.clone());
            }
            inner.defines = Some(name);
            self.defined = None;
        }
        self.levels.push(inner);
        "(".clone_into(&mut self.last);
    }

    fn close(&mut self) {
        if self.levels.len() > 1
            && let Some(Level { defines: Some(name), .. }) = self.levels.pop()
        {
            self.level().expressions.insert(name);
        }
        ")".clone_into(&mut self.last);
    }

    fn mark(&mut self, mark: char) {
        let level = self.level();
        if mark == ',' {
            level.expects = if level.in_from { Expects::Source } else { Expects::Nothing };
        }
        self.last = mark.to_string();
    }

    /// Reads a name or word, and says how many of the tokens behind it belong to it.
    fn name(&mut self, name: &str, quoted: bool, behind: &[Token]) -> usize {
        let word = if quoted { String::new() } else { name.to_uppercase() };
        let expects = self.level().expects;
        let passed = BEFORE_NAME.contains(&word.as_str());
        let mut taken = 0;
        if expects != Expects::Nothing && !passed && !END_OF_TABLES.contains(&word.as_str()) {
            self.level().expects = Expects::Nothing;
            taken = self.table(name, expects, behind);
        } else if expects == Expects::Nothing || !passed {
            self.word(&word, name);
        }
        let begins_with = word == "RECURSIVE" && self.last == "WITH";
        self.level().begun = true;
        // The name that follows RECURSIVE is as one that follows WITH.
        self.last = if begins_with { "WITH".to_owned() } else { word };
        taken
    }

    fn word(&mut self, word: &str, name: &str) {
        if self.verb.is_empty() || (self.verb == "WITH" && self.levels.len() == 1 && is_verb(word)) {
            word.clone_into(&mut self.verb);
        }
        let (last, creates) = (self.last.clone(), matches!(self.verb.as_str(), "CREATE" | "DROP" | "ALTER"));
        let begins = !self.level().begun || (self.levels.len() == 1 && self.verb == word);
        if begins && CHANGES.contains(&word) {
            self.changes = true;
        }
        let level = self.level();
        match word {
            "WITH" => {
                (level.in_from, level.expects, level.in_with) = (false, Expects::Nothing, true);
                self.recursive = false;
            }
            "RECURSIVE" if last == "WITH" => self.recursive = true,
            _ if level.in_with && matches!(last.as_str(), "WITH" | ",") => self.defined = Some(name.to_lowercase()),
            "UPDATE" if begins => (level.query, level.in_with, level.expects) = (true, false, Expects::Target),
            "DELETE" if begins => (level.query, level.in_with) = (true, false),
            "INTO" if matches!(last.as_str(), "INSERT" | "UPSERT") => {
                (level.in_with, level.expects) = (false, Expects::Target);
            }
            "TRUNCATE" if begins => level.expects = Expects::Target,
            "TABLE" | "ON" if creates => level.expects = Expects::Target,
            "FROM" if level.query && last != "DISTINCT" => (level.in_from, level.expects) = (true, Expects::Source),
            "JOIN" if level.in_from => level.expects = Expects::Source,
            _ if END_OF_TABLES.contains(&word) => {
                (level.in_from, level.expects) = (false, Expects::Nothing);
                if word == "SELECT" {
                    (level.query, level.in_with) = (true, false);
                }
            }
            _ => {}
        }
    }

    /// A name in the place of a table, perhaps with a schema before it. Says how many tokens behind it belong to it.
    fn table(&mut self, first: &str, expects: Expects, behind: &[Token]) -> usize {
        let (mut name, mut taken, mut in_catalog) = (first, 0, false);
        while let [Token::Mark('.'), Token::Name { name: part, .. }, ..] = behind.get(taken..).unwrap_or_default() {
            in_catalog = CATALOGS.contains(&name.to_lowercase().as_str());
            (name, taken) = (part, taken + 2);
        }
        let is_function = expects == Expects::Source && matches!(behind.get(taken), Some(Token::Mark('(')));
        let folded = name.to_lowercase();
        let is_expression = taken == 0 && self.levels.iter().any(|level| level.expressions.contains(&folded));
        if !is_function && !is_expression && !in_catalog && !self.tables.iter().any(|known| known == name) {
            self.tables.push(name.to_owned());
        }
        taken
    }
}

/// Words that begin what a WITH is for.
fn is_verb(word: &str) -> bool {
    CHANGES.contains(&word) || matches!(word, "SELECT" | "VALUES" | "TABLE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(sql: &str) -> Vec<String> {
        StatementTables::of(sql).tables
    }

    #[test]
    fn tables_after_from_and_join_are_found() {
        let cases: &[(&str, &[&str])] = &[
            ("SELECT * FROM KCA2 WHERE a = 'FROM x'", &["KCA2"]),
            ("select a from KCA2, KCA3 k join \"KCA 4\" on k.a = x", &["KCA2", "KCA3", "KCA 4"]),
            ("SELECT * FROM public.T1 LEFT JOIN \"s\".\"T\"\"2\" USING (a, b)", &["T1", "T\"2"]),
            ("SELECT extract(year FROM d), a IS DISTINCT FROM b FROM t", &["t"]),
            ("SELECT (SELECT max(x) FROM u) FROM (SELECT * FROM v, w) q, z", &["u", "v", "w", "z"]),
            ("WITH a AS (SELECT * FROM t), b(x) AS (SELECT * FROM a, u) SELECT * FROM a JOIN b ON true", &["t", "u"]),
            ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r, t) SELECT * FROM r", &["t"]),
            ("SELECT 1 -- FROM x\n /* FROM y /* z */ */ FROM t", &["t"]),
            ("SELECT $$ FROM x $$, $q$ FROM y $q$, E'\\' FROM z', 'it''s FROM w' FROM t WHERE a = $1", &["t"]),
            ("SELECT * FROM generate_series(1, 3) g, t", &["t"]),
            ("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1", &["t", "u"]),
            ("SELECT * FROM (t JOIN u ON t.a = u.a)", &["t", "u"]),
            ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", &["t", "u"]),
            ("SELECT * FROM information_schema.tables, pg_catalog.pg_class", &[]),
            ("SELECT 1", &[]),
            ("SELECT * FROM 汉字 WHERE a = 1", &["汉字"]),
            ("", &[]),
        ];
        for (sql, expected) in cases {
            assert_eq!(tables(sql), *expected, "{sql}");
            assert_eq!(StatementTables::of(sql).writes, sql.is_empty(), "{sql}");
        }
    }

    #[test]
    fn changes_are_writes_and_name_their_table() {
        let cases: &[(&str, &[&str])] = &[
            ("INSERT INTO t (a, b) SELECT a, b FROM u", &["t", "u"]),
            ("insert into public.t values (1)", &["t"]),
            ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 2", &["t"]),
            ("UPSERT INTO t VALUES (1)", &["t"]),
            ("UPDATE t SET a = 1 FROM u WHERE t.b = u.b", &["t", "u"]),
            ("DELETE FROM t WHERE a IN (SELECT a FROM u)", &["t", "u"]),
            ("WITH x AS (SELECT * FROM u) DELETE FROM t WHERE a IN (SELECT a FROM x)", &["u", "t"]),
            ("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x", &["t"]),
            ("TRUNCATE TABLE t", &["t"]),
            ("DROP TABLE IF EXISTS t", &["t"]),
            ("CREATE TABLE IF NOT EXISTS t (a int)", &["t"]),
            ("CREATE UNIQUE INDEX i ON t (a)", &["t"]),
            ("VACUUM", &[]),
        ];
        for (sql, expected) in cases {
            let found = StatementTables::of(sql);
            assert_eq!(found.tables, *expected, "{sql}");
            assert!(found.writes, "{sql}");
            assert_eq!(found.creates, sql.starts_with("CREATE"), "{sql}");
        }
    }

    #[test]
    fn a_lock_or_a_column_is_no_write() {
        for sql in [
            "SELECT * FROM t FOR UPDATE",
            "SELECT \"delete\" FROM t",
            "(SELECT a FROM t) UNION (SELECT a FROM t)",
            "VALUES (1)",
            "EXPLAIN SELECT 1",
        ] {
            assert!(!StatementTables::of(sql).writes, "{sql}");
        }
    }
}
