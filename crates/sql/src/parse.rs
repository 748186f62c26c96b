//! Text → syntax tree. Limits come first; parameters of both spellings become `$1`, `$2`, ….

use cachesql_types::{DataType, Decimal, limits};
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer, Word};

use crate::complexity::check_complexity;
use crate::error::SqlError;

/// Stack that parsing and planning get. With nesting limited to `limits::MAX_SQL_DEPTH` it suffices in debug builds too.
const STACK_BYTES: usize = 32 << 20;

/// Runs what recurses over a statement on a stack that is large enough for the deepest one allowed.
pub(crate) fn on_deep_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_BYTES / 2, STACK_BYTES, run)
}

/// One statement, read.
pub(crate) struct Parsed {
    /// Its syntax tree; parameters are placeholders `$1` ….
    pub(crate) statement: Statement,
    /// How many parameters it has: the largest number among them.
    pub(crate) parameters: usize,
    /// It said UPSERT where the tree says INSERT.
    pub(crate) upsert: bool,
}

/// Reads a text that holds exactly one statement. Call it on a deep stack.
pub(crate) fn parse(sql: &str) -> Result<Parsed, SqlError> {
    if sql.len() > limits::MAX_SQL_BYTES {
        return Err(SqlError::TooComplex { what: "its length in bytes", most: limits::MAX_SQL_BYTES });
    }
    let dialect = PostgreSqlDialect {};
    let mut tokens = Tokenizer::new(&dialect, sql).tokenize().map_err(|e| SqlError::Syntax(e.to_string()))?;
    split_signs(&mut tokens);
    check_complexity(&tokens)?;
    check_numbers(&tokens)?;
    let parameters = number_parameters(&mut tokens)?;
    let upsert = take_upsert(&mut tokens);
    let parser = Parser::new(&dialect).with_recursion_limit(limits::MAX_SQL_DEPTH * 8);
    let mut statements = parser.with_tokens(tokens).parse_statements().map_err(of_parser)?;
    let count = statements.len();
    match (statements.pop(), count) {
        (Some(statement), 1) => Ok(Parsed { statement, parameters, upsert }),
        (None, _) => Err(SqlError::Syntax("the statement is empty".into())),
        _ => Err(SqlError::Stacked { statements: count }),
    }
}

/// An operator of several characters does not end in a sign, unless it has one of some characters in it (PostgreSQL, 4.1.3,
/// Operators): `id>-5` is `id > -5`. The tokenizer takes the sign for a part of it.
fn split_signs(tokens: &mut Vec<Token>) {
    let is_split = |token: &Token| matches!(token, Token::CustomBinaryOperator(text) if ends_in_sign(text));
    if !tokens.iter().any(is_split) {
        return;
    }
    let mut split = Vec::with_capacity(tokens.len() + 4);
    for token in tokens.drain(..) {
        let Token::CustomBinaryOperator(text) = &token else {
            split.push(token);
            continue;
        };
        let bare = if ends_in_sign(text) { text.trim_end_matches(['+', '-']) } else { text };
        split.push(match bare {
            "<" => Token::Lt,
            ">" => Token::Gt,
            "=" => Token::Eq,
            "<=" => Token::LtEq,
            ">=" => Token::GtEq,
            "<>" => Token::Neq,
            "*" => Token::Mul,
            "/" => Token::Div,
            "->" => Token::Arrow,
            "->>" => Token::LongArrow,
            other => Token::CustomBinaryOperator(other.to_owned()),
        });
        let signs = text.get(bare.len()..).unwrap_or_default();
        split.extend(signs.chars().map(|sign| if sign == '-' { Token::Minus } else { Token::Plus }));
    }
    *tokens = split;
}

fn ends_in_sign(operator: &str) -> bool {
    operator.len() > 1
        && operator.ends_with(['+', '-'])
        && !operator.contains(['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'])
}

/// Every number is held exactly, or is a double that its exponent makes too large or too small for a decimal. One of more
/// digits than a decimal holds would be rounded.
fn check_numbers(tokens: &[Token]) -> Result<(), SqlError> {
    let too_long = |text: &str| {
        let digits = text.split(['e', 'E']).next().unwrap_or(text);
        Decimal::parse(digits).is_none()
    };
    let numbers = tokens.iter().filter_map(|token| match token {
        Token::Number(text, _) => Some(text),
        _ => None,
    });
    for text in numbers {
        // Most are short; that is told at a glance.
        if text.len() > 18 && too_long(text) {
            let most = DataType::MAX_PRECISION;
            let start: String = text.chars().take(20).collect();
            return Err(SqlError::OutOfRange(format!(
                "the number {start}… has more than the {most} digits of a DECIMAL"
            )));
        }
    }
    Ok(())
}

fn of_parser(error: ParserError) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            SqlError::TooComplex { what: "the depth of its nesting", most: limits::MAX_SQL_DEPTH }
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => SqlError::Syntax(message),
    }
}

/// Turns each `?` into `$n`, and gives the number of parameters.
fn number_parameters(tokens: &mut Vec<Token>) -> Result<usize, SqlError> {
    let mut marks = 0_usize;
    let mut largest = 0_usize;
    let mut behind = Vec::new();
    for (at, token) in tokens.iter_mut().enumerate() {
        match token {
            Token::Placeholder(name) => {
                largest = largest.max(parameter_number(name)?);
                continue;
            }
            Token::Question => {}
            // `?-1` and `?||'x'` read as operators, on types that there are none of here.
            Token::QuestionMarkDash => behind.push((at + 1, Token::Minus)),
            Token::QuestionMarkDoubleVerticalBar => behind.push((at + 1, Token::StringConcat)),
            _ => continue,
        }
        marks += 1;
        *token = Token::Placeholder(format!("${marks}"));
    }
    for (at, token) in behind.into_iter().rev() {
        tokens.insert(at, token);
    }
    if marks > 0 && largest > 0 {
        return Err(SqlError::Parameters("parameters are written either ? or $1, not both in one statement".into()));
    }
    let parameters = marks.max(largest);
    if parameters > limits::MAX_PARAMETERS {
        return Err(SqlError::Parameters(format!("a statement has at most {} parameters", limits::MAX_PARAMETERS)));
    }
    Ok(parameters)
}

fn parameter_number(name: &str) -> Result<usize, SqlError> {
    let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
    match number {
        Some(number) if (1..=limits::MAX_PARAMETERS).contains(&number) => Ok(number),
        _ => Err(SqlError::Parameters(format!("there is no parameter {name}; parameters are $1, $2, … or ?"))),
    }
}

/// The position, from 0, that a placeholder of the tree stands for.
pub(crate) fn parameter_position(name: &str) -> Result<usize, SqlError> {
    parameter_number(name).map(|number| number - 1)
}

/// UPSERT INTO is no word of the grammar: it is read as INSERT, and remembered.
fn take_upsert(tokens: &mut [Token]) -> bool {
    let first = tokens.iter_mut().find(|t| !matches!(t, Token::Whitespace(_)));
    match first {
        Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("upsert") => {
            *word = Word { value: "INSERT".into(), quote_style: None, keyword: Keyword::INSERT };
            true
        }
        _ => false,
    }
}
