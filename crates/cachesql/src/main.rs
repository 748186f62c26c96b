//! The CacheSQL binary: installs what is global, and hands over to the command line.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The one TLS provider of the process; a second one would make rustls refuse to choose.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cachesql::command_line::main()
}
