//! A table as DataFusion sees it: columns under folded names, filters that an index can use taken to the index.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use cachesql_table::{GroupSnapshot, RowId, Table};
use cachesql_types::{DataType, TableSchema, Value, arrow_field};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, plan_datafusion_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::names::{Folding, SPELLING_METADATA};
use super::scalar::{plan_type, value_of};
use super::scan::TableScan;
use crate::direct::{CompiledSelect, selective_rows};
use crate::plan::{Comparison, Filter, Operand, Select};

/// Name of the column, unseen by statements, that tells a write which row it reads.
pub(crate) const ROW_ID_COLUMN: &str = "__cachesql_row";

/// The snapshot that a plan runs over: plans are kept, snapshots come with each execution.
pub(crate) struct ScannedSnapshot(pub(crate) GroupSnapshot);

/// One table, of whichever snapshot the session has.
#[derive(Debug)]
pub(crate) struct SnapshotTable {
    table: Arc<TableSchema>,
    schema: SchemaRef,
    names: Vec<String>,
    with_row_id: bool,
}

impl SnapshotTable {
    /// A table under folded names; for a write, with the ids of its rows.
    pub(crate) fn new(table: &Arc<TableSchema>, folding: &Folding, with_row_id: bool) -> SnapshotTable {
        let names = folding.column_names(table);
        let field = |(column, name): (&cachesql_types::Column, &String)| {
            let field = arrow_field(column).with_name(name).with_data_type(plan_type(column.data_type));
            let mut metadata = field.metadata().clone();
            metadata.insert(SPELLING_METADATA.to_owned(), column.name.clone());
            field.with_metadata(metadata)
        };
        let mut fields: Vec<Field> = table.columns.iter().zip(&names).map(field).collect();
        if with_row_id {
            fields.push(Field::new(ROW_ID_COLUMN, ArrowType::UInt32, false));
        }
        SnapshotTable { table: table.clone(), schema: Arc::new(Schema::new(fields)), names, with_row_id }
    }

    /// A condition as the direct path has it; `None` for what it has not.
    fn filter(&self, expr: &Expr) -> Option<Filter> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                Some(Filter::And(vec![self.filter(left)?, self.filter(right)?]))
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                Some(Filter::Or(vec![self.filter(left)?, self.filter(right)?]))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let op = comparison(*op)?;
                let (column, op, value) = match self.column(left) {
                    Some(column) => (column, op, right),
                    None => (self.column(right)?, op.flipped(), left),
                };
                Some(Filter::Compare { column, op, operand: self.operand(column, value)? })
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let column = self.column(expr)?;
                let end = |op, value| Some(Filter::Compare { column, op, operand: self.operand(column, value)? });
                Some(Filter::And(vec![end(Comparison::GreaterOrEqual, low)?, end(Comparison::LessOrEqual, high)?]))
            }
            Expr::InList(list) if !list.negated => {
                let column = self.column(&list.expr)?;
                let operands = list.list.iter().map(|item| self.operand(column, item)).collect::<Option<_>>()?;
                Some(Filter::In { column, operands })
            }
            Expr::Like(Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false }) => {
                let column = self.column(expr)?;
                let pattern = self.operand(column, pattern)?;
                Some(Filter::Like { column, pattern, case_insensitive: false, escape: Some('\\') })
            }
            _ => None,
        }
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(column) => self.names.iter().position(|name| *name == column.name),
            _ => None,
        }
    }

    /// A literal whose value is of the column's own type; others are compared as DataFusion does.
    fn operand(&self, column: usize, expr: &Expr) -> Option<Operand> {
        let Expr::Literal(scalar, _) = expr else { return None };
        let value = value_of(scalar)?;
        let wanted = self.table.columns.get(column)?.data_type;
        let same = match (value.data_type()?, wanted) {
            (DataType::Decimal { .. }, DataType::Decimal { .. })
            | (DataType::Text, DataType::Json)
            | (DataType::Bytea, DataType::Bytea) => true,
            (given, wanted) => given == wanted,
        };
        same.then_some(Operand::Value(match (value, wanted) {
            (Value::Text(text), DataType::Json) => Value::Json(text),
            (value, _) => value,
        }))
    }

    /// Rows that an index finds, when they are few enough beside the whole table.
    fn indexed(&self, table: &Arc<Table>, filters: &[Expr]) -> Result<Option<Vec<RowId>>> {
        let conditions: Vec<Filter> = filters.iter().filter_map(|f| self.filter(f)).collect();
        if conditions.is_empty() {
            return Ok(None);
        }
        let select = Select { filter: Some(Filter::And(conditions)), ..Select::default() };
        let external = |e: crate::error::SqlError| DataFusionError::External(Box::new(e));
        let plan = CompiledSelect::new(table, &select).map_err(external)?;
        selective_rows(&plan, table).map_err(external)
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let name = &self.table.name;
        let snapshot = state.config().get_extension::<ScannedSnapshot>();
        let table = snapshot.as_ref().and_then(|s| s.0.table(name));
        let table = table.ok_or_else(|| plan_datafusion_err!("table {name} is not in the snapshot"))?;
        let ids = self.indexed(table, filters)?;
        let projection = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&projection)?);
        // The id of a row is no column of the table; it is added behind those that are.
        let row_id = self.with_row_id.then(|| projection.iter().position(|c| *c == self.names.len())).flatten();
        let columns = projection.into_iter().filter(|c| *c < self.names.len()).collect();
        Ok(Arc::new(TableScan::new(table.clone(), schema, columns, ids, limit, row_id)))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Inexact: what an index answers is tried once more, so that DataFusion's own comparison decides.
        let support = |expr: &&Expr| match self.filter(expr) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }
}

fn comparison(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
