//! What type each parameter of a statement has.

use cachesql_types::{DataType, Value};

use crate::error::SqlError;

/// Types of a statement's parameters, as they are found out. A type that the caller gave stands; TEXT is as good as none,
/// as drivers send it for "let the server say".
#[derive(Clone, Debug)]
pub(crate) struct ParameterTypes {
    types: Vec<Option<DataType>>,
    given: Vec<bool>,
}

impl ParameterTypes {
    /// `count` parameters, with the types that the caller gave for the first of them.
    pub(crate) fn new(count: usize, given: &[Option<DataType>]) -> Result<ParameterTypes, SqlError> {
        if given.len() > count {
            return Err(SqlError::ParameterCount { expected: count, given: given.len() });
        }
        let mut types: Vec<_> = given.iter().map(|t| t.filter(|t| *t != DataType::Text)).collect();
        types.resize(count, None);
        let given = types.iter().map(Option::is_some).collect();
        Ok(ParameterTypes { types, given })
    }

    /// The types known so far.
    pub(crate) fn known(&self) -> &[Option<DataType>] {
        &self.types
    }

    /// A parameter stands where a value of that type is wanted. The first such place types it.
    pub(crate) fn expect(&mut self, position: usize, wanted: DataType) -> Result<DataType, SqlError> {
        let Some(slot) = self.types.get_mut(position) else {
            return Err(SqlError::Parameters(format!("there is no parameter ${}", position + 1)));
        };
        Ok(*slot.get_or_insert(wanted))
    }

    /// Whether the caller gave the parameter's type.
    pub(crate) fn is_given(&self, position: usize) -> bool {
        self.given.get(position).copied().unwrap_or(false)
    }

    /// The final types; what nothing types is TEXT, as in PostgreSQL.
    pub(crate) fn finish(&self) -> Vec<DataType> {
        self.types.iter().map(|t| t.unwrap_or(DataType::Text)).collect()
    }
}

/// Whether values of the two types compare without a cast.
pub(crate) fn comparable(column: DataType, value: DataType) -> bool {
    use DataType::{Date, Json, Text, Timestamp, TimestampTz};
    column == value
        || (column.is_numeric() && value.is_numeric())
        || matches!((column, value), (Text | Json, Text | Json))
        || matches!((column, value), (Timestamp | TimestampTz, Date | Timestamp | TimestampTz))
}

/// Brings the values given for a statement's parameters to their types. Texts are read as any type; for a TEXT parameter
/// any value becomes its text.
pub(crate) fn coerce_parameters(types: &[DataType], values: &[Value]) -> Result<Option<Vec<Value>>, SqlError> {
    if types.len() != values.len() {
        return Err(SqlError::ParameterCount { expected: types.len(), given: values.len() });
    }
    let fits = |(data_type, value): (&DataType, &Value)| {
        matches!(
            (data_type, value),
            (_, Value::Null)
                | (DataType::SmallInt, Value::SmallInt(_))
                | (DataType::Integer, Value::Integer(_))
                | (DataType::BigInt, Value::BigInt(_))
                | (DataType::Text, Value::Text(_))
        )
    };
    // The usual case, of the hottest statements: nothing to do, nothing allocated.
    if types.iter().zip(values).all(fits) {
        return Ok(None);
    }
    let coerce = |(position, (data_type, value)): (usize, (&DataType, &Value))| match (data_type, value) {
        (_, Value::Null) => Ok(Value::Null),
        (DataType::Text, Value::Text(_)) => Ok(value.clone()),
        (DataType::Text, _) => Ok(Value::text(value.to_text())),
        _ => value
            .coerce(*data_type)
            .map_err(|source| SqlError::Value { column: Some(format!("${}", position + 1)), source }),
    };
    types.iter().zip(values).enumerate().map(coerce).collect::<Result<Vec<_>, _>>().map(Some)
}
