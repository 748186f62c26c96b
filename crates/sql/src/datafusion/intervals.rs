//! Intervals: how they compare, what is extracted from them, and how they are written. There are no columns of them; they
//! come of literals, and, as Arrow's durations, of timestamps that are subtracted.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, PrimitiveArray, StringViewArray};
use arrow::datatypes::{
    DataType as ArrowType, DurationMicrosecondType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit,
};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility, cast,
};

const PARTS: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);
const MICROS: ArrowType = ArrowType::Duration(TimeUnit::Microsecond);
const MICROS_A_DAY: i64 = 86_400_000_000;
const NANOS_A_DAY: i128 = 86_400_000_000_000;

pub(super) fn is_interval(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Interval(_) | ArrowType::Duration(_))
}

/// What is made of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    /// Its length in nanoseconds, by which intervals compare. A month has 30 days and a day 24 hours then, as in
    /// PostgreSQL: `1 day` is `24 hours`, which Arrow would tell apart.
    Length,
    /// Its months, days and time. What lies between two timestamps is days, and less than a day.
    Parts,
    /// Its text.
    Text,
}

impl Made {
    fn of(self, interval: Expr) -> Expr {
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
        ScalarUDF::new_from_impl(OfInterval { made: self, signature }).call(vec![interval])
    }
}

/// An interval as text.
pub(super) fn interval_text(interval: Expr) -> Expr {
    Made::Text.of(interval)
}

/// An interval whose fields can be extracted.
pub(super) fn with_parts(interval: Expr) -> Expr {
    Made::Parts.of(interval)
}

/// The sides of a comparison of intervals, as what compares; `None` when they are not both intervals. A quoted literal
/// beside an interval is one.
pub(super) fn comparable_intervals(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let interval = |side: &Expr| side.get_type(schema).is_ok_and(|own| is_interval(&own));
    if ![left, right].into_iter().any(|side| interval(side) || is_length(side)) {
        return None;
    }
    let length = |side: &Expr| {
        if is_length(side) {
            return Some(side.clone());
        }
        let quoted = matches!(side, Expr::Literal(scalar, _) if scalar.try_as_str().is_some() || scalar.is_null());
        let read = if quoted { cast(side.clone(), PARTS) } else { side.clone() };
        (quoted || interval(side)).then(|| Made::Length.of(read))
    };
    Some((length(left)?, length(right)?))
}

/// Whether `comparable_intervals` made it.
pub(super) fn is_length(expr: &Expr) -> bool {
    let Expr::ScalarFunction(ScalarFunction { func, .. }) = expr else { return false };
    func.inner().downcast_ref::<OfInterval>().is_some_and(|f| f.made == Made::Length)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfInterval {
    made: Made,
    signature: Signature,
}

impl ScalarUDFImpl for OfInterval {
    fn name(&self) -> &str {
        match self.made {
            Made::Length => "length of interval",
            Made::Parts => "interval",
            Made::Text => "text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.made {
            Made::Length => ArrowType::Decimal128(38, 0),
            Made::Parts => PARTS,
            Made::Text => ArrowType::Utf8View,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [interval] = args.args.as_slice() else { return exec_err!("it is made of one interval") };
        let array = match interval {
            ColumnarValue::Scalar(scalar) => scalar.to_array()?,
            ColumnarValue::Array(array) => array.clone(),
        };
        let parts = parts(&array)?;
        let made: ArrayRef = match self.made {
            Made::Length => {
                let lengths: Decimal128Array = parts.iter().map(|v| v.map(length)).collect();
                Arc::new(lengths.with_precision_and_scale(38, 0)?)
            }
            Made::Parts => Arc::new(parts),
            Made::Text => Arc::new(parts.iter().map(|v| v.map(text)).collect::<StringViewArray>()),
        };
        Ok(match interval {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(made),
        })
    }
}

fn parts(intervals: &ArrayRef) -> Result<PrimitiveArray<IntervalMonthDayNanoType>> {
    if !matches!(intervals.data_type(), ArrowType::Duration(_)) {
        return Ok(arrow::compute::cast(intervals, &PARTS)?.as_primitive::<IntervalMonthDayNanoType>().clone());
    }
    let micros = arrow::compute::cast(intervals, &MICROS)?;
    let part = |micros: i64| {
        let days = i32::try_from(micros / MICROS_A_DAY).unwrap_or(if micros < 0 { i32::MIN } else { i32::MAX });
        IntervalMonthDayNano::new(0, days, micros % MICROS_A_DAY * 1_000)
    };
    Ok(micros.as_primitive::<DurationMicrosecondType>().unary(part))
}

fn length(v: IntervalMonthDayNano) -> i128 {
    (i128::from(v.months) * 30 + i128::from(v.days)) * NANOS_A_DAY + i128::from(v.nanoseconds)
}

/// As PostgreSQL writes it by default: `1 year 2 mons -3 days +04:05:06.5`.
fn text(v: IntervalMonthDayNano) -> String {
    let mut text = String::new();
    let mut behind_negative = false;
    for (number, unit) in [(v.months / 12, "year"), (v.months % 12, "mon"), (v.days, "day")] {
        if number == 0 {
            continue;
        }
        let space = if text.is_empty() { "" } else { " " };
        let sign = if behind_negative && number > 0 { "+" } else { "" };
        let plural = if number == 1 { "" } else { "s" };
        text.push_str(&format!("{space}{sign}{number} {unit}{plural}"));
        behind_negative = number < 0;
    }
    let micros = (v.nanoseconds / 1_000).unsigned_abs();
    if micros == 0 && !text.is_empty() {
        return text;
    }
    let space = if text.is_empty() { "" } else { " " };
    let sign = match v.nanoseconds < 0 {
        true => "-",
        false if behind_negative => "+",
        false => "",
    };
    let seconds = micros / 1_000_000;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    text.push_str(&format!("{space}{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60));
    let fraction = format!("{:06}", micros % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}
