//! Updates of the firmware: made before a host is available, in one cleaning with its volumes and settings, once, and never on a
//! machine in use.

mod orders;

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareComponents, HostFirmwareSettings};
use metal3_ironic::calls::{NodeRef, node as node_calls};
use metal3_ironic::model::state::ProvisionState;
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::FirmwareUpdates;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cases::Case;
use crate::env::{CONTROLLER_USER, PASSWORD, Setup, TestEnv, name};
use crate::phases::{image, runs};
use crate::waits::Writes;

const CLEAN: &str = "PUT nodes/_/states/provision clean";
const READ: &str = "GET nodes/_/firmware";

/// A URL with a login and a token, which nothing may show. Ironic masks the token, and what follows.
fn url(file: &str) -> String {
    format!("https://user:{PASSWORD}@firmware.example/{file}?token={PASSWORD}&expires=9")
}

fn update(component: &str, file: &str) -> Value {
    json!({ "component": component, "url": url(file) })
}

async fn ask(env: &TestEnv, updates: Value) {
    env.make::<HostFirmwareComponents>(json!({ "metadata": { "name": name(1) }, "spec": { "updates": updates } }))
        .await;
}

async fn change(env: &TestEnv, updates: Value) {
    let patch = Patch::Merge(json!({ "spec": { "updates": updates } }));
    let api = env.api::<HostFirmwareComponents>();
    api.patch(&name(1), &PatchParams::default(), &patch).await.unwrap();
}

async fn report(env: &TestEnv) -> HostFirmwareComponents {
    env.api::<HostFirmwareComponents>().get(&name(1)).await.unwrap()
}

fn done(env: &TestEnv, what: &str) -> usize {
    env.interceptor.log().done.get(what).copied().unwrap_or_default()
}

/// Status, reason and message of a condition.
fn condition(object: &HostFirmwareComponents, kind: &str) -> (String, String, String) {
    let mut conditions = object.status.conditions.iter();
    let found = conditions.find(|condition| condition.type_ == kind);
    found.map_or_else(Default::default, |found| {
        (
            format!("{:?}", found.status),
            found.reason.clone(),
            found.message.clone(),
        )
    })
}

fn flashed(env: &TestEnv) -> Vec<String> {
    let made = env.machine(1, |machine| machine.flashed.clone());
    made.into_iter().map(|(component, _)| component).collect()
}

fn is_available(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| {
        host.status.provisioning.state.to_string() == "available" && host.status.error_message.is_empty()
    })
}

fn says(part: &str) -> impl Fn(Option<&BareMetalHost>) -> bool {
    move |host| host.is_some_and(|host| host.status.error_message.contains(part))
}

fn is_made(object: &HostFirmwareComponents) -> bool {
    object.status.updates == object.spec.updates && condition(object, "ChangeDetected").0 == "False"
}

/// An available host whose updates are made and reported.
async fn until_made(env: &TestEnv) {
    let mut writes = Writes::default();
    for _ in 0..24 * 720 {
        if writes.are_new(env) && is_made(&report(env).await) && is_available(env.get(1).await.as_ref()) {
            return sleep(Duration::from_secs(2)).await;
        }
        sleep(Duration::from_secs(5)).await;
    }
    let object = report(env).await;
    assert_eq!(
        object.status.updates, object.spec.updates,
        "{:?}",
        object.status.conditions
    );
    assert!(is_available(env.get(1).await.as_ref()), "{:?}", env.get(1).await);
    assert_eq!(condition(&object, "ChangeDetected").0, "False");
}

async fn assert_no_secret(env: &TestEnv) {
    let (host, object) = (env.get(1).await.unwrap(), report(env).await);
    let shown = format!(
        "{} {} {}",
        json!(host.status),
        json!(object.status.conditions),
        env.events()
    );
    assert!(!shown.contains(PASSWORD), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn updates_are_made_before_the_host_is_available_and_reported() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bmc", "bmc-3"), update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    env.until(1, "available host", is_available).await;
    until_made(&env).await;
    assert_eq!(
        (done(&env, CLEAN), flashed(&env)),
        (1, vec!["bmc".to_owned(), "bios".to_owned()])
    );
    assert_eq!(env.machine(1, |machine| machine.counts.erased), 0);
    let object = report(&env).await;
    assert_eq!(
        condition(&object, "Valid"),
        ("True".to_owned(), "OK".to_owned(), String::new())
    );
    assert_eq!(condition(&object, "Updating").1, "UpdateMade");
    let bios = object
        .status
        .components
        .iter()
        .find(|one| one.component == "bios")
        .unwrap();
    assert_eq!(bios.current_version.as_deref(), Some("bios-2"));
    assert_eq!(bios.last_version_flashed.as_deref(), Some("bios-2"));
    assert!(bios.updated_at.is_some() && bios.initial_version != "bios-2");
    let owner = &object.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("BareMetalHost", Some(true)));
    assert_no_secret(&env).await;
    // At rest it costs nothing, and nothing is made again after a restart.
    let (asked, version) = (env.interceptor.log().asked.len(), object.metadata.resource_version);
    sleep(Duration::from_hours(6)).await;
    assert_eq!(env.interceptor.log().asked.len(), asked);
    assert_eq!(report(&env).await.metadata.resource_version, version);
    env.interceptor.kill();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(done(&env, CLEAN), 1);
    // The next file is another request, and so is what is asked for again.
    for (files, cleanings) in [(vec!["bios-3"], 2), (vec![], 2), (vec!["bios-3"], 3)] {
        let files: Vec<_> = files.into_iter().map(|file| update("bios", file)).collect();
        change(&env, json!(files)).await;
        sleep(Duration::from_secs(5)).await;
        until_made(&env).await;
        assert_eq!(done(&env, CLEAN), cleanings);
    }
}

#[tokio::test(start_paused = true)]
async fn host_without_updates_costs_no_cleaning_and_one_without_the_object_no_read() {
    for (asked, reads) in [(None, 0), (Some(json!([])), 1)] {
        let env = TestEnv::new(Setup::default());
        if let Some(asked) = asked.clone() {
            ask(&env, asked).await;
        }
        env.host(1, json!({})).await;
        env.until(1, "available host", is_available).await;
        sleep(Duration::from_hours(1)).await;
        assert!(done(&env, READ) <= reads + 1 && (asked.is_some() || done(&env, READ) == 0));
        assert_eq!(done(&env, CLEAN), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_settings_and_updates_are_made_by_one_cleaning() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.make::<HostFirmwareSettings>(
        json!({ "metadata": { "name": name(1) }, "spec": { "settings": { "ProcTurboMode": "Disabled" } } }),
    )
    .await;
    let volumes = json!({ "softwareRAIDVolumes": [{ "level": "1", "rootVolume": false }] });
    env.host(1, json!({ "raid": volumes })).await;
    until_made(&env).await;
    assert_eq!((done(&env, CLEAN), flashed(&env)), (1, vec!["bios".to_owned()]));
    assert_eq!(
        env.machine(1, |machine| machine.bios["ProcTurboMode"].clone()),
        "Disabled"
    );
    assert_eq!(json!(env.get(1).await.unwrap().status.provisioning.raid), volumes);
    // A failed update makes no volumes again.
    let erased = env.machine(1, |machine| machine.counts.erased);
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Fail);
    change(&env, json!([update("bmc", "bmc-2")])).await;
    env.until(1, "error", says("Firmware update failed")).await;
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
    until_made(&env).await;
    assert_eq!(env.machine(1, |machine| machine.counts.erased), erased);
}

#[tokio::test(start_paused = true)]
async fn invalid_updates_are_named_and_nothing_is_sent_until_they_are_corrected() {
    let env = TestEnv::new(Setup::default());
    ask(
        &env,
        json!([update("psu", "psu-2"), { "component": "bios", "url": "file:///etc/shadow" }]),
    )
    .await;
    env.host(1, json!({})).await;
    env.until(1, "error that names the component", says("psu: only bios, bmc"))
        .await;
    sleep(Duration::from_hours(24)).await;
    let host = env.get(1).await.unwrap();
    let message = &host.status.error_message;
    assert!(message.contains("bios: its URL is not valid"), "{message}");
    assert_eq!((done(&env, CLEAN), host.status.error_count), (0, 1));
    let object = report(&env).await;
    let (valid, reason, why) = condition(&object, "Valid");
    assert!(
        valid == "False" && reason == "InvalidComponent" && why.contains("psu"),
        "{why}"
    );
    assert_eq!(env.events().matches("ValidationFailed").count(), 1);
    change(&env, json!([update("bios", "bios-2")])).await;
    until_made(&env).await;
    assert_eq!(flashed(&env), ["bios"]);
}

#[tokio::test(start_paused = true)]
async fn failed_update_is_repeated_with_backoff_until_it_is_made_or_taken_back() {
    for (fault, is_taken_back) in [
        (FirmwareUpdates::Fail, false),
        (FirmwareUpdates::NeverEnd, false),
        (FirmwareUpdates::NeverEnd, true),
    ] {
        let env = TestEnv::new(Setup::default());
        env.machine(1, |machine| machine.firmware_updates = fault);
        ask(&env, json!([update("bios", "bios-2")])).await;
        env.host(1, json!({})).await;
        let has_failed = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_count >= 3);
        env.until(1, "three failures", has_failed).await;
        env.until(
            1,
            "error that names the update",
            says("updates of the firmware (bios) failed"),
        )
        .await;
        assert_no_secret(&env).await;
        let cleanings = done(&env, CLEAN);
        sleep(Duration::from_hours(24)).await;
        assert!(done(&env, CLEAN) - cleanings < 30, "{fault:?}: {}", done(&env, CLEAN));
        env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
        if is_taken_back {
            change(&env, json!([])).await;
            sleep(Duration::from_secs(5)).await;
        }
        until_made(&env).await;
        // A BMC may end what was taken back while Ironic waited for it.
        assert!(flashed(&env).len() <= 1, "{fault:?}");
        assert_eq!(flashed(&env).len(), usize::from(!is_taken_back), "{fault:?}");
        assert_no_secret(&env).await;
    }
}

/// Ironic discards what a timeout left only while the node is in maintenance.
#[tokio::test(start_paused = true)]
async fn update_whose_maintenance_an_operator_ends_is_repeated() {
    let env = TestEnv::new(Setup::default());
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::NeverEnd);
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    while env
        .node(1)
        .await
        .is_none_or(|node| node.provision_state != ProvisionState::CleanFailed)
    {
        sleep(Duration::from_secs(1)).await;
    }
    let node = env.node(1).await.unwrap();
    assert_eq!(node.firmware_left().len(), 1);
    let end = node_calls::clear_maintenance(&NodeRef::Uuid(node.uuid));
    env.ironic.client().unwrap().send(&end).await.unwrap();
    env.machine(1, |machine| machine.firmware_updates = FirmwareUpdates::Succeed);
    until_made(&env).await;
    assert_eq!(flashed(&env), ["bios"]);
    assert!(env.node(1).await.unwrap().firmware_left().is_empty());
}

#[tokio::test(start_paused = true)]
async fn order_that_ironic_has_no_worker_for_is_not_made() {
    let env = TestEnv::new(Setup::default());
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.interceptor.log().rejected = Some((CLEAN, 503));
    env.host(1, json!({})).await;
    sleep(Duration::from_hours(3)).await;
    env.interceptor.kill();
    sleep(Duration::from_hours(1)).await;
    assert!(!is_available(env.get(1).await.as_ref()) && flashed(&env).is_empty());
    env.interceptor.log().rejected = None;
    until_made(&env).await;
    assert_eq!((done(&env, CLEAN), flashed(&env).len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn order_that_may_not_be_recorded_is_not_sent_and_names_the_right() {
    let env = TestEnv::new(Setup::default());
    let rule = Rule::random(1000, Fault::refused(403));
    let rule = rule.verb("patch").resource("hostfirmwarecomponents/status");
    env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    ask(&env, json!([update("bios", "bios-2")])).await;
    env.host(1, json!({})).await;
    let names_it = says("may not patch hostfirmwarecomponents/status.metal3.io");
    env.until(1, "error that names the right", &names_it).await;
    sleep(Duration::from_hours(6)).await;
    let host = env.get(1).await.unwrap();
    let held = host
        .status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Held");
    assert_eq!(held.unwrap().reason, "FirmwarePending");
    assert!(names_it(Some(&host)) && done(&env, CLEAN) == 0);
    env.cluster.inject(Plan::none());
    until_made(&env).await;
    assert_eq!(done(&env, CLEAN), 1);
}

#[tokio::test(start_paused = true)]
async fn machine_in_use_is_updated_when_it_is_prepared_the_next_time() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "image": image() })).await;
    env.until(1, "running host", runs).await;
    let started = env.machine(1, |machine| machine.counts.started);
    ask(&env, json!([update("bios", "bios-2")])).await;
    sleep(Duration::from_hours(2)).await;
    assert_eq!((done(&env, CLEAN), flashed(&env).len()), (0, 0));
    assert_eq!(env.machine(1, |machine| machine.counts.started), started);
    let (detected, _, why) = condition(&report(&env).await, "ChangeDetected");
    assert!(detected == "True" && why.contains("after it is deprovisioned"), "{why}");
    env.edit(1, json!({ "spec": { "image": null } })).await;
    until_made(&env).await;
    assert_eq!((done(&env, CLEAN), flashed(&env).len()), (1, 1));
}

/// Makes an update with volumes, and another one. Returns the numbers of requests to Ironic and of writes.
async fn life(case: Case) -> (usize, u64) {
    let env = TestEnv::new(Setup::default());
    case.inject(&env, None);
    ask(&env, json!([update("bios", "bios-2")])).await;
    let volumes = json!({ "softwareRAIDVolumes": [{ "level": "1" }] });
    env.host(1, json!({ "raid": volumes, "online": false })).await;
    until_made(&env).await;
    change(&env, json!([update("bios", "bios-2"), update("bmc", "bmc-2")])).await;
    sleep(Duration::from_secs(5)).await;
    until_made(&env).await;
    assert_eq!(flashed(&env), ["bios", "bmc"], "{case:?}");
    sleep(Duration::from_mins(30)).await;
    assert_no_secret(&env).await;
    let writes = [
        "baremetalhosts",
        "baremetalhosts/status",
        "hostfirmwarecomponents",
        "hostfirmwarecomponents/status",
    ]
    .map(|resource| env.cluster.audit().of(CONTROLLER_USER, "patch", resource));
    let asked = env.interceptor.log().asked.len();
    (asked, writes.into_iter().sum())
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_request_or_a_write_ends_with_each_update_made_once() {
    for case in Case::all(life(Case::NoFault).await, 7) {
        life(case).await;
    }
}
