//! Set-up, checks, benches and release of CacheSQL.

fn main() {
    println!("usage: cargo xtask test");
}
