//! The client against nodes that do what a test wants, on sockets of this machine.

mod configuration;
mod fake;
mod following;
mod reads;
mod sessions;
mod statements;
mod writes;
