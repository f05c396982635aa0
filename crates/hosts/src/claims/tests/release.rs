use std::time::Duration;

use serde_json::{Value, json};

use super::super::bond::Record;
use super::super::copies::{Copy, Source};
use super::super::copies::{Pair, Use};
use super::super::plan::{Action, Step, plan};
use super::{after_reads, bound, claim, condition, consumer, facts, host, key, merged, no_copies, written};
use crate::claims::facts::Facts;

fn deleted() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:50Z", "annotations": super::trace("metal/h") },
        "status": { "bareMetalHost": { "namespace": "metal", "name": "h" } } })
}

fn used() -> Value {
    merged(
        bound(),
        &json!({ "spec": { "online": true, "image": { "url": "http://a/b" }, "userData": { "name": "h.claim-user-data" } },
            "status": { "provisioning": { "state": "provisioned", "image": { "url": "http://a/b" } } } }),
    )
}

fn of(host_change: &Value) -> Facts {
    facts(claim(&deleted()), vec![host(host_change)])
}

#[test]
fn host_loses_the_spec_first_and_the_consumer_last() {
    let mut facts = of(&used());
    let (step, live) = after_reads(&mut facts);
    let (stripped, _) = written(&step);
    assert_eq!(live, 4);
    assert!(stripped.spec.image.is_none() && stripped.spec.user_data.is_none() && !stripped.spec.online);
    assert!(stripped.spec.consumer_ref.is_some(), "it is not free yet");
    let mut facts = of(&bound());
    let (step, _) = after_reads(&mut facts);
    let (freed, what) = written(&step);
    assert_eq!(what, "release the host");
    assert!(freed.spec.consumer_ref.is_none() && freed.annotation("hostclaim.metal3.io/bond").is_none());
}

#[test]
fn host_is_not_released_while_anything_of_the_claim_may_be_on_it() {
    for status in [
        json!({ "provisioning": { "state": "provisioned", "image": { "url": "http://a/b" } } }),
        json!({ "provisioning": { "state": "deprovisioning" } }),
        json!({ "provisioning": { "state": "available", "image": { "url": "http://a/b" } } }),
        json!({ "provisioning": { "state": "available", "customDeploy": { "method": "m" } } }),
        json!({ "provisioning": { "state": "inspecting" } }),
        json!({ "provisioning": { "state": "externally provisioned" } }),
        json!({ "operationalStatus": "detached" }),
    ] {
        let is_held = status.to_string().contains("external") || status.to_string().contains("detached");
        let mut host = super::host(&merged(bound(), &json!({ "status": status })));
        // It is recorded already that something ran.
        let mut record = Record::of(&host).unwrap();
        record.deployed = true;
        record.write(&mut host);
        let mut facts = facts(claim(&deleted()), vec![host]);
        let (step, live) = after_reads(&mut facts);
        let (reason, _) = condition(&facts, &step, "Associated").unwrap();
        let expected = if is_held {
            "HostClaimDeletionFailed"
        } else {
            "HostClaimDeleting"
        };
        assert_eq!((reason.as_str(), live), (expected, 0), "{status}");
    }
}

#[test]
fn copies_are_emptied_before_the_host_is_free() {
    let mut facts = of(&bound());
    let mut copies = no_copies();
    let filled = Pair {
        source: Source::Absent,
        copy: Copy::Own(Some("u/3".to_owned())),
    };
    copies.insert(Use::MetaData, filled);
    facts.copies.insert(key("metal", "h"), copies);
    let (step, _) = after_reads(&mut facts);
    assert_eq!(step, Step::Do(Action::Empty(Use::MetaData, key("metal", "h"))));
}

#[test]
fn nothing_is_erased_without_a_policy_for_a_paused_host_or_within_the_grace_after_a_pause() {
    let paused = |value: &str| {
        let annotations = json!({ "baremetalhost.metal3.io/paused": value });
        of(&merged(used(), &json!({ "metadata": { "annotations": annotations } })))
    };
    let mut closed = of(&used());
    closed.policies.clear();
    let mut moving = of(&merged(
        used(),
        &json!({ "metadata": { "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } } }),
    ));
    moving.fresh.claim = true;
    for (mut facts, expected) in [
        (closed, "HostClaimDeletionFailed"),
        (paused("user"), "HostPaused"),
        (paused("metal3.io/hostclaim"), "HostPaused"),
        (moving, "HostPaused"),
    ] {
        let (step, _) = after_reads(&mut facts);
        assert_eq!(condition(&facts, &step, "Associated").unwrap().0, expected);
    }
    let mut later = paused("metal3.io/hostclaim");
    later.deleted_for += Duration::from_mins(2);
    let (step, _) = after_reads(&mut later);
    let (stripped, _) = written(&step);
    assert!(
        stripped.annotation("baremetalhost.metal3.io/paused").is_none(),
        "the grace is over"
    );
}

#[test]
fn claim_goes_only_after_live_reads_show_that_no_host_is_bound() {
    let mut facts = facts(claim(&deleted()), Vec::new());
    let (step, live) = after_reads(&mut facts);
    assert_eq!(live, 2, "the host that the status names, and the claim");
    assert!(
        matches!(&step, Step::Do(Action::Claim(claim)) if claim.metadata.finalizers == Some(Vec::new())),
        "{step:?}"
    );
    let mut paused = claim(&deleted());
    paused.metadata.annotations = serde_json::from_value(json!({ "cluster.x-k8s.io/paused": "" })).unwrap();
    let facts = super::facts(paused, vec![host(&used())]);
    assert_eq!(condition(&facts, &plan(&facts), "Associated").unwrap().0, "HostPaused");
}

#[test]
fn host_that_a_user_made_name_the_claim_is_not_touched() {
    let forged = json!({ "spec": { "consumerRef": consumer("c"), "image": { "url": "http://a/b" } } });
    let unnamed = claim(&json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:50Z" } }));
    let mut facts = super::facts(unnamed, vec![host(&forged)]);
    // Once no bind can be on its way any more.
    facts.deleted_for += Duration::from_mins(1);
    let (step, _) = after_reads(&mut facts);
    assert!(matches!(step, Step::Do(Action::Claim(_))), "{step:?}");
}

#[test]
fn host_is_kept_for_the_next_claim_of_the_same_reuse() {
    let reuse = "infrastructure.cluster.x-k8s.io/node-reuse";
    let keeps = merged(deleted(), &json!({ "metadata": { "labels": { reuse: "kcp" } } }));
    let mut facts = facts(claim(&keeps), vec![host(&used())]);
    let (step, _) = after_reads(&mut facts);
    let mut clean = written(&step).0.clone();
    clean.status = host(&json!({})).status;
    facts.hosts.insert(key("metal", "h"), clean.into());
    let (step, _) = after_reads(&mut facts);
    let kept = written(&step).0;
    assert_eq!(kept.label(reuse), Some("tenant.kcp"));
    assert_eq!(
        kept.annotation("hostclaim.metal3.io/kept-until"),
        Some("2026-01-01T13:00:00Z")
    );
}
