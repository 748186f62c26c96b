//! Typed plans: what a read or a write asks for, once its text is gone. REST and the original API build these directly;
//! SQL text whose shape fits is bound to them. Columns are positions in the table's schema.

use cachesql_types::Value;

/// A read of one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// Name of the table: exact, or else without regard to ASCII case.
    pub table: String,
    /// What each row of the answer holds, in order. Empty means every column, in the table's order.
    pub columns: Vec<Projection>,
    /// Which rows; `None` means all. Only rows for which it is true are answered, not those for which it is NULL.
    pub filter: Option<Filter>,
    /// Order of the answer, most significant first. Rows that are equal in all of it come in no particular order.
    pub order: Vec<OrderBy>,
    /// Most rows to answer.
    pub limit: Option<Amount>,
    /// Rows to leave out at the front.
    pub offset: Option<Amount>,
    /// Answer one row with the number of rows, a BIGINT named `count`, instead of the rows. `limit` and `offset` then
    /// apply to that one row.
    pub count: bool,
}

/// One column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Position in the table.
    pub column: usize,
    /// Name in the answer; `None` is the column's own.
    pub name: Option<String>,
}

impl Projection {
    /// A column under its own name.
    pub fn of(column: usize) -> Projection {
        Projection { column, name: None }
    }
}

/// One key of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBy {
    /// Position in the table.
    pub column: usize,
    /// Largest first.
    pub descending: bool,
    /// Where NULLs go; `None` is PostgreSQL's way: last when ascending, first when descending.
    pub nulls_first: Option<bool>,
}

impl OrderBy {
    /// Whether NULLs come before all else.
    pub fn puts_nulls_first(&self) -> bool {
        self.nulls_first.unwrap_or(self.descending)
    }
}

/// A number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// That many.
    Rows(u64),
    /// What the parameter (counted from 0) says; NULL means no limit, or no offset.
    Parameter(usize),
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A value. It need not have the column's type: numbers compare by value whatever their type. A text beside a column
    /// that is not text is read as the column's type.
    Value(Value),
    /// A parameter, counted from 0.
    Parameter(usize),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A condition on the columns of one row, in three-valued logic.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of them; true when there are none.
    And(Vec<Filter>),
    /// Any of them; false when there are none.
    Or(Vec<Filter>),
    /// Its opposite; NULL stays NULL.
    Not(Box<Filter>),
    /// A column compared with a value.
    Compare {
        /// Position of the column.
        column: usize,
        /// The comparison, with the column on its left.
        op: Comparison,
        /// The right side.
        operand: Operand,
    },
    /// Whether a column is one of several values. NULLs among them have SQL's meaning: not found becomes unknown.
    In {
        /// Position of the column.
        column: usize,
        /// The values.
        operands: Vec<Operand>,
    },
    /// A text column matched with a pattern: `%` is any text, `_` any one character.
    Like {
        /// Position of the column, which is TEXT or JSON.
        column: usize,
        /// The pattern, a text.
        pattern: Operand,
        /// ILIKE: without regard to case.
        case_insensitive: bool,
        /// What takes the meaning off the character behind it; LIKE's own is `\`.
        escape: Option<char>,
    },
    /// Whether a column is NULL.
    IsNull {
        /// Position of the column.
        column: usize,
    },
    /// Whether a BOOLEAN column is that value: `IS TRUE`, `IS FALSE`. Never NULL.
    IsBoolean {
        /// Position of the column.
        column: usize,
        /// The value.
        value: bool,
    },
}

impl Filter {
    /// How many comparisons a row may need: what one of them costs, a row costs so often.
    pub fn comparisons(&self) -> usize {
        match self {
            Filter::And(parts) | Filter::Or(parts) => parts.iter().map(Filter::comparisons).sum(),
            Filter::Not(inner) => inner.comparisons(),
            Filter::In { operands, .. } => operands.len().max(1),
            _ => 1,
        }
    }

    /// `column = value`.
    pub fn equal(column: usize, value: Value) -> Filter {
        Filter::compare(column, Comparison::Equal, value)
    }

    /// A column compared with a value.
    pub fn compare(column: usize, op: Comparison, value: Value) -> Filter {
        Filter::Compare { column, op, operand: Operand::Value(value) }
    }
}

/// A write to one table.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// New rows.
    Insert {
        /// Name of the table.
        table: String,
        /// Positions of the columns that the rows give; the others are NULL. Empty means every column.
        columns: Vec<usize>,
        /// The rows, each as long as `columns`. Values are coerced to the columns' types.
        rows: Vec<Vec<Value>>,
        /// What happens where a row is there already.
        on_conflict: OnConflict,
        /// Answer the rows as they are afterwards.
        returning: bool,
    },
    /// New values in rows that are there.
    Update {
        /// Name of the table.
        table: String,
        /// Positions of columns, and their new values.
        set: Vec<(usize, Value)>,
        /// Which rows; `None` means all.
        filter: Option<Filter>,
        /// Answer the rows as they are afterwards.
        returning: bool,
    },
    /// Rows taken away.
    Delete {
        /// Name of the table.
        table: String,
        /// Which rows; `None` means all.
        filter: Option<Filter>,
        /// Answer the rows as they were.
        returning: bool,
    },
    /// All rows taken away.
    Truncate {
        /// Name of the table.
        table: String,
    },
}

/// What an insert does where a row is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// It is refused as a whole.
    Refuse,
    /// The row that is there stays, the new one is left out.
    DoNothing {
        /// The columns of the primary key or of a unique index; empty means any of those that the table has.
        columns: Vec<usize>,
    },
    /// The columns that the new row gives replace those of the row that is there; its other columns stay.
    Replace {
        /// The columns of the primary key or of a unique index; empty means the primary key.
        columns: Vec<usize>,
    },
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub fn flipped(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::NotEqual => self,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        }
    }

    /// As SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// Whether it holds between two values that compare so.
    pub fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// A read of several tables, each row of one joined with rows of the others by equality of columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JoinSelect {
    /// The tables, as FROM names them.
    pub(crate) tables: Vec<JoinTable>,
    /// What must be equal between them.
    pub(crate) equalities: Vec<JoinEquality>,
    /// What each row of the answer holds: position of the table, and the column in it.
    pub(crate) columns: Vec<(usize, Projection)>,
    /// Order of the answer.
    pub(crate) order: Vec<(usize, OrderBy)>,
    /// Most rows to answer.
    pub(crate) limit: Option<Amount>,
    /// Rows to leave out at the front.
    pub(crate) offset: Option<Amount>,
    /// Answer the number of rows.
    pub(crate) count: bool,
}

/// One table of a join.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JoinTable {
    /// Its name.
    pub(crate) table: String,
    /// Which of its rows.
    pub(crate) filter: Option<Filter>,
}

/// Two columns that must be equal: position of the table, position of the column in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinEquality {
    /// One of them.
    pub(crate) left: (usize, usize),
    /// The other, of another table.
    pub(crate) right: (usize, usize),
}
