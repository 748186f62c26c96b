//! The HTTP door: hyper's HTTP/1.1, one match on the path, no framework between.
//!
//! A request's life: `listener` accepts the connection, `door` checks who asks and hands the request to `route`, which
//! calls one of `rest`, `sql`, `original`, `cluster`, `health`, `dashboard`; those turn the request into a typed call of the
//! node and its answer into bytes by way of `decode` and `encode`. Nothing is decided here.

mod accept;
mod access;
mod activity;
mod answer;
mod body;
mod call;
mod cluster;
mod counters;
mod dashboard;
mod decode;
mod door;
mod encode;
mod failure;
mod health;
mod listener;
mod long_read;
mod original;
mod parameters;
mod prefer;
mod request_body;
mod rest;
mod route;
mod socket;
mod sql;
mod statements;
mod status;
mod unreadable;

pub use access::AccessToken;
pub use listener::{HttpConfig, HttpDoor, HttpDoorError, serve};
