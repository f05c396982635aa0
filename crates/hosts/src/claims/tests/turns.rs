//! What a pause keeps, what a race leaves, and what a namespace may not have.

use std::sync::Arc;

use metal3_api::metal3::v1alpha1::{HardwareData, HostClaimStatus};
use metal3_runtime::cache::{Indexes as _, SharedIndexes};
use serde_json::{Value, json};

use super::super::bond::Trace;
use super::super::copies;
use super::super::plan::{Action, Step, plan};
use super::super::policy::copied;
use super::super::watches::{ClaimIndexes, HostBook, of_secret};
use super::{
    ID, after_reads, bound, claim, condition, consumer, facts, host, key, merged, no_copies, own, policy, rules,
    written,
};

const IMAGE: &str = "http://a/b";
const PAUSES: [&str; 2] = ["cluster.x-k8s.io/paused", "baremetalhost.metal3.io/paused"];
const HOST_PAUSE: &str = "baremetalhost.metal3.io/paused";
const REUSE: &str = "infrastructure.cluster.x-k8s.io/node-reuse";

fn used() -> Value {
    merged(
        bound(),
        &json!({ "spec": { "online": true, "image": { "url": IMAGE } },
            "status": { "provisioning": { "state": "provisioned", "image": { "url": IMAGE } } } }),
    )
}

fn deleted() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:50Z" } })
}

fn status(host: &str) -> Value {
    json!({ "status": { "bareMetalHost": { "namespace": "metal", "name": host } } })
}

fn marked(name: &str) -> Value {
    json!({ "metadata": { "annotations": { name: "" } } })
}

#[test]
fn pause_of_a_claim_saves_the_status_of_its_host_and_needs_no_policy() {
    for name in PAUSES {
        for is_open in [true, false] {
            let mut facts = facts(own(&merged(marked(name), &status("h"))), vec![host(&used())]);
            if !is_open {
                facts.policies.clear();
            }
            let (step, _) = after_reads(&mut facts);
            let changed = written(&step).0;
            assert_eq!(changed.annotation(HOST_PAUSE), Some("metal3.io/hostclaim"));
            let saved = changed.annotation("baremetalhost.metal3.io/status").unwrap();
            let saved: Value = serde_json::from_str(saved).unwrap();
            assert_eq!(saved["provisioning"]["state"], "provisioned");
            assert_eq!(saved["provisioning"]["image"]["url"], IMAGE);
        }
    }
}

#[test]
fn pause_by_a_claim_ends_without_a_policy_but_not_for_a_host_without_its_status() {
    let paused = json!({ "metadata": { "annotations": { HOST_PAUSE: "metal3.io/hostclaim" } } });
    let mut resumed = facts(own(&status("h")), vec![host(&merged(used(), &paused))]);
    resumed.policies.clear();
    assert!(written(&after_reads(&mut resumed).0).0.annotation(HOST_PAUSE).is_none());
    let lost = json!({ "status": { "provisioning": { "state": "", "image": { "url": "" } } } });
    let mut moved = facts(own(&status("h")), vec![host(&merged(merged(used(), &paused), &lost))]);
    let (step, _) = after_reads(&mut moved);
    let (reason, why) = condition(&moved, &step, "Synchronized").unwrap();
    assert!(
        reason == "HostPaused" && why.contains("restore its annotation baremetalhost.metal3.io/status"),
        "{why}"
    );
    let saved = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/status": "{}" } } });
    let arrived = merged(merged(merged(used(), &paused), &lost), &saved);
    let mut moved = facts(own(&status("h")), vec![host(&arrived)]);
    assert!(written(&after_reads(&mut moved).0).0.annotation(HOST_PAUSE).is_none());
}

#[test]
fn administrators_keep_their_host_from_being_paused() {
    let never = json!({ "metadata": { "annotations": { "hostclaim.metal3.io/no-pause": "" } } });
    let mut facts = facts(
        own(&merged(marked(PAUSES[0]), &status("h"))),
        vec![host(&merged(used(), &never))],
    );
    let (step, _) = after_reads(&mut facts);
    let (reason, why) = condition(&facts, &step, "Synchronized").unwrap();
    assert!(
        reason == "HostPaused" && why.contains("do not let claims pause it"),
        "{why}"
    );
    let paused = json!({ "metadata": { "annotations": { HOST_PAUSE: "metal3.io/hostclaim" } } });
    facts
        .hosts
        .insert(key("metal", "h"), host(&merged(merged(used(), &never), &paused)).into());
    assert!(written(&after_reads(&mut facts).0).0.annotation(HOST_PAUSE).is_none());
}

#[test]
fn nothing_but_the_pause_is_written_for_a_paused_claim() {
    let of_go = host(&json!({ "spec": { "consumerRef": consumer("c") } }));
    for name in PAUSES {
        let mut facts = facts(claim(&merged(marked(name), &status("h"))), vec![of_go.clone()]);
        let (step, _) = after_reads(&mut facts);
        assert!(matches!(step, Step::End(_)), "{step:?}");
    }
}

#[test]
fn copies_to_hardware_data_go_with_the_policy_although_the_claim_is_paused() {
    for gone in [json!({}), deleted()] {
        let mut closed = facts(
            own(&merged(merged(gone, &marked(PAUSES[0])), &status("h"))),
            vec![host(&used())],
        );
        closed.policies.clear();
        let copied = json!({ "hostclaim.metal3.io/copied-metadata": "{\"labels\":[\"rack\"],\"annotations\":[]}" });
        let metadata = json!({ "namespace": "metal", "name": "h", "resourceVersion": "1", "labels": { "rack": "r7" },
            "annotations": copied });
        let hardware: HardwareData = serde_json::from_value(json!({ "metadata": metadata, "spec": {} })).unwrap();
        closed.hardware.insert(key("metal", "h"), Arc::new(hardware));
        let (step, _) = after_reads(&mut closed);
        assert!(matches!(step, Step::Do(Action::Hardware(_))), "{step:?}");
    }
}

#[test]
fn checksum_that_changes_on_a_running_host_changes_nothing_as_on_a_host_without_a_claim() {
    let wants = json!({ "spec": { "image": { "url": IMAGE, "checksum": "new" } } });
    for asked in ["old", "new"] {
        let runs = json!({ "spec": { "image": { "url": IMAGE, "checksum": asked } },
            "status": { "poweredOn": true, "provisioning": { "image": { "url": IMAGE, "checksum": "old" } } } });
        let mut facts = facts(
            own(&merged(wants.clone(), &status("h"))),
            vec![host(&merged(used(), &runs))],
        );
        let step = after_reads(&mut facts).0;
        assert_eq!(condition(&facts, &step, "Ready"), None, "{asked}: {step:?}");
    }
}

#[test]
fn power_of_a_running_host_needs_no_secret_of_a_next_image() {
    let asks =
        json!({ "spec": { "poweredOn": false, "image": { "url": "http://a/next" }, "userData": { "name": "user" } } });
    let missing = |runs: Value| {
        let mut facts = facts(own(&merged(asks.clone(), &status("h"))), vec![host(&runs)]);
        let mut copies = no_copies();
        let pair = copies::Pair {
            source: copies::Source::Absent,
            copy: copies::Copy::Absent,
        };
        copies.insert(copies::Use::UserData, pair);
        facts.copies.insert(key("metal", "h"), copies);
        after_reads(&mut facts).0
    };
    let step = missing(used());
    let given = written(&step).0;
    assert!(
        !given.spec.online,
        "a missing Secret keeps an image back, not the power"
    );
    assert_eq!(given.spec.image.as_ref().map(|image| image.url.as_str()), Some(IMAGE));
    let idle = missing(merged(bound(), &json!({ "spec": { "online": true } })));
    assert!(matches!(idle, Step::End(_)), "one that runs nothing waits: {idle:?}");
}

#[test]
fn claim_that_lost_the_race_for_a_host_has_neither_trace_nor_finalizer_of_it() {
    let taken = host(&json!({ "spec": { "consumerRef": consumer("other") } }));
    for hosts in [vec![taken], Vec::new()] {
        let mut lost = facts(own(&json!({})), hosts);
        let (step, _) = after_reads(&mut lost);
        let Step::Do(Action::Claim(waits)) = &step else {
            unreachable!("{step:?}")
        };
        assert!(Trace::of(waits, &key("tenant", "c")).is_none());
        assert_eq!(waits.metadata.finalizers, Some(Vec::new()));
        // Moved as it waits: another UID, no status.
        let mut moved = (**waits).clone();
        moved.metadata.uid = Some("new-uid".to_owned());
        moved.status = HostClaimStatus::default();
        let mut moved = facts(moved, vec![host(&json!({ "metadata": { "name": "n" } }))]);
        let (step, _) = after_reads(&mut moved);
        let Step::Do(Action::Claim(bound)) = &step else {
            unreachable!("{step:?}")
        };
        assert_eq!(
            Trace::of(bound, &key("tenant", "c")).unwrap().host(),
            Some(key("metal", "n"))
        );
    }
}

#[test]
fn claims_that_are_not_served_take_no_turn() {
    let of_vm = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/hostclaim-class": "vm" } } });
    let lost = json!({ "status": { "conditions": [{ "type": "Associated", "status": "False", "reason": "MissingBareMetalHost",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    for change in [
        of_vm,
        marked(PAUSES[0]),
        marked("clusterctl.cluster.x-k8s.io/delete-for-move"),
        lost,
    ] {
        let mut indexes = ClaimIndexes::default();
        for number in 0..100 {
            indexes.replace(&key("tenant", &format!("a{number:03}")), None, Some(&claim(&change)));
        }
        let last = key("tenant", "web");
        indexes.replace(&last, None, Some(&claim(&json!({}))));
        assert!(!indexes.is_beyond(&last), "{change}");
        assert_eq!(indexes.waiting(), [last]);
    }
}

#[test]
fn secret_wakes_claims_with_a_host_only() {
    let mut indexes = SharedIndexes::<ClaimIndexes>::default();
    let naming = json!({ "spec": { "userData": { "name": "s" } } });
    for number in 0..500 {
        indexes.replace(&key("tenant", &format!("c{number:03}")), None, Some(&claim(&naming)));
    }
    indexes.replace(&key("tenant", "z"), None, Some(&claim(&merged(naming, &status("h")))));
    let woken = of_secret(&key("tenant", "s"), &indexes, &HostBook::default());
    assert_eq!(woken, [key("tenant", "z")]);
}

#[test]
fn claim_that_takes_no_turn_reads_nothing() {
    let mut facts = facts(own(&json!({})), vec![]);
    facts.is_beyond = true;
    assert!(matches!(plan(&facts), Step::End(_)));
}

#[test]
fn namespace_that_left_hosts_behind_gets_no_further_one() {
    for (abandoned, is_bound) in [(2, true), (3, false)] {
        let mut facts = facts(claim(&json!({})), vec![host(&json!({}))]);
        facts.abandoned = abandoned;
        let (step, _) = after_reads(&mut facts);
        assert_eq!(matches!(step, Step::Do(Action::Claim(_))), is_bound, "{step:?}");
        if !is_bound {
            let why = condition(&facts, &step, "Associated").unwrap().1;
            assert!(why.contains("do not exist any more"), "{why}");
        }
    }
}

#[test]
fn host_of_a_claim_that_was_given_up_is_not_kept_for_its_replacement() {
    let record = json!({ "claim": "tenant/c", "id": ID, "uid": "claim-uid", "cleaning": "metadata",
        "at": "2026-01-01T10:00:00Z", "deployed": true });
    let ran = json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": record.to_string() } } });
    for (annotations, kept) in [
        (json!({ "capm3.metal3.io/unhealthy": "" }), None),
        (json!({}), Some("tenant.kcp")),
    ] {
        let meta = json!({ "metadata": { "labels": { REUSE: "kcp" }, "annotations": annotations } });
        let gone = own(&merged(merged(deleted(), &status("h")), &meta));
        let mut facts = facts(gone, vec![host(&merged(bound(), &ran))]);
        let (step, _) = after_reads(&mut facts);
        let freed = written(&step).0;
        assert!(freed.spec.consumer_ref.is_none());
        assert_eq!(freed.label(REUSE), kept);
    }
}

#[test]
fn host_is_kept_by_a_process_whose_clock_is_a_little_behind() {
    let kept = json!({ "metadata": { "labels": { REUSE: "gone.kcp" },
        "annotations": { "hostclaim.metal3.io/kept-until": "2026-01-01T13:00:05Z" } } });
    let mut facts = facts(claim(&json!({})), vec![host(&kept)]);
    assert!(
        matches!(after_reads(&mut facts).0, Step::End(_)),
        "it is kept for others"
    );
}

#[test]
fn text_with_the_bmc_of_the_host_is_not_copied_whatever_a_policy_names() {
    let original =
        json!({ "spec": { "bmc": { "address": "redfish://192.0.2.7", "credentialsName": "bmc" } } }).to_string();
    let annotations = json!({ "kapp.k14s.io/original": "{}", "objectset.rio.cattle.io/applied": "H4sIAAAAAAAA", "site.example/all": original,
        "site.example/room": "12", "site.example/bmc-kind": "bmc-2", "site.example/login": "see bmc", "site.example/long": "x".repeat(2000),
        "site.example/ip": "192.0.2.7", "site.example/other": "192.0.2.70" });
    let mut all = policy(&json!({}));
    all.spec.metadata_copy = serde_json::from_value(json!({ "annotationsMatch": ".*" })).unwrap();
    let all = [rules(all)];
    let found = copied(
        &host(&json!({ "metadata": { "annotations": annotations } })),
        all.iter().map(|one| &**one),
    );
    let names: Vec<_> = found.annotations.into_keys().collect();
    assert_eq!(
        names,
        ["site.example/bmc-kind", "site.example/other", "site.example/room"]
    );
}
