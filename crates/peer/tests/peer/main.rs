//! Nodes that call each other, over a network in memory and over TCP, and strangers at their doors.

mod calls;
mod cluster;
mod failures;
mod memory_network;
