//! Memory and processor time of processes, from `/proc`.

/// Resources of a process and its children.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory.
    pub(crate) mib: u64,
    /// Processor time since the start, including children that have ended.
    pub(crate) cpu_seconds: u64,
}

impl Usage {
    /// Zero when the process has ended.
    pub(crate) fn of(pid: u32) -> Self {
        let (mut kib, mut ticks) = (0, 0);
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            let status = read("status");
            if id == pid || field(&status, "PPid:") == u64::from(pid) {
                kib += field(&status, "VmRSS:");
                ticks += ticks_of(&read("stat"));
            }
        }
        Self {
            mib: kib / 1024,
            cpu_seconds: ticks / TICKS_A_SECOND,
        }
    }
}

/// The unit of `/proc` on Linux, whatever the kernel counts internally.
pub const TICKS_A_SECOND: u64 = 100;

/// A number in a `status` file, such as `VmRSS:` in kibibytes; 0 without it.
#[must_use]
pub fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// User and system time of the process and its ended children, in ticks, from its `stat` file. The process name in front may
/// contain blanks.
#[must_use]
pub fn ticks_of(stat: &str) -> u64 {
    let behind_name = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
    let times = behind_name.split(' ').skip(11).take(4);
    times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_includes_ended_children() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 9 9 0 0 100 20 3 4 20 0 1 0 99 9 9";
        assert_eq!(ticks_of(stat), 127);
        assert_eq!(ticks_of(""), 0);
    }

    #[test]
    fn usage_is_zero_for_an_ended_process() {
        assert!(Usage::of(std::process::id()).mib > 0);
        assert_eq!(Usage::of(u32::MAX), Usage::default());
    }
}
