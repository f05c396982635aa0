//! Software RAID on the real Ironic: volumes are made, changed and removed, and made again after a cleaning that failed. After
//! each change that Ironic accepts, the program is killed once, and the end is the same.

use anyhow::{Context as _, ensure};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic_life::Level;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use crate::Arguments;
use crate::claims::Claims;
use crate::document::part;
use crate::env::{Setup, TestEnv};
use crate::kills::changes_of;
use crate::phase::Phase;

/// The only host.
const ONE: Number = Number(1);
const CLEAN: &str = "PUT nodes/_/states/provision clean";

/// Runs the life of the volumes without a kill, and once for each of its changes.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    ensure!(setup.level == Level::Agent, "the agent makes the volumes: use level 3");
    let env = TestEnv::start(arguments, Setup { hosts: 1, ..setup }).await?;
    let outcome = lives(&env, claims).await;
    env.stop().await?;
    outcome
}

async fn lives(env: &TestEnv, claims: &mut Claims) -> anyhow::Result<()> {
    Phase::Enrol.start(env, ONE).await?;
    Phase::Enrol.wait(env, ONE).await?;
    // The first life also selects the RAID interface, which the node keeps.
    life(env, None).await.context("the first life")?;
    let trace = life(env, None).await;
    let (count, result) = trace.map_or_else(|error| (0, Err(error)), |trace| (trace.len(), once(&trace)));
    claims.record("volumes are made, changed and removed by one cleaning each", result);
    for at in 1..=count {
        let claim = format!("the same when the program is killed after change {at} of {count}");
        claims.record(claim, life(env, Some(at)).await.map(drop));
    }
    claims.record("a failed cleaning is an error, and is repeated", failed(env).await);
    Phase::Delete.start(env, ONE).await?;
    Phase::Delete.wait(env, ONE).await
}

fn volumes(size: u32) -> Value {
    json!([{ "level": "1", "sizeGibibytes": size, "rootVolume": false,
        "physicalDisks": [{ "deviceName": "/dev/sda" }, { "deviceName": "/dev/sdb" }] }])
}

/// Makes volumes, changes them, and removes them. Returns the changes that Ironic accepted.
async fn life(env: &TestEnv, kill_after: Option<usize>) -> anyhow::Result<Vec<String>> {
    changes_of(env, kill_after, async {
        for size in [Some(20), Some(30), None] {
            ordered(env, size).await?;
            made(env, size).await?;
        }
        Ok(())
    })
    .await
}

async fn ordered(env: &TestEnv, size: Option<u32>) -> anyhow::Result<()> {
    let raid = size.map(|size| json!({ "hardwareRAIDVolumes": null, "softwareRAIDVolumes": volumes(size) }));
    env.edit(ONE, json!({ "spec": { "raid": raid } })).await
}

/// Waits until the host is available with these volumes, and compares Ironic's record.
async fn made(env: &TestEnv, size: Option<u32>) -> anyhow::Result<()> {
    let expected = size.map_or_else(|| json!([]), volumes);
    let is_made = |host: Option<&BareMetalHost>| {
        let recorded = host.and_then(|host| host.status.provisioning.raid.as_ref());
        let recorded = recorded.and_then(|raid| serde_json::to_value(&raid.software_raid_volumes).ok());
        Phase::Enrol.is_reached(host) && recorded.as_ref() == Some(&expected)
    };
    env.until(ONE, "available with its volumes", is_made).await?;
    let node = env.node(ONE).await?;
    let sizes = |record: &str| -> Vec<Value> {
        let disks = part(&part(&node, record), "logical_disks");
        let disks = disks.as_array().cloned().unwrap_or_default();
        disks.iter().map(|disk| part(disk, "size_gb")).collect()
    };
    let wanted: Vec<Value> = size.into_iter().map(Value::from).collect();
    ensure!(sizes("raid_config") == wanted, "Ironic made {node}");
    ensure!(sizes("target_raid_config") == wanted, "Ironic was asked for {node}");
    env.lab()?.check_blank(ONE).await
}

/// Each change of the volumes costs one cleaning.
fn once(changes: &[String]) -> anyhow::Result<()> {
    let cleanings = changes.iter().filter(|change| *change == CLEAN).count();
    ensure!(cleanings == 3, "{cleanings} cleanings: {changes:#?}");
    Ok(())
}

async fn failed(env: &TestEnv) -> anyhow::Result<()> {
    let lab = env.lab()?;
    lab.set_faults(ONE, &json!(["clean-step-fails"])).await?;
    ordered(env, Some(20)).await?;
    let has_failed = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.error_message.contains("delete_configuration"))
    };
    env.until(ONE, "in error", has_failed).await?;
    let host = env.get(ONE).await?.context("the host does not exist")?;
    let kind = serde_json::to_value(host.status.error_type)?;
    ensure!(kind == "preparation error", "{kind}");
    lab.set_faults(ONE, &json!([])).await?;
    made(env, Some(20)).await
}
