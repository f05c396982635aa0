//! Compares the result of a phase with the order.

use anyhow::{Context as _, ensure};
use metal3_ironic_life::Level;
use metal3_ironic_life::compare::differences;
use metal3_sim_bmc::identity::Number;
use serde_json::Value;

use crate::document::part;
use crate::drive;
use crate::env::TestEnv;
use crate::hardware;
use crate::level::inspects;
use crate::phase::Phase;

/// The claim of each phase at each level.
pub(crate) const fn claim(level: Level, phase: Phase) -> &'static str {
    match (phase, level) {
        (Phase::Enrol, Level::Redfish) => "a host that is not inspected is available and on",
        (Phase::Enrol, _) => "a host is available and on, and each field of its hardware matches the profile",
        (Phase::Provision, Level::Fake) => "its node is active",
        (Phase::Provision, Level::Redfish) => "the machine runs the ordered ISO",
        (Phase::Provision, Level::Agent) => "disk and config-drive hold exactly the ordered bytes",
        (Phase::Deprovision, Level::Agent) => "no disk holds data after cleaning",
        (Phase::Deprovision, _) => "its node is available again",
        (Phase::Delete, Level::Fake) => "host and node do not exist, and no Secret has a finalizer",
        (Phase::Delete, _) => "host and node do not exist, no Secret has a finalizer, and the machine is off",
    }
}

pub(crate) async fn check(env: &TestEnv, phase: Phase, number: Number) -> anyhow::Result<()> {
    match phase {
        Phase::Enrol => enrolled(env, number).await,
        Phase::Provision => provisioned(env, number).await,
        Phase::Deprovision => deprovisioned(env, number).await,
        Phase::Delete => deleted(env, number).await,
    }
}

async fn enrolled(env: &TestEnv, number: Number) -> anyhow::Result<()> {
    if !inspects(env.level) {
        return Ok(());
    }
    let expected = hardware::expected(&env.profile, number);
    let host = env.get(number).await?.context("the host does not exist")?;
    let status = serde_json::to_value(host.status.hardware)?;
    for (place, found) in [("status", status), ("HardwareData", env.hardware(number).await?)] {
        let differ = differences(&expected, &found);
        ensure!(differ.is_empty(), "{place}: {differ:#?}");
    }
    Ok(())
}

async fn node_state(env: &TestEnv, number: Number, expected: &str) -> anyhow::Result<()> {
    let node = env.node(number).await?;
    ensure!(part(&node, "provision_state") == expected, "node {node}");
    Ok(())
}

async fn provisioned(env: &TestEnv, number: Number) -> anyhow::Result<()> {
    node_state(env, number, "active").await?;
    let expected = &env.image(number)?.bytes;
    match env.level {
        Level::Fake => Ok(()),
        Level::Redfish => env.lab()?.check_iso(number, expected).await,
        Level::Agent => {
            let lab = env.lab()?;
            lab.check_disk(number, expected).await?;
            let host = env.get(number).await?.context("the host does not exist")?;
            let files = drive::files(number, &host.metadata.uid.unwrap_or_default());
            let files = files.iter().map(|(name, expected)| (*name, expected));
            lab.check_config_drive(number, &drive::user_data(number), files).await
        }
    }
}

async fn deprovisioned(env: &TestEnv, number: Number) -> anyhow::Result<()> {
    node_state(env, number, "available").await?;
    if env.level == Level::Agent {
        env.lab()?.check_blank(number).await?;
    }
    Ok(())
}

async fn deleted(env: &TestEnv, number: Number) -> anyhow::Result<()> {
    let node = env.node(number).await?;
    ensure!(node.is_null(), "node {node}");
    if let Some(lab) = &env.lab {
        let machine: Value = lab.view(&format!("/machines/{number}")).await?;
        let power = part(&machine, "power");
        ensure!(power == "Off", "its power is {power}");
    }
    Ok(())
}
