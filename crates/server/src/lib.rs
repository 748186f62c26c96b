//! The front doors of a node. They turn requests into calls of the node and its answers into bytes, and decide nothing.

pub mod http;

pub use http::{AccessToken, HttpConfig, HttpDoor, HttpDoorError, serve};
