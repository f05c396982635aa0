//! BIOS settings: applied before a host is available, in one cleaning with its volumes, and never to a machine in use.

mod reports;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, FirmwareSchema, HostFirmwareSettings};
use metal3_hosts::needs::{Hosts, OwnedByHosts};
use metal3_runtime::access::Role as _;
use metal3_sim_bmc::fault::Fault as MachineFault;
use metal3_sim_ironic::BiosReports;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cases::Case;
use crate::env::{CONTROLLER_USER, Setup, TestEnv, name};
use crate::phases::{image, runs};
use crate::waits::Writes;

const CLEAN: &str = "PUT nodes/_/states/provision clean";
const READ: &str = "GET nodes/_/bios";
const PASSWORD: &str = "bios-canary";

fn done(env: &TestEnv, what: &str) -> usize {
    env.interceptor.log().done.get(what).copied().unwrap_or_default()
}

async fn ask(env: &TestEnv, settings: Value) {
    env.make::<HostFirmwareSettings>(json!({ "metadata": { "name": name(1) }, "spec": { "settings": settings } }))
        .await;
}

/// Null removes a setting.
async fn change(env: &TestEnv, settings: Value) {
    let patch = Patch::Merge(json!({ "spec": { "settings": settings } }));
    let api = env.api::<HostFirmwareSettings>();
    api.patch(&name(1), &PatchParams::default(), &patch).await.unwrap();
}

async fn report(env: &TestEnv) -> HostFirmwareSettings {
    env.api::<HostFirmwareSettings>().get(&name(1)).await.unwrap()
}

/// The status and the message of a condition of the present generation.
fn condition(object: &HostFirmwareSettings, kind: &str) -> (String, String) {
    let mut conditions = object.status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind);
    let found = found.filter(|found| found.observed_generation == object.metadata.generation);
    found.map_or_else(Default::default, |found| {
        (format!("{:?}", found.status), found.message.clone())
    })
}

/// A setting of the machine itself.
fn has(env: &TestEnv, setting: &str) -> Value {
    env.machine(1, |machine| machine.bios[setting].clone())
}

fn is_available(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| {
        host.status.provisioning.state.to_string() == "available" && host.status.error_message.is_empty()
    })
}

fn says(part: &str) -> impl Fn(Option<&BareMetalHost>) -> bool {
    move |host| host.is_some_and(|host| host.status.error_message.contains(part))
}

async fn until_set(env: &TestEnv, setting: &str, value: &str) {
    let (mut writes, mut is_ready) = (Writes::default(), false);
    for _ in 0..24 * 720 {
        if writes.are_new(env) {
            is_ready = is_available(env.get(1).await.as_ref());
        }
        if is_ready && has(env, setting) == value {
            // The report follows the host.
            return sleep(Duration::from_secs(2)).await;
        }
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(has(env, setting), value, "{setting}: {:?}", env.get(1).await);
    assert!(is_available(env.get(1).await.as_ref()), "{:?}", env.get(1).await);
}

/// The API server enforces the permissions of owner references; those of the roles are granted.
fn enforce_owner_permissions(env: &TestEnv) {
    let roles = Hosts::permissions().into_iter().chain(OwnedByHosts::permissions());
    let granted: BTreeSet<(&str, String, String)> =
        roles.map(|need| (need.verb, need.group.clone(), need.path())).collect();
    env.cluster.enforce_owner_permissions(Arc::new(move |access| {
        let wanted = (access.verb, access.group.to_owned(), access.resource.to_owned());
        access.user != CONTROLLER_USER || granted.contains(&wanted)
    }));
}

fn mirror() -> Value {
    json!({ "softwareRAIDVolumes": [{ "level": "1", "sizeGibibytes": 20, "rootVolume": false }] })
}

#[tokio::test(start_paused = true)]
async fn settings_are_applied_before_the_host_is_available_and_reported() {
    let env = TestEnv::new(Setup::default());
    enforce_owner_permissions(&env);
    let asked = json!({ "ProcTurboMode": "disabled", "NetworkBootRetryCount": 5, "QuietBoot": "False", "AssetTag": 7 });
    ask(&env, asked).await;
    env.host(1, json!({})).await;
    env.until(1, "available host", is_available).await;
    assert_eq!(done(&env, CLEAN), 1);
    for (setting, value) in [
        ("ProcTurboMode", "Disabled"),
        ("NetworkBootRetryCount", "5"),
        ("QuietBoot", "0"),
        ("AssetTag", "7"),
    ] {
        assert_eq!(has(&env, setting), value);
    }
    assert_eq!(env.machine(1, |machine| machine.counts.erased), 0);
    sleep(Duration::from_secs(5)).await;
    let object = report(&env).await;
    assert_eq!(
        condition(&object, "ChangeDetected"),
        ("False".to_owned(), String::new())
    );
    assert_eq!(condition(&object, "Valid"), ("True".to_owned(), String::new()));
    assert_eq!(object.status.settings["ProcTurboMode"], "Disabled");
    assert!(object.status.last_updated.is_some());
    let host = env.get(1).await.unwrap();
    let owner = &object.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((Some(&owner.uid), owner.controller), (host.metadata.uid.as_ref(), None));
    let reference = object.status.schema.clone().unwrap();
    let schema = env.api::<FirmwareSchema>().get(&reference.name).await.unwrap();
    assert!(schema.spec.hardware_vendor.is_some() && schema.spec.hardware_model.is_some());
    for (setting, accepts) in [
        (
            "NetworkBootRetryCount",
            json!({ "attribute_type": "Integer", "lower_bound": 0, "upper_bound": 20, "read_only": false, "unique": false }),
        ),
        (
            "AssetTag",
            json!({ "attribute_type": "String", "min_length": 1, "max_length": 16, "read_only": false, "unique": false }),
        ),
        (
            "BootMode",
            json!({ "attribute_type": "Enumeration", "allowable_values": ["Uefi", "Bios"], "read_only": false, "unique": false }),
        ),
        (
            "SystemModelName",
            json!({ "attribute_type": "String", "read_only": true, "unique": false }),
        ),
    ] {
        assert_eq!(json!(schema.spec.schema[setting]), accepts, "{setting}");
    }
    let shown = format!("{} {}", json!(object), json!(schema));
    assert!(!shown.contains("AdminPassword") && !shown.contains(PASSWORD), "{shown}");
    // At rest it costs nothing.
    let (asked, version) = (env.interceptor.log().asked.len(), object.metadata.resource_version);
    sleep(Duration::from_hours(6)).await;
    assert_eq!(env.interceptor.log().asked.len(), asked);
    assert_eq!(report(&env).await.metadata.resource_version, version);
}

#[tokio::test(start_paused = true)]
async fn settings_in_force_cost_no_cleaning_and_a_host_without_settings_no_read() {
    for (asked, cleanings, reads) in [
        (None, 0, 0),
        (Some(json!({ "ProcTurboMode": "ENABLED", "QuietBoot": "true" })), 0, 2),
    ] {
        let env = TestEnv::new(Setup::default());
        if let Some(asked) = asked.clone() {
            ask(&env, asked).await;
        }
        env.host(1, json!({})).await;
        env.until(1, "available host", is_available).await;
        sleep(Duration::from_hours(1)).await;
        assert_eq!(done(&env, CLEAN), cleanings, "{asked:?}");
        assert!(done(&env, READ) <= reads, "{asked:?}: {}", done(&env, READ));
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_and_settings_are_made_by_one_cleaning() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!({ "ProcTurboMode": "Disabled" })).await;
    env.host(1, json!({ "raid": mirror() })).await;
    until_set(&env, "ProcTurboMode", "Disabled").await;
    assert_eq!(done(&env, CLEAN), 1);
    let host = env.get(1).await.unwrap();
    assert_eq!(json!(host.status.provisioning.raid), mirror());
    // A later setting makes no volumes again.
    let erased = env.machine(1, |machine| machine.counts.erased);
    change(&env, json!({ "ProcTurboMode": "Enabled" })).await;
    until_set(&env, "ProcTurboMode", "Enabled").await;
    assert_eq!((done(&env, CLEAN), done(&env, "PUT nodes/_/states/raid")), (2, 1));
    assert_eq!(env.machine(1, |machine| machine.counts.erased), erased);
}

#[tokio::test(start_paused = true)]
async fn setting_that_is_changed_while_the_host_is_available_or_cleaned_is_applied() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!({})).await;
    env.host(1, json!({})).await;
    env.until(1, "available host", is_available).await;
    change(&env, json!({ "NetworkBootRetryCount": 3 })).await;
    until_set(&env, "NetworkBootRetryCount", "3").await;
    assert_eq!(done(&env, CLEAN), 1);
    // Changed back during the cleaning.
    change(&env, json!({ "NetworkBootRetryCount": 4 })).await;
    while done(&env, CLEAN) < 2 {
        sleep(Duration::from_millis(100)).await;
    }
    change(&env, json!({ "NetworkBootRetryCount": 3 })).await;
    until_set(&env, "NetworkBootRetryCount", "3").await;
    assert_eq!(done(&env, CLEAN), 3);
    // A setting that is not asked for any more stays.
    change(&env, json!({ "NetworkBootRetryCount": null })).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!((done(&env, CLEAN), has(&env, "NetworkBootRetryCount")), (3, json!("3")));
}

#[tokio::test(start_paused = true)]
async fn invalid_settings_are_named_and_nothing_is_sent_until_they_are_corrected() {
    let env = TestEnv::new(Setup::default());
    let wrong = json!({ "ProcTurboMode": "Sometimes", "Turbo": 1, "SystemModelName": "R2", "AdminPassword": "calvin" });
    ask(&env, wrong).await;
    env.host(1, json!({ "raid": mirror() })).await;
    env.until(
        1,
        "error that names the setting",
        says("Turbo: it is not in the schema"),
    )
    .await;
    sleep(Duration::from_hours(24)).await;
    let host = env.get(1).await.unwrap();
    let message = &host.status.error_message;
    for part in [
        "use one of Enabled, Disabled",
        "SystemModelName: it is read-only",
        "AdminPassword: passwords cannot",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!((done(&env, CLEAN), host.status.error_count), (0, 1));
    let object = report(&env).await;
    let (valid, why) = condition(&object, "Valid");
    assert!(
        valid == "False" && why.contains("Turbo: it is not in the schema"),
        "{valid} {why}"
    );
    let events = env.events();
    assert_eq!(events.matches("ValidationFailed").count(), 1, "{events}");
    assert!(!format!("{events} {message} {}", json!(object.status)).contains("calvin"));
    let right = json!({ "ProcTurboMode": "Disabled", "Turbo": null, "SystemModelName": null, "AdminPassword": null });
    change(&env, right).await;
    until_set(&env, "ProcTurboMode", "Disabled").await;
    // An available host with an invalid setting stays available.
    change(&env, json!({ "ProcTurboMode": "Sometimes" })).await;
    sleep(Duration::from_hours(1)).await;
    assert!(is_available(env.get(1).await.as_ref()));
    assert_eq!(condition(&report(&env).await, "Valid").0, "False");
    assert_eq!(done(&env, CLEAN), 1);
}

#[tokio::test(start_paused = true)]
async fn machine_that_answers_in_another_spelling_is_cleaned_once() {
    let env = TestEnv::new(Setup::default());
    env.machine(1, |machine| machine.bios_reports = BiosReports::OtherText);
    ask(&env, json!({ "AssetTag": "rack-7" })).await;
    env.host(1, json!({})).await;
    let still = says("still reports AssetTag=[rack-7] (asked: rack-7)");
    env.until(1, "error that names the report", &still).await;
    for _ in 0..2 {
        sleep(Duration::from_hours(36)).await;
        assert_eq!(done(&env, CLEAN), 1);
        assert!(still(env.get(1).await.as_ref()));
        env.interceptor.kill();
    }
    sleep(Duration::from_hours(1)).await;
    assert_eq!(done(&env, CLEAN), 1);
    // The next value is tried.
    change(&env, json!({ "AssetTag": "rack-8" })).await;
    env.until(1, "next error", says("AssetTag=[rack-8] (asked: rack-8)"))
        .await;
    assert_eq!(done(&env, CLEAN), 2);
    change(&env, json!({ "AssetTag": "[rack-8]" })).await;
    env.until(1, "available host", is_available).await;
    assert_eq!(done(&env, CLEAN), 2);
}

/// Ironic compares the settings itself after the boot, and fails the step.
#[tokio::test(start_paused = true)]
async fn failed_cleaning_is_repeated_with_backoff_and_makes_no_volumes() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "raid": mirror() })).await;
    env.until(1, "available host", is_available).await;
    ask(&env, json!({ "ProcTurboMode": "Disabled" })).await;
    for fault in [BiosReports::Unchanged, BiosReports::Asked] {
        env.machine(1, |machine| machine.bios_reports = fault);
        if fault == BiosReports::Asked {
            env.set_faults(1, &[MachineFault::NoBoot]);
            change(&env, json!({ "NetworkBootRetryCount": 4 })).await;
        }
        let has_failed = |host: Option<&BareMetalHost>| {
            host.is_some_and(|host| host.status.error_count >= 3 && !host.status.error_message.is_empty())
        };
        env.until(1, "three failures", has_failed).await;
        let host = env.get(1).await.unwrap();
        assert_eq!(json!(host.status.provisioning.raid), mirror(), "{fault:?}");
        let cleanings = done(&env, CLEAN);
        sleep(Duration::from_hours(24)).await;
        assert!(done(&env, CLEAN) - cleanings < 30, "{fault:?}: {}", done(&env, CLEAN));
        env.set_faults(1, &[]);
        env.machine(1, |machine| machine.bios_reports = BiosReports::Asked);
        until_set(&env, "ProcTurboMode", "Disabled").await;
    }
    until_set(&env, "NetworkBootRetryCount", "4").await;
    assert_eq!(done(&env, "PUT nodes/_/states/raid"), 1);
}

#[tokio::test(start_paused = true)]
async fn machine_in_use_gets_its_settings_when_it_is_prepared_the_next_time() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "image": image() })).await;
    env.until(1, "running host", runs).await;
    let started = env.machine(1, |machine| machine.counts.started);
    ask(&env, json!({ "ProcTurboMode": "Disabled" })).await;
    sleep(Duration::from_hours(2)).await;
    assert_eq!((done(&env, CLEAN), has(&env, "ProcTurboMode")), (0, json!("Enabled")));
    assert_eq!(env.machine(1, |machine| machine.counts.started), started);
    let (detected, why) = condition(&report(&env).await, "ChangeDetected");
    assert_eq!(
        (detected.as_str(), why.as_str()),
        ("True", "ProcTurboMode: applied when the host is prepared the next time")
    );
    env.edit(1, json!({ "spec": { "image": null } })).await;
    until_set(&env, "ProcTurboMode", "Disabled").await;
    assert_eq!(done(&env, CLEAN), 1);
    // A user of the machine may change it there. Ironic sees that when it cleans the machine.
    env.edit(1, json!({ "spec": { "image": image() } })).await;
    env.until(1, "running host", runs).await;
    env.machine(1, |machine| {
        machine.bios.insert("ProcTurboMode".to_owned(), json!("Enabled"));
    });
    env.edit(1, json!({ "spec": { "image": null } })).await;
    until_set(&env, "ProcTurboMode", "Disabled").await;
    assert_eq!(done(&env, CLEAN), 2);
}

/// Applies a setting with volumes, and another one. Returns the numbers of requests to Ironic and of writes.
async fn life(case: Case) -> (usize, u64) {
    let env = TestEnv::new(Setup::default());
    case.inject(&env, None);
    ask(&env, json!({ "ProcTurboMode": "Disabled" })).await;
    env.host(1, json!({ "raid": mirror(), "online": false })).await;
    until_set(&env, "ProcTurboMode", "Disabled").await;
    change(&env, json!({ "QuietBoot": "false" })).await;
    until_set(&env, "QuietBoot", "0").await;
    assert!(done(&env, CLEAN) <= 4, "{case:?}: {:#?}", env.interceptor.log().asked);
    sleep(Duration::from_mins(30)).await;
    let object = report(&env).await;
    assert_eq!(condition(&object, "ChangeDetected").0, "False", "{case:?}");
    assert!(object.metadata.owner_references.is_some(), "{case:?}");
    let writes = [
        "baremetalhosts",
        "baremetalhosts/status",
        "hostfirmwaresettings",
        "hostfirmwaresettings/status",
    ]
    .map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource));
    let asked = env.interceptor.log().asked.len();
    (asked, writes.into_iter().sum())
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_request_or_a_write_ends_with_the_settings_that_are_asked_for() {
    for case in Case::all(life(Case::NoFault).await, 11) {
        life(case).await;
    }
}
