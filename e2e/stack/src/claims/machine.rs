//! Claims about the machine: starting twice, stopping, killing. They run outside the stack.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::claim::{Claim, Proof};
use crate::instance;
use crate::namespaces::{self, Started, process_start};
use crate::places::{BRIDGE, Places};
use crate::record::Record;
use crate::wait::{Stopwatch, until};

/// Proves a claim on the machine of these places.
type Check = fn(&Places) -> Proof;

/// In this order: each claim requires a running stack, and all but the last leave one.
pub(super) const CLAIMS: &[Claim<Check>] = &[
    (
        "a_second_start_reports_the_running_stack_and_changes_nothing",
        a_second_start_is_reported,
    ),
    ("a_hard_kill_leaves_files_that_the_next_start_removes", a_hard_kill),
    ("a_stopped_stack_leaves_nothing", a_stop),
];

fn a_second_start_is_reported(places: &Places) -> Proof {
    let before = Record::required(places)?.holder;
    let output = run_stack(places, "up")?;
    ensure!(output.contains("is already up"), "it printed {output:?}");
    ensure!(Record::required(places)?.holder == before, "another stack is running");
    Ok(String::new())
}

fn a_hard_kill(places: &Places) -> Proof {
    let resources = Resources::of(places)?;
    let watch = Stopwatch::start();
    namespaces::kill(Record::required(places)?.holder)?;
    resources.until_ended()?;
    let died = watch.elapsed();
    ensure!(places.state().exists(), "a killed stack cannot have removed its files");
    let output = run_stack(places, "up")?;
    ensure!(
        output.contains("removing the files of a killed stack"),
        "it printed {output:?}"
    );
    Ok(format!("all processes ended after {} ms", died.as_millis()))
}

fn a_stop(places: &Places) -> Proof {
    let resources = Resources::of(places)?;
    let watch = Stopwatch::start();
    instance::down(places)?;
    let took = watch.elapsed();
    resources.until_ended()?;
    ensure!(
        !places.state().exists() && !places.lock().exists(),
        "files are left in {}",
        places.state().display()
    );
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let state = places.state();
    ensure!(!mounts.contains(&*state.to_string_lossy()), "mounts are left");
    let links = Command::new("ip")
        .args(["-brief", "link"])
        .output()
        .context("running ip")?;
    ensure!(
        !String::from_utf8_lossy(&links.stdout).contains(BRIDGE),
        "interfaces are left"
    );
    Ok(format!(
        "{} processes and {} namespaces ended in {} ms",
        resources.processes.len(),
        resources.namespaces.len(),
        took.as_millis()
    ))
}

/// All processes of a stack, and their namespaces.
struct Resources {
    processes: Vec<Started>,
    namespaces: BTreeSet<PathBuf>,
}

const KINDS: [&str; 6] = ["net", "mnt", "pid", "uts", "ipc", "user"];
const LIMIT: Duration = Duration::from_secs(20);

impl Resources {
    fn of(places: &Places) -> anyhow::Result<Self> {
        let holder = Record::required(places)?.holder;
        let started = |pid| process_start(pid).map(|start| Started { pid, start });
        let processes: Vec<Started> = namespaces::descendants(holder.pid)
            .into_iter()
            .filter_map(started)
            .collect();
        let of = |pid: u32| {
            KINDS
                .iter()
                .filter_map(move |kind| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok())
        };
        let machine: BTreeSet<PathBuf> = of(std::process::id()).collect();
        let all: BTreeSet<PathBuf> = processes.iter().flat_map(|process| of(process.pid)).collect();
        let namespaces: BTreeSet<PathBuf> = all.difference(&machine).cloned().collect();
        ensure!(
            processes.len() > 6 && namespaces.len() >= 4,
            "expected more processes and namespaces of a stack: {} processes",
            processes.len()
        );
        Ok(Self { processes, namespaces })
    }

    fn until_ended(&self) -> anyhow::Result<()> {
        until(LIMIT, "the end of all processes and namespaces", || {
            let alive = self.processes.iter().any(|process| process.is_alive());
            Ok((!alive && !self.in_use()?).then_some(()))
        })
    }

    /// Whether any process of the machine is in one of the namespaces.
    fn in_use(&self) -> anyhow::Result<bool> {
        let pids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        // A zombie keeps its user namespace only.
        let pids = pids.filter(|pid| process_start(*pid).is_some());
        let mut links = pids.flat_map(|pid| KINDS.map(|kind| fs::read_link(format!("/proc/{pid}/ns/{kind}"))));
        Ok(links.any(|link| link.is_ok_and(|link| self.namespaces.contains(&link))))
    }
}

/// Runs the command like a user; returns its output.
fn run_stack(places: &Places, command: &str) -> anyhow::Result<String> {
    let mut program = Command::new(std::env::current_exe()?);
    program
        .arg("--cache")
        .arg(places.cache())
        .args(["--name", &places.name, command]);
    let output = program.output().context("running stack")?;
    ensure!(
        output.status.success(),
        "stack {command}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Moves the logs of a failed stack to a directory that `down` does not remove.
pub(crate) fn keep_logs(places: &Places) -> anyhow::Result<PathBuf> {
    let to = places
        .cache()
        .join("stack")
        .join(format!("{}-failed-logs", places.name));
    if to.exists() {
        fs::remove_dir_all(&to).with_context(|| format!("removing {}", to.display()))?;
    }
    fs::rename(places.state().join("log"), &to).context("keeping the logs")?;
    Ok(to)
}
