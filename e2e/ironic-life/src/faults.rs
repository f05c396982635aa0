//! What real Ironic says when something is wrong: each fault of a machine, the phase in which it strikes, and the state,
//! `last_error` and maintenance that follow. The table is a page of the documentation.
//!
//! Wants an Ironic that loses patience in seconds (`EXTRA_CONF=e2e/ironic/impatient.conf`). Texts are shown, never compared:
//! they are Ironic's to change, and an agent's part of them is labhosts'.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, time::Duration};

use anyhow::Context as _;
use futures::future::join_all;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    ironic::Ironic,
    level::{Bmc, Level, redfish_node},
    looks::Looks,
    node::Node,
    order::Image,
    processes::Lab,
};

/// A fault that has not come to an end by then is shown as it is, in a state that passes.
const PATIENCE: Duration = Duration::from_secs(150);

/// Looks at a node after it has come to rest.
const AFTERWARDS: u8 = 8;
/// Between two of them.
const AFTERWARD: Duration = Duration::from_secs(1);

/// When a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Manage,
    Inspect,
    Clean,
    Deploy,
}

impl Phase {
    const fn verb(self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Inspect => "inspect",
            Self::Clean => "clean",
            Self::Deploy => "active",
        }
    }
}

/// A fault as labhosts takes it, its name in the table, and the phase in which it is switched on.
const CASES: [(&str, &str, Phase); 15] = [
    ("dead BMC", r#"["dead-bmc"]"#, Phase::Manage),
    ("slow BMC, 30 s a call", r#"[{"slow-bmc": 30}]"#, Phase::Manage),
    ("wrong password", r#"["wrong-password"]"#, Phase::Manage),
    ("BMC answers 503", r#"[{"bmc-status": 503}]"#, Phase::Manage),
    ("power does not change", r#"["power-stuck"]"#, Phase::Inspect),
    ("MAC not matching", r#"["foreign-mac"]"#, Phase::Inspect),
    ("ramdisk never boots", r#"["no-boot"]"#, Phase::Inspect),
    (
        "inventory cannot be collected",
        r#"["inspection-error"]"#,
        Phase::Inspect,
    ),
    ("agent never heartbeats", r#"["no-heartbeat"]"#, Phase::Clean),
    ("clean step fails", r#"["clean-step-fails"]"#, Phase::Clean),
    ("agent never heartbeats", r#"["no-heartbeat"]"#, Phase::Deploy),
    ("checksum mismatch", r#"["checksum-mismatch"]"#, Phase::Deploy),
    ("disk too small", r#"["disk-too-small"]"#, Phase::Deploy),
    ("power does not change", r#"["power-stuck"]"#, Phase::Deploy),
    ("dead BMC", r#"["dead-bmc"]"#, Phase::Deploy),
];

/// How many machines the table needs.
pub(crate) fn machines() -> u16 {
    u16::try_from(CASES.len()).unwrap_or(u16::MAX)
}

/// One row of the table.
struct Row {
    index: usize,
    state: String,
    power: String,
    error: String,
    /// `last_error` was empty again; the text is from the node's history.
    erased: bool,
    maintenance: bool,
    took: Duration,
}

/// Strikes every fault on a machine of its own, and writes the table.
///
/// # Errors
/// When a node does not come as far as its fault, or does not come to rest after it.
pub(crate) async fn tabulate(ironic: &Ironic, lab: &Lab, image: &Image, page: &Path) -> anyhow::Result<()> {
    let places: BTreeMap<Number, Bmc> = lab
        .endpoint
        .machines
        .iter()
        .map(|place| (place.number, Bmc::of_lab(&lab.endpoint, place)))
        .collect();
    let cases = CASES.iter().zip(&places).enumerate();
    let looks = &Looks::new(ironic, machines());
    let rows = join_all(cases.map(|(index, (case, (number, bmc)))| async move {
        strike((ironic, looks), lab, image, index, case.1, case.2, *number, bmc)
            .await
            .context(case.0)
    }))
    .await;
    let mut done = Vec::new();
    for row in rows {
        done.push(row?);
    }
    std::fs::write(page, render(&done)).with_context(|| format!("cannot write {}", page.display()))
}

#[expect(clippy::too_many_arguments, reason = "one row's whole world, used in one place")]
async fn strike(
    (ironic, looks): (&Ironic, &Looks<'_>),
    lab: &Lab,
    image: &Image,
    index: usize,
    fault: &str,
    phase: Phase,
    number: Number,
    bmc: &Bmc,
) -> anyhow::Result<Row> {
    let faults: Value = serde_json::from_str(fault)?;
    let name = format!("life-fault-{number}");
    let mut node = Node::enrol(ironic, &redfish_node(Level::Agent, &name, bmc), looks).await?;
    node.add_port(&number.mac(0)).await?;
    if phase == Phase::Deploy {
        // Automated cleaning has its own rows.
        node.set("/automated_clean", json!(false)).await?;
    }
    if phase > Phase::Manage {
        node.ask("manage", json!({})).await?;
        node.wait("manageable").await?;
    }
    if phase == Phase::Deploy {
        node.ask("provide", json!({})).await?;
        node.wait("available").await?;
        node.set("/instance_info", image.raw.instance_info()).await?;
    }
    lab.set_faults(number, &faults).await?;
    let begun = Instant::now();
    let body = match phase {
        Phase::Clean => json!({ "clean_steps": [{ "interface": "deploy", "step": "erase_devices_metadata" }] }),
        Phase::Manage | Phase::Inspect | Phase::Deploy => json!({}),
    };
    node.ask(phase.verb(), body).await?;
    node.patience = PATIENCE;
    let rest = node.settle().await?;
    let took = begun.elapsed();
    let (rest, seen) = afterwards(&node, rest).await?;
    let erased = rest.get("last_error") == Some(&Value::Null);
    let error = match seen {
        Some(error) => error,
        None => node.latest_error().await?.unwrap_or_else(|| "none".into()),
    };
    lab.set_faults(number, &json!([])).await?;
    let text = |field: &str| rest.get(field).and_then(Value::as_str).unwrap_or("none").to_owned();
    Ok(Row {
        index,
        state: text("provision_state"),
        power: text("power_state"),
        error: error.replace(&node.uuid, "NODE"),
        erased,
        maintenance: rest.get("maintenance") == Some(&json!(true)),
        took,
    })
}

/// The state comes before what follows from it: Ironic sets maintenance, and sets and erases `last_error`, a moment later.
async fn afterwards(node: &Node<'_>, mut rest: Value) -> anyhow::Result<(Value, Option<String>)> {
    let mut seen = None;
    for _ in 0..AFTERWARDS {
        if let Some(error) = rest.get("last_error").and_then(Value::as_str) {
            seen = Some(error.to_owned());
        }
        sleep(AFTERWARD).await;
        rest = node.state().await?;
    }
    Ok((rest, seen))
}

fn render(rows: &[Row]) -> String {
    let mut page = String::from(
        "# What Ironic says when a machine is at fault\n\n\
         Made by `make ironic-faults` from real Ironic and the simulated machines, each fault switched on just before the verb\n\
         in the second column. A reader may rely on state and maintenance. `last_error` is shown as an example: its wording is\n\
         Ironic's to change, the part that comes from an agent is labhosts' wording, and Ironic may erase it later.\n\
         \"(erased)\": Ironic had emptied `last_error` again; the text was seen before, or is from the node's history. A state that passes means that\n\
         the fault had not come to an end after 150 s. Time-outs are short ones (`e2e/ironic/impatient.conf`).\n\n\
         | fault | verb | node state | power state | maintenance | last_error | about |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let Some((name, _, phase)) = CASES.get(row.index) else {
            continue;
        };
        let erased = if row.erased { "(erased) " } else { "" };
        let error = row.error.replace('|', "\\|").replace('\n', " ");
        // Rounded, so that a repetition changes few lines.
        let about = (row.took.as_secs() + 5) / 10 * 10;
        let Row {
            state,
            power,
            maintenance,
            ..
        } = row;
        let verb = phase.verb();
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
    fn every_fault_of_the_table_is_one_that_labhosts_takes() {
        for (name, fault, _) in CASES {
            assert!(serde_json::from_str::<Faults>(fault).is_ok(), "{name}: {fault}");
        }
    }

    #[test]
    fn error_text_cannot_break_the_table() {
        let row = Row {
            index: 0,
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
