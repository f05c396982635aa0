//! Measures the stack on the current machine, and writes the figures between two marks of a document.
//!
//! The figures are valid for one machine and one time. No test compares them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use crate::claims::providers::CLUSTER_API;
use crate::families::FAMILIES;
use crate::instance;
use crate::namespaces::{self, is_root};
use crate::places::Places;
use crate::record::Record;
use crate::supervise::Extent;
use crate::wait::{Stopwatch, until};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The document; only the text between the marks is replaced.
    #[arg(long)]
    document: PathBuf,
    /// Starts and stops, after which leftovers are counted.
    #[arg(long, default_value_t = 20)]
    cycles: u32,
    /// Hard kills, each followed by a start.
    #[arg(long, default_value_t = 5)]
    kills: u32,
}

const BEGIN: &str = "<!-- stack facts: begin (make stack-facts) -->";
const END: &str = "<!-- stack facts: end -->";

/// Measures a stack of its own and writes the table.
pub(crate) fn write(places: &Places, options: &Options) -> anyhow::Result<()> {
    let places = places.named("facts");
    let document =
        fs::read_to_string(&options.document).with_context(|| format!("reading {}", options.document.display()))?;
    instance::down(&places)?;
    let mut rows = vec![("versions".to_owned(), versions()), ("machine".to_owned(), machine())];
    let cycles = cycles(&places, options)?;
    rows.extend(one_life(&places)?);
    rows.push((
        "binaries in the cache".to_owned(),
        format!("{} MB", cache_size(&places)? / 1_000_000),
    ));
    rows.extend(cycles);
    let table: String = rows
        .iter()
        .map(|(what, value)| format!("| {what} | {value} |\n"))
        .collect();
    let table = format!("| What | Measured |\n| --- | --- |\n{table}");
    print!("{table}");
    fs::write(&options.document, between_marks(&document, &table)?)?;
    Ok(())
}

/// The document with new text between its marks.
fn between_marks(document: &str, text: &str) -> anyhow::Result<String> {
    let (before, rest) = document
        .split_once(BEGIN)
        .with_context(|| format!("the document has no line {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("the document has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n{text}{END}{after}"))
}

fn versions() -> String {
    let all: Vec<String> = FAMILIES
        .iter()
        .map(|family| format!("{} {}", family.name, family.version()))
        .collect();
    all.join(", ")
}

fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?").to_owned();
    let user = if is_root() { "root" } else { "an ordinary user" };
    format!("{cpus} processors, load {load} at the start, as {user}")
}

type Rows = Vec<(String, String)>;

/// Starts the stack, installs Cluster API, stops the stack.
fn one_life(places: &Places) -> anyhow::Result<Rows> {
    let watch = Stopwatch::start();
    instance::up(places, &Extent::default())?;
    let start = watch.elapsed();
    let mut rows: Rows = Record::required(places)?
        .phases
        .iter()
        .map(|(what, ms)| (format!("start: {what}"), format!("{ms} ms")))
        .collect();
    rows.push(("start, warm cache".to_owned(), in_seconds(start)));
    rows.push(("memory after the start".to_owned(), memory_row(places)?));
    let init = Stopwatch::start();
    let args = [&["clusterctl", "init"][..], &CLUSTER_API, &["--wait-providers"]].concat();
    let done = instance::command(places, &args)?
        .output()
        .context("running clusterctl")?;
    ensure!(
        done.status.success(),
        "clusterctl init: {}",
        String::from_utf8_lossy(&done.stderr).trim()
    );
    rows.push((
        "`clusterctl init` of three providers, `--wait-providers`".to_owned(),
        in_seconds(init.elapsed()),
    ));
    rows.push(("start and init together".to_owned(), in_seconds(watch.elapsed())));
    rows.push(("memory after init".to_owned(), memory_row(places)?));
    let watch = Stopwatch::start();
    instance::down(places)?;
    rows.push(("stop".to_owned(), format!("{} ms", watch.millis())));
    Ok(rows)
}

fn in_seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Resources of the machine that a stack must release.
#[derive(Debug, PartialEq, Eq)]
struct ResourceCounts {
    processes: usize,
    mounts: usize,
    namespaces: usize,
    interfaces: usize,
}

impl ResourceCounts {
    /// Counts the resources of stacks of this cache only: other processes of the machine may start and end.
    fn take(places: &Places) -> anyhow::Result<Self> {
        let root = places.cache().join("stack");
        let root = root.to_string_lossy();
        let pids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let of_stack = pids.filter(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command);
            *pid != std::process::id() && command.contains(&*root)
        });
        let own: Vec<u32> = of_stack.collect();
        let links = own
            .iter()
            .filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok());
        let own_namespace = fs::read_link("/proc/self/ns/net")?;
        let namespaces: std::collections::BTreeSet<PathBuf> = links.filter(|link| *link != own_namespace).collect();
        let links = Command::new("ip")
            .args(["-oneline", "link"])
            .output()
            .context("running ip")?;
        let interfaces = String::from_utf8_lossy(&links.stdout).lines().count();
        Ok(Self {
            processes: own.len(),
            mounts: fs::read_to_string("/proc/self/mountinfo")?.lines().count(),
            namespaces: namespaces.len(),
            interfaces,
        })
    }
}

/// Starts and stops, then kills with a start after each, and compares the counts before and after.
fn cycles(places: &Places, options: &Options) -> anyhow::Result<Rows> {
    let before = ResourceCounts::take(places)?;
    let watch = Stopwatch::start();
    for _ in 0..options.cycles {
        instance::up(places, &Extent::default())?;
        instance::down(places)?;
    }
    let cycles = watch.elapsed();
    for _ in 0..options.kills {
        instance::up(places, &Extent::default())?;
        let holder = Record::required(places)?.holder;
        namespaces::kill(holder)?;
        until(Duration::from_secs(20), "the end of a killed stack", || {
            Ok((ResourceCounts::take(places)? == before).then_some(()))
        })?;
    }
    instance::down(places)?;
    let after = ResourceCounts::take(places)?;
    ensure!(before == after, "before {before:?}, after {after:?}");
    let ResourceCounts {
        processes,
        mounts,
        namespaces,
        interfaces,
    } = after;
    let left = format!(
        "{processes} processes and {namespaces} namespaces of stacks, {mounts} mounts, {interfaces} interfaces"
    );
    Ok(vec![(
        format!(
            "{} starts and stops ({}), {} hard kills",
            options.cycles,
            in_seconds(cycles),
            options.kills
        ),
        format!("the same before and after: {left}"),
    )])
}

/// One row of the table: the processes of the stack with their resident memory.
fn memory_row(places: &Places) -> anyhow::Result<String> {
    let all = memory(places)?;
    let sum: u64 = all.iter().map(|(_, size)| size).sum();
    let largest: Vec<String> = all
        .iter()
        .filter(|(_, size)| *size >= 5_000_000)
        .map(|(name, size)| format!("{name} {}", size / 1_000_000))
        .collect();
    Ok(format!("{} MB: {}", sum / 1_000_000, largest.join(", ")))
}

/// Prints the resident memory of the stack's processes, largest first.
pub(crate) fn print_memory(places: &Places) -> anyhow::Result<()> {
    for (name, size) in memory(places)? {
        println!(
            "{:8.1} MB  {name}",
            f64::from(u32::try_from(size / 1000).unwrap_or(u32::MAX)) / 1000.0
        );
    }
    Ok(())
}

fn memory(places: &Places) -> anyhow::Result<Vec<(String, u64)>> {
    let holder = Record::required(places)?.holder;
    let mut all: Vec<(String, u64)> = namespaces::descendants(holder.pid)
        .into_iter()
        .filter_map(|pid| Some((name(pid)?, resident(pid)?)))
        .collect();
    all.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    Ok(all)
}

/// The program's name. All managers have the same one, so theirs is derived from the Pod's host name.
fn name(pid: u32) -> Option<String> {
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let program = String::from_utf8_lossy(command.split(|byte| *byte == 0).next()?).into_owned();
    let name = Path::new(&program).file_name()?.to_string_lossy().into_owned();
    if name != "manager" {
        return Some(name);
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let host = environment
        .split('\0')
        .find_map(|pair| pair.strip_prefix("HOSTNAME="))?;
    let mut parts: Vec<&str> = host.split('-').collect();
    parts.truncate(parts.len().saturating_sub(2)); // suffixes of ReplicaSet and Pod
    Some(parts.join("-"))
}

fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn cache_size(places: &Places) -> anyhow::Result<u64> {
    let mut sum: u64 = 0;
    for family in FAMILIES {
        for entry in fs::read_dir(places.family(family))? {
            sum = sum.saturating_add(entry?.metadata()?.len());
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_between_the_marks_is_replaced() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(
            between_marks(&document, "new\n").unwrap(),
            format!("a\n{BEGIN}\nnew\n{END}\nb\n")
        );
        assert!(between_marks("a\n", "new").is_err());
    }
}
