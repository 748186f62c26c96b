//! What the machine has.

use std::hash::{BuildHasher as _, RandomState};

/// Memory that is assumed where it cannot be found out.
const UNKNOWN_MEMORY_BYTES: u64 = 4 << 30;

/// A number that nobody else has drawn.
pub(crate) fn random() -> u64 {
    // The keys of a hasher are the standard library's only random numbers.
    RandomState::new().hash_one(std::process::id())
}

/// Fills a buffer with random bytes that nobody can foretell.
pub(crate) fn fill_random(buffer: &mut [u8]) {
    if getrandom::fill(buffer).is_err() {
        // A system that has no more of them for us had some for the keys of the standard library's hashers.
        for bytes in buffer.chunks_mut(size_of::<u64>()) {
            bytes.copy_from_slice(random().to_le_bytes().get(..bytes.len()).unwrap_or_default());
        }
    }
}

/// Bytes of memory that this process may use: the machine's, or less where its control group says so.
pub(crate) fn memory_bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let machine = of_meminfo(&read("/proc/meminfo"));
    // The limit of the group that a container's processes are in, as they see it.
    let group = read("/sys/fs/cgroup/memory.max").trim().parse().ok();
    match (machine, group) {
        (Some(machine), Some(group)) => u64::min(machine, group),
        (Some(bytes), None) | (None, Some(bytes)) => bytes,
        (None, None) => UNKNOWN_MEMORY_BYTES,
    }
}

fn of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found() {
        let text = "MemTotal:       24632148 kB\nMemFree:        22632148 kB\n";
        assert_eq!(of_meminfo(text), Some(24_632_148 * 1024));
        assert_eq!(of_meminfo("MemFree: 1 kB"), None);
    }
}
