mod zones;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn machine(spec: Value) -> Metal3Machine {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "alpha" });
    let metadata = json!({ "name": "w-0", "namespace": "lab", "uid": "uid-w-0", "generation": 1, "labels": labels });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

/// A free host, with these patches.
fn host(name: &str, patch: Value) -> BareMetalHost {
    let mut object = json!({
        "metadata": { "name": name, "namespace": "lab", "uid": format!("uid-{name}"), "labels": {}, "annotations": {} },
        "spec": { "online": false },
        "status": {
            "operationalStatus": "OK", "errorMessage": "", "poweredOn": false,
            "provisioning": { "state": "available", "ID": "" },
        },
    });
    merge(&mut object, patch);
    serde_json::from_value(object).unwrap()
}

fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch,
    }
}

fn labelled(name: &str, key: &str, value: &str) -> BareMetalHost {
    host(name, json!({ "metadata": { "labels": { key: value } } }))
}

fn choose<'a>(machine: &'a Metal3Machine, hosts: &'a [BareMetalHost]) -> Choice<'a> {
    HostChooser::try_new(machine, Some("md-workers")).unwrap().choose(hosts)
}

/// Name of the chosen host.
fn chosen(choice: &Choice<'_>) -> Option<String> {
    match choice {
        Choice::Take { host, .. } => host.metadata.name.clone(),
        Choice::Own(_) | Choice::None(_) => None,
    }
}

fn consumer(kind: &str, api_version: &str, name: &str) -> Value {
    json!({ "spec": { "consumerRef": { "kind": kind, "apiVersion": api_version, "name": name, "namespace": "lab" } } })
}

const GROUP_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

#[test]
fn unusable_hosts_have_their_own_refusal() {
    let annotated = |key: &str| json!({ "metadata": { "annotations": { key: "" } } });
    let in_use = |kind: &str, name: &str| Refusal::InUse {
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let reuse = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "md-others" } } });
    let rows = [
        (
            consumer("Metal3Machine", GROUP_VERSION, "w-1"),
            in_use("Metal3Machine", "w-1"),
        ),
        (
            consumer("Metal3Machine", "example.com/v1", "w-0"),
            in_use("Metal3Machine", "w-0"),
        ),
        (
            consumer("HostClaim", "metal3.io/v1alpha1", "w-0"),
            in_use("HostClaim", "w-0"),
        ),
        (
            reuse,
            Refusal::KeptForAnother {
                owner: "md-others".into(),
            },
        ),
        (
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
            Refusal::Deleting,
        ),
        (annotated("baremetalhost.metal3.io/paused"), Refusal::Paused),
        (annotated("capm3.metal3.io/unhealthy"), Refusal::Unhealthy),
        (annotated("capi.metal3.io/unhealthy"), Refusal::Unhealthy),
        (annotated("baremetalhost.metal3.io/detached"), Refusal::Detached),
        (
            json!({ "status": { "operationalStatus": "detached" } }),
            Refusal::Detached,
        ),
        (json!({ "status": { "operationalStatus": "error" } }), Refusal::Faulty),
        (json!({ "status": { "errorMessage": "no power" } }), Refusal::Faulty),
        (
            json!({ "spec": { "image": { "url": "http://i/a" } } }),
            Refusal::HasImage,
        ),
        (
            json!({ "spec": { "customDeploy": { "method": "install" } } }),
            Refusal::HasImage,
        ),
    ];
    for (patch, expected) in rows {
        let (machine, hosts) = (machine(json!({})), [host("h", patch.clone())]);
        let Choice::None(refusals) = choose(&machine, &hosts) else {
            panic!("{patch}")
        };
        assert_eq!(refusals.of("h"), Some(&expected), "{patch}");
    }
}

#[test]
fn externally_provisioned_host_is_refused_although_it_is_still_available() {
    for image in [json!(null), json!({ "url": "http://i/a" })] {
        let patch = json!({ "spec": { "externallyProvisioned": true, "image": image } });
        let (machine, hosts) = (machine(json!({})), [host("h", patch)]);
        let Choice::None(refusals) = choose(&machine, &hosts) else {
            panic!("{image}")
        };
        assert_eq!(refusals.of("h"), Some(&Refusal::ExternallyProvisioned), "{image}");
    }
}

#[test]
fn host_is_chosen_in_the_two_states_that_can_be_provisioned() {
    let in_state = |state: &str| json!({ "status": { "provisioning": { "state": state } } });
    for state in [
        "",
        "inspecting",
        "preparing",
        "deprovisioning",
        "externally provisioned",
        "an unknown state",
    ] {
        let (machine, hosts) = (machine(json!({})), [host("h", in_state(state))]);
        let Choice::None(refusals) = choose(&machine, &hosts) else {
            panic!("{state}")
        };
        assert_eq!(
            refusals.of("h"),
            Some(&Refusal::NotReady {
                state: state.to_owned()
            })
        );
    }
    for state in ["available", "ready"] {
        let (machine, hosts) = (machine(json!({})), [host("h", in_state(state))]);
        assert_eq!(chosen(&choose(&machine, &hosts)).as_deref(), Some("h"));
    }
}

#[test]
fn own_host_comes_first_in_every_state_and_version() {
    for api_version in [GROUP_VERSION, "infrastructure.cluster.x-k8s.io/v1beta1"] {
        let mut own = consumer("Metal3Machine", api_version, "w-0");
        merge(
            &mut own,
            json!({ "status": { "provisioning": { "state": "provisioning" }, "errorMessage": "failed" } }),
        );
        let hosts = [host("free", json!({})), host("own", own)];
        let machine = machine(json!({ "hostSelector": { "matchLabels": { "no": "match" } } }));
        assert_eq!(choose(&machine, &hosts), Choice::Own(&hosts[1]));
    }
    let mut elsewhere = consumer("Metal3Machine", GROUP_VERSION, "w-0");
    merge(
        &mut elsewhere,
        json!({ "spec": { "consumerRef": { "namespace": "other" } } }),
    );
    let (machine, hosts) = (machine(json!({})), [host("h", elsewhere)]);
    assert!(matches!(choose(&machine, &hosts), Choice::None(_)));
}

#[test]
fn selectors_choose_by_labels_and_by_expressions() {
    let hosts = [
        labelled("a", "size", "large"),
        labelled("b", "size", "small"),
        host("c", json!({})),
    ];
    let by = |operator: &str, values: Value| json!({ "matchExpressions": [{ "key": "size", "operator": operator, "values": values }] });
    for (selector, expected) in [
        (json!({ "matchLabels": { "size": "large" } }), vec!["a"]),
        (by("In", json!(["large", "small"])), vec!["a", "b"]),
        (by("NotIn", json!(["large"])), vec!["b", "c"]),
        (by("Exists", json!([])), vec!["a", "b"]),
        (by("DoesNotExist", json!([])), vec!["c"]),
        (by("!", json!([])), vec!["c"]),
        (
            json!({ "matchLabels": { "size": "large" }, "matchExpressions": [{ "key": "size", "operator": "!=", "values": ["large"] }] }),
            vec![],
        ),
    ] {
        let machine = machine(json!({ "hostSelector": selector }));
        let matched = hosts.iter().filter(|host| {
            let only = std::slice::from_ref(*host);
            chosen(&choose(&machine, only)).is_some()
        });
        let names: Vec<_> = matched.map(|host| host.metadata.name.as_deref().unwrap()).collect();
        assert_eq!(names, expected, "{selector}");
    }
    let unreadable = machine(json!({ "hostSelector": by("Near", json!(["x"])) }));
    let error = HostChooser::try_new(&unreadable, None).unwrap_err().to_string();
    assert!(
        error.starts_with("spec.hostSelector: ") && error.contains("use In, NotIn"),
        "{error}"
    );
}

#[test]
fn failure_domain_is_preferred_and_not_required() {
    let key = "infrastructure.cluster.x-k8s.io/failure-domain";
    let hosts: Vec<_> = (0..20)
        .map(|n| labelled(&format!("h{n}"), key, if n == 7 { "north" } else { "south" }))
        .collect();
    let of = |domain: &str| {
        let machine = machine(json!({ "failureDomain": domain }));
        let choice = choose(&machine, &hosts);
        let Choice::Take { is_in_domain, .. } = choice else {
            panic!("{choice:?}")
        };
        (chosen(&choice).unwrap(), is_in_domain)
    };
    assert_eq!(of("north"), ("h7".to_owned(), true));
    assert!(of("south").1);
    assert!(!of("east").1, "without a host there any host will do");
    assert!(!of("not a label value!").1);
}

#[test]
fn host_kept_for_the_owner_excludes_free_hosts_and_is_awaited() {
    let key = "infrastructure.cluster.x-k8s.io/node-reuse";
    let kept = |name: &str, state: &str| {
        let mut patch = consumer("Cluster", "cluster.x-k8s.io/v1beta2", "alpha");
        merge(
            &mut patch,
            json!({ "metadata": { "labels": { key: "md-workers" } }, "status": { "provisioning": { "state": state } } }),
        );
        host(name, patch)
    };
    let machine = machine(json!({}));
    let hosts = [
        host("free", json!({})),
        kept("busy", "deprovisioning"),
        kept("done", "available"),
    ];
    assert!(matches!(choose(&machine, &hosts), Choice::Take { host, is_reused: true, .. } if *host == hosts[2]));
    let Choice::None(refusals) = choose(&machine, &hosts[..2]) else {
        panic!("the free host was chosen")
    };
    assert_eq!(refusals.of("free"), Some(&Refusal::OtherKept));
    assert_eq!(
        refusals.of("busy"),
        Some(&Refusal::KeptNotReady {
            state: "deprovisioning".into()
        })
    );
    let mut used = kept("used", "available");
    used.spec.consumer_ref.as_mut().unwrap().kind = Some("Metal3Machine".into());
    let Choice::None(refusals) = choose(&machine, std::slice::from_ref(&used)) else {
        panic!("a used host was chosen")
    };
    assert!(
        matches!(refusals.of("used"), Some(Refusal::InUse { .. })),
        "the label alone does not free a host"
    );
    used.spec.consumer_ref = None;
    assert_eq!(
        chosen(&choose(&machine, &[used])).as_deref(),
        Some("used"),
        "older managers keep a host by the label alone"
    );
    let stranger = HostChooser::try_new(&machine, None).unwrap().choose(&hosts);
    assert_eq!(chosen(&stranger).as_deref(), Some("free"));
}

#[test]
fn host_kept_by_another_cluster_is_not_chosen() {
    let key = "infrastructure.cluster.x-k8s.io/node-reuse";
    let kept_by = |namespace: &str, name: &str| {
        let mut patch = consumer("Cluster", "cluster.x-k8s.io/v1beta2", name);
        let labels = json!({ "metadata": { "labels": { key: "md-workers" } } });
        merge(&mut patch, labels);
        merge(
            &mut patch,
            json!({ "spec": { "consumerRef": { "namespace": namespace } } }),
        );
        [host("kept", patch)]
    };
    let refusal = |machine: &Metal3Machine, hosts: &[BareMetalHost]| match choose(machine, hosts) {
        Choice::None(refusals) => refusals.of("kept").map(ToString::to_string),
        Choice::Own(_) | Choice::Take { .. } => None,
    };
    let mut machine = machine(json!({}));
    assert_eq!(refusal(&machine, &kept_by("lab", "alpha")), None);
    for (namespace, name) in [("lab", "beta"), ("other", "alpha")] {
        assert_eq!(
            refusal(&machine, &kept_by(namespace, name)),
            Some(format!("kept for Cluster {namespace}/{name}"))
        );
    }
    for labels in [json!({}), json!({ "cluster.x-k8s.io/cluster-name": "" })] {
        machine.metadata.labels = serde_json::from_value(labels).unwrap();
        assert!(refusal(&machine, &kept_by("lab", "")).is_some());
        assert!(refusal(&machine, &kept_by("lab", "alpha")).is_some());
    }
}

#[test]
fn refusals_are_one_sentence_with_the_remedy() {
    let machine = machine(json!({ "hostSelector": { "matchLabels": { "size": "large" } } }));
    let mut hosts: Vec<_> = (0..1000).map(|n| host(&format!("h{n}"), json!({}))).collect();
    hosts.push(host("p", json!({ "metadata": { "labels": { "size": "large" }, "annotations": { "baremetalhost.metal3.io/paused": "" } } })));
    let Choice::None(refusals) = choose(&machine, &hosts) else {
        panic!()
    };
    assert_eq!(
        refusals.to_string(),
        "no host can be claimed: of more than 1000 hosts, 1 paused, more than 500 not matched by spec.hostSelector \
         (label size is not large); register more hosts, or widen spec.hostSelector"
    );
    assert_eq!(
        refusals.in_detail(),
        "1 paused (such as p), 1000 not matched by spec.hostSelector (label size is not large) (such as h0)"
    );
    assert_eq!(refusals.iter().count(), 1001);
    let Choice::None(none) = choose(&machine, &[]) else {
        panic!()
    };
    assert!(none.to_string().contains("register hosts"));
}

#[test]
fn refusals_are_counted_by_reason() {
    let machine = machine(json!({ "hostSelector": { "matchLabels": { "rack": "a" } } }));
    let in_rack = |name: String, rack: &str, patch: Value| {
        let mut one = json!({ "metadata": { "labels": { "rack": rack } } });
        merge(&mut one, patch);
        host(&name, one)
    };
    let busy = json!({ "status": { "provisioning": { "state": "preparing" } } });
    let mut hosts: Vec<_> = (0..7)
        .map(|n| in_rack(format!("u{n}"), "a", consumer("Metal3Machine", GROUP_VERSION, "other")))
        .collect();
    hosts.extend((0..3).map(|n| in_rack(format!("b{n}"), "a", busy.clone())));
    hosts.extend((0..2).map(|n| in_rack(format!("o{n}"), "b", json!({}))));
    let Choice::None(refusals) = choose(&machine, &hosts) else {
        panic!()
    };
    assert_eq!(
        refusals.to_string(),
        "no host can be claimed: of 12 hosts, 2 not matched by spec.hostSelector (label rack is not a), 7 in use, \
         3 not available yet; register more hosts, or widen spec.hostSelector"
    );
}

#[test]
fn message_of_a_large_fleet_does_not_change_with_each_host() {
    let hosts: Vec<_> = (0..2000).map(|n| host(&format!("h{n}"), json!({}))).collect();
    let mut refusals = Refusals::default();
    let mut texts = std::collections::BTreeSet::new();
    for host in &hosts {
        refusals.add(host, Refusal::Paused);
        texts.insert(refusals.to_string());
    }
    let exact = 20;
    let steps = [20, 50, 100, 200, 500, 1000];
    assert_eq!(texts.len(), exact + steps.len(), "{texts:?}");
    for step in steps {
        let text = format!("of more than {step} hosts, more than {step} paused;");
        assert!(texts.iter().any(|one| one.contains(&text)), "{text}");
    }
}

#[test]
fn message_is_short_whatever_the_selector() {
    let values: Vec<String> = (0..500).map(|n| format!("{}{n}", "v".repeat(50))).collect();
    let expressions: Vec<Value> = (0..100)
        .map(|n| json!({ "key": format!("k{n}"), "operator": "NotIn", "values": values }))
        .collect();
    let machine = machine(json!({ "hostSelector": { "matchExpressions": expressions } }));
    let hosts: Vec<_> = (0..100)
        .map(|n| labelled(&format!("h{n}"), &format!("k{n}"), &values[0]))
        .collect();
    let Choice::None(refusals) = choose(&machine, &hosts) else {
        panic!()
    };
    let text = refusals.to_string();
    assert!(
        text.len() < 4000 && text.contains("more than 50 for other reasons"),
        "{text}"
    );
}

#[test]
fn machines_that_choose_at_the_same_time_spread_over_the_hosts() {
    let hosts: Vec<_> = (0..8).map(|n| host(&format!("h{n}"), json!({}))).collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..800 {
        let mut machine = machine(json!({}));
        machine.metadata.uid = Some(format!("uid-{number}"));
        *counts.entry(chosen(&choose(&machine, &hosts)).unwrap()).or_default() += 1;
    }
    assert!(
        counts.len() == 8 && counts.values().all(|count| (60..=140).contains(count)),
        "{counts:?}"
    );
}

proptest! {
    #[test]
    fn choice_depends_only_on_the_machine_and_the_hosts(
        states in proptest::collection::vec(prop_oneof![Just("available"), Just("provisioned")], 1..12),
        uid in "[a-f0-9-]{1,36}",
        generation in 0..5i64,
        removed in any::<prop::sample::Index>(),
    ) {
        let in_state = |(n, state): (usize, &&str)| host(&format!("h{n}"), json!({ "status": { "provisioning": { "state": *state } } }));
        let mut hosts: Vec<_> = states.iter().enumerate().map(in_state).collect();
        let mut machine = machine(json!({}));
        (machine.metadata.uid, machine.metadata.generation) = (Some(uid), Some(generation));
        let first = chosen(&choose(&machine, &hosts));
        prop_assert_eq!(first.is_some(), states.contains(&"available"));
        hosts.reverse();
        prop_assert_eq!(&first, &chosen(&choose(&machine, &hosts)));
        let gone = hosts.remove(removed.index(hosts.len()));
        if gone.metadata.name != first {
            prop_assert_eq!(&first, &chosen(&choose(&machine, &hosts)), "a host that was not chosen changes nothing");
        }
    }
}

#[test]
fn host_that_is_kept_without_its_cluster_is_not_given_to_one_of_two_owners_of_its_name() {
    let machine = machine(json!({}));
    let labels = |cluster: Value| {
        let mut labels = json!({ "infrastructure.cluster.x-k8s.io/node-reuse": "md-workers" });
        if !cluster.is_null() {
            labels["cluster.x-k8s.io/cluster-name"] = cluster;
        }
        json!({ "metadata": { "labels": labels } })
    };
    for (cluster, has_namesake, expected) in [
        (Value::Null, false, None),
        (Value::Null, true, Some(Refusal::KeptForOneOfTwo)),
        (json!("alpha"), true, None),
        (
            json!("other"),
            false,
            Some(Refusal::KeptForAnother {
                owner: "Cluster other".to_owned(),
            }),
        ),
    ] {
        let hosts = [host("h0", labels(cluster.clone()))];
        let chooser = HostChooser::try_new(&machine, Some("md-workers")).unwrap();
        let found = match chooser.with_namesake(has_namesake).choose(&hosts) {
            Choice::None(refusals) => refusals.of("h0").cloned(),
            Choice::Own(_) | Choice::Take { .. } => None,
        };
        assert_eq!(found, expected, "{cluster} {has_namesake}");
    }
}

#[test]
fn machine_waits_for_a_host_that_one_of_two_owners_of_its_name_keeps_and_takes_no_spare_one() {
    let machine = machine(json!({}));
    let kept = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "md-workers" } } });
    let hosts = [host("h0", kept), host("h1", json!({}))];
    let chooser = HostChooser::try_new(&machine, Some("md-workers")).unwrap();
    let Choice::None(refusals) = chooser.with_namesake(true).choose(&hosts) else {
        panic!("a host is taken");
    };
    assert_eq!(refusals.of("h0"), Some(&Refusal::KeptForOneOfTwo));
    assert_eq!(refusals.of("h1"), Some(&Refusal::OtherKept));
    let text = refusals.to_string();
    for part in [
        "BareMetalHost h0",
        "spec.consumerRef",
        "infrastructure.cluster.x-k8s.io/node-reuse",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// It may never become ready, and a decision between the two owners does not change that.
#[test]
fn host_of_one_of_two_owners_that_cannot_be_used_is_not_awaited() {
    let machine = machine(json!({}));
    let kept = json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "md-workers" } } });
    for unusable in [
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
        json!({ "metadata": { "annotations": { "capm3.metal3.io/unhealthy": "" } } }),
        json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } }),
        json!({ "status": { "operationalStatus": "detached" } }),
        json!({ "status": { "operationalStatus": "error", "errorMessage": "disk" } }),
        json!({ "spec": { "image": { "url": "http://images/a" } } }),
    ] {
        let mut document = kept.clone();
        merge(&mut document, unusable.clone());
        let hosts = [host("h0", document), host("h1", json!({}))];
        let chooser = HostChooser::try_new(&machine, Some("md-workers")).unwrap();
        let Choice::Take { host, .. } = chooser.with_namesake(true).choose(&hosts) else {
            panic!("no host is taken: {unusable}");
        };
        assert_eq!(host.metadata.name.as_deref(), Some("h1"), "{unusable}");
    }
}
