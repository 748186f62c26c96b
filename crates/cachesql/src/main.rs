//! The CacheSQL binary.

fn main() {
    println!("cachesql {}", env!("CARGO_PKG_VERSION"));
}
