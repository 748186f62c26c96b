//! What a node does for its callers, over real origins: SQLite and CSV files in a temporary folder.

mod cluster;
mod fixture;
mod loading;
mod log_seam;
mod memory;
mod original;
mod postgres;
mod reads;
mod restart;
mod retention;
mod writes;
