//! DataFusion set up: what is the same for every statement, made once.

use std::sync::Arc;

use cachesql_table::GroupSnapshot;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;

use super::bounded::bounded;
use super::clock::clocks;
use super::errors::of_datafusion;
use super::provider::ScannedSnapshot;
use super::semantics::{PostgresOperators, TableTypes};
use super::sign::sign;
use crate::error::SqlError;

/// Streams that a plan works by: two cores are usual.
const PARTITIONS: usize = 2;

/// What every statement starts from.
pub(crate) struct Session {
    base: SessionState,
}

impl Session {
    pub(crate) fn new() -> Session {
        let mut config = SessionConfig::new()
            .with_target_partitions(PARTITIONS)
            .with_information_schema(false)
            .with_create_default_catalog_and_schema(false)
            .with_collect_statistics(false);
        // It compares metadata too, where columns of a UNION carry the spellings of several tables.
        config.options_mut().execution.skip_physical_aggregate_schema_check = true;
        let parser = &mut config.options_mut().sql_parser;
        // Names are folded before DataFusion sees them.
        parser.enable_ident_normalization = false;
        parser.parse_float_as_decimal = true;
        let mut builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let mut functions = bounded(builder.scalar_functions().take().unwrap_or_default());
        // They take the place of functions of the same names.
        functions.extend(clocks());
        functions.push(sign());
        let mut planners = builder.expr_planners().take().unwrap_or_default();
        planners.insert(0, Arc::new(PostgresOperators));
        let builder = builder.with_scalar_functions(functions);
        let base = builder.with_expr_planners(planners).with_type_planner(Arc::new(TableTypes)).build();
        Session { base }
    }

    /// The state that statements are planned with.
    pub(crate) fn planning(&self) -> &SessionState {
        &self.base
    }

    /// A state for one execution: over a snapshot, with memory of its own, at one time (`now()` is the same throughout).
    pub(crate) fn execution(&self, snapshot: &GroupSnapshot, memory_bytes: usize) -> Result<SessionState, SqlError> {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory_bytes)))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .build_arc()
            .map_err(of_datafusion)?;
        let config = self.base.config().clone().with_extension(Arc::new(ScannedSnapshot(snapshot.clone())));
        let mut state = SessionStateBuilder::new_from_existing(self.base.clone())
            .with_config(config)
            .with_runtime_env(runtime)
            .build();
        state.mark_start_execution();
        Ok(state)
    }
}
