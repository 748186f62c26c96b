//! A whole group of CacheSQL in one thread. Nodes run as they do in production, over a network, disks and time that are simulated,
//! while clients read and write, and nodes crash, lose disks and are cut off. Everything follows from one seed.
//!
//! `run` is one run: it makes a `cluster` over a `network`, sets `clients` to work, and has `faults` happen. What clients did and were
//! answered is a `history`; `check` says what is wrong with it.
//!
//! The same seed gives the same run only in a process of its own: the runtime and hash maps draw randomness from the process, and
//! the binary of this crate gives them a seeded source.

pub mod check;
mod clients;
mod cluster;
mod faults;
pub mod history;
mod network;
mod run;

pub use cachesql_group::simulation::PlantedBug;
pub use run::{Report, run};
