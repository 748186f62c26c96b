//! Several statements as one: each sees what those before it did, and all or none are applied.

use cachesql_table::{ApplyError, GroupSnapshot, Operation};
use cachesql_types::{Value, limits};

use super::Engine;
use crate::Rows;
use crate::answer::StatementKind;
use crate::error::SqlError;
use crate::write::{Returned, WritePlan};

/// One statement of a batch.
#[derive(Clone, Debug)]
pub struct BatchStatement {
    /// Its text.
    pub sql: String,
    /// Its parameters.
    pub params: Vec<Value>,
}

/// What a batch does, and what its statements answer.
#[derive(Debug)]
pub struct BatchPlan {
    /// All changes, in order.
    pub operations: Vec<Operation>,
    /// One answer per statement.
    pub answers: Vec<BatchAnswer>,
}

/// What one statement of a batch answers.
#[derive(Debug)]
pub enum BatchAnswer {
    /// Rows, as the statements before it left them.
    Rows(Rows),
    /// A write.
    Written {
        /// Rows inserted, changed or deleted.
        affected: u64,
        /// The rows of RETURNING.
        returning: Option<Returned>,
    },
}

impl Engine {
    /// Plans statements one after another over a snapshot of their own; nothing of it shows before the operations are
    /// applied. An error of any statement is the batch's.
    pub async fn plan_batch(
        &self,
        snapshot: &GroupSnapshot,
        statements: &[BatchStatement],
    ) -> Result<BatchPlan, SqlError> {
        if statements.len() > limits::MAX_BATCH_STATEMENTS {
            let most = limits::MAX_BATCH_STATEMENTS;
            return Err(SqlError::TooComplex { what: "the number of a batch's statements", most });
        }
        let mut private = snapshot.clone();
        let mut plan = BatchPlan { operations: Vec::new(), answers: Vec::with_capacity(statements.len()) };
        for statement in statements {
            let prepared = self.prepare(&private, &statement.sql, &[])?;
            match prepared.kind() {
                StatementKind::Read | StatementKind::Explain => {
                    let rows = self.query(&private, &prepared, &statement.params).await?;
                    plan.answers.push(BatchAnswer::Rows(rows));
                }
                StatementKind::Write | StatementKind::Definition => {
                    let write = self.plan_write(&private, &prepared, &statement.params).await?;
                    let WritePlan { operations, affected, returning } = write;
                    private = private.apply(private.index().next(), &operations).map_err(of_apply)?.0;
                    plan.operations.extend(operations);
                    plan.answers.push(BatchAnswer::Written { affected, returning });
                }
            }
        }
        Ok(plan)
    }
}

fn of_apply(error: ApplyError) -> SqlError {
    match error {
        ApplyError::Refused(refusal) => SqlError::of_refusal(&refusal),
        ApplyError::Fenced(reason) => SqlError::Internal(reason),
    }
}
