//! Where chains end that led elsewhere before: what is done, in deletion, in service, or hidden by something harmless.

use super::*;

fn deleting(change: Value) -> Value {
    let mut deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
    merge(&mut deleting, change);
    deleting
}

fn data_claim(change: Value) -> Value {
    let mut rendered = json!({ "status": { "renderedData": { "name": "t-0" } } });
    merge(&mut rendered, change);
    object(&format!("{INFRASTRUCTURE}/v1beta2"), "Metal3DataClaim", "m0", rendered)
}

fn data(ready: bool) -> Value {
    let data = json!({ "spec": { "template": { "name": "t" } }, "status": { "ready": ready } });
    object(&format!("{INFRASTRUCTURE}/v1beta2"), "Metal3Data", "t-0", data)
}

#[test]
fn data_claim_is_done_when_its_data_is() {
    let explanation = explained(&[data_claim(json!({})), data(true)], "m3dc/m0", None);
    assert_eq!((links(&explanation), explanation.state), (vec![], State::Ready));
    let waiting = "Metal3DataTemplate/t does not exist";
    assert_end(
        "m3dc/m0",
        &[data_claim(json!({})), data(false)],
        (waiting, State::Blocked),
    );
}

#[test]
fn claim_in_deletion_waits_also_when_it_has_an_address() {
    let paused = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } });
    let with = |change: Value| {
        let mut claim =
            deleting(json!({ "spec": { "pool": { "name": "lan" } }, "status": { "address": { "name": "a" } } }));
        merge(&mut claim, change);
        [owned("IPClaim", "c", "t-0", claim)]
    };
    assert_end("ipclaim/c", &with(json!({})), ("IPClaim/c Deleting", State::Waiting));
    assert_end("ipclaim/c", &with(paused.clone()), ("IPClaim/c Paused", State::Blocked));
    let mut claim = json!({ "spec": { "poolRef": { "apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": "lan" } } });
    merge(&mut claim, paused);
    let claim = object("ipam.cluster.x-k8s.io/v1beta2", "IPAddressClaim", "c", claim);
    assert_end(
        "ipaddressclaim/c",
        &[claim],
        ("IPAddressClaim/c Paused", State::Blocked),
    );
}

#[test]
fn machine_in_deletion_waits_for_its_own_host_and_then_for_its_data() {
    let machine = metal3_machine("m0", ("Ready", "False", "Deleting"));
    let of = |consumer: &str| {
        let mut host = host("h0", failed("provisioning error"));
        host["spec"]["consumerRef"] = json!({ "kind": "Metal3Machine", "name": consumer });
        host
    };
    let claim = data_claim(deleting(json!({})));
    let own = [machine.clone(), of("m0"), claim.clone()];
    assert_end("m3m/m0", &own, ("BareMetalHost/h0 ProvisioningError", State::Blocked));
    let released = [machine, of("m1"), claim];
    assert_end("m3m/m0", &released, ("Metal3DataClaim/m0 Deleting", State::Waiting));
}

#[test]
fn cluster_in_deletion_does_not_need_infrastructure_that_is_gone() {
    let objects = [cluster(deleting(json!({})))];
    assert_end("cluster/edge", &objects, ("Cluster/edge Deleting", State::Waiting));
}

#[test]
fn cluster_that_says_that_it_is_not_available_waits() {
    let running =
        json!({ "status": { "nodeRef": { "name": "n0" }, "conditions": conditions(&[("Ready", "True", "Ready")]) } });
    let available =
        |status: &str| json!({ "status": { "conditions": conditions(&[("Available", status, "NotAvailable")]) } });
    let objects = |status: &str| {
        let [infrastructure, control_plane] = parts();
        [
            cluster(available(status)),
            infrastructure,
            control_plane,
            machine("m0", running.clone()),
        ]
    };
    assert_end(
        "cluster/edge",
        &objects("False"),
        ("Cluster/edge NotAvailable", State::Waiting),
    );
    assert_eq!(explained(&objects("True"), "cluster/edge", None).state, State::Ready);
}

#[test]
fn error_of_a_host_is_worse_than_a_port_that_it_does_not_need() {
    let held = conditions(&[("Held", "True", "BootPortRefused")]);
    let held = json!({ "status": { "conditions": held } });
    let with = |change: Value| {
        let mut both = held.clone();
        merge(&mut both, change);
        [host("h0", both), secret()]
    };
    let error = failed("power management error");
    assert_end(
        "bmh/h0",
        &with(error),
        ("BareMetalHost/h0 PowerManagementError", State::Blocked),
    );
    assert_end(
        "bmh/h0",
        &with(json!({})),
        ("BareMetalHost/h0 BootPortRefused", State::Blocked),
    );
}

#[test]
fn host_in_service_waits() {
    let service = json!({ "status": { "operationalStatus": "servicing" } });
    assert_end(
        "bmh/h0",
        &[host("h0", service)],
        ("BareMetalHost/h0 Servicing", State::Waiting),
    );
}

#[test]
fn user_acts_when_the_message_of_a_host_names_a_field() {
    let mut wish = failed("inspection error");
    wish["status"]["errorMessage"] = json!("spec.raid is not supported yet: remove it");
    let explanation = explained(&[host("h0", wish)], "bmh/h0", None);
    let last = explanation.chain.last().unwrap();
    assert_eq!(last.who_acts, Actor::User);
    assert!(last.cure.contains("field"), "{}", last.cure);
}

#[test]
fn host_that_the_machine_does_not_select_is_no_cause() {
    let selects = json!({ "spec": { "hostSelector": { "matchLabels": { "gpu": "true" } } } });
    let mut machine = metal3_machine("m0", NO_HOST);
    merge(&mut machine, selects);
    let inspecting = json!({ "status": { "provisioning": { "state": "inspecting" } } });
    let with = |labels: Value| {
        let mut free = inspecting.clone();
        merge(&mut free, json!({ "metadata": { "labels": labels } }));
        [machine.clone(), host("h1", free)]
    };
    let end = "Metal3Machine/m0 AssociateBareMetalHostFailed";
    assert_end("m3m/m0", &with(json!({})), (end, State::Blocked));
    let wanted = with(json!({ "gpu": "true" }));
    assert_end("m3m/m0", &wanted, ("BareMetalHost/h1 Inspecting", State::Waiting));
}

#[test]
fn host_that_is_moved_waits_for_the_end_of_the_move() {
    let marked = json!({ "metadata": { "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } } });
    let title = "is part of a move to another management cluster, and is not touched";
    let end = format!("BareMetalHost/h0 {title}");
    assert_end("bmh/h0", &[host("h0", marked)], (&end, State::Blocked));
}

#[test]
fn subscription_waits_for_its_host_or_says_what_to_do_and_is_done_when_the_bmc_has_it() {
    let subscription = |status: Value| {
        let all = json!({ "spec": { "hostName": "h0", "destination": "https://e/" }, "status": status });
        object("metal3.io/v1alpha1", "BMCEventSubscription", "events", all)
    };
    let done = explained(&[subscription(json!({ "subscriptionID": "1" }))], "bes/events", None);
    assert_eq!((links(&done), done.state), (vec![], State::Ready));
    let of_host = subscription(json!({ "error": "its host is not registered in Ironic yet; see its conditions" }));
    let host = host("h0", failed("registration error"));
    let end = explained(&[of_host.clone(), host, secret()], "bes/events", None);
    assert_eq!(
        links(&end).first().map(String::as_str),
        Some("BMCEventSubscription/events waits for its host")
    );
    assert_eq!((links(&end).len(), end.state), (2, State::Blocked));
    assert_end(
        "bes/events",
        &[of_host],
        ("BareMetalHost/h0 does not exist", State::Blocked),
    );
    let failed = subscription(json!({ "error": "failed to create a subscription: no; see the log" }));
    assert_end(
        "bes/events",
        &[failed],
        ("BMCEventSubscription/events waits", State::Blocked),
    );
    for (annotation, reason) in [
        ("cluster.x-k8s.io/paused", "Paused"),
        ("baremetalhost.metal3.io/paused", "Paused"),
        ("clusterctl.cluster.x-k8s.io/delete-for-move", "Moving"),
    ] {
        let mut held = subscription(json!({}));
        held["metadata"]["annotations"] = json!({ annotation: "" });
        let held = explained(&[held], "bes/events", None);
        assert_eq!(links(&held), [format!("BMCEventSubscription/events {reason}")]);
        assert_ne!(held.state, State::Ready);
    }
    let new = subscription(json!({}));
    assert_end(
        "bes/events",
        &[new],
        ("BMCEventSubscription/events NotYetReported", State::Waiting),
    );
}
