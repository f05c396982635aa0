use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim};
use serde_json::{Value, json};

use super::super::copies::{Copy, Pair, Source, Use};
use super::super::plan::{Action, Step, plan};
use super::{
    after_reads, bound, claim, condition, consumer, facts, host, key, merged, no_copies, own, strange, written,
};
use crate::claims::facts::Facts;

fn image() -> Value {
    json!({ "url": "http://a/b", "checksum": "c", "ociAuthSecretName": "pull" })
}

fn wanting() -> HostClaim {
    own(&json!({ "spec": { "image": image(), "userData": { "name": "user" } } }))
}

/// The same, once its status names its host.
fn named() -> HostClaim {
    let named = json!({ "status": { "bareMetalHost": { "namespace": "metal", "name": "h" } } });
    serde_json::from_value(merged(serde_json::to_value(wanting()).unwrap(), &named)).unwrap()
}

fn with_copies(claim: HostClaim, host: BareMetalHost, of_user_data: Pair) -> Facts {
    let mut facts = facts(claim, vec![host]);
    let mut copies = no_copies();
    copies.insert(Use::UserData, of_user_data);
    facts.copies.insert(key("metal", "h"), copies);
    facts
}

fn pair(source: Source, copy: Copy) -> Pair {
    Pair { source, copy }
}

fn user() -> Source {
    Source::Secret {
        name: "user".to_owned(),
        version: "u/3".to_owned(),
    }
}

#[test]
fn host_gets_the_whole_spec_in_one_patch_with_names_of_copies_only() {
    let copy = Copy::Own(Some("u/3".to_owned()));
    let mut facts = with_copies(wanting(), host(&bound()), pair(user(), copy));
    let (step, live) = after_reads(&mut facts);
    let (given, _) = written(&step);
    assert_eq!(live, 4);
    let image = given.spec.image.clone().unwrap();
    assert_eq!(image.oci_auth_secret_name.as_deref(), Some("h.claim-registry-login"));
    let user_data = given.spec.user_data.clone().unwrap();
    assert_eq!(
        (user_data.name.as_deref(), user_data.namespace.as_deref()),
        (Some("h.claim-user-data"), Some("metal"))
    );
    assert!(given.spec.online && given.spec.network_data.is_none());
}

#[test]
fn nothing_is_deployed_before_each_secret_is_copied() {
    let copies = [Copy::Absent, Copy::Own(None), Copy::Own(Some("u/2".to_owned()))];
    for copy in copies {
        let mut facts = with_copies(wanting(), host(&bound()), pair(user(), copy.clone()));
        let (step, live) = after_reads(&mut facts);
        assert_eq!(
            step,
            Step::Do(Action::Fill(Use::UserData, key("metal", "h"))),
            "{copy:?}"
        );
        assert_eq!(live, 4);
    }
    for (source, copy, words) in [
        (Source::Absent, Copy::Absent, "does not exist"),
        (Source::Elsewhere, Copy::Absent, "names another namespace"),
        (Source::Invalid, Copy::Absent, "no valid name"),
        (Source::OtherUse, Copy::Absent, "login of a BMC"),
        (Source::OtherType, Copy::Absent, "of a type"),
        (Source::Unknown, Copy::Absent, "cannot be read now"),
        (user(), Copy::Foreign, "is another one"),
        (user(), Copy::Refused, "refuses it"),
        (user(), Copy::Unknown, "not known now"),
    ] {
        let mut facts = with_copies(named(), host(&bound()), pair(source, copy));
        let (step, live) = after_reads(&mut facts);
        let (reason, why) = condition(&facts, &step, "Synchronized").unwrap();
        assert_eq!((reason.as_str(), live), ("UserDataSecretSyncFailure", 0));
        assert!(why.starts_with("spec.userData ") && why.contains(words), "{why}");
    }
}

#[test]
fn provisioned_host_keeps_its_references_and_needs_no_secret() {
    let runs = json!({ "spec": { "online": true, "image": { "url": "http://a/b", "checksum": "c" } },
        "status": { "poweredOn": true, "provisioning": { "state": "provisioned", "image": { "url": "http://a/b", "checksum": "c" } } } });
    let host = host(&merged(bound(), &runs));
    let mut facts = with_copies(named(), host, pair(Source::Absent, Copy::Foreign));
    let (step, live) = after_reads(&mut facts);
    for name in ["Associated", "Synchronized", "Provisioned", "Ready"] {
        assert_eq!(condition(&facts, &step, name), None, "{name}");
    }
    assert_eq!(live, 0, "a settled claim costs no read");
}

#[test]
fn without_a_policy_nothing_is_changed_on_a_bound_host() {
    let mut facts = facts(wanting(), vec![host(&bound())]);
    facts.policies.clear();
    let step = plan(&facts);
    assert_eq!(condition(&facts, &step, "Associated"), None);
    assert_eq!(
        condition(&facts, &step, "Synchronized").unwrap().0,
        "HostDeployPolicyMissing"
    );
    facts.knows_policies = false;
    let step = plan(&facts);
    assert_eq!(
        condition(&facts, &step, "Synchronized").unwrap().0,
        "HostDeployPolicyUnknown"
    );
}

#[test]
fn host_without_a_record_is_bound_only_while_it_is_in_no_use() {
    let unused = json!({ "spec": { "consumerRef": consumer("c") } });
    let mut adopted = facts(claim(&json!({})), vec![host(&unused)]);
    let (step, live) = after_reads(&mut adopted);
    assert!(matches!(&step, Step::Do(Action::Claim(_))), "the trace first: {step:?}");
    assert_eq!(live, 4);
    let mut adopted = facts(own(&json!({})), vec![host(&unused)]);
    let (step, live) = after_reads(&mut adopted);
    assert_eq!((written(&step).1, live), ("bind the host", 4));
    let used = merged(unused, &json!({ "spec": { "image": { "url": "http://other/" } } }));
    let mut claim = claim(&json!({}));
    let foreign = facts(claim.clone(), vec![host(&used)]);
    assert_eq!(
        condition(&foreign, &plan(&foreign), "Associated").unwrap().0,
        "NoBareMetalHost"
    );
    let named = json!({ "bareMetalHost": { "namespace": "metal", "name": "h" } });
    claim.status = serde_json::from_value(named).unwrap();
    let foreign = facts(claim, vec![host(&used)]);
    assert_eq!(
        condition(&foreign, &plan(&foreign), "Associated").unwrap().0,
        "BareMetalHostNotBound"
    );
}

#[test]
fn pause_of_the_claim_is_passed_on_and_taken_back_and_that_of_others_is_kept() {
    let paused_claim = || own(&json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } }));
    let paused = |value: &str| {
        let annotations = json!({ "baremetalhost.metal3.io/paused": value });
        host(&merged(bound(), &json!({ "metadata": { "annotations": annotations } })))
    };
    let mut passed = facts(paused_claim(), vec![host(&bound())]);
    let (step, _) = after_reads(&mut passed);
    assert_eq!(
        written(&step).0.annotation("baremetalhost.metal3.io/paused"),
        Some("metal3.io/hostclaim")
    );
    let mut back = facts(own(&json!({})), vec![paused("metal3.io/hostclaim")]);
    let (step, _) = after_reads(&mut back);
    assert_eq!(written(&step).0.annotation("baremetalhost.metal3.io/paused"), None);
    for (claim, value) in [(own(&json!({})), "user"), (paused_claim(), "user")] {
        let mut facts = facts(claim, vec![paused(value)]);
        let (step, _) = after_reads(&mut facts);
        assert_eq!(condition(&facts, &step, "Synchronized").unwrap().0, "HostPaused");
    }
}

#[test]
fn reboot_is_renamed_passed_on_with_its_identifier_and_removed() {
    let annotated = |annotations: Value| own(&json!({ "metadata": { "annotations": annotations } }));
    let asked = annotated(json!({ "reboot.metal3.io": "{\"mode\":\"hard\",\"why\":\"canary\"}" }));
    let (step, _) = after_reads(&mut facts(asked, vec![host(&bound())]));
    let Step::Do(Action::Claim(renamed)) = step else {
        unreachable!("{step:?}")
    };
    let pending = renamed.metadata.annotations.clone().unwrap();
    assert!(!pending.contains_key("reboot.metal3.io") && pending.contains_key("hostclaim.metal3.io/reboot"));
    let mut passing = facts(*renamed, vec![host(&bound())]);
    let (step, _) = after_reads(&mut passing);
    let (rebooting, _) = written(&step);
    let value = rebooting.annotation("reboot.metal3.io").unwrap();
    assert!(value.contains("hard") && !value.contains("canary"), "{value}");
    let mut taken = rebooting.clone();
    // The controller of hosts has done it.
    taken.metadata.annotations.as_mut().unwrap().remove("reboot.metal3.io");
    passing.hosts.insert(key("metal", "h"), taken.into());
    let (step, _) = after_reads(&mut passing);
    assert!(
        matches!(&step, Step::Do(Action::Claim(claim)) if claim.metadata.annotations.as_ref().is_some_and(|all| all.len() == 1)),
        "it is not passed on twice: {step:?}"
    );
}

#[test]
fn keys_that_hold_the_host_off_are_its_own_and_only_those_are_removed() {
    let asked =
        own(&json!({ "metadata": { "annotations": { "reboot.metal3.io/work": "", "reboot.metal3.io/bad": "[" } } }));
    let of_admin = json!({ "metadata": { "annotations": { "reboot.metal3.io/admin": "" } } });
    let mut facts = facts(asked, vec![host(&merged(bound(), &of_admin))]);
    let (step, _) = after_reads(&mut facts);
    let held = written(&step).0.clone();
    assert!(held.annotation("reboot.metal3.io/hostclaim-work").is_some());
    assert!(held.annotation("reboot.metal3.io/hostclaim-bad").is_none());
    facts.claim = own(&json!({})).into();
    facts.hosts.insert(key("metal", "h"), held.into());
    let (step, _) = after_reads(&mut facts);
    let let_go = written(&step).0;
    assert!(let_go.annotation("reboot.metal3.io/hostclaim-work").is_none());
    assert!(let_go.annotation("reboot.metal3.io/admin").is_some());
}

#[test]
fn status_contains_no_text_of_the_host() {
    let canaries = json!({
        "metadata": { "annotations": { "note": "canary-a" }, "labels": { "l": "canary-l" } },
        "spec": { "description": "canary-d", "bootMACAddress": "02:00:00:00:ca:fe", "bmc": { "address": "redfish://canary-b", "credentialsName": "canary-c" } },
        "status": { "errorMessage": "canary-e", "operationalStatus": "error", "errorType": "power management error",
            "goodCredentials": { "credentials": { "name": "canary-g" } }, "provisioning": { "state": "canary-s", "ID": "canary-n" } },
    });
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" },
        "status": { "bareMetalHost": { "namespace": "metal", "name": "h" } } });
    for (claim, more) in [
        (own(&json!({})), json!({})),
        (own(&deleted), json!({})),
        (own(&json!({})), json!({ "spec": { "consumerRef": consumer("other") } })),
    ] {
        let mut facts = facts(claim, vec![host(&merged(merged(bound(), &canaries), &more))]);
        for _ in 0..4 {
            let (step, _) = after_reads(&mut facts);
            match step {
                Step::Do(Action::Host(host, _)) => drop(facts.hosts.insert(key("metal", "h"), (*host).into())),
                Step::Do(Action::Claim(claim)) => facts.wrote_claim(*claim),
                Step::End(end) => {
                    let status = end
                        .report
                        .unwrap()
                        .status(&facts.claim, metal3_api::meta::Time::new(facts.now));
                    let text = serde_json::to_string(&status).unwrap();
                    assert!(!text.contains("canary") && !text.contains("redfish"), "{text}");
                    break;
                }
                other => unreachable!("{other:?}"),
            }
        }
    }
}

#[test]
fn bound_host_that_is_absent_is_missing_and_not_replaced() {
    let named = json!({ "status": { "bareMetalHost": { "namespace": "metal", "name": "gone" } } });
    let mut facts = facts(claim(&named), vec![host(&json!({}))]);
    let (step, live) = after_reads(&mut facts);
    assert_eq!(live, 1, "not from a cache alone");
    assert_eq!(
        condition(&facts, &step, "Associated").unwrap().0,
        "MissingBareMetalHost"
    );
    assert_eq!(condition(&facts, &step, "Ready").unwrap().0, "MissingBareMetalHost");
}

#[test]
fn host_of_another_namespace_than_the_claim_asks_for_is_not_served_whatever_names_the_claim() {
    let forged = [strange(), json!({ "spec": { "consumerRef": consumer("c") } })];
    for change in forged {
        let pinned = claim(&json!({ "spec": { "image": image(), "hostSelector": { "inNamespace": "fleet" } } }));
        let facts = facts(pinned, vec![host(&change)]);
        let step = plan(&facts);
        assert_eq!(
            condition(&facts, &step, "Associated").unwrap().0,
            "NoBareMetalHost",
            "{change}"
        );
    }
    let selects = json!({ "spec": { "hostSelector": { "matchLabels": { "size": "large" } } } });
    let unselected = host(&json!({ "spec": { "consumerRef": consumer("c") } }));
    let facts = facts(claim(&selects), vec![unselected]);
    assert_eq!(
        condition(&facts, &plan(&facts), "Associated").unwrap().0,
        "NoBareMetalHost"
    );
}
