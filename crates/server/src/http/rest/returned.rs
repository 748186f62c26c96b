//! The rows that a write returns, cut down to what `select=` asks for.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use cachesql_node::{ColumnInfo, Projection, RowStream, Rows};
use futures::TryStreamExt;

use crate::http::failure::Failure;
use crate::http::status;

/// Some columns of rows that hold every column of a table. No projections mean all columns.
pub(crate) async fn projected(rows: Rows, projections: &[Projection]) -> Result<Rows, Failure> {
    if projections.is_empty() {
        return Ok(rows);
    }
    let Rows::Stream(stream) = rows else {
        tracing::error!("a write returned rows that are not batches");
        return Err(Failure::internal());
    };
    let columns: Vec<ColumnInfo> = projections
        .iter()
        .filter_map(|p| {
            let column = stream.columns().get(p.column)?;
            Some(ColumnInfo {
                name: p.name.clone().unwrap_or_else(|| column.name.clone()),
                data_type: column.data_type,
            })
        })
        .collect();
    let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(|e| status::of_sql(&e))?;
    let batches = batches.iter().map(|batch| cut(batch, projections)).collect::<Result<Vec<_>, _>>();
    let batches = batches.map_err(|error| {
        tracing::error!(%error, "returned rows could not be projected");
        Failure::internal()
    })?;
    Ok(Rows::Stream(RowStream::of_batches(columns.into(), batches)))
}

/// The columns of a batch; names are told apart by position, so that one column can come twice.
fn cut(batch: &RecordBatch, projections: &[Projection]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(projections.len());
    let mut arrays = Vec::with_capacity(projections.len());
    for projection in projections {
        let (Some(field), Some(array)) =
            (schema.fields().get(projection.column), batch.columns().get(projection.column))
        else {
            continue;
        };
        fields.push(field.clone());
        arrays.push(array.clone());
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}
