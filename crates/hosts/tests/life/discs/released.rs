//! When a deleted DataImage goes.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage, OperationalStatus};
use metal3_ironic::calls::NodeRef;
use metal3_ironic::calls::node::set_maintenance;
use metal3_ironic::version::Microversion;
use metal3_sim_bmc::fault::Fault;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    HOUR, MINUTES, URL, disc, edit_status, error, insert, last_start, network_with_disc, of_drive, restart, running,
    running_with, switch, with_disc,
};
use crate::env::{Setup, TestEnv};
use crate::unserved::{delete, go_manager, is_gone, leave, mark_as_moved, move_host, pause, until_gone};

/// As the Go manager leaves it.
async fn left(env: &TestEnv, recorded: bool) {
    let status = match recorded {
        true => json!({ "attachedImage": { "url": URL } }),
        false => json!({}),
    };
    leave::<DataImage>(env, "host-1", &["dataimage.metal3.io"], json!({ "url": URL }), status).await;
}

async fn annotate(env: &TestEnv, annotations: Value) {
    env.edit(1, json!({ "metadata": { "annotations": annotations } })).await;
}

#[tokio::test(start_paused = true)]
async fn object_that_was_never_inserted_goes_at_once() {
    let env = running().await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(Duration::from_secs(10)).await;
    assert!(is_gone::<DataImage>(&env, "host-1").await);
}

#[tokio::test(start_paused = true)]
async fn finalizer_of_the_go_manager_is_kept_and_served() {
    let env = running().await;
    left(&env, true).await;
    sleep(HOUR).await;
    let object = env.api::<DataImage>().get("host-1").await.unwrap();
    assert_eq!(object.metadata.finalizers.unwrap(), ["dataimage.metal3.io"]);
    assert_eq!(object.metadata.owner_references.unwrap().len(), 1);
    restart(&env).await;
    assert_eq!(last_start(&env).as_deref(), Some(URL), "the drive was empty");
    delete::<DataImage>(&env, "host-1").await;
    switch(&env, false).await;
    sleep(HOUR).await;
    let shown = error(&env).await;
    assert!(shown.contains("; set spec.online of the host to true"), "{shown}");
    switch(&env, true).await;
    until_gone::<DataImage>(&env, "host-1").await;
    assert_eq!(disc(&env), None);
}

/// The host is deleted with its object, as the garbage collector does it: in both orders.
#[tokio::test(start_paused = true)]
async fn image_of_a_deleted_host_is_ejected_before_its_node_is_deleted() {
    for (is_first, is_network) in [(true, true), (false, true), (true, false), (false, false)] {
        let env = if is_network {
            network_with_disc().await
        } else {
            with_disc().await
        };
        if is_first {
            delete::<DataImage>(&env, "host-1").await;
        }
        env.delete(1).await;
        until_gone::<BareMetalHost>(&env, "host-1").await;
        assert_eq!(disc(&env), None, "nothing could eject it later");
        env.cluster.collect_garbage();
        until_gone::<DataImage>(&env, "host-1").await;
    }
}

#[tokio::test(start_paused = true)]
async fn disc_that_cannot_be_ejected_keeps_no_host_from_its_deletion() {
    let env = with_disc().await;
    env.machine(1, |machine| machine.ejects = false);
    env.delete(1).await;
    until_gone::<BareMetalHost>(&env, "host-1").await;
    assert!(env.events().contains("eject the image at the BMC"));
    env.cluster.collect_garbage();
    until_gone::<DataImage>(&env, "host-1").await;
    assert!(env.events().contains("DataImageLeft"));
}

#[tokio::test(start_paused = true)]
async fn object_of_a_detached_host_goes_and_an_event_names_what_is_left() {
    let env = with_disc().await;
    annotate(&env, json!({ "baremetalhost.metal3.io/detached": "" })).await;
    let is_detached = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| host.status.operational_status == OperationalStatus::Detached)
    };
    env.until(1, "detached host", is_detached).await;
    sleep(HOUR).await;
    assert!(!is_gone::<DataImage>(&env, "host-1").await);
    delete::<DataImage>(&env, "host-1").await;
    until_gone::<DataImage>(&env, "host-1").await;
    assert_eq!(disc(&env).as_deref(), Some(URL), "the machine is left as it is");
    assert!(env.events().contains("DataImageLeft"));
}

#[tokio::test(start_paused = true)]
async fn object_of_a_paused_host_is_left_alone() {
    let env = running().await;
    pause(&env).await;
    insert(&env, URL).await;
    sleep(HOUR).await;
    let object = env.api::<DataImage>().get("host-1").await.unwrap();
    assert_eq!(
        (object.metadata.finalizers, object.metadata.owner_references),
        (None, None)
    );
    annotate(&env, json!({ "baremetalhost.metal3.io/paused": null })).await;
    sleep(MINUTES).await;
    pause(&env).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    let shown = error(&env).await;
    assert!(shown.contains("its host is paused; "), "{shown}");
    annotate(&env, json!({ "baremetalhost.metal3.io/paused": null })).await;
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn running_go_manager_keeps_its_objects() {
    let env = running().await;
    go_manager(&env, 1).await;
    left(&env, false).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert_eq!(error(&env).await, "");
    go_manager(&env, 0).await;
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn silence_of_ironic_or_the_bmc_keeps_the_finalizer() {
    for rejected in [
        ("GET nodes/_/vmedia", 500),
        ("GET nodes/_", 503),
        ("GET nodes/_/vmedia", 400),
    ] {
        let env = running().await;
        left(&env, true).await;
        sleep(MINUTES).await;
        env.interceptor.log().rejected = Some(rejected);
        delete::<DataImage>(&env, "host-1").await;
        sleep(HOUR).await;
        let shown = error(&env).await;
        assert!(
            shown.contains("it is deleted, and stays") && shown.contains("; "),
            "{rejected:?}: {shown}"
        );
        env.interceptor.log().rejected = None;
        until_gone::<DataImage>(&env, "host-1").await;
    }
}

/// Nothing was inserted over it, and time alone changes nothing about it.
#[tokio::test(start_paused = true)]
async fn ironic_that_reads_no_drive_keeps_only_what_was_inserted_before() {
    for is_recorded in [false, true] {
        let env = running_with(Setup {
            newest: Some(Microversion::minor(92)),
            ..Setup::default()
        })
        .await;
        insert(&env, URL).await;
        sleep(MINUTES).await;
        restart(&env).await;
        sleep(MINUTES).await;
        let shown = error(&env).await;
        assert!(
            shown.contains("1.93") && shown.contains("or delete the DataImage"),
            "{shown}"
        );
        if is_recorded {
            edit_status(&env, json!({ "attachedImage": { "url": URL } })).await;
        }
        delete::<DataImage>(&env, "host-1").await;
        sleep(Duration::from_mins(1)).await;
        assert_eq!(is_gone::<DataImage>(&env, "host-1").await, !is_recorded);
        if is_recorded {
            let shown = error(&env).await;
            assert!(
                shown.contains("eject the image at the BMC, then remove the finalizer"),
                "{shown}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn object_that_is_deleted_for_a_move_is_not_looked_for_in_ironic() {
    let env = running().await;
    left(&env, true).await;
    mark_as_moved::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    let asked = env.interceptor.log().asked.len();
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert_eq!(env.interceptor.log().asked.split_off(asked), Vec::<String>::new());
    let shown = error(&env).await;
    assert!(shown.contains("clusterctl moves it"), "{shown}");
}

/// Another cluster may serve the node.
#[tokio::test(start_paused = true)]
async fn disc_of_a_host_that_is_absent_while_its_node_exists_is_kept() {
    let env = with_disc().await;
    let asked = of_drive(&env).len();
    move_host(&env).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    let shown = error(&env).await;
    assert!(shown.contains("in the cluster that has the host"), "{shown}");
    assert!(
        of_drive(&env)
            .split_off(asked)
            .iter()
            .all(|asked| asked.starts_with("GET"))
    );
    assert_eq!(disc(&env).as_deref(), Some(URL));
}

/// During a move back, or while a backup is restored, the host exists later than its objects.
#[tokio::test(start_paused = true)]
async fn host_without_node_that_is_absent_for_a_moment_is_not_gone() {
    let env = running().await;
    left(&env, true).await;
    move_host(&env).await;
    env.ironic.lose_database();
    delete::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    assert!(!is_gone::<DataImage>(&env, "host-1").await);
    until_gone::<DataImage>(&env, "host-1").await;
}

/// Its finalizer is on a DataImage that was never inserted, too.
#[tokio::test(start_paused = true)]
async fn dead_bmc_keeps_no_host_from_its_deletion() {
    let env = running().await;
    insert(&env, URL).await;
    sleep(MINUTES).await;
    env.set_faults(1, &[Fault::DeadBmc]);
    env.delete(1).await;
    until_gone::<BareMetalHost>(&env, "host-1").await;
}

/// What is known of the former object says nothing about the insertion that may still come for this one.
#[tokio::test(start_paused = true)]
async fn object_that_replaces_a_deleted_one_waits_for_its_own_insertion() {
    let env = running().await;
    let api = env.api::<DataImage>();
    let document =
        json!({ "metadata": { "name": "host-1", "finalizers": ["example.com/held"] }, "spec": { "url": URL } });
    env.make::<DataImage>(document).await;
    sleep(MINUTES).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    let strip = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let params = PatchParams::default();
    api.patch("host-1", &params, &strip).await.unwrap();
    insert(&env, URL).await;
    sleep(HOUR).await;
    switch(&env, false).await;
    edit_status(&env, json!({ "attachedImage": { "url": URL } })).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(Duration::from_secs(60)).await;
    assert!(!is_gone::<DataImage>(&env, "host-1").await);
    until_gone::<DataImage>(&env, "host-1").await;
}

/// A reboot ejects nothing there, so nothing asks for one.
#[tokio::test(start_paused = true)]
async fn image_of_a_host_that_must_stay_on_names_the_field() {
    let env = with_disc().await;
    env.edit(1, json!({ "spec": { "disablePowerOff": true } })).await;
    sleep(MINUTES).await;
    delete::<DataImage>(&env, "host-1").await;
    annotate(&env, json!({ "reboot.metal3.io": "" })).await;
    sleep(HOUR).await;
    assert_eq!(disc(&env).as_deref(), Some(URL));
    let shown = error(&env).await;
    assert!(shown.contains("spec.disablePowerOff"), "{shown}");
}

/// The user has followed the remedy of an earlier message.
#[tokio::test(start_paused = true)]
async fn message_follows_a_host_that_is_switched_on_and_does_not_start() {
    let env = with_disc().await;
    switch(&env, false).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    let shown = error(&env).await;
    assert!(shown.contains("; set spec.online of the host to true"), "{shown}");
    let node = NodeRef::from(&env.node(1).await.unwrap().uuid);
    let call = set_maintenance(&node, "an operator looks at it");
    env.ironic.client().unwrap().send(&call).await.unwrap();
    sleep(MINUTES).await;
    env.edit(1, json!({ "spec": { "online": true } })).await;
    sleep(MINUTES).await;
    assert_eq!(error(&env).await, shown, "a start takes some time");
    sleep(HOUR).await;
    let shown = error(&env).await;
    assert!(
        shown.contains("; if it does not start, see the status of the host"),
        "{shown}"
    );
}
