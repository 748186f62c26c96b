//! The HTTP door in front of a real node, asked over real sockets.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod access;
mod bad_input;
mod connections;
mod fixture;
mod formats;
mod java_client;
mod operations;
mod original;
mod rest_reads;
mod rest_writes;
mod sql;
