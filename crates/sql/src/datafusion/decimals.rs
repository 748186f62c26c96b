//! Quotients of decimals with about the digits that PostgreSQL gives them, and products of which no DECIMAL holds all
//! digits. DataFusion's quotients have four digits more than their dividend, and are cut, not rounded; such products fail.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Builder};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, Decimal128Type, i256};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility, cast,
};

use super::functions::Arithmetic;
use crate::error::SqlError;

/// Digits of a quotient behind its point. PostgreSQL chooses them by the values, so that at least 16 count; 20 is what it
/// gives to quotients of numbers of like size.
const QUOTIENT_SCALE: u8 = 20;
/// The fewest, where the digits before the point would leave less.
const LEAST_QUOTIENT_SCALE: u8 = 16;
/// Digits behind the point of a product beyond which it is rounded, when a DECIMAL has no room for all.
const PRODUCT_SCALE: u8 = 24;
/// All numbers have fewer digits than this power of ten.
const BEYOND: u128 = 10_u128.pow(DECIMAL128_MAX_PRECISION as u32);

/// How many digits a decimal has, and how many of them behind the point.
type Digits = (u8, u8);

/// The digits of a type that is exact; `None` for floats and what is no number.
fn digits(data_type: &ArrowType) -> Option<Digits> {
    Some(match data_type {
        ArrowType::Int8 | ArrowType::UInt8 | ArrowType::Int16 => (5, 0),
        ArrowType::UInt16 | ArrowType::Int32 => (10, 0),
        ArrowType::UInt32 | ArrowType::Int64 => (19, 0),
        ArrowType::UInt64 => (20, 0),
        ArrowType::Decimal128(precision, scale) => (*precision, u8::try_from(*scale).ok()?),
        _ => return None,
    })
}

/// The same of an expression: a literal has the digits that it is written with.
fn digits_of(expr: &Expr, data_type: &ArrowType) -> Option<Digits> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => {
            let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
            Some((u8::try_from(digits).ok()?, 0))
        }
        _ => digits(data_type),
    }
}

fn decimal_type((precision, scale): Digits) -> ArrowType {
    ArrowType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX))
}

/// The digits of a result; `None` leaves the operation to DataFusion, which is exact then.
fn result(operation: Arithmetic, (p1, s1): Digits, (p2, s2): Digits) -> Option<Digits> {
    let most = DECIMAL128_MAX_PRECISION;
    // A dividend of that many whole digits, and a divisor of nothing but its last digit behind the point.
    let whole = p1.saturating_sub(s1).saturating_add(s2);
    match operation {
        Arithmetic::Add | Arithmetic::Subtract => None,
        Arithmetic::Multiply => {
            let scale = PRODUCT_SCALE.max(s1).max(s2);
            (p1 + p2 > most && s1 + s2 > scale).then_some((most, scale))
        }
        Arithmetic::Divide => {
            let own = s1.max(s2);
            let least = own.max(LEAST_QUOTIENT_SCALE);
            let scale = most.saturating_sub(whole).clamp(least, own.max(QUOTIENT_SCALE));
            Some((most.min(whole + scale), scale))
        }
        Arithmetic::WholeDivide => Some((whole.clamp(1, most), 0)),
    }
}

/// The operation on two numbers of which at least one is a decimal, or on any two when it is `div`; `None` leaves it to
/// DataFusion.
pub(super) fn decimal_arithmetic(
    operation: Arithmetic,
    (left, left_type): (&Expr, &ArrowType),
    (right, right_type): (&Expr, &ArrowType),
) -> Option<Expr> {
    let decimal = |t: &ArrowType| matches!(t, ArrowType::Decimal128(..) | ArrowType::UInt64);
    if !decimal(left_type) && !decimal(right_type) && operation != Arithmetic::WholeDivide {
        return None;
    }
    let (a, b) = (digits_of(left, left_type)?, digits_of(right, right_type)?);
    let as_decimal = |side: &Expr, own: &ArrowType, digits: Digits| match own {
        ArrowType::Decimal128(..) => side.clone(),
        _ => cast(side.clone(), decimal_type(digits)),
    };
    let (left, right) = (as_decimal(left, left_type, a), as_decimal(right, right_type, b));
    if let Some(result) = result(operation, a, b) {
        let signature = Signature::new(TypeSignature::Any(2), Volatility::Immutable);
        let function = ScalarUDF::new_from_impl(DecimalArithmetic { operation, result, signature });
        return Some(function.call(vec![left, right]));
    }
    // A literal beyond BIGINT is a numeric, where DataFusion reads an integer without sign.
    let op = match operation {
        _ if *left_type != ArrowType::UInt64 && *right_type != ArrowType::UInt64 => return None,
        Arithmetic::Add => Operator::Plus,
        Arithmetic::Subtract => Operator::Minus,
        _ => Operator::Multiply,
    };
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalArithmetic {
    operation: Arithmetic,
    result: Digits,
    signature: Signature,
}

impl ScalarUDFImpl for DecimalArithmetic {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            [ArrowType::Decimal128(..), ArrowType::Decimal128(..)] => Ok(decimal_type(self.result)),
            _ => plan_err!("arithmetic on {types:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return exec_err!("arithmetic takes two operands") };
        let constant = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let (Some((a, s1)), Some((b, s2))) = (decimals(&left), decimals(&right)) else {
            return exec_err!("arithmetic on {} and {}", left.data_type(), right.data_type());
        };
        let (precision, scale) = self.result;
        let mut out = Decimal128Builder::with_capacity(rows).with_data_type(decimal_type((precision, scale)));
        for pair in a.iter().zip(b) {
            let (Some(a), Some(b)) = pair else {
                out.append_null();
                continue;
            };
            let value = match self.operation {
                Arithmetic::Add | Arithmetic::Subtract => return exec_err!("DataFusion adds decimals"),
                Arithmetic::Multiply => product((a, s1), (b, s2), scale),
                Arithmetic::Divide | Arithmetic::WholeDivide if b == 0 => {
                    return Err(DataFusionError::External(Box::new(SqlError::DivisionByZero)));
                }
                Arithmetic::Divide => quotient((a, s1), (b, s2), scale, true),
                Arithmetic::WholeDivide => quotient((a, s1), (b, s2), scale, false),
            };
            let fits = value.filter(|v| v.unsigned_abs() < BEYOND);
            let too_large = || SqlError::result_out_of_range(self.operation.symbol());
            out.append_value(fits.ok_or_else(|| DataFusionError::External(Box::new(too_large())))?);
        }
        let array: ArrayRef = Arc::new(out.finish());
        if constant {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
        } else {
            Ok(ColumnarValue::Array(array))
        }
    }
}

fn decimals(array: &ArrayRef) -> Option<(&arrow::array::Decimal128Array, u8)> {
    let ArrowType::Decimal128(_, scale) = array.data_type() else { return None };
    Some((array.as_primitive_opt::<Decimal128Type>()?, u8::try_from(*scale).ok()?))
}

/// A number, as an integer and its digits behind the point.
type Scaled = (i128, u8);

fn power(exponent: u8) -> Option<i128> {
    10_i128.checked_pow(u32::from(exponent))
}

/// Rounded half away from zero where the scale wants fewer digits than there are.
fn product((a, s1): Scaled, (b, s2): Scaled, scale: u8) -> Option<i128> {
    let cut = (s1 + s2).checked_sub(scale)?;
    let exact = i256::from_i128(a).checked_mul(i256::from_i128(b))?;
    let divisor = i256::from_i128(power(cut)?);
    let (whole, rest) = (exact.checked_div(divisor)?, exact.checked_rem(divisor)?);
    let up = rest.wrapping_abs().checked_mul(i256::from_i128(2))? >= divisor;
    let sign = i256::from_i128(if (a < 0) == (b < 0) { 1 } else { -1 });
    if up { whole.checked_add(sign)?.to_i128() } else { whole.to_i128() }
}

/// Rounded half away from zero, as PostgreSQL rounds, or cut. `b` is not 0.
fn quotient((a, s1): Scaled, (b, s2): Scaled, scale: u8, rounded: bool) -> Option<i128> {
    let divisor = b.unsigned_abs();
    let mut whole = a.unsigned_abs() / divisor;
    let mut rest = a.unsigned_abs() % divisor;
    // Long division, as many digits at once as there is room for.
    let mut digits = (scale + s2).saturating_sub(s1);
    // Digits of the dividend that are behind the last of the quotient's.
    let behind = power(s1.saturating_sub(scale + s2))?.unsigned_abs();
    while digits > 0 {
        let room = (u128::MAX / divisor).checked_ilog10()?;
        let step = u8::try_from(room).unwrap_or(u8::MAX).min(digits);
        if step == 0 {
            let wide = |v: u128| i128::try_from(v).ok().map(i256::from_i128);
            let tenfold = wide(rest)?.checked_mul(i256::from_i128(10))?;
            let digit = tenfold.checked_div(wide(divisor)?)?.to_i128()?;
            rest = tenfold.checked_rem(wide(divisor)?)?.to_i128()?.unsigned_abs();
            whole = whole.checked_mul(10)?.checked_add(digit.unsigned_abs())?;
            digits -= 1;
            continue;
        }
        let factor = power(step)?.unsigned_abs();
        let enlarged = rest.checked_mul(factor)?;
        whole = whole.checked_mul(factor)?.checked_add(enlarged / divisor)?;
        rest = enlarged % divisor;
        digits -= step;
    }
    if behind > 1 {
        whole /= behind;
    } else if rounded && rest >= divisor - rest {
        whole = whole.checked_add(1)?;
    }
    let magnitude = i128::try_from(whole).ok()?;
    Some(if (a < 0) == (b < 0) { magnitude } else { -magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quotient_is_the_nearest(a in -(10_i128.pow(37))..10_i128.pow(37), b in prop_oneof![-1_000_i128..1_000, -(10_i128.pow(37))..10_i128.pow(37)], s1 in 0_u8..10, s2 in 0_u8..10) {
            prop_assume!(b != 0);
            let scale = 16;
            let Some(found) = quotient((a, s1), (b, s2), scale, true) else {
                // As a float it is beyond what 38 digits hold.
                #[allow(clippy::cast_precision_loss)]
                let about = (a as f64 / b as f64).abs() * 10_f64.powi(i32::from(scale + s2) - i32::from(s1));
                prop_assert!(about > 1.6e38, "{}", about);
                return Ok(());
            };
            // |a · 10^shift − found · b| · 2 ≤ |b|
            let wide = i256::from_i128;
            let shift = wide(10_i128.pow(u32::from(scale + s2 - s1)));
            let miss = wide(a).checked_mul(shift).and_then(|n| wide(found).checked_mul(wide(b)).map(|m| n.wrapping_sub(m)));
            let miss = miss.expect("within 256 bits").wrapping_abs();
            prop_assert!(miss.wrapping_mul(wide(2)) <= wide(b).wrapping_abs());
        }
    }

    #[test]
    fn a_whole_quotient_is_cut() {
        assert_eq!(quotient((7, 0), (2, 0), 0, false), Some(3));
        assert_eq!(quotient((-7, 0), (2, 0), 0, false), Some(-3));
        assert_eq!(quotient((750, 2), (2, 0), 0, false), Some(3));
        assert_eq!(quotient((75, 1), (25, 1), 0, false), Some(3));
        assert_eq!(quotient((10_i128.pow(37) - 1, 0), (10_i128.pow(37), 0), 0, false), Some(0));
    }

    #[test]
    fn halves_go_away_from_zero() {
        assert_eq!(quotient((1, 0), (2, 0), 0, true), Some(1));
        assert_eq!(quotient((-1, 0), (2, 0), 0, true), Some(-1));
        assert_eq!(quotient((1, 0), (-3, 0), 0, true), Some(0));
        assert_eq!(product((5, 1), (1, 0), 0), Some(1));
        assert_eq!(product((-5, 1), (1, 0), 0), Some(-1));
        assert_eq!(product((4, 1), (-1, 0), 0), Some(0));
    }
}
