//! Functions that make much of little: those that build arrays are left out, those that build texts are held to a size
//! before they allocate it. A statement's memory is otherwise counted by operators, which never see what a function makes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::{cast, kernels::aggregate::max};
use arrow::datatypes::{DataType as ArrowType, FieldRef, Int64Type};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::error::SqlError;

/// Bytes that one call may make for one batch of rows.
const MOST_BYTES: usize = 64 << 20;

/// Functions that make an array as long as a number says, one whose time is the product of its arguments' lengths, and one
/// that speaks of another server.
const LEFT_OUT: &[&str] = &["range", "generate_series", "array_repeat", "array_resize", "levenshtein", "version"];

/// DataFusion's functions without those that are not for strangers' statements, and with the others held in bounds.
pub(crate) fn bounded(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let kept = functions.into_iter().filter(|f| !LEFT_OUT.contains(&f.name()));
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
}

fn growth(name: &str) -> Option<Growth> {
    match name {
        "repeat" => Some(Growth::Repeats),
        "lpad" | "rpad" => Some(Growth::Pads),
        "replace" => Some(Growth::Replaces),
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
        })
    }
}

/// Bytes of all texts of an argument.
fn text_bytes(value: &ColumnarValue, rows: usize) -> Result<usize> {
    let total = |array: &ArrayRef| -> Result<usize> {
        let texts = cast(array, &ArrowType::Utf8View)?;
        Ok(texts.as_string_view().iter().flatten().map(str::len).sum())
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
        if self.estimate(&args)? > MOST_BYTES {
            let message = format!("{}() would make more than {MOST_BYTES} bytes", self.name());
            return Err(DataFusionError::External(Box::new(SqlError::Memory(message))));
        }
        self.inner.invoke_with_args(args)
    }
}
