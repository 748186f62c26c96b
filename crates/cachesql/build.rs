//! How the binary is linked.

use std::env;
use std::process::Command;

/// The first glibc that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A position-independent binary is full of addresses that are set right when it is loaded: six megabytes of notes, or a
    // hundredth of that in the packed form. Only for the machine that builds it, whose C library can be asked.
    let builds_for_itself = env::var("TARGET").is_ok_and(|target| env::var("HOST").is_ok_and(|host| host == target));
    if builds_for_itself && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc; none where it has another C library.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
