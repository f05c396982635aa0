//! Subscriptions that the Go manager left, and those that are moved to another cluster.

use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::{BMCEventSubscription, BareMetalHost};
use metal3_sim_ironic::Subscription;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{DESTINATION, HOUR, MINUTES, env_with_host, error, get, in_bmc, subscribe, until_created};
use crate::env::TestEnv;
use crate::unserved::{delete, go_manager, is_gone, mark_as_moved, move_host, pause, until_gone};

const ID: &str = "33dbabe0-2000-41a3-95f0-22e2c1ccb0b7";

fn in_machine(id: &str) -> Subscription {
    Subscription {
        id: id.to_owned(),
        destination: DESTINATION.to_owned(),
        context: String::new(),
        headers: Value::Null,
    }
}

/// An object as the Go manager leaves it, and its subscription in the BMC.
async fn left(env: &TestEnv) {
    env.machine(1, |machine| {
        machine.subscriptions = vec![in_machine("other"), in_machine(ID)]
    });
    // Without its status it would be a new one for a moment.
    let paused = json!({ "baremetalhost.metal3.io/paused": "" });
    let object = json!({
        "metadata": { "name": "events", "annotations": paused, "finalizers": ["bmceventsubscription.metal3.io"] },
        "spec": { "hostName": "host-1", "destination": DESTINATION },
    });
    env.make::<BMCEventSubscription>(object).await;
    let (api, params) = (env.api::<BMCEventSubscription>(), PatchParams::default());
    let status = Patch::Merge(json!({ "status": { "subscriptionID": ID } }));
    api.patch_status("events", &params, &status).await.unwrap();
    let served = Patch::Merge(json!({ "metadata": { "annotations": null } }));
    api.patch("events", &params, &served).await.unwrap();
}

fn ids(env: &TestEnv) -> Vec<String> {
    in_bmc(env).into_iter().map(|one| one.id).collect()
}

#[tokio::test(start_paused = true)]
async fn subscription_of_the_go_manager_is_kept_without_a_look_and_deleted_with_its_object() {
    let env = env_with_host().await;
    let asked = env.interceptor.log().asked.len();
    left(&env).await;
    sleep(HOUR).await;
    let log = env.interceptor.log().asked.split_off(asked);
    assert!(
        !log.iter().any(|request| request.contains("vendor_passthru")),
        "{log:?}"
    );
    let object = get(&env, "events").await;
    assert_eq!(
        (object.status.subscription_id.as_deref(), object.status.error),
        (Some(ID), None)
    );
    delete::<BMCEventSubscription>(&env, "events").await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
    assert_eq!(ids(&env), ["other"]);
}

/// A BMC that is reset may give the identifier to the subscription of another program.
#[tokio::test(start_paused = true)]
async fn another_subscription_with_the_identifier_is_left_and_an_event_says_so() {
    let env = env_with_host().await;
    left(&env).await;
    sleep(MINUTES).await;
    let of_another = Subscription {
        destination: "https://elsewhere.example/".to_owned(),
        ..in_machine(ID)
    };
    env.machine(1, |machine| machine.subscriptions = vec![of_another]);
    delete::<BMCEventSubscription>(&env, "events").await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
    assert_eq!(ids(&env), [ID]);
    let events = env.events();
    assert!(
        events.contains("SubscriptionLeft") && events.contains("delete it at the BMC if nothing uses it"),
        "{events}"
    );
}

/// A BMC may have a context of its own, for one that was created without.
#[tokio::test(start_paused = true)]
async fn subscription_whose_context_the_bmc_changed_is_deleted() {
    let env = env_with_host().await;
    left(&env).await;
    sleep(MINUTES).await;
    let changed = Subscription {
        context: "Public".to_owned(),
        ..in_machine(ID)
    };
    env.machine(1, |machine| machine.subscriptions = vec![changed]);
    delete::<BMCEventSubscription>(&env, "events").await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
    assert_eq!(in_bmc(&env), []);
}

#[tokio::test(start_paused = true)]
async fn running_go_manager_keeps_its_subscriptions() {
    let env = env_with_host().await;
    go_manager(&env, 1).await;
    left(&env).await;
    subscribe(&env, "new").await;
    sleep(HOUR).await;
    delete::<BMCEventSubscription>(&env, "events").await;
    sleep(HOUR).await;
    assert_eq!((ids(&env).len(), error(&env).await.as_str()), (2, ""));
    let new = get(&env, "new").await;
    assert_eq!((new.metadata.finalizers, new.status.error), (None, None));
    go_manager(&env, 0).await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
    let created = until_created(&env, "new").await;
    assert_eq!(ids(&env), ["other".to_owned(), created]);
}

#[tokio::test(start_paused = true)]
async fn subscription_of_a_deleted_host_disappears() {
    let env = env_with_host().await;
    left(&env).await;
    env.delete(1).await;
    delete::<BMCEventSubscription>(&env, "events").await;
    until_gone::<BareMetalHost>(&env, "host-1").await;
    until_gone::<BMCEventSubscription>(&env, "events").await;
}

#[tokio::test(start_paused = true)]
async fn subscription_of_a_host_that_was_moved_away_is_not_deleted() {
    let env = env_with_host().await;
    left(&env).await;
    move_host(&env).await;
    delete::<BMCEventSubscription>(&env, "events").await;
    sleep(HOUR).await;
    assert_eq!(ids(&env).len(), 2);
    let error = error(&env).await;
    assert!(
        error.contains("its host does not exist in this cluster") && error.contains("; delete"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn subscription_that_is_deleted_for_a_move_leaves_the_bmc_alone() {
    let env = env_with_host().await;
    left(&env).await;
    sleep(MINUTES).await;
    mark_as_moved::<BMCEventSubscription>(&env, "events").await;
    let asked = env.interceptor.log().asked.len();
    delete::<BMCEventSubscription>(&env, "events").await;
    sleep(HOUR).await;
    assert_eq!(ids(&env).len(), 2);
    assert_eq!(env.interceptor.log().asked.split_off(asked), Vec::<String>::new());
    let error = error(&env).await;
    assert!(error.contains("clusterctl moves it") && error.contains("; "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn subscription_of_a_host_that_is_deleted_for_a_move_is_not_deleted() {
    let env = env_with_host().await;
    left(&env).await;
    pause(&env).await;
    mark_as_moved::<BareMetalHost>(&env, "host-1").await;
    delete::<BMCEventSubscription>(&env, "events").await;
    sleep(HOUR).await;
    assert_eq!(ids(&env).len(), 2);
    let error = error(&env).await;
    assert!(
        error.contains("clusterctl moves its host") && error.contains("; "),
        "{error}"
    );
}

/// During a move back, or while a backup is restored, the host exists later than its objects.
#[tokio::test(start_paused = true)]
async fn host_without_node_that_is_absent_for_a_moment_is_not_gone() {
    let env = env_with_host().await;
    left(&env).await;
    move_host(&env).await;
    env.ironic.lose_database();
    delete::<BMCEventSubscription>(&env, "events").await;
    sleep(MINUTES).await;
    assert!(!is_gone::<BMCEventSubscription>(&env, "events").await);
    until_gone::<BMCEventSubscription>(&env, "events").await;
}

#[tokio::test(start_paused = true)]
async fn wait_of_a_deleted_subscription_for_a_paused_host_is_reported_when_it_lasts() {
    let env = env_with_host().await;
    pause(&env).await;
    left(&env).await;
    delete::<BMCEventSubscription>(&env, "events").await;
    sleep(MINUTES).await;
    assert_eq!(error(&env).await, "", "a pause may be short");
    sleep(HOUR).await;
    let error = error(&env).await;
    assert!(
        error.contains("its host is paused; ") && error.contains("baremetalhost.metal3.io/paused"),
        "{error}"
    );
    assert_eq!(ids(&env).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn silence_of_ironic_or_the_bmc_keeps_the_subscription() {
    for (rejected, status) in [
        ("GET nodes/_/vendor_passthru", 500),
        ("GET nodes/_", 503),
        ("GET nodes/_/vendor_passthru", 400),
    ] {
        let env = env_with_host().await;
        left(&env).await;
        env.interceptor.log().rejected = Some((rejected, status));
        delete::<BMCEventSubscription>(&env, "events").await;
        sleep(HOUR).await;
        let error = error(&env).await;
        assert!(
            error.starts_with("failed to delete a subscription: ") && error.contains("; "),
            "{error}"
        );
        assert_eq!(ids(&env).len(), 2);
        env.interceptor.log().rejected = None;
        until_gone::<BMCEventSubscription>(&env, "events").await;
        assert_eq!(ids(&env), ["other"]);
    }
}

/// clusterctl moves the annotations of an object, and not its status.
#[tokio::test(start_paused = true)]
async fn moved_subscription_is_found_again() {
    let env = env_with_host().await;
    subscribe(&env, "events").await;
    let id = until_created(&env, "events").await;
    let mut object = get(&env, "events").await;
    object.metadata = serde_json::from_value(json!({
        "name": "events", "annotations": object.metadata.annotations, "finalizers": object.metadata.finalizers,
    }))
    .unwrap();
    let document = serde_json::to_value(&object).unwrap();
    mark_as_moved::<BMCEventSubscription>(&env, "events").await;
    delete::<BMCEventSubscription>(&env, "events").await;
    let without = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let api = env.api::<BMCEventSubscription>();
    api.patch("events", &PatchParams::default(), &without).await.unwrap();
    assert!(is_gone::<BMCEventSubscription>(&env, "events").await);
    env.make::<BMCEventSubscription>(document).await;
    let without_status = Patch::Merge(json!({ "status": { "subscriptionID": null } }));
    api.patch_status("events", &PatchParams::default(), &without_status)
        .await
        .unwrap();
    sleep(HOUR).await;
    assert_eq!((until_created(&env, "events").await, ids(&env)), (id.clone(), vec![id]));
}
