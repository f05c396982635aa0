//! BIOS settings on the real Ironic: changed by one cleaning each, refused by name before anything is ordered, and applied again after a
//! boot that did not apply them. After each change that Ironic accepts, the program is killed once, and the end is the same.

use anyhow::{Context as _, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, FirmwareSchema, HostFirmwareSettings};
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

/// Runs the life of the settings without a kill, and once for each of its changes.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    ensure!(setup.level == Level::Agent, "a cleaning boots the agent: use level 3");
    let env = TestEnv::start(arguments, Setup { hosts: 1, ..setup }).await?;
    let outcome = lives(&env, claims).await;
    env.stop().await?;
    outcome
}

async fn lives(env: &TestEnv, claims: &mut Claims) -> anyhow::Result<()> {
    let object = json!({ "metadata": { "name": name(ONE) }, "spec": { "settings": {} } });
    env.create::<HostFirmwareSettings>(object).await?;
    Phase::Enrol.start(env, ONE).await?;
    Phase::Enrol.wait(env, ONE).await?;
    claims.record("the registry of the BMC is the schema of the host", schema(env).await);
    let trace = life(env, None).await;
    let (count, result) = trace.map_or_else(|error| (0, Err(error)), |trace| (trace.len(), twice(&trace)));
    claims.record("settings are changed and changed back by one cleaning each", result);
    for at in 1..=count {
        let claim = format!("the same when the program is killed after change {at} of {count}");
        claims.record(claim, life(env, Some(at)).await.map(drop));
    }
    claims.record("settings that are in force cost no cleaning", in_force(env).await);
    claims.record(
        "a setting that the registry does not allow is refused by name",
        refused(env).await,
    );
    claims.record(
        "a setting that no boot applies is an error, and is tried again",
        stuck(env).await,
    );
    env.api::<HostFirmwareSettings>()
        .delete(&name(ONE), &DeleteParams::default())
        .await?;
    Phase::Delete.start(env, ONE).await?;
    Phase::Delete.wait(env, ONE).await
}

async fn ask(env: &TestEnv, settings: Value) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({ "spec": { "settings": settings } }));
    let api = env.api::<HostFirmwareSettings>();
    api.patch(&name(ONE), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The status of a condition of the present generation.
async fn condition(env: &TestEnv, kind: &str) -> anyhow::Result<Option<(String, String)>> {
    let object = env.api::<HostFirmwareSettings>().get(&name(ONE)).await?;
    let conditions = serde_json::to_value(&object.status.conditions)?;
    let mut conditions = conditions.as_array().into_iter().flatten();
    let found = conditions.find(|one| part(one, "type") == kind);
    let found = found.filter(|one| part(one, "observedGeneration") == json!(object.metadata.generation));
    let text = |one: &Value, member: &str| part(one, member).as_str().unwrap_or_default().to_owned();
    Ok(found.map(|one| (text(one, "status"), text(one, "message"))))
}

/// Waits until the machine itself has these settings and the host is available.
async fn has(env: &TestEnv, wanted: &Value) -> anyhow::Result<()> {
    env.eventually(async || {
        let machine = env.machine(ONE).await?;
        let settings = part(&machine, "settings");
        for (setting, value) in wanted.as_object().into_iter().flatten() {
            ensure!(
                part(&settings, setting) == *value,
                "the machine has {settings}, wanted {wanted}"
            );
        }
        let host = env.get(ONE).await?;
        ensure!(Phase::Enrol.is_reached(host.as_ref()), "the host is not available");
        let changed = condition(env, "ChangeDetected").await?;
        ensure!(
            changed.is_some_and(|(status, _)| status == "False"),
            "a change is still detected"
        );
        Ok(())
    })
    .await
}

/// Changes settings of each type, and changes them back. Returns the changes that Ironic accepted.
async fn life(env: &TestEnv, kill_after: Option<usize>) -> anyhow::Result<Vec<String>> {
    changes_of(env, kill_after, async {
        ask(
            env,
            json!({ "ProcTurboMode": "Disabled", "PowerOnDelay": 7, "AssetTag": "rack-7" }),
        )
        .await?;
        has(
            env,
            &json!({ "ProcTurboMode": "Disabled", "PowerOnDelay": 7, "AssetTag": "rack-7" }),
        )
        .await?;
        ask(
            env,
            json!({ "ProcTurboMode": "Enabled", "PowerOnDelay": "0", "AssetTag": null }),
        )
        .await?;
        has(env, &json!({ "ProcTurboMode": "Enabled", "PowerOnDelay": 0 })).await
    })
    .await
}

fn twice(changes: &[String]) -> anyhow::Result<()> {
    let cleanings = changes.iter().filter(|change| *change == CLEAN).count();
    ensure!(cleanings == 2, "{cleanings} cleanings: {changes:#?}");
    Ok(())
}

async fn schema(env: &TestEnv) -> anyhow::Result<()> {
    env.eventually(async || {
        let object = env.api::<HostFirmwareSettings>().get(&name(ONE)).await?;
        let reference = object.status.schema.context("no schema is named")?;
        let schema = env.api::<FirmwareSchema>().get(&reference.name).await?;
        let schema = serde_json::to_value(&schema.spec.schema)?;
        let delay = part(&schema, "PowerOnDelay");
        ensure!(
            part(&delay, "attribute_type") == "Integer" && part(&delay, "upper_bound") == 240,
            "PowerOnDelay is {delay}"
        );
        let mode = part(&schema, "BootMode");
        ensure!(part(&mode, "read_only") == true, "BootMode is {mode}");
        Ok(())
    })
    .await
}

async fn in_force(env: &TestEnv) -> anyhow::Result<()> {
    let changes = changes_of(env, None, async {
        ask(
            env,
            json!({ "ProcTurboMode": "Enabled", "SriovGlobalEnable": "Enabled" }),
        )
        .await?;
        has(env, &json!({ "SriovGlobalEnable": "Enabled" })).await
    })
    .await?;
    ensure!(changes.is_empty(), "{changes:#?}");
    Ok(())
}

async fn refused(env: &TestEnv) -> anyhow::Result<()> {
    let changes = changes_of(env, None, async {
        ask(env, json!({ "PowerOnDelay": 241 })).await?;
        env.eventually(async || {
            let valid = condition(env, "Valid").await?;
            let is_named = |(status, message): &(String, String)| status == "False" && message.contains("PowerOnDelay");
            ensure!(valid.as_ref().is_some_and(is_named), "Valid is {valid:?}");
            Ok(())
        })
        .await?;
        ask(env, json!({ "PowerOnDelay": 0 })).await?;
        has(env, &json!({ "PowerOnDelay": 0 })).await
    })
    .await?;
    ensure!(changes.is_empty(), "{changes:#?}");
    Ok(())
}

async fn stuck(env: &TestEnv) -> anyhow::Result<()> {
    let lab = env.lab()?;
    lab.set_faults(ONE, &json!(["settings-stuck"])).await?;
    ask(env, json!({ "PowerOnDelay": 9 })).await?;
    let has_failed = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.error_message.contains("apply_configuration"))
    };
    env.until(ONE, "in error", has_failed).await?;
    let host = env.get(ONE).await?.context("the host does not exist")?;
    let kind = serde_json::to_value(host.status.error_type)?;
    ensure!(kind == "preparation error", "{kind}");
    lab.set_faults(ONE, &json!([])).await?;
    has(env, &json!({ "PowerOnDelay": 9 })).await
}
