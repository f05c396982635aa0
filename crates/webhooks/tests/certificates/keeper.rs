//! Keeping certificates on the simulated API server.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_webhooks::certificates::Keeper;
use metal3_webhooks::table::{IPAM, Task};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

const REFUSED: Fault = Fault::Refused {
    code: 500,
    retry_after: None,
};

/// Everybody agrees: the replicas serve one pair, each place has one bundle, and a handshake succeeds.
async fn settled(world: &World, replicas: &[&Keeper]) -> String {
    let bundles = world.bundles().await;
    assert_eq!(bundles.len(), 9, "three kinds, each filled in, judged and converted");
    assert!(
        bundles.iter().all(|bundle| *bundle == bundles[0]),
        "one bundle everywhere"
    );
    for replica in replicas {
        let pair = replica.serving().borrow().clone().unwrap();
        world.accepts(&bundles[0], &pair).await.unwrap();
    }
    bundles[0].clone()
}

#[tokio::test(start_paused = true)]
async fn the_first_look_makes_everything_and_the_next_ones_write_nothing() {
    let world = World::new(1).await;
    let replica = world.replica();
    assert!(replica.serving().borrow().is_none());
    replica.look().await.unwrap();
    let bundle = settled(&world, &[&replica]).await;
    world.cluster.reset_audit();
    replica.look().await.unwrap();
    assert_eq!(settled(&world, &[&replica]).await, bundle);
    let written = world.cluster.audit();
    let writes = written
        .counts()
        .filter(|(count, _)| !["get", "list"].contains(&count.1))
        .count();
    assert_eq!(writes, 0);
}

#[tokio::test(start_paused = true)]
async fn replicas_that_race_end_with_one_authority() {
    for seed in 0..20 {
        let world = World::new(seed).await;
        let delays = Plan::seeded(seed).with(Rule::random(400, Fault::Delay(Duration::from_millis(seed % 7 + 1))));
        world.cluster.inject(delays);
        let replicas = [world.replica(), world.replica(), world.replica()];
        let (a, b, c) = tokio::join!(replicas[0].look(), replicas[1].look(), replicas[2].look());
        world.cluster.inject(Plan::none());
        for (outcome, replica) in [a, b, c].into_iter().zip(&replicas) {
            if outcome.is_err() {
                replica.look().await.unwrap();
            }
        }
        let bundle = settled(&world, &replicas.each_ref()).await;
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 1, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_replies_conflicts_and_crashes_leave_something_to_continue_from() {
    let mut cases = 0;
    for fault in [Fault::ReplyLost, Fault::Conflict, Fault::CrashBefore, Fault::CrashAfter] {
        for (verb, writes) in [("create", 1), ("patch", 5)] {
            for nth in 1..=writes {
                let world = World::new(nth).await;
                world.cluster.inject(Plan::none().with(Rule::at(nth, fault).verb(verb)));
                let first = world.replica();
                // A crashed process hears no more of its request.
                let _ = tokio::time::timeout(Duration::from_secs(60), first.look()).await;
                world.cluster.inject(Plan::none());
                let second = world.replica();
                second.look().await.unwrap();
                settled(&world, &[&second]).await;
                cases += 1;
            }
        }
    }
    assert_eq!(
        cases, 24,
        "a Secret is created, five configurations and definitions are patched"
    );
}

#[tokio::test(start_paused = true)]
async fn for_two_years_what_is_served_is_trusted_by_whoever_was_told_an_hour_ago() {
    let world = World::new(1).await;
    let replica = world.replica();
    let (mut bundles, mut pairs) = (BTreeSet::new(), BTreeSet::new());
    replica.look().await.unwrap();
    let mut told = settled(&world, &[&replica]).await;
    for _ in 0..24 {
        // A month in which nobody looks, then enough looks for each step that is due.
        world.clock.advance(Duration::from_secs(30 * 24 * 3600));
        for _ in 0..4 {
            replica.look().await.unwrap();
            let pair = replica.serving().borrow().clone().unwrap();
            world.accepts(&told, &pair).await.unwrap();
            pairs.insert(pair.certificate().to_owned());
            told = world.bundles().await.swap_remove(0);
            bundles.insert(told.clone());
            world.clock.advance(Duration::from_secs(3600));
        }
    }
    assert_eq!(bundles.len(), 5, "two authorities were announced and two retired");
    assert_eq!(
        pairs.len(),
        14,
        "a pair each second month, and one for each new authority"
    );
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_was_written_anew_is_told_again() {
    let world = World::new(1).await;
    let replica = world.replica();
    replica.look().await.unwrap();
    let kind = "ValidatingWebhookConfiguration";
    let api = world.api("admissionregistration.k8s.io/v1", kind, None);
    let patch = json!([{ "op": "remove", "path": "/webhooks/0/clientConfig/caBundle" }]);
    let patch = Patch::<Value>::Json(serde_json::from_value(patch).unwrap());
    api.patch(&IPAM.configuration(Task::Judge), &PatchParams::default(), &patch)
        .await
        .unwrap();
    replica.look().await.unwrap();
    settled(&world, &[&replica]).await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_whole_is_made_anew() {
    let world = World::new(1).await;
    let replica = world.replica();
    for data in [
        json!({ "ledger.json": "e30=" }),
        json!({ "tls.key": null }),
        json!({ "ledger.json": null }),
    ] {
        replica.look().await.unwrap();
        let before = settled(&world, &[&replica]).await;
        let secret = world.api("v1", "Secret", Some(NAMESPACE));
        let name = world.secret().await["metadata"]["name"].as_str().unwrap().to_owned();
        secret
            .patch(&name, &PatchParams::default(), &Patch::Merge(json!({ "data": data })))
            .await
            .unwrap();
        world.clock.advance(Duration::from_secs(1));
        replica.look().await.unwrap();
        assert_ne!(settled(&world, &[&replica]).await, before);
        let members = world.secret().await["data"].as_object().unwrap().len();
        assert_eq!(members, 6, "nothing of the old one is left: ledger, bundle, two pairs");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cert_manager_keeps_is_left_alone_and_what_we_told_before_is_not_mistaken_for_it() {
    let world = World::new(1).await;
    let replica = world.replica();
    // All of them carry the annotation, and none a bundle: nobody keeps them.
    replica.look().await.unwrap();
    let ours = settled(&world, &[&replica]).await;
    // Another authority of ours follows, over the old one.
    let (secrets, secret) = (world.api("v1", "Secret", Some(NAMESPACE)), world.secret().await);
    let name = secret["metadata"]["name"].as_str().unwrap();
    secrets.delete(name, &Default::default()).await.unwrap();
    world.clock.advance(Duration::from_secs(1));
    replica.look().await.unwrap();
    assert_ne!(settled(&world, &[&replica]).await, ours);

    let kind = "ValidatingWebhookConfiguration";
    let api = world.api("admissionregistration.k8s.io/v1", kind, None);
    let name = IPAM.configuration(Task::Judge);
    let theirs = "dGhlaXJz";
    let patch = json!([{ "op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": theirs }]);
    let patch = Patch::<Value>::Json(serde_json::from_value(patch).unwrap());
    api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    let stranger = world.replica();
    let report = stranger.look().await.unwrap_err().report();
    for word in [name.as_str(), "cert-manager.io/inject-ca-from", "mounted"] {
        assert!(report.contains(word), "{report}");
    }
    let found = serde_json::to_value(api.get(&name).await.unwrap()).unwrap();
    assert_eq!(found["webhooks"][0]["clientConfig"]["caBundle"], theirs);
    assert!(
        stranger.serving().borrow().is_none(),
        "what the API server does not trust is not served"
    );

    // Without the annotation nobody else keeps it.
    let patch = Patch::Merge(json!({ "metadata": { "annotations": null } }));
    api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    stranger.look().await.unwrap();
    settled(&world, &[&stranger]).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_installed_is_not_waited_for() {
    let world = World::new(1).await;
    let kind = "MutatingWebhookConfiguration";
    let api = world.api("admissionregistration.k8s.io/v1", kind, None);
    api.delete(&IPAM.configuration(Task::Fill), &Default::default())
        .await
        .unwrap();
    let replica = world.replica();
    replica.look().await.unwrap();
    assert!(replica.serving().borrow().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_refused_says_what_it_could_not_do_and_shows_no_key() {
    let world = World::new(1).await;
    world
        .cluster
        .inject(Plan::none().with(Rule::at(1, REFUSED).verb("create")));
    let report = world.replica().look().await.unwrap_err().report();
    assert!(
        report.starts_with("create secrets ipam-webhook-certificates"),
        "{report}"
    );
    assert!(!report.contains("PRIVATE"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn keys_are_not_shown() {
    let world = World::new(1).await;
    let replica = world.replica();
    replica.look().await.unwrap();
    let pair = replica.serving().borrow().clone().unwrap();
    assert!(pair.key().contains("PRIVATE KEY"));
    assert!(!format!("{pair:?} {replica:?}").contains("PRIVATE KEY"));
}
