//! What time it is, to a statement: one moment from its beginning to its end.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What a clock shows when a statement begins: the same wherever the statement asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shows {
    /// The moment.
    Now,
    /// The date and time of day, in UTC.
    Local,
    /// The date.
    Date,
    /// The time of day.
    Time,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Clock {
    shows: Shows,
    names: Vec<String>,
    signature: Signature,
}

/// The functions that tell the time.
pub(super) fn clocks() -> Vec<Arc<ScalarUDF>> {
    let clock = |(shows, names): (Shows, &[&str])| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let signature = Signature::nullary(Volatility::Stable);
        Arc::new(ScalarUDF::new_from_impl(Clock { shows, names, signature }))
    };
    let all: [(Shows, &[&str]); 4] = [
        (Shows::Now, &["now", "current_timestamp", "transaction_timestamp", "statement_timestamp"]),
        (Shows::Local, &["localtimestamp"]),
        (Shows::Date, &["current_date"]),
        (Shows::Time, &["localtime", "current_time"]),
    ];
    all.into_iter().map(clock).collect()
}

impl Clock {
    fn data_type(&self) -> ArrowType {
        match self.shows {
            Shows::Now => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Shows::Local => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Shows::Date => ArrowType::Date32,
            Shows::Time => ArrowType::Time64(TimeUnit::Microsecond),
        }
    }
}

impl ScalarUDFImpl for Clock {
    fn name(&self) -> &str {
        self.names.first().map_or("now", String::as_str)
    }

    fn aliases(&self) -> &[String] {
        self.names.get(1..).unwrap_or_default()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.data_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), self.data_type(), false)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("{}() has a value before it is asked for", self.name())
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        // There is none while a statement is only planned.
        let Some(now) = context.query_execution_start_time() else { return Ok(ExprSimplifyResult::Original(args)) };
        let stamp = ScalarValue::TimestampMicrosecond(Some(now.timestamp_micros()), Some("UTC".into()));
        let value = stamp.cast_to(&self.data_type())?;
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }
}
