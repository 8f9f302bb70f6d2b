//! What there is of the machine.

/// Its memory, where that cannot be told.
const MEMORY_IF_UNKNOWN: u64 = 4 << 30;

/// Its memory in bytes: `MemTotal` of Linux.
pub fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes =
        total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.and_then(|kilobytes| kilobytes.checked_mul(1024)).unwrap_or(MEMORY_IF_UNKNOWN)
}
