//! Namespaces through util-linux: creates and enters those of the stack, and explains missing permissions.
//!
//! As root the stack uses the machine's user namespace; for other users it creates a user namespace in which they are root.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde::{Deserialize, Serialize};

/// A process with its start time, because process ids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) pid: u32,
    pub(crate) start: u64,
}

pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// A command that becomes the first process of new namespaces. Killing its parent kills it.
pub(crate) fn unshare(program: &Path) -> Command {
    let mut command = Command::new("setsid");
    command.arg("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args([
        "--net",
        "--mount",
        "--uts",
        "--ipc",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
    ]);
    command.arg(program);
    command
}

/// A command in the stack's network and process namespace, so that it ends with the stack. It keeps the caller's file
/// system.
pub(crate) fn enter(holder: Started) -> anyhow::Result<Command> {
    let first = first_process(holder)?;
    let mut command = Command::new("nsenter");
    command.args(["--target", &first.to_string(), "--net", "--pid"]);
    if !is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.arg("--");
    Ok(command)
}

/// The machine's id of the stack's process 1.
pub(crate) fn first_process(holder: Started) -> anyhow::Result<u32> {
    let path = format!("/proc/{0}/task/{0}/children", holder.pid);
    let children = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    children
        .split_whitespace()
        .next()
        .and_then(|pid| pid.parse().ok())
        .with_context(|| format!("{path} is empty"))
}

/// A process and all its descendants, by the machine's ids.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        found.extend(children(pid));
        at += 1;
    }
    found
}

/// The children of all threads of a process; empty when it has ended.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// Kills the holder and all processes in the namespaces.
pub(crate) fn kill(process: Started) -> anyhow::Result<()> {
    let pid = i32::try_from(process.pid)
        .ok()
        .and_then(Pid::from_raw)
        .context("a process number out of range")?;
    match kill_process(pid, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("killing process {}", process.pid)),
    }
}

/// The start of a process in clock ticks since boot; `None` when it has ended, also as a zombie.
pub(crate) fn process_start(pid: u32) -> Option<u64> {
    start_time(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_time(stat: &str) -> Option<u64> {
    // The name is in parentheses and may contain any character: fields are counted after the last one.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Tries to create namespaces, and reports the kernel setting that forbids it.
pub(crate) fn ensure_allowed() -> anyhow::Result<()> {
    let mut probe = unshare(Path::new("true"));
    let answer = probe.stdin(Stdio::null()).output().context("running unshare")?;
    if answer.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
    ensure!(
        !is_root(),
        "root cannot create namespaces here ({output}): inside a container, CAP_SYS_ADMIN is required"
    );
    for (setting, forbidding, remedy) in SETTINGS {
        let value = fs::read_to_string(format!("/proc/sys/{}", setting.replace('.', "/"))).unwrap_or_default();
        if value.trim() == *forbidding {
            bail!(
                "user namespaces are forbidden for ordinary users: {setting} is {forbidding}. Run `sudo sysctl {remedy}`"
            );
        }
    }
    bail!("user namespaces are forbidden here ({output}); no sysctl forbids them, a container may")
}

/// Setting, the value that forbids, the remedy.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("user.max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    (
        "kernel.unprivileged_userns_clone",
        "0",
        "kernel.unprivileged_userns_clone=1",
    ),
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_read_after_any_process_name() {
        let table = [
            ("7 (a) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 1", Some(4242)),
            ("7 (x) y) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 1", Some(4242)),
            ("7 (a) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 1", None),
            ("7 (a) S 1", None),
            ("", None),
        ];
        for (stat, start) in table {
            assert_eq!(start_time(stat), start, "{stat}");
        }
    }

    #[test]
    fn process_with_a_reused_id_is_not_alive() {
        let own = Started {
            pid: std::process::id(),
            start: process_start(std::process::id()).unwrap(),
        };
        assert!(own.is_alive());
        assert!(
            !Started {
                start: own.start + 1,
                ..own
            }
            .is_alive()
        );
    }
}
