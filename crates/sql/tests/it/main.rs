//! The engine from outside: statements over snapshots.

mod bad_input;
mod differential;
mod fixture;
mod postgresql;
mod reads;
mod writes;
