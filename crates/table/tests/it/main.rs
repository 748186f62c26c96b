//! What writers and readers of tables can count on.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

mod arrays;
mod basics;
mod image;
mod model;
mod random;
