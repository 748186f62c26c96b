//! How much memory this process holds, as the kernel counts it.

/// Resident bytes, from `/proc/self/status`; 0 where there is no such file.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_some_memory() {
        assert!(resident_bytes() > 1 << 16);
    }
}
