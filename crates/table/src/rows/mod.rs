//! Where rows lie: sealed chunks of columns, the open tail, and the store that gives rows their ids.

pub(crate) mod build;
pub(crate) mod chunk;
pub(crate) mod chunk_map;
pub(crate) mod column;
pub(crate) mod liveness;
pub(crate) mod store;
pub(crate) mod tail;
