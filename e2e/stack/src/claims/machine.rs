//! Claims about the machine: starting twice, stopping, being killed. They run outside the stack.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::life;
use crate::namespaces::{self, Started, process_start};
use crate::places::{BRIDGE, Places};
use crate::record::Record;
use crate::wait::{Stopwatch, until};

type Proof = anyhow::Result<String>;

pub(super) struct Claim {
    pub(super) name: &'static str,
    pub(super) proof: fn(&Places) -> Proof,
}

/// In this order: each finds the stack as the one before has left it, that is, running.
pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        name: "a_second_start_says_so_and_changes_nothing",
        proof: a_second_start_says_so,
    },
    Claim {
        name: "a_hard_kill_leaves_files_that_the_next_start_removes",
        proof: a_hard_kill,
    },
    Claim {
        name: "a_stopped_stack_leaves_nothing",
        proof: a_stop,
    },
];

fn a_second_start_says_so(places: &Places) -> Proof {
    let before = Record::required(places)?.holder;
    let said = stack(places, "up")?;
    ensure!(said.contains("is already up"), "it said {said:?}");
    ensure!(Record::required(places)?.holder == before, "another stack is running");
    Ok(String::new())
}

fn a_hard_kill(places: &Places) -> Proof {
    let traces = Traces::of(places)?;
    let watch = Stopwatch::start();
    namespaces::kill(Record::required(places)?.holder)?;
    traces.until_gone()?;
    let died = watch.elapsed();
    ensure!(places.state().exists(), "a killed stack cannot have removed its files");
    let said = stack(places, "up")?;
    ensure!(said.contains("removing what a killed stack"), "it said {said:?}");
    Ok(format!("all processes were gone after {} ms", died.as_millis()))
}

fn a_stop(places: &Places) -> Proof {
    let traces = Traces::of(places)?;
    let watch = Stopwatch::start();
    life::down(places)?;
    let took = watch.elapsed();
    traces.until_gone()?;
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
        "{} processes and {} namespaces went in {} ms",
        traces.processes.len(),
        traces.namespaces.len(),
        took.as_millis()
    ))
}

/// Every process of a stack, and every namespace that only they are in.
struct Traces {
    processes: Vec<Started>,
    namespaces: BTreeSet<PathBuf>,
}

const KINDS: [&str; 6] = ["net", "mnt", "pid", "uts", "ipc", "user"];
const LIMIT: Duration = Duration::from_secs(20);

impl Traces {
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
            "a stack has more than that: {} processes",
            processes.len()
        );
        Ok(Self { processes, namespaces })
    }

    fn until_gone(&self) -> anyhow::Result<()> {
        until(LIMIT, "the end of all processes and namespaces", || {
            let alive = self.processes.iter().any(|process| process.is_alive());
            Ok((!alive && !self.inhabited()?).then_some(()))
        })
    }

    /// Whether any process of the machine is in one of the namespaces.
    fn inhabited(&self) -> anyhow::Result<bool> {
        let pids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        // One that has ended and waits for its parent keeps the name of its user namespace, and nothing else.
        let pids = pids.filter(|pid| process_start(*pid).is_some());
        let mut links = pids.flat_map(|pid| KINDS.map(|kind| fs::read_link(format!("/proc/{pid}/ns/{kind}"))));
        Ok(links.any(|link| link.is_ok_and(|link| self.namespaces.contains(&link))))
    }
}

/// The command as a user gives it; what it printed.
fn stack(places: &Places, command: &str) -> anyhow::Result<String> {
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

/// The logs of a stack whose claims failed, moved to where `down` does not remove them.
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
