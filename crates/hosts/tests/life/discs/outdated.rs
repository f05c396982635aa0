//! Records and views that do not agree with the drive.

use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage};
use metal3_ironic::calls::{NodeRef, hardware};
use serde_json::json;
use tokio::time::sleep;

use super::{
    HOUR, MINUTES, OTHER, URL, disc, edit, edit_status, insert, last_start, of_drive, recorded, restart, running,
    starts, switch, with_disc,
};
use crate::env::TestEnv;
use crate::interceptor::IronicFault;
use crate::unserved::delete;

fn is_on(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| host.status.powered_on)
}

/// Another client of Ironic, such as the Go manager, inserts an image.
async fn insert_elsewhere(env: &TestEnv, url: &str) {
    let node = env.node(1).await.unwrap();
    let call = hardware::attach_virtual_cd(&NodeRef::from(&node.uuid), url).unwrap();
    env.ironic.client().unwrap().send(&call).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drive_that_was_emptied_gets_the_image_again() {
    let env = with_disc().await;
    env.machine(1, |machine| (machine.media, machine.disc) = (None, None));
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
}

#[tokio::test(start_paused = true)]
async fn other_disc_is_replaced() {
    let env = with_disc().await;
    env.machine(1, |machine| {
        machine.media = Some("http://bmc.example/by-hand.iso".to_owned());
        machine.disc = Some("by hand".to_owned());
    });
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
}

/// The node is adopted under another UUID, and the drive holds the disc of the former node.
#[tokio::test(start_paused = true)]
async fn node_that_ironic_lost_gets_the_image_again() {
    let env = with_disc().await;
    let former = env.node(1).await.unwrap().uuid;
    env.ironic.lose_database();
    let is_adopted = |host: Option<&BareMetalHost>| {
        is_on(host)
            && host.is_some_and(|host| {
                let id = &host.status.provisioning.id;
                !id.is_empty() && id != former.as_str()
            })
    };
    env.until(1, "adopted host", is_adopted).await;
    sleep(MINUTES).await;
    let asked = of_drive(&env).len();
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
    let asked = of_drive(&env).split_off(asked);
    assert!(asked.iter().any(|asked| asked.starts_with("POST")), "{asked:?}");
}

/// The Go manager inserted an image, and was replaced before it could record that.
#[tokio::test(start_paused = true)]
async fn insertion_that_the_go_manager_began_is_no_record() {
    for (inserted, wanted) in [(URL, URL), (OTHER, URL)] {
        let env = running().await;
        switch(&env, false).await;
        insert(&env, wanted).await;
        sleep(MINUTES).await;
        insert_elsewhere(&env, inserted).await;
        // Ironic has not ended it.
        env.interceptor.kill();
        switch(&env, true).await;
        assert_eq!(last_start(&env).as_deref(), Some(wanted));
        sleep(MINUTES).await;
        assert_eq!(recorded(&env).await.as_deref(), Some(wanted));
    }
}

/// The Go manager recorded an insertion that Ironic did not end.
#[tokio::test(start_paused = true)]
async fn record_of_the_go_manager_is_compared_with_the_drive() {
    let env = running().await;
    switch(&env, false).await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    edit_status(
        &env,
        json!({ "attachedImage": { "url": URL }, "error": { "count": 57, "message": "old" } }),
    )
    .await;
    switch(&env, true).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
    sleep(MINUTES).await;
    assert!(super::status(&env).await.error.is_none());
}

/// The edit comes while Ironic inserts the image before.
#[tokio::test(start_paused = true)]
async fn url_that_changes_during_the_insertion_is_the_one_that_the_machine_starts_with() {
    let env = running().await;
    switch(&env, false).await;
    insert(&env, URL).await;
    env.edit(1, json!({ "spec": { "online": true } })).await;
    let mut waited = 0;
    while of_drive(&env).iter().all(|asked| !asked.starts_with("POST")) {
        assert!(waited < 600, "{:?}", of_drive(&env));
        sleep(std::time::Duration::from_millis(100)).await;
        waited += 1;
    }
    edit(&env, json!({ "spec": { "url": OTHER } })).await;
    env.until(1, "host that runs", is_on).await;
    assert_eq!(last_start(&env).as_deref(), Some(OTHER));
}

/// The object of another namespace has the same name.
#[tokio::test(start_paused = true)]
async fn object_of_another_namespace_concerns_no_other_host() {
    let env = running().await;
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(env.cluster.client("user"));
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "elsewhere" } })).unwrap();
    namespaces
        .create(&kube::api::PostParams::default(), &namespace)
        .await
        .unwrap();
    let api: kube::Api<DataImage> = kube::Api::namespaced(env.cluster.client("user"), "elsewhere");
    let object = serde_json::from_value(json!({ "metadata": { "name": "host-1" }, "spec": { "url": URL } })).unwrap();
    api.create(&kube::api::PostParams::default(), &object).await.unwrap();
    sleep(MINUTES).await;
    restart(&env).await;
    sleep(HOUR).await;
    assert_eq!((disc(&env), of_drive(&env)), (None, Vec::new()));
    let object = api.get("host-1").await.unwrap();
    assert_eq!(object.metadata.finalizers, None);
}

#[tokio::test(start_paused = true)]
async fn live_image_in_the_drive_is_not_replaced() {
    let env = super::env().await;
    env.host(
        1,
        json!({ "image": { "url": "http://images.example/live.iso", "format": "live-iso" } }),
    )
    .await;
    env.until_state(1, "provisioned").await;
    sleep(MINUTES).await;
    let live = env.machine(1, |machine| machine.media.clone());
    insert(&env, URL).await;
    restart(&env).await;
    assert_eq!(env.machine(1, |machine| machine.media.clone()), live);
    let shown = super::error(&env).await;
    assert!(shown.contains("runs from a disc itself"), "{shown}");
    assert!(!starts(&env).contains(&Some(URL.to_owned())));
    // A record of whatever origin does not eject it, either.
    edit_status(&env, json!({ "attachedImage": { "url": URL } })).await;
    delete::<DataImage>(&env, "host-1").await;
    restart(&env).await;
    assert_eq!(env.machine(1, |machine| machine.media.clone()), live);
}

/// It would be gone from the drive, and the machine run nothing.
#[tokio::test(start_paused = true)]
async fn live_image_of_the_network_runs_with_the_image_in_the_drive() {
    let env = super::env().await;
    let live = json!({ "url": "http://images.example/live.iso", "format": "live-iso" });
    env.host(1, json!({ "bmc": super::network_bmc(), "image": live })).await;
    env.until_state(1, "provisioned").await;
    sleep(MINUTES).await;
    insert(&env, URL).await;
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL));
    let live = env.machine(1, |machine| machine.live.clone().unwrap());
    assert_eq!(
        (live.source.as_str(), live.is_in_drive),
        ("http://images.example/live.iso", false)
    );
}

/// The report of a start comes before it: nothing would report it until the next one.
#[tokio::test(start_paused = true)]
async fn process_that_dies_at_the_start_leaves_the_report_why_the_image_is_missing() {
    let env = super::env().await;
    let live = json!({ "url": "http://images.example/live.iso", "format": "live-iso" });
    env.host(1, json!({ "image": live })).await;
    env.until_state(1, "provisioned").await;
    switch(&env, false).await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    let starts_before = starts(&env).len();
    {
        let mut log = env.interceptor.log();
        log.fault = Some((log.asked.len() + 1, IronicFault::KilledAfter));
    }
    switch(&env, true).await;
    assert!(env.interceptor.log().injected);
    assert_eq!(starts(&env).len(), starts_before + 1);
    let shown = super::error(&env).await;
    assert!(shown.contains("runs from a disc itself"), "{shown}");
}
