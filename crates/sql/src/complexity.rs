//! How deep an SQL text nests, told from its tokens alone, before anything recursive looks at it.
//!
//! Parsers, planners and destructors walk a statement recursively. What makes them descend is counted here: brackets,
//! CASE, and chains of operators, joins and set operations, which become trees as deep as they are long.

use cachesql_types::limits;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::error::SqlError;

/// What one open bracket, or CASE, has inside it so far.
#[derive(Default)]
struct Level {
    /// Operators since the last comma or clause: the height of the expression's tree.
    operators: usize,
    /// Joins, set operations and the like: they chain over clauses.
    clauses: usize,
    is_case: bool,
}

impl Level {
    fn depth(&self) -> usize {
        1 + self.operators + self.clauses
    }
}

/// Refuses a text of too many tokens, or one that nests deeper than `limits::MAX_SQL_DEPTH`.
pub(crate) fn check_complexity(tokens: &[Token]) -> Result<(), SqlError> {
    if tokens.len() > limits::MAX_SQL_TOKENS {
        return Err(SqlError::TooComplex { what: "the number of its tokens", most: limits::MAX_SQL_TOKENS });
    }
    let mut outer_depth = 0;
    let mut outer = Vec::new();
    let mut level = Level::default();
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                // `[1][1]` and `int[][]` chain without nesting.
                level.operators += usize::from(*token == Token::LBracket);
                outer_depth += level.depth();
                outer.push(std::mem::take(&mut level));
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if let Some(enclosing) = outer.pop() {
                    level = enclosing;
                    outer_depth -= level.depth();
                }
            }
            Token::Comma | Token::SemiColon => level.operators = 0,
            Token::Word(word) if word.quote_style.is_none() => match role(word.keyword) {
                Role::Case => {
                    outer_depth += level.depth();
                    outer.push(std::mem::replace(&mut level, Level { is_case: true, ..Level::default() }));
                }
                Role::End if level.is_case => {
                    if let Some(enclosing) = outer.pop() {
                        level = enclosing;
                        outer_depth -= level.depth();
                    }
                }
                Role::Operator => level.operators += 1,
                Role::Chain => {
                    level.clauses += 1;
                    level.operators = 0;
                }
                Role::Boundary => level.operators = 0,
                Role::End | Role::None => {}
            },
            Token::Word(_) | Token::Number(..) | Token::Whitespace(_) | Token::Period | Token::EOF => {}
            Token::SingleQuotedString(_) | Token::Placeholder(_) => {}
            _ => level.operators += 1,
        }
        if outer_depth + level.depth() > limits::MAX_SQL_DEPTH {
            return Err(SqlError::TooComplex { what: "the depth of its nesting", most: limits::MAX_SQL_DEPTH });
        }
    }
    Ok(())
}

enum Role {
    Operator,
    Chain,
    Boundary,
    Case,
    End,
    None,
}

fn role(keyword: Keyword) -> Role {
    match keyword {
        Keyword::CASE => Role::Case,
        Keyword::END => Role::End,
        Keyword::JOIN | Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS | Keyword::EXPLAIN => {
            Role::Chain
        }
        Keyword::DESCRIBE | Keyword::DESC | Keyword::ANALYZE | Keyword::PREPARE | Keyword::TABLE => Role::Chain,
        Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::ORDER => {
            Role::Boundary
        }
        Keyword::LIMIT | Keyword::OFFSET | Keyword::ON | Keyword::SET | Keyword::VALUES | Keyword::RETURNING => {
            Role::Boundary
        }
        Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::WINDOW | Keyword::QUALIFY => Role::Boundary,
        Keyword::AND | Keyword::OR | Keyword::NOT | Keyword::XOR | Keyword::IS | Keyword::IN | Keyword::LIKE => {
            Role::Operator
        }
        Keyword::ILIKE | Keyword::BETWEEN | Keyword::SIMILAR | Keyword::RLIKE | Keyword::REGEXP | Keyword::COLLATE => {
            Role::Operator
        }
        Keyword::AT | Keyword::INTERVAL | Keyword::PRIOR | Keyword::DIV | Keyword::OVERLAPS => Role::Operator,
        Keyword::NOTNULL | Keyword::ARRAY | Keyword::MEMBER | Keyword::OPERATOR | Keyword::BINARY => Role::Operator,
        _ => Role::None,
    }
}
