//! The stack in figures: measured on the machine that runs the command, written between two marks of a document.
//!
//! Figures are facts of one machine and one moment. Nothing compares them with anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use crate::families::FAMILIES;
use crate::life;
use crate::namespaces::{self, is_root};
use crate::places::Places;
use crate::record::Record;
use crate::supervise::Extent;
use crate::wait::{Stopwatch, until};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The document; only what is between its marks is replaced.
    #[arg(long)]
    document: PathBuf,
    /// Starts and stops to count what is left behind.
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
    life::down(&places)?;
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

/// The document with the text between its marks replaced.
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

/// Start, Cluster API by clusterctl, stop.
fn one_life(places: &Places) -> anyhow::Result<Rows> {
    let watch = Stopwatch::start();
    life::up(places, &Extent::default())?;
    let start = watch.elapsed();
    let mut rows: Rows = Record::required(places)?
        .phases
        .iter()
        .map(|(what, ms)| (format!("start: {what}"), format!("{ms} ms")))
        .collect();
    rows.push(("start, warm cache".to_owned(), in_seconds(start)));
    rows.push(("memory after the start".to_owned(), memory_row(places)?));
    let init = Stopwatch::start();
    let words = [
        "clusterctl",
        "init",
        "--core",
        "cluster-api",
        "--bootstrap",
        "kubeadm",
        "--control-plane",
        "kubeadm",
        "--wait-providers",
    ];
    let done = life::command(places, &words)?.output().context("running clusterctl")?;
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
    life::down(places)?;
    rows.push(("stop".to_owned(), format!("{} ms", watch.millis())));
    Ok(rows)
}

fn in_seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// What a machine has more or less of when something was left behind.
#[derive(Debug, PartialEq, Eq)]
struct Census {
    processes: usize,
    mounts: usize,
    namespaces: usize,
    interfaces: usize,
}

impl Census {
    /// Of everything that has to do with stacks of this cache: other work on the machine may come and go.
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
        let mine = fs::read_link("/proc/self/ns/net")?;
        let namespaces: std::collections::BTreeSet<PathBuf> = links.filter(|link| *link != mine).collect();
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

/// Starts and stops, then hard kills with a start after each, and counts before and after.
fn cycles(places: &Places, options: &Options) -> anyhow::Result<Rows> {
    let before = Census::take(places)?;
    let watch = Stopwatch::start();
    for _ in 0..options.cycles {
        life::up(places, &Extent::default())?;
        life::down(places)?;
    }
    let cycles = watch.elapsed();
    for _ in 0..options.kills {
        life::up(places, &Extent::default())?;
        let holder = Record::required(places)?.holder;
        namespaces::kill(holder)?;
        until(Duration::from_secs(20), "the end of a killed stack", || {
            Ok((Census::take(places)? == before).then_some(()))
        })?;
    }
    life::down(places)?;
    let after = Census::take(places)?;
    ensure!(before == after, "before {before:?}, after {after:?}");
    let Census {
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

/// One row of a table: every process of the stack with its resident memory.
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

/// Resident memory of the stack's processes, largest first.
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

/// The program's name; all managers are called alike, so a Pod's host name says which.
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
    parts.truncate(parts.len().saturating_sub(2)); // the ReplicaSet's and the Pod's
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
    fn only_what_is_between_the_marks_is_replaced() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(
            between_marks(&document, "new\n").unwrap(),
            format!("a\n{BEGIN}\nnew\n{END}\nb\n")
        );
        assert!(between_marks("a\n", "new").is_err());
    }
}
