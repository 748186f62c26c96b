//! Rust's own values as values of SQL: what a caller writes where a [`Value`] is wanted.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::value::Value;

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Boolean(value)
    }
}

impl From<i16> for Value {
    fn from(value: i16) -> Value {
        Value::SmallInt(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Integer(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::BigInt(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::BigInt(i64::from(value))
    }
}

/// Above what BIGINT holds, a DECIMAL without digits after the point.
impl From<u64> for Value {
    fn from(value: u64) -> Value {
        match i64::try_from(value) {
            Ok(value) => Value::BigInt(value),
            Err(_) => Value::Decimal(Decimal { unscaled: i128::from(value), scale: 0 }),
        }
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Value {
        Value::Real(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Double(value)
    }
}

impl From<Decimal> for Value {
    fn from(value: Decimal) -> Value {
        Value::Decimal(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(Arc::from(value))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(Arc::from(value))
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Value {
        Value::Text(Arc::from(value.as_str()))
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::Bytea(Arc::from(value))
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

/// `None` is NULL.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_becomes_the_type_that_holds_it() {
        assert!(matches!(Value::from(7_i32), Value::Integer(7)));
        assert!(matches!(Value::from(u64::from(u32::MAX)), Value::BigInt(4_294_967_295)));
        assert_eq!(Value::from(u64::MAX).to_text(), "18446744073709551615");
        assert!(matches!(Value::from(None::<i64>), Value::Null));
        assert!(matches!(Value::from(Some("x")), Value::Text(text) if &*text == "x"));
    }
}
