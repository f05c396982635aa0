//! Services on the real Ironic: what a HostUpdatePolicy lets a requested reboot change in a running machine, once, without a byte of its
//! disk. After each change that Ironic accepts, the program is killed once, and the end is the same.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy, OperationalStatus,
};
use metal3_ironic_life::Level;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::Arguments;
use crate::checks::check;
use crate::claims::Claims;
use crate::document::part;
use crate::env::{Setup, TestEnv};
use crate::kills::changes_of;
use crate::level::name;
use crate::phase::Phase;
use crate::updates::{offer, updates};

/// The only host.
const ONE: Number = Number(1);
const SERVICE: &str = "PUT nodes/_/states/provision service";
const REBOOT: &str = "reboot.metal3.io";
const TURBO: &str = "ProcTurboMode";

/// Runs a reboot with changes without a kill, and one for each of its changes.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    ensure!(setup.level == Level::Agent, "a service boots the agent: use level 3");
    let env = TestEnv::start(arguments, Setup { hosts: 1, ..setup }).await?;
    let outcome = reboots(&env, claims).await;
    env.stop().await?;
    outcome
}

async fn reboots(env: &TestEnv, claims: &mut Claims) -> anyhow::Result<()> {
    let object = json!({ "metadata": { "name": name(ONE) }, "spec": { "settings": {} } });
    env.create::<HostFirmwareSettings>(object).await?;
    let object = json!({ "metadata": { "name": name(ONE) }, "spec": { "updates": [] } });
    env.create::<HostFirmwareComponents>(object).await?;
    for phase in [Phase::Enrol, Phase::Provision] {
        phase.start(env, ONE).await?;
        phase.wait(env, ONE).await?;
    }
    claims.record("without a policy a reboot changes nothing", without_policy(env).await);
    let spec = json!({ "firmwareSettings": "onReboot", "firmwareUpdates": "onReboot" });
    env.create::<HostUpdatePolicy>(json!({ "metadata": { "name": name(ONE) }, "spec": spec }))
        .await?;
    claims.record(
        "with one nothing changes before a reboot is requested",
        at_rest(env).await,
    );
    let trace = round(env, 0, None).await;
    let (count, result) = trace.map_or_else(|error| (0, Err(error)), |trace| (trace.len(), once(&trace)));
    claims.record("a reboot changes settings and firmware by one service", result);
    for at in 1..=count {
        let claim = format!("the same when the program is killed after change {at} of {count}");
        claims.record(claim, round(env, at, Some(at)).await.map(drop));
    }
    claims.record("what is in force costs no service", in_force(env).await);
    claims.record(
        "updates alone are made without the agent",
        updates_alone(env, count + 1).await,
    );
    claims.record(
        "a file that is no firmware is an error of a machine that runs",
        refused(env).await,
    );
    claims.record(
        "disk and config-drive hold exactly the deployed bytes",
        check(env, Phase::Provision, ONE).await,
    );
    env.api::<HostFirmwareSettings>()
        .delete(&name(ONE), &DeleteParams::default())
        .await?;
    env.api::<HostFirmwareComponents>()
        .delete(&name(ONE), &DeleteParams::default())
        .await?;
    Phase::Delete.start(env, ONE).await?;
    Phase::Delete.wait(env, ONE).await
}

async fn set(env: &TestEnv, turbo: &str) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({ "spec": { "settings": { TURBO: turbo } } }));
    let api = env.api::<HostFirmwareSettings>();
    api.patch(&name(ONE), &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn ask(env: &TestEnv, wanted: &[(&str, String)]) -> anyhow::Result<()> {
    let update = |(component, url): &(&str, String)| json!({ "component": component, "url": url });
    let wanted: Vec<Value> = wanted.iter().map(update).collect();
    let patch = Patch::Merge(json!({ "spec": { "updates": wanted } }));
    let api = env.api::<HostFirmwareComponents>();
    api.patch(&name(ONE), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until the object says when its change is made.
async fn detected(env: &TestEnv, when: &str) -> anyhow::Result<()> {
    env.eventually(async || {
        let object = env.api::<HostFirmwareSettings>().get(&name(ONE)).await?;
        let conditions = serde_json::to_value(&object.status.conditions)?;
        let mut conditions = conditions.as_array().into_iter().flatten();
        let found = conditions.find(|one| part(one, "type") == "ChangeDetected");
        let message = found.map(|one| part(one, "message")).unwrap_or_default();
        let says = message.as_str().is_some_and(|message| message.contains(when));
        ensure!(says, "the change is reported with {message}");
        Ok(())
    })
    .await
}

fn is_rebooted(host: Option<&BareMetalHost>) -> bool {
    Phase::Provision.is_reached(host)
        && host.is_some_and(|host| {
            let annotations = host.metadata.annotations.as_ref();
            let is_requested = annotations.is_some_and(|all| all.contains_key(REBOOT));
            !is_requested && host.status.operational_status == OperationalStatus::Ok
        })
}

async fn reboot(env: &TestEnv) -> anyhow::Result<()> {
    env.edit(ONE, json!({ "metadata": { "annotations": { REBOOT: "" } } }))
        .await?;
    // It is removed when the machine is off.
    let is_taken = |host: Option<&BareMetalHost>| {
        let annotations = host.and_then(|host| host.metadata.annotations.as_ref());
        host.is_some() && !annotations.is_some_and(|all| all.contains_key(REBOOT))
    };
    env.until(ONE, "switched off", is_taken).await?;
    env.eventually(async || {
        let node = env.node(ONE).await?;
        ensure!(part(&node, "power_state") == "power on", "node {node}");
        ensure!(part(&node, "provision_state") == "active", "node {node}");
        ensure!(is_rebooted(env.get(ONE).await?.as_ref()), "the host does not run");
        Ok(())
    })
    .await
}

/// Waits until the machine itself has this mode and these versions, and the host runs.
async fn has(env: &TestEnv, turbo: &str, versions: &[(&str, &str)]) -> anyhow::Result<()> {
    env.eventually(async || {
        let machine = env.machine(ONE).await?;
        let (settings, firmware) = (part(&machine, "settings"), part(&machine, "firmware"));
        ensure!(part(&settings, TURBO) == turbo, "the machine has {settings}");
        for (component, version) in versions {
            ensure!(part(&firmware, component) == *version, "the machine has {firmware}");
        }
        ensure!(is_rebooted(env.get(ONE).await?.as_ref()), "the host does not run");
        Ok(())
    })
    .await
}

fn services(changes: &[String]) -> usize {
    changes.iter().filter(|change| *change == SERVICE).count()
}

async fn without_policy(env: &TestEnv) -> anyhow::Result<()> {
    let changes = changes_of(env, None, async {
        set(env, "Disabled").await?;
        detected(env, "prepared the next time").await?;
        reboot(env).await?;
        has(env, "Enabled", &[]).await
    })
    .await?;
    ensure!(services(&changes) == 0, "{changes:#?}");
    Ok(())
}

async fn at_rest(env: &TestEnv) -> anyhow::Result<()> {
    let changes = changes_of(env, None, async {
        detected(env, "rebooted the next time").await?;
        sleep(Duration::from_secs(20)).await;
        has(env, "Enabled", &[]).await
    })
    .await?;
    ensure!(changes.is_empty(), "{changes:#?}");
    Ok(())
}

/// Changes the mode and both components. Returns the changes that Ironic accepted.
async fn round(env: &TestEnv, number: usize, kill_after: Option<usize>) -> anyhow::Result<Vec<String>> {
    let before = updates(env).await?;
    let turbo = if number.is_multiple_of(2) {
        "Disabled"
    } else {
        "Enabled"
    };
    let (bios, bmc) = (format!("2.{number}"), format!("3.{number}"));
    let wanted = [("bios", offer(env, "bios", &bios)?), ("bmc", offer(env, "bmc", &bmc)?)];
    set(env, turbo).await?;
    ask(env, &wanted).await?;
    detected(env, "rebooted the next time").await?;
    let changes = changes_of(env, kill_after, async {
        reboot(env).await?;
        has(env, turbo, &[("bios", &bios), ("bmc", &bmc)]).await
    })
    .await?;
    let made = updates(env).await?.saturating_sub(before);
    ensure!(made == 2, "{made} updates were made instead of two: {changes:#?}");
    check(env, Phase::Provision, ONE).await?;
    Ok(changes)
}

fn once(changes: &[String]) -> anyhow::Result<()> {
    let services = services(changes);
    ensure!(services == 1, "{services} services: {changes:#?}");
    Ok(())
}

async fn in_force(env: &TestEnv) -> anyhow::Result<()> {
    let changes = changes_of(env, None, reboot(env)).await?;
    ensure!(services(&changes) == 0, "{changes:#?}");
    Ok(())
}

async fn updates_alone(env: &TestEnv, number: usize) -> anyhow::Result<()> {
    let version = format!("2.{number}");
    let wanted = [("bios", offer(env, "bios", &version)?)];
    let changes = changes_of(env, None, async {
        ask(env, &wanted).await?;
        reboot(env).await?;
        env.eventually(async || {
            let firmware = part(&env.machine(ONE).await?, "firmware");
            ensure!(
                part(&firmware, "bios") == version.as_str(),
                "the machine has {firmware}"
            );
            ensure!(is_rebooted(env.get(ONE).await?.as_ref()), "the host does not run");
            Ok(())
        })
        .await
    })
    .await?;
    once(&changes)
}

async fn refused(env: &TestEnv) -> anyhow::Result<()> {
    ask(env, &[("bios", offer(env, "nic", "9.9")?)]).await?;
    env.edit(ONE, json!({ "metadata": { "annotations": { REBOOT: "" } } }))
        .await?;
    let has_failed = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.error_message.contains("firmware") && host.status.powered_on)
    };
    env.until(ONE, "in error and on", has_failed).await?;
    let host = env.get(ONE).await?.context("the host does not exist")?;
    let kind = serde_json::to_value(host.status.error_type)?;
    ensure!(kind == "servicing error", "{kind}: {}", host.status.error_message);
    ask(env, &[("bios", offer(env, "bios", "9.9")?)]).await?;
    reboot(env).await?;
    env.eventually(async || {
        let firmware = part(&env.machine(ONE).await?, "firmware");
        ensure!(part(&firmware, "bios") == "9.9", "the machine has {firmware}");
        ensure!(is_rebooted(env.get(ONE).await?.as_ref()), "the host does not run");
        Ok(())
    })
    .await
}
