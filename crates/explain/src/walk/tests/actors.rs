//! Who has to act: no user or technician is sent to do harm, or the work of a controller.

use super::causes::{deleting, running, with};
use super::*;

fn last(objects: &[Value], start: &str) -> Link {
    explained(objects, start, None).chain.pop().unwrap()
}

fn paused_by_capm3() -> Value {
    json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "metal3.io/capm3" } },
        "spec": { "consumerRef": { "kind": "Metal3Machine", "name": "m0" } } })
}

/// clusterctl deletes Machines before hosts: the Machine of this name is in the target cluster then.
#[test]
fn host_that_a_move_left_is_not_cured_by_deleting_its_machine() {
    let last = last(&[host("h0", paused_by_capm3())], "bmh/h0");
    assert!(
        last.cure.contains("clusterctl move") && !last.cure.contains("delete the Machine"),
        "{}",
        last.cure
    );
    assert_eq!(last.who_acts, Actor::User);
}

#[test]
fn user_does_not_act_while_the_cure_is_to_wait() {
    let done = ("Ready", "True", "Ready");
    let provisioned = json!({ "status": { "initialization": { "provisioned": true } } });
    let machine = with(metal3_machine("m0", done), provisioned);
    let explanation = explained(&[host("h0", paused_by_capm3()), machine], "bmh/h0", None);
    let last = explanation.chain.last().unwrap();
    assert!(last.cure.starts_with("Wait"), "{}", last.cure);
    assert_eq!((last.who_acts, explanation.state), (Actor::System, State::Waiting));
}

/// Messages as the controller of hosts writes them. No technician helps.
#[test]
fn error_that_only_a_user_corrects_is_not_one_of_hardware() {
    for message in [
        "Secret bmc is not labelled for use by hosts, so it is not read. If spec.bmc.credentialsName names the right Secret, run: x",
        "failed to read preprovisioningNetworkData: create Secret net, or remove spec.preprovisioningNetworkDataName",
        "Secret ud for the config drive does not exist; create it",
        "the Secret that spec.userData names has neither \"userData\" nor \"value\"; set one of them",
        "the Secret that spec.image.ociAuthSecretName names has no login to registry.example, which spec.image.url names",
        "Validation error with BMC credentials: the Secret that spec.bmc.credentialsName names has no \"password\"; set it",
        "BMC driver ipmi requires a BootMACAddress value; set spec.bootMACAddress",
        "the node is in maintenance (fault), end its maintenance in Ironic",
        "its HostFirmwareSettings cannot be applied: x",
    ] {
        let error = json!({ "status": { "errorMessage": message } });
        let host = with(host("h0", failed("registration error")), error);
        assert_eq!(last(&[host, secret()], "bmh/h0").who_acts, Actor::User, "{message}");
    }
    let error = json!({ "status": { "errorMessage": "its HostFirmwareComponents cannot be applied: bios" } });
    let host = with(host("h0", failed("preparation error")), error);
    let invalid = json!({ "status": { "conditions": conditions(&[("Valid", "False", "InvalidComponent")]) } });
    let components = object("metal3.io/v1alpha1", "HostFirmwareComponents", "h0", invalid);
    let end = ("HostFirmwareComponents/h0 InvalidComponent", State::Blocked);
    assert_end("bmh/h0", &[host, components], end);
}

/// A host is deprovisioned before its consumer is removed.
#[test]
fn machine_waits_for_the_host_that_another_one_leaves() {
    let state = json!({ "spec": { "consumerRef": { "kind": "Metal3Machine", "name": "old", "namespace": "lab" } },
        "status": { "provisioning": { "state": "deprovisioning" } } });
    let waiting = metal3_machine(
        "m1",
        ("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed"),
    );
    let waiting = with(waiting, json!({ "metadata": { "annotations": null } }));
    let old = with(
        metal3_machine("old", ("Ready", "False", "Deleting")),
        deleting(json!({})),
    );
    let objects = [waiting, old, host("h0", state)];
    assert_end("m3m/m1", &objects, ("BareMetalHost/h0 Deprovisioning", State::Waiting));
}

/// `w0` may need help.
#[test]
fn machine_that_cannot_be_read_is_named_and_its_cluster_does_not_go_on_without_help() {
    let provisioning = json!({ "status": { "provisioning": { "state": "provisioning" } } });
    let created = ("AssociateMetal3MachineMetaData", "False", "CreateError");
    let unreadable = with(metal3_machine("w0", created), json!({ "spec": 7 }));
    let objects = [
        cluster(json!({})),
        machine("a0", json!({})),
        metal3_machine("a0", created),
        host("h0", provisioning),
        machine("w0", json!({})),
        unreadable,
        running(
            "cp0",
            json!({ "metadata": { "labels": { "cluster.x-k8s.io/control-plane": "" } } }),
        ),
    ];
    let explanation = explained(&objects, "cluster/edge", None);
    assert_eq!(explanation.state, State::Unknown);
    assert_eq!(explanation.not_read.len(), 1, "{:?}", explanation.not_read);
    assert_eq!(links(&explanation).last().unwrap(), "BareMetalHost/h0 Provisioning");
    let many = (0..21).map(|number| machine(&format!("b{number}"), json!({})));
    let many: Vec<Value> = objects.into_iter().take(4).chain(many).collect();
    let message = &explained(&many, "cluster/edge", None).chain[0].message;
    assert!(message.contains("the first 20"), "{message}");
}

#[test]
fn change_for_a_machine_in_use_does_not_go_on_without_help() {
    let changed = json!({ "spec": { "settings": {}, "updates": [] }, "status": { "settings": {}, "conditions":
        conditions(&[("Valid", "True", "OK"), ("ChangeDetected", "True", "OK")]) } });
    for (kind, start) in [("HostFirmwareComponents", "hfc/h0"), ("HostFirmwareSettings", "hfs/h0")] {
        let change = object("metal3.io/v1alpha1", kind, "h0", changed.clone());
        let in_use = json!({ "status": { "provisioning": { "state": "provisioned" } } });
        let explanation = explained(&[change.clone(), host("h0", in_use)], start, None);
        assert_eq!(explanation.state, State::Blocked, "{kind}");
        assert!(
            explanation.chain[0].cure.starts_with("Nothing has to be done now"),
            "{kind}"
        );
        let preparing = json!({ "status": { "provisioning": { "state": "preparing" } } });
        assert_eq!(
            explained(&[change, host("h0", preparing)], start, None).state,
            State::Waiting,
            "{kind}"
        );
    }
}

/// The words are those of the contract, and the cures those of an IPPool.
#[test]
fn claim_on_a_pool_of_another_provider_has_no_cure_of_an_ip_pool() {
    let spec = json!({ "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "p" } });
    let status = json!({ "conditions": conditions(&[("Ready", "False", "AllocationFailed")]) });
    let claim = object(
        "ipam.cluster.x-k8s.io/v1beta2",
        "IPAddressClaim",
        "c",
        json!({ "spec": spec, "status": status }),
    );
    let pool = json!({ "status": { "ipAddresses": { "free": 0, "total": 1, "used": 1 } } });
    let pool = object("ipam.cluster.x-k8s.io/v1alpha2", "InClusterIPPool", "p", pool);
    let explanation = explained(&[claim, pool], "ipaddressclaim/c", None);
    assert_eq!(explanation.chain[0].runbook, None);
    assert!(
        !explanation
            .chain
            .iter()
            .any(|link| link.cure.contains("preAllocations"))
    );
    assert_eq!(
        links(&explanation).last().unwrap(),
        "InClusterIPPool/p has no free address"
    );
}

#[test]
fn what_a_controller_makes_for_a_machine_is_not_made_by_hand() {
    let waiting = metal3_machine("m0", ("Metal3DataReady", "False", "WaitingForMetal3Data"));
    let last = last(&[waiting], "m3m/m0");
    assert_eq!(last.object.to_string(), "Metal3DataClaim/m0");
    assert!(!last.cure.starts_with("Create"), "{}", last.cure);
}
