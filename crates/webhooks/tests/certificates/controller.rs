//! The certificate controller on the simulated API server.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_webhooks::certificates::CertificateController;
use metal3_webhooks::table::{IPAM, Task};
use serde_json::{Value, json};

use crate::env::{NAMESPACE, TestEnv};

const REFUSED: Fault = Fault::refused(500);

/// Checks that all configurations have one bundle, and that a handshake with each replica succeeds.
async fn settled(env: &TestEnv, replicas: &[&CertificateController]) -> String {
    let bundles = env.bundles().await;
    assert_eq!(bundles.len(), 9, "three kinds, each mutated, validated and converted");
    assert!(
        bundles.iter().all(|bundle| *bundle == bundles[0]),
        "one bundle everywhere"
    );
    for replica in replicas {
        let pair = replica.serving().borrow().clone().unwrap();
        env.accepts(&bundles[0], &pair).await.unwrap();
    }
    bundles[0].clone()
}

#[tokio::test(start_paused = true)]
async fn the_first_reconcile_issues_everything_and_the_next_one_writes_nothing() {
    let env = TestEnv::new(1).await;
    let replica = env.replica();
    assert!(replica.serving().borrow().is_none());
    replica.reconcile().await.unwrap();
    let bundle = settled(&env, &[&replica]).await;
    env.cluster.reset_audit();
    replica.reconcile().await.unwrap();
    assert_eq!(settled(&env, &[&replica]).await, bundle);
    let written = env.cluster.audit();
    let writes = written
        .counts()
        .filter(|(count, _)| !["get", "list"].contains(&count.1))
        .count();
    assert_eq!(writes, 0);
}

#[tokio::test(start_paused = true)]
async fn racing_replicas_end_with_one_authority() {
    for seed in 0..20 {
        let env = TestEnv::new(seed).await;
        let delays = Plan::seeded(seed).with(Rule::random(400, Fault::Delay(Duration::from_millis(seed % 7 + 1))));
        env.cluster.inject(delays);
        let replicas = [env.replica(), env.replica(), env.replica()];
        let (a, b, c) = tokio::join!(
            replicas[0].reconcile(),
            replicas[1].reconcile(),
            replicas[2].reconcile()
        );
        env.cluster.inject(Plan::none());
        for (outcome, replica) in [a, b, c].into_iter().zip(&replicas) {
            if outcome.is_err() {
                replica.reconcile().await.unwrap();
            }
        }
        let bundle = settled(&env, &replicas.each_ref()).await;
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 1, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_replica_completes_after_lost_replies_conflicts_and_crashes() {
    let mut cases = 0;
    for fault in [Fault::ReplyLost, Fault::Conflict, Fault::CrashBefore, Fault::CrashAfter] {
        for (verb, writes) in [("create", 1), ("patch", 5)] {
            for nth in 1..=writes {
                let env = TestEnv::new(nth).await;
                env.cluster.inject(Plan::none().with(Rule::at(nth, fault).verb(verb)));
                let first = env.replica();
                // A crashed process receives no response.
                let _ = tokio::time::timeout(Duration::from_secs(60), first.reconcile()).await;
                env.cluster.inject(Plan::none());
                let second = env.replica();
                second.reconcile().await.unwrap();
                settled(&env, &[&second]).await;
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
async fn for_two_years_the_served_pair_is_trusted_with_the_bundle_of_an_hour_ago() {
    let env = TestEnv::new(1).await;
    let replica = env.replica();
    let (mut bundles, mut pairs) = (BTreeSet::new(), BTreeSet::new());
    replica.reconcile().await.unwrap();
    let mut injected = settled(&env, &[&replica]).await;
    for _ in 0..24 {
        // A month without a reconcile, then enough reconciles for each step that is due.
        env.clock.advance(Duration::from_secs(30 * 24 * 3600));
        for _ in 0..4 {
            replica.reconcile().await.unwrap();
            let pair = replica.serving().borrow().clone().unwrap();
            env.accepts(&injected, &pair).await.unwrap();
            pairs.insert(pair.certificate().to_owned());
            injected = env.bundles().await.swap_remove(0);
            bundles.insert(injected.clone());
            env.clock.advance(Duration::from_secs(3600));
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
async fn an_overwritten_configuration_is_injected_again() {
    let env = TestEnv::new(1).await;
    let replica = env.replica();
    replica.reconcile().await.unwrap();
    let kind = "ValidatingWebhookConfiguration";
    let api = env.api("admissionregistration.k8s.io/v1", kind, None);
    let patch = json!([{ "op": "remove", "path": "/webhooks/0/clientConfig/caBundle" }]);
    let patch = Patch::<Value>::Json(serde_json::from_value(patch).unwrap());
    api.patch(&IPAM.configuration(Task::Validate), &PatchParams::default(), &patch)
        .await
        .unwrap();
    replica.reconcile().await.unwrap();
    settled(&env, &[&replica]).await;
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_secret_is_replaced() {
    let env = TestEnv::new(1).await;
    let replica = env.replica();
    for data in [
        json!({ "ledger.json": "e30=" }),
        json!({ "tls.key": null }),
        json!({ "ledger.json": null }),
    ] {
        replica.reconcile().await.unwrap();
        let before = settled(&env, &[&replica]).await;
        let secret = env.api("v1", "Secret", Some(NAMESPACE));
        let name = env.secret().await["metadata"]["name"].as_str().unwrap().to_owned();
        secret
            .patch(&name, &PatchParams::default(), &Patch::Merge(json!({ "data": data })))
            .await
            .unwrap();
        env.clock.advance(Duration::from_secs(1));
        replica.reconcile().await.unwrap();
        assert_ne!(settled(&env, &[&replica]).await, before);
        let members = env.secret().await["data"].as_object().unwrap().len();
        assert_eq!(members, 6, "nothing of the old one is left: state, bundle, two pairs");
    }
}

#[tokio::test(start_paused = true)]
async fn bundles_of_cert_manager_are_not_changed_and_own_bundles_are_recognised() {
    let env = TestEnv::new(1).await;
    let replica = env.replica();
    // All have the annotation but no bundle, so cert-manager does not manage them.
    replica.reconcile().await.unwrap();
    let own = settled(&env, &[&replica]).await;
    // Another self-managed authority replaces the first one.
    let (secrets, secret) = (env.api("v1", "Secret", Some(NAMESPACE)), env.secret().await);
    let name = secret["metadata"]["name"].as_str().unwrap();
    secrets.delete(name, &Default::default()).await.unwrap();
    env.clock.advance(Duration::from_secs(1));
    replica.reconcile().await.unwrap();
    assert_ne!(settled(&env, &[&replica]).await, own);

    let kind = "ValidatingWebhookConfiguration";
    let api = env.api("admissionregistration.k8s.io/v1", kind, None);
    let name = IPAM.configuration(Task::Validate);
    let foreign = "dGhlaXJz";
    let patch = json!([{ "op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": foreign }]);
    let patch = Patch::<Value>::Json(serde_json::from_value(patch).unwrap());
    api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    let second = env.replica();
    let report = second.reconcile().await.unwrap_err().report();
    for word in [name.as_str(), "cert-manager.io/inject-ca-from", "mounted"] {
        assert!(report.contains(word), "{report}");
    }
    let found = serde_json::to_value(api.get(&name).await.unwrap()).unwrap();
    assert_eq!(found["webhooks"][0]["clientConfig"]["caBundle"], foreign);
    assert!(second.serving().borrow().is_none(), "an untrusted pair is not served");

    // Without the annotation the controller manages it.
    let patch = Patch::Merge(json!({ "metadata": { "annotations": null } }));
    api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    second.reconcile().await.unwrap();
    settled(&env, &[&second]).await;
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_is_not_installed_is_skipped() {
    let env = TestEnv::new(1).await;
    let kind = "MutatingWebhookConfiguration";
    let api = env.api("admissionregistration.k8s.io/v1", kind, None);
    api.delete(&IPAM.configuration(Task::Mutate), &Default::default())
        .await
        .unwrap();
    let replica = env.replica();
    replica.reconcile().await.unwrap();
    assert!(replica.serving().borrow().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_is_reported_without_the_key() {
    let env = TestEnv::new(1).await;
    env.cluster
        .inject(Plan::none().with(Rule::at(1, REFUSED).verb("create")));
    let report = env.replica().reconcile().await.unwrap_err().report();
    assert!(
        report.starts_with("create secrets ipam-webhook-certificates"),
        "{report}"
    );
    assert!(!report.contains("PRIVATE"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn keys_are_not_printed() {
    let env = TestEnv::new(1).await;
    let replica = env.replica();
    replica.reconcile().await.unwrap();
    let pair = replica.serving().borrow().clone().unwrap();
    assert!(pair.key().contains("PRIVATE KEY"));
    assert!(!format!("{pair:?}").contains("PRIVATE KEY"));
}
