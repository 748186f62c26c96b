//! `cargo xtask bench`: CacheSQL beside its peers, in one run, on one machine.

use std::path::Path;

use crate::failure::{Failure, Outcome};
use crate::setup;

pub(crate) fn run(_root: &Path, rest: &[&str]) -> Outcome<()> {
    setup::for_benches()?;
    Err(Failure::new(format!("no such bench: {}", rest.join(" "))))
}
