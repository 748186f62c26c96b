//! Arrow arrays from cells, and the layout in which scans present columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BinaryViewBuilder, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryBuilder,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, StringBuilder, StringViewBuilder,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use cachesql_types::{DataType, TableSchema, arrow_field, arrow_type};

use crate::cell::Cell;

/// How texts and bytes are laid out: one after the other, as origins send them and chunks keep them; or as views, as scans
/// present them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Layout {
    Plain,
    Views,
}

/// The schema that scans answer: the table's, with text, JSON and bytes as views.
pub(crate) fn view_schema(schema: &TableSchema) -> SchemaRef {
    let fields: Vec<Field> = schema
        .columns
        .iter()
        .map(|column| {
            let field = arrow_field(column);
            match field.data_type() {
                ArrowType::Utf8 => field.with_data_type(ArrowType::Utf8View),
                ArrowType::Binary => field.with_data_type(ArrowType::BinaryView),
                _ => field,
            }
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// Gathers cells of one type into an array. A cell of another type becomes NULL; there are none in a table.
pub(crate) fn array_of<'a>(
    data_type: DataType,
    layout: Layout,
    cells: impl ExactSizeIterator<Item = Cell<'a>>,
) -> ArrayRef {
    macro_rules! gather {
        ($array:ty, $variant:ident) => {
            <$array>::from_iter(cells.map(|c| if let Cell::$variant(v) = c { Some(v) } else { None }))
        };
    }
    match data_type {
        DataType::Boolean => Arc::new(gather!(BooleanArray, Boolean)),
        DataType::SmallInt => Arc::new(gather!(Int16Array, SmallInt)),
        DataType::Integer => Arc::new(gather!(Int32Array, Integer)),
        DataType::BigInt => Arc::new(gather!(Int64Array, BigInt)),
        DataType::Real => Arc::new(gather!(Float32Array, Real)),
        DataType::Double => Arc::new(gather!(Float64Array, Double)),
        DataType::Date => Arc::new(gather!(Date32Array, Date)),
        DataType::Time => Arc::new(gather!(Time64MicrosecondArray, Time)),
        DataType::Timestamp => Arc::new(gather!(TimestampMicrosecondArray, Timestamp)),
        DataType::TimestampTz => {
            Arc::new(gather!(TimestampMicrosecondArray, TimestampTz).with_data_type(arrow_type(data_type)))
        }
        DataType::Decimal { .. } => {
            let numbers = cells.map(|c| if let Cell::Decimal(d) = c { Some(d.unscaled) } else { None });
            Arc::new(Decimal128Array::from_iter(numbers).with_data_type(arrow_type(data_type)))
        }
        DataType::Uuid => {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(cells.len(), 16);
            for cell in cells {
                match cell {
                    // Sixteen bytes always fit a width of sixteen.
                    Cell::Uuid(bytes) if builder.append_value(bytes).is_ok() => {}
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Text | DataType::Json => texts(layout, cells),
        DataType::Bytea => bytes(layout, cells),
    }
}

fn texts<'a>(layout: Layout, cells: impl ExactSizeIterator<Item = Cell<'a>>) -> ArrayRef {
    let rows = cells.len();
    let texts = cells.map(|c| match c {
        Cell::Text(text) | Cell::Json(text) => Some(text),
        _ => None,
    });
    if layout == Layout::Views {
        let mut builder = StringViewBuilder::with_capacity(rows);
        texts.for_each(|t| builder.append_option(t));
        return Arc::new(builder.finish());
    }
    let mut builder = StringBuilder::with_capacity(rows, 0);
    texts.for_each(|t| builder.append_option(t));
    Arc::new(builder.finish())
}

fn bytes<'a>(layout: Layout, cells: impl ExactSizeIterator<Item = Cell<'a>>) -> ArrayRef {
    let rows = cells.len();
    let values = cells.map(|c| if let Cell::Bytea(bytes) = c { Some(bytes) } else { None });
    if layout == Layout::Views {
        let mut builder = BinaryViewBuilder::with_capacity(rows);
        values.for_each(|v| builder.append_option(v));
        return Arc::new(builder.finish());
    }
    let mut builder = BinaryBuilder::with_capacity(rows, 0);
    values.for_each(|v| builder.append_option(v));
    Arc::new(builder.finish())
}
