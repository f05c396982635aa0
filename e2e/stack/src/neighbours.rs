//! Two stacks in one network: a cable between their bridges, and the way there.
//!
//! They must differ in the number of their network. Only root may do it: anybody else's stacks are in namespaces of
//! different users. The cable goes with the first of the two that ends.

use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::namespaces::{first_process, is_root};
use crate::places::{BRIDGE, Places};
use crate::record::Record;

const CABLE: &str = "neighbour";

/// Lets the two reach each other, and the neighbour's Pods what the stack's bridge has of other addresses.
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
    let cable = [
        "link", "add", CABLE, "type", "veth", "peer", "name", CABLE, "netns", &peer,
    ];
    within(here, "ip", &cable)?;
    for (process, other) in [(here, neighbour), (there, places)] {
        within(process, "ip", &["link", "set", CABLE, "master", BRIDGE, "up"])?;
        within(process, "ip", &["route", "add", &other.pod_subnet(), "dev", BRIDGE])?;
    }
    within(there, "ip", &["route", "add", others, "dev", BRIDGE])?;
    // Its Pods know one way out, which is their Node.
    within(there, "sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
}

fn process(places: &Places) -> anyhow::Result<u32> {
    first_process(Record::required(places)?.holder)
}

/// In that process's network, with the numbers of processes as they are here.
fn within(process: u32, program: &str, words: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("nsenter");
    command.args(["--target", &process.to_string(), "--net", program]);
    let done = command.args(words).output().context("running nsenter")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("{program} {}: {}", words.join(" "), said.trim());
    }
    Ok(())
}
