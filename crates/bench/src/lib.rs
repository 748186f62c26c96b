//! What the measurements of `cargo xtask bench` share: the data set `kca2`, and the clock of a process.

pub mod kca2;
pub mod process;
