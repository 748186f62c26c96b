//! What the shell offers on Tab: keywords, tables, columns and its own commands.

use serde_json::Value;

use super::command::COMMANDS;

const KEYWORDS: &str = "ALL ALTER AND AS ASC AVG BETWEEN BY CASE CAST COALESCE CONFLICT COUNT CREATE CROSS DEFAULT DELETE DESC \
    DISTINCT DO DROP ELSE END EXCEPT EXISTS EXPLAIN FALSE FETCH FIRST FROM FULL GROUP HAVING ILIKE IN INDEX INNER INSERT \
    INTERSECT INTO IS JOIN KEY LAST LEFT LIKE LIMIT MAX MIN NOT NOTHING NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION \
    PRIMARY RETURNING RIGHT SELECT SET SUM TABLE THEN TRUE TRUNCATE UNION UNIQUE UPDATE USING VALUES WHEN WHERE WITH";

/// What the shell knows of the node's tables.
#[derive(Debug, Default)]
pub(super) struct Words {
    names: Vec<String>,
}

impl Words {
    /// Learns tables and columns from the node's list.
    pub(super) fn learn(&mut self, tables: &[Value]) {
        let name = |v: &Value| v.get("name").and_then(Value::as_str).map(str::to_owned);
        let columns = tables.iter().filter_map(|t| t.get("columns")?.as_array()).flatten();
        self.names = tables.iter().chain(columns).filter_map(name).collect();
        self.names.sort();
        self.names.dedup();
    }

    /// Where the word at the end of what stands before the cursor begins, in bytes, and what it may become.
    pub(super) fn candidates(&self, before: &str) -> (usize, Vec<String>) {
        if before.starts_with('\\') && !before.contains(' ') {
            let commands = COMMANDS.iter().map(|(c, _)| (*c).to_owned());
            return (0, commands.filter(|c| c.starts_with(before)).collect());
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let start = before.char_indices().rev().find(|(_, c)| !is_part(*c)).map_or(0, |(at, c)| at + c.len_utf8());
        let word = before.get(start..).unwrap_or_default();
        if word.is_empty() {
            return (start, Vec::new());
        }
        let lower = word.to_lowercase();
        let begins = |candidate: &str| candidate.to_lowercase().starts_with(&lower);
        let names = self.names.iter().filter(|n| begins(n)).cloned();
        // A keyword is written as the word before the cursor was begun.
        let is_lower = word.chars().all(|c| !c.is_uppercase());
        let cased = |k: &str| if is_lower { k.to_lowercase() } else { k.to_owned() };
        let keywords = KEYWORDS.split_whitespace().filter(|k| begins(k)).map(cased);
        (start, names.chain(keywords).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_completed() {
        let mut words = Words::default();
        words.learn(&[json!({"name": "KCA2", "columns": [{"name": "AAC001"}, {"name": "AAC002"}, {"name": "姓名"}]})]);
        let complete = |line: &str| words.candidates(line);
        assert_eq!(complete("sel"), (0, vec!["select".to_owned()]));
        assert_eq!(complete("SELECT * FROM k"), (14, vec!["KCA2".to_owned(), "key".to_owned()]));
        assert_eq!(complete("SELECT aac"), (7, vec!["AAC001".to_owned(), "AAC002".to_owned()]));
        assert_eq!(complete("SELECT 汉，姓"), ("SELECT 汉，".len(), vec!["姓名".to_owned()]));
        assert_eq!(complete("\\d"), (0, vec!["\\dt".to_owned(), "\\d".to_owned()]));
        assert_eq!(complete("SELECT "), (7, vec![]));
    }
}
