//! Nodes that call each other, over a network in memory and over TCP, and strangers at their doors.

mod calls;
mod cluster;
mod failures;
mod frames;
mod memory_network;
mod raw;
mod strangers;
mod tcp;
