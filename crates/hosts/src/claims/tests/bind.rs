use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::choice::{Chooser, is_free, reuse_label};
use super::super::facts::Read;
use super::super::plan::{Action, Step, plan};
use super::{after_reads, bound, claim, condition, consumer, facts, host, key, merged, own, strange, written};
use crate::claims::bond::{Record, Trace};

#[test]
fn host_is_free_only_without_consumer_use_fault_or_mark() {
    assert!(is_free(&host(&json!({}))));
    let annotated = |name: &str| json!({ "metadata": { "annotations": { name: "" } } });
    for change in [
        json!({ "spec": { "consumerRef": consumer("c") } }),
        json!({ "spec": { "image": { "url": "http://a/b" } } }),
        json!({ "spec": { "customDeploy": { "method": "m" } } }),
        json!({ "spec": { "externallyProvisioned": true } }),
        annotated("hostclaim.metal3.io/bond"),
        json!({ "status": { "errorMessage": "x" } }),
        json!({ "status": { "operationalStatus": "detached" } }),
        json!({ "status": { "provisioning": { "state": "provisioned" } } }),
        json!({ "status": { "provisioning": { "state": "deprovisioning" } } }),
        json!({ "status": { "provisioning": { "image": { "url": "http://a/b" } } } }),
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
        annotated("baremetalhost.metal3.io/paused"),
        annotated("baremetalhost.metal3.io/detached"),
        annotated("baremetalhost.metal3.io/status"),
        annotated("clusterctl.cluster.x-k8s.io/delete-for-move"),
        annotated("capm3.metal3.io/unhealthy"),
    ] {
        assert!(!is_free(&host(&change)), "{change}");
    }
}

#[test]
fn kept_host_and_failure_domain_are_preferred_and_a_host_kept_for_others_is_not_chosen() {
    let domain = "infrastructure.cluster.x-k8s.io/failure-domain";
    let reuse = "infrastructure.cluster.x-k8s.io/node-reuse";
    let kept = json!({ "hostclaim.metal3.io/kept-until": "2026-01-01T12:30:00Z" });
    let named = |name: &str, labels: Value| {
        let annotations = if labels.get(reuse).is_some() {
            kept.clone()
        } else {
            json!({})
        };
        host(&json!({ "metadata": { "name": name, "labels": labels, "annotations": annotations } }))
    };
    let hosts = [
        named("plain", json!({})),
        named("near", json!({ domain: "z1" })),
        named("kept", json!({ reuse: "tenant.kcp" })),
        named("foreign", json!({ reuse: "other.kcp", domain: "z1" })),
    ];
    let chosen = |claim: &Value, of: &[usize]| {
        let claim = super::claim(claim);
        let tenant = key("tenant", "c");
        let keys: BTreeMap<_, _> = of
            .iter()
            .map(|index| (metal3_runtime::cache::Key::of(&hosts[*index]), &hosts[*index]))
            .collect();
        let chooser = Chooser::new(&claim, &tenant, super::now()).unwrap();
        chooser
            .choose(
                keys.iter()
                    .map(|(key, host)| (key, *host))
                    .filter(|(_, host)| chooser.selects(host)),
            )
            .map(|key| key.name.clone())
    };
    let near = json!({ "spec": { "failureDomain": "z1" } });
    assert_eq!(chosen(&near, &[0, 1, 3]).as_deref(), Some("near"));
    assert_eq!(chosen(&near, &[0, 3]).as_deref(), Some("plain"), "it is a preference");
    assert_eq!(chosen(&json!({}), &[2, 3]), None);
    let keeps = json!({ "metadata": { "labels": { reuse: "kcp" } }, "spec": { "failureDomain": "z1" } });
    assert_eq!(chosen(&keeps, &[0, 1, 2, 3]).as_deref(), Some("kept"));
    let elsewhere = json!({ "spec": { "hostSelector": { "inNamespace": "other" } } });
    assert_eq!(chosen(&elsewhere, &[0, 1]), None);
    let selects = json!({ "spec": { "hostSelector": { "matchLabels": { domain: "z1" } } } });
    assert_eq!(chosen(&selects, &[0, 1]).as_deref(), Some("near"));
}

#[test]
fn labels_of_two_namespaces_are_never_equal() {
    let reuse = "infrastructure.cluster.x-k8s.io/node-reuse";
    let label = |namespace: &str, value: &str| {
        reuse_label(
            &claim(&json!({ "metadata": { "labels": { reuse: value } } })),
            namespace,
        )
    };
    assert_eq!(label("a", ""), None);
    assert_eq!(label("a", "b.c").as_deref(), Some("a.b.c"));
    let long = label(&"n".repeat(63), &"v".repeat(63)).unwrap();
    assert!(long.len() <= 63 && !long.contains('.'), "{long}");
}

#[test]
fn claim_names_the_host_first_and_the_host_is_bound_after_live_reads_by_one_patch() {
    let new = claim(&json!({ "metadata": { "finalizers": null } }));
    let mut facts = facts(new, vec![host(&json!({}))]);
    let (step, live) = after_reads(&mut facts);
    assert_eq!(live, 4, "claim, namespace, policy and host");
    let Step::Do(Action::Claim(traced)) = step else {
        unreachable!("{step:?}")
    };
    let trace = Trace::of(&traced, &key("tenant", "c")).unwrap();
    assert_eq!(trace.host(), Some(key("metal", "h")));
    assert!(traced.metadata.finalizers.is_some(), "with the finalizer, in one patch");
    facts.wrote_claim(*traced);
    let (step, live) = after_reads(&mut facts);
    assert_eq!(live, 2, "what permits the bind is read again: namespace and policy");
    let (taken, what) = written(&step);
    assert_eq!(what, "bind the host");
    assert_eq!(Record::of(taken).unwrap().id, trace.id);
    assert_eq!(taken.metadata.resource_version.as_deref(), Some("5"));
}

#[test]
fn nothing_is_bound_without_a_policy() {
    let mut closed = facts(claim(&json!({})), vec![host(&json!({}))]);
    closed.policies.clear();
    let step = plan(&closed);
    let (reason, why) = condition(&closed, &step, "Associated").unwrap();
    assert_eq!(reason, "NoBareMetalHost");
    assert!(why.contains("a HostDeployPolicy permits"), "{why}");
}

#[test]
fn live_read_that_shows_another_host_or_no_policy_binds_nothing() {
    let mut taken = facts(claim(&json!({})), vec![host(&json!({}))]);
    for _ in 0..3 {
        let Step::Read(read) = plan(&taken) else { unreachable!() };
        match read {
            Read::Claim => taken.fresh.claim = true,
            Read::Namespace => taken.fresh.namespace = true,
            Read::Policy(key) => drop(taken.fresh.policies.insert(key)),
            Read::Host(_) | Read::Copies(_) => unreachable!(),
        }
    }
    assert!(matches!(plan(&taken), Step::Read(Read::Host(_))));
    let other = host(&json!({ "spec": { "consumerRef": consumer("other") } }));
    taken.hosts.insert(key("metal", "h"), other.into());
    taken.fresh.hosts.insert(key("metal", "h"));
    assert!(matches!(plan(&taken), Step::End(_)));
    let mut revoked = facts(claim(&json!({})), vec![host(&json!({}))]);
    revoked.fresh.claim = true;
    revoked.fresh.namespace = true;
    revoked.policies.clear();
    assert!(matches!(plan(&revoked), Step::End(_)));
}

#[test]
fn claim_of_another_class_is_left_alone_unless_this_program_serves_it() {
    let classed = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/hostclaim-class": "vm" } } });
    for deleted in [json!(null), json!("2026-01-01T00:00:00Z")] {
        let change = merged(
            classed.clone(),
            &json!({ "metadata": { "deletionTimestamp": deleted } }),
        );
        let other = facts(claim(&change), vec![host(&strange())]);
        let step = plan(&other);
        assert!(
            matches!(&step, Step::End(end) if end.report.is_none()),
            "{change} {step:?}"
        );
        let mut served = facts(own(&change), vec![host(&bound())]);
        let (step, _) = after_reads(&mut served);
        assert!(!matches!(&step, Step::End(end) if end.report.is_none()), "{step:?}");
    }
}

#[test]
fn selector_beyond_the_limit_or_unreadable_is_reported() {
    let many: Vec<Value> = (0..101)
        .map(|n| json!({ "key": format!("k{n}"), "operator": "exists", "values": [] }))
        .collect();
    let near = vec![json!({ "key": "k", "operator": "near", "values": [] })];
    for expressions in [many, near] {
        let change = json!({ "spec": { "hostSelector": { "matchExpressions": expressions } } });
        let facts = facts(claim(&change), vec![host(&json!({}))]);
        let (_, why) = condition(&facts, &plan(&facts), "Associated").unwrap();
        assert!(why.contains("cannot be evaluated"), "{why}");
    }
}
