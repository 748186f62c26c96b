//! `sign`: -1, 0 or 1, a DOUBLE or a DECIMAL as its argument is.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

const DIGIT: ArrowType = ArrowType::Decimal128(1, 0);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sign {
    signature: Signature,
}

/// The function.
pub(super) fn sign() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Sign { signature: Signature::user_defined(Volatility::Immutable) }))
}

impl ScalarUDFImpl for Sign {
    fn name(&self) -> &str {
        "sign"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        match types {
            [ArrowType::Decimal128(..)] => Ok(types.to_vec()),
            [ArrowType::UInt64] => Ok(vec![ArrowType::Decimal128(20, 0)]),
            [other] if other.is_numeric() || other.is_null() => Ok(vec![ArrowType::Float64]),
            _ => plan_err!("Failed to coerce arguments of sign"),
        }
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(if matches!(types, [ArrowType::Decimal128(..)]) { DIGIT } else { ArrowType::Float64 })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [number] = args.args.as_slice() else { return exec_err!("sign takes one number") };
        let array = match number {
            ColumnarValue::Scalar(scalar) => scalar.to_array()?,
            ColumnarValue::Array(array) => array.clone(),
        };
        let signs: ArrayRef = match array.as_primitive_opt::<Decimal128Type>() {
            Some(decimals) => {
                let signs: Decimal128Array = decimals.unary(i128::signum);
                Arc::new(signs.with_data_type(DIGIT))
            }
            None => {
                let of = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
                let signs: Float64Array = array.as_primitive::<Float64Type>().unary(of);
                Arc::new(signs)
            }
        };
        Ok(match number {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&signs, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(signs),
        })
    }
}
