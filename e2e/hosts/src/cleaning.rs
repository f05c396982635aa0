//! Disks that a host keeps, on the real Ironic: the machine is deployed and deprovisioned, and its disk for data has the same bytes
//! after that, while the other one is blank. After each change that Ironic accepts, the program is killed once, and the end is
//! the same. A host that keeps an unknown disk is not deprovisioned, and one that keeps none has all erased.

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
const SYSTEM: &str = "sda";
const DATA: &str = "sdb";

/// Runs the life of the disk without a kill, and once for each of its changes.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    ensure!(setup.level == Level::Agent, "the agent erases disks: use level 3");
    let env = TestEnv::start(arguments, Setup { hosts: 1, ..setup }).await?;
    let outcome = lives(&env, claims).await;
    env.stop().await?;
    outcome
}

async fn lives(env: &TestEnv, claims: &mut Claims) -> anyhow::Result<()> {
    Phase::Enrol.start(env, ONE).await?;
    Phase::Enrol.wait(env, ONE).await?;
    let [system, data] = serial_numbers(env).await?;
    let kept = json!({ "rootDeviceHints": { "serialNumber": system }, "cleaning": keeps(&data) });
    env.edit(ONE, json!({ "spec": kept })).await?;
    // The first life also cleans the new host.
    life(env, None).await.context("the first life")?;
    let trace = life(env, None).await;
    let (count, result) = trace.map_or_else(|error| (0, Err(error)), |trace| (trace.len(), once(&trace)));
    claims.record(
        "a kept disk has the same bytes after a deployment, and the other one is blank",
        result,
    );
    for at in 1..=count {
        let claim = format!("the same when the program is killed after change {at} of {count}");
        claims.record(claim, life(env, Some(at)).await.map(drop));
    }
    claims.record(
        "nothing is erased while a disk that is kept is not known",
        refused(env, &data).await,
    );
    claims.record("a disk that is not kept any more is erased", let_go(env).await);
    Phase::Delete.start(env, ONE).await?;
    Phase::Delete.wait(env, ONE).await
}

fn keeps(serial: &Value) -> Value {
    json!({ "keepDisks": [{ "serialNumber": serial }] })
}

async fn serial_numbers(env: &TestEnv) -> anyhow::Result<[Value; 2]> {
    let hardware = env.hardware(ONE).await?;
    let serial = |index: usize| {
        let found = hardware.pointer(&format!("/storage/{index}/serialNumber"));
        found.cloned().with_context(|| format!("disk {index} of {hardware}"))
    };
    Ok([serial(0)?, serial(1)?])
}

/// Bytes like those of a disk in use.
fn bytes(of: &str) -> Vec<u8> {
    of.bytes().cycle().take(64 << 10).collect()
}

async fn filled(env: &TestEnv) -> anyhow::Result<()> {
    let lab = env.lab()?;
    lab.fill_disk(ONE, SYSTEM, bytes("system")).await?;
    lab.fill_disk(ONE, DATA, bytes("data")).await
}

/// Deploys and deprovisions, and compares the disks. Returns the changes that Ironic accepted.
async fn life(env: &TestEnv, kill_after: Option<usize>) -> anyhow::Result<Vec<String>> {
    filled(env).await?;
    changes_of(env, kill_after, async {
        Phase::Provision.start(env, ONE).await?;
        Phase::Provision.wait(env, ONE).await?;
        env.lab()?.check_disk(ONE, &env.image(ONE)?.bytes).await?;
        data_is_kept(env).await?;
        Phase::Deprovision.start(env, ONE).await?;
        Phase::Deprovision.wait(env, ONE).await?;
        blank(env, SYSTEM, true).await?;
        data_is_kept(env).await
    })
    .await
}

async fn data_is_kept(env: &TestEnv) -> anyhow::Result<()> {
    let found = env.lab()?.read(&format!("/machines/{ONE}/disks/{DATA}")).await?;
    ensure!(found == bytes("data"), "{DATA} has {} other bytes", found.len());
    Ok(())
}

async fn blank(env: &TestEnv, disk: &str, expected: bool) -> anyhow::Result<()> {
    let machine = env.machine(ONE).await?;
    let disks = part(&machine, "disks");
    let mut disks = disks.as_array().into_iter().flatten();
    let found = disks.find(|one| part(one, "name") == disk).context("no such disk")?;
    ensure!(part(found, "written").is_null() == expected, "{disk}: {found}");
    Ok(())
}

/// A life costs one removal, and no order is repeated.
fn once(changes: &[String]) -> anyhow::Result<()> {
    for order in ["active", "deleted"] {
        let order = format!("PUT nodes/_/states/provision {order}");
        let times = changes.iter().filter(|change| **change == order).count();
        ensure!(times == 1, "{order} was accepted {times} times: {changes:#?}");
    }
    Ok(())
}

async fn refused(env: &TestEnv, data: &Value) -> anyhow::Result<()> {
    filled(env).await?;
    Phase::Provision.start(env, ONE).await?;
    Phase::Provision.wait(env, ONE).await?;
    let unknown = json!({ "image": null, "cleaning": keeps(&json!("no such disk")) });
    env.edit(ONE, json!({ "spec": unknown })).await?;
    let is_refused = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            host.status
                .error_message
                .contains("spec.cleaning.keepDisks[0] names no disk")
        })
    };
    env.until(ONE, "in error", is_refused).await?;
    env.lab()?.check_disk(ONE, &env.image(ONE)?.bytes).await?;
    data_is_kept(env).await?;
    env.edit(ONE, json!({ "spec": { "cleaning": keeps(data) } })).await?;
    Phase::Deprovision.wait(env, ONE).await?;
    blank(env, SYSTEM, true).await?;
    data_is_kept(env).await
}

async fn let_go(env: &TestEnv) -> anyhow::Result<()> {
    env.edit(ONE, json!({ "spec": { "cleaning": null } })).await?;
    Phase::Provision.start(env, ONE).await?;
    Phase::Provision.wait(env, ONE).await?;
    blank(env, DATA, false).await?;
    Phase::Deprovision.start(env, ONE).await?;
    Phase::Deprovision.wait(env, ONE).await?;
    env.lab()?.check_blank(ONE).await
}
