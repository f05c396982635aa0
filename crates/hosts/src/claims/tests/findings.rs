//! What users of hosts, claims, policies and statuses cannot do, and what interrupted processes do not lose.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{HardwareData, HostClaim};
use metal3_runtime::cache::{Indexes as _, SharedCache};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::super::bond::{Trace, promises_cleaning};
use super::super::choice::is_free;
use super::super::copies::{Copy, Pair, Source, Use};
use super::super::facts::{Facts, Read};
use super::super::plan::{Action, End, Report, Step, plan, strays};
use super::super::policy::PolicyBook;
use super::super::watches::ClaimIndexes;
use super::{
    ID, OTHER_ID, after_reads, bound, claim, condition, consumer, facts, host, key, merged, no_copies, now, own,
    policy, record, rules, strange, written,
};

const IMAGE: &str = "http://a/b";

fn used() -> Value {
    merged(
        bound(),
        &json!({ "spec": { "online": true, "image": { "url": IMAGE } },
            "status": { "provisioning": { "state": "provisioned", "image": { "url": IMAGE } } } }),
    )
}

fn named(name: &str, change: &Value) -> Value {
    merged(change.clone(), &json!({ "metadata": { "name": name } }))
}

fn deleted() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:50Z" } })
}

fn status(host: &str) -> Value {
    json!({ "bareMetalHost": { "namespace": "metal", "name": host } })
}

fn is_of_host(step: &Step, name: &str) -> bool {
    matches!(step, Step::Do(Action::Host(host, _)) if host.metadata.name.as_deref() == Some(name))
}

fn has_recheck(step: &Step) -> bool {
    matches!(step, Step::End(End { next: Next::Waiting(on), .. }) if on.recheck.is_some())
}

/// The trace that is written to the claim.
fn traced(step: &Step) -> Trace {
    match step {
        Step::Do(Action::Claim(claim)) => Trace::of(claim, &key("tenant", "c")).unwrap(),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn further_host_that_runs_something_is_never_erased() {
    let runs = named("z", &used());
    let paused = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "metal3.io/hostclaim" } } });
    let off = json!({ "spec": { "poweredOn": false } });
    for status in [status("h"), json!({})] {
        for further in [runs.clone(), merged(runs.clone(), &paused)] {
            for gone in [json!({}), deleted()] {
                let change = merged(merged(off.clone(), &gone), &json!({ "status": status }));
                let mut facts = facts(own(&change), vec![host(&bound()), host(&further)]);
                let (step, _) = after_reads(&mut facts);
                assert!(!is_of_host(&step, "z"), "{step:?}");
            }
        }
    }
    // Neither is chosen by its name when the trace is lost.
    let mut lost = facts(claim(&off), vec![host(&named("a", &used())), host(&runs)]);
    let (step, _) = after_reads(&mut lost);
    assert!(matches!(&step, Step::End(_)), "{step:?}");
}

#[test]
fn further_host_with_the_same_bond_is_released_while_it_is_unused_and_reported_otherwise() {
    let on = merged(bound(), &json!({ "spec": { "online": true } }));
    let mut unused = facts(own(&json!({})), vec![host(&on), host(&named("z", &bound()))]);
    let (step, _) = after_reads(&mut unused);
    assert!(is_of_host(&step, "z"), "{step:?}");
    assert!(written(&step).0.spec.consumer_ref.is_none());
    let mut runs = facts(own(&json!({})), vec![host(&on), host(&named("z", &used()))]);
    let (step, _) = after_reads(&mut runs);
    let (_, why) = condition(&runs, &step, "Synchronized").unwrap();
    assert!(why.contains("another host carries the bond"), "{why}");
    assert_eq!(strays(&runs).len(), 1);
}

#[test]
fn moved_claim_waits_for_the_host_that_its_trace_names_and_takes_no_other() {
    let moved = |change: &Value| own(&merged(json!({ "metadata": { "uid": "new-uid" } }), change));
    let mut early = facts(moved(&json!({})), vec![host(&named("n", &json!({})))]);
    let (step, _) = after_reads(&mut early);
    assert_eq!(
        condition(&early, &step, "Associated").unwrap().0,
        "MissingBareMetalHost"
    );
    let asks = json!({ "spec": { "image": { "url": IMAGE } } });
    let mut arrived = facts(moved(&asks), vec![host(&named("n", &json!({}))), host(&used())]);
    let (step, _) = after_reads(&mut arrived);
    let (refreshed, _) = written(&step);
    assert!(refreshed.spec.image.is_some(), "it goes on running");
    let text = refreshed.annotation("hostclaim.metal3.io/bond").unwrap();
    assert!(text.contains("new-uid") && text.contains(ID), "{text}");
}

#[test]
fn record_of_a_stranger_neither_keeps_a_claim_from_binding_nor_is_waited_for() {
    let foreign = merged(strange(), &json!({ "metadata": { "namespace": "aaa" } }));
    for change in [
        json!({}),
        json!({ "spec": { "hostSelector": { "inNamespace": "metal" } } }),
    ] {
        let mut waiting = facts(claim(&change), vec![host(&foreign), host(&json!({}))]);
        let (step, _) = after_reads(&mut waiting);
        assert_eq!(traced(&step).host(), Some(key("metal", "h")));
    }
    let slow = merged(
        foreign,
        &json!({ "status": { "provisioning": { "state": "registering" } } }),
    );
    let mut gone = facts(own(&deleted()), vec![host(&slow), host(&used())]);
    gone.policies.insert(key("aaa", "p"), rules(policy(&json!({}))));
    let (step, _) = after_reads(&mut gone);
    assert_eq!(
        written(&step).0.metadata.namespace.as_deref(),
        Some("metal"),
        "the real one is stripped"
    );
    assert!(written(&step).0.spec.image.is_none());
}

#[test]
fn host_with_a_record_and_a_policy_of_a_stranger_gets_nothing_of_a_claim_that_does_not_name_it() {
    let evil = json!({ "metadata": { "namespace": "x" }, "status": { "provisioning": { "state": "registering" } } });
    let spec = json!({ "poweredOn": true, "image": { "url": IMAGE }, "userData": { "name": "user" } });
    let selects = merged(
        spec.clone(),
        &json!({ "hostSelector": { "matchLabels": { "site": "a" } } }),
    );
    for spec in [spec, selects] {
        let mut facts = facts(claim(&json!({ "spec": spec })), vec![host(&merged(strange(), &evil))]);
        facts.policies.insert(key("x", "p"), rules(policy(&json!({}))));
        let (step, _) = after_reads(&mut facts);
        assert!(matches!(step, Step::End(_)), "{step:?}");
    }
}

#[test]
fn text_of_another_claim_s_trace_is_no_trace() {
    let mut copied = own(&json!({ "metadata": { "name": "copy" } }));
    assert!(Trace::of(&copied, &key("tenant", "copy")).is_none());
    copied.metadata.annotations = serde_json::from_value(json!({ "hostclaim.metal3.io/host": "{" })).unwrap();
    assert!(Trace::of(&copied, &key("tenant", "c")).is_none());
}

#[test]
fn promise_ends_with_the_bond() {
    let disabled = json!({ "spec": { "automatedCleaningMode": "disabled" } });
    let stale = |consumer: Value| {
        let change = merged(merged(bound(), &disabled), &json!({ "spec": { "consumerRef": null } }));
        host(&merged(change, &json!({ "spec": { "consumerRef": consumer } })))
    };
    let machine = json!({ "kind": "Metal3Machine", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "name": "m",
        "namespace": "metal" });
    assert!(promises_cleaning(&stale(consumer("c"))));
    assert!(!promises_cleaning(&stale(machine)));
    assert!(!promises_cleaning(&stale(consumer("other"))), "another claim's");
    assert!(!promises_cleaning(&stale(Value::Null)), "available, nothing deployed");
    let runs = merged(used(), &json!({ "spec": { "consumerRef": null } }));
    assert!(promises_cleaning(&host(&runs)), "what the claim left is cleaned once");
}

#[test]
fn host_in_use_without_a_readable_record_is_not_freed() {
    let later = json!({ "claim": "tenant/c", "cleaning": "full", "at": "2026-01-01T00:00:00Z" }).to_string();
    for (text, is_stripped) in [(Value::Null, false), (json!("{"), true), (json!(later), true)] {
        let used = merged(
            used(),
            &json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": text } } }),
        );
        for status in [status("h"), json!({})] {
            let gone = own(&merged(deleted(), &json!({ "status": status })));
            let mut facts = facts(gone, vec![host(&used)]);
            let (step, _) = after_reads(&mut facts);
            if is_stripped {
                let (stripped, _) = written(&step);
                assert!(stripped.spec.image.is_none() && stripped.spec.consumer_ref.is_some());
                assert!(promises_cleaning(stripped), "it is cleaned");
            } else {
                let (reason, why) = condition(&facts, &step, "Associated").unwrap();
                assert_eq!(reason, "HostClaimDeletionFailed");
                assert!(why.contains("spec.consumerRef"), "{why}");
            }
        }
    }
}

#[test]
fn policy_is_compiled_once_for_a_version() {
    let book = PolicyBook::following(&SharedCache::default());
    let versioned = |version: &str| {
        let mut policy = policy(&json!({ "nameMatches": "ten.*" }));
        policy.metadata.resource_version = Some(version.to_owned());
        Arc::new(policy)
    };
    let first = book.rules(&key("metal", "p"), &versioned("1"));
    assert!(first.accepts("tenant", None));
    assert!(Arc::ptr_eq(&first, &book.rules(&key("metal", "p"), &versioned("1"))));
    assert!(!Arc::ptr_eq(&first, &book.rules(&key("metal", "p"), &versioned("2"))));
}

#[test]
fn refused_bind_names_no_host_and_another_one_is_tried() {
    let mut two = facts(own(&json!({})), vec![host(&json!({})), host(&named("z", &json!({})))]);
    two.refused.insert(key("metal", "h"));
    let (step, _) = after_reads(&mut two);
    let next = traced(&step);
    assert_eq!(
        (next.host(), next.id.as_str()),
        (Some(key("metal", "z")), ID),
        "the same bond"
    );
    let mut one = facts(own(&json!({})), vec![host(&json!({}))]);
    one.refused.insert(key("metal", "h"));
    let (step, _) = after_reads(&mut one);
    assert!(has_recheck(&step), "{step:?}");
    let Step::End(End {
        report: Some(report), ..
    }) = &step
    else {
        unreachable!()
    };
    assert_eq!(report.status(&one.claim, Time::new(now())).bare_metal_host, None);
    let mut adopted = facts(
        own(&json!({})),
        vec![host(&json!({ "spec": { "consumerRef": consumer("c") } }))],
    );
    adopted.refused.insert(key("metal", "h"));
    assert!(has_recheck(&after_reads(&mut adopted).0));
}

#[test]
fn refused_change_of_a_deleted_claim_s_host_is_no_association() {
    let gone = facts(own(&deleted()), vec![host(&used())]);
    let status = Report::refused(&gone, &key("metal", "h"), &host(&used())).status(&gone.claim, Time::new(now()));
    let associated = status.conditions.iter().find(|one| one.type_ == "Associated").unwrap();
    assert_eq!(associated.reason, "HostClaimDeletionFailed");
}

#[test]
fn host_that_may_not_be_powered_off_is_stripped_and_served_all_the_same() {
    let stays_on = json!({ "spec": { "disablePowerOff": true } });
    let mut gone = facts(own(&deleted()), vec![host(&merged(used(), &stays_on))]);
    let (step, _) = after_reads(&mut gone);
    assert!(written(&step).0.spec.image.is_none() && written(&step).0.spec.online);
    let off = own(&json!({ "spec": { "poweredOn": false, "image": { "url": IMAGE } } }));
    let free = merged(
        bound(),
        &merged(stays_on.clone(), &json!({ "spec": { "online": true } })),
    );
    let mut served = facts(off.clone(), vec![host(&free)]);
    let (step, _) = after_reads(&mut served);
    assert!(written(&step).0.spec.image.is_some() && written(&step).0.spec.online);
    let mut synced = facts(off, vec![host(&merged(used(), &stays_on))]);
    let (step, _) = after_reads(&mut synced);
    let (_, why) = condition(&synced, &step, "Synchronized").unwrap();
    assert!(why.contains("power it off"), "{why}");
}

#[test]
fn claim_of_the_same_name_does_not_take_over_what_another_left() {
    let other = json!({ "claim": "tenant/c", "id": "former", "uid": "former-uid", "cleaning": "metadata",
        "at": "2026-01-01T00:00:00Z" })
    .to_string();
    let left = json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": other } } });
    let wanting = json!({ "spec": { "image": { "url": IMAGE } } });
    for (change, host_change) in [(wanting.clone(), used()), (json!({}), bound())] {
        let mut facts = facts(claim(&change), vec![host(&merged(host_change, &left))]);
        let (step, _) = after_reads(&mut facts);
        assert_eq!(condition(&facts, &step, "Ready").unwrap().0, "NoBareMetalHost");
        assert_eq!(strays(&facts).len(), 1, "its administrators are notified");
    }
    let mut named = facts(
        claim(&merged(wanting, &json!({ "status": status("h") }))),
        vec![host(&merged(used(), &left))],
    );
    let (step, _) = after_reads(&mut named);
    assert_eq!(
        condition(&named, &step, "Associated").unwrap().0,
        "BareMetalHostNotBound"
    );
}

#[test]
fn claim_stays_until_its_host_is_released_whatever_its_status_names() {
    let busy = merged(
        bound(),
        &json!({ "status": { "provisioning": { "state": "deprovisioning" } } }),
    );
    let elsewhere = json!({ "bareMetalHost": { "namespace": "x", "name": "y" } });
    for status in [elsewhere, json!({}), status("h")] {
        for change in [busy.clone(), used()] {
            let gone = own(&merged(deleted(), &json!({ "status": status })));
            let mut closed = facts(gone, vec![host(&change)]);
            closed.policies.clear();
            for knows_policies in [true, false] {
                closed.knows_policies = knows_policies;
                let (step, _) = after_reads(&mut closed.clone());
                assert_eq!(
                    condition(&closed, &step, "Associated").unwrap().0,
                    "HostClaimDeletionFailed"
                );
            }
            closed.policies.insert(key("metal", "p"), rules(policy(&json!({}))));
            let (step, _) = after_reads(&mut closed);
            assert!(!matches!(step, Step::Do(Action::Claim(_))), "{step:?}");
        }
    }
}

#[test]
fn trace_that_was_removed_is_recovered_from_the_host_that_the_status_names() {
    for gone in [json!({}), deleted()] {
        let lost = claim(&merged(gone, &json!({ "status": status("h") })));
        let mut facts = facts(lost, vec![host(&used())]);
        let (step, _) = after_reads(&mut facts);
        assert_eq!(traced(&step).id, ID);
    }
    // One of the same host with another identifier, too.
    let forged = json!({ "claim": "tenant/c", "host": "metal/h", "id": OTHER_ID, "uid": "y" }).to_string();
    let annotations = json!({ "hostclaim.metal3.io/host": forged });
    let changed = claim(&json!({ "metadata": { "annotations": annotations }, "status": status("h") }));
    let mut changed = super::facts(changed, vec![host(&used())]);
    assert_eq!(traced(&after_reads(&mut changed).0).id, ID);
    // A name in the status alone proves nothing: the record names another object.
    let other = own(&json!({ "metadata": { "uid": "other", "annotations": null }, "status": status("h") }));
    let mut facts = facts(other, vec![host(&used())]);
    let (step, _) = after_reads(&mut facts);
    assert_eq!(
        condition(&facts, &step, "Associated").unwrap().0,
        "BareMetalHostNotBound"
    );
}

#[test]
fn claim_with_a_bind_on_its_way_stays_until_it_cannot_come_any_more() {
    let mut facts = facts(own(&deleted()), vec![host(&json!({}))]);
    let (step, live) = after_reads(&mut facts);
    assert_eq!(live, 1, "the host of the trace");
    assert!(has_recheck(&step), "{step:?}");
    facts.deleted_for += Duration::from_secs(60);
    let (step, _) = after_reads(&mut facts);
    assert!(matches!(step, Step::Do(Action::Claim(_))), "{step:?}");
}

#[test]
fn what_no_watch_shows_is_tried_again() {
    let user = || Source::Secret {
        name: "user".to_owned(),
        version: "u/3".to_owned(),
    };
    let wanting = || own(&json!({ "spec": { "image": { "url": IMAGE }, "userData": { "name": "user" } } }));
    let with = |claim: HostClaim, host_change: &Value, pair: Pair| {
        let mut facts = facts(claim, vec![host(host_change)]);
        let mut copies = no_copies();
        copies.insert(Use::UserData, pair);
        facts.copies.insert(key("metal", "h"), copies);
        facts
    };
    for (source, copy) in [
        (user(), Copy::Refused),
        (user(), Copy::Foreign),
        (user(), Copy::Unknown),
        (Source::OtherUse, Copy::Absent),
        (Source::Unknown, Copy::Absent),
    ] {
        let mut facts = with(wanting(), &bound(), Pair { source, copy });
        assert!(has_recheck(&after_reads(&mut facts).0));
    }
    for copy in [Copy::Refused, Copy::Unknown] {
        let source = Source::Absent;
        let mut facts = with(own(&deleted()), &bound(), Pair { source, copy });
        let (step, _) = after_reads(&mut facts);
        assert!(has_recheck(&step), "{step:?}");
        assert_eq!(
            condition(&facts, &step, "Associated").unwrap().0,
            "HostClaimDeletionFailed"
        );
    }
}

#[test]
fn class_and_mark_of_a_move_silence_no_claim_with_a_host() {
    let class = json!({ "labels": { "infrastructure.cluster.x-k8s.io/hostclaim-class": "x" } });
    let mark = json!({ "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } });
    for (change, expected) in [(class, "HostClaimDeletionFailed"), (mark, "HostPaused")] {
        for gone in [deleted(), json!({})] {
            let mut facts = facts(own(&merged(gone, &json!({ "metadata": change }))), vec![host(&used())]);
            facts.policies.clear();
            let (step, _) = after_reads(&mut facts);
            assert!(matches!(&step, Step::End(End { report: Some(_), .. })), "{step:?}");
            if facts.claim.metadata.deletion_timestamp.is_some() {
                let name = if expected == "HostPaused" {
                    "Synchronized"
                } else {
                    "Associated"
                };
                assert_eq!(condition(&facts, &step, name).unwrap().0, expected);
            }
        }
    }
}

#[test]
fn annotations_and_texts_that_a_host_gets_are_bounded_and_the_rest_is_reported() {
    let many: BTreeMap<String, Value> = (0..5000)
        .map(|n| (format!("reboot.metal3.io/k{n}"), json!("")))
        .collect();
    let mut held = facts(
        own(&json!({ "metadata": { "annotations": many } })),
        vec![host(&bound())],
    );
    let (step, _) = after_reads(&mut held);
    assert!(written(&step).0.metadata.annotations.as_ref().unwrap().len() < 20);
    held.hosts.insert(key("metal", "h"), Arc::new(written(&step).0.clone()));
    let (step, _) = after_reads(&mut held);
    let (_, why) = condition(&held, &step, "Synchronized").unwrap();
    assert!(why.contains("more than 16 annotations"), "{why}");
    let invalid = json!({ "metadata": { "annotations": { "reboot.metal3.io": "[" } }, "spec": { "poweredOn": false } });
    let mut invalid = facts(own(&invalid), vec![host(&bound())]);
    let (step, _) = after_reads(&mut invalid);
    let (_, why) = condition(&invalid, &step, "Synchronized").unwrap();
    assert!(why.contains("cannot be read"), "{why}");
    let long = json!({ "spec": { "image": { "url": format!("http://a/{}", "x".repeat(9000)) } } });
    let mut long = facts(own(&long), vec![host(&bound())]);
    let (step, _) = after_reads(&mut long);
    let (_, why) = condition(&long, &step, "Synchronized").unwrap();
    assert!(why.contains("8192"), "{why}");
}

#[test]
fn released_host_is_kept_for_an_hour_and_one_that_machines_keep_is_no_claim_s() {
    let reuse = "infrastructure.cluster.x-k8s.io/node-reuse";
    let kept = |label: &str, until: Value| {
        let annotations = json!({ "hostclaim.metal3.io/kept-until": until });
        host(&json!({ "metadata": { "labels": { reuse: label }, "annotations": annotations } }))
    };
    let plain = || claim(&json!({}));
    let same = || claim(&json!({ "metadata": { "labels": { reuse: "kcp" } } }));
    for (claim, label, until, is_bound) in [
        (plain(), "gone.kcp", json!("2026-01-01T12:30:00Z"), false),
        (plain(), "gone.kcp", json!("2026-01-01T11:59:59Z"), true),
        (plain(), "gone.kcp", json!("2036-01-01T11:59:59Z"), true),
        (plain(), "gone.kcp", json!("soon"), true),
        (same(), "tenant.kcp", json!("2026-01-01T12:30:00Z"), true),
        (same(), "tenant.kcp", Value::Null, false),
        (plain(), "tenant.kcp", Value::Null, false),
    ] {
        let mut facts = facts(claim, vec![kept(label, until.clone())]);
        let (step, _) = after_reads(&mut facts);
        assert_eq!(
            matches!(step, Step::Do(Action::Claim(_))),
            is_bound,
            "{label} {until} {step:?}"
        );
    }
}

#[test]
fn waiting_claims_of_a_namespace_are_served_in_turns() {
    let mut indexes = ClaimIndexes::default();
    let name = |n: usize| key("tenant", &format!("c{n:03}"));
    for n in 0..250 {
        indexes.replace(&name(n), None, Some(&claim(&json!({}))));
    }
    indexes.replace(&key("other", "o"), None, Some(&claim(&json!({}))));
    assert_eq!(indexes.waiting().len(), 101);
    assert!(!indexes.is_beyond(&name(99)) && indexes.is_beyond(&name(100)));
    let served = claim(&json!({ "status": status("h") }));
    indexes.replace(&name(7), Some(&claim(&json!({}))), Some(&served));
    assert_eq!(indexes.next_of("tenant"), Some(name(100)));
    assert!(!indexes.is_beyond(&name(100)) && !indexes.is_beyond(&name(7)));
    let mut beyond = facts(claim(&json!({})), vec![host(&json!({}))]);
    beyond.is_beyond = true;
    let (_, why) = condition(&beyond, &plan(&beyond), "Associated").unwrap();
    assert!(why.contains("other claims of this namespace wait"), "{why}");
}

#[test]
fn unknown_is_not_reported_as_absent() {
    let named = claim(&json!({ "status": { "bareMetalHost": { "namespace": "metal", "name": "gone" } } }));
    let gone = facts(named, vec![]);
    assert_eq!(plan(&gone), Step::Read(Read::Host(key("metal", "gone"))));
    let mut hidden = gone;
    hidden.hidden.insert(key("metal", "gone"));
    let (_, why) = condition(&hidden, &plan(&hidden), "Associated").unwrap();
    assert!(why.contains("cannot be read"), "{why}");
    let mut unlisted = facts(claim(&json!({})), vec![host(&json!({}))]);
    unlisted.policies.clear();
    unlisted.knows_policies = false;
    let step = plan(&unlisted);
    assert_eq!(
        condition(&unlisted, &step, "Associated").unwrap().0,
        "HostDeployPolicyUnknown"
    );
    assert!(has_recheck(&step));
    let mut unlabelled = facts(claim(&json!({})), vec![host(&json!({}))]);
    let labelled = policy(&json!({ "hasLabels": [{ "name": "team" }] }));
    unlabelled.policies.insert(key("metal", "p"), rules(labelled));
    unlabelled.namespace = Observed::Unknown(metal3_runtime::plan::UnknownReason::NotPermitted);
    assert_eq!(plan(&unlabelled), Step::Read(Read::Namespace));
}

#[test]
fn host_that_may_not_be_read_keeps_a_deleted_claim_and_says_so() {
    let mut hidden = facts(own(&deleted()), vec![]);
    hidden.hidden.insert(key("metal", "h"));
    let (step, _) = after_reads(&mut hidden);
    let (reason, why) = condition(&hidden, &step, "Associated").unwrap();
    assert_eq!(reason, "HostClaimDeletionFailed");
    assert!(why.contains("cannot be read") && has_recheck(&step), "{why}");
}

fn with_hardware(labels: &Value) -> Facts {
    let labelled = merged(
        bound(),
        &json!({ "metadata": { "labels": { "rack": "r7" } }, "spec": { "online": true } }),
    );
    let mut facts = facts(own(&json!({ "status": status("h") })), vec![host(&labelled)]);
    let annotations = json!({ "hostclaim.metal3.io/copied-metadata": "{\"labels\":[\"rack\"],\"annotations\":[]}" });
    let annotations = if labels.is_null() { json!({}) } else { annotations };
    let metadata = json!({ "namespace": "metal", "name": "h", "resourceVersion": "1", "labels": labels, "annotations": annotations });
    let hardware: HardwareData = serde_json::from_value(json!({ "metadata": metadata, "spec": {} })).unwrap();
    facts.hardware.insert(key("metal", "h"), Arc::new(hardware));
    facts
}

#[test]
fn hardware_data_get_what_policies_say_that_were_read_and_lose_it_with_them() {
    let mut facts = with_hardware(&Value::Null);
    let mut copying = policy(&json!({}));
    copying.spec.metadata_copy = serde_json::from_value(json!({ "labelsMatch": ".*" })).unwrap();
    facts.policies.insert(key("metal", "q"), rules(copying));
    facts.policies.insert(key("metal", "z"), rules(policy(&json!({}))));
    facts.fresh.claim = true;
    facts.fresh.namespace = true;
    facts.fresh.policies.insert(key("metal", "z"));
    facts.fresh.hosts.insert(key("metal", "h"));
    facts.copies.insert(key("metal", "h"), no_copies());
    assert_eq!(plan(&facts), Step::Read(Read::Policy(key("metal", "q"))));
    let mut closed = with_hardware(&json!({ "rack": "r7" }));
    closed.policies.clear();
    let (step, live) = after_reads(&mut closed);
    let Step::Do(Action::Hardware(cleared)) = step else {
        unreachable!("{step:?}")
    };
    assert_eq!(
        (cleared.metadata.labels, live),
        (None, 0),
        "its removal needs no permission"
    );
}

#[test]
fn what_permits_a_write_is_read_again_before_the_next_one() {
    let mut facts = facts(
        own(&json!({ "spec": { "image": { "url": IMAGE } } })),
        vec![host(&bound())],
    );
    let (step, live) = after_reads(&mut facts);
    assert!(matches!(step, Step::Do(Action::Host(..))));
    assert_eq!(live, 4);
    facts.fresh.end_permission();
    let (_, live) = after_reads(&mut facts);
    assert_eq!(live, 3, "claim, namespace and policy; the host is known from the write");
}

#[test]
fn copy_that_the_claim_names_no_more_is_emptied() {
    let on = merged(bound(), &json!({ "spec": { "online": true } }));
    let mut facts = facts(own(&json!({})), vec![host(&on)]);
    let mut copies = no_copies();
    let filled = Pair {
        source: Source::None,
        copy: Copy::Own(Some("u/3".to_owned())),
    };
    copies.insert(Use::UserData, filled);
    facts.copies.insert(key("metal", "h"), copies);
    let (step, _) = after_reads(&mut facts);
    assert_eq!(step, Step::Do(Action::Empty(Use::UserData, key("metal", "h"))));
}

#[test]
fn record_that_cannot_be_read_is_not_served_and_says_what_to_do() {
    let change = json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": record("burn") } } });
    let mut facts = facts(
        own(&json!({ "spec": { "poweredOn": false } })),
        vec![host(&merged(used(), &change))],
    );
    let (step, _) = after_reads(&mut facts);
    let (reason, why) = condition(&facts, &step, "Associated").unwrap();
    assert_eq!(reason, "BareMetalHostNotBound");
    assert!(why.contains("hostclaim.metal3.io/bond"), "{why}");
    assert!(!is_free(&host(&used())));
}
