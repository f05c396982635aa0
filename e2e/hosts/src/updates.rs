//! Updates of the firmware on the real Ironic: one cleaning makes those of the BIOS and of the BMC, in their order; a file that is no
//! firmware is an error, and the right one is made after it. After each change that Ironic accepts, the program is killed once, and no
//! update is made twice.

use std::path::Path;

use anyhow::{Context as _, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareComponents};
use metal3_ironic_life::Level;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use crate::Arguments;
use crate::claims::Claims;
use crate::document::part;
use crate::env::{Setup, TestEnv};
use crate::kills::changes_of;
use crate::level::name;
use crate::phase::Phase;

/// The only host.
const ONE: Number = Number(1);
const CLEAN: &str = "PUT nodes/_/states/provision clean";

/// Runs a round of updates without a kill, and one for each of its changes.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    ensure!(setup.level == Level::Agent, "a cleaning boots the agent: use level 3");
    let env = TestEnv::start(arguments, Setup { hosts: 1, ..setup }).await?;
    let outcome = rounds(&env, claims).await;
    env.stop().await?;
    outcome
}

async fn rounds(env: &TestEnv, claims: &mut Claims) -> anyhow::Result<()> {
    let object = json!({ "metadata": { "name": name(ONE) }, "spec": { "updates": [] } });
    env.create::<HostFirmwareComponents>(object).await?;
    Phase::Enrol.start(env, ONE).await?;
    Phase::Enrol.wait(env, ONE).await?;
    claims.record("the versions of the machine are reported", reported(env).await);
    let trace = round(env, 0, None).await;
    let (count, result) = trace.map_or_else(|error| (0, Err(error)), |trace| (trace.len(), once(&trace)));
    claims.record("BIOS and BMC are updated by one cleaning", result);
    for at in 1..=count {
        let claim = format!("the same when the program is killed after change {at} of {count}");
        claims.record(claim, round(env, at, Some(at)).await.map(drop));
    }
    claims.record("updates that were made cost no cleaning", made(env, count).await);
    claims.record(
        "a file that is no firmware is an error, and the right one is made after it",
        refused(env).await,
    );
    env.api::<HostFirmwareComponents>()
        .delete(&name(ONE), &DeleteParams::default())
        .await?;
    Phase::Delete.start(env, ONE).await?;
    Phase::Delete.wait(env, ONE).await
}

/// Offers a file of firmware, and returns its address.
pub(crate) fn offer(env: &TestEnv, component: &str, version: &str) -> anyhow::Result<String> {
    let (file, endpoint) = (format!("{component}-{version}"), env.session.ironic.endpoint());
    let path = Path::new(&endpoint.files_root).join(&file);
    std::fs::write(&path, format!("lab-firmware {component} {version}\n"))
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(format!("{}/{file}", endpoint.files_url))
}

async fn ask(env: &TestEnv, updates: &[(&str, String)]) -> anyhow::Result<()> {
    let update = |(component, url): &(&str, String)| json!({ "component": component, "url": url });
    let updates: Vec<Value> = updates.iter().map(update).collect();
    let patch = Patch::Merge(json!({ "spec": { "updates": updates } }));
    let api = env.api::<HostFirmwareComponents>();
    api.patch(&name(ONE), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The version that the object reports for a component.
async fn version(env: &TestEnv, component: &str) -> anyhow::Result<String> {
    let object = env.api::<HostFirmwareComponents>().get(&name(ONE)).await?;
    let components = serde_json::to_value(&object.status.components)?;
    let mut components = components.as_array().into_iter().flatten();
    let found = components.find(|one| part(one, "component") == component);
    let found = found.with_context(|| format!("{component} is not reported"))?;
    Ok(part(found, "currentVersion").as_str().unwrap_or_default().to_owned())
}

/// Waits until the machine itself has these versions, the object reports them, and the host is available.
async fn has(env: &TestEnv, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
    env.eventually(async || {
        let firmware = part(&env.machine(ONE).await?, "firmware");
        for (component, wanted) in wanted {
            ensure!(part(&firmware, component) == *wanted, "the machine has {firmware}");
            let reported = version(env, component).await?;
            ensure!(reported == *wanted, "{component} is reported with {reported}");
        }
        let host = env.get(ONE).await?;
        ensure!(Phase::Enrol.is_reached(host.as_ref()), "the host is not available");
        Ok(())
    })
    .await
}

/// The number of updates that the machine was given.
pub(crate) async fn updates(env: &TestEnv) -> anyhow::Result<u64> {
    let firmware = part(&env.machine(ONE).await?, "firmware");
    part(&firmware, "updates")
        .as_u64()
        .context("the machine counts no updates")
}

async fn reported(env: &TestEnv) -> anyhow::Result<()> {
    env.eventually(async || {
        let firmware = part(&env.machine(ONE).await?, "firmware");
        for component in ["bios", "bmc"] {
            let reported = version(env, component).await?;
            ensure!(
                part(&firmware, component) == reported.as_str(),
                "{component} is {reported}, the machine has {firmware}"
            );
        }
        Ok(())
    })
    .await
}

/// The versions of a round.
fn versions(round: usize) -> [String; 2] {
    [format!("2.{round}"), format!("3.{round}")]
}

/// Updates both components to new versions. Returns the changes that Ironic accepted.
async fn round(env: &TestEnv, number: usize, kill_after: Option<usize>) -> anyhow::Result<Vec<String>> {
    let before = updates(env).await?;
    let [bios, bmc] = versions(number);
    let wanted = [("bios", offer(env, "bios", &bios)?), ("bmc", offer(env, "bmc", &bmc)?)];
    let changes = changes_of(env, kill_after, async {
        ask(env, &wanted).await?;
        has(env, &[("bios", &bios), ("bmc", &bmc)]).await
    })
    .await?;
    let made = updates(env).await?.saturating_sub(before);
    ensure!(made == 2, "{made} updates were made instead of two: {changes:#?}");
    Ok(changes)
}

fn once(changes: &[String]) -> anyhow::Result<()> {
    let cleanings = changes.iter().filter(|change| *change == CLEAN).count();
    ensure!(cleanings == 1, "{cleanings} cleanings: {changes:#?}");
    Ok(())
}

/// Takes one of the updates that were made out of the spec.
async fn made(env: &TestEnv, last: usize) -> anyhow::Result<()> {
    let [bios, bmc] = versions(last);
    let changes = changes_of(env, None, async {
        ask(env, &[("bmc", offer(env, "bmc", &bmc)?)]).await?;
        env.eventually(async || {
            let object = env.api::<HostFirmwareComponents>().get(&name(ONE)).await?;
            ensure!(object.status.updates.len() == 1, "{:?}", object.status.updates);
            Ok(())
        })
        .await?;
        has(env, &[("bios", &bios), ("bmc", &bmc)]).await
    })
    .await?;
    ensure!(changes.is_empty(), "{changes:#?}");
    Ok(())
}

async fn refused(env: &TestEnv) -> anyhow::Result<()> {
    let (before, wrong) = (updates(env).await?, offer(env, "nic", "9.9")?);
    ask(env, &[("bios", wrong)]).await?;
    let has_failed =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.contains("firmware"));
    env.until(ONE, "in error", has_failed).await?;
    let host = env.get(ONE).await?.context("the host does not exist")?;
    let kind = serde_json::to_value(host.status.error_type)?;
    ensure!(kind == "preparation error", "{kind}: {}", host.status.error_message);
    ask(env, &[("bios", offer(env, "bios", "9.9")?)]).await?;
    has(env, &[("bios", "9.9")]).await?;
    let made = updates(env).await?.saturating_sub(before);
    ensure!(
        made == 2,
        "{made} updates were tried instead of the wrong and the right one"
    );
    Ok(())
}
