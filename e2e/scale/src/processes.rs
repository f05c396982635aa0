//! Processor time and memory of the processes of the stack.
//!
//! The driver runs in the stack's process namespace but reads the machine's `/proc`, where each process has another id: those of
//! the stack are found by their namespace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use metal3_ironic_life::usage::{TICKS_A_SECOND, field, ticks_of};

use crate::outcome::Cost;

/// The measured programs, and their names in results.
const MEASURED: [(&str, &str); 5] = [
    ("capm3", "manager"),
    ("kube-apiserver", "API server"),
    ("etcd", "etcd"),
    ("sim-ironic", "Ironic"),
    ("scale", "driver"),
];

/// Sums up samples. A process that ends between two samples loses what it used after the last one.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// The last sample of each process.
    ticks: BTreeMap<PathBuf, u64>,
    costs: BTreeMap<&'static str, (u64, u64)>,
}

struct Sample {
    folder: PathBuf,
    name: &'static str,
    ticks: u64,
    peak_kib: u64,
}

impl Processes {
    /// Begins a phase: memory peaks are of this phase.
    pub(crate) fn begin(&mut self) {
        let samples = samples();
        for sample in &samples {
            // Not permitted for processes of others; the peak is then that of the process's life.
            fs::write(sample.folder.join("clear_refs"), "5").unwrap_or_default();
        }
        self.ticks = samples
            .into_iter()
            .map(|sample| (sample.folder, sample.ticks))
            .collect();
        self.costs.clear();
    }

    /// Adds what was used since the last sample.
    pub(crate) fn sample(&mut self) {
        for Sample {
            folder,
            name,
            ticks,
            peak_kib,
        } in samples()
        {
            let before = self.ticks.insert(folder, ticks).unwrap_or(0);
            let (used, peak) = self.costs.entry(name).or_default();
            *used = used.saturating_add(ticks.saturating_sub(before));
            *peak = peak_kib.max(*peak);
        }
    }

    /// What was used since the begin.
    pub(crate) fn costs(&self) -> BTreeMap<String, Cost> {
        let cost = |(ticks, peak_kib): &(u64, u64)| Cost {
            cpu_millis: ticks.saturating_mul(1000 / TICKS_A_SECOND),
            peak_kib: *peak_kib,
        };
        let costs = self.costs.iter();
        costs.map(|(name, used)| ((*name).to_owned(), cost(used))).collect()
    }
}

/// Fails unless each measured program was seen: what is not seen would cost nothing, and keep each goal.
pub(crate) fn require_all(costs: &BTreeMap<String, Cost>) -> anyhow::Result<()> {
    let missing = MEASURED.iter().filter(|(_, name)| !costs.contains_key(*name));
    let missing: Vec<String> = missing
        .map(|(start, name)| format!("{name}: no process whose file is named {start}…"))
        .collect();
    ensure!(missing.is_empty(), "{}", missing.join("; "));
    Ok(())
}

/// The measured processes of this process namespace.
fn samples() -> Vec<Sample> {
    let Ok(own) = fs::read_link("/proc/self/ns/pid") else {
        return Vec::new();
    };
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let folders = folders.map(|entry| entry.path());
    folders.filter_map(|folder| sample_of(folder, &own)).collect()
}

fn sample_of(folder: PathBuf, namespace: &Path) -> Option<Sample> {
    let command = fs::read_to_string(folder.join("comm")).ok()?;
    let (_, name) = MEASURED.iter().find(|(start, _)| command.starts_with(start))?;
    let is_ours = fs::read_link(folder.join("ns/pid")).is_ok_and(|its| its == namespace);
    if !is_ours {
        return None;
    }
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    Some(Sample {
        ticks: ticks_of(&read("stat")),
        peak_kib: field(&read("status"), "VmHWM:"),
        name,
        folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_not_seen_is_an_error_and_costs_not_nothing() {
        let mut costs: BTreeMap<String, Cost> = MEASURED
            .iter()
            .map(|(_, name)| ((*name).to_owned(), Cost::default()))
            .collect();
        require_all(&costs).unwrap();
        costs.remove("manager");
        let error = require_all(&costs).unwrap_err().to_string();
        assert_eq!(error, "manager: no process whose file is named capm3…");
        assert!(require_all(&BTreeMap::new()).is_err());
    }
}
