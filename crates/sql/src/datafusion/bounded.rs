//! Functions that make much of little: those that build arrays are left out, those that build texts are held to a size
//! before they allocate it. A statement's memory is otherwise counted by operators, which never see what a function makes.
//!
//! What all functions make of one batch is counted together, on the thread that evaluates it: [`begin_batch`] is called
//! whenever rows are handed from one operator to the next, and before constants are folded.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{cast, kernels::aggregate::max};
use arrow::datatypes::{DataType as ArrowType, FieldRef, Int64Type};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::error::SqlError;

/// Bytes that one call may make for one batch of rows.
const MOST_BYTES: usize = 64 << 20;
/// Bytes that all calls together may make for one batch of rows.
const MOST_BYTES_TOGETHER: usize = 256 << 20;

/// Functions that make an array as long as a number says, one whose time is the product of its arguments' lengths, and one
/// that speaks of another server.
/// What would answer something else than PostgreSQL: patterns of dates are not PostgreSQL's.
const OTHERWISE: &[&str] = &[
    "to_char",
    "date_format",
    "to_date",
    "to_time",
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_timestamp_nanos",
];
const LEFT_OUT: &[&str] = &["range", "generate_series", "array_repeat", "array_resize", "levenshtein", "version"];
/// What tells of how values are held, or of files that there are none of.
const INSIDES: &[&str] = &[
    "arrow_cast",
    "arrow_field",
    "arrow_metadata",
    "arrow_try_cast",
    "arrow_typeof",
    "cast_to_type",
    "file_row_index",
    "input_file_name",
    "try_cast_to_type",
    "with_metadata",
];

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// What was made before is in some operator's hands now, or gone.
pub(crate) fn begin_batch() {
    MADE.set(0);
}

/// Counts what a function, or an operator, is about to make; an error when that is too much.
pub(crate) fn charge(function: impl fmt::Display, bytes: usize) -> Result<()> {
    let too_much = |message: String| Err(DataFusionError::External(Box::new(SqlError::Memory(message))));
    if bytes > MOST_BYTES {
        return too_much(format!("{function} would make more than {MOST_BYTES} bytes"));
    }
    let together = MADE.get().saturating_add(bytes);
    if together > MOST_BYTES_TOGETHER {
        let what = "functions would make together, of one batch of rows, more than";
        return too_much(format!("{what} {MOST_BYTES_TOGETHER} bytes"));
    }
    MADE.set(together);
    Ok(())
}

/// Rows of one batch, so that a plan's constants, each of which may be repeated for every row, stay within bounds too.
pub(crate) fn batch_rows(plan: &LogicalPlan, usual: usize) -> Result<usize> {
    let mut bytes = 0_usize;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                Ok(match expr {
                    // Lists are looked things up in, and never repeated.
                    Expr::InList(_) => TreeNodeRecursion::Jump,
                    Expr::Literal(scalar, _) => {
                        let text = scalar.try_as_str().flatten().map_or(0, str::len);
                        bytes = bytes.saturating_add(text);
                        TreeNodeRecursion::Continue
                    }
                    _ => TreeNodeRecursion::Continue,
                })
            })
        })
    })?;
    Ok(usual.min(MOST_BYTES / bytes.max(1)).max(1))
}

/// DataFusion's functions without those that are not for strangers' statements, and with the others held in bounds.
pub(crate) fn bounded(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let goes = |name: &str| [LEFT_OUT, OTHERWISE, INSIDES].iter().any(|list| list.contains(&name));
    let kept = functions.into_iter().filter(|f| !goes(f.name()));
    kept.map(|function| match growth(function.name()) {
        Some(growth) => Arc::new(ScalarUDF::new_from_impl(Bounded { inner: function, growth })),
        None => function,
    })
    .collect()
}

/// How the size of a function's answer follows from its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// The first argument, as often as the second says.
    Repeats,
    /// As many characters as the second argument says.
    Pads,
    /// The third argument in place of each character of the first.
    Replaces,
    /// All arguments, one behind the other.
    Joins,
    /// The arguments, each byte of which becomes three at most.
    Rewrites,
}

fn growth(name: &str) -> Option<Growth> {
    match name {
        "repeat" => Some(Growth::Repeats),
        "lpad" | "rpad" => Some(Growth::Pads),
        "replace" | "regexp_replace" => Some(Growth::Replaces),
        "concat" | "concat_ws" | "overlay" | "array_to_string" | "string_to_array" => Some(Growth::Joins),
        "upper" | "lower" | "initcap" | "reverse" | "translate" | "encode" | "decode" => Some(Growth::Rewrites),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
}

impl Bounded {
    /// The most that the answer can take, in bytes.
    fn estimate(&self, args: &ScalarFunctionArgs) -> Result<usize> {
        let rows = args.number_rows;
        let argument = |at: usize| args.args.get(at);
        let text = |at: usize| argument(at).map_or(Ok(0), |value| text_bytes(value, rows));
        let number = |at: usize| argument(at).map_or(Ok(0), largest);
        Ok(match self.growth {
            Growth::Repeats => text(0)?.saturating_mul(number(1)?),
            Growth::Pads => number(1)?.saturating_mul(4).saturating_mul(rows),
            Growth::Replaces => text(0)?.saturating_mul(text(2)? / rows.max(1) + 1),
            Growth::Joins => self.all_texts(args)?,
            Growth::Rewrites => self.all_texts(args)?.saturating_mul(3),
        })
    }

    fn all_texts(&self, args: &ScalarFunctionArgs) -> Result<usize> {
        args.args.iter().try_fold(0, |sum: usize, value| Ok(sum.saturating_add(text_bytes(value, args.number_rows)?)))
    }
}

/// Bytes of all texts of an argument.
pub(crate) fn text_bytes(value: &ColumnarValue, rows: usize) -> Result<usize> {
    let total = |array: &ArrayRef| -> Result<usize> {
        Ok(match array.data_type() {
            // Row by row: a part of an array shares the buffers of the whole.
            ArrowType::Utf8 => array.as_string::<i32>().iter().flatten().map(str::len).sum(),
            ArrowType::Utf8View => array.as_string_view().iter().flatten().map(str::len).sum(),
            ArrowType::Binary => array.as_binary::<i32>().iter().flatten().map(<[u8]>::len).sum(),
            ArrowType::BinaryView => array.as_binary_view().iter().flatten().map(<[u8]>::len).sum(),
            ArrowType::Null => 0,
            ArrowType::Dictionary(..) => {
                let texts = cast(array, &ArrowType::Utf8View)?;
                texts.as_string_view().iter().flatten().map(str::len).sum()
            }
            // Lists, and numbers, whose texts are about as long.
            _ => array.get_array_memory_size(),
        })
    };
    match value {
        ColumnarValue::Array(array) => total(array),
        ColumnarValue::Scalar(scalar) => Ok(total(&scalar.to_array()?)?.saturating_mul(rows)),
    }
}

/// The largest number of an argument.
fn largest(value: &ColumnarValue) -> Result<usize> {
    let array = match value {
        ColumnarValue::Array(array) => array.clone(),
        ColumnarValue::Scalar(scalar) => scalar.to_array()?,
    };
    let numbers = cast(&array, &ArrowType::Int64)?;
    let most = max(numbers.as_primitive::<Int64Type>()).unwrap_or(0);
    Ok(usize::try_from(most.max(0)).unwrap_or(usize::MAX))
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        self.inner.coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        charge(format_args!("{}()", self.name()), self.estimate(&args)?)?;
        self.inner.invoke_with_args(args)
    }
}
