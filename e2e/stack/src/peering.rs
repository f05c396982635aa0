//! Connects two stacks: a veth pair between their bridges, and routes.
//!
//! Their network numbers must differ. It requires root: stacks of other users are in different user namespaces. The veth
//! pair is removed with the first stack that ends.

use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::namespaces::{first_process, is_root};
use crate::places::{BRIDGE, Places};
use crate::record::Record;

const VETH: &str = "neighbour";

/// Makes both stacks reachable from each other, and other addresses of the first stack's bridge from the neighbour's Pods.
pub(crate) fn join(places: &Places, neighbour: &Places, others: &str) -> anyhow::Result<()> {
    ensure!(
        places.network() != neighbour.network(),
        "stacks `{}` and `{}` have the same addresses",
        places.name,
        neighbour.name
    );
    ensure!(is_root(), "only root can join two stacks");
    let (here, there) = (process(places)?, process(neighbour)?);
    let peer = there.to_string();
    let veth = [
        "link", "add", VETH, "type", "veth", "peer", "name", VETH, "netns", &peer,
    ];
    run_in(here, "ip", &veth)?;
    for (process, other) in [(here, neighbour), (there, places)] {
        run_in(process, "ip", &["link", "set", VETH, "master", BRIDGE, "up"])?;
        run_in(process, "ip", &["route", "add", &other.pod_subnet(), "dev", BRIDGE])?;
    }
    run_in(there, "ip", &["route", "add", others, "dev", BRIDGE])?;
    // The Node is the default route of its Pods.
    run_in(there, "sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
}

fn process(places: &Places) -> anyhow::Result<u32> {
    first_process(Record::required(places)?.holder)
}

/// Runs a program in that process's network and the current process namespace.
fn run_in(process: u32, program: &str, args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("nsenter");
    command.args(["--target", &process.to_string(), "--net", program]);
    let done = command.args(args).output().context("running nsenter")?;
    if !done.status.success() {
        let output = String::from_utf8_lossy(&done.stderr);
        bail!("{program} {}: {}", args.join(" "), output.trim());
    }
    Ok(())
}
