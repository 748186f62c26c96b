//! Functions that stand in for operators where DataFusion's are not SQL's: arithmetic that notices overflow and division
//! by zero, UUIDs as text, sums that do not wrap, texts joined within bounds.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, StringViewBuilder};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType as ArrowType, Float64Type};
use arrow::error::ArrowError;
use cachesql_types::{DataType, Value, ValueError};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::bounded::{charge, text_bytes};
use crate::error::SqlError;

/// Arithmetic on numbers of one type that fails where its result does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// A quotient without what is behind its point: `div`.
    WholeDivide,
}

/// Whether a function of that name stands in for an operator.
pub(super) fn is_operation(name: &str) -> bool {
    use Arithmetic::{Add, Divide, Multiply, Subtract, WholeDivide};
    [Add, Subtract, Multiply, Divide, WholeDivide].iter().any(|operation| operation.name() == name)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Arithmetic,
    signature: Signature,
}

impl Arithmetic {
    /// The operation on two expressions, which have one type by then.
    pub(crate) fn of(self, left: Expr, right: Expr) -> Expr {
        let signature = Signature::new(TypeSignature::Any(2), Volatility::Immutable);
        let function = ScalarUDF::new_from_impl(Checked { operation: self, signature });
        function.call(vec![left, right])
    }

    /// Its name, where a column is called by what makes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Arithmetic::Add => "add",
            Arithmetic::Subtract => "subtract",
            Arithmetic::Multiply => "multiply",
            Arithmetic::Divide => "divide",
            Arithmetic::WholeDivide => "div",
        }
    }

    /// As SQL writes it.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::WholeDivide => "div",
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            [left, right] if left == right => Ok(left.clone()),
            _ => plan_err!("arithmetic on {types:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return exec_err!("arithmetic takes two operands") };
        if self.operation == Arithmetic::Divide && divides_by_zero(left, right)? {
            return Err(DataFusionError::External(Box::new(SqlError::DivisionByZero)));
        }
        let apply = match self.operation {
            Arithmetic::Add => numeric::add,
            Arithmetic::Subtract => numeric::sub,
            Arithmetic::Multiply => numeric::mul,
            Arithmetic::Divide => numeric::div,
            Arithmetic::WholeDivide => return exec_err!("div is an operation on decimals"),
        };
        let out_of_range = |error: DataFusionError| match &error {
            DataFusionError::ArrowError(inner, _) if matches!(**inner, ArrowError::ArithmeticOverflow(_)) => {
                DataFusionError::External(Box::new(SqlError::result_out_of_range(self.operation.symbol())))
            }
            _ => error,
        };
        datafusion::physical_expr_common::datum::apply(left, right, apply).map_err(out_of_range)
    }
}

/// Floats divide by zero without complaint in IEEE 754; SQL does not. NULL divided by zero is NULL.
fn divides_by_zero(left: &ColumnarValue, right: &ColumnarValue) -> Result<bool> {
    let right = match right {
        ColumnarValue::Scalar(scalar) => scalar.to_array()?,
        ColumnarValue::Array(array) => array.clone(),
    };
    let Some(divisors) = right.as_primitive_opt::<Float64Type>() else { return Ok(false) };
    let zero = |at: usize| divisors.is_valid(at) && divisors.value(at) == 0.0;
    match left {
        ColumnarValue::Scalar(scalar) => Ok(!scalar.is_null() && (0..divisors.len()).any(zero)),
        ColumnarValue::Array(array) if divisors.len() == 1 => Ok(zero(0) && array.null_count() < array.len()),
        ColumnarValue::Array(array) => Ok((0..divisors.len()).any(|at| zero(at) && array.is_valid(at))),
    }
}

/// An argument of an aggregate, under a name that says the casts in it: `max(a)` and `max(a::text)` are two columns, which
/// DataFusion names alike. What a sum adds up is BIGINT as a decimal, so that no sum wraps; all else stays as it is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Argument {
    widens: bool,
    signature: Signature,
}

/// An argument of `sum`.
pub(crate) fn widened(argument: Expr) -> Expr {
    Argument::of(argument, true)
}

/// An argument of any other aggregate.
pub(crate) fn as_written(argument: Expr) -> Expr {
    Argument::of(argument, false)
}

impl Argument {
    fn of(argument: Expr, widens: bool) -> Expr {
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
        ScalarUDF::new_from_impl(Argument { widens, signature }).call(vec![argument])
    }
}

impl ScalarUDFImpl for Argument {
    fn name(&self) -> &str {
        if self.widens { "widened" } else { "as_written" }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(Expr::to_string).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            // 19 digits hold every BIGINT; the sum has ten more.
            [ArrowType::Int64] if self.widens => Ok(ArrowType::Decimal128(19, 0)),
            [other] => Ok(other.clone()),
            _ => plan_err!("an aggregate's argument is one"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(argument) = args.args.first() else { return exec_err!("an aggregate's argument is one") };
        match argument.data_type() {
            ArrowType::Int64 if self.widens => argument.cast_to(args.return_type(), None),
            _ => Ok(argument.clone()),
        }
    }
}

/// UUIDs to text and back, which Arrow's casts do not know.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UuidCast {
    to_text: bool,
    signature: Signature,
}

/// A UUID as text.
pub(crate) fn uuid_to_text(uuid: Expr) -> Expr {
    uuid_cast(true).call(vec![uuid])
}

/// A text as a UUID.
pub(crate) fn text_to_uuid(text: Expr) -> Expr {
    uuid_cast(false).call(vec![text])
}

fn uuid_cast(to_text: bool) -> ScalarUDF {
    let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
    ScalarUDF::new_from_impl(UuidCast { to_text, signature })
}

impl ScalarUDFImpl for UuidCast {
    fn name(&self) -> &str {
        if self.to_text { "text" } else { "uuid" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(if self.to_text { ArrowType::Utf8View } else { ArrowType::FixedSizeBinary(16) })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(argument) = args.args.first() else { return exec_err!("a cast takes one operand") };
        let array = argument.to_array(args.number_rows)?;
        let cast: ArrayRef = if self.to_text { texts(&array)? } else { uuids(&array)? };
        Ok(ColumnarValue::Array(cast))
    }
}

fn texts(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(uuids) = array.as_fixed_size_binary_opt() else { return exec_err!("not a UUID") };
    let mut out = StringViewBuilder::with_capacity(uuids.len());
    let mut text = Vec::with_capacity(36);
    for uuid in uuids {
        let bytes: Option<[u8; 16]> = uuid.and_then(|b| b.try_into().ok());
        text.clear();
        if let Some(bytes) = bytes {
            cachesql_types::write_uuid(&mut text, &bytes);
        }
        out.append_option(bytes.and_then(|_| std::str::from_utf8(&text).ok()));
    }
    Ok(Arc::new(out.finish()))
}

fn uuids(array: &ArrayRef) -> Result<ArrayRef> {
    let texts = arrow::compute::cast(array, &ArrowType::Utf8View)?;
    let mut out = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
    for text in texts.as_string_view() {
        let external =
            |source: ValueError| DataFusionError::External(Box::new(SqlError::Value { column: None, source }));
        match text.map(|t| Value::parse(t, DataType::Uuid)).transpose().map_err(external)? {
            Some(Value::Uuid(bytes)) => out.append_value(bytes)?,
            _ => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// `a || b` of two texts: NULL when either is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    signature: Signature,
}

/// One text behind the other.
pub(crate) fn joined(left: Expr, right: Expr) -> Expr {
    let signature = Signature::new(TypeSignature::Any(2), Volatility::Immutable);
    ScalarUDF::new_from_impl(Joined { signature }).call(vec![left, right])
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "||"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return exec_err!("|| takes two operands") };
        let constant = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        charge("||", text_bytes(left, rows)?.saturating_add(text_bytes(right, rows)?))?;
        let texts = |value: &ColumnarValue| arrow::compute::cast(&*value.to_array(rows)?, &ArrowType::Utf8View);
        let (left, right) = (texts(left)?, texts(right)?);
        let mut out = StringViewBuilder::with_capacity(rows);
        let mut text = String::new();
        for pair in left.as_string_view().iter().zip(right.as_string_view()) {
            let (Some(left), Some(right)) = pair else {
                out.append_null();
                continue;
            };
            text.clear();
            text.push_str(left);
            text.push_str(right);
            out.append_value(&text);
        }
        let joined: ArrayRef = Arc::new(out.finish());
        if constant {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?))
        } else {
            Ok(ColumnarValue::Array(joined))
        }
    }
}
