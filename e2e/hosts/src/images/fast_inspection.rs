//! An inspection by the BMC alone: the machine is not started, and no disk changes.

use anyhow::{Context as _, ensure};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::{ONE, Start, lives};
use crate::claims::Claims;
use crate::document::part;
use crate::env::{Special, TestEnv};

/// What the user has on the disk.
const DATA: &[u8] = b"data of the user";

const INSPECT: &str = "PUT nodes/_/states/provision inspect";

pub(super) async fn run(start: &Start<'_>, claims: &mut Claims) -> anyhow::Result<()> {
    let claim = "a BMC reports the hardware without a start of the machine, and no disk changes";
    lives::run(start.env(Special::default()).await?, claims, claim, prepare, life).await
}

/// The machine is off, and stays off.
async fn prepare(env: &TestEnv) -> anyhow::Result<()> {
    env.lab()?.fill_disk(ONE, "sda", DATA.to_vec()).await?;
    let spec = json!({ "inspectionMode": "fast", "online": false, "automatedCleaningMode": "disabled" });
    env.create_host_with(ONE, spec).await?;
    inspected(env).await
}

async fn life(env: &TestEnv) -> anyhow::Result<()> {
    let before = ended(&env.get(ONE).await?.context("the host does not exist")?);
    env.edit(
        ONE,
        json!({ "metadata": { "annotations": { "inspect.metal3.io": "" } } }),
    )
    .await?;
    env.eventually(async || {
        let log = env.interceptor.log();
        let is_sent = log.changes.iter().any(|change| change == INSPECT);
        ensure!(is_sent, "Ironic was not asked for an inspection");
        Ok(())
    })
    .await?;
    env.until(ONE, "inspected again", |host| {
        host.is_some_and(|host| ended(host) != before)
    })
    .await?;
    inspected(env).await
}

/// When the last inspection ended.
fn ended(host: &BareMetalHost) -> Value {
    let history = serde_json::to_value(&host.status.operation_history).unwrap_or_default();
    part(&part(&history, "inspect"), "end")
}

async fn inspected(env: &TestEnv) -> anyhow::Result<()> {
    env.until(ONE, "inspected", |host| host.is_some_and(is_inspected))
        .await?;
    let host = env.get(ONE).await?.context("the host does not exist")?;
    let hardware = serde_json::to_value(host.status.hardware)?;
    for found in [hardware, env.hardware(ONE).await?] {
        of_profile(env, &found)?;
    }
    let machine = env.machine(ONE).await?;
    let untouched = json!([0, 0, "Off"]);
    let found = json!([
        part(&machine, "boots"),
        part(&machine, "writes"),
        part(&machine, "power")
    ]);
    ensure!(found == untouched, "the machine was started: {machine}");
    let disk = env.lab()?.read(&format!("/machines/{ONE}/disks/sda")).await?;
    ensure!(disk == DATA, "sda holds {} other bytes", disk.len());
    Ok(())
}

fn is_inspected(host: &BareMetalHost) -> bool {
    let annotations = host.metadata.annotations.as_ref();
    let is_asked = annotations.is_some_and(|all| all.contains_key("inspect.metal3.io"));
    let status = &host.status;
    !is_asked
        && status.provisioning.state.to_string() == "available"
        && status.hardware.is_some()
        && status.error_message.is_empty()
}

/// What a BMC knows of the hardware.
fn of_profile(env: &TestEnv, hardware: &Value) -> anyhow::Result<()> {
    let profile = &env.profile;
    let macs: Vec<_> = profile.each_nic().map(|(index, _)| ONE.mac(index)).collect();
    let found: Vec<Value> = hardware
        .get("nics")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|card| part(card, "mac"))
        .collect();
    ensure!(found == macs, "its cards are {found:?} and not {macs:?}");
    let expected = json!([
        profile.memory_mib,
        profile.cpu.threads,
        profile.architecture.as_str(),
        profile.vendor.manufacturer,
    ]);
    let found = json!([
        part(hardware, "ramMebibytes"),
        hardware.pointer("/cpu/count"),
        hardware.pointer("/cpu/arch"),
        hardware.pointer("/systemVendor/manufacturer"),
    ]);
    ensure!(found == expected, "its hardware is {found} and not {expected}");
    Ok(())
}
