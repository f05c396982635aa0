//! What a claim may not lose with its annotation or its status, and what annotations, hosts and selectors may not cost.

use std::sync::Arc;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::HardwareData;
use metal3_runtime::cache::{Change, Indexes as _, SharedIndexes};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::super::bond::{Trace, promises_cleaning};
use super::super::choice::Chooser;
use super::super::copies;
use super::super::facts::Read;
use super::super::plan::{Action, End, Step, plan};
use super::super::watches::{ClaimIndexes, of_host};
use super::{
    ID, OTHER_ID, after_reads, bound, claim, condition, consumer, facts, host, key, merged, no_copies, now, own,
    policy, rules, strange, written, wrote,
};

const IMAGE: &str = "http://a/b";
const REUSE: &str = "infrastructure.cluster.x-k8s.io/node-reuse";

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
    json!({ "status": { "bareMetalHost": { "namespace": "metal", "name": host } } })
}

/// A trace of this identifier, as an annotation.
fn traces(host: &str, id: &str, uid: &str) -> Value {
    let text = json!({ "claim": "tenant/c", "host": host, "id": id, "uid": uid }).to_string();
    json!({ "metadata": { "annotations": { "hostclaim.metal3.io/host": text } } })
}

fn traced(step: &Step) -> Trace {
    match step {
        Step::Do(Action::Claim(claim)) => Trace::of(claim, &key("tenant", "c")).unwrap(),
        other => unreachable!("{other:?}"),
    }
}

fn lets_go(step: &Step) -> bool {
    matches!(step, Step::Do(Action::Claim(claim)) if claim.metadata.finalizers.as_ref().is_none_or(Vec::is_empty))
}

fn has_recheck(step: &Step) -> bool {
    matches!(step, Step::End(End { next: Next::Waiting(on), .. }) if on.recheck.is_some())
}

#[test]
fn host_with_the_uid_of_the_claim_is_its_host_without_trace_and_status() {
    let free = host(&named("n", &json!({})));
    for annotations in [json!({}), traces("metal/n", OTHER_ID, "claim-uid")] {
        for gone in [json!({}), deleted()] {
            for taken in [used(), bound()] {
                let lost = claim(&merged(annotations.clone(), &gone));
                let mut lost = facts(lost, vec![host(&taken), free.clone()]);
                let (step, _) = after_reads(&mut lost);
                let recovered = traced(&step);
                assert_eq!((recovered.host(), recovered.id.as_str()), (Some(key("metal", "h")), ID));
            }
        }
    }
    let mut unknown = facts(claim(&json!({})), vec![host(&strange()), free]);
    let (step, _) = after_reads(&mut unknown);
    assert_eq!(
        traced(&step).host(),
        Some(key("metal", "n")),
        "a record of a stranger is none"
    );
}

#[test]
fn status_names_the_host_before_it_gets_anything() {
    let mut facts = facts(
        own(&json!({ "spec": { "image": { "url": IMAGE } } })),
        vec![host(&bound())],
    );
    facts.copies.insert(key("metal", "h"), no_copies());
    let mut reads = 0;
    let report = loop {
        match plan(&facts) {
            Step::Read(Read::Claim) => facts.fresh.claim = true,
            Step::Read(Read::Namespace) => facts.fresh.namespace = true,
            Step::Read(Read::Policy(key)) => drop(facts.fresh.policies.insert(key)),
            Step::Read(Read::Host(key)) => drop(facts.fresh.hosts.insert(key)),
            Step::Do(Action::Status(report)) => break report,
            other => unreachable!("{other:?}"),
        }
        reads += 1;
        assert!(reads < 10);
    };
    wrote(&mut facts, &report);
    assert_eq!(
        facts
            .claim
            .status
            .bare_metal_host
            .as_ref()
            .map(|host| host.name.as_str()),
        Some("h")
    );
    let (step, live) = after_reads(&mut facts);
    assert!(written(&step).0.spec.image.is_some());
    assert_eq!(live, 0, "the reads before it permit the spec, too");
}

#[test]
fn two_hosts_with_the_uid_of_the_claim_are_given_back_while_unused_and_otherwise_keep_it() {
    for gone in [json!({}), deleted()] {
        let unused = vec![host(&bound()), host(&named("z", &bound()))];
        let mut unused = facts(claim(&gone), unused);
        unused.deleted_for += Duration::from_mins(5);
        let (step, _) = after_reads(&mut unused);
        assert!(written(&step).0.spec.consumer_ref.is_none(), "{step:?}");
        let mut busy = facts(claim(&gone), vec![host(&used()), host(&named("z", &used()))]);
        busy.deleted_for += Duration::from_mins(5);
        let (step, _) = after_reads(&mut busy);
        let (_, why) = condition(&busy, &step, "Associated").unwrap();
        assert!(why.contains("another host carries the bond"), "{why}");
    }
}

#[test]
fn claim_that_waits_for_its_host_gets_no_other_one_when_its_annotation_changes() {
    let missing = json!({ "status": { "conditions": [{ "type": "Associated", "status": "False",
        "reason": "MissingBareMetalHost", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    let unreported = json!({ "status": { "conditions": [] } });
    let moved = json!({ "metadata": { "uid": "new-uid" } });
    for (change, status) in [
        (json!({}), &missing),
        (traces("metal/gone", ID, "new-uid"), &missing),
        (json!({}), &unreported),
    ] {
        let changed = claim(&merged(merged(moved.clone(), &change), status));
        let mut facts = facts(changed, vec![host(&json!({}))]);
        let (step, _) = after_reads(&mut facts);
        assert_eq!(
            condition(&facts, &step, "Associated").unwrap().0,
            "MissingBareMetalHost",
            "{change} {status}"
        );
    }
    let new = claim(&merged(unreported, &json!({ "metadata": { "finalizers": [] } })));
    let mut new = facts(new, vec![host(&json!({}))]);
    assert_eq!(traced(&after_reads(&mut new).0).host(), Some(key("metal", "h")));
}

#[test]
fn deleted_claim_without_a_status_waits_for_a_bind_on_its_way_whatever_its_annotation_says() {
    for change in [
        json!({}),
        traces("metal/h", ID, "edited"),
        traces("metal/h", ID, "claim-uid"),
    ] {
        let mut facts = facts(claim(&merged(deleted(), &change)), vec![host(&json!({}))]);
        let (step, _) = after_reads(&mut facts);
        assert!(has_recheck(&step), "{change} {step:?}");
        facts.deleted_for += Duration::from_secs(60);
        let (step, _) = after_reads(&mut facts);
        assert!(lets_go(&step), "{change} {step:?}");
    }
}

#[test]
fn deleted_claim_is_not_let_go_while_a_further_host_with_its_identifier_is_bound() {
    let gone = own(&merged(deleted(), &status("h")));
    let free = host(&json!({}));
    let paused = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } });
    for (further, is_open) in [(used(), true), (merged(bound(), &paused), true), (bound(), false)] {
        let further = merged(named("z", &further), &json!({ "metadata": { "namespace": "fleet" } }));
        let mut facts = facts(gone.clone(), vec![free.clone(), host(&further)]);
        if is_open {
            facts.policies.insert(key("fleet", "p"), rules(policy(&json!({}))));
        }
        let (step, live) = after_reads(&mut facts);
        let (reason, why) = condition(&facts, &step, "Associated").unwrap();
        assert_eq!(reason, "HostClaimDeletionFailed");
        assert!(why.contains("another host carries") && has_recheck(&step), "{why}");
        assert_eq!(live, 2, "both hosts");
        facts.hosts.remove(&key("fleet", "z"));
        let (step, _) = after_reads(&mut facts);
        assert!(lets_go(&step), "{step:?}");
    }
}

#[test]
fn annotation_that_names_another_bound_host_replaces_the_status_in_no_case() {
    // Another user made his host name the claim, and the tenant named it in the annotation.
    let x = named("x", &strange());
    let to_x = |uid: &str| merged(traces("metal/x", OTHER_ID, uid), &status("h"));
    let mut recovered = facts(claim(&to_x("claim-uid")), vec![host(&used()), host(&x)]);
    let (step, _) = after_reads(&mut recovered);
    assert_eq!(traced(&step).host(), Some(key("metal", "h")));
    // The record of the host that runs has another UID, as after a restoration with the status.
    let restored = merged(to_x("new-uid"), &json!({ "metadata": { "uid": "new-uid" } }));
    let mut contested = facts(claim(&restored), vec![host(&used()), host(&x)]);
    let (step, live) = after_reads(&mut contested);
    let (reason, why) = condition(&contested, &step, "Associated").unwrap();
    assert_eq!((reason.as_str(), live), ("BareMetalHostNotBound", 1));
    assert!(why.contains("names another host than the status"), "{why}");
    contested.hidden.insert(key("metal", "h"));
    contested.hosts.remove(&key("metal", "h"));
    let (step, _) = after_reads(&mut contested);
    assert_eq!(
        condition(&contested, &step, "Associated").unwrap().0,
        "BareMetalHostNotBound",
        "unknown is not absent"
    );
}

#[test]
fn identifier_of_an_annotation_is_one_that_this_program_writes_or_it_is_none() {
    let too_long = "a".repeat(200_000);
    for id in [
        "",
        "x",
        ID.trim_start_matches('0'),
        &ID.to_uppercase(),
        &format!("{ID}0"),
        too_long.as_str(),
    ] {
        let forged = claim(&traces("a/b", id, "claim-uid"));
        assert!(
            Trace::of(&forged, &key("tenant", "c")).is_none(),
            "{} characters",
            id.len()
        );
        let mut facts = facts(forged, vec![host(&json!({}))]);
        let (step, _) = after_reads(&mut facts);
        let trace = traced(&step);
        assert_eq!((trace.host(), trace.id.len()), (Some(key("metal", "h")), 40));
    }
    let long = claim(&traces("a/b", ID, &"u".repeat(5000)));
    assert!(Trace::of(&long, &key("tenant", "c")).is_none());
    assert!(Trace::of(&claim(&traces("a/b", ID, "u")), &key("tenant", "c")).is_some());
}

#[test]
fn annotations_of_claims_have_none_enqueued_by_a_host() {
    let mut indexes = SharedIndexes::<ClaimIndexes>::default();
    let traced = claim(&traces("metal/h", ID, "claim-uid"));
    for n in 0..500 {
        indexes.replace(&key("tenant", &format!("c{n:03}")), None, Some(&traced));
    }
    indexes.replace(&key("tenant", "z"), None, Some(&claim(&status("h"))));
    let change = Change::Applied {
        old: None,
        new: &host(&used()),
        was_unreadable: false,
    };
    assert_eq!(
        of_host(&change, &indexes),
        [key("tenant", "c"), key("tenant", "z")],
        "its consumer, and the claim whose status names it"
    );
}

#[test]
fn host_is_kept_only_after_it_ran_something_and_not_from_kept_to_kept() {
    let labels = json!({ "metadata": { "labels": { REUSE: "kcp" } } });
    let gone = || own(&merged(merged(deleted(), &status("h")), &labels));
    let kept = |record: &Value| {
        let members = json!({ "claim": "tenant/c", "id": ID, "uid": "claim-uid", "cleaning": "metadata" });
        let text = merged(members, record).to_string();
        let annotations = json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": text } } });
        let mut facts = facts(gone(), vec![host(&merged(bound(), &annotations))]);
        let (step, _) = after_reads(&mut facts);
        written(&step).0.label(REUSE).is_some()
    };
    let (lately, before) = ("2026-01-01T11:30:00Z", "2026-01-01T10:00:00Z");
    assert!(!kept(&json!({ "at": lately })), "nothing ran");
    assert!(kept(&json!({ "at": lately, "deployed": true })));
    assert!(
        !kept(&json!({ "at": lately, "deployed": true, "reused": true })),
        "renewed"
    );
    assert!(
        kept(&json!({ "at": before, "deployed": true, "reused": true })),
        "it was used"
    );
    let mut running = facts(gone(), vec![host(&used())]);
    let (step, _) = after_reads(&mut running);
    let text = written(&step).0.annotation("hostclaim.metal3.io/bond").unwrap();
    assert!(text.contains("\"deployed\":true"), "{text}");
    let kept = json!({ "metadata": { "labels": { REUSE: "tenant.kcp" },
        "annotations": { "hostclaim.metal3.io/kept-until": "2026-01-01T12:30:00Z" } } });
    let mut taken = facts(own(&labels), vec![host(&kept)]);
    let (step, _) = after_reads(&mut taken);
    let text = written(&step).0.annotation("hostclaim.metal3.io/bond").unwrap();
    assert!(text.contains("\"reused\":true"), "{text}");
}

#[test]
fn values_of_a_selector_are_limited() {
    let selects = |count: usize| {
        let values: Vec<_> = (0..count).map(|n| format!("v{n}")).collect();
        let half = |key: &str| json!({ "key": key, "operator": "notin", "values": values });
        let expressions = json!([half("a"), half("b")]);
        let wide = claim(&json!({ "spec": { "hostSelector": { "matchExpressions": expressions } } }));
        Chooser::new(&wide, &key("tenant", "c"), now()).is_some()
    };
    assert!(selects(500) && !selects(501));
}

#[test]
fn policy_is_read_again_after_the_write_of_the_annotation() {
    let mut facts = facts(claim(&json!({})), vec![host(&json!({}))]);
    let (step, _) = after_reads(&mut facts);
    let Step::Do(Action::Claim(traced)) = step else {
        unreachable!("{step:?}")
    };
    facts.wrote_claim(*traced);
    assert_eq!(plan(&facts), Step::Read(Read::Namespace));
    facts.policies.clear();
    let (step, _) = after_reads(&mut facts);
    assert!(lets_go(&step), "the annotation goes again: {step:?}");
}

#[test]
fn refused_hosts_end_in_a_condition_after_a_few() {
    let hosts = |namespace: &str| -> Vec<_> {
        let of = |n| json!({ "metadata": { "namespace": namespace, "name": format!("h{n:02}") } });
        (0..40).map(|n| host(&of(n))).collect()
    };
    let mut all = hosts("metal");
    all.extend(hosts("fleet"));
    let mut facts = facts(claim(&json!({})), all);
    facts.policies.insert(key("fleet", "p"), rules(policy(&json!({}))));
    let mut refused = 0;
    loop {
        let (step, _) = after_reads(&mut facts);
        match step {
            Step::Do(Action::Claim(claim)) => facts.wrote_claim(*claim),
            Step::Do(Action::Host(host, "bind the host")) => {
                facts.refused.insert(metal3_runtime::cache::Key::of(&*host));
                refused += 1;
            }
            step => {
                let (_, why) = condition(&facts, &step, "Associated").unwrap();
                assert!(why.contains("refuses to bind") && has_recheck(&step), "{why}");
                break;
            }
        }
        assert!(refused < 20);
    }
    assert_eq!(refused, 6, "three of each namespace");
}

#[test]
fn copies_to_hardware_data_go_with_the_policy_of_a_deleted_claim_too() {
    let mut closed = facts(own(&merged(deleted(), &status("h"))), vec![host(&used())]);
    closed.policies.clear();
    let annotations = json!({ "hostclaim.metal3.io/copied-metadata": "{\"labels\":[\"rack\"],\"annotations\":[]}" });
    let metadata = json!({ "namespace": "metal", "name": "h", "resourceVersion": "1", "labels": { "rack": "r7" },
        "annotations": annotations });
    let hardware: HardwareData = serde_json::from_value(json!({ "metadata": metadata, "spec": {} })).unwrap();
    closed.hardware.insert(key("metal", "h"), Arc::new(hardware));
    for knows_policies in [false, true] {
        closed.knows_policies = knows_policies;
        let (step, _) = after_reads(&mut closed);
        assert_eq!(
            matches!(step, Step::Do(Action::Hardware(_))),
            knows_policies,
            "not while policies are unknown: {step:?}"
        );
    }
}

#[test]
fn labels_of_namespaces_that_no_watch_shows_are_looked_at_again() {
    let labelled = || policy(&json!({ "hasLabels": [{ "name": "team" }] }));
    let named = own(&status("h"));
    for (claim, taken) in [(claim(&json!({})), json!({})), (named, bound())] {
        for is_watched in [true, false] {
            let mut facts = facts(claim.clone(), vec![host(&taken)]);
            facts.policies.insert(key("metal", "p"), rules(labelled()));
            facts.watches_namespaces = is_watched;
            facts.namespace = Observed::Unknown(UnknownReason::NotPermitted);
            let step = loop {
                match plan(&facts) {
                    Step::Read(Read::Namespace) => {
                        facts.namespace = Observed::Present(std::collections::BTreeMap::new());
                        facts.fresh.namespace = true;
                    }
                    step => break step,
                }
            };
            assert_eq!(has_recheck(&step), !is_watched, "{step:?}");
        }
    }
}

#[test]
fn name_of_a_host_in_use_shows_nothing_where_hosts_are_open_either() {
    let of_other = json!({ "spec": { "consumerRef": consumer("other") } });
    let mut texts = Vec::new();
    let picky = json!({ "spec": { "hostSelector": { "matchLabels": { "no": "such" } } } });
    for hosts in [vec![host(&of_other)], Vec::new(), vec![host(&json!({}))]] {
        let mut facts = facts(own(&picky), hosts);
        let (step, _) = after_reads(&mut facts);
        let Step::Do(Action::Claim(waits)) = step else {
            unreachable!("{step:?}")
        };
        assert!(waits.metadata.annotations.as_ref().is_none_or(|all| all.is_empty()));
        facts.wrote_claim(*waits);
        let (step, _) = after_reads(&mut facts);
        texts.push(condition(&facts, &step, "Associated").unwrap().0);
    }
    assert!(texts.iter().all(|text| text == "NoBareMetalHost"), "{texts:?}");
}

#[test]
fn secret_that_a_host_controls_is_no_source_also_while_it_is_empty() {
    let meta = |change: Value| {
        serde_json::from_value(merged(json!({ "name": "h2.claim-user-data", "uid": "s" }), &change)).unwrap()
    };
    let owner = |kind: &str, controls: bool| json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": kind, "name": "h2", "uid": "u", "controller": controls }] });
    assert!(copies::is_source(&meta(json!({}))));
    assert!(copies::is_source(&meta(owner("KubeadmConfig", true))));
    assert!(!copies::is_source(&meta(owner("BareMetalHost", true))));
    let filled = json!({ "annotations": { "hostclaim.metal3.io/copy-of": "u/1" } });
    assert!(!copies::is_source(&meta(filled)));
}

#[test]
fn host_elsewhere_than_the_claim_asks_for_is_not_adopted() {
    let pinned = json!({ "spec": { "hostSelector": { "inNamespace": "fleet" } } });
    let of_go = json!({ "spec": { "consumerRef": consumer("c") } });
    let mut facts = facts(own(&merged(pinned, &status("h"))), vec![host(&of_go)]);
    let (step, _) = after_reads(&mut facts);
    assert_eq!(
        condition(&facts, &step, "Associated").unwrap().0,
        "BareMetalHostNotBound"
    );
}

#[test]
fn text_of_anyone_on_a_host_without_a_consumer_promises_no_cleaning() {
    let text = |text: &str, consumer: Value| {
        let change = json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": text } },
            "spec": { "automatedCleaningMode": "disabled", "consumerRef": consumer } });
        host(&merged(
            merged(used(), &json!({ "spec": { "consumerRef": null } })),
            &change,
        ))
    };
    assert!(!promises_cleaning(&text("x", Value::Null)));
    assert!(
        promises_cleaning(&text("x", consumer("c"))),
        "unreadable is no permission"
    );
}
