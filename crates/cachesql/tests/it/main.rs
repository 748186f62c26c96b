//! The built binary, end to end: real processes, real sockets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod commands;
mod faults;
mod flights;
mod http;
mod killed;
mod processes;
mod proxy;
mod readme;
mod reload;
mod running;
mod serving;
mod topology;
