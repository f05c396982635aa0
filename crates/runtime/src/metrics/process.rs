//! Metrics of the process: processor time, memory, files. Read from `/proc` at each scrape.
//!
//! A value that cannot be read is omitted: a wrong metric is worse than a missing one.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Ticks per second in `/proc/*/stat`: constant on every supported processor.
const TICKS: f64 = 100.0;

/// Reads `/proc/self`.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let stat = read("/proc/self/stat");
        let status = read("/proc/self/status");
        let boot = number_after(&read("/proc/stat"), "btime");
        if let Some(ticks) = processor_ticks(&stat) {
            let help = "Seconds of processor time, user and system";
            let mut metric = encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
            metric.encode_counter::<NoLabelSet, f64, f64>(&(ticks / TICKS), None)?;
        }
        let started = field(&stat, 22).zip(boot).map(|(ticks, boot)| boot + ticks / TICKS);
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Memory in use",
                kibibytes(&status, "VmRSS:"),
            ),
            (
                "process_virtual_memory_bytes",
                "Address space in use",
                kibibytes(&status, "VmSize:"),
            ),
            ("process_open_fds", "Open files", open_files()),
            (
                "process_max_fds",
                "Files that may be open at once",
                number_after(&read("/proc/self/limits"), "Max open files"),
            ),
            (
                "process_start_time_seconds",
                "Start of the process, in seconds since 1970",
                started,
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                metric.encode_gauge(&value)?;
            }
        }
        Ok(())
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The `n`th field of a stat line, counted as in `proc(5)`. The second, the program's name, may contain blanks and
/// parentheses, so counting starts after its last parenthesis.
fn field(stat: &str, n: usize) -> Option<f64> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(n.checked_sub(3)?)?.parse().ok()
}

fn processor_ticks(stat: &str) -> Option<f64> {
    Some(field(stat, 14)? + field(stat, 15)?)
}

/// The first number of the line that starts with `name`.
fn number_after(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn kibibytes(status: &str, name: &str) -> Option<f64> {
    number_after(status, name).map(|kibibytes| kibibytes * 1024.0)
}

fn open_files() -> Option<f64> {
    let files = fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(files).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_blanks_and_parentheses_shifts_no_field() {
        let stat = "42 (a) b (c) S 1 1 1 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 1 0 700 1 1";
        assert_eq!(processor_ticks(stat), Some(300.0));
        assert_eq!(field(stat, 22), Some(700.0));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert_eq!(field("", 14), None);
        assert_eq!(field("1 (a) S", 22), None);
        assert_eq!(
            number_after("Max open files            unlimited", "Max open files"),
            None
        );
        assert_eq!(kibibytes("Name:\tx\n", "VmRSS:"), None);
        assert_eq!(kibibytes("VmRSS:\t  12 kB\n", "VmRSS:"), Some(12_288.0));
    }
}
