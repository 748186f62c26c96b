//! A replicated group: members that agree on entries, in one order, and lose none that they acknowledged.
//!
//! A member acknowledges an entry when it can no longer lose it. So the disk is trusted with little: every byte is under a
//! checksum, what was cut short by a crash is told apart from what rotted, and a disk that failed once is not asked again.

#![forbid(unsafe_code)]

pub mod disk;
pub mod log;
pub mod machine;
pub mod raft;
pub mod register;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod snapshot;
pub mod transport;

pub use raft::{AnswerError, Drive, Group, GroupConfig, ProposeError, Standing, StartError, Status, Submitted};
