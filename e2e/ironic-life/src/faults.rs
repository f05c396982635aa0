//! The reaction of real Ironic to faults of machines: the phase of the fault, and the resulting state, `last_error` and
//! maintenance. The table is a page of the documentation.
//!
//! Requires an Ironic with timeouts of seconds (`EXTRA_CONF=e2e/ironic/impatient.conf`). Texts are shown, never compared:
//! Ironic may change them, and part of them is from labhosts.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, time::Duration};

use anyhow::Context as _;
use futures::future::join_all;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    Session,
    level::{Bmc, Level, redfish_node},
    life::NAME,
    node::Node,
    poller::NodePoller,
    processes::Lab,
};

/// A node that is not stable by then is shown in its transitional state.
const TIMEOUT: Duration = Duration::from_secs(150);

/// Reads of a node after it is stable.
const EXTRA_READS: u8 = 8;
/// The interval of these reads.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// The phase before which a fault is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultPhase {
    /// Verification of the BMC.
    Manage,
    /// Inspection.
    Inspect,
    /// Cleaning.
    Clean,
    /// Deployment.
    Deploy,
}

impl FaultPhase {
    const fn verb(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Inspect => "inspect",
            Self::Clean => "clean",
            Self::Deploy => "active",
        }
    }
}

/// A fault of a machine.
#[derive(Debug)]
pub struct Fault {
    /// The name in tables.
    pub name: &'static str,
    /// The JSON that labhosts accepts.
    pub json: &'static str,
    /// The phase in which it is injected.
    pub phase: FaultPhase,
}

const fn fault(name: &'static str, json: &'static str, phase: FaultPhase) -> Fault {
    Fault { name, json, phase }
}

/// Each fault with its phase.
pub const FAULTS: [Fault; 15] = {
    use FaultPhase::{Clean, Deploy, Inspect, Manage};
    [
        fault("dead BMC", r#"["dead-bmc"]"#, Manage),
        fault("slow BMC, 30 s a call", r#"[{"slow-bmc": 30}]"#, Manage),
        fault("wrong password", r#"["wrong-password"]"#, Manage),
        fault("BMC answers 503", r#"[{"bmc-status": 503}]"#, Manage),
        fault("power does not change", r#"["power-stuck"]"#, Inspect),
        fault("MAC not matching", r#"["foreign-mac"]"#, Inspect),
        fault("ramdisk never boots", r#"["no-boot"]"#, Inspect),
        fault("inventory cannot be collected", r#"["inspection-error"]"#, Inspect),
        fault("agent never heartbeats", r#"["no-heartbeat"]"#, Clean),
        fault("clean step fails", r#"["clean-step-fails"]"#, Clean),
        fault("agent never heartbeats", r#"["no-heartbeat"]"#, Deploy),
        fault("checksum mismatch", r#"["checksum-mismatch"]"#, Deploy),
        fault("disk too small", r#"["disk-too-small"]"#, Deploy),
        fault("power does not change", r#"["power-stuck"]"#, Deploy),
        fault("dead BMC", r#"["dead-bmc"]"#, Deploy),
    ]
};

/// The number of machines for the table.
#[must_use]
pub fn machines() -> u16 {
    u16::try_from(FAULTS.len()).unwrap_or(u16::MAX)
}

/// One row of the table.
struct Row {
    fault: &'static Fault,
    state: String,
    power: String,
    error: String,
    /// `last_error` is empty; the text is from an earlier read or the node's history.
    erased: bool,
    maintenance: bool,
    took: Duration,
}

/// Injects each fault into a machine of its own, and writes the table.
pub(crate) async fn tabulate(session: &Session, lab: &Lab, page: &Path) -> anyhow::Result<()> {
    let bmcs: BTreeMap<Number, Bmc> = lab
        .endpoint
        .machines
        .iter()
        .map(|place| (place.number, Bmc::of_lab(&lab.endpoint, place)))
        .collect();
    let poller = &NodePoller::new(&session.ironic, machines());
    let rows = join_all(FAULTS.iter().zip(&bmcs).map(|(fault, (number, bmc))| async move {
        inject(session, poller, lab, fault, *number, bmc)
            .await
            .context(fault.name)
    }))
    .await;
    let mut done = Vec::new();
    for row in rows {
        done.push(row?);
    }
    std::fs::write(page, render(&done)).with_context(|| format!("cannot write {}", page.display()))
}

async fn inject(
    session: &Session,
    poller: &NodePoller<'_>,
    lab: &Lab,
    fault: &'static Fault,
    number: Number,
    bmc: &Bmc,
) -> anyhow::Result<Row> {
    let (faults, phase): (Value, _) = (serde_json::from_str(fault.json)?, fault.phase);
    let name = format!("{NAME}fault-{number}");
    let mut node = Node::create(&session.ironic, &redfish_node(Level::Agent, &name, bmc), poller).await?;
    node.add_port(&number.mac(0)).await?;
    if phase == FaultPhase::Deploy {
        // The clean phase has its own rows.
        node.set("/automated_clean", json!(false)).await?;
    }
    if phase > FaultPhase::Manage {
        node.provision("manage", json!({})).await?;
        node.wait("manageable").await?;
    }
    if phase == FaultPhase::Deploy {
        node.provision("provide", json!({})).await?;
        node.wait("available").await?;
        node.set("/instance_info", session.image(0)?.raw.instance_info())
            .await?;
    }
    lab.set_faults(number, &faults).await?;
    let started = Instant::now();
    let body = match phase {
        FaultPhase::Clean => json!({ "clean_steps": [{ "interface": "deploy", "step": "erase_devices_metadata" }] }),
        FaultPhase::Manage | FaultPhase::Inspect | FaultPhase::Deploy => json!({}),
    };
    node.provision(phase.verb(), body).await?;
    node.timeout = TIMEOUT;
    let node_state = node.settle().await?;
    let took = started.elapsed();
    let (node_state, last_error) = read_again(&node, node_state).await?;
    let erased = node_state.get("last_error") == Some(&Value::Null);
    let error = match last_error {
        Some(error) => error,
        None => node.latest_error().await?.unwrap_or_else(|| "none".into()),
    };
    lab.set_faults(number, &json!([])).await?;
    let text = |field: &str| {
        node_state
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or("none")
            .to_owned()
    };
    Ok(Row {
        fault,
        state: text("provision_state"),
        power: text("power_state"),
        error: error.replace(&node.uuid, "NODE"),
        erased,
        maintenance: node_state.get("maintenance") == Some(&json!(true)),
        took,
    })
}

/// Reads the node several times: Ironic sets maintenance, and sets and clears `last_error`, after the provision state.
async fn read_again(node: &Node<'_>, mut node_state: Value) -> anyhow::Result<(Value, Option<String>)> {
    let mut last_error = None;
    for _ in 0..EXTRA_READS {
        if let Some(error) = node_state.get("last_error").and_then(Value::as_str) {
            last_error = Some(error.to_owned());
        }
        sleep(READ_INTERVAL).await;
        node_state = node.state().await?;
    }
    Ok((node_state, last_error))
}

fn render(rows: &[Row]) -> String {
    let mut page = String::from(
        "# Reaction of Ironic to faults of machines\n\n\
         Generated by `make ironic-faults` from real Ironic and simulated machines. Each fault is injected just before the verb\n\
         in the second column. State and maintenance are reliable. `last_error` is an example: Ironic may change its wording or\n\
         clear it later, and the part that comes from an agent is labhosts' wording. \"(erased)\": `last_error` was empty at the\n\
         end; the text is from an earlier read or from the node's history. A transitional state means that Ironic had not finished\n\
         after 150 s. Timeouts are short (`e2e/ironic/impatient.conf`).\n\n\
         | fault | verb | node state | power state | maintenance | last_error | about |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let erased = if row.erased { "(erased) " } else { "" };
        let error = row.error.replace('|', "\\|").replace('\n', " ");
        // Rounded, so that another run changes few lines.
        let about = (row.took.as_secs() + 5) / 10 * 10;
        let Row {
            state,
            power,
            maintenance,
            ..
        } = row;
        let (name, verb) = (row.fault.name, row.fault.phase.verb());
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| {name} | {verb} | {state} | {power} | {maintenance} | {erased}{error} | {about} s |"
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use metal3_sim_bmc::fault::Faults;

    use super::*;

    #[test]
    fn labhosts_accepts_each_fault_of_the_table() {
        for Fault { name, json, .. } in FAULTS {
            assert!(serde_json::from_str::<Faults>(json).is_ok(), "{name}: {json}");
        }
    }

    #[test]
    fn error_text_cannot_break_the_table() {
        let row = Row {
            fault: &FAULTS[0],
            state: "enroll".into(),
            power: "none".into(),
            error: "a|b\nc".into(),
            erased: true,
            maintenance: false,
            took: Duration::from_secs(12),
        };
        assert!(render(&[row]).ends_with("| dead BMC | manage | enroll | none | false | (erased) a\\|b c | 10 s |\n"));
    }
}
