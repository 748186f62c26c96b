//! The built binary, end to end: real processes, real sockets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod commands;
mod flights;
mod killed;
mod readme;
mod running;
mod serving;
