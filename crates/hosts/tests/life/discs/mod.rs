//! Images in the virtual drives of hosts.

mod failures;
mod outdated;
mod released;
mod sweep;

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage, DataImageStatus};
use metal3_ironic::model::state::PowerState;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::disturbances::provisioned;
use crate::env::{NAMESPACE, Setup, TestEnv, address};
use crate::phases::image;
use crate::unserved::{delete, until_gone};

const URL: &str = "http://images.example/data.iso";
const OTHER: &str = "http://images.example/other.iso";
const HOUR: Duration = Duration::from_hours(1);
const MINUTES: Duration = Duration::from_mins(3);

async fn env() -> TestEnv {
    env_with(Setup::default())
}

fn env_with(setup: Setup) -> TestEnv {
    TestEnv::new(Setup {
        data_images: true,
        ..setup
    })
}

/// A host that runs an image.
async fn running() -> TestEnv {
    running_with(Setup::default()).await
}

async fn running_with(setup: Setup) -> TestEnv {
    let env = env_with(setup);
    provisioned(&env, 1).await;
    sleep(MINUTES).await;
    env
}

/// The same with an image in its drive.
async fn with_disc() -> TestEnv {
    filled(running().await).await
}

/// The same on a machine that boots from the network: Ironic leaves its drive as it is.
async fn network_with_disc() -> TestEnv {
    let env = env().await;
    env.host(1, json!({ "bmc": network_bmc(), "image": image() })).await;
    env.until_state(1, "provisioned").await;
    sleep(MINUTES).await;
    filled(env).await
}

fn network_bmc() -> Value {
    json!({ "address": address(1).replace("redfish-virtualmedia", "redfish"), "credentialsName": "bmc-1" })
}

async fn filled(env: TestEnv) -> TestEnv {
    insert(&env, URL).await;
    sleep(MINUTES).await;
    restart(&env).await;
    assert_eq!(disc(&env).as_deref(), Some(URL));
    sleep(MINUTES).await;
    env
}

async fn insert(env: &TestEnv, url: &str) {
    let document = json!({ "metadata": { "name": "host-1" }, "spec": { "url": url } });
    env.make::<DataImage>(document).await;
}

async fn edit(env: &TestEnv, change: Value) {
    let api = env.api::<DataImage>();
    let patch = Patch::Merge(change);
    api.patch("host-1", &PatchParams::default(), &patch).await.unwrap();
}

async fn edit_status(env: &TestEnv, status: Value) {
    let api = env.api::<DataImage>();
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status("host-1", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

async fn status(env: &TestEnv) -> DataImageStatus {
    env.api::<DataImage>().get("host-1").await.unwrap().status
}

async fn recorded(env: &TestEnv) -> Option<String> {
    status(env).await.attached_image.map(|attached| attached.url)
}

async fn error(env: &TestEnv) -> String {
    status(env).await.error.unwrap_or_default().message
}

/// The image in the drive.
fn disc(env: &TestEnv) -> Option<String> {
    env.machine(1, |machine| machine.disc.clone())
}

/// The image in the drive at each start of the machine.
fn starts(env: &TestEnv) -> Vec<Option<String>> {
    env.machine(1, |machine| machine.starts.clone())
}

fn last_start(env: &TestEnv) -> Option<String> {
    starts(env).pop().unwrap()
}

/// Requests about the drive.
fn of_drive(env: &TestEnv) -> Vec<String> {
    let log = env.interceptor.log();
    let asked = log.asked.iter().filter(|asked| asked.contains("vmedia"));
    asked.cloned().collect()
}

async fn switch(env: &TestEnv, online: bool) {
    env.edit(1, json!({ "spec": { "online": online } })).await;
    let power = if online { PowerState::On } else { PowerState::Off };
    let is_switched = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.powered_on == online);
    env.until(1, "switched host", is_switched).await;
    env.machine(1, |machine| assert_eq!(machine.power, power));
}

/// The user switches the host off and on.
async fn restart(env: &TestEnv) {
    switch(env, false).await;
    switch(env, true).await;
}

#[tokio::test(start_paused = true)]
async fn image_is_inserted_before_the_next_start_and_no_machine_is_restarted_for_it() {
    let env = running().await;
    let before = starts(&env).len();
    insert(&env, URL).await;
    sleep(HOUR).await;
    assert_eq!(
        (starts(&env).len(), disc(&env), of_drive(&env)),
        (before, None, Vec::new())
    );
    let object = env.api::<DataImage>().get("host-1").await.unwrap();
    let host = env.get(1).await.unwrap();
    let owners = object.metadata.owner_references.unwrap();
    assert_eq!(
        owners.iter().map(|owner| &owner.uid).collect::<Vec<_>>(),
        [host.metadata.uid.as_ref().unwrap()]
    );
    assert_eq!(object.metadata.finalizers.unwrap(), ["dataimage.metal3.io"]);
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL), "the machine starts with it");
    sleep(MINUTES).await;
    let status = status(&env).await;
    assert_eq!(status.attached_image.unwrap().url, URL);
    assert!(status.error.is_none() && status.last_reconciled.is_some());
    assert!(env.events().contains("DataImageAttached"));
    // At rest it costs nothing.
    let asked = env.interceptor.log().asked.len();
    sleep(24 * HOUR).await;
    assert_eq!(env.interceptor.log().asked.split_off(asked), Vec::<String>::new());
    assert_eq!(starts(&env).len(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn reboot_annotation_starts_the_machine_with_the_image() {
    let env = running().await;
    insert(&env, URL).await;
    let before = starts(&env).len();
    let reboot = json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } });
    env.edit(1, reboot).await;
    sleep(HOUR).await;
    assert_eq!(starts(&env).split_off(before), [Some(URL.to_owned())]);
    assert!(env.events().contains("DataImageAttached"));
}

#[tokio::test(start_paused = true)]
async fn start_of_a_host_without_an_image_costs_no_request_about_the_drive() {
    let env = running().await;
    let asked = env.interceptor.log().asked.len();
    restart(&env).await;
    sleep(HOUR).await;
    assert_eq!(of_drive(&env), Vec::<String>::new());
    let reads = env.interceptor.log().asked.split_off(asked);
    assert_eq!(
        reads.iter().filter(|asked| asked.contains("power on")).count(),
        1,
        "{reads:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn start_with_the_recorded_image_reads_the_drive_and_changes_nothing() {
    let env = with_disc().await;
    let asked = of_drive(&env).len();
    restart(&env).await;
    assert_eq!(of_drive(&env).split_off(asked), ["GET nodes/_/vmedia"]);
    assert_eq!(last_start(&env).as_deref(), Some(URL));
}

#[tokio::test(start_paused = true)]
async fn another_url_is_inserted_at_the_next_start() {
    let env = with_disc().await;
    let before = starts(&env).len();
    edit(&env, json!({ "spec": { "url": OTHER } })).await;
    sleep(HOUR).await;
    assert_eq!((disc(&env).as_deref(), starts(&env).len()), (Some(URL), before));
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(OTHER));
    sleep(MINUTES).await;
    assert_eq!(recorded(&env).await.as_deref(), Some(OTHER));
    let object = env.api::<DataImage>().get("host-1").await.unwrap();
    assert_eq!(object.metadata.namespace.as_deref(), Some(NAMESPACE));
}

#[tokio::test(start_paused = true)]
async fn deleted_image_is_ejected_at_the_next_start_and_the_status_says_so() {
    let env = with_disc().await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert_eq!(disc(&env).as_deref(), Some(URL), "the machine runs");
    let shown = error(&env).await;
    assert!(
        shown.contains("ejected when the host starts next; ") && shown.contains("reboot.metal3.io"),
        "{shown}"
    );
    assert_eq!(status(&env).await.error.unwrap().count, 1, "one write for an hour");
    assert!(env.events().contains("DataImageInDrive"));
    restart(&env).await;
    assert_eq!(last_start(&env), None, "it is ejected before the start");
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn user_info_and_query_of_a_url_reach_ironic_and_nothing_else() {
    let secret = "http://user:canary-pw@images.example/data.iso?token=canary-token";
    let env = running().await;
    insert(&env, secret).await;
    env.machine(1, |machine| machine.discs_refused = 1);
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(secret));
    let events = env.events();
    assert!(
        events.contains("DataImageFailed") && !events.contains("canary"),
        "{events}"
    );
    env.machine(1, |machine| machine.discs_refused = 9);
    edit(&env, json!({ "spec": { "url": format!("{secret}&more") } })).await;
    restart(&env).await;
    sleep(MINUTES).await;
    let shown = error(&env).await;
    assert!(!shown.is_empty() && !shown.contains("canary"), "{shown}");
    let host = format!("{:?}", env.get(1).await.unwrap());
    assert!(!host.contains("canary-token"), "{host}");
}
